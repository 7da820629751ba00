//! The model file: versioned JSON that a person can read, with floats that survive exactly.

mod format;
mod merge;
mod output;
mod seal;

pub use merge::{Lineage, MergeError, Merged, Numbered, merge_models};
pub use output::{OutputFile, is_output_failure};
pub use seal::Seal;

use std::cell::Cell;
use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

use crate::dist::{GaussianMixture, Posterior, StudentMixture};
use crate::learn::{
    Algorithm, CandidateState, ColumnSummary, EmSettings, Fingerprint, FitSettings, FitState, Health,
    LearnerState, Prequential,
};

/// The version of the format that this library writes, and the highest that it reads.
///
/// Versions differ in the working copies of the components' matrices: 1 has none, and those of 2 are left aside.
pub const VERSION: u32 = 3;
pub(crate) const FORMAT: &str = "gmm-bmm model";
/// Ten components over 3000 columns need half of this; a pipe that never ends must not fill the memory.
const MOST_BYTES: u64 = 2 << 30;

/// Why a file is not a usable model.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The file could not be read at all.
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    /// Not even the beginning of one.
    #[error("it is not a model file{looks}: a model file is made by 'gmm-bmm fit'")]
    NotAModel {
        /// What it looks like instead, if that can be told, in words that follow it.
        looks: &'static str,
    },
    /// Not JSON of the right shape, or a value out of range.
    #[error("it is damaged or not a model file: {0}")]
    Damaged(#[from] serde_json::Error),
    /// Some other JSON.
    #[error("it is not a gmm-bmm model file: its format says '{0}'")]
    OtherFormat(String),
    /// Written by a later version of the tool.
    #[error(
        "it has version {0} of the format and this tool reads up to {VERSION}: use the gmm-bmm that wrote it, or a later one"
    )]
    LaterVersion(u32),
    /// Parts that do not fit together.
    #[error("it is damaged: {0}")]
    Inconsistent(String),
    /// Well formed, but not what was written.
    #[error(
        "its content does not have its checksum, so it was damaged or edited since it was written: use an intact copy, or, if \
         the change is meant, remove the last member, \"checksum\" (and the comma before it)"
    )]
    Checksum,
    /// A file without end, or one that no mixture fills.
    #[error("it is larger than 2 GiB, or not a model file")]
    TooLarge,
}

/// How a model came about.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recipe {
    /// Batch EM.
    Em(EmSettings),
    /// The true mixture that data were drawn from.
    Truth,
    /// By an online learner, which can go on with it.
    #[serde(untagged)]
    Online(Algorithm),
}

impl Recipe {
    /// Its name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Recipe::Online(algorithm) => algorithm.name(),
            Recipe::Em(_) => "em",
            Recipe::Truth => "truth",
        }
    }

    /// Who learned it, for people.
    pub fn describe(&self) -> String {
        match self {
            Recipe::Online(algorithm) => algorithm.describe(),
            Recipe::Em(settings) => format!("batch EM (best of {} starts)", settings.restarts),
            Recipe::Truth => "nobody: it is the truth that data were drawn from".into(),
        }
    }

    /// The online algorithm that can go on with such a model.
    pub fn online(&self) -> Option<Algorithm> {
        match *self {
            Recipe::Online(algorithm) => Some(algorithm),
            Recipe::Em(_) | Recipe::Truth => None,
        }
    }
}

/// A column of the data that a model was learned from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Where it sits and how far it spreads.
    pub summary: ColumnSummary,
    /// Least variance of the column given the columns before it.
    pub floor: f64,
}

/// A learned mixture with all that is needed to score with it, to explain it, and to go on learning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    format: String,
    version: u32,
    /// The version of the tool that wrote it.
    pub tool: String,
    /// The algorithm and its settings.
    pub algorithm: Recipe,
    /// Seed of the start.
    pub seed: u64,
    /// Rows to buffer for the start, where that was set by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_rows: Option<usize>,
    /// Rows seen.
    pub rows: u64,
    /// Whether the columns' names came from a header.
    pub named: bool,
    /// The columns.
    pub columns: Vec<Column>,
    /// Prequential score.
    pub prequential: Prequential,
    /// What had to be guarded while learning.
    pub health: Health,
    /// What was learned.
    pub learned: LearnerState,
    /// The other K learned in the same pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<CandidateState>,
    /// Where a shard comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lineage: Option<Lineage>,
    /// In a checkpoint: of the rows of the data that it was saved in the middle of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Fingerprint>,
    /// The rows themselves, row after row, while there are too few for the start: a later run goes on from them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Vec<f64>>,
    /// Only while a file is read: writing makes a new one.
    #[serde(default, skip_serializing)]
    checksum: Option<String>,
}

/// The columns of a data set by name, and whether the names came from a header.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnNames {
    /// The names in order.
    pub names: Vec<String>,
    /// Whether they came from a header.
    pub named: bool,
}

impl Model {
    /// The model of a pass over one shard: `lineage` as it was when the pass began, and the rows seen since, which are
    /// a shard of their own.
    pub fn from_shard(
        settings: &FitSettings,
        state: FitState,
        columns: &ColumnNames,
        mut lineage: Lineage,
    ) -> Self {
        lineage.shards.extend(state.fingerprint);
        Model { lineage: Some(lineage), ..Model::from_fit(settings, state, columns) }
    }

    /// The model of a pass: the K with the best prequential score, and the others as its rivals.
    pub fn from_fit(settings: &FitSettings, mut state: FitState, columns: &ColumnNames) -> Self {
        let best = state.candidates.remove(state.best());
        let described = columns.names.iter().zip(&state.columns).zip(&state.floor);
        let columns_described = described
            .map(|((name, &summary), &floor)| Column { name: name.clone(), summary, floor })
            .collect();
        Model {
            format: FORMAT.into(),
            version: VERSION,
            tool: env!("CARGO_PKG_VERSION").into(),
            algorithm: Recipe::Online(settings.algorithm),
            seed: settings.seed,
            init_rows: settings.init_rows,
            rows: state.rows,
            named: columns.named,
            columns: columns_described,
            prequential: best.prequential,
            health: best.health,
            learned: best.learned,
            rivals: state.candidates,
            lineage: None,
            checkpoint: None,
            pending: state.pending,
            checksum: None,
        }
    }

    /// A model that is a mixture alone: fitted in batch, or the truth that data were drawn from.
    pub fn from_mixture(
        mixture: GaussianMixture,
        recipe: Recipe,
        seed: u64,
        columns: &ColumnNames,
        summaries: &[ColumnSummary],
    ) -> Self {
        let rows = summaries.iter().map(|summary| summary.count).max().unwrap_or(0);
        let describe = |(name, &summary): (&String, &ColumnSummary)| Column {
            name: name.clone(),
            summary,
            floor: summary.floor(),
        };
        Model {
            format: FORMAT.into(),
            version: VERSION,
            tool: env!("CARGO_PKG_VERSION").into(),
            algorithm: recipe,
            seed,
            init_rows: None,
            rows,
            named: columns.named,
            columns: columns.names.iter().zip(summaries).map(describe).collect(),
            prequential: Prequential::default(),
            health: Health::default(),
            learned: LearnerState::Point {
                start: mixture.clone(),
                start_rows: rows,
                mixture,
                rows: 0,
                working: Vec::new(),
            },
            rivals: Vec::new(),
            lineage: None,
            checkpoint: None,
            pending: None,
            checksum: None,
        }
    }

    /// The pass that this model came from, to go on with it. `None` if it did not come from an online learner.
    pub fn to_fit(&self) -> Option<(FitSettings, FitState)> {
        let own = CandidateState {
            learned: self.learned.clone(),
            prequential: self.prequential,
            health: self.health,
        };
        let mut candidates = self.rivals.clone();
        candidates.push(own);
        candidates.sort_by_key(|candidate| candidate.learned.k());
        let settings = FitSettings {
            algorithm: self.algorithm.online()?,
            ks: candidates.iter().map(|candidate| candidate.learned.k()).collect(),
            seed: self.seed,
            init_rows: self.init_rows,
        };
        let state = FitState {
            rows: self.rows,
            columns: self.columns.iter().map(|column| column.summary).collect(),
            floor: self.columns.iter().map(|column| column.floor).collect(),
            pending: self.pending.clone(),
            candidates,
            fingerprint: self.lineage.as_ref().map(|_| Fingerprint::default()),
        };
        Some((settings, state))
    }

    /// The pass that was under way when this model was saved as its checkpoint.
    pub fn to_interrupted_fit(&self) -> Option<(FitSettings, FitState, Option<Lineage>)> {
        let (settings, mut state) = self.to_fit()?;
        let mut lineage = self.lineage.clone();
        if let Some(lineage) = &mut lineage {
            state.fingerprint = lineage.shards.pop();
        }
        Some((settings, state, lineage))
    }

    /// The mixture as estimated.
    pub fn estimate(&self) -> GaussianMixture {
        self.learned.estimate()
    }

    /// The posterior predictive, where the model is Bayesian.
    pub fn predictive(&self) -> Option<StudentMixture> {
        self.learned.posterior().map(Posterior::predictive)
    }

    /// How many components.
    pub fn k(&self) -> usize {
        self.learned.k()
    }

    /// The columns' names.
    pub fn column_names(&self) -> ColumnNames {
        let names = self.columns.iter().map(|column| column.name.clone()).collect();
        ColumnNames { names, named: self.named }
    }

    /// What a log-density gains when the columns are measured in standard deviations instead of their own units.
    pub fn zscore_jacobian(&self) -> f64 {
        self.columns.iter().map(|column| column.summary.unit().ln()).sum()
    }

    /// Writes the model as JSON, with a checksum at its end.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        self.check().map_err(io::Error::other)?;
        let sum = Cell::new(seal::Sum::new());
        let summing = seal::Summing { to: &mut to, sum: &sum };
        let mut serializer =
            serde_json::Serializer::with_formatter(summing, format::ModelFormatter::new(&sum));
        self.serialize(&mut serializer).map_err(io::Error::from)?;
        to.write_all(b"\n")
    }

    /// Reads a model and checks all of it.
    pub fn read(from: impl Read) -> Result<Self, ModelError> {
        Model::read_sealed(from).map(|(model, _)| model)
    }

    /// Reads a model and checks all of it; says too whether there was a checksum to check it by.
    pub fn read_sealed(from: impl Read) -> Result<(Self, Seal), ModelError> {
        let text = read_object(from)?;
        #[derive(Deserialize)]
        struct Heading {
            format: String,
            version: u32,
        }
        let heading: Heading = serde_json::from_slice(&text)?;
        if heading.format != FORMAT {
            return Err(ModelError::OtherFormat(heading.format));
        }
        if heading.version > VERSION {
            return Err(ModelError::LaterVersion(heading.version));
        }
        // The checks with the more telling words come first.
        let mut model: Model = if heading.version < VERSION {
            let mut value = serde_json::from_slice(&text)?;
            remove_working_copies(&mut value);
            serde_json::from_value(value)?
        } else {
            serde_json::from_slice(&text)?
        };
        model.check()?;
        match model.checksum.take() {
            None => Ok((model, Seal::Missing)),
            Some(digits) if seal::expected_digits(&text).as_ref() == Some(&digits) => {
                Ok((model, Seal::Intact))
            }
            Some(_) => Err(ModelError::Checksum),
        }
    }

    /// What the parts' own checks cannot see: that they fit together.
    fn check(&self) -> Result<(), ModelError> {
        let inconsistent = |what: String| Err(ModelError::Inconsistent(what));
        let dim = self.columns.len();
        for learned in std::iter::once(&self.learned).chain(self.rivals.iter().map(|rival| &rival.learned)) {
            if learned.dim() != dim || !learned.is_consistent() {
                return inconsistent(format!("it names {dim} columns and holds {}", learned.dim()));
            }
            if !learned.owns_its_working_copies() {
                return inconsistent(
                    "a working copy is not that of its component's matrix: where matrices were changed, \
                     leave out 'working'"
                        .into(),
                );
            }
            let belongs = match self.algorithm {
                Recipe::Online(algorithm) => algorithm.makes(learned),
                Recipe::Em(_) | Recipe::Truth => matches!(learned, LearnerState::Point { .. }),
            };
            if !belongs {
                return inconsistent(format!(
                    "algorithm {} does not make such a state",
                    self.algorithm.name()
                ));
            }
        }
        if let Some(algorithm) = self.algorithm.online() {
            algorithm.check().map_err(|error| ModelError::Inconsistent(error.to_string()))?;
        }
        for Column { name, summary, floor } in &self.columns {
            if !(1e-300..=1e300).contains(floor) {
                return inconsistent(format!("the floor of column '{name}' is {floor}"));
            }
            let sound = summary.mean.is_finite() && summary.squares.is_finite() && summary.squares >= 0.0;
            if !sound || summary.count > self.rows {
                return inconsistent(format!(
                    "the summary of column '{name}' is not that of {} rows",
                    self.rows
                ));
            }
        }
        if !self.prequential.log_likelihood.is_finite() {
            return inconsistent("its prequential score is not a number".into());
        }
        match &self.pending {
            Some(values) if Some(values.len() as u64) != self.rows.checked_mul(dim as u64) => {
                inconsistent(format!("it says {} rows and holds {} numbers", self.rows, values.len()))
            }
            Some(values) if values.iter().any(|value| !value.is_finite()) => {
                inconsistent("a row that it holds is not of numbers".into())
            }
            _ => Ok(()),
        }
    }
}

/// Takes the working copies out of a file of an earlier version; what they are copies of is enough to go on.
fn remove_working_copies(value: &mut serde_json::Value) {
    if let Some(members) = value.as_object_mut() {
        members.retain(|name, _| name != "working" && name != "common_working");
        members.values_mut().for_each(remove_working_copies);
    }
    if let Some(elements) = value.as_array_mut() {
        elements.iter_mut().for_each(remove_working_copies);
    }
}

/// All of a text that begins like a JSON object, and no more than a model can have.
fn read_object(mut from: impl Read) -> Result<Vec<u8>, ModelError> {
    let mut text = Vec::new();
    from.by_ref().take(4096).read_to_end(&mut text)?;
    if text.trim_ascii_start().first() != Some(&b'{') {
        return Err(ModelError::NotAModel { looks: looks_like(&text) });
    }
    from.take(MOST_BYTES).read_to_end(&mut text)?;
    if text.len() as u64 >= MOST_BYTES { Err(ModelError::TooLarge) } else { Ok(text) }
}

/// What the beginning of a file that is no model looks like.
fn looks_like(text: &[u8]) -> &'static str {
    let first_line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    match std::str::from_utf8(first_line) {
        _ if text.is_empty() => ", it is empty",
        Ok(line) if line.contains([',', ';', '\t']) => ", it looks like a CSV",
        _ => "",
    }
}
