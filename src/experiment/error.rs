use std::io;
use std::path::PathBuf;

use crate::learn::LearnError;
use crate::remedy::Remedy;

/// Why a comparison cannot be run or read.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// A plan that makes no sense.
    #[error("{0}")]
    Plan(String),
    /// A learner that failed.
    #[error("{contender} with K = {k} on fold {fold} of '{data}'")]
    Learn {
        data: String,
        /// The fold, from 1.
        fold: usize,
        contender: String,
        k: usize,
        source: LearnError,
    },
    /// Records of another comparison in the same folder.
    #[error("the {what} differs: {theirs} in the records, {ours} now")]
    OtherSettings { what: String, theirs: String, ours: String },
    /// A folder without records.
    #[error("there are no records in '{}': name a folder that a comparison was run into", folder.display())]
    NoRecords { folder: PathBuf },
    /// Packed records, which nothing can be added to.
    #[error("'{}' has packed records, and no further cells can be added to them: name another folder", folder.display())]
    Packed { folder: PathBuf },
    /// A file in the place of a folder.
    #[error("'{}' is a file, and results need a folder: name another", path.display())]
    NotAFolder { path: PathBuf },
    /// Records that another run is writing to.
    #[error("another comparison is writing to '{}'", path.display())]
    InUse { path: PathBuf },
    /// A folder or file that cannot be used.
    #[error("cannot use '{}'", path.display())]
    File { path: PathBuf, source: io::Error },
    /// A line that is not a record.
    #[error(
        "'{}' line {line} is not a record: {why}; delete the line to have its cell run again",
        path.display()
    )]
    BadRecord {
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        why: String,
    },
}

impl ExperimentError {
    /// What can be done about it, where the text does not say it.
    pub fn remedies(&self) -> Vec<Remedy> {
        match self {
            ExperimentError::OtherSettings { .. } => {
                vec![Remedy::UseOtherFolder, Remedy::UseSettingsOfRecords]
            }
            ExperimentError::InUse { .. } => vec![Remedy::WaitForOtherRun, Remedy::UseOtherFolder],
            _ => Vec::new(),
        }
    }
}
