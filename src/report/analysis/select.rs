//! Chooses the number of components from records.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::repeats::Repeats;
use crate::experiment::CellRecord;
use crate::stats::{ColumnSummary, Elbow, ScoredK, mean, signed_rank, standard_error, weighted_summary};

/// How the number of components is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectRule {
    /// In each fold, the best mean log-likelihood of the fold's validation rows, which are part of its training rows.
    #[default]
    Validation,
    /// In each fold, the best mean prequential log-likelihood: the density of training rows just before they were
    /// learned. For a learner without such a score (batch EM), the validation rows decide.
    Evidence,
    /// The paper's rule, which uses the test rows: the first K that the next one does not significantly improve on, the
    /// same K for all folds.
    Paper,
}

/// What the tests between two learners pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pairs {
    /// The log-likelihoods of each test row, over all folds.
    #[default]
    Rows,
    /// The mean log-likelihoods of each fold.
    Folds,
}

/// The significance level of all tests.
pub const SIGNIFICANCE: f64 = 0.05;

/// The number of components chosen in each fold for one contender on one data set, given its cells of all K and folds.
/// Folds without a score are left out. Ties go to the smaller K.
///
/// [`SelectRule::Validation`] and [`SelectRule::Evidence`] use the cells of one fold alone: the validation rows of a fold
/// are test rows of other folds, so a choice over several folds would use test rows.
pub fn choose_ks(cells: &[&CellRecord], rule: SelectRule, repeats: &Repeats) -> BTreeMap<usize, usize> {
    let by_k = cells_by_k(cells);
    let of_folds: BTreeMap<usize, usize> = cells.iter().map(|cell| (cell.fold, cell.k)).collect();
    if of_folds.len() == cells.len() {
        // A single K in each fold leaves no choice.
        return of_folds;
    }
    if let (SelectRule::Paper, Some(k)) = (rule, first_without_improvement(&by_k, repeats)) {
        return by_k[&k].iter().map(|cell| (cell.fold, k)).collect();
    }
    let folds: BTreeSet<usize> = cells.iter().map(|cell| cell.fold).collect();
    let choose = |fold: usize| {
        let of_fold = || by_k.values().flatten().copied().filter(move |cell| cell.fold == fold);
        match rule {
            SelectRule::Evidence => {
                best(of_fold(), |cell| cell.prequential).or_else(|| best(of_fold(), |cell| cell.validation))
            }
            SelectRule::Validation | SelectRule::Paper => best(of_fold(), |cell| cell.validation),
        }
    };
    folds.into_iter().filter_map(|fold| Some((fold, choose(fold)?))).collect()
}

/// With fewer folds, the standard error of a difference is too noisy.
const MIN_FOLDS: usize = 5;

/// The elbow over K, for one contender on one data set: of the score that K is chosen by, averaged over the folds that
/// every K has. Standard errors are over these folds, paired, after averaging over seeds.
pub fn elbow_over_k(cells: &[&CellRecord], rule: SelectRule, repeats: &Repeats) -> Option<Elbow> {
    let by_k = cells_by_k(cells);
    let score = |cell: &CellRecord| match rule {
        SelectRule::Validation => cell.validation,
        SelectRule::Evidence => cell.prequential.or(cell.validation),
        SelectRule::Paper => cell.mean_score(),
    };
    let by_fold = |cells: &Vec<&CellRecord>| -> BTreeMap<usize, f64> {
        cells.iter().filter_map(|cell| Some((cell.fold, score(cell)?))).collect()
    };
    let scores: Vec<(usize, BTreeMap<usize, f64>)> =
        by_k.iter().map(|(k, cells)| (*k, by_fold(cells))).collect();
    let (_, first) = scores.first()?;
    let common: Vec<usize> =
        first.keys().copied().filter(|fold| scores.iter().all(|(_, of)| of.contains_key(fold))).collect();
    let values =
        |of: &BTreeMap<usize, f64>| repeats.average_folds(common.iter().map(|fold| (*fold, of[fold])));
    let scores: Vec<(usize, Vec<f64>)> = scores.iter().map(|(k, of)| (*k, values(of))).collect();
    let means = scores.iter().map(|(_, values)| mean(values)).collect::<Option<Vec<f64>>>()?;
    let best = (0..means.len()).fold(0, |best, i| if means[i] > means[best] { i } else { best });
    let rate = |(i, (k, values)): (usize, &(usize, Vec<f64>))| {
        let differences: Vec<f64> = values.iter().zip(&scores[best].1).map(|(own, top)| own - top).collect();
        let standard_error = standard_error(&differences).filter(|_| differences.len() >= MIN_FOLDS);
        ScoredK { k: *k, score: means[i], standard_error }
    };
    Elbow::find(&scores.iter().enumerate().map(rate).collect::<Vec<_>>())
}

/// The K that most folds chose. Ties go to the smaller K.
pub fn commonest_k(chosen: &BTreeMap<usize, usize>) -> Option<usize> {
    let mut folds_of: BTreeMap<usize, usize> = BTreeMap::new();
    chosen.values().for_each(|k| *folds_of.entry(*k).or_default() += 1);
    folds_of.into_iter().reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(k, _)| k)
}

/// Paired differences, with weights if they are those of rows with weights.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Differences {
    /// The differences.
    pub values: Vec<f64>,
    /// The weight of each.
    pub weights: Option<Vec<f64>>,
}

impl Differences {
    /// Their number, mean and spread.
    pub fn summary(&self) -> ColumnSummary {
        match &self.weights {
            Some(weights) => weighted_summary(self.values.iter().copied(), weights),
            None => self.values.iter().copied().collect(),
        }
    }
}

/// Paired differences of the test log-likelihoods of two sets of cells, `ours − theirs`, fold by fold in order. Folds
/// that only one side has are left out. Differences of the same row, or of the same fold number, with several seeds are
/// averaged: the seeds repeat the same rows, so they are no independent pairs.
pub fn paired_differences(
    ours: &[&CellRecord],
    theirs: &[&CellRecord],
    pairs: Pairs,
    repeats: &Repeats,
) -> Differences {
    let theirs: BTreeMap<usize, &CellRecord> = theirs.iter().map(|cell| (cell.fold, *cell)).collect();
    let ours: BTreeMap<usize, &CellRecord> = ours.iter().map(|cell| (cell.fold, *cell)).collect();
    let (mut of_rows, mut of_folds, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for (fold, our) in ours {
        let Some(their) = theirs.get(&fold).filter(|their| their.test.len() == our.test.len()) else {
            continue;
        };
        let rows = our.test.iter().zip(&their.test).map(|(a, b)| f64::from(*a) - f64::from(*b));
        match pairs {
            Pairs::Rows => {
                of_rows.push((fold, rows.collect()));
                weights.extend(our.weights.clone().map(|weights| (fold, weights)));
            }
            Pairs::Folds => of_folds.extend(our.mean_over_rows(rows).map(|mean| (fold, mean))),
        }
    }
    match pairs {
        // The rows of a set have weights in all folds or in none.
        Pairs::Rows => Differences {
            values: repeats.average_rows(of_rows),
            weights: (!weights.is_empty()).then(|| repeats.average_rows(weights)),
        },
        Pairs::Folds => Differences { values: repeats.average_folds(of_folds.into_iter()), weights: None },
    }
}

type CellsByK<'a> = BTreeMap<usize, Vec<&'a CellRecord>>;

fn cells_by_k<'a>(cells: &[&'a CellRecord]) -> CellsByK<'a> {
    let mut by_k = CellsByK::new();
    cells.iter().for_each(|cell| by_k.entry(cell.k).or_default().push(cell));
    // Results must not depend on the order in which folds finish.
    by_k.values_mut().for_each(|cells| cells.sort_by_key(|cell| cell.fold));
    by_k
}

/// The K with the best score among the cells of one fold, which are in the order of K.
fn best<'a>(
    cells: impl Iterator<Item = &'a CellRecord>,
    score: impl Fn(&CellRecord) -> Option<f64>,
) -> Option<usize> {
    let scored = cells.filter_map(|cell| Some((cell.k, score(cell)?)));
    scored.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(k, _)| k)
}

fn first_without_improvement(by_k: &CellsByK, repeats: &Repeats) -> Option<usize> {
    let ks: Vec<(&usize, &Vec<&CellRecord>)> = by_k.iter().collect();
    let improves = |pair: &[(&usize, &Vec<&CellRecord>)]| {
        let differences = paired_differences(pair[1].1, pair[0].1, Pairs::Rows, repeats);
        signed_rank(&differences.values).is_some_and(|test| test.favours_positive(SIGNIFICANCE))
    };
    let stop = ks.windows(2).find(|pair| !improves(pair)).map(|pair| *pair[0].0);
    stop.or_else(|| ks.last().map(|(k, _)| **k))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Contender;
    use crate::stats::Beyond;

    fn cell(fold: usize, k: usize, validation: f64, prequential: Option<f64>, test: Vec<f32>) -> CellRecord {
        let empty = CellRecord::empty("set", Contender::Obmm, k, fold);
        CellRecord { validation: Some(validation), prequential, test, ..empty }
    }

    fn rows(level: f32) -> Vec<f32> {
        (0..40).map(|i| level + 0.01 * (i as f32 * 1.7).sin()).collect()
    }

    fn chosen(cells: &[CellRecord], rule: SelectRule) -> Vec<(usize, usize)> {
        choose_ks(&cells.iter().collect::<Vec<_>>(), rule, &Repeats::default()).into_iter().collect()
    }

    #[test]
    fn each_rule_uses_its_own_score() {
        let mut cells = Vec::new();
        for fold in 0..2 {
            cells.push(cell(fold, 2, -3.0, Some(-1.0), rows(-2.0)));
            cells.push(cell(fold, 3, -1.0, Some(-4.0), rows(-1.0)));
            cells.push(cell(fold, 4, -2.0, Some(-1.5), rows(-1.5)));
        }
        assert_eq!(chosen(&cells, SelectRule::Validation), [(0, 3), (1, 3)]);
        assert_eq!(chosen(&cells, SelectRule::Evidence), [(0, 2), (1, 2)]);
        assert_eq!(chosen(&cells, SelectRule::Paper), [(0, 3), (1, 3)]);
        assert_eq!(chosen(&cells[..1], SelectRule::Paper), [(0, 2)]);
        assert_eq!(chosen(&[], SelectRule::Paper), []);
    }

    /// The validation rows of one fold are test rows of the others.
    #[test]
    fn the_scores_of_other_folds_do_not_matter() {
        let of = |other: f64| {
            let own = [cell(0, 2, -3.0, Some(-1.0), rows(0.0)), cell(0, 3, -2.0, Some(-2.0), rows(0.0))];
            let other = [cell(1, 2, other, Some(other), rows(0.0)), cell(1, 3, 0.0, Some(0.0), rows(0.0))];
            [own, other].concat()
        };
        for (rule, own) in [(SelectRule::Validation, 3), (SelectRule::Evidence, 2)] {
            assert_eq!(chosen(&of(-100.0), rule), [(0, own), (1, 3)]);
            assert_eq!(chosen(&of(100.0), rule), [(0, own), (1, 2)]);
        }
    }

    #[test]
    fn without_evidence_the_validation_rows_decide() {
        let cells = [cell(0, 2, -3.0, None, rows(0.0)), cell(0, 3, -2.0, None, rows(0.0))];
        assert_eq!(chosen(&cells, SelectRule::Evidence), [(0, 3)]);
    }

    #[test]
    fn a_fold_without_scores_has_no_choice_unless_there_is_one_k() {
        let mut cells = [cell(0, 2, -3.0, None, rows(0.0)), cell(0, 3, -2.0, None, rows(0.0))];
        cells.iter_mut().for_each(|cell| cell.validation = None);
        assert_eq!(chosen(&cells, SelectRule::Validation), []);
        assert_eq!(chosen(&cells[..1], SelectRule::Validation), [(0, 2)]);
    }

    #[test]
    fn the_elbow_is_that_of_the_score_that_k_is_chosen_by() {
        // Validation scores level off at K = 3, prequential ones rise to the largest K.
        let mut cells = Vec::new();
        for fold in 0..2 {
            for (k, validation, prequential) in
                [(2, -9.0, -9.0), (3, -5.0, -6.0), (4, -4.99, -5.5), (5, -4.98, -5.0)]
            {
                let noise = 0.001 * fold as f64;
                cells.push(cell(fold, k, validation + noise, Some(prequential + noise), rows(-1.0)));
            }
        }
        let elbow = |cells: &[CellRecord], rule| {
            elbow_over_k(&cells.iter().collect::<Vec<_>>(), rule, &Repeats::default())
                .map(|elbow| (elbow.k, elbow.beyond))
        };
        assert_eq!(elbow(&cells, SelectRule::Validation), Some((3, Beyond::Little)));
        assert_eq!(elbow(&cells, SelectRule::Evidence), Some((3, Beyond::Rises)));
        assert_eq!(elbow(&cells, SelectRule::Paper), Some((2, Beyond::Nothing)));
        // Folds that some K lacks do not count.
        cells.push(cell(2, 2, 100.0, None, rows(0.0)));
        assert_eq!(elbow(&cells, SelectRule::Validation), Some((3, Beyond::Little)));
        assert_eq!((elbow(&cells[..1], SelectRule::Validation), elbow(&[], SelectRule::Paper)), (None, None));
    }

    #[test]
    fn the_commonest_k_is_the_smaller_of_equals() {
        let of = |ks: &[usize]| commonest_k(&ks.iter().copied().enumerate().collect());
        assert_eq!([of(&[]), of(&[5, 3, 5]), of(&[7, 2, 7, 2])], [None, Some(5), Some(2)]);
    }

    #[test]
    fn pairs_are_rows_or_folds_that_both_sides_have() {
        let ours = [cell(1, 2, 0.0, None, vec![1.0, 2.0]), cell(0, 2, 0.0, None, vec![5.0, 6.0])];
        let theirs = [cell(0, 2, 0.0, None, vec![4.0, 7.0]), cell(2, 2, 0.0, None, vec![0.0, 0.0])];
        let (ours, theirs): (Vec<_>, Vec<_>) = (ours.iter().collect(), theirs.iter().collect());
        assert_eq!(paired_differences(&ours, &theirs, Pairs::Rows, &Repeats::default()).values, [1.0, -1.0]);
        assert_eq!(paired_differences(&ours, &theirs, Pairs::Folds, &Repeats::default()).values, [0.0]);
    }
}
