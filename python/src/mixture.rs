//! A mixture that scores and assigns rows.

use gmm_bmm::GaussianMixture;
use gmm_bmm::data::Noise;
use gmm_bmm::ndarray::{Array2, ArrayView2};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArray3, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::errors::width_error;
use crate::threads::with_threads;

/// A mixture as estimated at some moment of a pass. It does not change.
#[pyclass(frozen, module = "gmm_bmm._core")]
#[derive(Debug)]
pub struct Mixture {
    mixture: GaussianMixture,
    /// The noise of discrete columns, if it was learned with noise.
    noise: Option<Noise>,
}

impl Mixture {
    pub fn new(mixture: GaussianMixture, noise: Option<Noise>) -> Self {
        Mixture { mixture, noise }
    }

    /// What a function makes of the rows, with their noise.
    fn of_rows<T: Send>(
        &self,
        py: Python<'_>,
        rows: PyReadonlyArray2<'_, f64>,
        of: impl FnOnce(ArrayView2<f64>) -> T + Send,
    ) -> PyResult<T> {
        self.check(&rows)?;
        let rows = rows.as_array();
        py.detach(|| {
            with_threads(|| match &self.noise {
                Some(noise) => of(noise.noisy(rows, 0).view()),
                None => of(rows),
            })
        })
    }

    fn check(&self, rows: &PyReadonlyArray2<f64>) -> PyResult<()> {
        let (found, expected) = (rows.as_array().ncols(), self.mixture.dim());
        if found == expected {
            return Ok(());
        }
        Err(PyValueError::new_err(format!("the rows have {found} columns, and the mixture has {expected}")))
    }
}

impl Mixture {
    /// A copy of the rows that `complete` has changed.
    fn completed<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray2<'py, f64>,
        complete: impl FnOnce(&GaussianMixture, &mut Array2<f64>) + Send,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        self.check(&rows)?;
        let mut filled = rows.as_array().to_owned();
        py.detach(|| with_threads(|| complete(&self.mixture, &mut filled)))?;
        Ok(filled.into_pyarray(py))
    }
}

#[pymethods]
impl Mixture {
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.mixture.weights().to_vec().into_pyarray(py)
    }

    #[getter]
    fn means<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<f64>> {
        self.mixture.means().into_pyarray(py)
    }

    #[getter]
    fn covariances<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray3<f64>> {
        self.mixture.covariances().into_pyarray(py)
    }

    /// The log-density of each row.
    fn score_samples<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let scores = self.of_rows(py, rows, |rows| self.mixture.score_samples(rows))?;
        Ok(scores.map_err(width_error)?.into_pyarray(py))
    }

    /// The most probable component of each row.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let components = self.of_rows(py, rows, |rows| self.mixture.predict(rows))?.map_err(width_error)?;
        Ok(components.into_iter().map(|j| j as i64).collect::<Vec<_>>().into_pyarray(py))
    }

    /// How improbable each column is given the others, as the deviation at which a normal distribution has this density.
    fn explain<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        Ok(self.of_rows(py, rows, |rows| self.mixture.explain(rows))?.into_pyarray(py))
    }

    /// The rows with each missing value, which is NaN, replaced by its mean given the others.
    fn impute<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        self.completed(py, rows, |mixture, filled| mixture.impute(filled.view_mut()))
    }

    /// The rows with their missing values drawn given the others.
    fn sample_missing<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray2<'py, f64>,
        seed: u64,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        self.completed(py, rows, |mixture, filled| {
            mixture.draw_missing(filled.view_mut(), &mut ChaCha8Rng::seed_from_u64(seed));
        })
    }

    /// The mean, the standard deviation and the quantiles of target columns given the others.
    #[allow(clippy::type_complexity)]
    fn predict_columns<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray2<'py, f64>,
        targets: Vec<usize>,
        levels: Vec<f64>,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>, Bound<'py, PyArray3<f64>>)> {
        self.check(&rows)?;
        let rows = rows.as_array();
        let found = py.detach(|| with_threads(|| self.mixture.predict_columns(rows, &targets, &levels)))?;
        let (means, deviations) = (found.means.into_pyarray(py), found.standard_deviations.into_pyarray(py));
        Ok((means, deviations, found.quantiles.into_pyarray(py)))
    }

    /// The log-density of target columns given the others.
    fn conditional_log_density<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray2<'py, f64>,
        targets: Vec<usize>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        self.check(&rows)?;
        let rows = rows.as_array();
        let log_densities =
            py.detach(|| with_threads(|| self.mixture.conditional_log_density(rows, &targets)))?;
        Ok(log_densities.into_pyarray(py))
    }

    /// The probability of each component, given the row.
    fn predict_proba<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let probabilities = self.of_rows(py, rows, |rows| self.mixture.predict_proba(rows))?;
        Ok(probabilities.map_err(width_error)?.into_pyarray(py))
    }
}
