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

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;
    use crate::dist::{Factor, Gaussian, Mixture};

    /// Two components in three columns.
    fn mixture() -> GaussianMixture {
        let gaussian = |mean: Vec<f64>, covariance: Array2<f64>| {
            Gaussian::new(mean, Factor::from_matrix(covariance.view()).unwrap()).unwrap()
        };
        let one = gaussian(vec![0.0, 1.0, 2.0], array![[1.0, 0.3, 0.5], [0.3, 2.0, -0.4], [0.5, -0.4, 1.5]]);
        let other =
            gaussian(vec![2.0, -1.0, 0.0], array![[0.5, -0.1, 0.2], [-0.1, 0.4, 0.1], [0.2, 0.1, 0.3]]);
        Mixture::new(vec![0.6, 0.4], vec![one, other]).unwrap()
    }

    /// Moments and the distribution function of a column by the density of the mixture on a fine grid.
    fn by_grid(row: [f64; 3], target: usize) -> (f64, f64, impl Fn(f64) -> f64) {
        let (from, step) = (-12.0, 1e-3);
        let grid: Vec<f64> = (0..24_000).map(|i| from + step * i as f64).collect();
        let mut rows = Array2::from_shape_fn((grid.len(), 3), |(_, j)| row[j]);
        grid.iter().enumerate().for_each(|(i, x)| rows[(i, target)] = *x);
        let densities = mixture().log_densities(rows.view()).mapv(f64::exp);
        let total = densities.sum();
        let mean = grid.iter().zip(&densities).map(|(x, p)| x * p).sum::<f64>() / total;
        let variance = grid.iter().zip(&densities).map(|(x, p)| (x - mean).powi(2) * p).sum::<f64>() / total;
        let below = move |x: f64| {
            grid.iter().zip(&densities).filter(|(at, _)| **at <= x).map(|(_, p)| p).sum::<f64>() / total
        };
        (mean, variance.sqrt(), below)
    }

    #[test]
    fn predictions_agree_with_the_density_on_a_grid() {
        let levels = [0.001, 0.05, 0.5, 0.9, 0.999];
        for (row, target) in [([0.3, 0.1, 1.0], 0), ([1.2, 0.0, 0.5], 1), ([1.0, -0.5, 3.0], 2)] {
            let rows = array![row];
            let prediction = mixture().predict_columns(rows.view(), &[target], &levels);
            let (mean, deviation, below) = by_grid(row, target);
            assert!((prediction.means[(0, 0)] - mean).abs() < 1e-6);
            assert!((prediction.standard_deviations[(0, 0)] - deviation).abs() < 1e-6);
            for (l, level) in levels.iter().enumerate() {
                assert!((below(prediction.quantiles[(0, 0, l)]) - level).abs() < 1e-3, "{row:?} {level}");
            }
        }
    }

    #[test]
    fn the_value_of_a_target_changes_its_density_and_not_its_prediction() {
        let rows = array![[0.3, 0.1, 1.0], [0.3, 0.1, f64::NAN], [0.3, f64::NAN, 1.0]];
        let prediction = mixture().predict_columns(rows.view(), &[2], &[]);
        assert_eq!(prediction.means[(0, 0)], prediction.means[(1, 0)]);
        assert!(prediction.means[(0, 0)] != prediction.means[(2, 0)]);
        let log_densities = mixture().conditional_log_density(rows.view(), &[2]);
        let (_, _, below) = by_grid([0.3, 0.1, 1.0], 2);
        let density = (below(1.05) - below(0.95)) / 0.1;
        assert!((log_densities[0].exp() - density).abs() < 2e-3, "{log_densities} {density}");
        assert_eq!(log_densities[1], 0.0);
    }
}
