use serde::{Deserialize, Serialize};

use super::circular::Circular;

/// The names of a table's columns, and whether they come from a header.
///
/// A number of columns, or names, convert into it:
///
/// ```
/// use gmm_bmm::data::ColumnNames;
///
/// assert_eq!(ColumnNames::from(2).names, ["c1", "c2"]);
/// assert_eq!(ColumnNames::from(["x", "y"]).names, ["x", "y"]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnNames {
    /// One name per column, in order.
    pub names: Vec<String>,
    /// Whether the names come from a header, or from a user; otherwise they only number the columns.
    pub named: bool,
    /// Columns of the data that are circular. Each takes two columns: its cosine and its sine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub circular: Vec<Circular>,
}

impl ColumnNames {
    /// The names of columns that have a header.
    pub fn named(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        ColumnNames { names: names.into_iter().map(Into::into).collect(), named: true, circular: Vec::new() }
    }

    /// The names of `count` columns without a header: `c1`, `c2` and so on.
    pub fn unnamed(count: usize) -> Self {
        let names = (0..count).map(ColumnNames::by_position).collect();
        ColumnNames { names, named: false, circular: Vec::new() }
    }

    /// The name of column `position` (from 0) if it has none of its own.
    pub(crate) fn by_position(position: usize) -> String {
        format!("c{}", position + 1)
    }

    /// How many columns there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no columns.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// That number of columns, without names.
impl From<usize> for ColumnNames {
    fn from(count: usize) -> Self {
        ColumnNames::unnamed(count)
    }
}

impl From<Vec<String>> for ColumnNames {
    fn from(names: Vec<String>) -> Self {
        ColumnNames::named(names)
    }
}

impl From<&[&str]> for ColumnNames {
    fn from(names: &[&str]) -> Self {
        ColumnNames::named(names.iter().copied())
    }
}

impl<const N: usize> From<[&str; N]> for ColumnNames {
    fn from(names: [&str; N]) -> Self {
        ColumnNames::named(names)
    }
}
