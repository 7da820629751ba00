use std::fmt;

use crate::remedy::Remedy;
use crate::text::{count, listed, quoted};

/// At most this many columns are named in a sentence.
const MAX_NAMED: usize = 20;

/// Something about the data that was decided while they were opened and read, and that a user should know.
///
/// Its text states the fact; [`Notice::remedies`] says what can be done.
#[allow(missing_docs)]
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// These columns are not read, because of what their first rows hold.
    LeftOut { columns: Vec<String>, content: ColumnContent },
    /// These columns got a new name, because an earlier column has the same.
    Renamed(Vec<String>),
    /// Columns are matched by their order with columns of other names that were expected.
    MatchedByOrder(Vec<(String, String)>),
    /// The first line is read as a header although some of its cells are numbers.
    HeaderWithNumbers(String),
    /// A file after the first has a header and no rows.
    HeaderOnly(String),
    /// A quoted cell outside the chosen columns spans many lines, or holds lines that may be rows.
    LongCell {
        file: String,
        /// The line, counted from 1, on which its row begins.
        line: u64,
        /// The row, counted from 1.
        row: u64,
        column: String,
        lines: u64,
    },
}

/// What the cells in the first rows of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnContent {
    /// Some are numbers.
    Numbers,
    /// Dates and times.
    Dates,
    /// Numbers with a sign of percent or of a currency.
    WithSign,
    /// Words.
    Words,
    /// True and false.
    Booleans,
    /// Lists, records or other values that are not numbers.
    Other,
    /// All are empty.
    Nothing,
}

impl ColumnContent {
    /// The contents for which a column is left out.
    #[cfg(feature = "csv")]
    pub(super) const LEFT_OUT: [ColumnContent; 6] = [
        ColumnContent::Words,
        ColumnContent::Dates,
        ColumnContent::WithSign,
        ColumnContent::Booleans,
        ColumnContent::Other,
        ColumnContent::Nothing,
    ];
}

impl Notice {
    /// What can be done about it.
    pub fn remedies(&self) -> Vec<Remedy> {
        match self {
            Notice::HeaderWithNumbers(_) => vec![Remedy::ReadFirstLineAsData],
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::LeftOut { columns, content } => {
                let (holds, is) =
                    if columns.len() == 1 { ("it holds", "it is") } else { ("they hold", "they are") };
                let why = match content {
                    ColumnContent::Numbers => format!("{holds} numbers"),
                    ColumnContent::Words => format!("{holds} words, not numbers"),
                    ColumnContent::Dates => format!(
                        "{holds} dates or times, not numbers; to learn from them, write them as numbers, such as days"
                    ),
                    ColumnContent::WithSign => format!(
                        "{holds} numbers with a sign such as % or $; to learn from them, write them without it"
                    ),
                    ColumnContent::Booleans => {
                        format!("{holds} true and false; to learn from them, write them as 1 and 0")
                    }
                    ColumnContent::Other => format!("{holds} lists or other values that are not numbers"),
                    ColumnContent::Nothing => format!("{is} empty in the first rows"),
                };
                write!(f, "{} left out: {why}", columns_named(columns))
            }
            Notice::Renamed(columns) => {
                let (column, why) = match columns.len() {
                    1 => ("column", "an earlier column has that name"),
                    _ => ("columns", "earlier columns have these names"),
                };
                write!(f, "{column} renamed to {}: {why}", quoted(columns, MAX_NAMED))
            }
            Notice::MatchedByOrder(pairs) => {
                let pairs = pairs.iter().map(|(found, expected)| format!("'{found}' for '{expected}'"));
                let pairs = listed(pairs, MAX_NAMED);
                write!(f, "columns are matched with the model's by their order: {pairs}")
            }
            Notice::HeaderWithNumbers(file) => {
                write!(f, "the first line of '{file}' was taken for a header")
            }
            Notice::HeaderOnly(file) => write!(f, "'{file}' has only a header, no rows"),
            Notice::LongCell { file, line, row, column, lines } => write!(
                f,
                "'{file}', line {line}, row {row}: the quoted cell in column '{column}' spans {}; if a quotation mark in \
                 it is a stray one, rows are lost",
                count(*lines, "line")
            ),
        }
    }
}

/// `column 'a'`, `columns 'a', 'b' and 'c'`, or `columns 'a', 'b' and 3 more`.
fn columns_named(columns: &[String]) -> String {
    match columns {
        [column] => format!("column '{column}'"),
        [first @ .., last] if columns.len() <= MAX_NAMED => {
            format!("columns {} and '{last}'", quoted(first, MAX_NAMED))
        }
        _ => format!("columns {}", quoted(columns, MAX_NAMED)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_left_out_share_a_sentence() {
        let text = |columns: &[&str]| {
            let columns = columns.iter().map(|name| name.to_string()).collect();
            Notice::LeftOut { columns, content: ColumnContent::Nothing }.to_string()
        };
        assert_eq!(text(&["a"]), "column 'a' left out: it is empty in the first rows");
        assert_eq!(
            text(&["a", "b", "c"]),
            "columns 'a', 'b' and 'c' left out: they are empty in the first rows"
        );
        assert!(text(&["a"; 23]).contains("'a' and 3 more left out"));
    }
}
