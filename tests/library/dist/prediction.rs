//! Columns that are predicted from the others.

use gmm_bmm::GaussianMixture;
use gmm_bmm::dist::{Factor, Gaussian, Mixture};
use ndarray::{Array2, array};

/// Two components in three columns.
fn mixture() -> GaussianMixture {
    let gaussian = |mean: Vec<f64>, covariance: Array2<f64>| {
        Gaussian::new(mean, Factor::from_matrix(covariance.view()).unwrap()).unwrap()
    };
    let one = gaussian(vec![0.0, 1.0, 2.0], array![[1.0, 0.3, 0.5], [0.3, 2.0, -0.4], [0.5, -0.4, 1.5]]);
    let other = gaussian(vec![2.0, -1.0, 0.0], array![[0.5, -0.1, 0.2], [-0.1, 0.4, 0.1], [0.2, 0.1, 0.3]]);
    Mixture::new(vec![0.6, 0.4], vec![one, other]).unwrap()
}

/// Moments and the distribution function of a column by the density of the mixture on a fine grid.
fn by_grid(row: [f64; 3], target: usize) -> (f64, f64, impl Fn(f64) -> f64) {
    let (from, step) = (-12.0, 1e-3);
    let grid: Vec<f64> = (0..24_000).map(|i| from + step * i as f64).collect();
    let mut rows = Array2::from_shape_fn((grid.len(), 3), |(_, j)| row[j]);
    grid.iter().enumerate().for_each(|(i, x)| rows[(i, target)] = *x);
    let densities = mixture().score_samples(rows.view()).unwrap().mapv(f64::exp);
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
