//! The figures of one learner on one data set, over its folds.

use std::collections::BTreeMap;

use serde::Serialize;

use super::repeats::Repeats;
use crate::experiment::{CellRecord, Folds, TestSummary, Units};
use crate::stats::{self, ColumnSummary, median, weighted_summary};

/// The figures of one learner with one K on one data set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KScore {
    /// Components.
    pub k: usize,
    /// The figures.
    #[serde(flatten)]
    pub score: Score,
}

/// The figures of one learner on one data set, over its folds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Score {
    /// Recorded folds.
    pub folds: usize,
    /// Test rows of all these folds.
    pub rows: usize,
    /// Mean log-likelihood of all test rows.
    pub mean: f64,
    /// Standard error of `mean` over the rows; with several seeds, its mean over the seeds.
    pub standard_error: Option<f64>,
    /// Standard error of the folds' means, if there are several folds, after averaging over seeds.
    pub fold_error: Option<f64>,
    /// Seeds, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeds: Option<usize>,
    /// Standard error of the seeds' means, if there are several seeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed_error: Option<f64>,
    /// Mean over the folds of the log-likelihood of validation rows.
    pub validation: Option<f64>,
    /// Mean over the folds of the prequential log-likelihood.
    pub prequential: Option<f64>,
    /// Median over the folds of the tuned α or β.
    pub tuned: Option<f64>,
    /// Seconds of the start.
    pub start_seconds: Spread,
    /// Seconds of learning, start included.
    pub learn_seconds: Spread,
    /// Median seconds of oDMM with each shard on a machine of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_seconds: Option<f64>,
    /// How often numerical safeguards triggered.
    pub guarded: u64,
}

/// The figures of one cell, in the units that are shown.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::report) struct CellScore {
    pub k: usize,
    /// As in the records.
    pub fold: usize,
    pub seed: u64,
    pub fold_in_seed: usize,
    pub rows: usize,
    pub mean: Option<f64>,
    pub validation: Option<f64>,
    pub prequential: Option<f64>,
    pub tuned: Option<f64>,
    pub start_seconds: Option<f64>,
    pub learn_seconds: Option<f64>,
    pub cpu_seconds: Option<f64>,
    pub peak_memory: Option<u64>,
    pub failure: Option<String>,
}

impl CellScore {
    /// `seed` is that of the first fold.
    pub fn new(cell: &CellRecord, units: Units, seed: u64, repeats: &Repeats) -> Self {
        let has_scores = cell.failure.is_none();
        CellScore {
            k: cell.k,
            fold: cell.fold,
            seed: seed.wrapping_add(repeats.seed_number(cell.fold) as u64),
            fold_in_seed: repeats.fold_in_seed(cell.fold),
            rows: tested(&[cell], units).count as usize,
            mean: mean_of(&tested(&[cell], units)),
            validation: cell.validation.map(|score| score + shift(cell, units, ScoredRows::Validation)),
            prequential: cell.prequential.map(|score| score + shift(cell, units, ScoredRows::Prequential)),
            tuned: cell.tuned,
            start_seconds: Some(cell.start_seconds).filter(|_| has_scores && cell.measured.is_none()),
            learn_seconds: Some(cell.learn_seconds).filter(|_| has_scores),
            cpu_seconds: cell.measured.and_then(|measured| measured.cpu_seconds),
            peak_memory: cell.measured.and_then(|measured| measured.peak_memory),
            failure: cell.failure.as_ref().map(ToString::to_string),
        }
    }
}

/// Mean and median over the folds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub median: f64,
}

impl Score {
    pub(in crate::report) fn new(folds: &Folds, units: Units, repeats: &Repeats) -> Option<Self> {
        let fold_mean =
            |(fold, cell): (&usize, &&CellRecord)| Some((*fold, mean_of(&tested(&[cell], units))?));
        let fold_means = repeats.average_folds(folds.iter().filter_map(fold_mean));
        let rows = tested(&folds.values().copied().collect::<Vec<_>>(), units);
        let mut of_seeds: BTreeMap<usize, Vec<&CellRecord>> = BTreeMap::new();
        for (fold, cell) in folds {
            of_seeds.entry(repeats.seed_number(*fold)).or_default().push(cell);
        }
        let of_seeds: Vec<ColumnSummary> = of_seeds.values().map(|cells| tested(cells, units)).collect();
        let seed_means: Vec<f64> = of_seeds.iter().filter_map(mean_of).collect();
        let row_errors: Vec<f64> = of_seeds
            .iter()
            .filter_map(ColumnSummary::standard_error)
            .filter(|error| error.is_finite())
            .collect();
        let each = |part: fn(&CellRecord) -> f64| -> Vec<f64> {
            folds.values().map(|cell| part(cell)).filter(|x| x.is_finite()).collect()
        };
        let shifted = |part: fn(&CellRecord) -> Option<f64>, rows: ScoredRows| {
            let score = |cell: &&CellRecord| Some(part(cell)? + shift(cell, units, rows));
            mean(&folds.values().filter_map(score).collect::<Vec<_>>())
        };
        Some(Score {
            folds: folds.len(),
            rows: rows.count as usize,
            mean: mean_of(&rows)?,
            standard_error: mean(&row_errors),
            fold_error: standard_error(&fold_means),
            seeds: repeats.has_several_seeds().then_some(seed_means.len()),
            seed_error: standard_error(&seed_means),
            validation: shifted(|cell| cell.validation, ScoredRows::Validation),
            prequential: shifted(|cell| cell.prequential, ScoredRows::Prequential),
            tuned: median(&folds.values().filter_map(|cell| cell.tuned).collect::<Vec<_>>()),
            start_seconds: Spread::of(&each(|cell| cell.start_seconds))?,
            learn_seconds: Spread::of(&each(|cell| cell.learn_seconds))?,
            machine_seconds: median(
                &folds.values().filter_map(|cell| cell.machine_seconds).collect::<Vec<_>>(),
            ),
            guarded: folds.values().map(|cell| cell.guarded).sum(),
        })
    }
}

impl Spread {
    fn of(values: &[f64]) -> Option<Self> {
        Some(Spread { mean: mean(values)?, median: median(values)? })
    }
}

/// The rows of a mean log-likelihood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::report) enum ScoredRows {
    Test,
    Validation,
    Prequential,
}

/// What to add to a mean log-likelihood in the data's own units for these units.
pub(in crate::report) fn shift(cell: &CellRecord, units: Units, rows: ScoredRows) -> f64 {
    match (units, &cell.gap_jacobians, rows) {
        (Units::Raw, ..) => 0.0,
        (Units::Zscore, None, _) => cell.log_jacobian,
        (Units::Zscore, Some(gaps), ScoredRows::Validation) => gaps.validation,
        (Units::Zscore, Some(gaps), ScoredRows::Prequential) => gaps.prequential,
        (Units::Zscore, Some(gaps), ScoredRows::Test) => {
            let shifts = gaps.test.iter().map(|shift| f64::from(*shift));
            cell.mean_over_rows(shifts).filter(|mean| mean.is_finite()).unwrap_or(cell.log_jacobian)
        }
    }
}

/// The figures of the test rows of some cells in these units.
fn tested(cells: &[&CellRecord], units: Units) -> ColumnSummary {
    let of_cell = |cell: &&CellRecord| match cell.summary {
        Some(TestSummary { rows, .. }) => {
            ColumnSummary { mean: rows.mean + shift(cell, units, ScoredRows::Test), ..rows }
        }
        None => shown_rows(cell, units).collect(),
    };
    let weights: Vec<f64> =
        cells.iter().filter_map(|cell| cell.weights.as_deref()).flatten().copied().collect();
    match weights.is_empty() {
        true => cells.iter().map(of_cell).fold(ColumnSummary::default(), ColumnSummary::merged),
        false => weighted_summary(cells.iter().flat_map(|cell| shown_rows(cell, units)), &weights),
    }
}

fn mean_of(rows: &ColumnSummary) -> Option<f64> {
    Some(rows.mean).filter(|mean| rows.count > 0 && mean.is_finite())
}

fn shown_rows(cell: &CellRecord, units: Units) -> impl Iterator<Item = f64> + Clone + '_ {
    let gaps = cell.gap_jacobians.as_ref().filter(|_| units == Units::Zscore);
    let shift = shift(cell, units, ScoredRows::Test);
    let of_row =
        move |row: usize| gaps.and_then(|gaps| gaps.test.get(row)).map_or(shift, |own| f64::from(*own));
    cell.test.iter().enumerate().map(move |(row, score)| f64::from(*score) + of_row(row))
}

/// The mean; `None` if it is not finite, as for a learner that diverged.
pub(in crate::report) fn mean(values: &[f64]) -> Option<f64> {
    stats::mean(values).filter(|mean| mean.is_finite())
}

/// The standard error of the mean; `None` if it is not finite.
pub(in crate::report) fn standard_error(values: &[f64]) -> Option<f64> {
    stats::standard_error(values).filter(|error| error.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_not_finite_are_not_shown() {
        assert_eq!((mean(&[]), mean(&[1.0, f64::NEG_INFINITY])), (None, None));
        assert_eq!(standard_error(&[1.0, f64::NEG_INFINITY]), None);
        assert_eq!(standard_error(&[1.0, 3.0]), Some(1.0));
    }
}
