//! Errors of the library in Python's terms.

use gmm_bmm::{LearnError, MergeError, ModelError};
use pyo3::PyErr;
use pyo3::exceptions::{PyOSError, PyValueError};

pub fn learn_error(error: LearnError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub fn merge_error(error: MergeError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A file that cannot be read or written is an `OSError`; one with the wrong content is a `ValueError`.
pub fn model_error(path: &str, error: ModelError) -> PyErr {
    let text = format!("'{path}': {error}");
    match error {
        ModelError::Read(_) => PyOSError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

pub fn write_error(path: &str, error: std::io::Error) -> PyErr {
    PyOSError::new_err(format!("'{path}': {error}"))
}
