//! Distributions: parameters, densities, moments and sampling. Nothing here learns.

mod axes;
mod clusters;
mod dirichlet;
mod gaussian;
mod mixture;
mod normal_wishart;
mod posterior;
mod scoring;
mod student;

pub(crate) use axes::leading_directions;
pub use axes::{Axes, Marginal};
pub use clusters::Clusters;
pub use dirichlet::Dirichlet;
pub use gaussian::Gaussian;
pub use mixture::{GaussianMixture, Mixture, StudentMixture};
pub use normal_wishart::NormalWishart;
pub use posterior::Posterior;
pub(crate) use scoring::BlockScorer;
pub use scoring::most_probable;
pub use student::StudentT;

use rand::Rng;

use crate::linalg::Factor;

/// A parameter outside its range, or shapes that do not fit together.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DistError {
    /// A scalar parameter out of range.
    #[error("{name} must be {must}, this one is {value}")]
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// What it has to satisfy.
        must: &'static str,
        /// What it was.
        value: f64,
    },
    /// Two parts with different numbers of dimensions or components.
    #[error("{what} has {found} entries where {expected} are needed")]
    Shape {
        /// The odd one out.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The length it should have.
        expected: usize,
    },
}

/// A density over rows that depends on them by `q = (x−m)ᵀS⁻¹(x−m)` alone: what a [`Mixture`] can have as a
/// component.
pub trait Density: Send + Sync {
    /// `m`.
    fn location(&self) -> &[f64];

    /// `S`.
    fn scale_matrix(&self) -> &Factor;

    /// Log-density where the quadratic form is `q`.
    fn log_density_at(&self, q: f64) -> f64;

    /// `q` beyond which the log-density is below this; infinity where that is not known.
    fn square_below(&self, _log_density: f64) -> f64 {
        f64::INFINITY
    }

    /// Draws a row into `out`.
    fn sample_into<R: Rng + ?Sized>(&self, rng: &mut R, out: &mut [f64]);

    /// Numbers in a row.
    fn dim(&self) -> usize {
        self.location().len()
    }

    /// Log-density at `x`.
    fn log_density(&self, x: &[f64]) -> f64 {
        let deviation: Vec<f64> = x.iter().zip(self.location()).map(|(x, m)| x - m).collect();
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
