//! Training, validation and test rows of a fold.

use std::ops::Range;

use ndarray::{Array2, ArrayView1, ArrayView2, Axis, s};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::plan::{Plan, PlannedSet, seed_for};
use super::record::GapJacobians;
use crate::learn::WeightedRows;
use crate::stats::{ColumnSummary, LogUnits, weighted_mean};

/// One in this many training rows is a validation row.
const ROWS_PER_VALIDATION_ROW: usize = 10;

/// The rows of one fold.
pub(super) struct FoldRows {
    /// Training rows in the order in which they are learned; the last of them are the validation rows.
    pub train: Array2<f64>,
    /// Test rows in file order.
    pub test: Array2<f64>,
    /// The weights of the training rows, if they have any.
    pub train_weights: Option<Vec<f64>>,
    /// The weights of the test rows, if they have any.
    pub test_weights: Option<Vec<f64>>,
    /// Training rows before the validation rows.
    pub fitting_rows: usize,
}

impl<'a> WeightedRows<'a> {
    /// The rows in this range.
    pub(super) fn part(self, range: Range<usize>) -> WeightedRows<'a> {
        let weights = self.weights.map(|weights| &weights[range.clone()]);
        WeightedRows { rows: self.rows.slice_move(s![range, ..]), weights }
    }

    /// The mean of a figure of each row.
    pub(super) fn mean_of(&self, figures: impl Iterator<Item = f64>) -> Option<f64> {
        match self.weights {
            _ if self.rows.is_empty() => None,
            None => Some(figures.sum::<f64>() / self.rows.nrows() as f64),
            Some(weights) => Some(weighted_mean(figures, weights)),
        }
    }
}

impl FoldRows {
    pub fn new(plan: &Plan, set: &PlannedSet, fold: usize) -> FoldRows {
        let (train, test) = indices(plan, set, fold);
        let weights_of =
            |places: &[usize]| set.weights.as_ref().map(|all| places.iter().map(|&i| all[i]).collect());
        let (test, test_weights) = match &set.test {
            Some(rows) => (rows.clone(), set.test_weights.clone()),
            None => (set.rows.select(Axis(0), &test), weights_of(&test)),
        };
        let (fitting_rows, train_weights) = (fitting_rows(train.len()), weights_of(&train));
        let train = set.rows.select(Axis(0), &train);
        FoldRows { train, test, train_weights, test_weights, fitting_rows }
    }

    /// All training rows.
    pub fn training(&self) -> WeightedRows<'_> {
        WeightedRows { rows: self.train.view(), weights: self.train_weights.as_deref() }
    }

    /// Training rows that are not validation rows.
    pub fn fitting(&self) -> WeightedRows<'_> {
        self.training().part(0..self.fitting_rows)
    }

    /// The validation rows.
    pub fn validation(&self) -> WeightedRows<'_> {
        self.training().part(self.fitting_rows..self.train.nrows())
    }

    /// The test rows.
    pub fn testing(&self) -> WeightedRows<'_> {
        WeightedRows { rows: self.test.view(), weights: self.test_weights.as_deref() }
    }

    /// The training rows' standard deviations.
    fn log_units(&self) -> LogUnits {
        let summary = |column: ArrayView1<f64>| match &self.train_weights {
            None => column.iter().copied().collect(),
            Some(weights) => weighted_spread(column, weights),
        };
        self.train.columns().into_iter().map(summary).collect()
    }

    /// `Σ ln sd` of the training rows' columns.
    pub fn log_jacobian(&self) -> f64 {
        self.log_units().of_all()
    }

    /// The second half of the training rows, whose prequential score is recorded.
    pub fn second_half(&self) -> WeightedRows<'_> {
        self.training().part(self.train.nrows() / 2..self.train.nrows())
    }

    /// The same over the observed columns of each row, if a value is missing.
    pub fn gap_jacobians(&self) -> Option<GapJacobians> {
        if !self.train.iter().chain(&self.test).any(|value| value.is_nan()) {
            return None;
        }
        let units = self.log_units();
        let of =
            |rows: ArrayView2<f64>| -> Vec<f64> { rows.outer_iter().map(|row| units.of_row(row)).collect() };
        let mean_of = |part: WeightedRows| part.mean_of(of(part.rows).into_iter()).unwrap_or_default();
        Some(GapJacobians {
            test: of(self.test.view()).into_iter().map(|shift| shift as f32).collect(),
            validation: mean_of(self.validation()),
            prequential: mean_of(self.second_half()),
        })
    }
}

/// Mean and spread of the values of a column that are not missing, of which each counts by its weight.
fn weighted_spread(column: ArrayView1<f64>, weights: &[f64]) -> ColumnSummary {
    let observed = || column.iter().zip(weights).filter(|(value, _)| !value.is_nan());
    let total: f64 = observed().map(|(_, weight)| weight).sum();
    if total == 0.0 {
        return ColumnSummary::default();
    }
    let mean = observed().map(|(value, weight)| value * weight).sum::<f64>() / total;
    let squares: f64 = observed().map(|(value, weight)| weight * (value - mean).powi(2)).sum();
    let count = observed().count() as u64;
    ColumnSummary { count, mean, squares: (squares / total * count as f64).min(f64::MAX) }
}

/// Training rows that are not validation rows.
pub(super) fn fitting_rows(train: usize) -> usize {
    train - train / ROWS_PER_VALIDATION_ROW
}

/// Training rows in the order of learning, and test rows in file order.
fn indices(plan: &Plan, set: &PlannedSet, fold: usize) -> (Vec<usize>, Vec<usize>) {
    let (seed, fold) = plan.split_of(fold);
    let (n, name) = (set.rows.nrows(), set.record.name_without_noise());
    let mut order = shuffled((0..n).collect(), seed, name, "folds");
    let test: Vec<usize> = match set.test {
        Some(_) => Vec::new(),
        None => order.drain(places(n, plan.folds, fold)).collect(),
    };
    let order = match plan.settings.file_order {
        true => sorted(order),
        false => shuffled(order, seed, name, &format!("order {fold}")),
    };
    (order, sorted(test))
}

/// The test rows of one fold of a set with `n` rows, in file order.
pub fn fold_rows(seed: u64, name: &str, n: usize, folds: usize, fold: usize) -> Vec<usize> {
    sorted(shuffled((0..n).collect(), seed, name, "folds")[places(n, folds, fold)].to_vec())
}

/// The places of a fold in the shuffled order.
fn places(n: usize, folds: usize, fold: usize) -> std::ops::Range<usize> {
    fold * n / folds..(fold + 1) * n / folds
}

fn shuffled(mut order: Vec<usize>, seed: u64, name: &str, purpose: &str) -> Vec<usize> {
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed_for(seed, name, purpose)));
    order
}

fn sorted(mut indices: Vec<usize>) -> Vec<usize> {
    indices.sort_unstable();
    indices
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::plan_of;
    use super::*;

    #[test]
    fn every_row_is_tested_once_and_learned_in_all_other_folds() {
        let plan = plan_of(103, 10);
        let mut tested = Vec::new();
        for fold in 0..10 {
            let (train, test) = indices(&plan, &plan.sets[0], fold);
            assert!(test.len() == 10 || test.len() == 11);
            assert!(test.is_sorted() && !train.is_sorted());
            assert_eq!(sorted([train, test.clone()].concat()), (0..103).collect::<Vec<_>>());
            tested.extend(test);
        }
        assert_eq!(sorted(tested), (0..103).collect::<Vec<_>>());
    }

    #[test]
    fn noise_does_not_change_the_folds() {
        let mut plan = plan_of(50, 5);
        let before = indices(&plan, &plan.sets[0], 2);
        plan.sets[0].record.data += super::super::record::DEQUANTIZED;
        assert_eq!(indices(&plan, &plan.sets[0], 2), before);
        let other = plan.clone();
        plan.seed += 1;
        assert_ne!(indices(&plan, &plan.sets[0], 2), before);
        // The second seed of one plan is the first of another.
        let repeated = Plan { seeds: 2, ..other };
        assert_eq!(indices(&repeated, &repeated.sets[0], 5 + 2), indices(&plan, &plan.sets[0], 2));
        let rows = fold_rows(plan.seed, plan.sets[0].record.name_without_noise(), 50, 5, 2);
        assert_eq!(rows, indices(&plan, &plan.sets[0], 2).1);
    }

    #[test]
    fn rows_can_stay_in_file_order() {
        let mut plan = plan_of(50, 5);
        let (_, test) = indices(&plan, &plan.sets[0], 2);
        plan.settings.file_order = true;
        let (train, same_test) = indices(&plan, &plan.sets[0], 2);
        assert!(train.is_sorted() && same_test == test);
    }

    #[test]
    fn the_last_tenth_of_the_training_rows_are_validation_rows() {
        let plan = plan_of(100, 10);
        let split = FoldRows::new(&plan, &plan.sets[0], 0);
        assert_eq!(
            (split.fitting().rows.nrows(), split.validation().rows.nrows(), split.test.nrows()),
            (81, 9, 10)
        );
    }
}
