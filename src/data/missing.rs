use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text::listed;

/// How many values each column lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingCounts {
    /// The columns.
    pub columns: Vec<String>,
    /// The missing values of each column.
    pub values: Vec<u64>,
    /// The rows that were counted. Bad rows are not.
    pub rows: u64,
}

impl MissingCounts {
    /// No rows of these columns.
    pub fn new(columns: &[String]) -> MissingCounts {
        MissingCounts { columns: columns.to_vec(), values: vec![0; columns.len()], rows: 0 }
    }

    /// Adds rows, in which missing values are NaN.
    pub fn add_rows(&mut self, values: &[f64]) {
        for row in values.chunks_exact(self.values.len().max(1)) {
            self.rows += 1;
            self.values
                .iter_mut()
                .zip(row)
                .for_each(|(missing, value)| *missing += u64::from(value.is_nan()));
        }
    }

    /// Adds the counts of other rows of the same columns.
    pub fn add(&mut self, other: &MissingCounts) {
        self.rows += other.rows;
        self.values.iter_mut().zip(&other.values).for_each(|(missing, more)| *missing += more);
    }

    /// Whether a value is missing.
    pub fn is_any(&self) -> bool {
        self.values.iter().any(|missing| *missing > 0)
    }

    /// The columns that lack values, with how many.
    pub fn incomplete(&self) -> impl Iterator<Item = (&str, u64)> {
        let columns = self.columns.iter().map(String::as_str).zip(self.values.iter().copied());
        columns.filter(|(_, missing)| *missing > 0)
    }
}

impl fmt::Display for MissingCounts {
    /// The counts by column, without the number of rows: `12 in 'x1', 1204 in 'x3'`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX: usize = 20;
        let columns: Vec<String> =
            self.incomplete().map(|(column, missing)| format!("{missing} in '{column}'")).collect();
        f.write_str(&listed(columns.into_iter(), MAX))
    }
}

/// What a user calls a missing value, besides the usual words.
#[cfg(feature = "csv")]
#[derive(Debug, Clone, Default)]
pub(super) struct MissingMarks {
    words: Vec<String>,
    numbers: Vec<f64>,
}

#[cfg(feature = "csv")]
impl MissingMarks {
    pub(super) fn new(marks: &[String]) -> MissingMarks {
        let words: Vec<String> = marks.iter().map(|mark| mark.trim().to_string()).collect();
        let numbers =
            words.iter().filter_map(|word| word.parse().ok()).filter(|value: &f64| value.is_finite());
        MissingMarks { numbers: numbers.collect(), words }
    }

    /// Whether a cell is one of the words.
    pub(super) fn is_word(&self, cell: &[u8]) -> bool {
        self.words.iter().any(|word| word.as_bytes().eq_ignore_ascii_case(cell.trim_ascii()))
    }

    /// Whether there is a number among the marks.
    pub(super) fn has_numbers(&self) -> bool {
        !self.numbers.is_empty()
    }

    /// Replaces the numbers by NaN. Returns whether there was any.
    pub(super) fn replace(&self, values: &mut [f64]) -> bool {
        let mut any = false;
        for value in values.iter_mut().filter(|value| self.numbers.contains(value)) {
            (*value, any) = (f64::NAN, true);
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_values_are_counted_by_column() {
        let mut counts = MissingCounts::new(&["a".into(), "b".into(), "c".into()]);
        assert!(!counts.is_any());
        counts.add_rows(&[1.0, f64::NAN, 2.0, 3.0, f64::NAN, f64::NAN]);
        let other = counts.clone();
        counts.add(&other);
        assert_eq!((counts.rows, counts.is_any()), (4, true));
        assert_eq!(counts.to_string(), "4 in 'b', 2 in 'c'");
    }
}
