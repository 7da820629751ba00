//! Whole-matrix steps of the batch algorithms. With the cargo feature `openblas` they use LAPACK; without it, the code here.
//! The results are equal up to rounding.

use ndarray::{Array2, ArrayView2};

use super::FactorError;

/// The lower Cholesky factor of a symmetric positive definite matrix. Its lower triangle is read.
///
/// ```
/// use gmm_bmm::internals::linalg::cholesky;
/// use ndarray::array;
///
/// let lower = cholesky(array![[4.0, 2.0], [2.0, 5.0]].view())?;
/// assert_eq!(lower, array![[2.0, 0.0], [1.0, 2.0]]);
/// # Ok::<(), gmm_bmm::internals::linalg::FactorError>(())
/// ```
pub fn cholesky(matrix: ArrayView2<f64>) -> Result<Array2<f64>, FactorError> {
    let (rows, columns) = matrix.dim();
    if rows != columns || rows == 0 {
        return Err(FactorError::Shape { rows, columns });
    }
    factorise(matrix)
}

#[cfg(not(feature = "openblas"))]
fn factorise(matrix: ArrayView2<f64>) -> Result<Array2<f64>, FactorError> {
    plain_cholesky(matrix)
}

/// LAPACK does not report the failing pivot, so the plain factorisation finds it for the error.
#[cfg(feature = "openblas")]
fn factorise(matrix: ArrayView2<f64>) -> Result<Array2<f64>, FactorError> {
    use ndarray_linalg::{Cholesky, UPLO};
    use_one_blas_thread();
    match matrix.cholesky(UPLO::Lower) {
        Ok(lower) => Ok(lower),
        Err(_) => plain_cholesky(matrix),
    }
}

/// The callers already run on all cores through rayon, so threads of BLAS would only compete with them.
#[cfg(feature = "openblas")]
#[allow(unsafe_code)]
fn use_one_blas_thread() {
    unsafe extern "C" {
        fn openblas_set_num_threads(count: std::ffi::c_int);
    }
    static ONCE: std::sync::Once = std::sync::Once::new();
    // SAFETY: this is the signature in OpenBLAS's C interface, and the function is called once.
    ONCE.call_once(|| unsafe { openblas_set_num_threads(1) });
}

fn plain_cholesky(matrix: ArrayView2<f64>) -> Result<Array2<f64>, FactorError> {
    let dim = matrix.nrows();
    let (mut lower, mut transposed) = (Array2::zeros((dim, dim)), Array2::<f64>::zeros((dim, dim)));
    let mut dots = vec![0.0; dim];
    for i in 0..dim {
        dots[..=i].fill(0.0);
        for j in 0..=i {
            let rest = matrix[(i, j)] - dots[j];
            if i == j && !(rest > 0.0 && rest.is_finite()) {
                return Err(FactorError::NotPositiveDefinite { pivot: i, value: rest });
            }
            let value = if i == j { rest.sqrt() } else { rest / lower[(j, j)] };
            (lower[(i, j)], transposed[(j, i)]) = (value, value);
            // Contiguous: row j of the transposed factor is column j.
            let column = transposed.row(j);
            let column = &column.to_slice().expect("the rows of a matrix are contiguous")[j..=i];
            dots[j..=i].iter_mut().zip(column).for_each(|(dot, other)| *dot += value * other);
        }
    }
    Ok(lower)
}

/// The inverse of a lower triangular matrix with a positive diagonal.
pub fn lower_inverse(lower: ArrayView2<f64>) -> Array2<f64> {
    let dim = lower.nrows();
    let mut inverse = Array2::zeros((dim, dim));
    let mut dots = vec![0.0; dim];
    for i in 0..dim {
        dots[..i].fill(0.0);
        for k in 0..i {
            let (coefficient, row) = (lower[(i, k)], inverse.row(k));
            let row = &row.to_slice().expect("the rows of a matrix are contiguous")[..=k];
            dots[..=k].iter_mut().zip(row).for_each(|(dot, value)| *dot += coefficient * value);
        }
        for (j, dot) in dots[..i].iter().enumerate() {
            inverse[(i, j)] = -dot / lower[(i, i)];
        }
        inverse[(i, i)] = 1.0 / lower[(i, i)];
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn inverse_of_the_factor_inverts_it() {
        let matrix = array![[4.0, 2.0, 0.6], [2.0, 5.0, 1.5], [0.6, 1.5, 3.8]];
        let lower = cholesky(matrix.view()).unwrap();
        let one = lower.dot(&lower_inverse(lower.view()));
        for ((i, j), value) in one.indexed_iter() {
            assert!((value - f64::from(u8::from(i == j))).abs() < 1e-14);
        }
    }

    #[test]
    fn an_indefinite_matrix_names_its_pivot() {
        let result = cholesky(array![[1.0, 2.0], [2.0, 1.0]].view());
        assert_eq!(result, Err(FactorError::NotPositiveDefinite { pivot: 1, value: -3.0 }));
    }
}
