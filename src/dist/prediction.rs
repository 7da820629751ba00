//! Columns predicted from the other columns of a row.

use ndarray::{Array1, Array2, Array3, ArrayView2, Axis};
use rayon::prelude::*;

use super::GaussianMixture;
use super::impute::{CHUNK, Given};
use crate::stats::MixtureOfNormals;

/// The distribution of some columns of each row given the other columns.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Prediction {
    /// The mean of each row and target.
    pub means: Array2<f64>,
    /// The standard deviation of each row and target.
    pub standard_deviations: Array2<f64>,
    /// The quantile of each row, target and level.
    pub quantiles: Array3<f64>,
}

/// Prediction of columns. A mixture over all columns is a mixture over the targets once the other columns are known.
///
/// # Panics
/// All methods panic if the rows do not have [`Mixture::dim`](super::Mixture::dim) columns, or if there is no such target.
impl GaussianMixture {
    /// Predicts the columns `targets` of each row from its other columns, with the quantiles of these levels between 0 and 1.
    /// The values of the targets are not used, and other values may be missing (NaN).
    ///
    /// ```
    /// use gmm_bmm::dist::{Factor, Gaussian, Mixture};
    /// use ndarray::array;
    ///
    /// let covariance = array![[1.0, 0.8], [0.8, 1.0]];
    /// let gaussian = Gaussian::new(vec![0.0, 5.0], Factor::from_matrix(covariance.view())?)?;
    /// let mixture = Mixture::new(vec![1.0], vec![gaussian])?;
    /// let prediction = mixture.predict_columns(array![[1.0, f64::NAN]].view(), &[1], &[0.5]);
    /// assert!((prediction.means[(0, 0)] - 5.8).abs() < 1e-12);
    /// assert!((prediction.standard_deviations[(0, 0)] - 0.6).abs() < 1e-12);
    /// assert!((prediction.quantiles[(0, 0, 0)] - 5.8).abs() < 1e-9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn predict_columns(&self, rows: ArrayView2<f64>, targets: &[usize], levels: &[f64]) -> Prediction {
        let (n, t) = (rows.nrows(), targets.len());
        let mut prediction = Prediction {
            means: Array2::zeros((n, t)),
            standard_deviations: Array2::zeros((n, t)),
            quantiles: Array3::zeros((n, t, levels.len())),
        };
        let hidden = self.without(rows, targets);
        let means = prediction.means.axis_chunks_iter_mut(Axis(0), CHUNK);
        let deviations = prediction.standard_deviations.axis_chunks_iter_mut(Axis(0), CHUNK);
        let quantiles = prediction.quantiles.axis_chunks_iter_mut(Axis(0), CHUNK);
        let chunks: Vec<_> =
            hidden.axis_chunks_iter(Axis(0), CHUNK).zip(means).zip(deviations).zip(quantiles).collect();
        chunks.into_par_iter().for_each(|(((rows, mut means), mut deviations), mut quantiles)| {
            let (mut given, mut one) = (Given::new(self), MixtureOfNormals::default());
            for (i, row) in rows.outer_iter().enumerate() {
                given.set(row.iter().copied());
                for (n, &target) in targets.iter().enumerate() {
                    given.column(target, &mut one);
                    let (mean, variance) = one.mean_and_variance();
                    means[(i, n)] = mean;
                    deviations[(i, n)] = variance.sqrt();
                    for (l, &level) in levels.iter().enumerate() {
                        quantiles[(i, n, l)] = one.quantile(level);
                    }
                }
            }
        });
        prediction
    }

    /// The log-density of the columns `targets` of each row given its other columns.
    pub fn conditional_log_density(&self, rows: ArrayView2<f64>, targets: &[usize]) -> Array1<f64> {
        self.log_densities(rows) - self.log_densities(self.without(rows, targets).view())
    }

    /// A copy of the rows without the values of `targets`.
    fn without(&self, rows: ArrayView2<f64>, targets: &[usize]) -> Array2<f64> {
        assert_eq!(rows.ncols(), self.dim(), "rows must have the mixture's columns");
        assert!(targets.iter().all(|&target| target < self.dim()), "targets are columns of the mixture");
        let mut hidden = rows.to_owned();
        targets.iter().for_each(|&target| hidden.column_mut(target).fill(f64::NAN));
        hidden
    }
}
