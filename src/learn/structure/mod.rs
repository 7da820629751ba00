//! The structure of a mixture: the number and the positions of its components. The start finds it from the first rows, and
//! revisions improve it during the pass.
//!
//! Revisions run on a reservoir of rows. EM with a weak prior improves the mixture, and moves (splits, merges and swaps of
//! components) leave local optima.

mod activity;
mod e_step;
mod em;
mod fading;
mod fill;
mod history;
mod kmeans;
mod log_odds;
mod m_step;
mod merge;
mod misfit;
mod noise;
pub(crate) mod packed;
mod price;
mod refill;
mod reservoir;
mod revision;
mod scaled;
mod schedule;
mod search;
mod search_state;
mod seed;
mod split;
#[cfg(test)]
mod tests;

pub use activity::ActiveRows;
pub(crate) use activity::Activity;
pub(in crate::learn) use em::{Em, Improved};
use fill::complete_rows;
pub(in crate::learn) use fill::filled;
pub use history::{Identifiers, MergeMove, Move, Reason, RevisionRecord, SplitMove};
pub(in crate::learn) use m_step::Shape;
pub(in crate::learn) use price::with_judged_price;
pub(crate) use reservoir::PACKED_FIELDS;
pub use reservoir::{KeptRows, default_kept_rows};
pub use revision::Revised;
pub(in crate::learn) use revision::{Reviser, Task, rows_of, search_rows, work_per_row};
pub(in crate::learn) use scaled::ScaledRows;
pub(in crate::learn) use schedule::BATCH;
pub use schedule::Schedule;
pub(in crate::learn) use search::Search;
pub(in crate::learn) use seed::kmeans_mixture;
use seed::seed_mixtures;

use std::sync::atomic::AtomicBool;

use crate::dist::GaussianMixture;
use crate::learn::batch_em::bic_price;
use crate::learn::prior_strength;
use crate::linalg::blocks::RowBlocks;
use serde::{Deserialize, Serialize};

/// The amount of work for finding and revising the structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effort {
    /// Only the start, as cheap as possible, without revisions.
    Fast,
    /// The start, and revisions with a few moves each.
    #[default]
    Default,
    /// More moves, and EM to closer convergence.
    Thorough,
}

impl Effort {
    pub(in crate::learn) fn limits(self) -> Limits {
        match self {
            Effort::Fast => Limits {
                restarts: 1,
                seeds: 1,
                rounds: 4,
                splits: 1,
                tries: 1,
                iterations: 10,
                first_iterations: 20,
                row_factor: 1,
            },
            Effort::Default => Limits {
                restarts: 1,
                seeds: 4,
                rounds: 15,
                splits: 3,
                tries: 3,
                iterations: 20,
                first_iterations: 30,
                row_factor: 1,
            },
            Effort::Thorough => Limits {
                restarts: 2,
                seeds: 10,
                rounds: 40,
                splits: 5,
                tries: 10,
                iterations: 40,
                first_iterations: 60,
                row_factor: 4,
            },
        }
    }
}

impl Effort {
    /// The limits of the last search of a stream, all of whose rows are in memory. It is thorough if that is cheap. With gaps
    /// it may take longer, because searches on filled rows are less reliable.
    pub(in crate::learn) fn closing_limits(self, rows: usize, k: usize, dim: usize, gaps: bool) -> Limits {
        const WORK: f64 = 4e7;
        let most = if gaps { 50_000 } else { 20_000 };
        let cheap = rows <= most && rows as f64 * work_per_row(k, dim) <= WORK;
        if self == Effort::Default && cheap { Effort::Thorough.limits() } else { self.limits() }
    }
}

/// The number of components of a mixture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::learn) enum Size {
    /// This number.
    Given(usize),
    /// Learned from the rows, within bounds.
    Learned {
        /// The smallest number.
        least: usize,
        /// The largest number.
        most: usize,
        /// The price of a component, as a fraction of BIC's.
        price: f64,
    },
}

impl Size {
    /// The factor of BIC's price of a component.
    pub fn price(self) -> f64 {
        match self {
            Size::Given(_) => 1.0,
            Size::Learned { price, .. } => price,
        }
    }

    /// Whether there is only one component, so that there is nothing to revise.
    pub fn is_one(self) -> bool {
        matches!(self, Size::Given(1) | Size::Learned { most: 1, .. })
    }
}

/// The limits of a search.
#[derive(Debug, Clone, Copy)]
pub(in crate::learn) struct Limits {
    /// The number of starts.
    pub restarts: u64,
    /// The number of seeds that each start is chosen from.
    pub seeds: usize,
    /// The largest number of rounds.
    pub rounds: usize,
    /// Splits that are combined with twice as many merges in a round.
    pub splits: usize,
    /// Moves tried in a round.
    pub tries: usize,
    /// Iterations of EM after a move.
    pub iterations: usize,
    /// Iterations of EM before the first move.
    pub first_iterations: usize,
    /// Rows of a search, as a multiple of the smallest number that it needs.
    pub row_factor: usize,
}

impl Limits {
    /// The smallest amount of work, for a mixture that is not shown.
    pub const PROVISIONAL: Limits = Limits {
        restarts: 1,
        seeds: 1,
        rounds: 0,
        splits: 0,
        tries: 0,
        iterations: 1,
        first_iterations: 1,
        row_factor: 1,
    };
}

/// Added to each variance during a search, in units of the column's variance.
pub(in crate::learn) const RIDGE: f64 = 1e-5;

/// The seed with the largest likelihood after a few iterations of EM on a part of the rows.
fn best_seed(
    rows: &RowBlocks,
    mut seeds: Vec<(GaussianMixture, Vec<usize>)>,
    limits: Limits,
    ridge: f64,
    stop: &AtomicBool,
) -> (GaussianMixture, Vec<usize>) {
    if seeds.len() == 1 {
        return seeds.remove(0);
    }
    let (k, dim) = (seeds[0].0.k(), rows.dim());
    let step = (rows.rows() / (4 * k * dim).max(2500)).max(1);
    let part = rows.thinned(step);
    let strength = prior_strength(dim);
    let iterations = (limits.first_iterations / 2).max(1);
    let shape = Shape::OwnVolume(strength);
    let em = Em { iterations, tolerance: 1e-3, shape, ridge, noise: None };
    let levels = seeds.iter().map(|(start, _)| em.run(&part, start, f64::NEG_INFINITY, stop));
    let levels: Vec<f64> = levels.map(|improved| improved.mean_log_likelihood).collect();
    let best = (0..levels.len()).fold(0, |best, i| if levels[i] > levels[best] { i } else { best });
    seeds.swap_remove(best)
}

/// Finds a mixture for rows without an earlier mixture, in scaled units.
pub(in crate::learn) fn find_structure(
    rows: &RowBlocks,
    size: Size,
    seed: u64,
    limits: Limits,
    ridge: f64,
    stop: &AtomicBool,
) -> GaussianMixture {
    if !rows.has_gaps() {
        return find_in_complete_rows(rows, size, seed, limits, ridge, stop);
    }
    let strength = prior_strength(rows.dim());
    let shape = Shape::OwnVolume(strength);
    let em = Em { iterations: limits.first_iterations, tolerance: 1e-4, shape, ridge, noise: None };
    let on_all = |mixture: &GaussianMixture| em.run(rows, mixture, f64::NEG_INFINITY, stop);
    let level = |found: &Improved| {
        let price = bic_price(&found.mixture, rows.effective_rows() as usize);
        found.mean_log_likelihood - size.price() * price
    };
    // The first one of equals is kept.
    let better = |a: Improved, b: Improved| if level(&b) > level(&a) { b } else { a };
    let found_from = |complete: &RowBlocks| {
        let first = on_all(&find_in_complete_rows(complete, size, seed, limits, ridge, stop));
        // The mixture that is found fills the gaps better.
        let complete = filled(rows, Some(&first.mixture), seed, stop);
        let search = Search { rows: &complete, strength, ridge, limits, size, noise: None, seed, stop };
        let start = search.em(limits.iterations, 1e-4);
        let start = start.run(&complete, &first.mixture, f64::NEG_INFINITY, stop);
        let k = start.mixture.k();
        let second = on_all(&search.run(start, &mut Identifiers::new(k)).mixture);
        better(first, second)
    };
    // One Gaussian blurs the structure of the missing values. Rows without gaps do not, but they are fewer.
    let found = found_from(&filled(rows, None, seed, stop));
    match complete_rows(rows, size) {
        Some(complete) => better(found, found_from(&complete)).mixture,
        None => found.mixture,
    }
}

/// [`find_structure`] for rows without gaps.
fn find_in_complete_rows(
    rows: &RowBlocks,
    size: Size,
    seed: u64,
    limits: Limits,
    ridge: f64,
    stop: &AtomicBool,
) -> GaussianMixture {
    let dim = rows.dim();
    let strength = prior_strength(dim);
    let seeds = |k: usize, count: usize| seed_mixtures(rows, k, seed, count, strength + dim as f64, ridge);
    let (start, labels) = match size {
        Size::Given(k) => best_seed(rows, seeds(k, limits.seeds), limits, ridge, stop),
        Size::Learned { least, most, .. } => {
            let (start, _) = best_seed(rows, seeds(least, limits.seeds), limits, ridge, stop);
            // Labels of more clusters keep similar rows together.
            let (_, labels) = seeds(most.min(ORDERING_CLUSTERS), 1).remove(0);
            (start, labels)
        }
    };
    let mut order: Vec<usize> = (0..rows.rows()).collect();
    order.sort_by_key(|&i| labels[i]);
    let rows = rows.reordered(&order);
    let search = Search { rows: &rows, strength, ridge, limits, size, noise: None, seed, stop };
    let start = search.em(limits.first_iterations, 1e-4).run(&rows, &start, f64::NEG_INFINITY, stop);
    let k = start.mixture.k();
    search.run(start, &mut Identifiers::new(k)).mixture
}

/// The number of clusters that order the rows while K is unknown.
const ORDERING_CLUSTERS: usize = 16;
