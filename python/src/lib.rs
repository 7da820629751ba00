//! The extension module `gmm_bmm._core`: a pass over a stream, the mixture that it learned, and merging of shards.
//!
//! The estimator is written in Python over these classes. They release the interpreter's lock while they learn and score.

mod errors;
mod fit;
mod interrupt;
mod mixture;
mod one;
mod pass;
mod range;
mod threads;

use pyo3::prelude::*;

/// Gaussian mixtures with full covariances, learned online.
#[pymodule]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::fit::merge;
    #[pymodule_export]
    use super::mixture::Mixture;
    #[pymodule_export]
    use super::pass::Fit;
    #[pymodule_export]
    use super::range::first_unusable;
    #[pymodule_export]
    use super::threads::count_fork;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("MAX_VALUE", gmm_bmm::data::MAX_VALUE)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
