//! Whole-matrix steps of the batch algorithms. With the cargo feature `openblas` they use LAPACK; without it, the code here.
//! The results are equal up to rounding.

use ndarray::{Array2, ArrayView2};

use super::FactorError;
use super::panels::cholesky_by_panels;

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
    cholesky_by_panels(matrix)
}

/// LAPACK does not report the failing pivot, so the plain factorisation finds it for the error.
#[cfg(feature = "openblas")]
fn factorise(matrix: ArrayView2<f64>) -> Result<Array2<f64>, FactorError> {
    use ndarray_linalg::{Cholesky, UPLO};
    if uses_openblas() {
        use_one_blas_thread();
        if let Ok(lower) = matrix.cholesky(UPLO::Lower) {
            return Ok(lower);
        }
    }
    cholesky_by_panels(matrix)
}

/// Whether OpenBLAS is called. The unit tests of one build run without it, and with it if this variable is set.
#[cfg(feature = "openblas")]
pub(super) fn uses_openblas() -> bool {
    !cfg!(test) || std::env::var_os("GMM_BMM_TEST_OPENBLAS").is_some()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::lower_inverse;
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
