//! Columns of angles, such as directions of the wind and times of day, of which a row has the cosine and the sine.

#[cfg(feature = "csv")]
use std::f64::consts::TAU;

use serde::{Deserialize, Serialize};

#[cfg(feature = "csv")]
use super::column_names::ColumnNames;

/// A column whose ends meet, such as a direction from 0 to 360. Rows have its cosine and its sine in its place, in two columns
/// named `x.cos` and `x.sin`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Circular {
    /// The name of the column in the data, or its number if it is only asked for.
    pub column: String,
    /// The smallest value.
    pub low: f64,
    /// The largest value, which means the same as the smallest.
    pub high: f64,
    /// The place of the cosine in a row.
    #[serde(default)]
    pub place: usize,
}

// The bounds are never NaN.
impl Eq for Circular {}

impl Circular {
    /// The column with this name or number, whose values are from `low` to `high`. `None` if that is no range.
    pub fn new(column: impl Into<String>, low: f64, high: f64) -> Option<Circular> {
        let is_range = low < high && (high - low).is_finite();
        is_range.then(|| Circular { column: column.into(), low, high, place: 0 })
    }

    /// Whether it is a range, and the column has a place among `columns`.
    pub(crate) fn is_sound(&self, columns: usize) -> bool {
        Circular::new("", self.low, self.high).is_some() && self.place + 1 < columns
    }

    /// Whether a value is one of the column's, or missing.
    #[cfg(feature = "csv")]
    pub(super) fn holds(&self, value: f64) -> bool {
        value.is_nan() || (self.low..=self.high).contains(&value)
    }

    #[cfg(feature = "csv")]
    fn around(&self, value: f64) -> [f64; 2] {
        let (sine, cosine) = (TAU * ((value - self.low) / (self.high - self.low))).sin_cos();
        [cosine, sine]
    }

    #[cfg(any(feature = "cli", all(test, feature = "csv")))]
    fn value(&self, cosine: f64, sine: f64) -> f64 {
        self.low + (self.high - self.low) * (sine.atan2(cosine) / TAU).rem_euclid(1.0)
    }
}

#[cfg(feature = "csv")]
impl ColumnNames {
    /// These columns, of which some are circular. The place of each is set.
    pub(super) fn with_circular(&self, mut circular: Vec<Circular>) -> ColumnNames {
        let mut names = Vec::new();
        for name in &self.names {
            match circular.iter_mut().find(|circular| circular.column == *name) {
                Some(circular) => {
                    circular.place = names.len();
                    names.extend([format!("{name}.cos"), format!("{name}.sin")]);
                }
                None => names.push(name.clone()),
            }
        }
        ColumnNames { names, named: self.named, circular }
    }

    /// The columns of the data, with one column for each that is circular.
    pub(super) fn of_data(&self) -> ColumnNames {
        let mut names = Vec::new();
        for (place, name) in self.names.iter().enumerate() {
            match self.circular.iter().find(|circular| (circular.place..=circular.place + 1).contains(&place))
            {
                Some(circular) if place == circular.place => names.push(circular.column.clone()),
                Some(_) => {}
                None => names.push(name.clone()),
            }
        }
        ColumnNames { names, named: self.named, circular: Vec::new() }
    }

    /// Some of these columns, in ascending order. `None` if only one of the two columns of a circular one is among them.
    #[cfg(feature = "cli")]
    pub(crate) fn subset(&self, places: &[usize]) -> Option<ColumnNames> {
        let mut circular = Vec::new();
        for one in &self.circular {
            let at = |place: usize| places.iter().position(|kept| *kept == place);
            match (at(one.place), at(one.place + 1)) {
                (Some(place), Some(_)) => circular.push(Circular { place, ..one.clone() }),
                (None, None) => {}
                _ => return None,
            }
        }
        let names = places.iter().map(|&place| self.names[place].clone()).collect();
        Some(ColumnNames { names, named: self.named, circular })
    }

    /// Writes a row of the data as a row of these columns.
    pub(super) fn expand(&self, data: &[f64], row: &mut Vec<f64>) {
        row.clear();
        for &value in data {
            match self.circular.iter().find(|circular| circular.place == row.len()) {
                Some(circular) => row.extend(circular.around(value)),
                None => row.push(value),
            }
        }
    }

    /// A row of the data from a row of these columns.
    #[cfg(any(feature = "cli", all(test, feature = "csv")))]
    pub(crate) fn contract(&self, row: &[f64]) -> Vec<f64> {
        let at = |place: &usize| self.circular.iter().find(|circular| circular.place == *place);
        let value = |place: usize| match at(&place) {
            Some(circular) => circular.value(row[place], row[place + 1]),
            None => row[place],
        };
        let is_sine = |place: &usize| *place > 0 && at(&(place - 1)).is_some();
        (0..row.len()).filter(|place| !is_sine(place)).map(value).collect()
    }
}

#[cfg(all(test, feature = "csv"))]
mod tests {
    use super::*;

    #[test]
    fn a_circular_column_becomes_two_and_one_again() {
        let names = ColumnNames::from(["a", "wind", "b", "hour"]);
        let circular = vec![Circular::new("hour", 0.0, 24.0), Circular::new("wind", -180.0, 180.0)];
        let columns = names.with_circular(circular.into_iter().flatten().collect());
        assert_eq!(columns.names, ["a", "wind.cos", "wind.sin", "b", "hour.cos", "hour.sin"]);
        assert_eq!(columns.of_data(), names);
        let (data, mut row) = ([7.0, -90.0, 8.0, 18.0], Vec::new());
        columns.expand(&data, &mut row);
        for (found, expected) in row.iter().zip([7.0, 0.0, 1.0, 8.0, 0.0, -1.0]) {
            assert!((found - expected).abs() < 1e-12, "{row:?}");
        }
        assert!(
            columns.contract(&row).iter().zip(data).all(|(found, expected)| (found - expected).abs() < 1e-12)
        );
        columns.expand(&[7.0, f64::NAN, 8.0, 24.0], &mut row);
        assert!(
            row[1].is_nan()
                && row[2].is_nan()
                && columns.contract(&row)[1].is_nan()
                && (row[4] - 1.0).abs() < 1e-12
        );
        assert!(Circular::new("x", 1.0, 1.0).is_none() && Circular::new("x", f64::NAN, 1.0).is_none());
    }
}
