//! The structure of a mixture: where its components are. It is found on the first rows, and revised while rows come in.
//!
//! Rows are kept in a reservoir. On them, EM with a weak prior improves the mixture; splits and joins of components lead
//! it out of local optima.

mod em;
mod history;
mod join;
mod kept;
mod kmeans;
mod maximise;
pub(crate) mod packed;
mod revision;
mod scaled;
mod schedule;
mod search;
mod seed;
mod split;
mod sweep;
#[cfg(test)]
mod tests;

pub(in crate::learn) use em::Em;
pub use history::{Identifiers, JoinMove, Move, Reason, RevisionRecord, SplitMove};
pub(in crate::learn) use kept::Arrival;
pub(crate) use kept::PACKED_FIELDS;
pub use kept::{KeptRows, default_kept_rows};
pub(in crate::learn) use maximise::Shape;
pub use revision::Revised;
pub(in crate::learn) use revision::{Reviser, rows_of, work_per_row};
pub(in crate::learn) use scaled::ScaledRows;
pub(in crate::learn) use schedule::BATCH;
pub use schedule::Schedule;
pub(in crate::learn) use search::{Found, Limits, Search};
pub(in crate::learn) use seed::kmeans_mixture;
use seed::seed_mixtures;

use std::sync::atomic::AtomicBool;

use crate::dist::GaussianMixture;
use crate::learn::prior_strength;
use crate::linalg::blocks::RowBlocks;
use serde::{Deserialize, Serialize};

/// How much work goes into finding and revising the structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// The start alone, as cheap as possible; no revisions.
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
                seeds: 1,
                rounds: 4,
                splits: 1,
                tries: 1,
                iterations: 10,
                first_iterations: 20,
                row_factor: 1,
            },
            Effort::Default => Limits {
                seeds: 4,
                rounds: 15,
                splits: 3,
                tries: 3,
                iterations: 20,
                first_iterations: 30,
                row_factor: 1,
            },
            Effort::Thorough => Limits {
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

/// Added to each variance, in units of the column's variance, while the structure is sought.
pub(in crate::learn) const RIDGE: f64 = 1e-5;

/// The seed that a few iterations of EM on a part of the rows make the most of.
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
    let em = Em { iterations, tolerance: 1e-3, shape: Shape::OwnVolume(strength), ridge };
    let levels = seeds.iter().map(|(start, _)| em.run(&part, start, f64::NEG_INFINITY, stop));
    let levels: Vec<f64> = levels.map(|improved| improved.mean_log_likelihood).collect();
    let best = (0..levels.len()).fold(0, |best, i| if levels[i] > levels[best] { i } else { best });
    seeds.swap_remove(best)
}

/// A mixture for rows of which nothing is known yet, in scaled units.
pub(in crate::learn) fn find_structure(
    rows: &ScaledRows,
    k: usize,
    seed: u64,
    limits: Limits,
    ridge: f64,
    stop: &AtomicBool,
) -> Found {
    let dim = rows.blocks.dim();
    let strength = prior_strength(dim);
    let seeds = seed_mixtures(&rows.blocks, k, seed, limits.seeds, strength + dim as f64, ridge);
    let (start, labels) = best_seed(&rows.blocks, seeds, limits, ridge, stop);
    let mut order: Vec<usize> = (0..rows.rows()).collect();
    order.sort_by_key(|&i| labels[i]);
    let rows = rows.blocks.reordered(&order);
    let search = Search { rows: &rows, strength, ridge, limits, seed, stop };
    let start = search.em(limits.first_iterations, 1e-4).run(&rows, &start, f64::NEG_INFINITY, stop);
    search.run(start, &mut Identifiers::new(k))
}
