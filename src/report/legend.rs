//! The texts around the tables: legend, learners, elbows and notes.

use super::analysis::SIGNIFICANCE;
use super::analysis::{Entry, SetSummary, Summary};
use super::format::{self, title};
use super::tables::has_choice;
use crate::experiment::{PaperColumns, Units, name_without_noise};
use crate::text::number::thousands;

/// Defines the elbow.
pub(super) const ELBOW: &str = "the smallest K beyond which larger K gain little; where the score rises to the end of \
                     the range (marked 'rises'), the K at which the curve bends most";

/// The elbows over K: their definition, and a sentence for each data set that has any.
pub(super) fn elbows(summary: &Summary) -> Vec<String> {
    let of_set = |set: &SetSummary| {
        let found = set.entries.iter().filter(|entry| entry.elbow.is_some());
        let named: Vec<String> =
            found.map(|entry| format!("{} {}", entry.contender.name(), format::elbow(entry.elbow))).collect();
        (!named.is_empty()).then(|| format!("Elbow over K, {}: {}.", title(&set.data), named.join(", ")))
    };
    let named: Vec<String> = summary.sets.iter().filter_map(of_set).collect();
    let explained = (!named.is_empty()).then(|| format!("Elbow: {ELBOW}."));
    explained.into_iter().chain(named).collect()
}

/// How to read the table of scores, a sentence each. `best` is the mark of the best mean.
pub(super) fn legend(summary: &Summary, best: &str) -> Vec<String> {
    let mut legend = Vec::new();
    let is_partial = |entry: &Entry| entry.score.is_some() && !entry.can_be_best();
    legend.push(format!(
        "{best}: the best mean of the line; several if they are equal to the decimals shown.{}",
        if summary.sets.iter().flat_map(|set| &set.entries).any(is_partial) {
            " A learner with failed cells is left out, because its mean is over other rows."
        } else {
            ""
        }
    ));
    if let Some(reference) = &summary.reference {
        let reference = reference.name();
        legend.push(format!(
            "↑ / ↓: significantly better / worse than {reference} in ranks (Wilcoxon signed-rank test, two-sided, p < {}, not corrected for the number of data sets), paired on {}, and better / worse in the mean too. With many rows even a tiny difference is significant: the details in summary.md give the size of each effect, and the paired difference with its standard error.",
            SIGNIFICANCE,
            format::pairs(summary.options.pairs, summary.has_folds())
        ));
    }
    if let Some(seeds) = summary.seeds() {
        legend.push(format!(
            "±: the standard error of the mean over {seeds} seeds, which repeat splits and starts. The seeds use the same rows: tests average the scores of each row over the seeds first."
        ));
    }
    if has_choice(summary) {
        let several = summary
            .sets
            .iter()
            .flat_map(|set| &set.entries)
            .any(|entry| entry.chosen.values().min() != entry.chosen.values().max());
        legend.push(format!(
            "K: the number of components, chosen for each learner{}.{}",
            format::select_rule(summary.options.select, summary.has_folds()),
            if several { " A range such as 5–7 means that folds chose different K." } else { "" }
        ));
    }
    if summary.sets.iter().any(|set| set.units == Units::Zscore) {
        legend.push(
            "Units: scores of a z-scored set are for columns scaled to standard deviation 1, converted by the exact Jacobian."
                .to_string(),
        );
    }
    if summary.sets.iter().any(|set| set.paper != PaperColumns::default()) {
        legend.push(
            "Paper: results of Jaini & Poupart (2016), shown where data and units are the same.".to_string(),
        );
    }
    legend
}

/// The learners that took part, with descriptions.
pub(super) fn learners(summary: &Summary) -> Vec<(&str, String)> {
    let run = summary.runs.last();
    summary.contenders.iter().map(|contender| (contender.name(), contender.describe(run))).collect()
}

/// Notes on single data sets, a sentence each.
pub(super) fn notes(summary: &Summary) -> Vec<String> {
    let mut notes = Vec::new();
    for set in &summary.sets {
        let data = &set.data;
        if data.stand_in {
            notes.push(format!(
                "{}: a synthetic stand-in ({} rows) with the columns of a missing data set. Its scores say nothing about that set.",
                title(data),
                thousands(data.rows as u64)
            ));
        }
        if let Some(how) = &data.missing {
            notes.push(format!("{}: {how}.", title(data)));
        }
        if !data.dequantized.is_empty() {
            let columns: Vec<_> =
                data.dequantized.iter().map(|(column, quantum)| format!("{column} ({quantum})")).collect();
            notes.push(format!(
                "{}: uniform noise of one quantum is added to the discrete columns, whose density is otherwise unbounded: {}.",
                title(data),
                columns.join(", ")
            ));
        }
    }
    for data in summary.sets.iter().map(|set| &set.data).filter(|data| !data.discrete.is_empty()) {
        let is_noisy = |set: &SetSummary| {
            !set.data.dequantized.is_empty() && name_without_noise(&set.data.data) == data.data
        };
        notes.push(format!(
            "{}: few distinct values in {}, so the density is unbounded and these scores measure how narrow a component may become. {}",
            title(data),
            data.discrete.join(", "),
            match summary.sets.iter().any(is_noisy) {
                true => "Those of the dequantized set are comparable.",
                false => "Dequantize the set (add noise of one quantum) to compare scores.",
            }
        ));
    }
    notes.extend(summary.notes.iter().cloned());
    notes
}
