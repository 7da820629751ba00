//! The names of columns.

use serde::{Deserialize, Serialize};

/// Column names, and whether they come from a header.
///
/// ```
/// use gmm_bmm::ColumnNames;
/// assert_eq!(ColumnNames::from(["width", "height"]).names, ["width", "height"]);
/// assert_eq!(ColumnNames::unnamed(2).names, ["x1", "x2"]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnNames {
    /// The names in order.
    pub names: Vec<String>,
    /// Whether they come from a header.
    pub named: bool,
}

impl ColumnNames {
    /// Columns without a header: `x1`, `x2`, and so on.
    pub fn unnamed(count: usize) -> Self {
        ColumnNames { names: (1..=count).map(|i| format!("x{i}")).collect(), named: false }
    }

    /// How many columns.
    pub fn count(&self) -> usize {
        self.names.len()
    }
}

impl From<usize> for ColumnNames {
    fn from(count: usize) -> Self {
        ColumnNames::unnamed(count)
    }
}

impl From<Vec<String>> for ColumnNames {
    fn from(names: Vec<String>) -> Self {
        ColumnNames { names, named: true }
    }
}

impl From<&[&str]> for ColumnNames {
    fn from(names: &[&str]) -> Self {
        ColumnNames { names: names.iter().map(|name| name.to_string()).collect(), named: true }
    }
}

impl<const N: usize> From<[&str; N]> for ColumnNames {
    fn from(names: [&str; N]) -> Self {
        names.as_slice().into()
    }
}
