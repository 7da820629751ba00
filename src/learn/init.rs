//! The start of every online learner: a mixture fitted to the first rows. The paper does not say how it starts,
//! and it decides everything.

use ndarray::ArrayView2;

use super::LearnError;
use super::em::{EmSettings, fit_em};
use super::summary::ColumnSummary;
use crate::dist::GaussianMixture;

/// Least variance of a column given the columns before it, in units of the column's variance: every learner's
/// guard against columns that are discrete, constant or functions of others.
pub const RELATIVE_FLOOR: f64 = 1e-6;

/// A mixture fitted to the first rows, from which every online learner begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// The fit.
    pub mixture: GaussianMixture,
    /// Least variance of each column given the columns before it.
    pub floor: Vec<f64>,
    /// Rows it was fitted to.
    pub rows: u64,
}

/// How many first rows the start is fitted to: `max(1000, 10·K·d)`.
pub fn default_init_rows(k: usize, dim: usize) -> usize {
    (10 * k * dim).max(1000)
}

/// k-means++ and batch EM with a strong ridge on the first rows, the best of several seeds: one unlucky start
/// costs more than anything that comes after it.
pub fn fit_start(rows: ArrayView2<f64>, k: usize, seed: u64) -> Result<Start, LearnError> {
    let settings = effort(rows.nrows() as f64 * k as f64 * (rows.ncols() as f64).powi(2));
    let fit = fit_em(rows, k, seed, &settings)?;
    let floor = ColumnSummary::of_rows(rows).iter().map(ColumnSummary::floor).collect();
    Ok(Start { mixture: fit.mixture, floor, rows: rows.nrows() as u64 })
}

/// How much trouble to take over the start, given the work of one EM iteration (rows · K · d²). In many dimensions
/// the start would otherwise cost more than the pass over millions of rows that follows it.
fn effort(work: f64) -> EmSettings {
    let share = (FULL_EFFORT_WORK / work).min(1.0);
    let between = |least: f64, most: f64| (least + share * (most - least)).round() as usize;
    EmSettings {
        iterations: between(25.0, 100.0),
        tolerance: 1e-4,
        ridge: 1e-3,
        restarts: between(5.0, 20.0),
        finalists: between(2.0, 5.0),
        kmeans_rounds: 10,
    }
}

/// Up to about 2500 rows, 5 components and 50 columns nothing is spared.
const FULL_EFFORT_WORK: f64 = 3e7;
