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
        /// The data set.
        data: String,
        /// The fold, from 1.
        fold: usize,
        /// The learner.
        contender: String,
        /// Components.
        k: usize,
        /// What it said.
        source: LearnError,
    },
    /// Records of another comparison in the same folder.
    #[error("the {what} differs: {theirs} in the records, {ours} now")]
    OtherSettings {
        /// What differs.
        what: String,
        /// In the records.
        theirs: String,
        /// In the plan.
        ours: String,
    },
    /// A folder without records.
    #[error("there are no records in '{}': name a folder that a comparison was run into", folder.display())]
    NoRecords {
        /// The folder.
        folder: PathBuf,
    },
    /// Packed records, which nothing can be added to.
    #[error("'{}' has packed records, and no further cells can be added to them: name another folder", folder.display())]
    Packed {
        /// The folder.
        folder: PathBuf,
    },
    /// A file in the place of a folder.
    #[error("'{}' is a file, and results need a folder: name another", path.display())]
    NotAFolder {
        /// The file.
        path: PathBuf,
    },
    /// Records that another run is writing to.
    #[error("another comparison is writing to '{}'", path.display())]
    InUse {
        /// The file of records.
        path: PathBuf,
    },
    /// A folder or file that cannot be used.
    #[error("cannot use '{}'", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line that is not a record.
    #[error(
        "'{}' line {line} is not a record: {why}; delete the line to have its cell run again",
        path.display()
    )]
    BadRecord {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// What is wrong.
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
