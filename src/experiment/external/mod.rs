//! Learners that are commands of their own. `docs/LEARNERS.md` describes the protocol.

mod density;
mod files;
mod folder;
mod launch;
mod learner;

pub use files::FoldFiles;
pub(super) use files::write_lines;
pub use folder::remove_abandoned_folder;
pub(super) use folder::remove_abandoned_folders;
pub use launch::{Launcher, Usage};
pub use learner::ExternalLearner;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use density::Integral;
use files::read_scores;
use folder::JobFolder;
use launch::Launch;
use learner::Placeholders;

use crate::learn::WeightedRows;

/// The version of the protocol between a comparison and a learner.
pub const PROTOCOL: u32 = 1;

/// Densities are integrated up to this number of columns.
const MAX_INTEGRATED: usize = 3;

/// What a comparison measures of a learner that is a command.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Measured {
    /// Seconds of processor time of learning from all training rows, over all threads and child processes.
    pub cpu_seconds: Option<f64>,
    /// The most memory that one process of the command had, in bytes.
    pub peak_memory: Option<u64>,
    /// Seconds of scoring the test rows; `None` if one command learns and scores.
    pub score_seconds: Option<f64>,
    /// The integral of the density, if it was checked, and its standard error.
    pub integral: Option<(f64, f64)>,
}

/// What a command was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Learning.
    Learning,
    /// Scoring.
    Scoring,
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(if *self == Step::Learning { "learning" } else { "scoring" })
    }
}

/// Why a cell of a command has no scores.
#[allow(missing_docs)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Failure {
    /// The command could not be started.
    #[error("cannot be started: {message}")]
    NotStarted { message: String },
    /// The command ended with another status than 0.
    #[error("{step} ended with {status}{}", if message.is_empty() { String::new() } else { format!(": {message}") })]
    Status { step: Step, status: String, message: String },
    /// The command took too long.
    #[error("{step} took more than {seconds} s")]
    TimedOut { step: Step, seconds: f64 },
    /// The file of scores is missing or not readable.
    #[error("the scores cannot be read: {message}")]
    NoScores { message: String },
    /// A line of the scores is not a finite number.
    #[error("line {line} of the scores is '{text}', which is not a finite number")]
    BadScore {
        /// The line, from 1.
        line: usize,
        text: String,
    },
    /// There is not one score for each row.
    #[error("{found} scores for {expected} rows")]
    Count { found: usize, expected: usize },
    /// What a learner wrote as its number of components is none.
    #[error("the number of components that it wrote is '{text}', which is not a whole number from 1")]
    ChosenK { text: String },
    /// The scores are not those of a density.
    #[error("the density integrates to {integral:.3} ± {standard_error:.3}, not to 1")]
    NotADensity { integral: f64, standard_error: f64 },
}

impl Failure {
    /// One or two words for a table.
    pub fn short(&self) -> &'static str {
        match self {
            Failure::TimedOut { .. } => "timed out",
            Failure::NotADensity { .. } => "not a density",
            _ => "failed",
        }
    }
}

/// The result of a command on one fold.
pub(super) struct Scored {
    /// One for each row.
    pub scores: Vec<f64>,
    /// Its number of components, if it chooses it and says it.
    pub k: Option<usize>,
    /// Seconds of learning.
    pub seconds: f64,
    pub measured: Measured,
}

/// Why a command has no result.
pub(super) enum Unscored {
    /// It failed.
    Failed(Failure),
    /// The comparison was asked to stop.
    Stopped,
}

impl From<Failure> for Unscored {
    fn from(failure: Failure) -> Self {
        Unscored::Failed(failure)
    }
}

/// One learner with one K and seed in a folder of its own.
pub(super) struct Job<'a> {
    pub learner: &'a ExternalLearner,
    pub launcher: &'a Launcher,
    pub names: &'a [String],
    pub k: usize,
    pub seed: u64,
    pub stop: &'a AtomicBool,
}

impl Job<'_> {
    /// Learns `train` and scores `test`. `check` asks for the integral of the density too, if there are few columns.
    pub fn run(
        &self,
        WeightedRows { rows: train, weights }: WeightedRows,
        test: ArrayView2<f64>,
        check: bool,
    ) -> Result<Scored, Unscored> {
        let no_file =
            |error: std::io::Error| Unscored::Failed(Failure::NotStarted { message: error.to_string() });
        let folder = JobFolder::new().map_err(no_file)?;
        let files = FoldFiles::new(folder.path());
        files.write_train(self.names, train).map_err(no_file)?;
        if self.learner.takes_weights() {
            files.write_weights(weights, train.nrows()).map_err(no_file)?;
        }
        let check = check && train.ncols() <= MAX_INTEGRATED;
        // A command that learns and scores at once gets all rows to score at once.
        let integral = check.then(|| Integral::new(train, self.seed)).flatten();
        let mut rows = vec![test];
        if let (Some(integral), None) = (&integral, &self.learner.scorer) {
            rows.push(integral.points());
        }
        let joined = ndarray::concatenate(ndarray::Axis(0), &rows).expect("all have the same columns");
        files.write_test(self.names, joined.view()).map_err(no_file)?;
        let learned = self.launch(&self.learner.command, Step::Learning, folder.path())?;
        let mut measured = Measured {
            cpu_seconds: learned.cpu_seconds,
            peak_memory: learned.peak_memory,
            ..Measured::default()
        };
        if let Some(scorer) = &self.learner.scorer {
            measured.score_seconds = Some(self.launch(scorer, Step::Scoring, folder.path())?.seconds);
        }
        let mut scores = read_scores(&files.scores(), joined.nrows())?;
        if let Some(integral) = integral {
            let of_points = match &self.learner.scorer {
                None => scores.split_off(test.nrows()),
                Some(scorer) => {
                    files.write_test(self.names, integral.points()).map_err(no_file)?;
                    self.launch(scorer, Step::Scoring, folder.path())?;
                    read_scores(&files.scores(), integral.points().nrows())?
                }
            };
            measured.integral = Some(integral.check(&of_points)?);
        }
        let k = files.chosen_k()?;
        Ok(Scored { scores, k, seconds: learned.seconds, measured })
    }

    fn launch(&self, words: &[String], step: Step, folder: &Path) -> Result<Usage, Unscored> {
        let values = Placeholders { folder, k: self.k, seed: self.seed, columns: self.names.len() };
        let words: Vec<String> = words.iter().map(|word| values.fill(word)).collect();
        let files = FoldFiles::new(folder);
        if step == Step::Scoring || self.learner.scorer.is_none() {
            // Scores of an earlier step must not be taken for those of this one.
            let _ = std::fs::remove_file(files.scores());
        }
        Launch { launcher: self.launcher, words: &words, step, folder, stop: self.stop }.run()
    }
}
