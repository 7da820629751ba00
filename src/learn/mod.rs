//! Learning a mixture: online (oBMM, oEM) or in batches (EM), and the start that all of them share.

mod em;
mod init;
mod kmeans;
mod obmm;
mod oem;
mod online;
mod online_fit;
pub mod projection;
mod summary;

pub use em::{EmFit, EmSettings, expectation_maximisation, fit_em};
pub use init::{RELATIVE_FLOOR, Start, default_init_rows, fit_start};
pub use obmm::{Moments, ObmmSettings, prior_around, prior_strength};
pub use oem::OemSettings;
pub use online_fit::{CandidateState, FitSettings, FitState, OnlineFit, Prequential};
pub use summary::{ColumnFault, ColumnSummary, find_column_faults};

use serde::{Deserialize, Serialize};

use crate::dist::{GaussianMixture, Posterior};

/// A setting out of range, or data that cannot be learned from.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
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
    /// More components than rows.
    #[error("{k} components cannot be learned from {rows} rows: give more rows or a smaller K")]
    TooFewRows {
        /// Components asked for.
        k: usize,
        /// Rows there are.
        rows: u64,
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

    /// The mixture as estimated now.
    fn estimate(&self) -> GaussianMixture;

    /// All there is to know to go on later.
    fn state(&self) -> LearnerState;

    /// What had to be guarded so far.
    fn health(&self) -> &Health;
}

/// Which online algorithm, with its settings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// Online Bayesian Moment Matching.
    Obmm(ObmmSettings),
    /// Online EM.
    Oem(OemSettings),
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
    },
}

impl LearnerState {
    /// The mixture as estimated.
    pub fn estimate(&self) -> GaussianMixture {
        match self {
            LearnerState::Bayes { posterior, .. } => posterior.point_estimate(),
            LearnerState::Point { mixture, .. } => mixture.clone(),
        }
    }

    /// How many components.
    pub fn k(&self) -> usize {
        match self {
            LearnerState::Bayes { posterior, .. } => posterior.k(),
            LearnerState::Point { mixture, .. } => mixture.k(),
        }
    }

    /// Numbers in a row.
    pub fn dim(&self) -> usize {
        match self {
            LearnerState::Bayes { posterior, .. } => posterior.dim(),
            LearnerState::Point { mixture, .. } => mixture.dim(),
        }
    }

    /// Whether start and present have one shape.
    pub(crate) fn is_consistent(&self) -> bool {
        let shapes = match self {
            LearnerState::Bayes { prior, posterior } => {
                ((prior.k(), prior.dim()), (posterior.k(), posterior.dim()))
            }
            LearnerState::Point { start, mixture, .. } => {
                ((start.k(), start.dim()), (mixture.k(), mixture.dim()))
            }
        };
        shapes.0 == shapes.1
    }
}

impl Algorithm {
    /// Refuses settings out of range.
    pub fn check(&self) -> Result<(), LearnError> {
        match self {
            Algorithm::Obmm(settings) => settings.check(),
            Algorithm::Oem(settings) => settings.check(),
        }
    }

    /// What a learner of this kind knows before its first row.
    pub fn begin(&self, start: &Start) -> LearnerState {
        match self {
            Algorithm::Obmm(_) => {
                let prior = prior_around(&start.mixture);
                LearnerState::Bayes { posterior: prior.clone(), prior }
            }
            Algorithm::Oem(_) => LearnerState::Point {
                start: start.mixture.clone(),
                start_rows: start.rows,
                mixture: start.mixture.clone(),
                rows: 0,
            },
        }
    }

    /// A learner that goes on from `state`. `floor` is the least variance of each column given the columns
    /// before it.
    pub fn learner(
        &self,
        state: LearnerState,
        floor: Vec<f64>,
        health: Health,
    ) -> Result<Box<dyn OnlineLearner>, LearnError> {
        self.check()?;
        if !state.is_consistent() || floor.len() != state.dim() {
            return Err(LearnError::State("its parts have different shapes".into()));
        }
        match (self, state) {
            (Algorithm::Obmm(settings), LearnerState::Bayes { prior, posterior }) => {
                Ok(settings.learner(prior, &posterior, floor, health))
            }
            (Algorithm::Oem(settings), LearnerState::Point { start, start_rows, mixture, rows }) => {
                Ok(settings.learner(start, start_rows, &mixture, rows, floor, health))
            }
            _ => Err(LearnError::State("it was made by another algorithm".into())),
        }
    }
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
}
