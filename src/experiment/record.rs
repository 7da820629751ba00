//! Records: one JSON object a line, from which all tables and pictures are made.

use serde::{Deserialize, Serialize};

use super::contender::Contender;
use super::external::{ExternalLearner, Failure, Measured};
use super::paper::{PaperRecord, Units};
use crate::dist::Marginal;
use crate::learn::BlindPrior;
use crate::stats::{ColumnSummary, mean, weighted_mean};

/// The version of the form of the records, which `docs/records.schema.json` describes.
pub const RECORDS_VERSION: u32 = 1;

/// One line of `records.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Record {
    /// How, when and where cells were run: written at the beginning of each run into the folder.
    Run(RunRecord),
    /// A data set as it was used.
    Data(DataRecord),
    /// One learner with one K on one fold of one data set.
    Cell(Box<CellRecord>),
    /// Held-out score against rows seen.
    Curve(CurveRecord),
}

/// Settings and provenance of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Version of the form of the records, `RECORDS_VERSION`.
    pub version: u32,
    /// Version of the tool.
    pub tool: String,
    /// The command line.
    pub command: String,
    /// When it began, as `2026-01-31T12:00:00Z`.
    pub began: String,
    /// The processor, as the system names it.
    pub processor: String,
    /// Threads used.
    pub threads: usize,
    /// Seed of splits and starts.
    pub seed: u64,
    /// Folds of the cross-validation with each seed; 1 if a test file was given.
    pub folds: usize,
    /// Seeds that splits and starts were repeated with: `seed`, `seed + 1` and so on.
    #[serde(default = "one_seed", skip_serializing_if = "is_one_seed")]
    pub seeds: usize,
    /// The numbers of components compared.
    pub ks: Vec<usize>,
    /// Other settings that the cells depend on.
    pub settings: CellSettings,
    /// The learners that were commands. Of several with the same name, the tables show the one of the last run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub learners: Vec<ExternalLearner>,
}

fn one_seed() -> usize {
    1
}

fn is_one_seed(seeds: &usize) -> bool {
    *seeds == 1
}

/// Settings of the learners that every cell of a folder has to share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CellSettings {
    /// Independent starts of batch EM with moves.
    pub em_restarts: usize,
    /// Shards of oDMM.
    pub shards: usize,
    /// Rows that are learned before the shards separate; by default the rows of the start.
    pub warmup: Option<u64>,
    /// The number of further rows after which a row has half its weight, for the learner that forgets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_life: Option<u64>,
    /// Whether training rows are learned in file order, and not shuffled.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub file_order: bool,
    /// What blind starts suppose about their components. Versions before this setting had other blind starts.
    #[serde(default = "earlier_blind_prior")]
    pub blind_prior: BlindPrior,
    /// The step-size exponent of online EM, if it is not chosen on validation rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
}

/// The blind start of versions that did not record it: the means of up to 32 columns count for four rows.
fn earlier_blind_prior() -> BlindPrior {
    BlindPrior { mean_rows: 4.0, spread: 1.0 }
}

impl Default for CellSettings {
    fn default() -> Self {
        CellSettings {
            em_restarts: 2,
            shards: 5,
            warmup: None,
            half_life: None,
            file_order: false,
            blind_prior: BlindPrior::default(),
            alpha: None,
        }
    }
}

/// A data set as it was used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataRecord {
    /// Its name in the catalogue, or the file's name; ends in `+dequantized` if noise was added.
    pub data: String,
    /// Its name in tables.
    pub title: String,
    /// Rows.
    pub rows: usize,
    /// Columns used.
    pub columns: Vec<String>,
    /// Columns with added noise, and the width of the noise (one quantum).
    pub dequantized: Vec<(String, f64)>,
    /// Columns with few distinct values and no added noise: their density is unbounded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub discrete: Vec<String>,
    /// The column of the weights of its rows, if they have weights. It is not learned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<String>,
    /// The units to show scores in by default. Scores in records are always in the data's own units.
    pub units: Units,
    /// Whether it is a synthetic substitute for a missing set.
    pub stand_in: bool,
    /// How to get the set if it was missing: then it has a row in the tables and no results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// The first few columns of a random sample of rows, for a picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Vec<Vec<f64>>>,
    /// What the paper reports for it. `None` in a plan, if the catalogue has the set: a session
    /// fills it in by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<PaperRecord>,
}

/// Suffix of the names of sets with noise in their discrete columns.
pub(super) const DEQUANTIZED: &str = "+dequantized";

/// Suffix of the names of synthetic substitutes.
pub const STAND_IN: &str = "-stand-in";

impl DataRecord {
    /// The same set with noise in some columns; each comes with its quantum.
    pub fn dequantized(&self, columns: Vec<(String, f64)>) -> DataRecord {
        let data = format!("{}{DEQUANTIZED}", self.data);
        DataRecord { data, dequantized: columns, discrete: Vec::new(), ..self.clone() }
    }

    /// The name without the suffix of added noise. It seeds the folds, so both forms of a set have the same folds.
    pub(super) fn name_without_noise(&self) -> &str {
        name_without_noise(&self.data)
    }

    /// The name without suffixes, which may be one of the catalogue.
    pub fn catalogue_name(&self) -> &str {
        let plain = self.name_without_noise();
        plain.strip_suffix(STAND_IN).unwrap_or(plain)
    }
}

/// See [`DataRecord::name_without_noise`].
pub fn name_without_noise(name: &str) -> &str {
    name.strip_suffix(DEQUANTIZED).unwrap_or(name)
}

/// One learner with one K on one fold of one data set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellRecord {
    /// [`DataRecord::data`].
    pub data: String,
    /// The test fold, from 0. With several seeds, those of the second seed follow those of the first, and so on.
    pub fold: usize,
    /// The learner.
    pub contender: Contender,
    /// Components; 0 if a command chose them and did not say how many.
    pub k: usize,
    /// The α or β chosen on the validation rows, if the learner has one.
    pub tuned: Option<f64>,
    /// Rows learned.
    pub train_rows: usize,
    /// Mean log-likelihood of the validation rows under the model learned without them.
    pub validation: Option<f64>,
    /// Mean prequential log-likelihood.
    pub prequential: Option<f64>,
    /// Log-likelihood of each test row under the model learned from all training rows: in file order, in the data's own
    /// units.
    pub test: Vec<f32>,
    /// The weight of each test row, if rows have weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Vec<f64>>,
    /// In packed records, the figures of all test rows. There `test` is empty in cells whose single rows no table needs, and has
    /// evenly spaced rows of large sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<TestSummary>,
    /// `Σ ln sd` of the training rows' columns: added to a log-likelihood, it gives the one in z-scored units.
    pub log_jacobian: f64,
    /// The same for rows with gaps, if a training or test row has any: then it takes the place of `log_jacobian`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_jacobians: Option<GapJacobians>,
    /// Seconds of the start.
    pub start_seconds: f64,
    /// Seconds of learning, start included.
    pub learn_seconds: f64,
    /// Of oDMM: the seconds with each shard on a machine of its own, which are those of the start, the warm-up, the slowest
    /// shard and the merge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_seconds: Option<f64>,
    /// How often numerical safeguards triggered.
    pub guarded: u64,
    /// The components along the first few columns, for a picture: on fold 0 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marginals: Option<Vec<Marginal>>,
    /// What was measured of a learner that is a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// Why there are no scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// The figures of the scores of a cell's test rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TestSummary {
    /// The scores, in the data's own units.
    pub rows: ColumnSummary,
    /// Their paired differences to those of the start with the same K.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_start: Option<ColumnSummary>,
}

impl CellRecord {
    /// A cell without results.
    pub fn empty(data: impl Into<String>, contender: Contender, k: usize, fold: usize) -> Self {
        CellRecord {
            data: data.into(),
            fold,
            contender,
            k,
            tuned: None,
            train_rows: 0,
            validation: None,
            prequential: None,
            test: Vec::new(),
            weights: None,
            summary: None,
            log_jacobian: 0.0,
            gap_jacobians: None,
            start_seconds: 0.0,
            learn_seconds: 0.0,
            machine_seconds: None,
            guarded: 0,
            marginals: None,
            measured: None,
            failure: None,
        }
    }

    /// The mean of a figure of each test row.
    pub fn mean_over_rows(&self, figures: impl ExactSizeIterator<Item = f64>) -> Option<f64> {
        match &self.weights {
            _ if figures.len() == 0 => None,
            Some(weights) => Some(weighted_mean(figures, weights)),
            None => mean(&figures.collect::<Vec<_>>()),
        }
    }

    /// The mean log-likelihood of the test rows in the data's own units.
    pub fn mean_score(&self) -> Option<f64> {
        self.mean_over_rows(self.test.iter().map(|&score| f64::from(score)))
    }

    /// Whether it has scores, but not those of single rows.
    pub fn lacks_rows(&self) -> bool {
        self.test.is_empty() && self.summary.is_some()
    }
}

/// `Σ ln sd` over the observed columns of rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GapJacobians {
    /// Of each test row.
    pub test: Vec<f32>,
    /// The mean over the validation rows.
    pub validation: f64,
    /// The mean over the rows of the prequential score.
    pub prequential: f64,
}

/// Held-out score against rows seen, of one learner on fold 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CurveRecord {
    /// [`DataRecord::data`].
    pub data: String,
    /// The learner.
    pub contender: Contender,
    /// Components.
    pub k: usize,
    /// Rows seen, and the mean test log-likelihood after them in the data's own units.
    pub points: Vec<(u64, f64)>,
    /// Rows that the start was fitted to: the rows of the first point. If these are all training rows, there is one
    /// point. A learner with a blind start has a point after its first row. `None` where the points begin before the start was complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_rows: Option<u64>,
    /// Rows seen at each revision of the structure that changed the mixture.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revisions: Vec<u64>,
    /// The level to reach, with its name: the score of the true model or of batch EM.
    pub level: Option<(String, f64)>,
}
