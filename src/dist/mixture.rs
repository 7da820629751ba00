use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use super::{Density, DistError, Gaussian, StudentT, check_length};
use crate::special::{log_sum_exp, normalise_log_weights};

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

    /// Log-density at `x`. For many rows use a [`Scorer`], which allocates once.
    pub fn log_density(&self, x: &[f64]) -> f64 {
        self.scorer().log_density(x)
    }

    /// Mean log-density of some rows; 0 of none.
    pub fn mean_log_density<'a>(&self, rows: impl ExactSizeIterator<Item = &'a [f64]>) -> f64 {
        let mut scorer = self.scorer();
        let count = rows.len().max(1) as f64;
        rows.map(|row| scorer.log_density(row)).sum::<f64>() / count
    }

    /// Scores row after row without allocating.
    pub fn scorer(&self) -> Scorer<'_, C> {
        Scorer {
            mixture: self,
            log_weights: self.weights.iter().map(|weight| weight.ln()).collect(),
            terms: vec![0.0; self.k()],
            deviation: vec![0.0; self.dim()],
            whitened: vec![0.0; self.dim()],
        }
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

/// Log-densities and responsibilities of a [`Mixture`], row after row, with its scratch.
#[derive(Debug, Clone)]
pub struct Scorer<'a, C> {
    mixture: &'a Mixture<C>,
    log_weights: Vec<f64>,
    terms: Vec<f64>,
    deviation: Vec<f64>,
    whitened: Vec<f64>,
}

impl<C: Density> Scorer<'_, C> {
    /// Log-density at `x`.
    pub fn log_density(&mut self, x: &[f64]) -> f64 {
        self.fill_terms(x);
        log_sum_exp(&self.terms)
    }

    /// Log-density at `x` and the probability of each component given `x`.
    pub fn responsibilities(&mut self, x: &[f64]) -> (f64, &[f64]) {
        self.fill_terms(x);
        let log_density = normalise_log_weights(&mut self.terms);
        (log_density, &self.terms)
    }

    fn fill_terms(&mut self, x: &[f64]) {
        let parts = self.terms.iter_mut().zip(&self.mixture.components).zip(&self.log_weights);
        for ((term, component), log_weight) in parts {
            *term = log_weight + component.log_density_with(x, &mut self.deviation, &mut self.whitened);
        }
    }
}
