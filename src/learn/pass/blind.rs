//! The blind start: what a learner without a buffer can begin from.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::dist::{Gaussian, GaussianMixture};
use crate::learn::{LearnError, Start, WeightedRows, fit_start, prior_with_means};
use crate::linalg::CovarianceType;

/// The number of rows that a blind start looks at: a few more than a covariance needs.
pub fn blind_start_rows(dim: usize) -> usize {
    (2 * dim + 2).max(10)
}

/// What a blind start supposes about each component before it has learned a row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BlindPrior {
    /// The number of rows that its mean counts for (κ₀).
    pub mean_rows: f64,
    /// Its expected covariance, as a multiple of the covariance of the first rows.
    pub spread: f64,
}

impl Default for BlindPrior {
    /// Several components share the space of the first rows, so each is smaller than these, and its mean is hardly known.
    fn default() -> Self {
        BlindPrior { mean_rows: 0.1, spread: 0.3 }
    }
}

/// A start without a search: `k` components of equal weight, whose means are drawn from the Gaussian with the mean and
/// covariance of the first few rows, and whose covariances are a fraction of theirs. Uses the first [`blind_start_rows`] rows.
///
/// The paper does not say how it starts. This is the least that a learner in one pass can do.
pub fn blind_start<'a>(
    rows: impl Into<WeightedRows<'a>>,
    k: usize,
    seed: u64,
    (supposed, kind): (BlindPrior, CovarianceType),
) -> Result<Start, LearnError> {
    let WeightedRows { rows, weights } = rows.into();
    let few = blind_start_rows(rows.ncols()).min(rows.nrows());
    let first = rows.slice(ndarray::s![..few, ..]);
    let single = fit_start(WeightedRows { rows: first, weights: weights.map(|w| &w[..few]) }, 1, seed)?;
    let mut covariance = single.mixture.components()[0].covariance().of_kind(kind);
    covariance.scale_by(supposed.spread);
    let (means, _) = single.mixture.sample(k, &mut ChaCha8Rng::seed_from_u64(seed));
    let component = |mean: ndarray::ArrayView1<f64>| {
        let own = if kind == CovarianceType::Tied { covariance.clone() } else { covariance.unshared() };
        Gaussian::new(mean.to_vec(), own).expect("the mean has the columns of the covariance")
    };
    let components = means.outer_iter().map(component).collect();
    let mixture =
        GaussianMixture::new(vec![1.0 / k as f64; k], components).expect("one weight for each component");
    let prior = Some(prior_with_means(&mixture, supposed.mean_rows, single.unit));
    Ok(Start { mixture, prior, ..single })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    #[test]
    fn components_lie_around_the_first_rows_and_nothing_else_counts() {
        let mut rows = Array2::from_shape_fn((200, 3), |(i, j)| 5.0 + ((i * (j + 2)) as f64 * 0.9).sin());
        let supposed = BlindPrior::default();
        let start = blind_start(rows.view(), 6, 3, (supposed, CovarianceType::Full)).unwrap();
        assert_eq!((start.mixture.k(), start.rows), (6, 10));
        let means = start.mixture.means();
        assert!(means.iter().all(|mean| (mean - 5.0).abs() < 4.0), "{means}");
        assert!((0..6).all(|j| means.row(j) != means.row((j + 1) % 6)));
        rows[(10, 0)] = 1e6;
        assert_eq!(blind_start(rows.view(), 6, 3, (supposed, CovarianceType::Full)).unwrap(), start);
        assert_ne!(blind_start(rows.view(), 6, 4, (supposed, CovarianceType::Full)).unwrap(), start);
    }

    #[test]
    fn the_prior_has_the_supposed_means_and_covariances() {
        let rows = Array2::from_shape_fn((20, 2), |(i, j)| ((i * (j + 2)) as f64 * 0.9).sin());
        let whole = blind_start(
            rows.view(),
            3,
            1,
            (BlindPrior { mean_rows: 4.0, spread: 1.0 }, CovarianceType::Full),
        )
        .unwrap();
        let prior = whole.prior.clone().unwrap();
        assert_eq!(prior, crate::learn::prior_around(&whole.mixture), "eight rows in all, four for the mean");
        let small = blind_start(
            rows.view(),
            3,
            1,
            (BlindPrior { mean_rows: 0.1, spread: 0.25 }, CovarianceType::Full),
        )
        .unwrap();
        let (own, theirs) = (small.prior.as_ref().unwrap(), &prior);
        for (own, theirs) in own.components().iter().zip(theirs.components()) {
            assert_eq!((own.mean(), own.kappa(), own.nu()), (theirs.mean(), 0.1, theirs.nu()));
        }
        let variance = |start: &Start| start.mixture.components()[0].covariance().diagonal()[0];
        assert!((variance(&small) / variance(&whole) - 0.25).abs() < 1e-12);
    }
}
