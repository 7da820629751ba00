//! Single rows as dictionaries, as in streams of river. They take the short way: with the interpreter's lock, without NumPy and
//! without threads. What that cannot do is left to the caller.

use gmm_bmm::data::MAX_VALUE;
use gmm_bmm::dist::Density;
use gmm_bmm::ndarray::ArrayView2;
use gmm_bmm::{GaussianMixture, Model, OnlineFit, Progress};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// The names of the columns, and the value of a column that a row lacks.
#[derive(Clone, Copy)]
pub struct Columns<'a, 'py> {
    pub features: &'a Bound<'py, PyList>,
    pub lacking: f64,
}

impl Columns<'_, '_> {
    /// Reads the values of a row; None is NaN. Returns `false` if one of them is no number that can be learned, or missing without
    /// `gaps`.
    fn read(self, row: &Bound<'_, PyDict>, gaps: bool, values: &mut Vec<f64>) -> bool {
        let value = |feature: Bound<'_, PyAny>| match row.get_item(feature) {
            Ok(Some(value)) if value.is_none() => Some(f64::NAN),
            Ok(Some(value)) => value.extract().ok(),
            Ok(None) => Some(self.lacking),
            Err(_) => None,
        };
        values.clear();
        values.extend(self.features.iter().map_while(value));
        let is_usable = |value: &f64| value.abs() <= MAX_VALUE || gaps && value.is_nan();
        values.len() == self.features.len() && values.iter().all(is_usable)
    }
}

/// The row of the latest call, and the mixture after the latest row that was learned.
#[derive(Default)]
pub struct One {
    values: Vec<f64>,
    present: Option<(GaussianMixture, Vec<u64>)>,
}

impl One {
    /// Forgets the mixture, because rows are learned.
    pub fn forget(&mut self) {
        self.present = None;
    }

    /// Learns a row. Returns `false` if it has to be learned in another way; then nothing has changed.
    pub fn learn(&mut self, fit: &mut OnlineFit, row: &Bound<'_, PyDict>, columns: Columns) -> bool {
        if fit.revision_due().is_some() || !columns.read(row, fit.settings().gaps, &mut self.values) {
            return false;
        }
        self.present = None;
        let row = ArrayView2::from_shape((1, self.values.len()), &self.values);
        row.is_ok_and(|row| matches!(fit.advance(row), Ok(Progress::Learned(1))))
    }

    /// The mixture after the latest row, and the values of a row. `None` if it has to be scored in another way.
    fn scored(
        &mut self,
        (fit, model): (&OnlineFit, Option<&Model>),
        row: &Bound<'_, PyDict>,
        columns: Columns,
    ) -> Option<(&GaussianMixture, &[u64], &[f64])> {
        let One { values, present } = self;
        let settings = fit.settings();
        if settings.dequantize.is_on()
            || !columns.read(row, settings.gaps, values)
            || values.len() != fit.dim()
        {
            return None;
        }
        if present.is_none() {
            *present = match model {
                Some(model) if fit.has_started() => Some((model.estimate(), model.identifiers())),
                _ => fit.present(),
            };
        }
        present.as_ref().map(|(mixture, identifiers)| (mixture, identifiers.as_slice(), values.as_slice()))
    }

    /// The log-density of a row.
    pub fn score(
        &mut self,
        pass: (&OnlineFit, Option<&Model>),
        row: &Bound<'_, PyDict>,
        columns: Columns,
    ) -> Option<f64> {
        self.scored(pass, row, columns).map(|(mixture, _, values)| mixture.log_density(values))
    }

    /// The identifier of the most probable component of a row.
    pub fn predict(
        &mut self,
        pass: (&OnlineFit, Option<&Model>),
        row: &Bound<'_, PyDict>,
        columns: Columns,
    ) -> Option<u64> {
        let (mixture, identifiers, values) = self.scored(pass, row, columns)?;
        let terms = mixture.components().iter().zip(mixture.weights());
        let mut best = (f64::NEG_INFINITY, 0);
        for (j, (component, weight)) in terms.enumerate() {
            let term = weight.ln() + component.log_density(values);
            if term > best.0 {
                best = (term, j);
            }
        }
        identifiers.get(best.1).copied()
    }
}
