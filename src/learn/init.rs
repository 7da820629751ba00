//! The start of every online learner: a mixture fitted to the first rows. The paper does not say how it starts,
//! and it decides everything.

use ndarray::ArrayView2;
use rayon::prelude::*;

use super::LearnError;
use super::columns::tame_summaries;
use super::em::{EmFit, EmSettings, ScaledRows};
use crate::dist::GaussianMixture;
use crate::stats::ColumnSummary;

/// Least variance of a column given the columns before it, in units of the column's variance: every learner's
/// guard against columns that are discrete, constant or functions of others.
pub const RELATIVE_FLOOR: f64 = 1e-6;

/// [`RELATIVE_FLOOR`] of a column in its own units.
pub(crate) fn variance_floor(column: &ColumnSummary) -> f64 {
    (RELATIVE_FLOOR * column.unit() * column.unit()).clamp(1e-300, 1e300)
}

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

/// How many first rows the start is fitted to: `max(5000, 10·K·d)`.
pub fn default_init_rows(k: usize, dim: usize) -> usize {
    (10 * k * dim).max(5000)
}

/// The first rows, ready for starts with any K.
pub struct StartRows {
    rows: ScaledRows,
    floor: Vec<f64>,
}

impl StartRows {
    /// Takes the first rows.
    pub fn new(rows: ArrayView2<f64>) -> Result<Self, LearnError> {
        let floor = tame_summaries(rows).iter().map(variance_floor).collect();
        Ok(StartRows { rows: ScaledRows::new(rows, 1)?, floor })
    }

    /// A mixture for them. Easy data must not pay for hard data: first some k-means++ starts are run on a part of the
    /// rows, and if the best of them agree, one goes on on all rows. If not, many starts are run on all rows, for one
    /// unlucky start costs more than anything that comes after it.
    pub fn fit(&self, k: usize, seed: u64) -> Start {
        let dim = self.floor.len();
        let affordable = |rows: &ScaledRows| (MOST_WORK / work(rows.rows(), k, dim)) as usize;
        let step = self.rows.rows() / (10 * k * dim).max(1000);
        let found = if step > 1 {
            let some = self.rows.thinned(step);
            agreement(&some, k, seed, affordable(&some))
        } else {
            agreement(&self.rows, k, seed, affordable(&self.rows))
        };
        let best = match found {
            Some(found) => self.rows.improve(&found.mixture, &settings(POLISH)),
            None => thorough_search(&self.rows, k, seed, affordable(&self.rows)),
        };
        let mixture = self.rows.unscale(best).mixture;
        Start { mixture, floor: self.floor.clone(), rows: self.rows.rows() as u64 }
    }
}

/// [`StartRows::fit`] with one K.
pub fn fit_start(rows: ArrayView2<f64>, k: usize, seed: u64) -> Result<Start, LearnError> {
    Ok(StartRows::new(rows)?.fit(k, seed))
}

/// Work of one iteration of EM.
fn work(rows: usize, k: usize, dim: usize) -> f64 {
    rows as f64 * k as f64 * (dim as f64).powi(2)
}

/// Minutes that a start takes one core, within a factor of three, where it takes long: then both searches make the
/// fewest iterations they can.
pub fn start_minutes(rows: usize, k: usize, dim: usize) -> f64 {
    work(rows, k, dim) / WORK_PER_MINUTE
}

/// Work of one iteration of which a minute has time for as many as a start makes.
const WORK_PER_MINUTE: f64 = 5e9;

/// Work that each of the two searches may take. In many dimensions the start would otherwise cost more
/// than the pass over millions of rows that follows it.
const MOST_WORK: f64 = 1e10;

/// Iterations on all rows after an agreement: the pass itself does the rest.
const POLISH: usize = 5;

fn settings(iterations: usize) -> EmSettings {
    EmSettings { iterations, tolerance: 1e-5, ridge: 1e-5, restarts: 1, kmeans_rounds: 10 }
}

/// Starts of the quick look at first; the next times as many again as there were.
const FIRST_STARTS: usize = 2;
/// Starts of the quick look at most.
const MOST_STARTS: usize = 16;
/// Mean log-likelihoods within this are the same.
const SAME: f64 = 0.01;

/// The best of some starts, if half of them came to the same.
fn agreement(rows: &ScaledRows, k: usize, seed: u64, affordable: usize) -> Option<EmFit> {
    let settings = EmSettings { tolerance: 1e-3, ridge: 1e-3, ..settings(30) };
    let most = (affordable / settings.iterations).clamp(FIRST_STARTS, MOST_STARTS);
    let mut fits: Vec<EmFit> = Vec::new();
    let mut starts = FIRST_STARTS;
    while starts <= most {
        let start = |i| rows.improve(&rows.kmeans_mixture(k, &settings, seed, i), &settings);
        fits.extend((fits.len()..starts).into_par_iter().map(start).collect::<Vec<_>>());
        sort(&mut fits);
        let agreeing = (starts / 2).max(2);
        if fits[agreeing - 1].mean_log_likelihood > fits[0].mean_log_likelihood - SAME {
            return fits.into_iter().next();
        }
        starts *= 2;
    }
    None
}

/// The best of many starts. All get a few iterations; the better half goes on with twice as many, and so on.
fn thorough_search(rows: &ScaledRows, k: usize, seed: u64, affordable: usize) -> EmFit {
    let starts = (affordable / 12).clamp(4, 12);
    let rounds = starts.ilog2() as usize;
    let few = (affordable / (starts * rounds)).clamp(3, 10);
    let begin = |i| rows.improve(&rows.kmeans_mixture(k, &settings(few), seed, i), &settings(few));
    let mut fits: Vec<EmFit> = (0..starts).into_par_iter().map(begin).collect();
    sort(&mut fits);
    for round in 1..rounds {
        fits.truncate(starts >> round);
        fits = fits.par_iter().map(|fit| rows.improve(&fit.mixture, &settings(few << round))).collect();
        sort(&mut fits);
    }
    rows.improve(&fits[0].mixture, &settings((affordable / 4).clamp(5, 100)))
}

/// The best first. The sort is stable: of equals the earlier start comes first, whatever the number of threads.
fn sort(fits: &mut [EmFit]) {
    fits.sort_by(|a, b| b.mean_log_likelihood.total_cmp(&a.mean_log_likelihood));
}
