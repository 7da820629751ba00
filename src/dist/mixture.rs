use std::borrow::Cow;

use ndarray::{Array2, Array3, ArrayView1, ArrayView2, ArrayView3};
use rand::{Rng, RngExt};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Density, DistError, Gaussian, StudentT, check_length};
use crate::linalg::special::log_sum_exp;
use crate::linalg::{CovarianceType, Factor};

/// A mixture density `Σ w_j f_j(x)`, with weights that sum to one.
///
/// ```
/// use gmm_bmm::dist::{Gaussian, Mixture};
/// use gmm_bmm::dist::Factor;
/// use ndarray::array;
///
/// let normal = |mean: f64| Gaussian::new(vec![mean], Factor::identity(1));
/// let mixture = Mixture::new(vec![0.25, 0.75], vec![normal(0.0)?, normal(8.0)?])?;
/// assert_eq!(mixture.means(), array![[0.0], [8.0]]);
/// assert_eq!(mixture.covariances().dim(), (2, 1, 1));
///
/// let rows = array![[0.0], [8.0]];
/// assert_eq!(mixture.predict(rows.view())?, array![0, 1]);
/// assert!(mixture.predict_proba(rows.view())?[(1, 1)] > 0.999);
/// # Ok::<(), gmm_bmm::dist::DistError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Mixture<C> {
    weights: Vec<f64>,
    components: Vec<C>,
}

/// A mixture of normal distributions.
pub type GaussianMixture = Mixture<Gaussian>;
/// A mixture of Student-t distributions: the posterior predictive of a Gaussian mixture.
pub type StudentMixture = Mixture<StudentT>;

/// A mixture in a model file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MixtureRecord<'a> {
    weights: Cow<'a, [f64]>,
    components: Vec<GaussianRecord<'a>>,
}

/// A component in a model file. One without a covariance has that of the first component.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GaussianRecord<'a> {
    mean: Cow<'a, [f64]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    covariance: Option<Cow<'a, Factor>>,
}

impl Serialize for GaussianMixture {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let first = self.components[0].covariance();
        let component = |(j, own): (usize, &'_ Gaussian)| GaussianRecord {
            mean: Cow::Owned(own.mean().to_vec()),
            covariance: (j == 0 || !own.covariance().is_shared_with(first))
                .then(|| Cow::Owned(own.covariance().clone())),
        };
        let components = self.components.iter().enumerate().map(component).collect();
        MixtureRecord { weights: Cow::Borrowed(&self.weights), components }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for GaussianMixture {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let MixtureRecord { weights, components } = MixtureRecord::deserialize(deserializer)?;
        let first = components.first().and_then(|first| first.covariance.clone()).map(Cow::into_owned);
        let component = |record: GaussianRecord| {
            let covariance = record.covariance.map(Cow::into_owned).or_else(|| first.clone());
            let covariance = covariance.ok_or_else(|| D::Error::missing_field("covariance"))?;
            Gaussian::new(record.mean.into_owned(), covariance).map_err(D::Error::custom)
        };
        let components = components.into_iter().map(component).collect::<Result<_, _>>()?;
        Mixture::new(weights.into_owned(), components).map_err(D::Error::custom)
    }
}

impl<C: Density> Mixture<C> {
    /// The mixture with these weights and components. Weights must not be negative, and their sum must be 1 within 1e-8.
    pub fn new(weights: Vec<f64>, components: Vec<C>) -> Result<Self, DistError> {
        check_length("components", components.len(), weights.len())?;
        let Some(first) = components.first() else {
            return Err(DistError::Shape { what: "components", found: 0, expected: 1 });
        };
        let dim = first.dim();
        components.iter().try_for_each(|c| check_length("a component's mean", c.dim(), dim))?;
        if let Some(&value) = weights.iter().find(|weight| !(**weight >= 0.0)) {
            return Err(DistError::OutOfRange { name: "a weight", must: "at least 0", value });
        }
        let total: f64 = weights.iter().sum();
        if (total - 1.0).abs() > 1e-8 {
            return Err(DistError::OutOfRange { name: "the sum of the weights", must: "1", value: total });
        }
        Ok(Mixture { weights, components })
    }

    /// The weight of each component.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The components.
    pub fn components(&self) -> &[C] {
        &self.components
    }

    /// The number of components.
    pub fn k(&self) -> usize {
        self.components.len()
    }

    /// The number of columns.
    pub fn dim(&self) -> usize {
        self.components[0].dim()
    }

    /// The log-density of a row. For many rows [`Mixture::score_samples`] is much faster.
    pub fn log_density(&self, x: &[f64]) -> f64 {
        let parts = self.components.iter().zip(&self.weights);
        log_sum_exp(&parts.map(|(c, weight)| weight.ln() + c.log_density(x)).collect::<Vec<_>>())
    }

    /// The components ordered by weight, the heaviest first. Components of equal weight keep their order.
    pub fn heaviest_first(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.k()).collect();
        order.sort_by(|&i, &j| self.weights[j].total_cmp(&self.weights[i]));
        order
    }

    /// Draws rows. Returns them, and the component that each is drawn from.
    pub fn sample<R: Rng + ?Sized>(&self, rows: usize, rng: &mut R) -> (Array2<f64>, Vec<usize>) {
        let mut values = vec![0.0; rows * self.dim()];
        let components = values.chunks_exact_mut(self.dim()).map(|row| self.sample_into(rng, row)).collect();
        let drawn =
            Array2::from_shape_vec((rows, self.dim()), values).expect("values has rows × dim numbers");
        (drawn, components)
    }

    /// Draws a row into `out`. Returns the component that it is drawn from.
    pub fn sample_into<R: Rng + ?Sized>(&self, rng: &mut R, out: &mut [f64]) -> usize {
        let mut left = rng.random::<f64>();
        let mut chosen = self.k() - 1;
        for (j, weight) in self.weights.iter().enumerate() {
            left -= weight;
            if left < 0.0 {
                chosen = j;
                break;
            }
        }
        self.components[chosen].sample_into(rng, out);
        chosen
    }
}

impl GaussianMixture {
    /// The mixture of these arrays: one weight, one mean and one covariance for each component.
    ///
    /// # Errors
    /// If the shapes differ, a number is not finite, or a covariance is not positive definite.
    pub fn from_arrays(
        weights: ArrayView1<f64>,
        means: ArrayView2<f64>,
        covariances: ArrayView3<f64>,
    ) -> Result<Self, DistError> {
        check_length("means", means.nrows(), weights.len())?;
        check_length("covariances", covariances.dim().0, weights.len())?;
        let component = |(mean, covariance): (ArrayView1<f64>, ArrayView2<f64>)| {
            check_length("the rows of a covariance", covariance.nrows(), mean.len())?;
            check_length("the columns of a covariance", covariance.ncols(), mean.len())?;
            Gaussian::new(mean.to_vec(), Factor::from_matrix(covariance)?)
        };
        let components = means.outer_iter().zip(covariances.outer_iter()).map(component);
        Mixture::new(weights.to_vec(), components.collect::<Result<_, _>>()?)
    }

    /// What covariances the components have. A mixture of one component has no tied covariance, but a full one.
    pub fn covariance_type(&self) -> CovarianceType {
        shared_kind(self.components.iter().map(Gaussian::covariance))
    }

    /// The mean of each component, as a row.
    pub fn means(&self) -> Array2<f64> {
        Array2::from_shape_fn((self.k(), self.dim()), |(j, column)| self.components[j].mean()[column])
    }

    /// The covariance of each component: K matrices of d × d.
    pub fn covariances(&self) -> Array3<f64> {
        let mut covariances = Array3::zeros((self.k(), self.dim(), self.dim()));
        for (mut place, component) in covariances.outer_iter_mut().zip(&self.components) {
            place.assign(&component.covariance().matrix());
        }
        covariances
    }
}

/// What covariances these are.
pub(super) fn shared_kind<'a>(mut factors: impl Iterator<Item = &'a Factor> + Clone) -> CovarianceType {
    let Some(first) = factors.next() else { return CovarianceType::Full };
    if factors.clone().next().is_some() && factors.clone().all(|own| own.is_shared_with(first)) {
        return CovarianceType::Tied;
    }
    if factors.all(|own| own.kind() == first.kind()) { first.kind() } else { CovarianceType::Full }
}

#[cfg(test)]
mod tests {
    use super::super::{Axes, Clusters, Dirichlet, NormalWishart, Posterior};
    use super::*;
    use crate::learn::kernel::MatrixState;
    use crate::linalg::Factor;
    use ndarray::array;

    #[test]
    fn means_and_covariances_are_those_of_the_components() {
        let covariance = array![[4.0, 2.0], [2.0, 5.0]];
        let one = Gaussian::new(vec![1.0, 2.0], Factor::from_matrix(covariance.view()).unwrap()).unwrap();
        let other = Gaussian::new(vec![3.0, 4.0], Factor::identity(2)).unwrap();
        let mixture = Mixture::new(vec![0.5, 0.5], vec![one, other]).unwrap();
        assert_eq!(mixture.means(), array![[1.0, 2.0], [3.0, 4.0]]);
        let found = mixture.covariances();
        assert!((&found.index_axis(ndarray::Axis(0), 0) - &covariance).iter().all(|d| d.abs() < 1e-14));
        assert_eq!(found.index_axis(ndarray::Axis(0), 1), Array2::<f64>::eye(2));
    }

    /// A test at compile time.
    #[test]
    fn distributions_can_be_shared_between_threads_and_printed() {
        fn check<T: Send + Sync + std::fmt::Debug>() {}
        check::<GaussianMixture>();
        check::<StudentMixture>();
        check::<Posterior>();
        check::<NormalWishart>();
        check::<Dirichlet>();
        check::<Clusters>();
        check::<Axes>();
        check::<(Factor, MatrixState)>();
    }
}
