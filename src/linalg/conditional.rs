use super::Factor;

/// The distribution of the missing columns `M` of a row given its observed columns `O`, for a matrix `Ψ = c·LLᵀ`.
///
/// With the columns `W` of `L⁻¹` that belong to `M`, and `W = QR`: the completed deviation minimises `vᵀΨ⁻¹v` over `v_M`, the
/// minimum is the quadratic form of the observed columns, and `Ψ_MM − Ψ_MO Ψ_OO⁻¹ Ψ_OM = c·R⁻¹R⁻ᵀ`. Nothing is inverted, and
/// the columns of `Q` are orthonormal, so this is as accurate as a solution with `L`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conditional {
    /// The missing columns, in ascending order.
    missing: Vec<usize>,
    /// `Q`, one column after the other.
    orthonormal: Vec<f64>,
    /// `R` by columns, of which only elements on and above the diagonal are used.
    upper: Vec<f64>,
    /// `√c·R⁻¹` by columns, likewise; only its diagonal if `Ψ` is diagonal.
    root: Vec<f64>,
    is_diagonal: bool,
    whitened: Vec<f64>,
    /// `ln |Ψ_MM − Ψ_MO Ψ_OO⁻¹ Ψ_OM|`.
    pub log_det: f64,
}

impl Conditional {
    /// Prepares for rows of this pattern under this matrix.
    pub fn set(&mut self, factor: &Factor, missing: impl Iterator<Item = usize>) {
        let Some(roots) = factor.roots() else {
            let column = |column: usize, out: &mut [f64]| factor.inverse_column(column, out);
            return self.set_by_columns((factor.dim(), factor.scale()), missing, column);
        };
        // Columns do not depend on each other.
        self.is_diagonal = true;
        self.missing.clear();
        self.missing.extend(missing);
        self.whitened.resize(factor.dim(), 0.0);
        self.root.clear();
        self.root.extend(self.missing.iter().map(|&column| roots[column]));
        self.log_det = 2.0 * self.root.iter().map(|root| root.ln()).sum::<f64>();
    }

    fn set_by_columns(
        &mut self,
        (dim, scale): (usize, f64),
        missing: impl Iterator<Item = usize>,
        column_of_inverse: impl Fn(usize, &mut [f64]),
    ) {
        self.missing.clear();
        self.missing.extend(missing);
        let count = self.missing.len();
        self.whitened.resize(dim, 0.0);
        self.is_diagonal = false;
        self.orthonormal.clear();
        self.orthonormal.resize(dim * count, 0.0);
        self.upper.clear();
        self.upper.resize(count * count, 0.0);
        for (n, &column) in self.missing.iter().enumerate() {
            column_of_inverse(column, &mut self.whitened);
            let (before, rest) = self.orthonormal.split_at_mut(n * dim);
            let own = &mut rest[..dim];
            own.copy_from_slice(&self.whitened);
            // Twice is enough: the second time removes the rounding errors of the first.
            for _ in 0..2 {
                for (i, q) in before.chunks_exact(dim).enumerate() {
                    let along = dot(q, own);
                    self.upper[n * count + i] += along;
                    own.iter_mut().zip(q).for_each(|(value, q)| *value -= along * q);
                }
            }
            let norm = dot(own, own).sqrt();
            self.upper[n * count + n] = norm;
            own.iter_mut().for_each(|value| *value /= norm);
        }
        self.set_root(scale);
    }

    /// Computes `√c·R⁻¹` and its determinant.
    fn set_root(&mut self, scale: f64) {
        let count = self.missing.len();
        self.root.clear();
        self.root.resize(count * count, 0.0);
        self.log_det = count as f64 * scale.ln();
        for n in 0..count {
            self.log_det -= 2.0 * self.upper[n * count + n].ln();
            self.root[n * count + n] = scale.sqrt() / self.upper[n * count + n];
            for i in (0..n).rev() {
                let sum: f64 =
                    (i + 1..=n).map(|l| self.upper[l * count + i] * self.root[n * count + l]).sum();
                self.root[n * count + i] = -sum / self.upper[i * count + i];
            }
        }
    }

    /// Completes the deviation `v` of a row, whose missing elements may hold anything. Returns the quadratic form of the
    /// observed columns.
    pub fn complete(&mut self, factor: &Factor, v: &mut [f64]) -> f64 {
        let (dim, count) = (factor.dim(), self.missing.len());
        self.missing.iter().for_each(|&column| v[column] = 0.0);
        let q = factor.quadratic_form(v, &mut self.whitened);
        if self.is_diagonal {
            return q;
        }
        // The last column first, as in back substitution.
        let along = |conditional: &mut Self, n: usize| {
            let q = &conditional.orthonormal[n * dim..][..dim];
            let along = dot(q, &conditional.whitened);
            conditional.whitened.iter_mut().zip(q).for_each(|(value, q)| *value -= along * q);
            along
        };
        let scale = factor.scale();
        for n in (0..count).rev() {
            // R v_M = −Qᵀy: each element of Qᵀy adds its column of R⁻¹.
            let along = along(self, n) / scale.sqrt();
            for i in 0..=n {
                v[self.missing[i]] -= along * self.root[n * count + i];
            }
        }
        dot(&self.whitened, &self.whitened) / scale
    }

    /// Columns whose outer products add up to `Ψ_MM − Ψ_MO Ψ_OO⁻¹ Ψ_OM`, as (column of the matrix, value) pairs.
    pub fn roots(&self) -> impl Iterator<Item = impl Iterator<Item = (usize, f64)>> {
        let count = self.missing.len();
        (0..count).map(move |n| {
            let (values, from) =
                if self.is_diagonal { (&self.root[..], n) } else { (&self.root[n * count..], 0) };
            self.missing.iter().copied().zip(values.iter().copied()).take(n + 1).skip(from)
        })
    }

    /// The numbers that it holds.
    pub fn size(&self) -> usize {
        self.orthonormal.len() + self.upper.len() + self.root.len()
    }

    /// Element `(i, j)`, counted within the missing columns, of `Ψ_MM − Ψ_MO Ψ_OO⁻¹ Ψ_OM`.
    pub fn covariance(&self, i: usize, j: usize) -> f64 {
        let count = self.missing.len();
        if self.is_diagonal {
            return if i == j { self.root[i] * self.root[i] } else { 0.0 };
        }
        (i.max(j)..count).map(|n| self.root[n * count + i] * self.root[n * count + j]).sum()
    }
}

/// Whether a value is missing.
pub(crate) fn has_gaps(values: &[f64]) -> bool {
    // Without a branch for each value, so that the loop is vectorised.
    values.chunks(64).any(|values| values.iter().fold(false, |gap, value| gap | value.is_nan()))
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::batch::cholesky;
    use crate::linalg::gapped_rows::{complete_row, padded_columns, quads_of_column, set_conditional};
    use crate::linalg::lower_inverse;
    use crate::linalg::vector::Quad;
    use ndarray::{Array1, Array2};

    /// A matrix whose columns have very different units.
    fn example(dim: usize, decades: f64) -> Array2<f64> {
        let unit = |i: usize| 10f64.powf(decades * (i % 3) as f64 / 2.0);
        let b = Array2::from_shape_fn((dim, dim), |(i, j)| ((i * 7 + j * 5 + 3) as f64 * 0.7).sin());
        let mut matrix = b.dot(&b.t());
        matrix.diag_mut().iter_mut().for_each(|value| *value += 0.3);
        Array2::from_shape_fn((dim, dim), |(i, j)| matrix[(i, j)] * unit(i) * unit(j))
    }

    /// The inverse of a positive definite matrix.
    fn inverse(matrix: &Array2<f64>) -> Array2<f64> {
        Factor::from_lower_matrix(cholesky(matrix.view()).unwrap().view()).unwrap().inverse()
    }

    #[test]
    fn every_pattern_agrees_with_explicit_inverses() {
        for dim in 1..=6 {
            let matrix = example(dim, 3.0);
            let mut factor = Factor::from_matrix((&matrix / 2.5).view()).unwrap();
            factor.scale_by(2.5);
            let full: Vec<f64> = (0..dim).map(|i| matrix[(i, i)].sqrt() * (i as f64 - 1.3)).collect();
            for pattern in 1..(1_u32 << dim) {
                let is_missing = |i: &usize| pattern >> i & 1 == 1;
                let missing: Vec<usize> = (0..dim).filter(is_missing).collect();
                let observed: Vec<usize> = (0..dim).filter(|i| !is_missing(i)).collect();
                let block = |rows: &[usize], columns: &[usize]| {
                    Array2::from_shape_fn((rows.len(), columns.len()), |(i, j)| matrix[(rows[i], columns[j])])
                };
                let v_o: Array1<f64> = observed.iter().map(|&i| full[i]).collect();
                let (mut expected, mut covariance, mut form) =
                    (Array1::zeros(missing.len()), block(&missing, &missing), 0.0);
                if !observed.is_empty() {
                    let inner = inverse(&block(&observed, &observed));
                    let gain = block(&missing, &observed).dot(&inner);
                    expected = gain.dot(&v_o);
                    covariance = &covariance - &gain.dot(&block(&observed, &missing));
                    form = v_o.dot(&inner.dot(&v_o));
                }
                let mut conditional = Conditional::default();
                conditional.set(&factor, missing.iter().copied());
                let mut v = full.clone();
                missing.iter().for_each(|&i| v[i] = f64::NAN);
                let q = conditional.complete(&factor, &mut v);
                assert!((q - form).abs() < 1e-10 * (1.0 + form), "{q} {form}");
                for (n, &i) in missing.iter().enumerate() {
                    let unit = matrix[(i, i)].sqrt();
                    assert!((v[i] - expected[n]).abs() < 1e-10 * unit);
                    for (l, &j) in missing.iter().enumerate() {
                        let unit = unit * matrix[(j, j)].sqrt();
                        assert!((conditional.covariance(n, l) - covariance[(n, l)]).abs() < 1e-10 * unit);
                    }
                }
                // The same by the inverse of the factor.
                let inverse = lower_inverse(factor.lower_matrix().view());
                let columns = padded_columns(inverse.as_slice().unwrap(), dim);
                let mut deviation = full.clone();
                missing.iter().for_each(|&i| deviation[i] = 0.0);
                let width = quads_of_column(dim, missing.len());
                let mut by_inverse = vec![Quad::default(); width * missing.len()];
                let log_det = set_conditional(&columns, &missing, &mut by_inverse);
                let mut out = vec![Quad([7.0; 4]); width];
                let same =
                    complete_row(&columns, &Quad::pad(&deviation, 0.0), &by_inverse, missing.len(), &mut out);
                assert!((same - q).abs() < 1e-10 * (1.0 + q), "{same} {q}");
                assert!((log_det - conditional.log_det).abs() < 1e-9);
                let roots = |n: usize| &Quad::flat(&by_inverse[n * width + Quad::needed(dim)..])[..=n];
                for (n, &i) in missing.iter().enumerate() {
                    let value = Quad::flat(&out[Quad::needed(dim)..])[n];
                    assert!((value - v[i]).abs() < 1e-10 * matrix[(i, i)].sqrt());
                    for (l, &j) in missing.iter().enumerate() {
                        let terms = (n.max(l)..missing.len()).map(|m| roots(m)[n] * roots(m)[l]);
                        let unit = (matrix[(i, i)] * matrix[(j, j)]).sqrt();
                        assert!((terms.sum::<f64>() - covariance[(n, l)]).abs() < 1e-10 * unit);
                    }
                }
                let log_det = Factor::from_matrix(covariance.view()).unwrap().log_det();
                assert!((conditional.log_det - log_det).abs() < 1e-9);
                let mut sum = Array2::<f64>::zeros((dim, dim));
                for root in conditional.roots() {
                    let root: Vec<(usize, f64)> = root.collect();
                    for &(i, a) in &root {
                        root.iter().for_each(|&(j, b)| sum[(i, j)] += a * b);
                    }
                }
                for (n, &i) in missing.iter().enumerate() {
                    for (l, &j) in missing.iter().enumerate() {
                        assert!(
                            (sum[(i, j)] - conditional.covariance(n, l)).abs() < 1e-9 * sum[(i, i)].max(1e-9)
                        );
                    }
                }
            }
        }
    }
}
