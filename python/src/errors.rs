//! Errors of the library in Python's terms.

use std::io::{self, ErrorKind};
use std::path::Path;

use gmm_bmm::dist::DistError;
use gmm_bmm::{LearnError, MergeError, ModelError};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

pub fn learn_error(error: LearnError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub fn merge_error(error: MergeError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A file that cannot be read is an `OSError`; one with the wrong content is a `ValueError`.
pub fn file_error(path: &Path, error: ModelError) -> PyErr {
    match error {
        ModelError::Read(error) => os_error(path, &error),
        other => content_error(&format!("'{}'", path.display()), other),
    }
}

/// What is wrong with a model that was read from `name`.
pub fn content_error(name: &str, error: ModelError) -> PyErr {
    PyValueError::new_err(format!("{name}: {error}"))
}

/// The `OSError` with the number and the name of the file, from which Python chooses the class, such as `FileNotFoundError`.
pub fn os_error(path: &Path, error: &io::Error) -> PyErr {
    let Some(number) = errno(error) else { return PyOSError::new_err(error.to_string()) };
    let made = Python::attach(|py| {
        let text = py.import("os")?.call_method1("strerror", (number,))?;
        py.get_type::<PyOSError>().call1((number, text, path.as_os_str())).map(PyErr::from_value)
    });
    made.unwrap_or_else(|error| error)
}

/// The number that C has for an error. An error with a text of its own has only a kind.
fn errno(error: &io::Error) -> Option<i32> {
    match error.kind() {
        ErrorKind::NotFound => Some(2),
        ErrorKind::PermissionDenied => Some(13),
        ErrorKind::AlreadyExists => Some(17),
        ErrorKind::NotADirectory => Some(20),
        ErrorKind::IsADirectory => Some(21),
        ErrorKind::StorageFull => Some(28),
        ErrorKind::ReadOnlyFilesystem => Some(30),
        // Numbers of Windows mean something else.
        _ => error.raw_os_error().filter(|_| cfg!(unix)),
    }
}

/// Rows of another width.
pub fn width_error(error: DistError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
