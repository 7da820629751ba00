//! Columns before any mixture is fitted: their summaries, and columns on which no density is bounded.

use ndarray::{Array2, ArrayView2};

use crate::linalg::lower_inverse;
use crate::stats::ColumnSummary;

/// Summaries of the columns of `rows`. Leaves out missing values, which are NaN, and values that are more than a thousand interquartile ranges from the median:
/// they alone would set the unit.
pub(in crate::learn) fn tame_summaries(rows: ArrayView2<f64>) -> Vec<ColumnSummary> {
    rows.columns().into_iter().map(|column| tame_summary(column.to_vec())).collect()
}

/// The summary of a column without wild values.
pub(in crate::learn) fn tame_summary(column: Vec<f64>) -> ColumnSummary {
    let mut values = column.clone();
    values.retain(|value| !value.is_nan());
    if values.is_empty() {
        return ColumnSummary::default();
    }
    let last = (values.len() - 1) as f64;
    let mut quantile = |share: f64| {
        let place = (last * share).round() as usize;
        *values.select_nth_unstable_by(place, f64::total_cmp).1
    };
    let (low, middle, high) = (quantile(0.25), quantile(0.5), quantile(0.75));
    let reach = 1000.0 * (high - low);
    let tame = |value: &f64| !value.is_nan() && (!(reach > 0.0) || (*value - middle).abs() <= reach);
    column.into_iter().filter(tame).collect()
}

/// A column on which no density is bounded.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnFault {
    /// All rows have one value.
    Constant {
        /// Which column, from 0.
        column: usize,
    },
    /// A linear function of earlier columns.
    Collinear {
        /// Which column, from 0.
        column: usize,
        /// The columns that determine it.
        on: Vec<usize>,
    },
}

/// Constant and collinear columns among `rows`.
///
/// The correlation matrix is factored column by column. A column is collinear if its variance given the columns before it
/// is rounding error. Its regression coefficients show on which columns it depends.
pub fn find_column_faults(rows: ArrayView2<f64>) -> Vec<ColumnFault> {
    let columns = tame_summaries(rows);
    let correlations = correlations(rows, &columns);
    let mut faults = Vec::new();
    let mut kept: Vec<usize> = Vec::new();
    let mut lower = Array2::<f64>::zeros((columns.len(), columns.len()));
    for (j, column) in columns.iter().enumerate() {
        if column.is_constant() {
            faults.push(ColumnFault::Constant { column: j });
            continue;
        }
        let size = kept.len();
        for (i, &other) in kept.iter().enumerate() {
            let dot: f64 = (0..i).map(|l| lower[(size, l)] * lower[(i, l)]).sum();
            lower[(size, i)] = (correlations[(j, other)] - dot) / lower[(i, i)];
        }
        let explained: f64 = (0..size).map(|l| lower[(size, l)].powi(2)).sum();
        let unexplained = correlations[(j, j)] - explained;
        if unexplained > COLLINEAR {
            lower[(size, size)] = unexplained.sqrt();
            kept.push(j);
        } else {
            let inverse = lower_inverse(lower.slice(ndarray::s![..size, ..size]));
            let coefficients = lower.slice(ndarray::s![size, ..size]).dot(&inverse);
            let counts = |(_, c): &(&usize, &f64)| c.abs() > 1e-3;
            let on = kept.iter().zip(&coefficients).filter(counts).map(|(&column, _)| column).collect();
            faults.push(ColumnFault::Collinear { column: j, on });
        }
    }
    faults
}

/// A column is determined by the others if less than this fraction of its variance is unexplained.
const COLLINEAR: f64 = 1e-9;

fn correlations(rows: ArrayView2<f64>, columns: &[ColumnSummary]) -> Array2<f64> {
    let mut scaled = rows.to_owned();
    for (mut values, column) in scaled.columns_mut().into_iter().zip(columns) {
        // A missing value counts as the mean.
        let scaled = |value: f64| if value.is_nan() { 0.0 } else { (value - column.mean) / column.unit() };
        values.mapv_inplace(|value| scaled(value).clamp(-1e3, 1e3));
    }
    scaled.t().dot(&scaled) / rows.nrows() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicated_and_a_constant_column_are_named() {
        let wave = |i: usize, f: f64| (i as f64 * f).sin();
        let rows = Array2::from_shape_fn((200, 5), |(i, j)| match j {
            0 => wave(i, 1.3),
            1 => 7.5,
            2 => 250.0 * wave(i, 1.3) + 3.0,
            3 => wave(i, 0.7),
            _ => wave(i, 1.3) - 2.0 * wave(i, 0.7),
        });
        let expected = [
            ColumnFault::Constant { column: 1 },
            ColumnFault::Collinear { column: 2, on: vec![0] },
            ColumnFault::Collinear { column: 4, on: vec![0, 3] },
        ];
        assert_eq!(find_column_faults(rows.view()), expected);
    }

    #[test]
    fn one_wild_value_does_not_set_the_unit() {
        let rows = Array2::from_shape_fn((100, 1), |(i, _)| if i == 50 { 1e150 } else { (i % 7) as f64 });
        assert!(tame_summaries(rows.view())[0].unit() < 3.0);
    }
}
