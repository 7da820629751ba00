//! The forms of `L`: a triangle, a diagonal, or the identity.

use std::sync::Arc;

use super::{Factor, FactorError, column_start};
use crate::linalg::CovarianceType;

/// `L`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    /// By columns: column `j` holds rows `j..d`.
    Lower(Arc<Vec<f64>>),
    /// A diagonal matrix.
    Diagonal(Vec<f64>),
    /// The identity matrix.
    Scalar,
}

impl Factor {
    /// The diagonal matrix with these variances, stored as such.
    pub fn from_variances(variances: &[f64]) -> Result<Self, FactorError> {
        let roots = variances.iter().map(|variance| variance.sqrt()).collect();
        Factor::of_form(variances.len(), 1.0, Form::Diagonal(roots))
    }

    /// The matrix `variance·I`, stored as one number.
    pub fn spherical(dim: usize, variance: f64) -> Result<Self, FactorError> {
        Factor::of_form(dim, variance, Form::Scalar)
    }

    /// What kind of covariance it is: full, diagonal or spherical.
    pub fn kind(&self) -> CovarianceType {
        match self.form {
            Form::Lower(_) => CovarianceType::Full,
            Form::Diagonal(_) => CovarianceType::Diag,
            Form::Scalar => CovarianceType::Spherical,
        }
    }

    /// Whether it is a copy of `other`, which shares the same triangle.
    pub(crate) fn is_shared_with(&self, other: &Factor) -> bool {
        match (&self.form, &other.form) {
            (Form::Lower(own), Form::Lower(others)) => Arc::ptr_eq(own, others) && self.scale == other.scale,
            _ => false,
        }
    }

    /// The square roots of a diagonal matrix; `None` for others.
    pub(crate) fn roots(&self) -> Option<Vec<f64>> {
        let root = self.scale.sqrt();
        match &self.form {
            Form::Lower(_) => None,
            Form::Diagonal(roots) => Some(roots.iter().map(|value| root * value).collect()),
            Form::Scalar => Some(vec![root; self.dim]),
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
            Form::Diagonal(roots) => roots[j],
            Form::Scalar => 1.0,
        }
    }
}
