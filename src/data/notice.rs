use std::fmt;

use super::detect::Content;
use crate::remedy::Remedy;
use crate::words::{listed, quoted};

/// Something about a file and its columns that a user should know. Its text states the fact; [`Notice::remedies`] says
/// what can be done.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Columns without numbers are not read.
    LeftOut {
        /// Their names.
        columns: Vec<String>,
        /// What they hold instead.
        content: Content,
    },
    /// Columns that have a number added to their name, because an earlier column has the same.
    Renamed {
        /// Their new names.
        columns: Vec<String>,
    },
    /// Columns take the places of a model's columns of other names.
    MatchedByOrder {
        /// The columns, each with that of the model.
        pairs: Vec<(String, String)>,
    },
    /// The first line was taken for a header although it holds numbers.
    NumbersInHeader {
        /// The file.
        file: String,
    },
    /// A later file has no rows.
    HeaderOnly {
        /// The file.
        file: String,
    },
}

/// Names beyond these are counted.
const MOST_NAMED: usize = 20;

impl Notice {
    /// What can be done about it.
    pub fn remedies(&self) -> Vec<Remedy> {
        match self {
            Notice::NumbersInHeader { .. } => vec![Remedy::ReadFirstLineAsData],
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::LeftOut { columns, content } => {
                let (they, is) = if columns.len() == 1 { ("it", "is") } else { ("they", "are") };
                let hold = if columns.len() == 1 { "holds" } else { "hold" };
                write!(f, "{} left out: {they} ", named(columns))?;
                match content {
                    Content::Words | Content::Numbers => write!(f, "{hold} words, not numbers"),
                    Content::Dates => write!(
                        f,
                        "{hold} dates or times, not numbers; to learn from them, write them as numbers, such as days"
                    ),
                    Content::WithSign => write!(
                        f,
                        "{hold} numbers with a sign such as % or $; to learn from them, write them without it"
                    ),
                    Content::Nothing => write!(f, "{is} empty in the first rows"),
                }
            }
            Notice::Renamed { columns } => {
                let (one, has) =
                    if columns.len() == 1 { ("an earlier one", "has") } else { ("earlier ones", "have") };
                write!(f, "{} so called because {one} {has} the same name", named(columns))
            }
            Notice::MatchedByOrder { pairs } => {
                let pairs = pairs.iter().map(|(found, wanted)| format!("'{found}' for '{wanted}'"));
                write!(
                    f,
                    "columns are matched with the model's by their order: {}",
                    listed(pairs, MOST_NAMED)
                )
            }
            Notice::NumbersInHeader { file } => {
                write!(f, "the first line of '{file}' was taken for a header")
            }
            Notice::HeaderOnly { file } => write!(f, "'{file}' has only a header, no rows"),
        }
    }
}

/// `column 'a'`, `columns 'a', 'b' and 'c'`.
fn named(columns: &[String]) -> String {
    match columns {
        [one] => format!("column '{one}'"),
        [first @ .., last] if columns.len() <= MOST_NAMED => {
            format!("columns {} and '{last}'", quoted(first, MOST_NAMED))
        }
        many => format!("columns {}", quoted(many, MOST_NAMED)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_left_out_share_a_sentence() {
        let text = |columns: &[&str]| {
            let columns = columns.iter().map(|name| name.to_string()).collect();
            Notice::LeftOut { columns, content: Content::Words }.to_string()
        };
        assert_eq!(text(&["a"]), "column 'a' left out: it holds words, not numbers");
        assert_eq!(text(&["a", "b", "c"]), "columns 'a', 'b' and 'c' left out: they hold words, not numbers");
        assert!(text(&["a"; 23]).contains("'a' and 3 more left out"));
    }
}
