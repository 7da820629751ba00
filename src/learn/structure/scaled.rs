//! Rows in units of their columns.

use ndarray::ArrayView2;

use crate::dist::{Gaussian, GaussianMixture, Mixture};
use crate::learn::LearnError;
use crate::learn::columns::tame_summaries;
use crate::linalg::blocks::RowBlocks;
use crate::stats::ColumnSummary;

/// Rows in units of their columns, so that units do not matter. Values are held within ±1e100 standard deviations, so
/// that no square overflows.
pub(in crate::learn) struct ScaledRows {
    columns: Vec<ColumnSummary>,
    pub blocks: RowBlocks,
}

impl ScaledRows {
    /// Scales rows from which `k` components are to be learned.
    pub fn new(rows: ArrayView2<f64>, k: usize) -> Result<Self, LearnError> {
        if k == 0 || rows.is_empty() {
            return Err(LearnError::TooFewRows { k, rows: rows.nrows() as u64 });
        }
        Ok(ScaledRows::with_columns(rows, tame_summaries(rows)))
    }

    /// Scales rows by given summaries of their columns.
    pub fn with_columns(rows: ArrayView2<f64>, columns: Vec<ColumnSummary>) -> Self {
        let scales: Vec<(f64, f64)> = columns.iter().map(|column| (column.mean, column.unit())).collect();
        let scaled = |i, j| {
            let (centre, unit): (f64, f64) = scales[j];
            ((rows[(i, j)] - centre) / unit).clamp(-1e100, 1e100)
        };
        let blocks = RowBlocks::from_fn(rows.nrows(), rows.ncols(), scaled);
        ScaledRows { columns, blocks }
    }

    /// Adds rows, in the same units.
    pub fn add(&mut self, rows: ArrayView2<f64>) {
        let columns = std::mem::take(&mut self.columns);
        let more = ScaledRows::with_columns(rows, columns);
        self.columns = more.columns;
        self.blocks.extend(&more.blocks);
    }

    pub fn rows(&self) -> usize {
        self.blocks.rows()
    }

    /// What the columns are scaled by.
    pub fn columns(&self) -> &[ColumnSummary] {
        &self.columns
    }

    /// `Σ ln unit`: a log-density in the data's own units is smaller by this than one in scaled units.
    pub fn log_jacobian(&self) -> f64 {
        self.columns.iter().map(|column| column.unit().ln()).sum()
    }

    /// A mixture in the data's own units.
    pub fn unscale(&self, mixture: &GaussianMixture) -> GaussianMixture {
        let units: Vec<f64> = self.columns.iter().map(ColumnSummary::unit).collect();
        convert(mixture, &units, |mean, column| column.mean + column.unit() * mean, &self.columns)
    }

    /// A mixture in scaled units.
    pub fn scale(&self, mixture: &GaussianMixture) -> GaussianMixture {
        let units: Vec<f64> = self.columns.iter().map(|column| 1.0 / column.unit()).collect();
        let scaled =
            |mean: f64, column: &ColumnSummary| ((mean - column.mean) / column.unit()).clamp(-1e100, 1e100);
        convert(mixture, &units, scaled, &self.columns)
    }
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
