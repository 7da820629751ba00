//! Rows in units of their columns.

use std::sync::Arc;

use ndarray::ArrayView2;

use crate::dist::{Gaussian, GaussianMixture, Mixture};
use crate::learn::LearnError;
use crate::learn::monitor::column_faults::{tame_summaries, tame_summary};
use crate::linalg::blocks::{RowBlocks, UnitTable, in_units};
use crate::linalg::{CovarianceType, Table};
use crate::stats::ColumnSummary;

/// Rows in units of their columns, which makes searches independent of the units of the data.
pub(in crate::learn) struct ScaledRows {
    columns: Vec<ColumnSummary>,
    /// Centre and unit of each column.
    units: Vec<(f64, f64)>,
    pub blocks: RowBlocks,
}

impl ScaledRows {
    /// Scales the rows of `k` components.
    pub fn new(rows: ArrayView2<f64>, k: usize, kind: CovarianceType) -> Result<Self, LearnError> {
        if k == 0 || rows.is_empty() {
            return Err(LearnError::TooFewRows { k, rows: rows.nrows() as u64 });
        }
        let columns = tame_summaries(rows);
        let units = units(&columns, kind);
        let scaled = |i, j| in_units(rows[(i, j)], units[j]);
        let blocks = RowBlocks::from_fn(rows.nrows(), rows.ncols(), scaled);
        Ok(ScaledRows { columns, units, blocks })
    }

    /// Scales every `step`-th of shared rows of `dim` numbers. A large table is not copied.
    pub fn shared(
        rows: Arc<Table>,
        dim: usize,
        step: usize,
        kind: CovarianceType,
    ) -> Result<Self, LearnError> {
        if rows.len() == 0 {
            return Err(LearnError::TooFewRows { k: 1, rows: 0 });
        }
        let columns = summaries_of(&rows, dim, (0..rows.len() / dim).step_by(step));
        let units = units(&columns, kind);
        let blocks = RowBlocks::of_table(UnitTable::new(rows, units.clone()), step);
        Ok(ScaledRows { columns, units, blocks })
    }

    /// Scales the rows with these indices and weights, of shared rows of `dim` numbers. `counts` is that of
    /// [`RowBlocks::weighted`].
    pub fn weighted(
        rows: Arc<Table>,
        dim: usize,
        chosen: &[usize],
        weights: &[f64],
        counts: Option<&[f64]>,
        kind: CovarianceType,
    ) -> Result<Self, LearnError> {
        if chosen.is_empty() {
            return Err(LearnError::TooFewRows { k: 1, rows: 0 });
        }
        let columns = summaries_of(&rows, dim, chosen.iter().copied());
        let units = units(&columns, kind);
        let all = RowBlocks::of_table(UnitTable::new(rows, units.clone()), 1);
        Ok(ScaledRows { columns, units, blocks: all.weighted(chosen, weights, counts) })
    }

    /// Appends rows, in the same units, with these weights if they have any.
    pub fn add(&mut self, values: &[f64], weights: Option<&[f64]>) {
        self.blocks.add(values, &self.units, weights);
    }

    pub fn rows(&self) -> usize {
        self.blocks.rows()
    }

    /// Centre and unit of each column.
    pub fn units(&self) -> &[(f64, f64)] {
        &self.units
    }

    /// The summaries of the columns.
    pub fn columns(&self) -> &[ColumnSummary] {
        &self.columns
    }

    /// `Σ ln unit`: a log-density in scaled units minus the one in the units of the data.
    pub fn log_jacobian(&self) -> f64 {
        self.units.iter().map(|(_, unit)| unit.ln()).sum()
    }

    /// Converts a mixture to the units of the data.
    pub fn unscale(&self, mixture: &GaussianMixture) -> GaussianMixture {
        let factors: Vec<f64> = self.units.iter().map(|(_, unit)| *unit).collect();
        convert(mixture, &factors, |mean, (centre, unit)| centre + unit * mean, &self.units)
    }

    /// Converts a mixture to scaled units.
    pub fn scale(&self, mixture: &GaussianMixture) -> GaussianMixture {
        let factors: Vec<f64> = self.units.iter().map(|(_, unit)| 1.0 / unit).collect();
        convert(mixture, &factors, in_units, &self.units)
    }
}

/// The summaries of the columns of these rows.
fn summaries_of(rows: &Table, dim: usize, chosen: impl Iterator<Item = usize> + Clone) -> Vec<ColumnSummary> {
    (0..dim).map(|j| tame_summary(chosen.clone().map(|i| rows.value(i, j, dim)).collect())).collect()
}

/// The centre and the unit of each column. For spherical covariances all columns have the same unit, since a sphere in other units
/// is none in those of the data.
fn units(columns: &[ColumnSummary], kind: CovarianceType) -> Vec<(f64, f64)> {
    let squares = columns.iter().map(|column| column.unit().min(1e150).powi(2));
    let common = (squares.sum::<f64>() / columns.len() as f64).sqrt();
    let unit = |column: &ColumnSummary| match kind {
        CovarianceType::Spherical => common,
        _ => column.unit(),
    };
    columns.iter().map(|column| (column.mean, unit(column))).collect()
}

fn convert(
    mixture: &GaussianMixture,
    factors: &[f64],
    mean: impl Fn(f64, (f64, f64)) -> f64,
    units: &[(f64, f64)],
) -> GaussianMixture {
    let first = mixture.components()[0].covariance();
    let mut first_converted = first.clone();
    first_converted.change_units(factors);
    let convert = |gaussian: &Gaussian| {
        let mut covariance = first_converted.clone();
        if !gaussian.covariance().is_shared_with(first) {
            covariance = gaussian.covariance().clone();
            covariance.change_units(factors);
        }
        let mean = gaussian.mean().iter().zip(units).map(|(&m, &unit)| mean(m, unit)).collect();
        Gaussian::new(mean, covariance).expect("means are within 1e100 units of the centre")
    };
    let components = mixture.components().iter().map(convert).collect();
    Mixture::new(mixture.weights().to_vec(), components).expect("same shape as before")
}
