//! The structure of a mixture: the number and the positions of its components. The start finds it from the first rows, and
//! revisions improve it during the pass.
//!
//! Revisions run on a reservoir of rows. EM with a learned prior improves the mixture, and moves (splits, merges and swaps of
//! components) leave local optima.

mod activity;
mod constrained;
mod constrained_posterior;
mod covariance_prior;
mod directions;
mod e_step;
mod em;
mod fading;
mod fill;
mod find;
mod history;
mod kmeans;
mod log_odds;
mod look;
mod m_step;
mod merge;
mod misfit;
mod noise;
pub(in crate::learn) mod packed;
mod packed_table;
mod posterior;
mod price;
mod refill;
mod reservoir;
mod revision;
mod scaled;
mod schedule;
mod search;
mod search_state;
mod seed;
#[cfg(feature = "cli")]
mod shared;
mod split;
#[cfg(test)]
mod tests;

pub use activity::ActiveRows;
pub(crate) use activity::Activity;
pub use covariance_prior::PriorStrength;
use directions::searched_columns;
pub(in crate::learn) use em::{Em, Price};
pub(in crate::learn) use fill::filled;
pub(in crate::learn) use find::Finder;
pub use history::{Identifiers, MergeMove, Move, Reason, RevisionRecord, SplitMove};
pub(in crate::learn) use price::with_judged_price;
pub use reservoir::{KeptRows, default_kept_rows};
pub use revision::Revised;
pub(in crate::learn) use revision::{Reviser, Revising, Task, rows_of, search_rows};
pub(in crate::learn) use scaled::ScaledRows;
pub(in crate::learn) use schedule::BATCH;
pub use schedule::Schedule;
pub(in crate::learn) use seed::kmeans_mixture;
#[cfg(feature = "cli")]
pub(crate) use shared::{SharedFinds, Stopwatch};

use crate::linalg::CovarianceType;
use crate::linalg::blocks::RowBlocks;
use serde::{Deserialize, Serialize};

/// The amount of work for finding and revising the structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
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
    /// it may take longer, because searches on filled rows are less reliable. So it may with fewer than two rows for each column: there
    /// held-out rows must decide on K, because a search sees few directions.
    pub(in crate::learn) fn closing_limits(
        self,
        rows: usize,
        (kind, k, dim): (CovarianceType, usize, usize),
        gaps: bool,
    ) -> Limits {
        const WORK: f64 = 4e7;
        const MAX_WORK_OF_FEW_ROWS: f64 = 4e9;
        let most = if gaps { 50_000 } else { 20_000 };
        let work = |columns: usize| rows as f64 * kind.work(k, columns);
        let has_few_rows = rows < 2 * dim && work(dim.min(directions::MAX_COLUMNS)) <= WORK;
        let most_work = if has_few_rows { MAX_WORK_OF_FEW_ROWS } else { WORK };
        let cheap = rows <= most && work(dim) <= most_work;
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
        /// What components cost.
        price: PriceOfK,
    },
}

/// What decides on the number of components.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::learn) enum PriceOfK {
    /// The evidence if there are many columns, and BIC otherwise: with few columns and clusters that are not Gaussian, BIC
    /// finds more of them, and with many columns it finds too few.
    ByColumns,
    /// The price of BIC, times a factor.
    Bic(f64),
}

impl PriceOfK {
    /// With more columns the evidence decides.
    pub const MAX_COLUMNS_OF_BIC: usize = 20;
}

impl Size {
    /// The price of a component for these rows: that of its own free numbers. With many columns and full covariances, BIC counts the
    /// parameters of a search alone: the prior of covariances leaves few of the others free.
    ///
    /// A given K has a price, too, where some rows are heavy, so that no component takes a few of them.
    pub fn price(self, rows: &RowBlocks, kind: CovarianceType) -> Price {
        let (dim, count) = (searched_columns(rows) as f64, rows.effective_rows().max(2.0));
        let bic = |factor: f64| {
            let free = kind.of_component(if kind.is_full() { dim } else { rows.dim() as f64 });
            Price::Component(factor * 0.5 * free * count.ln() / count)
        };
        match self {
            Size::Given(_) if self.unit(rows) == 1.0 => Price::NONE,
            Size::Given(_) => bic(1.0),
            Size::Learned { price: PriceOfK::Bic(factor), .. } => bic(factor),
            Size::Learned { .. } if kind.is_full() && dim > PriceOfK::MAX_COLUMNS_OF_BIC as f64 => {
                Price::Evidence
            }
            Size::Learned { .. } => bic(1.0),
        }
    }

    /// How many times as much as one row the rows count on average, if they have weights of their own. With a given K, a row that
    /// is repeated a few times counts as often.
    pub fn unit(self, rows: &RowBlocks) -> f64 {
        match self {
            Size::Given(_) => rows.prior_unit(),
            Size::Learned { .. } => rows.unit(),
        }
    }

    /// Whether there is only one component, so that there is nothing to revise.
    pub fn is_one(self) -> bool {
        matches!(self, Size::Given(1) | Size::Learned { most: 1, .. })
    }
}

/// The limits of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
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
