//! The leading principal directions of rows with many columns.
//!
//! Clusters are visible in few directions, where a search costs little. The density depends on all columns, so that the
//! mixture is finished there.

use ndarray::Array2;

use super::m_step::mean_and_scatter;
use crate::dist::{Gaussian, GaussianMixture, Mixture, leading_directions};
use crate::linalg::blocks::{Moments, RowBlocks};
use crate::linalg::{CovarianceType, Factor};

/// The largest number of columns that a search uses.
pub(super) const MAX_COLUMNS: usize = 40;
/// The smallest number of rows for each direction.
const ROWS_PER_DIRECTION: usize = 8;
/// Rows for each column that the directions are computed from, and the number of rows that is enough for any number of columns.
const ROWS_PER_COLUMN: usize = 8;
const ENOUGH_ROWS: usize = 4096;
/// Steps of the iteration that finds the directions.
const STEPS: usize = 30;
/// The smallest variance in a direction.
const MIN_VARIANCE: f64 = 1e-12;

/// The number of columns that a search uses.
pub(super) fn searched_columns(rows: &RowBlocks) -> usize {
    let dim = rows.dim();
    if dim <= MAX_COLUMNS { dim } else { MAX_COLUMNS.min(rows.rows() / ROWS_PER_DIRECTION).max(2) }
}

/// Orthogonal directions, as rows.
pub(super) struct Directions {
    axes: Array2<f64>,
}

impl Directions {
    /// The leading directions of rows without gaps, in scaled units; `None` if they have so few columns that a search uses all.
    pub fn of(rows: &RowBlocks) -> Option<Self> {
        let dim = rows.dim();
        if dim <= MAX_COLUMNS {
            return None;
        }
        let count = searched_columns(rows);
        let wanted = (ROWS_PER_COLUMN * dim).min(ENOUGH_ROWS);
        let (_, covariance) = mean_and_covariance(&rows.thinned((rows.rows() / wanted).max(1)));
        Some(Directions { axes: leading_directions(&covariance, count, STEPS) })
    }

    /// The rows in these directions.
    pub fn project(&self, rows: &RowBlocks) -> RowBlocks {
        rows.multiply(&self.axes)
    }

    /// The mixture in these directions. Its components have one covariance if that is tied.
    pub fn project_mixture(&self, mixture: &GaussianMixture) -> GaussianMixture {
        let first = &mixture.components()[0];
        let is_tied = mixture.covariance_type() == CovarianceType::Tied;
        let tied = is_tied.then(|| self.project_covariance(first.covariance()));
        let project = |component: &Gaussian| {
            let mean = self.axes.dot(&ndarray::ArrayView1::from(component.mean()));
            let factor = tied.clone().unwrap_or_else(|| self.project_covariance(component.covariance()));
            Gaussian::new(mean.to_vec(), factor).expect("finite means have finite projections")
        };
        let components = mixture.components().iter().map(project).collect();
        Mixture::new(mixture.weights().to_vec(), components).expect("one weight for each component")
    }

    fn project_covariance(&self, covariance: &Factor) -> Factor {
        let half = self.axes.dot(&covariance.lower_matrix());
        let mut projected = half.dot(&half.t());
        projected.diag_mut().iter_mut().for_each(|value| *value += MIN_VARIANCE);
        Factor::from_matrix(projected.view()).unwrap_or_else(|_| Factor::identity(self.axes.nrows()))
    }
}

/// The mean and the covariance of rows.
pub(super) fn mean_and_covariance(rows: &RowBlocks) -> (Vec<f64>, Array2<f64>) {
    let mut moments = Moments::new(rows.dim());
    for (i, (block, _)) in rows.iter().enumerate() {
        moments.add(&block, rows.weights(i));
    }
    let count = moments.count;
    let (mean, scatter) = mean_and_scatter(moments, &vec![0.0; rows.dim()]);
    (mean, scatter / count)
}
