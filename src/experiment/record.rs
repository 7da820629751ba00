//! What a comparison writes down: one JSON object a line, from which every table and picture is made.

use serde::{Deserialize, Serialize};

use super::contender::Contender;
use super::paper::PaperRecord;
use crate::data::Units;
use crate::dist::Marginal;

/// One line of `records.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Record {
    /// What was run, when, by what: written once at the beginning of each run into the same folder.
    Run(RunRecord),
    /// A data set as it was used.
    Data(DataRecord),
    /// One learner with one K on one fold of one data set.
    Cell(Box<CellRecord>),
    /// Held-out score against rows seen.
    Curve(CurveRecord),
}

/// Provenance of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
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
    /// Folds of the cross-validation; 1 if a test file was given.
    pub folds: usize,
    /// The numbers of components compared.
    pub ks: Vec<usize>,
    /// What else the cells depend on.
    #[serde(default = "early_settings")]
    pub settings: CellSettings,
    /// Whether the start and batch EM split and join components. They do not in records of early versions, whose cells
    /// cannot be compared with others.
    #[serde(default)]
    pub moves: bool,
}

/// Those of versions that did not write them down.
fn early_settings() -> CellSettings {
    CellSettings { em_restarts: 10, ..CellSettings::default() }
}

/// Settings of the learners that every cell of a folder has to share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CellSettings {
    /// Independent starts of batch EM with moves.
    pub em_restarts: usize,
    /// Shards of oDMM.
    pub shards: usize,
    /// Rows that the shards share before they part; by default those of the start.
    pub warmup: Option<u64>,
}

impl Default for CellSettings {
    fn default() -> Self {
        CellSettings { em_restarts: 2, shards: 5, warmup: None }
    }
}

/// A data set as it was used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataRecord {
    /// Its name: that of the catalogue, or the file's. With `+dequantized` at the end where noise was added.
    pub data: String,
    /// A longer name for tables.
    pub title: String,
    /// Rows.
    pub rows: usize,
    /// Columns used.
    pub columns: Vec<String>,
    /// Columns that got noise of one quantum, with that quantum.
    pub dequantized: Vec<(String, f64)>,
    /// Columns of which many rows share few values, where no noise was added: there no density is bounded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub discrete: Vec<String>,
    /// The units in which scores are to be shown. Scores in records are always in the data's own units.
    pub units: Units,
    /// Whether it stands in for another set that was not at hand.
    pub stand_in: bool,
    /// How to get it, where it was not at hand: then it has a row in the tables and no results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// The first few columns of some rows, taken at random, for a picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Vec<Vec<f64>>>,
    /// What the paper reports for it. `None` in records of early versions; reading them fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<PaperRecord>,
}

/// What the names of sets with noise in their discrete columns end in.
pub(super) const DEQUANTIZED: &str = "+dequantized";

/// What the names of sets that stand in for others end in.
pub const STAND_IN: &str = "-stand-in";

impl DataRecord {
    /// The same set with noise in some columns, each with its quantum.
    pub fn dequantized(&self, columns: Vec<(String, f64)>) -> DataRecord {
        let data = format!("{}{DEQUANTIZED}", self.data);
        DataRecord { data, dequantized: columns, discrete: Vec::new(), ..self.clone() }
    }

    /// The name without what was done to the set, so that the folds of both forms are the same.
    pub(super) fn name_without_noise(&self) -> &str {
        self.data.strip_suffix(DEQUANTIZED).unwrap_or(&self.data)
    }

    /// The name in the catalogue, if it is there.
    pub fn catalogue_name(&self) -> &str {
        let plain = self.name_without_noise();
        plain.strip_suffix(STAND_IN).unwrap_or(plain)
    }
}

/// One learner with one K on one fold of one data set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellRecord {
    /// [`DataRecord::data`].
    pub data: String,
    /// Which fold was the test fold, from 0.
    pub fold: usize,
    /// The learner.
    pub contender: Contender,
    /// Components.
    pub k: usize,
    /// α or β that was best on the validation rows, where there was a choice.
    pub tuned: Option<f64>,
    /// Rows learned.
    pub train_rows: usize,
    /// Mean log-likelihood of the validation rows, under the model learned without them.
    pub validation: Option<f64>,
    /// Mean prequential log-likelihood.
    pub prequential: Option<f64>,
    /// Log-likelihood of each test row, in file order, in the data's own units, under the model learned from
    /// all training rows.
    pub test: Vec<f32>,
    /// `Σ ln sd` of the training rows' columns: what a log-likelihood gains in z-scored units.
    pub log_jacobian: f64,
    /// Seconds of the buffered start.
    pub start_seconds: f64,
    /// Seconds of learning, start included.
    pub learn_seconds: f64,
    /// What had to be guarded, added up.
    pub guarded: u64,
    /// The components along the first few columns, for a picture: of oBMM on fold 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marginals: Option<Vec<Marginal>>,
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
    /// Rows seen and mean test log-likelihood then, in the data's own units.
    pub points: Vec<(u64, f64)>,
    /// Rows that the start was fitted to: the rows of the first point. Where these are all training rows there is one
    /// point. `None` in records of early versions, whose points begin before the start was complete; reading them fills
    /// it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_rows: Option<u64>,
    /// Rows seen at each revision of the structure that changed the mixture.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revisions: Vec<u64>,
    /// The level to reach: that of the true model or of batch EM, with its name.
    pub level: Option<(String, f64)>,
}
