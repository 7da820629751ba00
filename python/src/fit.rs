//! One pass over a stream.

use std::sync::Mutex;

use gmm_bmm::ndarray::{ArrayView2, s};
use gmm_bmm::{
    ColumnNames, Components, Effort, FitSettings, GaussianMixture, Model, OnlineFit, ScoreRanks, merge_models,
};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors::{learn_error, merge_error, model_error, write_error};
use crate::interrupt::{check_signals, interruptible};
use crate::mixture::Mixture;

/// Numbers that are learned between two looks at pending signals.
const BLOCK: usize = 1 << 18;

/// One pass over a stream of rows. Threads that use it at the same time wait for each other.
#[pyclass(frozen, module = "gmm_bmm._core")]
pub struct Fit {
    pass: Mutex<Pass>,
}

struct Pass {
    fit: OnlineFit,
    /// The model after the latest row, once it was asked for. The next row discards it.
    model: Option<Model>,
}

type Posterior<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

impl Fit {
    fn of(fit: OnlineFit, model: Option<Model>) -> Self {
        Fit { pass: Mutex::new(Pass { fit, model }) }
    }

    fn of_model(model: Model, name: &str) -> PyResult<Self> {
        let fit = model.clone().resume().map_err(|error| model_error(name, error))?;
        Ok(Fit::of(fit, Some(model)))
    }

    /// Uses the pass without the interpreter's lock.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Pass) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        py.detach(|| {
            let broken = |_| PyRuntimeError::new_err("an earlier call ended in an internal error");
            work(&mut *self.pass.lock().map_err(broken)?)
        })
    }
}

impl Pass {
    fn observe(&mut self, rows: ArrayView2<f64>) -> PyResult<()> {
        let block = (BLOCK / rows.ncols().max(1)).max(1);
        self.model = None;
        let mut from = 0;
        loop {
            let fit = &mut self.fit;
            if fit.revision_due().is_some() {
                interruptible(|stop| fit.revise(stop))?.map_err(learn_error)?;
                continue;
            }
            if from == rows.nrows() {
                return Ok(());
            }
            let to = rows.nrows().min(from + block);
            from += fit.advance(rows.slice(s![from..to, ..])).map_err(learn_error)?;
            if from < rows.nrows() {
                check_signals()?;
            }
        }
    }

    /// Computes what the end of the stream makes of the rows so far.
    fn finish(&mut self) -> PyResult<&Model> {
        let fit = &mut self.fit;
        interruptible(|stop| fit.finish(stop))?.map_err(learn_error)?;
        let model = self.fit.to_model().map_err(learn_error)?;
        Ok(self.model.insert(model))
    }

    /// The model after the latest row. Rows that wait for the start are fitted as if the stream ended here.
    fn model(&mut self) -> PyResult<&Model> {
        if self.model.is_none() {
            if !self.fit.has_started() {
                return self.finish();
            }
            self.model = Some(self.fit.to_model().map_err(learn_error)?);
        }
        self.model.as_ref().ok_or_else(|| PyRuntimeError::new_err("there is no model"))
    }
}

#[pymethods]
impl Fit {
    #[new]
    #[pyo3(signature = (dim, *, names=None, components=(1, 50), learned=true, algorithm="obmm", effort="default",
                        start_rows=None, keep_rows=None, half_life=None, gaps=false, seed=1))]
    #[allow(clippy::too_many_arguments)] // They are keywords.
    fn new(
        dim: usize,
        names: Option<Vec<String>>,
        components: (usize, usize),
        learned: bool,
        algorithm: &str,
        effort: &str,
        start_rows: Option<usize>,
        keep_rows: Option<usize>,
        half_life: Option<u64>,
        gaps: bool,
        seed: u64,
    ) -> PyResult<Self> {
        let components = if learned {
            Components::learned(components.0..=components.1)
        } else {
            Components::Given(vec![components.0])
        };
        let settings = match algorithm {
            "obmm" => FitSettings::obmm(components),
            "oem" => FitSettings::oem(components),
            _ => {
                return Err(PyValueError::new_err(format!(
                    "algorithm must be 'obmm' or 'oem', not '{algorithm}'"
                )));
            }
        };
        let known = EFFORTS.iter().find(|(name, _)| *name == effort);
        let (_, effort) = known.ok_or_else(|| {
            PyValueError::new_err(format!("effort must be 'fast', 'default' or 'thorough', not '{effort}'"))
        })?;
        let mut settings = settings.effort(*effort).gaps(gaps).seed(seed);
        if let Some(rows) = start_rows {
            settings = settings.start_rows(rows);
        }
        if let Some(rows) = keep_rows {
            settings = settings.keep_rows(rows);
        }
        if let Some(rows) = half_life {
            settings = settings.half_life(rows);
        }
        let fit = OnlineFit::new(columns(dim, names), settings).map_err(learn_error)?;
        Ok(Fit::of(fit, None))
    }

    /// A pass that continues from a mixture which was fitted to `rows` rows elsewhere.
    #[staticmethod]
    #[pyo3(signature = (weights, means, covariances, *, rows, names=None, seed=1))]
    fn from_mixture(
        weights: PyReadonlyArray1<f64>,
        means: PyReadonlyArray2<f64>,
        covariances: PyReadonlyArray3<f64>,
        rows: u64,
        names: Option<Vec<String>>,
        seed: u64,
    ) -> PyResult<Self> {
        let (weights, means, covariances) = (weights.as_array(), means.as_array(), covariances.as_array());
        let mixture = GaussianMixture::from_arrays(weights, means, covariances)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let settings = FitSettings::obmm(mixture.k()).seed(seed);
        let fit = OnlineFit::from_mixture(&mixture, rows, columns(means.ncols(), names), settings);
        Ok(Fit::of(fit.map_err(learn_error)?, None))
    }

    /// A pass from the bytes of a model file.
    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        let name = "the bytes of a model";
        Fit::of_model(Model::read(data).map_err(|error| model_error(name, error))?, name)
    }

    /// A pass from a model file.
    #[staticmethod]
    fn load(py: Python<'_>, path: &str) -> PyResult<Self> {
        py.detach(|| Fit::of_model(Model::load(path).map_err(|error| model_error(path, error))?, path))
    }

    /// Sets, changes or removes the half-life.
    fn set_half_life(&self, py: Python<'_>, rows: Option<u64>) -> PyResult<()> {
        self.with(py, |pass| {
            if rows != pass.fit.settings().half_life {
                pass.model = None;
            }
            pass.fit.set_half_life(rows).map_err(learn_error)
        })
    }

    /// Learns rows, and revises the structure where that is due.
    fn observe(&self, py: Python<'_>, rows: PyReadonlyArray2<f64>) -> PyResult<()> {
        let rows = rows.as_array();
        self.with(py, |pass| pass.observe(rows))
    }

    /// Sets whether values may be missing from now on; a missing value is NaN.
    fn allow_gaps(&self, py: Python<'_>, gaps: bool) -> PyResult<()> {
        self.with(py, |pass| {
            pass.fit.allow_gaps(gaps);
            Ok(())
        })
    }

    /// Computes what the end of the stream makes of the rows so far.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |pass| pass.finish().map(drop))
    }

    /// The mixture after the latest row.
    fn mixture(&self, py: Python<'_>) -> PyResult<Mixture> {
        self.with(py, |pass| Ok(Mixture::new(pass.model()?.estimate())))
    }

    /// The fraction of the learned rows with a lower log-density, for each log-density; NaN if none is known.
    fn ranks<'py>(
        &self,
        py: Python<'py>,
        log_densities: PyReadonlyArray1<f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let log_densities = log_densities.as_array().to_vec();
        let ranks = self.with(py, |pass| {
            let table = pass.model()?.ranks().map(ScoreRanks::table);
            let rank = |log_density| table.as_ref().and_then(|table| table.rank(log_density));
            Ok(log_densities.into_iter().map(|one| rank(one).unwrap_or(f64::NAN)).collect::<Vec<f64>>())
        })?;
        Ok(ranks.into_pyarray(py))
    }

    /// The lasting identifier of each component.
    fn identifiers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        Ok(self.with(py, |pass| Ok(pass.model()?.identifiers()))?.into_pyarray(py))
    }

    /// The cluster of each component, -1 for a component of outliers.
    fn clusters<'py>(&self, py: Python<'py>, overlap: f64) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let names = self.with(py, |pass| {
            let labels = pass.model()?.labels(overlap);
            let name =
                |place| labels.clusters().of(place).map_or(-1, |cluster| labels.cluster_name(cluster) as i64);
            Ok((0..labels.identifiers().len()).map(name).collect::<Vec<i64>>())
        })?;
        Ok(names.into_pyarray(py))
    }

    /// Concentrations of the weights, `κ` and `ν` of the components, or `None` where the learner has no posterior.
    fn posterior<'py>(&self, py: Python<'py>) -> PyResult<Option<Posterior<'py>>> {
        let found = self.with(py, |pass| {
            let Some(posterior) = pass.model()?.posterior() else { return Ok(None) };
            let (kappa, nu): (Vec<f64>, Vec<f64>) =
                posterior.components().iter().map(|c| (c.kappa(), c.nu())).unzip();
            Ok(Some((posterior.weights().concentrations().to_vec(), kappa, nu)))
        })?;
        Ok(found.map(|(a, kappa, nu)| (a.into_pyarray(py), kappa.into_pyarray(py), nu.into_pyarray(py))))
    }

    /// A pass over one shard, with this one as the common prior.
    fn begin_shard(&self, py: Python<'_>) -> PyResult<Fit> {
        let shard = self.with(py, |pass| pass.model()?.begin_shard().map_err(merge_error))?;
        Ok(Fit::of(shard, None))
    }

    /// The bytes of the model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.with(py, |pass| {
            let mut bytes = Vec::new();
            let written = pass.model()?.write(&mut bytes);
            written.map(|()| bytes).map_err(|error| PyRuntimeError::new_err(error.to_string()))
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Writes the model file, whole or not at all.
    fn save(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        self.with(py, |pass| pass.model()?.save(path).map_err(|error| write_error(path, error)))
    }

    /// The revisions of the structure, as JSON.
    fn history_json(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |pass| {
            let revisions: Vec<_> = pass.model()?.revisions().collect();
            serde_json::to_string(&revisions).map_err(|error| PyRuntimeError::new_err(error.to_string()))
        })
    }

    /// What is worth knowing about the data, as JSON.
    fn findings_json(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |pass| {
            serde_json::to_string(&pass.fit.findings())
                .map_err(|error| PyRuntimeError::new_err(error.to_string()))
        })
    }

    #[getter]
    fn rows(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |pass| Ok(pass.fit.rows()))
    }

    #[getter]
    fn has_started(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |pass| Ok(pass.fit.has_started()))
    }

    #[getter]
    fn dim(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |pass| Ok(pass.fit.dim()))
    }

    #[getter]
    fn names(&self, py: Python<'_>) -> PyResult<Option<Vec<String>>> {
        self.with(py, |pass| {
            let columns = pass.fit.columns();
            Ok(columns.named.then(|| columns.names.clone()))
        })
    }

    /// Mean log-density of rows before they were learned; NaN while no row was scored.
    #[getter]
    fn prequential_score(&self, py: Python<'_>) -> PyResult<f64> {
        self.with(py, |pass| Ok(pass.model()?.prequential().mean().unwrap_or(f64::NAN)))
    }

    /// The arguments of an estimator with the settings of this pass.
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let settings = self.with(py, |pass| Ok(pass.fit.settings().clone()))?;
        let arguments = PyDict::new(py);
        match &settings.components {
            Components::Learned { least, most } => arguments.set_item("n_components", (*least, *most))?,
            Components::Given(ks) => arguments.set_item("n_components", ks[0])?,
            _ => return Err(PyValueError::new_err("the model has settings of a later version")),
        }
        let effort = EFFORTS.iter().find(|(_, effort)| *effort == settings.effort);
        arguments.set_item("algorithm", settings.algorithm.name())?;
        arguments.set_item("effort", effort.map_or("default", |effort| effort.0))?;
        arguments.set_item("start_rows", settings.start_rows)?;
        arguments.set_item("keep_rows", settings.keep_rows)?;
        arguments.set_item("half_life", settings.half_life)?;
        arguments.set_item("missing", if settings.gaps { "marginal" } else { "error" })?;
        arguments.set_item("random_state", settings.seed)?;
        Ok(arguments)
    }
}

/// The product of the shards' posteriors over their common prior.
#[pyfunction]
pub fn merge(py: Python<'_>, prior: &Fit, shards: Vec<Py<Fit>>) -> PyResult<Fit> {
    let prior = prior.with(py, |pass| pass.model().cloned())?;
    let mut models = Vec::with_capacity(shards.len());
    for (i, shard) in shards.iter().enumerate() {
        models.push((format!("shard {}", i + 1), shard.get().with(py, |pass| pass.model().cloned())?));
    }
    py.detach(|| {
        let merged = merge_models(&prior, &models, false).map_err(merge_error)?;
        Fit::of_model(merged.model, "the merged model")
    })
}

const EFFORTS: &[(&str, Effort)] =
    &[("fast", Effort::Fast), ("default", Effort::Default), ("thorough", Effort::Thorough)];

fn columns(dim: usize, names: Option<Vec<String>>) -> ColumnNames {
    names.map_or_else(|| ColumnNames::unnamed(dim), ColumnNames::named)
}
