//! Rows that cannot be used.

use std::fmt;

use super::missing::MissingCounts;
use crate::text::count;

/// A row that cannot be used, where it is and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    /// The file.
    pub file: String,
    /// The line in the text, counted from 1, on which the row begins; `None` in other formats.
    pub line: Option<u64>,
    /// The row in the file, counted from 1 below the header.
    pub row: u64,
    /// What is wrong.
    pub problem: RowProblem,
}

/// The first missing value, where it is and how many there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingValue {
    /// The file.
    pub file: String,
    /// The line in the text, counted from 1, on which its row begins; `None` in other formats.
    pub line: Option<u64>,
    /// The row in the file, counted from 1 below the header.
    pub row: u64,
    /// The column's name.
    pub column: String,
    /// How many values each column lacks.
    pub counts: MissingCounts,
    /// Whether all rows are counted, and not only those up to this one, as from a pipe.
    pub counted_all: bool,
}

impl From<MissingValue> for BadRow {
    fn from(value: MissingValue) -> Self {
        let MissingValue { file, line, row, column, .. } = value;
        BadRow { file, line, row, problem: RowProblem::Missing { column } }
    }
}

/// What is wrong with a row.
#[allow(missing_docs)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowProblem {
    /// A cell holds no finite number.
    Cell {
        column: String,
        /// The cell's text, cut to 40 characters.
        cell: String,
        why: BadCell,
        /// Who chose the column.
        chosen: ChosenBy,
    },
    /// A value is missing.
    Missing { column: String },
    /// The row has too few or too many fields.
    Fields { found: usize, expected: usize },
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

/// Why a cell cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadCell {
    /// It is not a number.
    NotANumber,
    /// It is infinite or too large.
    NotFinite,
    /// It is a number with commas between its digits.
    Thousands,
    /// It is a date or a time.
    Date,
    /// It is out of the range of its circular column.
    OutOfRange,
    /// It is not a weight.
    Weight,
}

impl BadRow {
    /// Whether a column that a model was learned from has no number in this row.
    pub(super) fn is_in_model(&self) -> bool {
        matches!(self.problem, RowProblem::Cell { chosen: ChosenBy::Model, .. })
    }
}

/// Where a row is.
fn place(file: &str, line: Option<u64>, row: u64) -> String {
    match line {
        Some(line) => format!("'{file}', line {line}, row {row}"),
        None => format!("'{file}', row {row}"),
    }
}

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", place(&self.file, self.line, self.row), self.problem)
    }
}

impl fmt::Display for RowProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RowProblem::Cell { column, cell, why, .. } => match why {
                BadCell::NotANumber => write!(f, "'{cell}' in column '{column}' is not a number"),
                BadCell::NotFinite => {
                    write!(f, "'{cell}' in column '{column}' is not a finite number up to 1e150")
                }
                BadCell::Thousands => write!(f, "'{cell}' in column '{column}' has thousands separators"),
                BadCell::Date => write!(f, "'{cell}' in column '{column}' is a date or time, not a number"),
                BadCell::OutOfRange => {
                    write!(f, "{cell} is out of the range of the circular column '{column}'")
                }
                BadCell::Weight => write!(
                    f,
                    "{cell} in the weight column '{column}' is not a weight: it must be 0 or above, and at most 1e10"
                ),
            },
            RowProblem::Missing { column } => write!(f, "the value in column '{column}' is missing"),
            RowProblem::Fields { found, expected } => {
                write!(f, "the row has {} instead of {expected}", count(*found as u64, "field"))
            }
        }
    }
}

impl fmt::Display for MissingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MissingValue { file, line, row, column, counts, counted_all } = self;
        write!(f, "{}: the value in column '{column}' is missing; ", place(file, *line, *row))?;
        let rows = match counts.rows {
            rows if *counted_all => format!("among {}", count(rows, "row")),
            1 => "in the first row".to_string(),
            rows => format!("among the first {rows} rows"),
        };
        let rest = if *counted_all { "" } else { " (later rows are not counted)" };
        write!(f, "missing values {rows}: {counts}{rest}")
    }
}
