//! Rows in units of their columns.

use std::sync::Arc;

use ndarray::ArrayView2;

use crate::dist::{Gaussian, GaussianMixture, Mixture};
use crate::learn::LearnError;
use crate::learn::monitor::column_faults::{tame_summaries, tame_summary};
use crate::linalg::Table;
use crate::linalg::blocks::{RowBlocks, UnitTable, in_units};
use crate::stats::ColumnSummary;

/// Rows in units of their columns, which makes searches independent of the units of the data.
pub(in crate::learn) struct ScaledRows {
    columns: Vec<ColumnSummary>,
    pub blocks: RowBlocks,
}

impl ScaledRows {
    /// Scales the rows of `k` components.
    pub fn new(rows: ArrayView2<f64>, k: usize) -> Result<Self, LearnError> {
        if k == 0 || rows.is_empty() {
            return Err(LearnError::TooFewRows { k, rows: rows.nrows() as u64 });
        }
        let columns = tame_summaries(rows);
        let units = units(&columns);
        let scaled = |i, j| in_units(rows[(i, j)], units[j]);
        let blocks = RowBlocks::from_fn(rows.nrows(), rows.ncols(), scaled);
        Ok(ScaledRows { columns, blocks })
    }

    /// Scales every `step`-th of shared rows of `dim` numbers. A large table is not copied.
    pub fn shared(rows: Arc<Table>, dim: usize, step: usize) -> Result<Self, LearnError> {
        if rows.len() == 0 {
            return Err(LearnError::TooFewRows { k: 1, rows: 0 });
        }
        let columns = summaries_of(&rows, dim, (0..rows.len() / dim).step_by(step));
        let blocks = RowBlocks::of_table(UnitTable::new(rows, units(&columns)), step);
        Ok(ScaledRows { columns, blocks })
    }

    /// Scales the rows with these indices and weights, of shared rows of `dim` numbers. `counts` is that of
    /// [`RowBlocks::weighted`].
    pub fn weighted(
        rows: Arc<Table>,
        dim: usize,
        chosen: &[usize],
        weights: &[f64],
        counts: Option<&[f64]>,
    ) -> Result<Self, LearnError> {
        if chosen.is_empty() {
            return Err(LearnError::TooFewRows { k: 1, rows: 0 });
        }
        let columns = summaries_of(&rows, dim, chosen.iter().copied());
        let all = RowBlocks::of_table(UnitTable::new(rows, units(&columns)), 1);
        Ok(ScaledRows { columns, blocks: all.weighted(chosen, weights, counts) })
    }

    /// Appends rows, in the same units, with these weights if they have any.
    pub fn add(&mut self, values: &[f64], weights: Option<&[f64]>) {
        self.blocks.add(values, &units(&self.columns), weights);
    }

    pub fn rows(&self) -> usize {
        self.blocks.rows()
    }

    /// The summaries that give centre and unit of each column.
    pub fn columns(&self) -> &[ColumnSummary] {
        &self.columns
    }

    /// `Σ ln unit`: a log-density in scaled units minus the one in the units of the data.
    pub fn log_jacobian(&self) -> f64 {
        self.columns.iter().map(|column| column.unit().ln()).sum()
    }

    /// Converts a mixture to the units of the data.
    pub fn unscale(&self, mixture: &GaussianMixture) -> GaussianMixture {
        let units: Vec<f64> = self.columns.iter().map(ColumnSummary::unit).collect();
        convert(mixture, &units, |mean, column| column.mean + column.unit() * mean, &self.columns)
    }

    /// Converts a mixture to scaled units.
    pub fn scale(&self, mixture: &GaussianMixture) -> GaussianMixture {
        let units: Vec<f64> = self.columns.iter().map(|column| 1.0 / column.unit()).collect();
        let scaled = |mean: f64, column: &ColumnSummary| in_units(mean, (column.mean, column.unit()));
        convert(mixture, &units, scaled, &self.columns)
    }
}

/// The summaries of the columns of these rows.
fn summaries_of(rows: &Table, dim: usize, chosen: impl Iterator<Item = usize> + Clone) -> Vec<ColumnSummary> {
    (0..dim).map(|j| tame_summary(chosen.clone().map(|i| rows.value(i, j, dim)).collect())).collect()
}

/// The centre and the unit of each column.
fn units(columns: &[ColumnSummary]) -> Vec<(f64, f64)> {
    columns.iter().map(|column| (column.mean, column.unit())).collect()
}

fn convert(
    mixture: &GaussianMixture,
    units: &[f64],
    mean: impl Fn(f64, &ColumnSummary) -> f64,
    columns: &[ColumnSummary],
) -> GaussianMixture {
    let convert = |gaussian: &Gaussian| {
        let mut covariance = gaussian.covariance().clone();
        covariance.change_units(units);
        let mean = gaussian.mean().iter().zip(columns).map(|(&m, column)| mean(m, column)).collect();
        Gaussian::new(mean, covariance).expect("means are within 1e100 units of the centre")
    };
    let components = mixture.components().iter().map(convert).collect();
    Mixture::new(mixture.weights().to_vec(), components).expect("same shape as before")
}
