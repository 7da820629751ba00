//! The start: a mixture fitted to the first rows, from which every online learner begins. The paper does not say how it
//! starts, but the result depends on it more than on anything else.

use std::sync::atomic::AtomicBool;

use crate::dist::{GaussianMixture, Posterior};
use crate::learn::structure::{Effort, Finder, PriorStrength, RIDGE, Size};
use crate::learn::{LearnError, WeightedRows, prior_strength, prior_with_means};
use crate::linalg::{CovarianceType, MAX_EXACT};
use crate::stats::ColumnSummary;

/// Least variance of a column given the columns before it, relative to the column's variance. All learners use it against
/// columns that are discrete, constant or functions of others.
pub const RELATIVE_FLOOR: f64 = 1e-6;

/// [`RELATIVE_FLOOR`] of a column in its own units.
pub(crate) fn variance_floor(column: &ColumnSummary) -> f64 {
    (RELATIVE_FLOOR * column.unit() * column.unit()).clamp(1e-300, 1e300)
}

/// A mixture fitted to the first rows, from which every online learner begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// The mixture.
    pub mixture: GaussianMixture,
    /// The prior that was learned with it, if there is one.
    pub prior: Option<Posterior>,
    /// The weight that says as much as one independent row: one without weights, and about the usual weight where that is larger.
    pub unit: f64,
    /// Least variance of each column given the columns before it.
    pub floor: Vec<f64>,
    /// Rows it was fitted to.
    pub rows: u64,
    /// Their total weight: their number if they have no weights.
    pub weight: f64,
}

impl Start {
    /// The prior that Bayesian learners begin from.
    pub(in crate::learn) fn prior(&self) -> Posterior {
        let around = || prior_with_means(&self.mixture, prior_strength(self.mixture.dim()) / 2.0, self.unit);
        self.prior.clone().unwrap_or_else(around)
    }
}

/// The default number of rows that the start is fitted to: `max(5000, 5·K·d)`. Rows of many columns are fewer, as many as are
/// kept exactly, because the prior of the covariances makes up for them.
pub fn default_start_rows(k: usize, dim: usize) -> usize {
    start_rows_of(CovarianceType::Full, k, dim)
}

/// The default for these covariances: `max(5000, 5·d, 50·K)` if they are tied, and `max(5000, 50·K)` if they are diagonal.
pub(in crate::learn) fn start_rows_of(kind: CovarianceType, k: usize, dim: usize) -> usize {
    let wanted = match kind {
        CovarianceType::Full => (5 * k * dim).min((MAX_EXACT / dim.max(1)).max(40 * k)),
        CovarianceType::Tied => (5 * dim).max(50 * k),
        CovarianceType::Diag | CovarianceType::Spherical => 50 * k,
    };
    wanted.max(5000)
}

/// Fits a mixture of `k` components to the first rows. Weights must be above 0.
pub fn fit_start<'a>(rows: impl Into<WeightedRows<'a>>, k: usize, seed: u64) -> Result<Start, LearnError> {
    let never = AtomicBool::new(false);
    let weighted = rows.into();
    let rows = weighted.scaled(1, CovarianceType::Full)?;
    let (size, limits, prior) = (Size::Given(k), Effort::Default.limits(), PriorStrength::Auto);
    let (found, _) = Finder {
        kind: CovarianceType::Full,
        size,
        first_k: None,
        prior,
        limits,
        ridge: RIDGE,
        seed,
        stop: &never,
    }
    .find(&rows.blocks);
    let floor = rows.columns().iter().map(variance_floor).collect();
    let count = rows.rows();
    let weight = weighted.weights.map_or(count as f64, |weights| weights.iter().sum());
    let (mixture, unit) = (rows.unscale(&found), rows.blocks.prior_unit());
    Ok(Start { mixture, prior: None, unit, floor, rows: count as u64, weight })
}

/// Estimates the minutes that a start takes on one core, within a factor of three, if it takes long. Then both searches
/// make as few iterations as they can.
pub fn start_minutes(rows: usize, kind: CovarianceType, k: usize, dim: usize) -> f64 {
    rows as f64 * kind.work(k, dim) / WORK_PER_MINUTE
}

/// Work of one iteration such that all iterations of a start take a minute.
const WORK_PER_MINUTE: f64 = 5e9;
