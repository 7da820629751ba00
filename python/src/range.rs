//! The values that can be learned and scored.

use gmm_bmm::data::MAX_VALUE;
use gmm_bmm::ndarray::ArrayView2;
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;

/// The place of the first value that is beyond the range that the command reads, or missing where no value may be.
#[pyfunction]
pub fn first_unusable(py: Python<'_>, rows: PyReadonlyArray2<'_, f64>, gaps: bool) -> Option<(usize, usize)> {
    let rows = rows.as_array();
    py.detach(|| find_unusable(rows, gaps))
}

/// The same without Python.
pub fn find_unusable(rows: ArrayView2<f64>, gaps: bool) -> Option<(usize, usize)> {
    // Without an early exit the compiler vectorises the loop. The comparison is false for NaN.
    let is_usual = |values: &[f64]| values.iter().fold(true, |all, value| all & (value.abs() <= MAX_VALUE));
    if rows.as_slice().is_some_and(is_usual) {
        return None;
    }
    let is_usable = |value: f64| value.abs() <= MAX_VALUE || gaps && value.is_nan();
    rows.indexed_iter().find(|(_, value)| !is_usable(**value)).map(|(place, _)| place)
}
