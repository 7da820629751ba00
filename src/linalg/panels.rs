//! Factors and inverses, some rows or columns at a time.
//!
//! A large matrix does not fit the processor's caches. So an earlier row or column is read once for a panel of later ones. The sums
//! of each element have the order of the textbook's loops, and are not fused, so the size of a panel changes no bit.

use std::ops::Range;

use ndarray::{Array2, ArrayView2};

use super::FactorError;
use super::simd::{Arithmetic, at_run_time};

/// Rows or columns of a panel.
const PANEL: usize = 8;

fn panels(dim: usize) -> impl Iterator<Item = Range<usize>> {
    (0..dim).step_by(PANEL).map(move |first| first..(first + PANEL).min(dim))
}

/// `sums += factor·values`.
#[inline(always)]
fn add_multiple(sums: &mut [f64], factor: f64, values: &[f64]) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += factor * value);
}

at_run_time! {
    /// The lower Cholesky factor of a matrix, of which the lower triangle is read.
    pub(super) fn cholesky_by_panels(matrix: ArrayView2<f64>) -> Result<Array2<f64>, FactorError> = cholesky_kernel
}

#[inline(always)]
fn cholesky_kernel<A: Arithmetic>(matrix: ArrayView2<f64>) -> Result<Array2<f64>, FactorError> {
    let dim = matrix.nrows();
    let (mut lower, mut columns) = (Array2::zeros((dim, dim)), vec![0.0; dim * dim]);
    let mut dots = vec![0.0; PANEL * dim];
    for panel in panels(dim) {
        dots.fill(0.0);
        for j in 0..panel.end {
            let rows = panel.start.max(j)..panel.end;
            let column = &mut columns[j * dim..][..panel.end];
            for i in rows.clone() {
                let rest = matrix[(i, j)] - dots[(i - panel.start) * dim + j];
                if i == j && !(rest > 0.0 && rest.is_finite()) {
                    return Err(FactorError::NotPositiveDefinite { pivot: i, value: rest });
                }
                column[i] = if i == j { rest.sqrt() } else { rest / column[j] };
                lower[(i, j)] = column[i];
            }
            for i in rows {
                let dots = &mut dots[(i - panel.start) * dim..];
                add_multiple(&mut dots[j..=i], column[i], &column[j..=i]);
            }
        }
    }
    Ok(lower)
}

at_run_time! {
    /// The inverse of a lower triangular matrix with a positive diagonal.
    pub fn lower_inverse(lower: ArrayView2<f64>) -> Array2<f64> = lower_inverse_kernel
}

#[inline(always)]
fn lower_inverse_kernel<A: Arithmetic>(lower: ArrayView2<f64>) -> Array2<f64> {
    let dim = lower.nrows();
    let mut inverse = vec![0.0; dim * dim];
    let mut dots = vec![0.0; PANEL * dim];
    for panel in panels(dim) {
        dots.fill(0.0);
        let (before, own) = inverse.split_at_mut(panel.start * dim);
        for (k, row) in before.chunks_exact(dim).enumerate() {
            for (i, dots) in panel.clone().zip(dots.chunks_exact_mut(dim)) {
                add_multiple(&mut dots[..=k], lower[(i, k)], &row[..=k]);
            }
        }
        for (i, dots) in panel.clone().zip(dots.chunks_exact_mut(dim)) {
            let (before, own) = own.split_at_mut((i - panel.start) * dim);
            for (k, row) in (panel.start..i).zip(before.chunks_exact(dim)) {
                add_multiple(&mut dots[..=k], lower[(i, k)], &row[..=k]);
            }
            own[..i].iter_mut().zip(&*dots).for_each(|(value, dot)| *value = -dot / lower[(i, i)]);
            own[i] = 1.0 / lower[(i, i)];
        }
    }
    Array2::from_shape_vec((dim, dim), inverse).expect("one number for each element")
}

/// Where column `j` begins in a lower triangle that is stored by columns.
pub(super) fn column_start(dim: usize, j: usize) -> usize {
    j * (2 * dim - j + 1) / 2
}

at_run_time! {
    /// The Cholesky factor in place of a lower triangle, both stored by columns. Pivots are at least the square roots of `least`.
    pub(super) fn factor_triangle(triangle: &mut [f64], least: &[f64]) = factor_triangle_kernel
}

#[inline(always)]
fn factor_triangle_kernel<A: Arithmetic>(triangle: &mut [f64], least: &[f64]) {
    let dim = least.len();
    let start = |j| column_start(dim, j);
    for panel in panels(dim) {
        let (before, own) = triangle.split_at_mut(start(panel.start));
        for j in 0..panel.start {
            let column = &before[start(j)..start(j + 1)];
            for c in panel.clone() {
                let target = &mut own[start(c) - start(panel.start)..][..dim - c];
                add_multiple(target, -column[c - j], &column[c - j..]);
            }
        }
        for j in panel.clone() {
            let (before, after) = own.split_at_mut(start(j + 1) - start(panel.start));
            let column = &mut before[start(j) - start(panel.start)..];
            column[0] = column[0].max(least[j]).sqrt();
            let inverse = 1.0 / column[0];
            column[1..].iter_mut().for_each(|value| *value *= inverse);
            for c in j + 1..panel.end {
                let target = &mut after[start(c) - start(j + 1)..][..dim - c];
                add_multiple(target, -column[c - j], &column[c - j..]);
            }
        }
    }
}

at_run_time! {
    /// The lower triangle of `LLᵀ` by rows, from `L` by columns.
    pub(super) fn square_triangle(lower: &[f64], dim: usize) -> Vec<f64> = square_triangle_kernel
}

#[inline(always)]
fn square_triangle_kernel<A: Arithmetic>(lower: &[f64], dim: usize) -> Vec<f64> {
    let mut sums = vec![0.0; dim * (dim + 1) / 2];
    for panel in panels(dim) {
        for k in 0..panel.end {
            let column = &lower[column_start(dim, k)..];
            for i in panel.start.max(k)..panel.end {
                let row = &mut sums[i * (i + 1) / 2 + k..][..i - k + 1];
                add_multiple(row, column[i - k], column);
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The textbook's loops, row by row.
    fn cholesky_by_rows(matrix: &Array2<f64>) -> Array2<f64> {
        let mut lower = Array2::<f64>::zeros(matrix.dim());
        for i in 0..matrix.nrows() {
            for j in 0..=i {
                let dot = (0..j).fold(0.0, |dot, k| dot + lower[(i, k)] * lower[(j, k)]);
                let rest = matrix[(i, j)] - dot;
                lower[(i, j)] = if i == j { rest.sqrt() } else { rest / lower[(j, j)] };
            }
        }
        lower
    }

    fn inverse_by_rows(lower: &Array2<f64>) -> Array2<f64> {
        let mut inverse = Array2::<f64>::zeros(lower.dim());
        for i in 0..lower.nrows() {
            for j in 0..i {
                let dot = (j..i).fold(0.0, |dot, k| dot + lower[(i, k)] * inverse[(k, j)]);
                inverse[(i, j)] = -dot / lower[(i, i)];
            }
            inverse[(i, i)] = 1.0 / lower[(i, i)];
        }
        inverse
    }

    #[test]
    fn panels_change_no_bit() {
        for dim in [1, 2, 7, 8, 9, 16, 31, 100] {
            let half =
                Array2::from_shape_fn((dim, dim + 3), |(i, j)| ((i * 37 + j * 101) as f64 * 0.7).sin());
            let matrix = half.dot(&half.t()) + Array2::<f64>::eye(dim);
            let lower = cholesky_by_panels(matrix.view()).unwrap();
            assert_eq!(lower, cholesky_by_rows(&matrix), "{dim} columns");
            assert_eq!(lower_inverse(lower.view()), inverse_by_rows(&lower), "{dim} columns");
        }
    }

    #[test]
    fn a_triangle_is_factored_and_squared() {
        for dim in [1, 8, 19, 64] {
            let half = Array2::from_shape_fn((dim, dim + 3), |(i, j)| ((i * 13 + j * 29) as f64 * 0.3).cos());
            let matrix = half.dot(&half.t()) + Array2::<f64>::eye(dim);
            let by_columns = |matrix: &Array2<f64>| -> Vec<f64> {
                (0..dim).flat_map(|j| (j..dim).map(move |i| (i, j))).map(|place| matrix[place]).collect()
            };
            let mut triangle = by_columns(&matrix);
            factor_triangle(&mut triangle, &vec![0.0; dim]);
            let lower = cholesky_by_rows(&matrix);
            for (found, exact) in triangle.iter().zip(by_columns(&lower)) {
                assert!((found - exact).abs() < 1e-13 * dim as f64);
            }
            let squares = square_triangle(&triangle, dim);
            for i in 0..dim {
                for j in 0..=i {
                    assert!((squares[i * (i + 1) / 2 + j] - matrix[(i, j)]).abs() < 1e-12 * dim as f64);
                }
            }
        }
    }

    #[test]
    fn a_pivot_that_rounding_makes_negative_is_raised() {
        let mut triangle = vec![1.0, 1.0, 1.0 - 1e-17];
        factor_triangle(&mut triangle, &[1e-16, 1e-16]);
        assert_eq!(triangle, [1.0, 1.0, 1e-8]);
    }
}
