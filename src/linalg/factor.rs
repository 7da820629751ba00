//! A symmetric positive definite matrix `Ψ = c·LLᵀ`, with `L` lower triangular.
//!
//! Scaling changes `c` only. Adding `τ v vᵀ` with `τ ≥ 0` multiplies `L` by the Cholesky factor of `I + (τ/c) y yᵀ`,
//! `y = L⁻¹v`, which is positive definite at any conditioning of `Ψ`.
//!
//! A diagonal `L` is stored as such, and every operation on it takes time in proportion to the columns. Copies of a factor share
//! a triangular `L` until one of them changes.

mod form;
mod record;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use ndarray::{Array1, Array2, ArrayView2};
use serde::{Deserialize, Serialize};

use super::CovarianceType;
use super::batch::cholesky;
use super::panels::{column_start, factor_triangle, lower_inverse, square_triangle};
use form::Form;
pub use record::FactorError;
use record::FactorRecord;

/// A symmetric positive definite matrix `Ψ = c·LLᵀ`.
///
/// ```
/// use gmm_bmm::internals::linalg::Factor;
/// use ndarray::array;
///
/// let mut factor = Factor::from_matrix(array![[4.0, 2.0], [2.0, 5.0]].view())?;
/// assert!((factor.log_det() - 16f64.ln()).abs() < 1e-12);
///
/// // Adds v vᵀ. The update reuses y = L⁻¹v of the quadratic form.
/// let (v, mut y, mut work) = ([1.0, 0.0], [0.0; 2], [0.0; 2]);
/// let q = factor.quadratic_form(&v, &mut y);
/// assert!((q - 5.0 / 16.0).abs() < 1e-12);
/// factor.rank_one(1.0, &y, &mut work);
/// assert!((factor.matrix()[(0, 0)] - 5.0).abs() < 1e-12);
/// # Ok::<(), gmm_bmm::internals::linalg::FactorError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "FactorRecord", into = "FactorRecord")]
pub struct Factor {
    dim: usize,
    scale: f64,
    form: Form,
}

impl Factor {
    /// A factor of no dimension, for a component whose matrix has another form.
    pub(crate) fn empty() -> Self {
        Factor { dim: 0, scale: 1.0, form: Form::Scalar(1.0) }
    }

    /// The identity matrix.
    pub fn identity(dim: usize) -> Self {
        Factor::from_standard_deviations(&vec![1.0; dim]).expect("ones are positive")
    }

    /// The diagonal matrix with these standard deviations, the square roots of its diagonal.
    pub fn from_standard_deviations(deviations: &[f64]) -> Result<Self, FactorError> {
        let dim = deviations.len();
        let mut lower = vec![0.0; dim * (dim + 1) / 2];
        for (j, &deviation) in deviations.iter().enumerate() {
            lower[column_start(dim, j)] = deviation;
        }
        Factor::from_lower(dim, 1.0, lower)
    }

    /// Factors a symmetric matrix. Its lower triangle is read.
    pub fn from_matrix(matrix: ArrayView2<f64>) -> Result<Self, FactorError> {
        Factor::from_lower_matrix(cholesky(matrix)?.view())
    }

    /// The matrix `LLᵀ`, from a lower triangular `L`.
    pub fn from_lower_matrix(lower: ArrayView2<f64>) -> Result<Self, FactorError> {
        let dim = lower.nrows();
        if lower.ncols() != dim {
            return Err(FactorError::Shape { rows: dim, columns: lower.ncols() });
        }
        let packed = (0..dim).flat_map(|j| (j..dim).map(move |i| lower[(i, j)])).collect();
        Factor::from_lower(dim, 1.0, packed)
    }

    /// From `c` and the columns of `L`, one after the other.
    fn from_lower(dim: usize, scale: f64, lower: Vec<f64>) -> Result<Self, FactorError> {
        Factor::of_form(dim, scale, Form::Lower(Arc::new(lower)))
    }

    fn of_form(dim: usize, scale: f64, form: Form) -> Result<Self, FactorError> {
        if dim == 0 {
            return Err(FactorError::Shape { rows: 0, columns: 0 });
        }
        if !(scale > 0.0 && scale.is_finite()) {
            return Err(FactorError::Scale(scale));
        }
        let factor = Factor { dim, scale, form };
        for pivot in 0..dim {
            let value = factor.pivot(pivot);
            if !(value > 0.0) {
                return Err(FactorError::NotPositiveDefinite { pivot, value });
            }
        }
        let values: &[f64] = match &factor.form {
            Form::Lower(lower) => lower,
            Form::Diagonal(squares) => squares,
            Form::Scalar(square) => std::slice::from_ref(square),
        };
        if let Some(&value) = values.iter().find(|value| !value.is_finite()) {
            return Err(FactorError::NotPositiveDefinite { pivot: 0, value });
        }
        Ok(factor)
    }

    /// Factors `c·P`, where `P` is given by its lower triangle and positive definite up to rounding. Pivots are at least the
    /// rounding error of their column.
    pub(crate) fn from_triangle(dim: usize, scale: f64, element: impl Fn(usize, usize) -> f64) -> Self {
        let mut lower: Vec<f64> =
            (0..dim).flat_map(|j| (j..dim).map(move |i| (i, j))).map(|(i, j)| element(i, j)).collect();
        let least: Vec<f64> = (0..dim).map(|j| f64::EPSILON * element(j, j)).collect();
        factor_triangle(&mut lower, &least);
        Factor { dim, scale, form: Form::Lower(Arc::new(lower)) }
    }

    /// The lower triangle of `LLᵀ`, without `c`, by rows.
    pub(crate) fn lower_triangle(&self) -> Vec<f64> {
        let Form::Lower(lower) = &self.form else {
            let mut squares = vec![0.0; self.dim * (self.dim + 1) / 2];
            (0..self.dim).for_each(|i| squares[i * (i + 3) / 2] = self.pivot(i) * self.pivot(i));
            return squares;
        };
        square_triangle(lower, self.dim)
    }

    /// `c`.
    pub(crate) fn scale(&self) -> f64 {
        self.scale
    }

    /// The variance of each column given the columns before it.
    pub(crate) fn pivots(&self) -> impl Iterator<Item = f64> {
        (0..self.dim).map(|j| self.pivot(j)).map(|pivot| self.scale * pivot * pivot)
    }

    fn column_start(&self, j: usize) -> usize {
        column_start(self.dim, j)
    }

    /// The number of rows and columns.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// `ln |Ψ|`. It multiplies the pivots, keeps powers of two apart against overflow, and takes one logarithm.
    pub fn log_det(&self) -> f64 {
        let root = self.scale.sqrt();
        let mut product = 1.0f64;
        let mut exponent = 0i64;
        for j in 0..self.dim {
            product *= root * self.pivot(j);
            if !(1e-140..1e140).contains(&product) {
                let (mantissa, power) = libm::frexp(product);
                product = mantissa;
                exponent += i64::from(power);
            }
        }
        2.0 * (product.ln() + exponent as f64 * std::f64::consts::LN_2)
    }

    /// `y = L⁻¹v`. Returns `q = vᵀΨ⁻¹v = |y|²/c`.
    pub fn quadratic_form(&self, v: &[f64], y: &mut [f64]) -> f64 {
        let Form::Lower(lower) = &self.form else {
            y.iter_mut().zip(v).enumerate().for_each(|(j, (y, v))| *y = v / self.pivot(j));
            return y.iter().map(|value| value * value).sum::<f64>() / self.scale;
        };
        y.copy_from_slice(v);
        let mut columns = lower.as_slice();
        let mut sum = 0.0;
        for j in 0..self.dim {
            let (column, rest) = columns.split_at(self.dim - j);
            columns = rest;
            let (head, below) = y[j..].split_first_mut().expect("j < dim");
            *head /= column[0];
            let pivot = *head;
            sum += pivot * pivot;
            for (value, l) in below.iter_mut().zip(&column[1..]) {
                *value -= pivot * l;
            }
        }
        sum / self.scale
    }

    /// Column `i` of `L⁻¹`.
    pub(crate) fn inverse_column(&self, i: usize, y: &mut [f64]) {
        y.fill(0.0);
        let Form::Lower(lower) = &self.form else {
            y[i] = 1.0 / self.pivot(i);
            return;
        };
        y[i] = 1.0;
        let mut columns = &lower[self.column_start(i)..];
        for j in i..self.dim {
            let (column, rest) = columns.split_at(self.dim - j);
            columns = rest;
            let (head, below) = y[j..].split_first_mut().expect("j < dim");
            *head /= column[0];
            let pivot = *head;
            for (value, l) in below.iter_mut().zip(&column[1..]) {
                *value -= pivot * l;
            }
        }
    }

    /// `Ψ ← Ψ + τ v vᵀ` for `τ ≥ 0`, given `y = L⁻¹v` from [`Factor::quadratic_form`]; `work` is scratch.
    ///
    /// With `δ_j = 1 + t Σ_{i≤j} y_i²`, `t = τ/c`, column `j` of the new factor is
    /// `√(δ_j/δ_{j−1}) L_j + t y_j/√(δ_j δ_{j−1}) Σ_{i>j} y_i L_i`.
    pub fn rank_one(&mut self, tau: f64, y: &[f64], work: &mut [f64]) {
        let (t, dim) = (tau / self.scale, self.dim);
        let lower = self.lower_mut();
        // work[j] holds δ_j until the second loop has read it, then Σ y_i L_i of row j.
        let mut total = 1.0;
        for (delta, value) in work.iter_mut().zip(y) {
            total += (t * value) * value;
            *delta = total;
        }
        let mut root = total.sqrt();
        let mut end = lower.len();
        for j in (0..dim).rev() {
            let root_before = if j == 0 { 1.0 } else { work[j - 1].sqrt() };
            let grow = root / root_before;
            let mix = t * y[j] / (root * root_before);
            root = root_before;
            let column = &mut lower[end - (dim - j)..end];
            end -= dim - j;
            let (pivot, below) = column.split_first_mut().expect("columns hold their pivot");
            let (sum_here, sums) = work[j..dim].split_first_mut().expect("work has dim places");
            *sum_here = y[j] * *pivot;
            *pivot *= grow;
            for (l, sum) in below.iter_mut().zip(sums) {
                let old = *l;
                *l = grow * old + mix * *sum;
                *sum += y[j] * old;
            }
        }
    }

    /// `Ψ ← cΨ` for `c > 0`.
    pub fn scale_by(&mut self, c: f64) {
        self.scale *= c;
        if !(RENORMALISE_BELOW..1.0 / RENORMALISE_BELOW).contains(&self.scale) {
            self.fold_scale();
        }
    }

    /// Moves the power of four in `c` into `L`. This is exact.
    fn fold_scale(&mut self) {
        let (_, exponent) = libm::frexp(self.scale);
        let half = exponent.div_euclid(2);
        let power = libm::ldexp(1.0, half);
        self.scale = libm::ldexp(self.scale, -2 * half);
        match &mut self.form {
            Form::Lower(lower) => Arc::make_mut(lower).iter_mut().for_each(|value| *value *= power),
            Form::Diagonal(squares) => squares.iter_mut().for_each(|value| *value *= power * power),
            Form::Scalar(square) => *square *= power * power,
        }
    }

    /// `Ψ ← DΨD` for a positive diagonal `D`: changes the units of the columns.
    pub fn change_units(&mut self, units: &[f64]) {
        match &mut self.form {
            Form::Lower(lower) => {
                let lower = Arc::make_mut(lower);
                for j in 0..self.dim {
                    let start = column_start(self.dim, j);
                    lower[start..].iter_mut().zip(&units[j..]).for_each(|(value, unit)| *value *= unit);
                }
            }
            Form::Diagonal(squares) => {
                squares.iter_mut().zip(units).for_each(|(value, unit)| *value *= unit * unit);
            }
            Form::Scalar(square) if units.iter().all(|unit| *unit == units[0]) => {
                *square *= units[0] * units[0]
            }
            Form::Scalar(square) => {
                self.form = Form::Diagonal(units.iter().map(|unit| *square * unit * unit).collect());
            }
        }
    }

    /// `cΨ` for `c > 0`, with an unchanged `L`.
    pub(crate) fn times(&self, c: f64) -> Self {
        Factor { scale: self.scale * c, ..self.clone() }
    }

    /// The same `L` with another scale.
    pub(crate) fn with_scale(&self, scale: f64) -> Self {
        Factor { scale, ..self.clone() }
    }

    /// Raises every pivot (the variance of column `j` given the columns before it) to at least `floor[j]`. Returns how many
    /// were raised.
    ///
    /// Only the diagonal of `L` changes, so the variances of other columns stay the same. No density with this covariance
    /// exceeds `∏ (2π floor_j)^−½`.
    pub fn raise_pivots(&mut self, floor: &[f64]) -> usize {
        let (dim, scale) = (self.dim, self.scale);
        let is_low = |pivot: f64, least: f64| scale * pivot * pivot < least;
        let mut raised = 0;
        match &mut self.form {
            Form::Lower(lower) => {
                for (j, &least) in floor.iter().enumerate() {
                    let place = column_start(dim, j);
                    if is_low(lower[place], least) {
                        Arc::make_mut(lower)[place] = (least / scale).sqrt();
                        raised += 1;
                    }
                }
            }
            Form::Diagonal(squares) => {
                for (square, &least) in squares.iter_mut().zip(floor) {
                    if scale * *square < least {
                        *square = least / scale;
                        raised += 1;
                    }
                }
            }
            Form::Scalar(square) => {
                let least = floor.iter().copied().fold(0.0, f64::max);
                if scale * *square < least {
                    *square = least / scale;
                    raised = 1;
                }
            }
        }
        raised
    }

    /// `out = √c L z`. If `z` is standard normal, `out` has covariance `Ψ`.
    pub fn multiply_lower(&self, z: &[f64], out: &mut [f64]) {
        let root = self.scale.sqrt();
        let Form::Lower(lower) = &self.form else {
            out.iter_mut().zip(z).enumerate().for_each(|(j, (out, z))| *out = root * self.pivot(j) * z);
            return;
        };
        out.fill(0.0);
        for (j, &value) in z.iter().enumerate() {
            let start = self.column_start(j);
            for (sum, l) in out[j..].iter_mut().zip(&lower[start..]) {
                *sum += l * value;
            }
        }
        out.iter_mut().for_each(|value| *value *= root);
    }

    /// Solves `√c Lᵀ out = z` in place.
    pub fn solve_upper(&self, z: &mut [f64]) {
        let root = self.scale.sqrt();
        let Form::Lower(lower) = &self.form else {
            z.iter_mut().enumerate().for_each(|(j, value)| *value /= root * self.pivot(j));
            return;
        };
        for j in (0..self.dim).rev() {
            let start = self.column_start(j);
            let column = &lower[start..start + self.dim - j];
            let (head, below) = z[j..].split_first_mut().expect("j < dim");
            let sum: f64 = below.iter().zip(&column[1..]).map(|(value, l)| value * l).sum();
            *head = (*head - sum) / column[0];
        }
        z.iter_mut().for_each(|value| *value /= root);
    }

    /// `√c L`, the Cholesky factor of `Ψ`.
    pub fn lower_matrix(&self) -> Array2<f64> {
        if let Some(roots) = self.roots() {
            return Array2::from_diag(&Array1::from(roots));
        }
        let (root, Form::Lower(lower)) = (self.scale.sqrt(), &self.form) else { unreachable!("no diagonal") };
        Array2::from_shape_fn((self.dim, self.dim), |(i, j)| {
            if j > i { 0.0 } else { root * lower[self.column_start(j) + i - j] }
        })
    }

    /// `Ψ` as a full matrix.
    pub fn matrix(&self) -> Array2<f64> {
        if self.kind() != CovarianceType::Full {
            return Array2::from_diag(&Array1::from(self.diagonal()));
        }
        let lower = self.lower_matrix();
        lower.dot(&lower.t())
    }

    /// `Ψ⁻¹`.
    pub fn inverse(&self) -> Array2<f64> {
        if self.kind() != CovarianceType::Full {
            return Array2::from_diag(&Array1::from_iter(self.diagonal().iter().map(|value| 1.0 / value)));
        }
        let inverse = lower_inverse(self.lower_matrix().view());
        inverse.t().dot(&inverse)
    }

    /// The diagonal of `Ψ`.
    pub fn diagonal(&self) -> Vec<f64> {
        let Form::Lower(lower) = &self.form else { return self.pivots().collect() };
        let mut diagonal = vec![0.0; self.dim];
        for j in 0..self.dim {
            let start = self.column_start(j);
            for (sum, l) in diagonal[j..].iter_mut().zip(&lower[start..]) {
                *sum += self.scale * l * l;
            }
        }
        diagonal
    }

    /// A cheap lower bound of the condition number of the correlation matrix: the squared ratio of the largest to the
    /// smallest pivot of `L`, in units where the diagonal of `Ψ` is one.
    pub fn condition_estimate(&self) -> f64 {
        let diagonal = self.diagonal();
        let relative = (0..self.dim).map(|j| {
            let pivot = self.pivot(j);
            self.scale * pivot * pivot / diagonal[j]
        });
        let (least, most) =
            relative.fold((f64::INFINITY, 0.0f64), |(least, most), v| (least.min(v), most.max(v)));
        most / least
    }
}

/// A scale below this, or above its inverse, is folded into `L` before it underflows or overflows.
const RENORMALISE_BELOW: f64 = 1e-12;
