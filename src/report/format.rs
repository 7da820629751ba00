//! Titles of data sets, and names of units, rules and chosen K.

use std::collections::BTreeMap;

use super::analysis::{Pairs, SelectRule};
use crate::experiment::{DataRecord, RunRecord, Units};
use crate::stats::{Beyond, Elbow};
use crate::text::number::NONE;

/// A data set's name in tables, with remarks.
pub(super) fn title(data: &DataRecord) -> String {
    let mut title = data.title.clone();
    if !data.dequantized.is_empty() && !title.contains("dequantized") {
        title.push_str(", dequantized");
    }
    if data.stand_in {
        title.push_str(" (stand-in)");
    }
    if data.missing.is_some() {
        title.push_str(" (missing)");
    }
    title
}

pub(super) fn units(units: Units) -> &'static str {
    match units {
        Units::Raw => "raw",
        Units::Zscore => "z-scored",
    }
}

pub(super) fn select_rule(rule: SelectRule, has_folds: bool) -> String {
    let within = if has_folds { " in each fold" } else { "" };
    match rule {
        SelectRule::Validation => {
            format!("{within} by the mean log-likelihood of validation rows, which are a part of the training rows")
        }
        SelectRule::Evidence => format!(
            "{within} by the prequential log-likelihood of training rows (batch EM, which has none: by validation rows)"
        ),
        SelectRule::Paper => {
            " as in the paper, by the test rows themselves: the first K that the next one does not significantly improve on"
                .to_string()
        }
    }
}

/// The K that folds chose: `7`, or `5–7` if they chose several.
pub(super) fn range_of_k(chosen: &BTreeMap<usize, usize>) -> Option<String> {
    let (least, most) = (chosen.values().min()?, chosen.values().max()?);
    Some(if least == most { least.to_string() } else { format!("{least}–{most}") })
}

/// Each K that folds chose, with the number of folds if there are several K: `7`, or `5 (2×), 7 (8×)`.
pub(super) fn list_of_k(chosen: &BTreeMap<usize, usize>) -> String {
    let mut folds_of: BTreeMap<usize, usize> = BTreeMap::new();
    chosen.values().for_each(|k| *folds_of.entry(*k).or_default() += 1);
    match folds_of.len() {
        1 if folds_of.contains_key(&0) => NONE.to_string(),
        1 => folds_of.keys().map(usize::to_string).collect(),
        _ => folds_of.iter().map(|(k, folds)| format!("{k} ({folds}×)")).collect::<Vec<_>>().join(", "),
    }
}

/// The K of an elbow, marked if the score rises to the end of the range.
pub(super) fn elbow(elbow: Option<Elbow>) -> String {
    match elbow {
        None => NONE.to_string(),
        Some(Elbow { k, beyond: Beyond::Rises, .. }) => format!("{k} (rises)"),
        Some(Elbow { k, .. }) => k.to_string(),
    }
}

/// The test rows of a run.
pub(super) fn tested_on(run: &RunRecord) -> String {
    let rows = if run.folds == 1 { "a test file".to_string() } else { format!("{} folds", run.folds) };
    if run.seeds > 1 { format!("{rows} with each of {} seeds", run.seeds) } else { rows }
}

pub(super) fn pairs(pairs: Pairs, has_folds: bool) -> &'static str {
    match pairs {
        Pairs::Rows if has_folds => "the log-likelihoods of the test rows of all folds",
        Pairs::Rows => "the log-likelihoods of the test rows",
        Pairs::Folds => "the mean test log-likelihoods of the folds",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_k_of_several_folds_are_formatted_as_a_range_and_as_a_list() {
        let of = |ks: &[usize]| {
            let chosen: BTreeMap<usize, usize> = ks.iter().copied().enumerate().collect();
            (range_of_k(&chosen), list_of_k(&chosen))
        };
        assert_eq!(of(&[7, 7]), (Some("7".into()), "7".into()));
        assert_eq!(of(&[7, 5, 7]), (Some("5–7".into()), "5 (1×), 7 (2×)".into()));
        assert_eq!(of(&[]).0, None);
    }
}
