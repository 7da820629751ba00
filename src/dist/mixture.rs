use ndarray::Array2;
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use super::{Density, DistError, Gaussian, StudentT, check_length};
use crate::special::log_sum_exp;

/// `Σ w_j f_j(x)`: weights on the simplex, and components of one dimension.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "MixtureRecord<C>", bound(deserialize = "C: Density + Deserialize<'de>"))]
pub struct Mixture<C> {
    weights: Vec<f64>,
    components: Vec<C>,
}

/// A mixture of normal distributions.
pub type GaussianMixture = Mixture<Gaussian>;
/// A mixture of Student-t distributions: the posterior predictive of a Bayesian Gaussian mixture.
pub type StudentMixture = Mixture<StudentT>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MixtureRecord<C> {
    weights: Vec<f64>,
    components: Vec<C>,
}

impl<C: Density> TryFrom<MixtureRecord<C>> for Mixture<C> {
    type Error = DistError;

    fn try_from(record: MixtureRecord<C>) -> Result<Self, DistError> {
        Mixture::new(record.weights, record.components)
    }
}

impl<C: Density> Mixture<C> {
    /// From weights (not negative, summing to one within rounding) and as many components.
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

    /// `w`.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The components.
    pub fn components(&self) -> &[C] {
        &self.components
    }

    /// How many components.
    pub fn k(&self) -> usize {
        self.components.len()
    }

    /// Numbers in a row.
    pub fn dim(&self) -> usize {
        self.components[0].dim()
    }

    /// Log-density at `x`. For many rows [`Mixture::score_samples`] is far faster.
    pub fn log_density(&self, x: &[f64]) -> f64 {
        let parts = self.components.iter().zip(&self.weights);
        log_sum_exp(&parts.map(|(c, weight)| weight.ln() + c.log_density(x)).collect::<Vec<_>>())
    }

    /// The components by their weights, the heaviest first; equal ones in their own order.
    pub fn heaviest_first(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.k()).collect();
        order.sort_by(|&i, &j| self.weights[j].total_cmp(&self.weights[i]));
        order
    }

    /// Draws rows, and says which component each came from.
    pub fn sample<R: Rng + ?Sized>(&self, rows: usize, rng: &mut R) -> (Array2<f64>, Vec<usize>) {
        let mut values = vec![0.0; rows * self.dim()];
        let components = values.chunks_exact_mut(self.dim()).map(|row| self.sample_into(rng, row)).collect();
        let drawn = Array2::from_shape_vec((rows, self.dim()), values).expect("whole rows were made");
        (drawn, components)
    }

    /// Draws a row into `out`, and says which component it came from.
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
