//! The blind start: what a learner without a buffer can begin from.

use ndarray::ArrayView2;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::dist::{Gaussian, GaussianMixture};
use crate::learn::{LearnError, Start, fit_start};

/// The number of rows that a blind start looks at: a few more than a covariance needs.
pub fn blind_start_rows(dim: usize) -> usize {
    (2 * dim + 2).max(10)
}

/// A start without a search: `k` components of equal weight, with the covariance of the first few rows, whose means are
/// drawn from the Gaussian with the mean and covariance of these rows. Uses the first [`blind_start_rows`] rows.
///
/// The paper does not say how it starts. This is the least that a learner in one pass can do.
pub fn blind_start(rows: ArrayView2<f64>, k: usize, seed: u64) -> Result<Start, LearnError> {
    let few = blind_start_rows(rows.ncols()).min(rows.nrows());
    let single = fit_start(rows.slice(ndarray::s![..few, ..]), 1, seed)?;
    let covariance = single.mixture.components()[0].covariance();
    let (means, _) = single.mixture.sample(k, &mut ChaCha8Rng::seed_from_u64(seed));
    let component = |mean: ndarray::ArrayView1<f64>| {
        Gaussian::new(mean.to_vec(), covariance.clone()).expect("the mean has the columns of the covariance")
    };
    let components = means.outer_iter().map(component).collect();
    let mixture =
        GaussianMixture::new(vec![1.0 / k as f64; k], components).expect("one weight for each component");
    Ok(Start { mixture, ..single })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    #[test]
    fn components_lie_around_the_first_rows_and_nothing_else_counts() {
        let mut rows = Array2::from_shape_fn((200, 3), |(i, j)| 5.0 + ((i * (j + 2)) as f64 * 0.9).sin());
        let start = blind_start(rows.view(), 6, 3).unwrap();
        assert_eq!((start.mixture.k(), start.rows), (6, 10));
        let means = start.mixture.means();
        assert!(means.iter().all(|mean| (mean - 5.0).abs() < 4.0), "{means}");
        assert!((0..6).all(|j| means.row(j) != means.row((j + 1) % 6)));
        rows[(10, 0)] = 1e6;
        assert_eq!(blind_start(rows.view(), 6, 3).unwrap(), start);
        assert_ne!(blind_start(rows.view(), 6, 4).unwrap(), start);
    }
}
