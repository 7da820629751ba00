//! The forms of `L`: a triangle, a diagonal, or the identity.

use std::sync::Arc;

use super::{Factor, FactorError, column_start};
use crate::linalg::CovarianceType;

/// `L`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    /// By columns: column `j` holds rows `j..d`.
    Lower(Arc<Vec<f64>>),
    /// A diagonal matrix. These are the squares of its elements, the variances without `c`.
    Diagonal(Vec<f64>),
    /// A multiple of the identity matrix, likewise.
    Scalar(f64),
}

impl Factor {
    /// The diagonal matrix with these variances, stored as such.
    pub fn from_variances(variances: &[f64]) -> Result<Self, FactorError> {
        Factor::of_form(variances.len(), 1.0, Form::Diagonal(variances.to_vec()))
    }

    /// The matrix `variance·I`, stored as one number.
    pub fn spherical(dim: usize, variance: f64) -> Result<Self, FactorError> {
        Factor::of_form(dim, 1.0, Form::Scalar(variance))
    }

    /// What kind of covariance it is: full, diagonal or spherical.
    pub fn kind(&self) -> CovarianceType {
        match self.form {
            Form::Lower(_) => CovarianceType::Full,
            Form::Diagonal(_) => CovarianceType::Diag,
            Form::Scalar(_) => CovarianceType::Spherical,
        }
    }

    /// Whether it is a copy of `other`, which shares the same triangle.
    pub(crate) fn is_shared_with(&self, other: &Factor) -> bool {
        match (&self.form, &other.form) {
            (Form::Lower(own), Form::Lower(others)) => Arc::ptr_eq(own, others) && self.scale == other.scale,
            _ => false,
        }
    }

    /// A copy that shares nothing.
    pub(crate) fn unshared(&self) -> Self {
        let form = match &self.form {
            Form::Lower(lower) => Form::Lower(Arc::new(lower.to_vec())),
            other => other.clone(),
        };
        Factor { form, ..*self }
    }

    /// The matrix of this kind with the same variances.
    pub(crate) fn of_kind(&self, kind: CovarianceType) -> Self {
        let (variances, dim) = (self.diagonal(), self.dim);
        match kind {
            CovarianceType::Full | CovarianceType::Tied => Ok(self.clone()),
            CovarianceType::Diag => Factor::from_variances(&variances),
            CovarianceType::Spherical => Factor::spherical(dim, variances.iter().sum::<f64>() / dim as f64),
        }
        .expect("variances are positive")
    }

    /// The square roots of a diagonal matrix; `None` for others.
    pub(crate) fn roots(&self) -> Option<Vec<f64>> {
        let root = self.scale.sqrt();
        match &self.form {
            Form::Lower(_) => None,
            Form::Diagonal(squares) => Some(squares.iter().map(|square| root * square.sqrt()).collect()),
            Form::Scalar(square) => Some(vec![root * square.sqrt(); self.dim]),
        }
    }

    /// The variances of a diagonal matrix divided by `divisor`: one for each column, or one for all. Exact if it was made by
    /// [`Factor::times`] of a matrix with these variances and the scale 1.
    pub(crate) fn variances_over(&self, divisor: f64) -> Vec<f64> {
        let scaled =
            |square: &f64| if self.scale == divisor { *square } else { square * (self.scale / divisor) };
        match &self.form {
            Form::Lower(_) => self.diagonal().iter().map(|variance| variance / divisor).collect(),
            Form::Diagonal(squares) => squares.iter().map(scaled).collect(),
            Form::Scalar(square) => vec![scaled(square)],
        }
    }

    /// `L` as a triangle, to change.
    pub(super) fn lower_mut(&mut self) -> &mut Vec<f64> {
        if !matches!(self.form, Form::Lower(_)) {
            let mut lower = vec![0.0; self.dim * (self.dim + 1) / 2];
            (0..self.dim).for_each(|j| lower[column_start(self.dim, j)] = self.pivot(j));
            self.form = Form::Lower(Arc::new(lower));
        }
        match &mut self.form {
            Form::Lower(lower) => Arc::make_mut(lower),
            _ => unreachable!("it was made triangular"),
        }
    }

    /// Element `j` of the diagonal of `L`.
    pub(super) fn pivot(&self, j: usize) -> f64 {
        match &self.form {
            Form::Lower(lower) => lower[column_start(self.dim, j)],
            Form::Diagonal(squares) => squares[j].sqrt(),
            Form::Scalar(square) => square.sqrt(),
        }
    }
}
