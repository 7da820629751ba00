//! Learning mixtures: online (oBMM, oEM, oDMM) and by batch EM, from a common start.

mod assignment;
mod candidate;
mod choice;
mod columns;
mod em;
mod fingerprint;
mod learning;
mod lineage;
mod merge;
mod method;
mod obmm;
mod odmm;
mod oem;
mod online;
mod online_fit;
mod order;
mod prior;
pub mod projection;
mod recognise;
mod settings;
mod shards;
mod start;
mod state;
mod structure;

pub use choice::{Choice, RatedK};
pub use columns::{ColumnFault, find_column_faults};
pub use em::{EmFit, EmSettings, expectation_maximisation, fit_em, fit_em_from_kmeans, fit_em_learning_k};
pub use fingerprint::Fingerprint;
pub(crate) use fingerprint::mix_bits;
pub use lineage::{Lineage, Numbered, Shard};
pub use merge::{MergeReport, align, merge, permute};
pub use method::{Algorithm, Method};
pub use obmm::{Moments, ObmmSettings};
pub use odmm::{OdmmSettings, ShardState, ShardedState};
pub use oem::OemSettings;
pub use online_fit::{OnlineFit, check_enough_rows, fit};
pub use order::ColumnShift;
pub use prior::{prior_around, prior_strength};
pub use recognise::{RowSample, RowSampler, RowWatch, are_repeated};
pub use settings::{Components, FitSettings};
pub(crate) use shards::close_merged;
pub use shards::{CommonPrior, LearnedShard, WarmUp};
pub(crate) use start::variance_floor;
pub use start::{RELATIVE_FLOOR, Start, default_start_rows, fit_start, start_minutes};
pub(crate) use state::mixture_of;
pub use state::{CandidateState, Estimate, Finished, FitState, Health, LearnerState, Prequential, Structure};
pub use structure::{
    Effort, Identifiers, JoinMove, KeptRows, Move, Reason, Revised, RevisionRecord, SplitMove,
    default_kept_rows,
};
pub(crate) use structure::{PACKED_FIELDS, packed};

use crate::dist::GaussianMixture;
use crate::text::count;

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
    #[error(
        "{} cannot be learned from {}: give more rows or a smaller K",
        count(*k as u64, "component"),
        count(*rows, "row")
    )]
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
    /// It was asked to stop.
    #[error("it was stopped before it came to its end")]
    Stopped,
    /// A saved state that does not belong to these settings.
    #[error("the saved state does not fit: {0}")]
    State(String),
}

/// A learner that sees each row once.
pub trait OnlineLearner: std::fmt::Debug + Send + Sync {
    /// Learns rows, which follow one another in `rows`. Adds each row's log-density under the model *before* the row is
    /// learned to `score`. Rows whose distance overflows are skipped and counted in [`Health`].
    fn observe_block(&mut self, rows: &[f64], score: &mut Prequential);

    /// Learns consecutive parts of a stream as [`observe_block`](Self::observe_block) does. Returns the cumulative score
    /// after each part.
    fn observe_parts(&mut self, parts: &[&[f64]], score: &mut Prequential) -> Vec<f64> {
        let learn = |rows: &&[f64]| {
            self.observe_block(rows, score);
            score.log_likelihood
        };
        parts.iter().map(learn).collect()
    }

    /// Learns one row. Returns its log-density before it is learned, or `None` if it is skipped.
    fn observe(&mut self, row: &[f64]) -> Option<f64> {
        let mut score = Prequential::default();
        self.observe_block(row, &mut score);
        score.mean()
    }

    /// Rows that each shard has learned; empty for a learner without shards.
    fn shard_rows(&self) -> Vec<u64> {
        Vec::new()
    }

    /// From now on, counts rows with a lower log-density than this.
    fn count_below(&mut self, _log_density: f64) {}

    /// The rows counted since the learner was made.
    fn low_rows(&self) -> u64 {
        0
    }

    /// The mixture as learned so far.
    fn estimate(&self) -> GaussianMixture;

    /// The complete state, to resume from.
    fn state(&self) -> LearnerState;

    /// The state that a revision starts from. It leaves out what only resuming needs, where that is large.
    fn state_to_revise(&self) -> LearnerState {
        self.state()
    }

    /// Safeguards that triggered so far.
    fn health(&self) -> Health;
}
