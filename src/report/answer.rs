//! What the comparison says, in a few sentences.

use std::collections::BTreeMap;

use super::analysis::{Arrow, Entry, SetSummary, Summary};
use super::format::title;
use super::tables::score_decimals;
use crate::experiment::Contender;
use crate::text::listed;
use crate::text::number::fixed;

/// The most learners that a sentence names.
const MAX_NAMED: usize = 4;

/// Who has the best means, and who differs significantly from the reference.
pub(super) fn answer(summary: &Summary) -> Vec<String> {
    let sets = judged(summary);
    let mut sentences: Vec<String> = best(summary, &sets, |_| true).into_iter().collect();
    let is_batch = |contender: &Contender| contender.is_batch();
    if summary.contenders.iter().any(is_batch) && !summary.contenders.iter().all(is_batch) {
        let in_one_pass = best(summary, &sets, |contender| !contender.is_batch());
        let new = in_one_pass.filter(|sentence| !sentences.contains(sentence));
        sentences.extend(new.map(|sentence| format!("Without batch learners: {sentence}")));
    }
    sentences.extend(against_reference(summary, &sets));
    sentences
}

/// The sets with results. A set that is there with and without noise counts once, with noise.
fn judged(summary: &Summary) -> Vec<&SetSummary> {
    let has_noisy_line = |set: &SetSummary| {
        let is_noisy = |other: &SetSummary| {
            !other.data.dequantized.is_empty() && other.data.catalogue_name() == set.data.catalogue_name()
        };
        set.data.dequantized.is_empty() && summary.sets.iter().any(is_noisy)
    };
    let has_scores = |set: &SetSummary| set.entries.iter().any(|entry| entry.score.is_some());
    summary.sets.iter().filter(|set| has_scores(set) && !has_noisy_line(set)).collect()
}

fn best(summary: &Summary, sets: &[&SetSummary], takes_part: impl Fn(&Contender) -> bool) -> Option<String> {
    let decimals = score_decimals(summary);
    let mut wins: BTreeMap<Contender, usize> = BTreeMap::new();
    let mut level = None;
    for set in sets {
        let competes = |entry: &&Entry| takes_part(&entry.contender) && entry.can_be_best();
        let scored = set.entries.iter().filter(competes);
        let mean = |entry: &Entry| entry.score.as_ref().map(|score| score.mean);
        level = scored.clone().filter_map(mean).max_by(f64::total_cmp).map(|mean| fixed(mean, decimals));
        for entry in scored.filter(|entry| mean(entry).map(|mean| fixed(mean, decimals)) == level) {
            *wins.entry(entry.contender.clone()).or_default() += 1;
        }
    }
    match sets {
        [] => None,
        [set] => {
            let names: Vec<String> = wins.keys().map(|contender| contender.name().to_string()).collect();
            let have = if names.len() == 1 { "has" } else { "have" };
            let names = listed(names.into_iter(), MAX_NAMED);
            Some(format!("{names} {have} the best mean on {}: {} nats per row.", title(&set.data), level?))
        }
        _ => Some(format!(
            "Best mean: {}, of {} data sets (equal means count for each).",
            ranked(wins),
            sets.len()
        )),
    }
}

/// Learners with their numbers of sets, the largest first: `EM on 5, oBMM on 3`.
fn ranked(numbers: BTreeMap<Contender, usize>) -> String {
    let mut ranked: Vec<_> = numbers.into_iter().collect();
    ranked.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    ranked.truncate(MAX_NAMED);
    let named: Vec<String> =
        ranked.iter().map(|(contender, number)| format!("{} on {number}", contender.name())).collect();
    named.join(", ")
}

fn against_reference(summary: &Summary, sets: &[&SetSummary]) -> Option<String> {
    let with = |arrow: Arrow| {
        let mut numbers = BTreeMap::new();
        let entries = sets.iter().flat_map(|set| &set.entries).filter(|entry| entry.arrow == Some(arrow));
        entries.for_each(|entry| *numbers.entry(entry.contender.clone()).or_default() += 1);
        (!numbers.is_empty()).then(|| ranked(numbers))
    };
    let reference = summary.reference.as_ref()?.name();
    let part = |what: &str, arrow| Some(format!("significantly {what} than {reference}: {}", with(arrow)?));
    let parts: Vec<String> =
        [part("better", Arrow::Up), part("worse", Arrow::Down)].into_iter().flatten().collect();
    let of = if sets.len() > 1 { format!(", of {} data sets", sets.len()) } else { String::new() };
    let text = parts.join("; ").replacen('s', "S", 1);
    (!parts.is_empty()).then(|| format!("{text}{of}."))
}
