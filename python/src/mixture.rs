//! A mixture that scores and assigns rows.

use gmm_bmm::GaussianMixture;
use gmm_bmm::data::Noise;
use gmm_bmm::dist::{Factor, Gaussian};
use gmm_bmm::ndarray::{Array1, Array2, ArrayD, ArrayView1, ArrayView2, ArrayViewD, Axis, Ix2};
use gmm_bmm::settings::CovarianceType;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArray3, PyArrayDyn, PyReadonlyArray2};
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
    covariance: CovarianceType,
}

/// The mixture of arrays of the shapes that scikit-learn gives these covariances.
pub fn mixture_of(
    weights: ArrayView1<f64>,
    means: ArrayView2<f64>,
    covariances: ArrayViewD<f64>,
    kind: CovarianceType,
) -> PyResult<GaussianMixture> {
    let broken = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
    let (k, dim) = means.dim();
    let expected: &[usize] = match kind {
        CovarianceType::Full => &[k, dim, dim],
        CovarianceType::Tied => &[dim, dim],
        CovarianceType::Diag => &[k, dim],
        CovarianceType::Spherical => &[k],
    };
    if covariances.shape() != expected {
        let found = covariances.shape();
        return Err(PyValueError::new_err(format!(
            "the covariances must have the shape {expected:?}, not {found:?}"
        )));
    }
    let square = |matrix: ArrayViewD<f64>| {
        let matrix = matrix.into_dimensionality::<Ix2>().expect("the shape was checked");
        Factor::from_matrix(matrix).map_err(|error| broken(&error))
    };
    let shared = if kind == CovarianceType::Tied { Some(square(covariances.clone())?) } else { None };
    let factor = |j: usize| match (&shared, kind) {
        (Some(shared), _) => Ok(shared.clone()),
        (None, CovarianceType::Diag) => {
            let own: Vec<f64> = covariances.index_axis(Axis(0), j).iter().copied().collect();
            Factor::from_variances(&own).map_err(|error| broken(&error))
        }
        (None, CovarianceType::Spherical) => {
            Factor::spherical(dim, covariances[[j]]).map_err(|error| broken(&error))
        }
        (None, _) => square(covariances.index_axis(Axis(0), j)),
    };
    let component =
        |j: usize| Gaussian::new(means.row(j).to_vec(), factor(j)?).map_err(|error| broken(&error));
    let components = (0..k).map(component).collect::<PyResult<Vec<_>>>()?;
    GaussianMixture::new(weights.to_vec(), components).map_err(|error| broken(&error))
}

impl Mixture {
    pub fn new(mixture: GaussianMixture, noise: Option<Noise>, covariance: CovarianceType) -> Self {
        Mixture { mixture, noise, covariance }
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
    fn covariance_type(&self) -> &'static str {
        self.covariance.name()
    }

    /// In scikit-learn's shapes.
    #[getter]
    fn covariances<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDyn<f64>> {
        let components = self.mixture.components();
        let found: ArrayD<f64> = match self.covariance {
            CovarianceType::Full => self.mixture.covariances().into_dyn(),
            CovarianceType::Tied => components[0].covariance().matrix().into_dyn(),
            CovarianceType::Diag => {
                let own: Vec<f64> = components.iter().flat_map(|own| own.covariance().diagonal()).collect();
                let shape = (components.len(), self.mixture.dim());
                Array2::from_shape_vec(shape, own).expect("one variance for each column").into_dyn()
            }
            CovarianceType::Spherical => components
                .iter()
                .map(|own| own.covariance().diagonal()[0])
                .collect::<Array1<f64>>()
                .into_dyn(),
        };
        found.into_pyarray(py)
    }

    /// Its free numbers.
    #[getter]
    fn parameters(&self) -> usize {
        self.covariance.parameters(self.mixture.k(), self.mixture.dim())
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
