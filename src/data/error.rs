//! What can go wrong while data are opened and read.

mod remedies;

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::bad_row::{BadRow, MissingValue};
use super::catalogue::DataSet;
use super::did_you_mean::columns_there_are;
use super::notice::Notice;
use crate::text::{count, quoted};

/// What can go wrong while data are opened and read. The text names the file and states the fact;
/// [`DataError::remedies`] says what else can be done.
#[allow(missing_docs)]
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DataError {
    /// No input was given.
    #[error("no input was given")]
    NoInputs,
    /// Standard input was named twice.
    #[error("standard input was named more than once, and it can be read only once")]
    StdinTwice,
    /// Only files can be dealt to shards.
    #[error("'{0}' cannot be dealt to shards, which is for files")]
    NotDealt(String),
    /// A compressed file cannot be read from the middle.
    #[error(
        "'{file}' is compressed and cannot be cut into byte ranges for {shares} shards from {}",
        count(*files as u64, "file")
    )]
    CannotCut { file: String, files: usize, shares: usize },
    /// There is no such file.
    #[error("'{0}' does not exist")]
    Missing(String),
    /// The path is a directory.
    #[error("'{0}' is a directory")]
    Directory(String),
    /// The file cannot be opened.
    #[error("'{file}' cannot be opened: {source}")]
    Unreadable { file: String, source: io::Error },
    /// There is nothing in the file.
    #[error("'{0}' is empty: it needs at least one row of numbers")]
    Empty(String),
    /// There is a header and nothing below it.
    #[error("'{0}' has only a header, no rows: it needs at least one row of numbers")]
    HeaderOnly(String),
    /// The file is UTF-16 text.
    #[error("'{0}' is UTF-16 text")]
    Utf16(String),
    /// The file is not text.
    #[error("'{file}' looks binary ({looks})")]
    Binary { file: String, looks: &'static str },
    /// The file is not text, and its format is known but cannot be read.
    #[error("'{file}' cannot be read as {format}: {what}")]
    Format { file: String, format: &'static str, what: String },
    /// The program was built without what reads this format.
    #[error("'{file}' is {format}, which this build cannot read")]
    NeedsFeature { file: String, format: &'static str, feature: &'static str },
    /// A delimiter or a header is set for a file that has neither.
    #[error("'{file}' is {format}: a delimiter or a header line cannot be set for it")]
    NotText { file: String, format: &'static str },
    /// A file cannot be read while it is written.
    #[error("'{file}' is {format}, which cannot be followed while it is written")]
    NotFollowed { file: String, format: &'static str },
    /// A column that is to be read holds no numbers.
    #[error("'{file}': column '{column}' does not hold numbers but {content}")]
    NotNumbers { file: String, column: String, content: &'static str },
    /// The text of a column cannot be kept.
    #[error(
        "'{file}': the values of {} {} cannot be written as text",
        if columns.len() == 1 { "column" } else { "columns" },
        quoted(columns, 20)
    )]
    NoText { file: String, columns: Vec<String> },
    /// The file is in ARFF or KEEL format.
    #[error("'{0}' looks like an ARFF or KEEL file")]
    Arff(String),
    /// The file is JSON.
    #[error("'{0}' looks like JSON, not rows of numbers")]
    Json(String),
    /// The file is a model, not data.
    #[error("'{0}' is a model file, not rows of data")]
    Model(String),
    /// Numbers are written with decimal commas.
    #[error(
        "'{file}': column '{column}' holds '{cell}', a number with a decimal comma where a point is needed"
    )]
    DecimalComma { file: String, column: String, cell: String },
    /// Numbers are written with commas between their digits.
    #[error(
        "'{file}': column '{column}' holds '{cell}', a number with thousands separators or a decimal comma"
    )]
    ThousandsComma { file: String, column: String, cell: String },
    /// The delimiter asked for cannot delimit numbers.
    #[error("{0:?} cannot be the delimiter, which is a comma, semicolon, tab, '|' or blank")]
    BadDelimiter(char),
    /// The header and the rows differ in width.
    #[error(
        "'{file}': the first line has {} but most rows have {rows}",
        count(*header as u64, "field")
    )]
    HeaderWidth { file: String, header: usize, rows: usize },
    /// A chosen or dropped column is not there.
    #[error(
        "{}there is no column '{wanted}': {}",
        file.as_ref().map_or(String::new(), |file| format!("'{file}': ")),
        columns_there_are(wanted, nearest.as_deref(), columns)
    )]
    UnknownColumn {
        /// The file, if the names are those of a file.
        file: Option<String>,
        wanted: String,
        /// A name so near to it that it may be meant.
        nearest: Option<String>,
        columns: Vec<String>,
    },
    /// A column number is out of range, or a range runs backwards.
    #[error("'{wanted}' is not a column number or range here: columns are numbered 1 to {count}")]
    ColumnNumber { wanted: String, count: usize },
    /// Several columns have the name.
    #[error("columns {} are all called '{wanted}'", joined(numbers, ", "))]
    AmbiguousColumn {
        wanted: String,
        /// The columns' numbers, from 1.
        numbers: Vec<usize>,
    },
    /// Every column is to be left out.
    #[error("'{0}': no columns are left to read, because all are to be left out")]
    AllColumnsDropped(String),
    /// No column holds numbers.
    #[error("'{file}': no column holds numbers in the first rows ({})", joined(left_out, "; "))]
    NoNumbers {
        file: String,
        left_out: Vec<Notice>,
        /// Whether the file is text, whose delimiter may be another one.
        is_text: bool,
    },
    /// A later file lacks a column of the first.
    #[error(
        "'{file}' has no column '{column}', which the first input has: every input needs the same columns"
    )]
    MissingColumn { file: String, column: String },
    /// The data lack a column that a model was learned from.
    #[error("'{file}' has no column '{column}', which the model was learned from")]
    ExpectedColumn { file: String, column: String },
    /// The data have another number of columns than a model was learned from.
    #[error(
        "'{file}' gives {} of numbers where the model was learned from {expected}",
        count(*found as u64, "column")
    )]
    ColumnCount { file: String, found: usize, expected: usize },
    /// A column that a model was learned from is chosen for another one.
    #[error(
        "'{file}': '{column}' is chosen in the place of the model's '{place}', but the model has a column '{column}' of its own"
    )]
    MisplacedColumn {
        file: String,
        column: String,
        /// The model's column in its place.
        place: String,
    },
    /// A column is to be left out that a model was learned from.
    #[error("the model was learned from column '{0}', so it cannot be left out")]
    NeededColumn(String),
    /// Several columns are named as the weight.
    #[error("'{0}' are several columns, and a row has one weight")]
    SeveralWeights(String),
    /// A column is declared circular that is not read.
    #[error("column '{0}' is declared circular, but it is not among the columns that are read")]
    CircularNotRead(String),
    /// A column is declared circular that is not circular, or has another range, in the model.
    #[error("column '{0}' is not circular with this range in the model, which knows its circular columns")]
    NotCircularInModel(String),
    /// A later file has no header although the first has.
    #[error("'{0}' has no names of columns, but the first input has")]
    HeaderMissing(String),
    /// A later file has a header although the first has none.
    #[error("'{0}' has names of columns, but the first input has none")]
    HeaderUnexpected(String),
    /// A later file has another number of fields.
    #[error(
        "'{file}' has {} in a row, but the first input has {expected}",
        count(*found as u64, "field")
    )]
    FieldCount { file: String, found: usize, expected: usize },
    /// A row cannot be used.
    #[error("{0}{need}", need = if .0.is_in_model() { ", and the model needs the column" } else { "" })]
    BadRow(Box<BadRow>),
    /// A value is missing.
    #[error("{0}")]
    MissingValue(Box<MissingValue>),
    /// The compressed data end early or are damaged.
    #[error("'{file}': the gzip data are truncated or corrupt after row {row} ({source})")]
    Gzip {
        file: String,
        /// The last row that was whole.
        row: u64,
        source: io::Error,
    },
    /// Reading failed half-way.
    #[error("'{file}': reading failed after row {row}: {source}")]
    Read {
        file: String,
        /// The last row that was whole.
        row: u64,
        source: io::Error,
    },
    /// A field or a row is too large.
    #[error("'{file}': the row after row {row} has {what}")]
    TooLarge {
        file: String,
        /// The last row that was whole.
        row: u64,
        /// What exceeds which limit.
        what: &'static str,
    },
    /// The text ends inside a quotation, or a row cannot be used because a quotation in it goes on over several lines.
    #[error(
        "'{file}', line {line}: {}",
        if *open {
            format!("a quoted cell starting here is not closed in the {} to the end", count(*lines, "line"))
        } else {
            format!("a quoted cell starting here spans {}, so the record is not numeric", count(*lines, "line"))
        }
    )]
    Quotation {
        file: String,
        /// The line, counted from 1, on which the row begins.
        line: u64,
        /// The lines up to the end of the quotation or of the file.
        lines: u64,
        /// Whether the text ends inside the quotation.
        open: bool,
    },
    /// The same in a part of a text, which may end inside a quoted cell because it was cut there.
    #[error(
        "'{file}', line {line}: a quoted cell starting here is not closed in this part of the file, or the record is not \
         numeric; a file with line ends in quoted cells cannot be cut into parts"
    )]
    QuotationInPart {
        /// The file, and where the part begins.
        file: String,
        /// The line of the part, counted from 1.
        line: u64,
    },
    /// A pattern of file names is malformed.
    #[error("'{pattern}' is not a pattern: {reason}")]
    BadPattern { pattern: String, reason: String },
    /// A pattern matches no file.
    #[error("no file matches '{0}'")]
    NoMatch(String),
    /// A name is neither that of a file nor that of a set in the catalogue.
    #[error(
        "'{name}' is neither a file nor a set of the catalogue{}",
        nearest.as_ref().map_or(String::new(), |name| format!(" (did you mean '{name}'?)"))
    )]
    UnknownName { name: String, nearest: Option<String> },
    /// The file of a set in the catalogue is not there.
    #[error("'{}' is a set of the catalogue, but '{}' does not exist", set.name, file.display())]
    SetNotThere {
        set: &'static DataSet,
        /// Where its file should be.
        file: PathBuf,
    },
}

impl DataError {
    /// The error in a file that is not text.
    #[cfg(feature = "csv")]
    pub(super) fn not_in_text(self) -> DataError {
        match self {
            DataError::NoNumbers { file, left_out, .. } => {
                DataError::NoNumbers { file, left_out, is_text: false }
            }
            other => other,
        }
    }

    /// The error in a part of a text.
    #[cfg(feature = "csv")]
    pub(super) fn in_part(self) -> DataError {
        match self {
            DataError::Quotation { file, line, .. } => DataError::QuotationInPart { file, line },
            other => other,
        }
    }

    /// The error with the file in which a column is not found.
    #[cfg(feature = "csv")]
    pub(super) fn in_file(self, name: &str) -> DataError {
        match self {
            DataError::UnknownColumn { wanted, nearest, columns, .. } => {
                DataError::UnknownColumn { file: Some(name.to_string()), wanted, nearest, columns }
            }
            other => other,
        }
    }
}

fn joined(items: &[impl ToString], between: &str) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
}
