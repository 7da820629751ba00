//! The score by which rows are anomalies.

use ndarray::{Array1, ArrayView1, ArrayView2, Axis};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::axes::whole_mixture;
use super::{DistError, Factor, Gaussian, GaussianMixture, Mixture, Posterior, StudentMixture, StudentT};

/// Components with at least this weight count, or with [`SHARE_OF_EQUAL`] of the weight of equal components.
const MIN_WEIGHT: f64 = 0.03;
const SHARE_OF_EQUAL: f64 = 0.5;
/// What the log-density under the whole counts for.
const OF_WHOLE: f64 = 0.5;
/// Degrees of freedom of components that have no posterior: their tails are Gaussian ones.
const MANY: f64 = 1e6;
/// Numbers that are computed for drawn rows, and limits of the number of these rows.
const WORK: usize = 100_000_000;
const DRAWS: (usize, usize) = (1000, 8000);

/// Scores rows for the detection of anomalies: the lower the score, the more unusual the row.
///
/// The density of a mixture is high wherever rows are dense, also where a few anomalies lie together. So this score differs
/// from the log-density in three ways. Light components do not count. A component has the tails of its posterior predictive, a
/// Student-t, which are the wider the fewer rows it has learned. And half of the log-density under a single Gaussian
/// is added that has the mean and the covariance of all components that count: so a row far from all others is more unusual than
/// one in a gap between clusters.
///
/// ```
/// use gmm_bmm::GaussianMixture;
/// use gmm_bmm::dist::{AnomalyScore, Factor, Gaussian};
/// let normal = |mean: f64| Gaussian::new(vec![mean], Factor::identity(1));
/// let mixture = GaussianMixture::new(vec![0.5, 0.49, 0.01], vec![normal(0.0)?, normal(5.0)?, normal(30.0)?])?;
/// let scores = AnomalyScore::new(mixture, None).score_samples(ndarray::array![[0.0], [2.5], [30.0]].view())?;
/// assert!(scores[0] > scores[1] && scores[1] > scores[2]);
/// # Ok::<(), gmm_bmm::dist::DistError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct AnomalyScore {
    /// The components that count.
    parts: StudentMixture,
    /// One component in place of them all.
    whole: Option<GaussianMixture>,
    /// What missing values are completed by.
    estimate: GaussianMixture,
}

impl AnomalyScore {
    /// The score under this estimate, and the posterior that it is the estimate of.
    pub fn new(estimate: GaussianMixture, posterior: Option<&Posterior>) -> Self {
        let least = MIN_WEIGHT.min(SHARE_OF_EQUAL / estimate.k() as f64);
        let counted: Vec<usize> = (0..estimate.k()).filter(|&j| estimate.weights()[j] >= least).collect();
        let total: f64 = counted.iter().map(|&j| estimate.weights()[j]).sum();
        let weights: Vec<f64> = counted.iter().map(|&j| estimate.weights()[j] / total).collect();
        let tailed = |&j: &usize| match posterior.filter(|own| own.k() == estimate.k()) {
            Some(posterior) => posterior.components()[j].predictive(),
            None => {
                let own = &estimate.components()[j];
                StudentT::new(own.mean().to_vec(), own.covariance().clone(), MANY).expect("it is a component")
            }
        };
        let parts = Mixture::new(weights.clone(), counted.iter().map(tailed).collect());
        let own = counted.iter().map(|&j| estimate.components()[j].clone()).collect();
        let whole = Mixture::new(weights, own).ok().and_then(|counted| united(&counted));
        AnomalyScore { parts: parts.expect("the heaviest component counts"), whole, estimate }
    }

    /// The score of each row. Missing values (NaN) count as if they were as probable as usual.
    ///
    /// # Errors
    /// [`DistError::Shape`] if the rows do not have the mixture's columns.
    pub fn score_samples(&self, rows: ArrayView2<f64>) -> Result<Array1<f64>, DistError> {
        let mut scores = self.parts.score_samples(rows)?;
        if let Some(of_missing) = self.estimate.log_density_of_missing(rows) {
            scores += &of_missing;
        }
        if let Some(whole) = &self.whole {
            scores.scaled_add(OF_WHOLE, &whole.score_whole(rows));
        }
        Ok(scores)
    }

    /// The score that this share of the rows has not that the components which count generate. It is estimated from rows that are
    /// drawn with a fixed seed.
    pub fn level_of_generated(&self, share: f64) -> f64 {
        let dim = self.parts.dim();
        let rows = (WORK / (dim * dim * (1 + self.parts.k()))).clamp(DRAWS.0, DRAWS.1);
        let (drawn, _) = self.parts.sample(rows, &mut ChaCha8Rng::seed_from_u64(0));
        let mut scores = self.score_samples(drawn.view()).expect("they have its columns").to_vec();
        scores.sort_unstable_by(f64::total_cmp);
        scores[((share * rows as f64) as usize).min(rows - 1)]
    }
}

/// The Gaussian with the mean and the covariance of a mixture.
fn united(mixture: &GaussianMixture) -> Option<GaussianMixture> {
    let (mean, units, correlation) = whole_mixture(mixture);
    let lower = Factor::from_matrix(correlation.view()).ok()?.lower_matrix();
    let lower = lower * &ArrayView1::from(units.as_slice()?).insert_axis(Axis(1));
    let whole = Gaussian::new(mean.to_vec(), Factor::from_lower_matrix(lower.view()).ok()?).ok()?;
    Mixture::new(vec![1.0], vec![whole]).ok()
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::super::{Density, Dirichlet, NormalWishart};
    use super::*;

    fn posterior() -> Posterior {
        let own = |m: [f64; 2], nu: f64, spread: f64| {
            let psi = Factor::from_standard_deviations(&[spread * nu.sqrt(), nu.sqrt()]).unwrap();
            NormalWishart::new(m.to_vec(), nu, nu, psi).unwrap()
        };
        let a = Dirichlet::new(vec![60.0, 39.0, 1.0]).unwrap();
        Posterior::new(
            a,
            vec![own([0.0, 0.0], 60.0, 1.0), own([8.0, 0.0], 39.0, 0.5), own([0.0, 90.0], 7.0, 1.0)],
        )
        .unwrap()
    }

    #[test]
    fn a_score_is_the_log_density_under_the_heavy_components_and_half_of_that_under_their_moments() {
        let posterior = posterior();
        let estimate = posterior.point_estimate();
        let score = AnomalyScore::new(estimate.clone(), Some(&posterior));
        let (weights, own) = ([60.0 / 99.0, 39.0 / 99.0], estimate.components());
        // The first two components differ in the first column alone.
        let mean = weights[1] * 8.0;
        let variance = |j: usize, column: usize| own[j].covariance().diagonal()[column];
        let between = weights[0] * mean * mean + weights[1] * (8.0 - mean) * (8.0 - mean);
        let of = |column: usize| weights[0] * variance(0, column) + weights[1] * variance(1, column);
        let deviations = [(of(0) + between).sqrt(), of(1).sqrt()];
        let whole =
            Gaussian::new(vec![mean, 0.0], Factor::from_standard_deviations(&deviations).unwrap()).unwrap();
        let rows = array![[0.3, -0.2], [8.0, 1.0], [4.0, 3.0], [0.0, 90.0], [1e6, 0.0]];
        let scores = score.score_samples(rows.view()).unwrap();
        for (row, score) in rows.outer_iter().zip(&scores) {
            let row = row.as_slice().unwrap();
            let part = |j: usize| weights[j] * posterior.components()[j].predictive().log_density(row).exp();
            let expected = (part(0) + part(1)).ln() + 0.5 * whole.log_density(row);
            assert!((score - expected).abs() < 1e-9 * expected.abs(), "{row:?}: {score} {expected}");
        }
        assert!(scores[3] < scores[2] - 100.0);
    }

    #[test]
    fn the_level_of_generated_rows_is_that_of_other_draws() {
        let posterior = posterior();
        let score = AnomalyScore::new(posterior.point_estimate(), Some(&posterior));
        let (drawn, _) = score.parts.sample(40_000, &mut ChaCha8Rng::seed_from_u64(5));
        let scores = score.score_samples(drawn.view()).unwrap();
        for share in [0.005, 0.05, 0.5] {
            let level = score.level_of_generated(share);
            let below = scores.iter().filter(|&&score| score < level).count() as f64 / 40_000.0;
            assert!((below - share).abs() < 0.3 * share, "{share}: {below}");
        }
    }

    #[test]
    fn equal_components_all_count_and_missing_values_are_as_usual() {
        let k = 100;
        let normal = |j: usize| Gaussian::new(vec![9.0 * j as f64, 0.0], Factor::identity(2)).unwrap();
        let many = GaussianMixture::new(vec![1.0 / k as f64; k], (0..k).map(normal).collect()).unwrap();
        let score = AnomalyScore::new(many, None);
        assert_eq!(score.parts.k(), k);
        let rows = array![[90.0, 0.0], [90.0, f64::NAN], [f64::NAN, f64::NAN], [94.5, f64::NAN]];
        let scores = score.score_samples(rows.view()).unwrap();
        assert!((scores[0] - scores[1]).abs() < 1.0 && scores[2].is_finite() && scores[3] < scores[1] - 5.0);
        assert!(score.score_samples(array![[1.0]].view()).is_err());
    }
}
