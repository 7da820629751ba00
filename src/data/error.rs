use std::fmt;
use std::io;

use thiserror::Error;

use crate::text::count;

/// What can go wrong while data are opened and read. Every message names the file and says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DataError {
    /// No input was given.
    #[error("no input was given: name at least one file, or '-' for standard input")]
    NoInputs,
    /// Standard input was named twice.
    #[error("standard input was named more than once: it can be read only once, so name '-' once")]
    StdinTwice,
    /// Only files can be dealt to shares.
    #[error("'{file}' cannot be dealt to shares, which is for files: write the rows to a file first")]
    NotDealt {
        /// What it is.
        file: String,
    },
    /// A compressed file cannot be read from the middle.
    #[error(
        "'{file}' is compressed and cannot be cut into byte ranges for {shares} shares of {}: unpack it, \
         give more files, or use at most {files}",
        count(*files as u64, "file")
    )]
    CannotCut {
        /// The file.
        file: String,
        /// How many files there are.
        files: usize,
        /// How many shares there should be.
        shares: usize,
    },
    /// There is no such file.
    #[error("'{file}' does not exist: check the path")]
    Missing {
        /// The file.
        file: String,
    },
    /// The path is a directory.
    #[error("'{file}' is a directory: name the files in it")]
    Directory {
        /// The path.
        file: String,
    },
    /// The file cannot be opened.
    #[error("'{file}' cannot be opened: {source}")]
    Unreadable {
        /// The file.
        file: String,
        /// What the system says.
        source: io::Error,
    },
    /// There is nothing in the file.
    #[error("'{file}' is empty: it needs at least one row of numbers")]
    Empty {
        /// The file.
        file: String,
    },
    /// There is a header and nothing below it.
    #[error("'{file}' has only a header, no rows: it needs at least one row of numbers")]
    HeaderOnly {
        /// The file.
        file: String,
    },
    /// The file is UTF-16 text.
    #[error("'{file}' is UTF-16 text: convert it first, for instance with 'iconv -f UTF-16 -t UTF-8'")]
    Utf16 {
        /// The file.
        file: String,
    },
    /// The file is not text.
    #[error("'{file}' looks binary ({looks}): give delimited text, plain or compressed with gzip")]
    Binary {
        /// The file.
        file: String,
        /// What it looks like.
        looks: &'static str,
    },
    /// The file is in ARFF or KEEL format.
    #[error(
        "'{file}' looks like an ARFF or KEEL file: strip the lines that begin with '@' or '%' first, \
         for instance with \"grep -v '^[@%]'\""
    )]
    Arff {
        /// The file.
        file: String,
    },
    /// The file is JSON.
    #[error("'{file}' looks like JSON, not rows of cells: export it as CSV first")]
    Json {
        /// The file.
        file: String,
    },
    /// The file is a model, not data.
    #[error(
        "'{file}' is a model file, not rows of data: 'gmm-bmm show' prints it, and 'gmm-bmm eval' takes it as --model"
    )]
    Model {
        /// The file.
        file: String,
    },
    /// Numbers are written with decimal commas.
    #[error(
        "'{file}': column '{column}' holds '{cell}', a number with a decimal comma: write a decimal point \
         instead (if the file has no other commas{}), or leave the column out with --drop '{column}'",
        if cell.contains('.') { " and points: tr -d . | tr ',' '.'" } else { ": tr ',' '.'" }
    )]
    DecimalComma {
        /// The file.
        file: String,
        /// The column.
        column: String,
        /// A cell of it.
        cell: String,
    },
    /// Numbers are written with commas between their digits.
    #[error(
        "'{file}': column '{column}' holds '{cell}', a number with thousands separators: write it without them \
         (or, if that is a decimal comma, with a point), or leave the column out with --drop '{column}'"
    )]
    ThousandsComma {
        /// The file.
        file: String,
        /// The column.
        column: String,
        /// A cell of it.
        cell: String,
    },
    /// The delimiter asked for cannot delimit numbers.
    #[error("{0:?} cannot be the delimiter: use a comma, semicolon, tab, '|' or blank")]
    BadDelimiter(char),
    /// The header and the rows differ in width.
    #[error(
        "'{file}': the first line has {} but most rows have {rows}: make the header name \
         every column, and remove any lines above it",
        count(*header as u64, "field")
    )]
    HeaderWidth {
        /// The file.
        file: String,
        /// Fields in the header.
        header: usize,
        /// Fields in most sample rows.
        rows: usize,
    },
    /// A chosen or dropped column is not there.
    #[error("there is no column '{wanted}'{hint}")]
    UnknownColumn {
        /// What was asked for.
        wanted: String,
        /// The nearest name and the names there are.
        hint: String,
    },
    /// A column number is out of range, or a range runs backwards.
    #[error("'{wanted}' is not a column number or range here: columns are numbered 1 to {count}")]
    ColumnNumber {
        /// What was asked for.
        wanted: String,
        /// How many columns there are.
        count: usize,
    },
    /// A name stands for several columns.
    #[error("the name '{wanted}' stands for columns {numbers}: choose by number instead")]
    AmbiguousColumn {
        /// What was asked for.
        wanted: String,
        /// The columns' numbers.
        numbers: String,
    },
    /// Nothing is left to read.
    #[error("'{file}': no columns are left to read: {why}")]
    NoColumns {
        /// The file.
        file: String,
        /// How it came to that, with a remedy.
        why: String,
    },
    /// A later file lacks a column of the first.
    #[error(
        "'{file}' has no column '{column}', which the first input has: every input needs the same columns"
    )]
    MissingColumn {
        /// The later file.
        file: String,
        /// The column.
        column: String,
    },
    /// The data lack a column that a model was learned from.
    #[error(
        "'{file}' has no column '{column}', which the model was learned from: add it, or name the columns \
         to use in the model's order with --columns"
    )]
    ExpectedColumn {
        /// The file.
        file: String,
        /// The column.
        column: String,
    },
    /// The data have another number of columns than a model was learned from.
    #[error(
        "'{file}' gives {} of numbers where the model was learned from {expected}: choose them \
         with --columns or --drop",
        count(*found as u64, "column")
    )]
    ColumnCount {
        /// The file.
        file: String,
        /// Columns found.
        found: usize,
        /// Columns of the model.
        expected: usize,
    },
    /// A column that a model was learned from is chosen for another one.
    #[error(
        "'{file}': --columns puts '{column}' in the place of the model's '{place}', but the model has a column '{column}' of \
         its own: give the model's columns, or others in its order"
    )]
    MisplacedColumn {
        /// The file.
        file: String,
        /// The column that is chosen.
        column: String,
        /// The model's column in its place.
        place: String,
    },
    /// A column is to be left out that a model was learned from.
    #[error("the model was learned from column '{column}', so --drop cannot leave it out")]
    NeededColumn {
        /// The column.
        column: String,
    },
    /// A later file has no header although the first has.
    #[error("'{file}' has no header, but the first input has one: give it the same header line")]
    HeaderMissing {
        /// The later file.
        file: String,
    },
    /// A later file has a header although the first has none.
    #[error("'{file}' has a header, but the first input has none: give every input a header, or none")]
    HeaderUnexpected {
        /// The later file.
        file: String,
    },
    /// A later file has another number of fields.
    #[error(
        "'{file}' has {} in a row, but the first input has {expected}: give every input the same columns",
        count(*found as u64, "field")
    )]
    FieldCount {
        /// The later file.
        file: String,
        /// Its fields.
        found: usize,
        /// The first input's fields.
        expected: usize,
    },
    /// A row cannot be used.
    #[error("{0}; {remedy}", remedy = .0.remedy())]
    BadRow(Box<BadRow>),
    /// The compressed data end early or are damaged.
    #[error(
        "'{file}': the gzip data are truncated or corrupt after row {row}: fetch or compress the file anew ({source})"
    )]
    Gzip {
        /// The file.
        file: String,
        /// The last row that was whole.
        row: u64,
        /// What the decoder says.
        source: io::Error,
    },
    /// Reading failed half-way.
    #[error("'{file}': reading failed after row {row}: {source}")]
    Read {
        /// The file.
        file: String,
        /// The last row that was whole.
        row: u64,
        /// What the system says.
        source: io::Error,
    },
    /// A field or a record is beyond all measure.
    #[error(
        "'{file}': the record after row {row} has {what}: check the file for an unclosed quote or missing line ends"
    )]
    TooLarge {
        /// The file.
        file: String,
        /// The last row that was whole.
        row: u64,
        /// What exceeds which limit.
        what: &'static str,
    },
}

/// A row that cannot be used, where it is and why. Its text has no remedy, [`DataError::BadRow`] adds one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    /// The file.
    pub file: String,
    /// The line in the file, counted from 1, on which the row begins.
    pub line: u64,
    /// The row in the file, counted from 1 below the header.
    pub row: u64,
    /// What is wrong.
    pub problem: RowProblem,
}

/// What is wrong with a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowProblem {
    /// A cell holds no finite number.
    Cell {
        /// The column's name.
        column: String,
        /// The cell's text, cut to 40 characters.
        cell: String,
        /// Why the cell is no use.
        why: BadCell,
        /// Who chose the column.
        chosen: ChosenBy,
    },
    /// The row has too few or too many fields.
    Fields {
        /// How many it has.
        found: usize,
        /// How many it should have.
        expected: usize,
    },
}

/// Who chose a column, and so whether it can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChosenBy {
    /// It holds numbers.
    Content,
    /// The user named it.
    User,
    /// A model was learned from it.
    Model,
}

/// Why a cell is no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadCell {
    /// There is nothing in it.
    Empty,
    /// It is no number.
    NotANumber,
    /// It is NaN, infinite, or too large for a double.
    NotFinite,
    /// It is a number with commas between its digits.
    Thousands,
    /// It is a date or a time.
    Date,
}

impl BadRow {
    fn remedy(&self) -> String {
        match &self.problem {
            RowProblem::Cell { column, chosen, .. } => match chosen {
                ChosenBy::Content => format!(
                    "fix the cell, leave the column out with --drop '{column}', or skip such rows with --bad-rows skip"
                ),
                ChosenBy::User => {
                    "fix the cell, name other columns with --columns, or skip such rows with --bad-rows skip"
                        .to_string()
                }
                ChosenBy::Model => {
                    "fix the cell, since the model needs the column, or skip such rows with --bad-rows skip"
                        .to_string()
                }
            },
            RowProblem::Fields { .. } => "fix the row, or skip such rows with --bad-rows skip".to_string(),
        }
    }
}

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}', line {}, row {}: ", self.file, self.line, self.row)?;
        match &self.problem {
            RowProblem::Cell { column, why: BadCell::Empty, .. } => {
                write!(f, "the cell in column '{column}' is empty")
            }
            RowProblem::Cell { column, cell, why: BadCell::NotANumber, .. } => {
                write!(f, "'{cell}' in column '{column}' is not a number")
            }
            RowProblem::Cell { column, cell, why: BadCell::NotFinite, .. } => {
                write!(f, "'{cell}' in column '{column}' is not a finite number up to 1e150")
            }
            RowProblem::Cell { column, cell, why: BadCell::Thousands, .. } => {
                write!(f, "'{cell}' in column '{column}' has thousands separators")
            }
            RowProblem::Cell { column, cell, why: BadCell::Date, .. } => {
                write!(f, "'{cell}' in column '{column}' is a date or time, not a number")
            }
            RowProblem::Fields { found, expected } => {
                write!(f, "the row has {} instead of {expected}", count(*found as u64, "field"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_row_says_where_it_is_and_its_error_adds_the_remedy() {
        let row = |chosen| {
            let (column, cell) = ("Height".into(), "tall".into());
            let problem = RowProblem::Cell { column, cell, why: BadCell::NotANumber, chosen };
            BadRow { file: "a.csv".into(), line: 8, row: 7, problem }
        };
        let error = |chosen| DataError::BadRow(Box::new(row(chosen))).to_string();
        assert_eq!(
            row(ChosenBy::Content).to_string(),
            "'a.csv', line 8, row 7: 'tall' in column 'Height' is not a number"
        );
        assert!(error(ChosenBy::Content).contains("--drop 'Height'"));
        assert!(error(ChosenBy::User).contains("name other columns with --columns"));
        assert!(!error(ChosenBy::Model).contains("--drop"));
    }
}
