//! Learning a mixture: online (oBMM, oEM) or in batches (EM), and the start that all of them share.

mod assignment;
mod em;
mod fingerprint;
mod init;
mod kmeans;
mod merge;
mod method;
mod obmm;
mod odmm;
mod oem;
mod online;
mod online_fit;
mod order;
pub mod projection;
mod shares;
mod summary;

pub use em::{EmFit, EmSettings, expectation_maximisation, fit_em};
pub use fingerprint::Fingerprint;
pub(crate) use init::start_minutes;
pub use init::{RELATIVE_FLOOR, Start, StartRows, default_init_rows, fit_start};
pub use merge::{MergeReport, align, merge, permute};
pub use method::{Algorithm, Method};
pub use obmm::{Moments, ObmmSettings, prior_around, prior_strength};
pub use odmm::{OdmmSettings, ShardState, ShardedState};
pub use oem::OemSettings;
pub use online_fit::{CandidateState, FitSettings, FitState, OnlineFit, Prequential, fit};
pub use order::ColumnShift;
pub use shares::{CommonGround, ShardFindings, WarmUp};
pub use summary::{ColumnFault, ColumnSummary, find_column_faults};

use serde::{Deserialize, Serialize};

use crate::dist::{GaussianMixture, Posterior};
use crate::linalg::{Factor, WorkingCopy};

/// A setting out of range, or data that cannot be learned from.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LearnError {
    /// A setting out of range.
    #[error("{name} must be {must}, not {value}")]
    Setting {
        /// Which one.
        name: &'static str,
        /// What it has to satisfy.
        must: &'static str,
        /// What it was.
        value: f64,
    },
    /// Rows of another width.
    #[error("the rows have {found} columns, and the pass began with {expected}")]
    Columns {
        /// Columns of the rows.
        found: usize,
        /// Columns of the pass.
        expected: usize,
    },
    /// Infinity, or not a number.
    #[error("row {row} has a number that is not finite in column {column} (from 0): leave such rows out")]
    NotFinite {
        /// Which row of the pass, from 1.
        row: u64,
        /// Which column, from 0.
        column: usize,
    },
    /// More components than rows.
    #[error("{k} components cannot be learned from {rows} rows: give more rows or a smaller K")]
    TooFewRows {
        /// Components asked for.
        k: usize,
        /// Rows there are.
        rows: u64,
    },
    /// The first of several shares ends before the start can be made.
    #[error(
        "the first share of the data has {rows} rows, and the start wants {wanted}: deal the data to fewer shards, \
         or lower --init-rows"
    )]
    ShortFirstShare {
        /// Rows there are.
        rows: u64,
        /// Rows wanted.
        wanted: u64,
    },
    /// A saved state that does not belong to these settings.
    #[error("the saved state does not fit: {0}")]
    State(String),
}

/// A learner that sees each row once.
pub trait OnlineLearner: Send {
    /// Learns one row. Returns the log-density that the learner gave it beforehand, or `None` if the row was so
    /// far out that nothing could be learned from it.
    fn observe(&mut self, row: &[f64]) -> Option<f64>;

    /// Learns rows, row after row in `rows`, and adds the log-density that each got beforehand to `score`.
    fn observe_block(&mut self, rows: &[f64], score: &mut Prequential);

    /// Rows that each shard has learned, for a learner that has shards.
    fn shard_rows(&self) -> Vec<u64> {
        Vec::new()
    }

    /// The mixture as estimated now.
    fn estimate(&self) -> GaussianMixture;

    /// All there is to know to go on later.
    fn state(&self) -> LearnerState;

    /// What had to be guarded so far.
    fn health(&self) -> Health;
}

/// What a learner has learned, complete: going on from it gives the same bits as never having stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LearnerState {
    /// A posterior, and the prior it grew from.
    Bayes {
        /// Before the first row.
        prior: Posterior,
        /// Now.
        posterior: Posterior,
        /// The working copies of the components' matrices; without them, new ones are made.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        working: Vec<WorkingCopy>,
    },
    /// A point estimate, and the start it grew from.
    Point {
        /// Before the first row.
        start: GaussianMixture,
        /// Rows that the start was fitted to.
        start_rows: u64,
        /// Now.
        mixture: GaussianMixture,
        /// Rows learned since the start.
        rows: u64,
        /// See [`LearnerState::Bayes::working`](LearnerState::Bayes).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        working: Vec<WorkingCopy>,
    },
    /// Shards learned apart, and merged.
    Sharded(Box<ShardedState>),
}

impl LearnerState {
    /// The mixture as estimated.
    pub fn estimate(&self) -> GaussianMixture {
        match self {
            LearnerState::Point { mixture, .. } => mixture.clone(),
            LearnerState::Bayes { posterior, .. } => posterior.point_estimate(),
            LearnerState::Sharded(state) => state.posterior.point_estimate(),
        }
    }

    /// The posterior, where the learner has one.
    pub fn posterior(&self) -> Option<&Posterior> {
        match self {
            LearnerState::Bayes { posterior, .. } => Some(posterior),
            LearnerState::Sharded(state) => Some(&state.posterior),
            LearnerState::Point { .. } => None,
        }
    }

    /// How many components.
    pub fn k(&self) -> usize {
        self.shape().0
    }

    /// Numbers in a row.
    pub fn dim(&self) -> usize {
        self.shape().1
    }

    fn shape(&self) -> (usize, usize) {
        match self {
            LearnerState::Point { mixture, .. } => (mixture.k(), mixture.dim()),
            LearnerState::Bayes { posterior, .. } => (posterior.k(), posterior.dim()),
            LearnerState::Sharded(state) => (state.posterior.k(), state.posterior.dim()),
        }
    }

    /// Whether all its parts have one shape.
    pub(crate) fn is_consistent(&self) -> bool {
        let shape = self.shape();
        let fits = |posterior: &Posterior| (posterior.k(), posterior.dim()) == shape;
        match self {
            LearnerState::Point { start, .. } => (start.k(), start.dim()) == shape,
            LearnerState::Bayes { prior, .. } => fits(prior),
            LearnerState::Sharded(state) => {
                fits(&state.prior)
                    && fits(&state.common)
                    && state.shards.iter().all(|shard| fits(&shard.posterior))
            }
        }
    }

    /// Whether its working copies, where it has any, are those of its matrices.
    pub(crate) fn owns_its_working_copies(&self) -> bool {
        match self {
            LearnerState::Point { mixture, working, .. } => working_belongs(
                working,
                mixture.components().iter().map(|component| component.covariance().clone()),
            ),
            LearnerState::Bayes { posterior, working, .. } => {
                working_belongs(working, mean_matrices(posterior))
            }
            LearnerState::Sharded(state) => {
                working_belongs(&state.common_working, mean_matrices(&state.common))
                    && state
                        .shards
                        .iter()
                        .all(|shard| working_belongs(&shard.working, mean_matrices(&shard.posterior)))
            }
        }
    }
}

fn mean_matrices(posterior: &Posterior) -> impl ExactSizeIterator<Item = Factor> {
    posterior.components().iter().map(obmm::mean_matrix)
}

/// Whether these are working copies of those matrices, one each, or none at all.
fn working_belongs(working: &[WorkingCopy], matrices: impl ExactSizeIterator<Item = Factor>) -> bool {
    working.is_empty()
        || working.len() == matrices.len()
            && working.iter().zip(matrices).all(|(working, matrix)| working.belongs_to(&matrix))
}

/// What had to be guarded while learning. All zeros is the healthy case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Health {
    /// Rows so far from every component that their squared distance overflowed: not learned.
    pub rows_out_of_range: u64,
    /// Times a column's variance given the columns before it was held at the floor.
    pub pivots_raised: u64,
    /// Times the projection asked for fewer degrees of freedom than a Wishart has.
    pub nu_floored: u64,
    /// Times the paper's literal equations had no solution and the old value was kept.
    pub literal_steps_kept: u64,
    /// Components whose product over the shards was improper and had to be damped.
    pub components_damped: u64,
}

impl std::ops::Add for Health {
    type Output = Health;

    fn add(self, other: Health) -> Health {
        Health {
            rows_out_of_range: self.rows_out_of_range.saturating_add(other.rows_out_of_range),
            pivots_raised: self.pivots_raised.saturating_add(other.pivots_raised),
            nu_floored: self.nu_floored.saturating_add(other.nu_floored),
            literal_steps_kept: self.literal_steps_kept.saturating_add(other.literal_steps_kept),
            components_damped: self.components_damped.saturating_add(other.components_damped),
        }
    }
}
