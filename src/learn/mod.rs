//! Learning a mixture: online (oBMM, oEM) or in batches (EM), and the start that all of them share.

mod assignment;
mod candidate;
mod choice;
mod columns;
mod em;
mod findings;
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
mod size;
mod start;
mod state;
mod structure;

pub use choice::{Choice, RatedK, TryNext};
pub use columns::{ColumnFault, find_column_faults};
pub use em::{EmFit, EmSettings, expectation_maximisation, fit_em, fit_em_from_kmeans, fit_em_learning_k};
pub use findings::{
    Finding, NamedShift, find_discrete_columns, find_numbering, judge_row_count, name_column_faults,
};
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
pub use shards::{CommonGround, ShardFindings, WarmUp};
pub(crate) use size::MOST_MODEL_BYTES;
pub use size::check_shards;
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
use crate::remedy::Remedy;
use crate::text::count;

/// A setting out of range, or data that cannot be learned from. [`LearnError::remedies`] says what can be done.
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
        "{} cannot be learned from {}",
        count(*k as u64, "component"),
        count(*rows, "row")
    )]
    TooFewRows {
        /// Components asked for.
        k: usize,
        /// Rows there are.
        rows: u64,
    },
    /// The first of several shards ends before the start can be fitted.
    #[error("the first shard has {rows} rows, and the start needs {wanted}")]
    ShortFirstShard {
        /// Rows there are.
        rows: u64,
        /// Rows needed.
        wanted: u64,
    },
    /// More columns than any machine has memory for.
    #[error(
        "{columns} columns would take about {gigabytes:.0} GB of memory, since full covariances grow with the square of \
         the columns"
    )]
    TooManyColumns {
        /// Columns of the data.
        columns: usize,
        /// Memory that they would take.
        gigabytes: f64,
    },
    /// More shards than a model file can hold.
    #[error(
        "{shards} shards of {} over {} would take about {gigabytes:.0} GB, and a model file of more than 2 GB cannot be \
         read",
        count(*components as u64, "component"),
        count(*columns as u64, "column")
    )]
    TooManyShards {
        /// Shards asked for.
        shards: usize,
        /// Components of each.
        components: usize,
        /// Columns of the data.
        columns: usize,
        /// Size of their file.
        gigabytes: f64,
    },
    /// More kept rows than a model file can hold.
    #[error(
        "{rows} kept rows of {} would take about {gigabytes:.0} GB in the model file, and one of more than 2 GB cannot be \
         read",
        count(*columns as u64, "column")
    )]
    TooManyKeptRows {
        /// Rows to keep.
        rows: usize,
        /// Columns of the data.
        columns: usize,
        /// Size of their file.
        gigabytes: f64,
    },
    /// The caller asked to stop.
    #[error("it was stopped before it was finished")]
    Stopped,
    /// A saved state that does not belong to these settings.
    #[error("the saved state does not fit: {0}")]
    State(String),
}

impl LearnError {
    /// What can be done about it.
    pub fn remedies(&self) -> Vec<Remedy> {
        match self {
            LearnError::TooFewRows { .. } => vec![Remedy::GiveMoreRows, Remedy::FewerComponents],
            LearnError::ShortFirstShard { .. } => vec![Remedy::FewerShards, Remedy::FewerStartRows],
            LearnError::TooManyColumns { .. } => vec![Remedy::ChooseColumns],
            LearnError::TooManyShards { .. } => vec![Remedy::FewerShards],
            LearnError::TooManyKeptRows { .. } => vec![Remedy::KeepFewerRows],
            _ => Vec::new(),
        }
    }
}

/// A learner that sees each row once.
pub trait OnlineLearner: std::fmt::Debug + Send + Sync {
    /// Learns rows, row after row in `rows`, and adds the log-density that each got beforehand to `score`; not of those so
    /// far out that nothing could be learned from them.
    fn observe_block(&mut self, rows: &[f64], score: &mut Prequential);

    /// Learns consecutive parts of a stream as [`observe_block`](Self::observe_block) does. Returns the sum of all scores
    /// after each part.
    fn observe_parts(&mut self, parts: &[&[f64]], score: &mut Prequential) -> Vec<f64> {
        let learn = |rows: &&[f64]| {
            self.observe_block(rows, score);
            score.log_likelihood
        };
        parts.iter().map(learn).collect()
    }

    /// Learns one row. Returns the log-density that the learner gave it beforehand, or `None` if nothing could be learned
    /// from it.
    fn observe(&mut self, row: &[f64]) -> Option<f64> {
        let mut score = Prequential::default();
        self.observe_block(row, &mut score);
        score.mean()
    }

    /// Rows that each shard has learned, for a learner that has shards.
    fn shard_rows(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Counts rows with a log-density below this from now on.
    fn count_below(&mut self, _log_density: f64) {}

    /// Such rows since the learner was made.
    fn low_rows(&self) -> u64 {
        0
    }

    /// The mixture as estimated now.
    fn estimate(&self) -> GaussianMixture;

    /// All there is to know to go on later.
    fn state(&self) -> LearnerState;

    /// The state that a revision starts from: without what only resuming needs, where that is much.
    fn state_to_revise(&self) -> LearnerState {
        self.state()
    }

    /// What had to be guarded so far.
    fn health(&self) -> Health;
}
