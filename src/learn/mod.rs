//! Learning mixtures: online (oBMM, oEM, oDMM) and by batch EM, from a common start.

mod batch_em;
pub(crate) mod kernel;
mod monitor;
mod pass;
mod rows;
pub(crate) mod rules;
mod shards;
mod structure;

pub use batch_em::{
    EmFit, EmSettings, WeightedRows, expectation_maximisation, fit_em, fit_em_from_kmeans, fit_em_learning_k,
};
pub use monitor::changes::{ChangeKind, ChangeWatch, DataChange, DataChanges};
pub use monitor::column_faults::{ColumnFault, find_column_faults};
pub use monitor::findings::{
    Finding, NamedShift, find_discrete_columns, find_numbering, find_odd_values, judge_row_count,
    name_column_faults,
};
pub use monitor::ranks::{RankTable, ScoreRanks};
pub use monitor::recognise::RowSample;
pub use monitor::seen::SeenRows;
pub use monitor::start_shift::ColumnShift;
pub use monitor::surprise::Surprise;
pub use monitor::today::Today;
pub use pass::blind::{BlindPrior, blind_start, blind_start_rows};
pub(crate) use pass::cost::MAX_MODEL_BYTES;
pub use pass::cost::check_shards;
pub use pass::counts::{Health, Prequential};
pub use pass::k_comparison::{KComparison, RatedK, TryNext};
pub use pass::online_fit::{Fitted, OnlineFit, Progress, check_enough_rows, fit};
pub(crate) use pass::ranking::ranks_by;
pub use pass::settings::{Components, FitSettings, RowWeights, StartKind};
pub(crate) use pass::start::variance_floor;
pub use pass::start::{RELATIVE_FLOOR, Start, default_start_rows, fit_start, start_minutes};
pub use pass::state::{CandidateState, Estimate, Finished, FitState, LearnerState, Structure};
pub use rows::Rows;
pub use rules::method::{Algorithm, Method};
pub use rules::obmm::{Moments, ObmmSettings};
pub use rules::oem::OemSettings;
pub use rules::prior::{prior_around, prior_strength, prior_with_means};
pub use shards::lineage::{Lineage, Numbered, Shard};
pub use shards::merge::{MergeReport, align, merge, permute};
pub use shards::odmm::{OdmmSettings, ShardedState};
pub(crate) use shards::warm_up::finish_merged;
pub use shards::warm_up::{CommonPrior, LearnedShard, WarmUp};
pub use structure::{
    ActiveRows, Effort, Identifiers, KeptRows, MergeMove, Move, PriorStrength, Reason, Revised,
    RevisionRecord, SplitMove,
};
#[cfg(feature = "cli")]
pub(crate) use structure::{SharedFinds, Stopwatch};

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
    /// A weight that no row can have.
    #[error(
        "row {row} has the weight {weight}, which must be a finite number of rows: 0 or above, and at most 1e10"
    )]
    Weight {
        /// Which row, from 1.
        row: u64,
        /// Its weight.
        weight: f64,
    },
    /// Another number of weights than of rows.
    #[error("there are {weights} weights for {rows} rows")]
    WeightCount {
        /// How many weights.
        weights: usize,
        /// How many rows.
        rows: usize,
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
    /// A half-life for shards, whose rows have no common order.
    #[error(
        "shards cannot have a half-life: the rows of different shards have no common order, so none is older"
    )]
    ShardsForget,
    /// A half-life that a few heavy rows exceed.
    #[error(
        "the half-life of {half_life} rows counts a row of weight w as w rows, and the rows weigh {weight:.0} on average \
         (by weight), so that fewer than {least} rows would count: set it to {} or more, or divide the weights by their mean",
        (*least as f64 * weight * std::f64::consts::LN_2).ceil()
    )]
    ShortHalfLife {
        /// The half-life.
        half_life: u64,
        /// The mean weight of the first rows, averaged by weight.
        weight: f64,
        /// Rows that have to count.
        least: u64,
    },
    /// A setting that a blind start has no use for.
    #[error("a blind start cannot have {what}")]
    BlindStart {
        /// What was set.
        what: &'static str,
    },
    /// A setting that is defined for full covariances only.
    #[error("{what} is for full covariances, and these are {covariance}")]
    Covariance {
        /// What was set.
        what: &'static str,
        /// Which covariances.
        covariance: &'static str,
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

/// Takes the log-densities of rows before they are learned, in the order of the rows, and their weights if they have any.
pub trait ScoreSink {
    /// Adds the log-densities of consecutive rows.
    fn add(&mut self, log_densities: &[f64], weights: Option<&[f64]>);

    /// Adds those of rows with gaps, which are on another scale than those of whole rows.
    fn add_gapped(&mut self, log_densities: &[f64], weights: Option<&[f64]>) {
        self.add(log_densities, weights);
    }

    /// The sum of the log-densities so far.
    fn log_likelihood(&self) -> f64;
}

/// A learner that sees each row once.
pub trait OnlineLearner: std::fmt::Debug + Send + Sync {
    /// Learns rows. Adds each row's log-density under the model *before* the row is learned to `score`. Rows whose distance
    /// overflows are skipped and counted in [`Health`].
    fn observe_block(&mut self, rows: Rows, score: &mut dyn ScoreSink);

    /// Learns consecutive parts of a stream as [`observe_block`](Self::observe_block) does. Returns the cumulative score
    /// after each part.
    fn observe_parts(&mut self, parts: &[Rows], score: &mut dyn ScoreSink) -> Vec<f64> {
        let learn = |rows: &Rows| {
            self.observe_block(*rows, score);
            score.log_likelihood()
        };
        parts.iter().map(learn).collect()
    }

    /// Learns one row. Returns its log-density before it is learned, or `None` if it is skipped.
    fn observe(&mut self, row: &[f64]) -> Option<f64> {
        let mut score = Prequential::default();
        self.observe_block(Rows::new(row, row.len()), &mut score);
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

    /// The squared distances of the rows since the learner was made; `None` for a learner without an order of rows.
    fn surprise(&self) -> Option<Surprise> {
        None
    }

    /// For each component, the rows since the learner was made that most probably belong to it; at least one number for each, or
    /// none for a learner without an order of rows.
    fn assigned_rows(&self) -> &[f64] {
        &[]
    }

    /// From now on, a row has half its weight after this many further rows.
    fn set_half_life(&mut self, _rows: Option<u64>) {}

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
