//! Choosing the number of components from records.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::record::CellRecord;
use crate::stats::signed_rank;

/// How the number of components is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectRule {
    /// The best mean log-likelihood of validation rows, which are part of the training rows.
    #[default]
    Validation,
    /// The best mean prequential log-likelihood: the density of rows just before they were learned. A learner
    /// that has no such score (batch EM) is chosen by validation.
    Evidence,
    /// The paper's rule, which looks at the test rows: the first K that the next one does not significantly
    /// improve on.
    Paper,
}

/// What is paired in tests between two learners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pairs {
    /// The log-likelihoods of each test row, over all folds.
    #[default]
    Rows,
    /// The mean log-likelihoods of each fold.
    Folds,
}

/// The level of all tests.
pub const SIGNIFICANCE: f64 = 0.05;

/// The number of components chosen for one contender on one data set, given its cells of all K and folds. `None`
/// if there is nothing to choose by. Of equals the smaller K wins.
pub fn choose_k(cells: &[&CellRecord], rule: SelectRule) -> Option<usize> {
    let by_k = cells_by_k(cells);
    match rule {
        SelectRule::Validation => best(&by_k, |cell| cell.validation),
        SelectRule::Evidence => {
            best(&by_k, |cell| cell.prequential).or_else(|| best(&by_k, |cell| cell.validation))
        }
        SelectRule::Paper => first_without_improvement(&by_k),
    }
}

/// Paired differences of the test log-likelihoods of two sets of cells, `ours − theirs`, fold by fold in order. Folds
/// that only one side has are left out.
pub fn paired_differences(ours: &[&CellRecord], theirs: &[&CellRecord], pairs: Pairs) -> Vec<f64> {
    let theirs: BTreeMap<usize, &CellRecord> = theirs.iter().map(|cell| (cell.fold, *cell)).collect();
    let ours: BTreeMap<usize, &CellRecord> = ours.iter().map(|cell| (cell.fold, *cell)).collect();
    let mut differences = Vec::new();
    for (fold, our) in ours {
        let Some(their) = theirs.get(&fold).filter(|their| their.test.len() == our.test.len()) else {
            continue;
        };
        let rows = our.test.iter().zip(&their.test).map(|(a, b)| f64::from(*a) - f64::from(*b));
        match pairs {
            Pairs::Rows => differences.extend(rows),
            Pairs::Folds if our.test.is_empty() => {}
            Pairs::Folds => differences.push(rows.sum::<f64>() / our.test.len() as f64),
        }
    }
    differences
}

type ByK<'a> = BTreeMap<usize, Vec<&'a CellRecord>>;

fn cells_by_k<'a>(cells: &[&'a CellRecord]) -> ByK<'a> {
    let mut by_k = ByK::new();
    cells.iter().for_each(|cell| by_k.entry(cell.k).or_default().push(cell));
    // Means must not depend on the order in which folds were finished.
    by_k.values_mut().for_each(|cells| cells.sort_by_key(|cell| cell.fold));
    by_k
}

/// The K with the best mean over folds, among those for which every fold has a score.
fn best(by_k: &ByK, score: impl Fn(&CellRecord) -> Option<f64>) -> Option<usize> {
    let mean = |cells: &[&CellRecord]| {
        let scores: Option<Vec<f64>> = cells.iter().map(|cell| score(cell)).collect();
        scores.and_then(|scores| crate::stats::mean(&scores))
    };
    let scored = by_k.iter().filter_map(|(&k, cells)| Some((k, mean(cells)?)));
    scored.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(k, _)| k)
}

fn first_without_improvement(by_k: &ByK) -> Option<usize> {
    let ks: Vec<(&usize, &Vec<&CellRecord>)> = by_k.iter().collect();
    let improves = |pair: &[(&usize, &Vec<&CellRecord>)]| {
        let differences = paired_differences(pair[1].1, pair[0].1, Pairs::Rows);
        signed_rank(&differences).is_some_and(|test| test.favours_positive(SIGNIFICANCE))
    };
    let stop = ks.windows(2).find(|pair| !improves(pair)).map(|pair| *pair[0].0);
    stop.or_else(|| ks.last().map(|(k, _)| **k))
}

#[cfg(test)]
mod tests {
    use super::super::contender::Contender;
    use super::*;

    fn cell(fold: usize, k: usize, validation: f64, prequential: Option<f64>, test: Vec<f32>) -> CellRecord {
        CellRecord {
            data: "set".into(),
            fold,
            contender: Contender::Obmm,
            k,
            tuned: None,
            train_rows: 90,
            validation: Some(validation),
            prequential,
            test,
            log_jacobian: 0.0,
            start_seconds: 0.0,
            learn_seconds: 0.0,
            guarded: 0,
            marginals: None,
        }
    }

    fn rows(level: f32) -> Vec<f32> {
        (0..40).map(|i| level + 0.01 * (i as f32 * 1.7).sin()).collect()
    }

    #[test]
    fn each_rule_looks_at_its_own_score() {
        let mut cells = Vec::new();
        for fold in 0..2 {
            cells.push(cell(fold, 2, -3.0, Some(-1.0), rows(-2.0)));
            cells.push(cell(fold, 3, -1.0 - 4.0 * fold as f64, Some(-4.0), rows(-1.0)));
            cells.push(cell(fold, 4, -2.0, Some(-1.5), rows(-1.5)));
        }
        let cells: Vec<&CellRecord> = cells.iter().collect();
        assert_eq!(choose_k(&cells, SelectRule::Validation), Some(4));
        assert_eq!(choose_k(&cells, SelectRule::Evidence), Some(2));
        assert_eq!(choose_k(&cells, SelectRule::Paper), Some(3));
        assert_eq!(choose_k(&cells[..1], SelectRule::Paper), Some(2));
        assert_eq!(choose_k(&[], SelectRule::Paper), None);
    }

    #[test]
    fn without_evidence_the_validation_rows_decide() {
        let cells = [cell(0, 2, -3.0, None, rows(0.0)), cell(0, 3, -2.0, None, rows(0.0))];
        let cells: Vec<&CellRecord> = cells.iter().collect();
        assert_eq!(choose_k(&cells, SelectRule::Evidence), Some(3));
    }

    #[test]
    fn pairs_are_rows_or_folds_that_both_sides_have() {
        let ours = [cell(1, 2, 0.0, None, vec![1.0, 2.0]), cell(0, 2, 0.0, None, vec![5.0, 6.0])];
        let theirs = [cell(0, 2, 0.0, None, vec![4.0, 7.0]), cell(2, 2, 0.0, None, vec![0.0, 0.0])];
        let (ours, theirs): (Vec<_>, Vec<_>) = (ours.iter().collect(), theirs.iter().collect());
        assert_eq!(paired_differences(&ours, &theirs, Pairs::Rows), [1.0, -1.0]);
        assert_eq!(paired_differences(&ours, &theirs, Pairs::Folds), [0.0]);
    }
}
