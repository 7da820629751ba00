//! The figures of one learner on one data set, over its folds.

use serde::Serialize;

use crate::data::Units;
use crate::experiment::{CellRecord, Folds};
use crate::stats::{self, median};

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
    /// Standard error of `mean` over the rows.
    pub standard_error: Option<f64>,
    /// Standard error of the folds' means, if there are several folds.
    pub fold_error: Option<f64>,
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
    /// How often numerical safeguards triggered.
    pub guarded: u64,
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
    pub(super) fn new(folds: &Folds, units: Units) -> Option<Self> {
        let shift = |cell: &CellRecord| shift(cell, units);
        let rows: Vec<f64> = folds.values().flat_map(|cell| shown_rows(cell, units)).collect();
        let fold_means: Vec<f64> =
            folds.values().filter_map(|cell| mean(&shown_rows(cell, units).collect::<Vec<_>>())).collect();
        let each = |part: fn(&CellRecord) -> f64| -> Vec<f64> {
            folds.values().map(|cell| part(cell)).filter(|x| x.is_finite()).collect()
        };
        let shifted = |part: fn(&CellRecord) -> Option<f64>| {
            mean(&folds.values().filter_map(|cell| Some(part(cell)? + shift(cell))).collect::<Vec<_>>())
        };
        Some(Score {
            folds: folds.len(),
            rows: rows.len(),
            mean: mean(&rows)?,
            standard_error: standard_error(&rows),
            fold_error: standard_error(&fold_means),
            validation: shifted(|cell| cell.validation),
            prequential: shifted(|cell| cell.prequential),
            tuned: median(&folds.values().filter_map(|cell| cell.tuned).collect::<Vec<_>>()),
            start_seconds: Spread::of(&each(|cell| cell.start_seconds))?,
            learn_seconds: Spread::of(&each(|cell| cell.learn_seconds))?,
            guarded: folds.values().map(|cell| cell.guarded).sum(),
        })
    }
}

impl Spread {
    fn of(values: &[f64]) -> Option<Self> {
        Some(Spread { mean: mean(values)?, median: median(values)? })
    }
}

/// What to add to a raw log-likelihood for these units.
pub(super) fn shift(cell: &CellRecord, units: Units) -> f64 {
    match units {
        Units::Raw => 0.0,
        Units::Zscore => cell.log_jacobian,
    }
}

fn shown_rows(cell: &CellRecord, units: Units) -> impl Iterator<Item = f64> + '_ {
    let shift = shift(cell, units);
    cell.test.iter().map(move |score| f64::from(*score) + shift)
}

/// The mean; `None` if it is not finite, as for a learner that diverged.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    stats::mean(values).filter(|mean| mean.is_finite())
}

fn standard_error(values: &[f64]) -> Option<f64> {
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
