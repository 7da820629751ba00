//! Writing a model file, and reading one with all the checks that it needs.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::error::Category;

use super::earlier::upgraded;
use super::format::ModelFormatter;
use super::seal::{Checking, Seal, Sum, Summing};
use super::{Model, Recipe};
use crate::dist::{GaussianMixture, Posterior};
use crate::files::OutputFile;
use crate::learn::{CandidateState, Components, LearnError, LearnerState, MAX_MODEL_BYTES};
use crate::remedy::Remedy;

/// The version of the format that this library writes, and the highest that it reads.
///
/// Version 6 has the settings and the state as they are in memory. Versions 4 and 5 are read; earlier ones are refused.
pub const VERSION: u32 = 6;
/// The lowest version that is read.
const MIN_VERSION: u32 = 4;
/// The name of the format in the file.
pub(crate) const FORMAT: &str = "gmm-bmm model";

/// The most rows that a floating-point number counts exactly. Sums of a few such counts do not overflow.
pub(super) const MAX_ROWS: u64 = 1 << 53;

/// Why a file is not a usable model.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The file could not be read at all.
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    /// Not even the beginning of one.
    #[error("it is not a model file{}", match looks {
        LooksLike::Nothing => ", it is empty",
        LooksLike::Csv => ", it looks like a CSV",
        LooksLike::Other => "",
    })]
    NotAModel {
        /// What it looks like instead.
        looks: LooksLike,
    },
    /// It ends too early.
    #[error("it ends in the middle, so it was cut short: use an intact copy, or learn it again")]
    CutShort,
    /// Not JSON of the right shape, or a value out of range.
    #[error("it is damaged or not a model file: {0}")]
    Damaged(serde_json::Error),
    /// Some other JSON.
    #[error("it is not a gmm-bmm model file: its format says '{0}'")]
    OtherFormat(String),
    /// Written by a later version of the library.
    #[error(
        "it has version {0} of the format, and this library reads up to {VERSION}: use the version of gmm-bmm that wrote it, \
         or a later one"
    )]
    LaterVersion(u32),
    /// Written by a version of the library whose files are not read any more.
    #[error(
        "it has version {0} of the format, and this library reads {MIN_VERSION} and later ones: learn it again"
    )]
    EarlierVersion(u32),
    /// Parts that do not fit together.
    #[error("it is damaged: {0}")]
    Inconsistent(String),
    /// Well formed, but not what was written.
    #[error(
        "its content does not have its checksum, so it was damaged or edited since it was written: use an intact copy, or, if \
         the change is meant, remove the last member, \"checksum\" (and the comma before it)"
    )]
    Checksum,
    /// A model that no online learner made.
    #[error("it was made by '{0}', which does not learn row by row, so it cannot be resumed")]
    NotOnline(&'static str),
    /// A model that was not saved in the middle of a pass.
    #[error("it is a model, not a checkpoint")]
    NotACheckpoint,
    /// A state that cannot be resumed.
    #[error(transparent)]
    Learn(#[from] LearnError),
    /// A file without end, or one that no mixture fills.
    #[error("it is larger than 2 GiB, or not a model file")]
    TooLarge,
}

/// What a file looks like that is not a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LooksLike {
    /// It is empty.
    Nothing,
    /// Delimited text.
    Csv,
    /// Something else.
    Other,
}

impl ModelError {
    /// What can be done about it.
    pub fn remedies(&self) -> Vec<Remedy> {
        match self {
            ModelError::NotAModel { .. } => vec![Remedy::UseModelFile],
            _ => Vec::new(),
        }
    }
}

impl From<serde_json::Error> for ModelError {
    fn from(error: serde_json::Error) -> Self {
        match error.classify() {
            Category::Eof => ModelError::CutShort,
            Category::Io => ModelError::Read(error.into()),
            Category::Syntax | Category::Data => ModelError::Damaged(error),
        }
    }
}

impl Model {
    /// Writes the model as JSON, with a checksum at its end.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        self.write_to(&mut to)
    }

    // Not generic, so that the code for every part of a model is compiled once.
    fn write_to(&self, mut to: &mut dyn Write) -> io::Result<()> {
        self.check().map_err(io::Error::other)?;
        let sum = Cell::new(Sum::new());
        let summing = Summing { to: &mut to, sum: &sum };
        let mut serializer = serde_json::Serializer::with_formatter(summing, ModelFormatter::new(&sum));
        self.serialize(&mut serializer).map_err(io::Error::from)?;
        to.write_all(b"\n")
    }

    /// Reads a model and checks all of it.
    pub fn read(from: impl Read) -> Result<Self, ModelError> {
        Model::read_sealed(from).map(|(model, _)| model)
    }

    /// Writes a model file, which appears whole or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.write_file(OutputFile::create(path)?)
    }

    /// Writes the model to an open file. A new file that holds rows of the data is for its owner alone.
    pub fn write_file(&self, mut file: OutputFile) -> io::Result<()> {
        if self.rows_in_file() > 0 {
            file.keep_private()?;
        }
        self.write(&mut file)?;
        file.commit()
    }

    /// Reads a model file and checks all of it.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        Model::read(BufReader::new(File::open(path)?))
    }

    /// Reads a model and checks all of it. Also returns whether the file has a checksum.
    pub fn read_sealed(mut from: impl Read) -> Result<(Self, Seal), ModelError> {
        Model::read_from(&mut from)
    }

    fn read_from(from: &mut dyn Read) -> Result<(Self, Seal), ModelError> {
        let mut beginning = Vec::new();
        from.take(4096).read_to_end(&mut beginning)?;
        if beginning.trim_ascii_start().first() != Some(&b'{') {
            return Err(ModelError::NotAModel { looks: looks_like(&beginning) });
        }
        let mut text = Checking::new(beginning.chain(from).take(MAX_MODEL_BYTES));
        let parsed = if is_present_form(&beginning) { parse(&mut text) } else { parse_other_form(&mut text) };
        if text.size() >= MAX_MODEL_BYTES {
            return Err(ModelError::TooLarge);
        }
        let mut model = parsed?;
        model.version = VERSION;
        // These checks come first because their messages are more specific.
        model.check()?;
        match model.checksum.take() {
            None => Ok((model, Seal::Missing)),
            Some(digits) if text.expected_digits().as_ref() == Some(&digits) => Ok((model, Seal::Intact)),
            Some(_) => Err(ModelError::Checksum),
        }
    }

    /// Checks that the parts fit together. Each part has checked itself.
    fn check(&self) -> Result<(), ModelError> {
        let inconsistent = |what: String| Err(ModelError::Inconsistent(what));
        let (dim, state) = (self.columns.len(), &self.state);
        if (state.columns.len(), state.floor.len()) != (dim, dim) {
            return inconsistent(format!("it names {dim} columns and summarises {}", state.columns.len()));
        }
        if !self.columns.circular.iter().all(|circular| circular.is_sound(dim)) {
            return inconsistent("a circular column has no place among its columns".into());
        }
        if !self.settings.dequantize().is_sound(dim) {
            return inconsistent("it has noise in a column that it does not have".into());
        }
        self.check_candidates()?;
        self.check_range()?;
        if let Some(settings) = self.settings.online() {
            settings.check().map_err(|error| ModelError::Inconsistent(error.to_string()))?;
        }
        self.check_columns()?;
        if state.kept.as_ref().is_some_and(|kept| !kept.is_sound(dim)) {
            return inconsistent("the rows that it keeps are not those of its columns".into());
        }
        if let Some(fault) = self.lineage().and_then(|lineage| lineage.numbered.as_ref()?.fault()) {
            return inconsistent(fault);
        }
        self.check_counts()?;
        if !state.sample.is_sound() || !state.seen.is_sound(state.rows) {
            return inconsistent("the sample of its rows is broken".into());
        }
        if !state.scores.is_empty() && !state.scores.is_sound(state.candidates.len()) {
            return inconsistent("the scores of its K over batches do not fit together".into());
        }
        match &state.pending {
            Some(values) if Some(values.len() as u64) != state.rows.checked_mul(dim as u64) => {
                inconsistent(format!("it says {} rows and holds {} numbers", state.rows, values.len()))
            }
            Some(values) if values.iter().any(|value| value.is_infinite()) => {
                inconsistent("a row that it holds is not of numbers".into())
            }
            _ => Ok(()),
        }
    }

    /// Checks each K, and that they are those of the settings.
    fn check_candidates(&self) -> Result<(), ModelError> {
        let inconsistent = |what: &str| Err(ModelError::Inconsistent(what.into()));
        let (dim, candidates) = (self.columns.len(), &self.state.candidates);
        if self.best >= candidates.len() {
            return inconsistent("it does not have its best K");
        }
        let ks: Vec<usize> = candidates.iter().map(|candidate| candidate.learned.k()).collect();
        let are_given = match self.settings.online().map(|settings| &settings.components) {
            Some(Components::Given(given)) => ks == *given,
            Some(Components::Learned { .. }) => ks.len() == 1,
            None => ks.is_sorted_by(|a, b| a < b),
        };
        if !are_given {
            return inconsistent("its numbers of components are not those of its settings");
        }
        for CandidateState { learned, structure, prequential, .. } in candidates {
            if learned.dim() != dim || !learned.is_consistent() {
                let text = format!("it names {dim} columns and holds {}", learned.dim());
                return Err(ModelError::Inconsistent(text));
            }
            if !learned.owns_its_matrix_states() {
                return inconsistent(
                    "a matrix state is not that of its component's matrix: where matrices were changed, leave out 'working'",
                );
            }
            let belongs = match &self.settings {
                Recipe::Online(settings) => settings.algorithm.makes(learned),
                Recipe::Em { .. } | Recipe::Truth { .. } => matches!(learned, LearnerState::Point { .. }),
            };
            if !belongs {
                let text = format!("algorithm {} does not make such a state", self.settings.name());
                return Err(ModelError::Inconsistent(text));
            }
            if structure.as_ref().is_some_and(|own| !own.is_sound(learned.k(), dim, self.state.rows)) {
                return inconsistent("its structure is not that of its components");
            }
            if !prequential.log_likelihood.is_finite() {
                return inconsistent("its prequential score is not a number");
            }
        }
        Ok(())
    }

    fn check_columns(&self) -> Result<(), ModelError> {
        let rows = self.state.rows;
        let columns = self.columns.names.iter().zip(&self.state.columns).zip(&self.state.floor);
        for ((name, summary), floor) in columns {
            if !(1e-300..=1e300).contains(floor) {
                let text = format!("the floor of column '{name}' is {floor}");
                return Err(ModelError::Inconsistent(text));
            }
            let sound = summary.mean.is_finite() && summary.squares.is_finite() && summary.squares >= 0.0;
            if !sound || summary.count > rows {
                let text = format!("the summary of column '{name}' is not that of {rows} rows");
                return Err(ModelError::Inconsistent(text));
            }
        }
        Ok(())
    }
}

/// The largest parameter of a mixture, as of a floor. The library takes rows beyond what files may hold, so a model may have large
/// means.
const MAX: f64 = 1e300;

/// An error if a mixture is not of finite numbers in range.
fn check_mixture(mixture: &GaussianMixture) -> Result<(), ModelError> {
    let (means, covariances) = (mixture.means(), mixture.covariances());
    // Not a number is out of range too.
    let beyond = |values: &[f64], most: f64| values.iter().copied().find(|value| !(value.abs() <= most));
    let flat = |values: Option<&[f64]>, most| values.and_then(|values| beyond(values, most));
    let found = flat(means.as_slice(), MAX)
        .map(|value| ("mean", value))
        .or_else(|| flat(covariances.as_slice(), MAX).map(|value| ("covariance", value)))
        .or_else(|| beyond(mixture.weights(), 1.0 + 1e-9).map(|value| ("weight", value)));
    match found {
        None => Ok(()),
        Some((what, value)) => Err(ModelError::Inconsistent(format!(
            "a {what} of its components is {value:e}, which is out of range"
        ))),
    }
}

/// An error if a distribution counts more rows than a pass can have.
fn check_strength(posterior: &Posterior) -> Result<(), ModelError> {
    const MAX_ROWS: f64 = 2e16;
    let of_components = posterior.components().iter().flat_map(|own| [("κ", own.kappa()), ("ν", own.nu())]);
    let of_weights = posterior.weights().concentrations().iter().map(|&a| ("a", a));
    match of_components.chain(of_weights).find(|(_, value)| !(*value <= MAX_ROWS)) {
        Some((what, value)) => Err(ModelError::Inconsistent(format!(
            "{what} of a component is {value:e}, which is out of range"
        ))),
        None => Ok(()),
    }
}

impl Model {
    /// An error where parameters are so large that scores or moments would not be finite.
    fn check_range(&self) -> Result<(), ModelError> {
        for candidate in &self.state.candidates {
            let learned = &candidate.learned;
            check_mixture(&learned.estimate())?;
            check_mixture(&candidate.mixture())?;
            if let LearnerState::Bayes { prior, posterior, .. } = learned {
                check_mixture(&prior.point_estimate())?;
                check_strength(prior)?;
                check_strength(posterior)?;
            }
        }
        Ok(())
    }

    /// An error where a count is so large that it would overflow in a resumed pass.
    fn check_counts(&self) -> Result<(), ModelError> {
        let too_large = |what: &str, count: u64| {
            Err(ModelError::Inconsistent(format!("it counts {count} {what}, and there can be 2^53 at most")))
        };
        let mut rows = vec![self.state.rows];
        rows.extend(self.lineage().map(|lineage| lineage.prior_rows));
        let mut guarded = Vec::new();
        for CandidateState { learned, prequential, health, .. } in &self.state.candidates {
            if prequential.rows > self.state.rows {
                return Err(ModelError::Inconsistent(format!(
                    "it says {} rows and has scored {}",
                    self.state.rows, prequential.rows
                )));
            }
            guarded.push(health.total());
            match learned {
                LearnerState::Bayes { .. } => {}
                LearnerState::Point { start_rows, rows: learned, .. } => {
                    if ![start_rows, learned].iter().all(|rows| rows.is_finite() && **rows >= 0.0) {
                        return Err(ModelError::Inconsistent("the number of its rows is none".into()));
                    }
                }
                LearnerState::Sharded(state) => {
                    rows.push(state.rows);
                    guarded.push(state.common_health.total());
                    guarded.extend(state.shards.iter().map(|shard| shard.health.total()));
                }
            }
        }
        if let Some(count) = rows.into_iter().find(|count| *count > MAX_ROWS) {
            return too_large("rows", count);
        }
        match guarded.into_iter().find(|count| *count > MAX_ROWS) {
            Some(count) => too_large("safeguards", count),
            None => Ok(()),
        }
    }
}

/// Whether a file begins as this version writes it, except for white space.
fn is_present_form(beginning: &[u8]) -> bool {
    let written = format!("{{\"format\":\"{FORMAT}\",\"version\":{VERSION},");
    let without_blanks = |bytes: &[u8]| -> Vec<u8> {
        let counts = bytes.iter().filter(|byte| !byte.is_ascii_whitespace());
        counts.take(written.len()).copied().collect()
    };
    without_blanks(beginning).starts_with(&without_blanks(written.as_bytes()))
}

/// Parses a text while it is read, so that the whole text is never in memory.
fn parse<T: DeserializeOwned>(text: &mut dyn Read) -> Result<T, ModelError> {
    let mut text = BufReader::with_capacity(1 << 16, text);
    let mut parser = serde_json::Deserializer::from_reader(&mut text);
    let parsed = T::deserialize(&mut parser).and_then(|found| parser.end().map(|()| found));
    parsed.map_err(|error| match ModelError::from(error) {
        // The parser does not report a number that is cut off as an early end.
        ModelError::Damaged(error) if error.is_syntax() && text.fill_buf().is_ok_and(<[u8]>::is_empty) => {
            ModelError::CutShort
        }
        other => other,
    })
}

/// Parses a file of an earlier version, one with members in another order, or some other file.
fn parse_other_form(from: &mut dyn Read) -> Result<Model, ModelError> {
    #[derive(Deserialize)]
    struct Heading {
        format: Option<String>,
        version: Option<u32>,
    }
    let mut text = Vec::new();
    from.read_to_end(&mut text)?;
    let heading: Heading = parse(&mut text.as_slice())?;
    match heading.format {
        None => return Err(ModelError::NotAModel { looks: LooksLike::Other }),
        Some(other) if other != FORMAT => return Err(ModelError::OtherFormat(other)),
        Some(_) => {}
    }
    let Some(version) = heading.version else {
        return Err(ModelError::Inconsistent("it does not say its version".into()));
    };
    match version {
        VERSION => parse(&mut text.as_slice()),
        later if later > VERSION => Err(ModelError::LaterVersion(later)),
        earlier if earlier < MIN_VERSION => Err(ModelError::EarlierVersion(earlier)),
        _ => {
            let old = parse(&mut text.as_slice())?;
            drop(text);
            // Parsed as a text again: the code to read a model from a 'Value' would be as large as that to read it from a text.
            parse(&mut upgraded(old).to_string().as_bytes())
        }
    }
}

/// What a file looks like that begins with this text.
fn looks_like(text: &[u8]) -> LooksLike {
    let first_line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    match std::str::from_utf8(first_line) {
        _ if text.is_empty() => LooksLike::Nothing,
        Ok(line) if line.contains([',', ';', '\t']) => LooksLike::Csv,
        _ => LooksLike::Other,
    }
}
