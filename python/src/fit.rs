//! What Python calls on a pass.

use std::path::PathBuf;

use gmm_bmm::dist::Uniting;
use gmm_bmm::findings::Finding;
use gmm_bmm::ndarray::Array2;
use gmm_bmm::scores::ScoreRanks;
use gmm_bmm::settings::{Components, CovarianceType, Effort, PriorStrength};
use gmm_bmm::{ColumnNames, FitSettings, MergeOptions, Model, OnlineFit, PageOptions, merge_models};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArrayDyn};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use serde_json::{Map, Value};

use crate::errors::{content_error, file_error, learn_error, merge_error, os_error, width_error};
use crate::mixture::{Mixture, mixture_of};
use crate::one::Columns;
use crate::pass::{Fit, Pass};
use crate::range::find_unusable;
use crate::threads::with_threads;

/// Weights, means and covariances of a mixture that a pass begins from, and the rows that it counts for.
type StartArrays<'py> =
    (PyReadonlyArray1<'py, f64>, PyReadonlyArray2<'py, f64>, PyReadonlyArrayDyn<'py, f64>, u64);

type Posterior<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

#[pymethods]
impl Fit {
    #[new]
    #[pyo3(signature = (dim, *, names=None, components=(1, 50), learned=true, algorithm="obmm", effort="default",
                        start_rows=None, keep_rows=None, half_life=None, prior_strength=None, dequantize=false, gaps=false,
                        seed=1, covariance_type="full", start=None))]
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
        prior_strength: Option<f64>,
        dequantize: bool,
        gaps: bool,
        seed: u64,
        covariance_type: &str,
        start: Option<StartArrays>,
    ) -> PyResult<Self> {
        let components = if learned {
            Components::learned(components.0..=components.1)
        } else {
            Components::from(components.0..=components.1)
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
        if dequantize {
            settings = settings.dequantize();
        }
        if let Some(rows) = prior_strength {
            settings = settings.prior_strength(rows);
        }
        let kind: CovarianceType = covariance_type.parse().map_err(PyValueError::new_err)?;
        let (settings, columns) = (settings.covariance(kind), columns(dim, names));
        let Some((weights, means, covariances, rows)) = start else {
            let fit = OnlineFit::new(columns, settings).map_err(learn_error)?;
            return Ok(Fit::of(fit, None));
        };
        let mixture = mixture_of(weights.as_array(), means.as_array(), covariances.as_array(), kind)?;
        let fit = with_threads(|| OnlineFit::from_mixture(&mixture, rows, columns, settings))?;
        Ok(Fit::of(fit.map_err(learn_error)?, None))
    }

    /// A pass from the bytes of a model file.
    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        with_threads(|| Model::read(data).and_then(Fit::of_model))?
            .map_err(|error| content_error("the bytes of a model", error))
    }

    /// A pass from a model file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| {
            let loaded = with_threads(|| Model::load(&path).and_then(Fit::of_model))?;
            loaded.map_err(|error| file_error(&path, error))
        })
    }

    /// Learns rows with this half-life, and revises the structure where that is due. If a value cannot be learned, returns its place
    /// and learns nothing. NaN is a missing value where there may be gaps. A row with a weight counts as this number of rows.
    #[pyo3(signature = (rows, half_life, gaps, weights=None))]
    fn observe(
        &self,
        py: Python<'_>,
        rows: PyReadonlyArray2<f64>,
        half_life: Option<u64>,
        gaps: bool,
        weights: Option<PyReadonlyArray1<f64>>,
    ) -> PyResult<Option<(usize, usize)>> {
        let rows = rows.as_array();
        let weights = weights.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
        if weights.is_some_and(|weights| weights.len() != rows.nrows()) {
            return Err(PyValueError::new_err("there must be one weight for each row"));
        }
        self.with(py, |pass| {
            let unusable = find_unusable(rows, gaps);
            if unusable.is_none() {
                (pass.model, pass.anomaly_score) = (None, None);
                pass.one.forget();
                pass.fit.set_half_life(half_life).map_err(learn_error)?;
                pass.fit.allow_gaps(gaps);
                pass.observe(rows, weights)?;
            }
            Ok(unusable)
        })
    }

    /// Learns a row of a dictionary. Returns `False` if it has to be learned by [`Fit::observe`].
    fn observe_one(
        &self,
        py: Python<'_>,
        row: &Bound<'_, PyDict>,
        features: &Bound<'_, PyList>,
        lacking: f64,
    ) -> PyResult<bool> {
        let Some(mut pass) = self.at_once() else { return Ok(false) };
        let Pass { fit, model, anomaly_score, one } = &mut *pass;
        if !one.learn(fit, row, Columns { features, lacking }) {
            return Ok(false);
        }
        (*model, *anomaly_score) = (None, None);
        if fit.revision_due().is_none() {
            return Ok(true);
        }
        let none = Array2::zeros((0, fit.dim()));
        drop(pass);
        self.with(py, |pass| {
            pass.one.forget();
            pass.observe(none.view(), None)
        })?;
        Ok(true)
    }

    /// The log-density of a row of a dictionary. `None` if it has to be scored by a [`Mixture`].
    fn score_one(&self, row: &Bound<'_, PyDict>, features: &Bound<'_, PyList>, lacking: f64) -> Option<f64> {
        let Pass { fit, model, one, .. } = &mut *self.at_once()?;
        one.score((fit, model.as_ref()), row, Columns { features, lacking })
    }

    /// The identifier of the most probable component of a row of a dictionary, likewise.
    fn predict_one(
        &self,
        row: &Bound<'_, PyDict>,
        features: &Bound<'_, PyList>,
        lacking: f64,
    ) -> Option<u64> {
        let Pass { fit, model, one, .. } = &mut *self.at_once()?;
        one.predict((fit, model.as_ref()), row, Columns { features, lacking })
    }

    /// Computes what the end of the stream makes of the rows so far.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |pass| pass.finish().map(drop))
    }

    /// The mixture after the latest row.
    fn mixture(&self, py: Python<'_>) -> PyResult<Mixture> {
        self.with_model(py, |model| {
            Ok(Mixture::new(model.estimate(), model.noise(), model.recipe().covariance()))
        })
    }

    /// The fraction of the learned rows with a lower log-density, for each row; NaN if none is known.
    fn ranks<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray2<f64>,
        overlap: f64,
        clusters: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let rows = rows.as_array();
        let ranks = self.with_model(py, |model| {
            let Some(table) = model.ranks().map(ScoreRanks::table) else {
                return Ok(vec![f64::NAN; rows.nrows()]);
            };
            let noisy = model.noise().map(|noise| noise.noisy(rows, 0));
            let rows = noisy.as_ref().map_or(rows, |noisy| noisy.view());
            let usualness = model.estimate().usualness(rows, uniting(overlap, clusters));
            Ok(usualness.into_iter().map(|one| table.rank(one).unwrap_or(f64::NAN)).collect::<Vec<f64>>())
        })?;
        Ok(ranks.into_pyarray(py))
    }

    /// The score of each row by which anomalies are detected: the lower, the more unusual.
    fn anomaly_scores<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray2<f64>,
        contamination: Option<f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let rows = rows.as_array();
        let scores = self.with(py, |pass| {
            let noise = pass.model()?.noise();
            let score = pass.anomaly_score(contamination)?;
            let scores = with_threads(|| match noise {
                Some(noise) => score.score_samples(noise.noisy(rows, 0).view()),
                None => score.score_samples(rows),
            })?;
            scores.map_err(width_error)
        })?;
        Ok(scores.into_pyarray(py))
    }

    /// The score below which a row is an anomaly if the contamination is not known.
    fn anomaly_offset(&self, py: Python<'_>) -> PyResult<f64> {
        self.with(py, |pass| {
            let score = pass.anomaly_score(None)?.clone();
            let model = pass.model()?;
            with_threads(|| model.anomaly_offset(&score, None))
        })
    }

    /// The lasting identifier of each component.
    fn identifiers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        Ok(self.with_model(py, |model| Ok(model.identifiers()))?.into_pyarray(py))
    }

    /// The cluster of each component, -1 for a component of outliers.
    fn clusters<'py>(
        &self,
        py: Python<'py>,
        overlap: f64,
        clusters: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let names = self.with_model(py, |model| {
            let labels = model.labels(uniting(overlap, clusters));
            let found = labels.clusters().count();
            if clusters.is_some_and(|wanted| found < wanted) {
                return Err(PyValueError::new_err(format!(
                    "n_clusters={} is more than the {found} components that are not outliers",
                    clusters.unwrap_or_default()
                )));
            }
            let name =
                |place| labels.clusters().of(place).map_or(-1, |cluster| labels.cluster_name(cluster) as i64);
            Ok((0..labels.identifiers().len()).map(name).collect::<Vec<i64>>())
        })?;
        Ok(names.into_pyarray(py))
    }

    /// Concentrations of the weights, `κ` and `ν` of the components, or `None` where the learner has no posterior.
    fn posterior<'py>(&self, py: Python<'py>) -> PyResult<Option<Posterior<'py>>> {
        let found = self.with_model(py, |model| {
            let Some(posterior) = model.posterior() else { return Ok(None) };
            let (kappa, nu): (Vec<f64>, Vec<f64>) =
                posterior.components().iter().map(|c| (c.kappa(), c.nu())).unzip();
            Ok(Some((posterior.weights().concentrations().to_vec(), kappa, nu)))
        })?;
        Ok(found.map(|(a, kappa, nu)| (a.into_pyarray(py), kappa.into_pyarray(py), nu.into_pyarray(py))))
    }

    /// A pass over one shard, with this one as the common prior. It keeps as many rows as this one if no number is given.
    #[pyo3(signature = (keep_rows=None))]
    fn begin_shard(&self, py: Python<'_>, keep_rows: Option<usize>) -> PyResult<Fit> {
        let shard = self.with_model(py, |model| {
            let keep_rows = keep_rows.or(model.keep_rows());
            model.begin_shard_keeping(keep_rows).map_err(merge_error)
        })?;
        Ok(Fit::of(shard, None))
    }

    /// The same without rows of the data, which is a smaller common prior.
    fn without_rows(&self, py: Python<'_>) -> PyResult<Fit> {
        let model = self.with_model(py, |model| Ok(model.clone().without_rows()))?;
        Fit::of_model(model).map_err(|error| content_error("the model without rows", error))
    }

    /// The bytes of the model file, with the parameters of the estimator that only it knows, as JSON.
    #[pyo3(signature = (parameters=None))]
    fn to_bytes<'py>(&self, py: Python<'py>, parameters: Option<&str>) -> PyResult<Bound<'py, PyBytes>> {
        let parameters = parsed(parameters)?;
        let bytes = self.with_model(py, |model| {
            let mut bytes = Vec::new();
            model.set_estimator(parameters);
            let written = model.write(&mut bytes);
            written.map(|()| bytes).map_err(|error| PyRuntimeError::new_err(error.to_string()))
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Writes the model file, whole or not at all, with the parameters of the estimator that only it knows, as JSON.
    #[pyo3(signature = (path, parameters=None))]
    fn save(&self, py: Python<'_>, path: PathBuf, parameters: Option<&str>) -> PyResult<()> {
        let parameters = parsed(parameters)?;
        self.with_model(py, |model| {
            model.set_estimator(parameters);
            model.save(&path).map_err(|error| os_error(&path, &error))
        })
    }

    /// The parameters of the estimator that the model file holds, as JSON, until further rows are learned.
    fn parameters_json(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.with(py, |pass| {
            let parameters = pass.model.as_ref().and_then(Model::estimator);
            parameters
                .map(serde_json::to_string)
                .transpose()
                .map_err(|error| PyRuntimeError::new_err(error.to_string()))
        })
    }

    /// The revisions of the structure, as JSON.
    fn history_json(&self, py: Python<'_>) -> PyResult<String> {
        self.with_model(py, |model| {
            let revisions: Vec<_> = model.revisions().collect();
            serde_json::to_string(&revisions).map_err(|error| PyRuntimeError::new_err(error.to_string()))
        })
    }

    /// A page of HTML that shows the model.
    fn to_html(&self, py: Python<'_>, overlap: f64, clusters: Option<usize>) -> PyResult<String> {
        self.with(py, |pass| {
            pass.model()?;
            let findings = with_threads(|| pass.fit.findings().iter().map(Finding::to_string).collect())?;
            let options =
                PageOptions { clusters: uniting(overlap, clusters), findings, ..PageOptions::default() };
            let model = pass.model()?;
            let page = with_threads(|| model.to_html(&options))?;
            page.ok_or_else(|| PyRuntimeError::new_err("there is no model"))
        })
    }

    /// What is worth knowing about the data, as JSON.
    fn findings_json(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |pass| {
            let fit = &pass.fit;
            let found: Vec<Finding> = with_threads(|| {
                fit.findings().into_iter().map(|finding| named_once(finding, fit.rows())).collect()
            })?;
            serde_json::to_string(&found).map_err(|error| PyRuntimeError::new_err(error.to_string()))
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

    /// Whether a row had another weight than 1.
    #[getter]
    fn weighted(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |pass| Ok(pass.fit.settings().weights.is_some()))
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
        self.with_model(py, |model| Ok(model.prequential().mean().unwrap_or(f64::NAN)))
    }

    /// The arguments of an estimator, as far as the model file of this pass tells them.
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (settings, has_gaps) = self.with(py, |pass| {
            let model = pass.model()?;
            let has_gaps = model.has_gaps();
            Ok((pass.fit.settings().clone(), has_gaps))
        })?;
        let arguments = PyDict::new(py);
        match &settings.components {
            Components::Learned { least, most } if (*least..=*most) == Components::DEFAULT_BOUNDS => {
                arguments.set_item("n_components", "auto")?;
            }
            Components::Learned { least, most } => {
                arguments.set_item("n_components", format!("auto:{least}..{most}"))?;
            }
            Components::Given(ks) => match (ks[0], ks[ks.len() - 1]) {
                (low, high) if low == high => arguments.set_item("n_components", low)?,
                bounds => arguments.set_item("n_components", bounds)?,
            },
            _ => return Err(PyValueError::new_err("the model has settings of a later version")),
        }
        let effort = EFFORTS.iter().find(|(_, effort)| *effort == settings.effort);
        // Once its shards are merged, a pass of oDMM continues as oBMM.
        let name = settings.algorithm.name();
        arguments.set_item("algorithm", if name == "odmm" { "obmm" } else { name })?;
        arguments.set_item("covariance_type", settings.covariance.name())?;
        arguments.set_item("effort", effort.map_or("default", |effort| effort.0))?;
        arguments.set_item("start_rows", settings.start_rows)?;
        arguments.set_item("keep_rows", settings.keep_rows)?;
        arguments.set_item("half_life", settings.half_life)?;
        match settings.prior_strength {
            PriorStrength::Auto => arguments.set_item("prior_strength", "auto")?,
            PriorStrength::Rows(rows) => arguments.set_item("prior_strength", rows)?,
        }
        arguments.set_item("dequantize", settings.dequantize.is_on())?;
        arguments.set_item("missing", if has_gaps { "marginal" } else { "error" })?;
        // NumPy's seeds have 32 bits.
        arguments.set_item("random_state", settings.seed as u32)?;
        Ok(arguments)
    }
}

/// The product of the shards' posteriors over their common prior. The keywords are those of [`MergeOptions`].
#[pyfunction]
#[pyo3(signature = (prior, shards, *, prior_is_a_sample=false, intermediate=false, distinct=false))]
pub fn merge(
    py: Python<'_>,
    prior: &Fit,
    shards: Vec<Py<Fit>>,
    prior_is_a_sample: bool,
    intermediate: bool,
    distinct: bool,
) -> PyResult<Fit> {
    let options = MergeOptions { realign: false, prior_is_a_sample, intermediate, distinct };
    let prior = prior.with_model(py, |model| Ok(model.clone()))?;
    let mut models = Vec::with_capacity(shards.len());
    for (i, shard) in shards.iter().enumerate() {
        models.push((format!("shard {}", i + 1), shard.get().with_model(py, |model| Ok(model.clone()))?));
    }
    py.detach(|| {
        let merged = with_threads(|| merge_models(&prior, &models, options))?.map_err(merge_error)?;
        Fit::of_model(merged.model).map_err(|error| content_error("the merged model", error))
    })
}

fn parsed(parameters: Option<&str>) -> PyResult<Option<Map<String, Value>>> {
    let parsed = parameters.map(serde_json::from_str).transpose();
    parsed.map_err(|error| PyValueError::new_err(error.to_string()))
}

/// A finding under the name that it has in a pass that never stopped. A resumed pass compares summaries, by which it notices
/// that all its new rows, and nothing else, were learned from the first row on.
fn named_once(finding: Finding, learned: u64) -> Finding {
    match finding {
        Finding::RepeatedRows { rows } => {
            Finding::RowsLearnedBefore { rows, from: learned.saturating_sub(rows) + 1, before: 1 }
        }
        other => other,
    }
}

const EFFORTS: &[(&str, Effort)] =
    &[("fast", Effort::Fast), ("default", Effort::Default), ("thorough", Effort::Thorough)];

fn columns(dim: usize, names: Option<Vec<String>>) -> ColumnNames {
    names.map_or_else(|| ColumnNames::unnamed(dim), ColumnNames::named)
}

/// Which components are one cluster.
fn uniting(overlap: f64, clusters: Option<usize>) -> Uniting {
    clusters.map_or(Uniting::Overlap(overlap), Uniting::Count)
}
