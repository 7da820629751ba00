//! Distributions: parameters, densities, moments and sampling.

mod anomaly;
mod axes;
mod clusters;
mod deviations;
mod dirichlet;
mod gaps;
mod gaussian;
mod impute;
mod mixture;
mod normal_wishart;
mod posterior;
mod prediction;
mod scoring;
mod student;
mod whole;

pub use anomaly::AnomalyScore;
pub(crate) use axes::leading_directions;
pub use axes::{Axes, Marginal};
pub use clusters::{Clusters, Uniting};
pub use deviations::Deviations;
pub use dirichlet::Dirichlet;
pub use gaussian::Gaussian;
pub use mixture::{GaussianMixture, Mixture, StudentMixture};
pub use normal_wishart::NormalWishart;
pub use posterior::Posterior;
pub use prediction::Prediction;
pub(crate) use scoring::BlockScorer;
pub use scoring::most_probable;
pub use student::StudentT;

use rand::Rng;

use crate::linalg::{Conditional, has_gaps};
pub use crate::linalg::{Factor, FactorError};

/// Why parameters do not define a distribution.
///
/// ```
/// use gmm_bmm::dist::{Dirichlet, DistError};
///
/// let error = Dirichlet::new(vec![1.0, -2.0]).unwrap_err();
/// assert!(matches!(error, DistError::OutOfRange { name: "a", value: -2.0, .. }));
/// assert_eq!(error.to_string(), "a must be positive and finite, but it is -2");
/// ```
#[allow(missing_docs)]
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DistError {
    /// A number is out of range.
    #[error("{name} must be {must}, but it is {value}")]
    OutOfRange { name: &'static str, must: &'static str, value: f64 },
    /// A covariance is not positive definite.
    #[error("a covariance is not positive definite: {0}")]
    Covariance(#[from] crate::linalg::FactorError),
    /// Two parts have different numbers of dimensions or components.
    #[error("{what} has {found} entries where {expected} are needed")]
    Shape { what: &'static str, found: usize, expected: usize },
}

/// A density of rows that depends only on `q = (x−m)ᵀS⁻¹(x−m)`: a possible component of a [`Mixture`].
pub trait Density: Send + Sync {
    /// The location `m`.
    fn location(&self) -> &[f64];

    /// The scale matrix `S`.
    fn scale_matrix(&self) -> &Factor;

    /// The log-density of rows with quadratic form `q`.
    fn log_density_at(&self, q: f64) -> f64;

    /// A `q` such that rows with a larger quadratic form have a smaller log-density than this; infinity if unknown.
    fn quadratic_form_at(&self, _log_density: f64) -> f64 {
        f64::INFINITY
    }

    /// The log-density of `observed` columns of a row, from their quadratic form. `missing_log_det` is `ln |S|` of the other
    /// columns given these.
    fn observed_log_density_at(&self, q: f64, observed: usize, missing_log_det: f64) -> f64;

    /// Draws a row into `out`.
    fn sample_into<R: Rng + ?Sized>(&self, rng: &mut R, out: &mut [f64]);

    /// The number of columns.
    fn dim(&self) -> usize {
        self.location().len()
    }

    /// The log-density of a row. A missing value is NaN; then it is the log-density of the other columns.
    fn log_density(&self, x: &[f64]) -> f64 {
        let mut deviation: Vec<f64> = x.iter().zip(self.location()).map(|(x, m)| x - m).collect();
        if has_gaps(x) {
            let mut conditional = Conditional::default();
            conditional.set(self.scale_matrix(), (0..x.len()).filter(|&i| x[i].is_nan()));
            let q = conditional.complete(self.scale_matrix(), &mut deviation);
            let observed = x.iter().filter(|value| !value.is_nan()).count();
            return self.observed_log_density_at(q, observed, conditional.log_det);
        }
        self.log_density_at(self.scale_matrix().quadratic_form(&deviation, &mut vec![0.0; self.dim()]))
    }
}

fn check_positive(name: &'static str, value: f64) -> Result<(), DistError> {
    if value > 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(DistError::OutOfRange { name, must: "positive and finite", value })
}

fn check_finite(name: &'static str, values: &[f64]) -> Result<(), DistError> {
    match values.iter().find(|value| !value.is_finite()) {
        None => Ok(()),
        Some(&value) => Err(DistError::OutOfRange { name, must: "finite", value }),
    }
}

fn check_length(what: &'static str, found: usize, expected: usize) -> Result<(), DistError> {
    if found == expected { Ok(()) } else { Err(DistError::Shape { what, found, expected }) }
}

fn fill_standard_normal<R: Rng + ?Sized>(rng: &mut R, out: &mut [f64]) {
    out.iter_mut()
        .for_each(|value| *value = rand_distr::Distribution::sample(&rand_distr::StandardNormal, rng));
}
