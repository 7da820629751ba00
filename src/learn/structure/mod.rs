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
mod packed;
mod revision;
mod scaled;
mod schedule;
mod search;
mod seed;
mod split;
mod sweep;

pub(in crate::learn) use em::Em;
pub use history::{Identifiers, JoinMove, Move, Reason, RevisionRecord, SplitMove};
pub(in crate::learn) use kept::Arrival;
pub use kept::{KeptRows, default_kept_rows};
pub(in crate::learn) use maximise::Shape;
pub use revision::Revised;
pub(in crate::learn) use revision::{Reviser, rows_of};
pub(in crate::learn) use scaled::ScaledRows;
pub(in crate::learn) use schedule::BATCH;
pub use schedule::Schedule;
pub(in crate::learn) use search::{Found, Limits, Search};
pub(in crate::learn) use seed::kmeans_mixture;
use seed::seed_mixture;

use std::sync::atomic::AtomicBool;

use crate::learn::prior_strength;
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
            Effort::Fast => {
                Limits { rounds: 4, tries: 1, iterations: 10, first_iterations: 20, row_factor: 1 }
            }
            Effort::Default => {
                Limits { rounds: 15, tries: 3, iterations: 20, first_iterations: 30, row_factor: 1 }
            }
            Effort::Thorough => {
                Limits { rounds: 40, tries: 6, iterations: 40, first_iterations: 60, row_factor: 4 }
            }
        }
    }
}

/// Added to each variance, in units of the column's variance, while the structure is sought.
pub(in crate::learn) const RIDGE: f64 = 1e-5;

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
    let (start, labels) = seed_mixture(&rows.blocks, k, seed, strength + dim as f64, ridge);
    let mut order: Vec<usize> = (0..rows.rows()).collect();
    order.sort_by_key(|&i| labels[i]);
    let rows = rows.blocks.reordered(&order);
    let search = Search { rows: &rows, strength, ridge, limits, seed, stop };
    let start = search.em(limits.first_iterations, 1e-4).run(&rows, &start, f64::NEG_INFINITY, stop);
    search.run(start, &mut Identifiers::new(k))
}
