//! A factor in a model file, and why one is refused.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Factor, Form};

/// Why a matrix is not a valid [`Factor`].
#[allow(missing_docs)]
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FactorError {
    /// The matrix is not square, or has no rows.
    #[error("a covariance must be square and not empty, but this one is {rows} × {columns}")]
    Shape { rows: usize, columns: usize },
    /// A pivot of the factorisation is not positive.
    #[error("the matrix is not positive definite: pivot {pivot} is {value}")]
    NotPositiveDefinite {
        /// Index of the pivot, from 0.
        pivot: usize,
        value: f64,
    },
    /// The scale is not a positive finite number.
    #[error("the scale of a factor must be positive and finite, but this one is {0}")]
    Scale(f64),
}

/// A factor in a model file: `L` by rows, or the squares of a diagonal `L`, or their common value and the number of columns.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FactorRecord {
    scale: f64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lower: Vec<Vec<f64>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    diagonal: Vec<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    columns: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    variance: Option<f64>,
}

impl From<Factor> for FactorRecord {
    fn from(factor: Factor) -> Self {
        let (lower, diagonal) = (Vec::new(), Vec::new());
        let mut record = FactorRecord { scale: factor.scale, lower, diagonal, columns: None, variance: None };
        match &factor.form {
            Form::Lower(lower) => {
                let row = |i: usize| (0..=i).map(|j| lower[factor.column_start(j) + i - j]).collect();
                record.lower = (0..factor.dim).map(row).collect();
            }
            Form::Diagonal(squares) => record.diagonal.clone_from(squares),
            Form::Scalar(square) => (record.columns, record.variance) = (Some(factor.dim), Some(*square)),
        }
        record
    }
}

impl TryFrom<FactorRecord> for Factor {
    type Error = FactorError;

    fn try_from(record: FactorRecord) -> Result<Self, FactorError> {
        let FactorRecord { scale, lower, diagonal, columns, variance } = record;
        if let Some(columns) = columns {
            return Factor::of_form(columns, scale, Form::Scalar(variance.unwrap_or(f64::NAN)));
        }
        if !diagonal.is_empty() {
            return Factor::of_form(diagonal.len(), scale, Form::Diagonal(diagonal));
        }
        let dim = lower.len();
        for (i, row) in lower.iter().enumerate() {
            if row.len() != i + 1 {
                return Err(FactorError::Shape { rows: dim, columns: row.len() });
            }
        }
        let places = (0..dim).flat_map(|j| (j..dim).map(move |i| (i, j)));
        let packed = places.map(|(i, j)| lower[i][j]).collect();
        Factor::of_form(dim, scale, Form::Lower(Arc::new(packed)))
    }
}
