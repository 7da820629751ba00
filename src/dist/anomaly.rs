//! The score by which rows are anomalies.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::axes::whole_mixture;
use super::{
    Density, DistError, Factor, Gaussian, GaussianMixture, Mixture, Posterior, StudentMixture, StudentT,
};

/// A component counts if it has this part of the weight that each would have if all were equal.
const PART_OF_EQUAL: f64 = 0.8;
/// The covariance of a component is mixed with at least this part of the mean covariance.
const MIN_BORROWED: f64 = 0.1;
/// Degrees of freedom of components that have no posterior: their tails are Gaussian ones.
const MANY: f64 = 1e6;
/// Numbers that are computed for drawn rows, and limits of the number of these rows.
const WORK: usize = 100_000_000;
const DRAWS: (usize, usize) = (1000, 8000);

/// Scores rows for the detection of anomalies: the lower the score, the more unusual the row.
///
/// The density of a mixture is high wherever rows are dense, also where a few anomalies lie together. So this score differs
/// from the log-density in four ways:
/// - Components that are lighter than the share of anomalies do not count, unless all are light.
/// - The covariance of a component borrows from the mean covariance of those that count: as many rows as there are columns,
///   and at least a tenth. Narrow components forbid less.
/// - The tails of a component are those of its posterior predictive, a Student-t.
/// - The log-density under the whole is added: a single Gaussian with the mean and the covariance of the components that
///   count. A row far from all others is more unusual than one in a gap between clusters. The whole counts fully if a tenth of the
///   learned rows may be anomalies, and the less the fewer may be.
///
/// ```
/// use gmm_bmm::GaussianMixture;
/// use gmm_bmm::dist::{AnomalyScore, Factor, Gaussian};
/// let normal = |mean: f64| Gaussian::new(vec![mean], Factor::identity(1));
/// let mixture = GaussianMixture::new(vec![0.5, 0.49, 0.01], vec![normal(0.0)?, normal(5.0)?, normal(30.0)?])?;
/// let score = AnomalyScore::new(mixture, None, AnomalyScore::SHARE);
/// let scores = score.score_samples(ndarray::array![[0.0], [2.5], [30.0]].view())?;
/// assert!(scores[0] > scores[1] && scores[1] > scores[2]);
/// # Ok::<(), gmm_bmm::dist::DistError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct AnomalyScore {
    /// The components that count.
    parts: StudentMixture,
    /// One component in place of them all, if it has a covariance.
    whole: Option<GaussianMixture>,
    /// What the log-density under the whole counts for.
    of_whole: f64,
    /// What missing values are completed by.
    estimate: GaussianMixture,
}

impl AnomalyScore {
    /// The share of anomalies where it is not known.
    pub const SHARE: f64 = 0.1;

    /// The score under an estimate and the posterior that it comes from, if there is one. `share` is the share of anomalies among
    /// the learned rows.
    pub fn new(estimate: GaussianMixture, posterior: Option<&Posterior>, share: f64) -> Self {
        let least = share.min(PART_OF_EQUAL / estimate.k() as f64);
        let counted: Vec<usize> = (0..estimate.k()).filter(|&j| estimate.weights()[j] >= least).collect();
        let total: f64 = counted.iter().map(|&j| estimate.weights()[j]).sum();
        let weights: Vec<f64> = counted.iter().map(|&j| estimate.weights()[j] / total).collect();
        let own: Vec<Gaussian> = counted.iter().map(|&j| estimate.components()[j].clone()).collect();
        let mean = mean_covariance(&own, &weights);
        let part = |(&j, own): (&usize, &Gaussian)| {
            let dim = own.dim() as f64;
            let (rows, freedom) = match posterior.filter(|posterior| posterior.k() == estimate.k()) {
                Some(posterior) => {
                    let component = &posterior.components()[j];
                    (component.kappa(), (component.nu() - dim + 1.0).max(1.0))
                }
                None => (f64::INFINITY, MANY),
            };
            let borrowed = (dim / (rows + dim)).max(MIN_BORROWED);
            let mixed = (1.0 - borrowed) * own.covariance().matrix() + borrowed * &mean;
            let scale = Factor::from_matrix(mixed.view()).unwrap_or_else(|_| own.covariance().clone());
            StudentT::new(own.mean().to_vec(), scale, freedom).expect("its parameters are finite")
        };
        let parts = Mixture::new(weights.clone(), counted.iter().zip(&own).map(part).collect());
        let whole = Mixture::new(weights, own).ok().and_then(|counted| united(&counted));
        let of_whole = (share / Self::SHARE).min(1.0);
        AnomalyScore { parts: parts.expect("the heaviest component counts"), whole, of_whole, estimate }
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
            scores.scaled_add(self.of_whole, &whole.score_whole(rows));
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

/// The weighted mean of the covariances.
fn mean_covariance(components: &[Gaussian], weights: &[f64]) -> Array2<f64> {
    let dim = components[0].dim();
    let mut mean = Array2::zeros((dim, dim));
    for (component, weight) in components.iter().zip(weights) {
        mean.scaled_add(*weight, &component.covariance().matrix());
    }
    mean
}

/// The Gaussian with the mean and the covariance of a mixture.
fn united(mixture: &GaussianMixture) -> Option<GaussianMixture> {
    let (mean, units, correlation) = whole_mixture(mixture);
    let lower = Factor::from_matrix(correlation.view()).ok()?.lower_matrix();
    let lower = lower * ArrayView1::from(units.as_slice()?).insert_axis(Axis(1));
    let whole = Gaussian::new(mean.to_vec(), Factor::from_lower_matrix(lower.view()).ok()?).ok()?;
    Mixture::new(vec![1.0], vec![whole]).ok()
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::super::{Dirichlet, NormalWishart};
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
    fn a_score_is_the_log_density_under_the_heavy_components_and_under_their_moments() {
        let posterior = posterior();
        let estimate = posterior.point_estimate();
        let score = AnomalyScore::new(estimate.clone(), Some(&posterior), 0.05);
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
            let part = |j: usize| {
                let borrowed = f64::max(0.1, 2.0 / (posterior.components()[j].kappa() + 2.0));
                let mixed = [0, 1].map(|column| {
                    let mean = weights[0] * variance(0, column) + weights[1] * variance(1, column);
                    ((1.0 - borrowed) * variance(j, column) + borrowed * mean).sqrt()
                });
                let (scale, nu) =
                    (Factor::from_standard_deviations(&mixed).unwrap(), posterior.components()[j].nu());
                let student = StudentT::new(own[j].mean().to_vec(), scale, nu - 1.0).unwrap();
                weights[j] * student.log_density(row).exp()
            };
            let expected = (part(0) + part(1)).ln() + 0.5 * whole.log_density(row);
            assert!((score - expected).abs() < 1e-9 * expected.abs(), "{row:?}: {score} {expected}");
        }
        assert!(scores[3] < scores[2] - 100.0);
    }

    #[test]
    fn the_level_of_generated_rows_is_that_of_other_draws() {
        let posterior = posterior();
        let score = AnomalyScore::new(posterior.point_estimate(), Some(&posterior), 0.1);
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
        let score = AnomalyScore::new(many, None, 0.1);
        assert_eq!(score.parts.k(), k);
        let rows = array![[90.0, 0.0], [90.0, f64::NAN], [f64::NAN, f64::NAN], [94.5, f64::NAN]];
        let scores = score.score_samples(rows.view()).unwrap();
        assert!((scores[0] - scores[1]).abs() < 1.5 && scores[2].is_finite());
        assert!(scores[3] < scores[1] - 5.0);
        assert!(score.score_samples(array![[1.0]].view()).is_err());
    }
}
