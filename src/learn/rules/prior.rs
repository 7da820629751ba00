//! The prior that Bayesian learners begin from.

use crate::dist::{Dirichlet, Gaussian, GaussianMixture, NormalWishart, Posterior};

/// The number of rows that the prior of a component counts for. It grows with the number of columns: with a weak prior in
/// many columns, a component that has learned fewer rows has heavier-tailed evidence and gets fewer still. With less than
/// eight rows, the first rows after the start pull components away from where they belong.
pub fn prior_strength(dim: usize) -> f64 {
    (dim as f64 / 4.0).max(8.0)
}

/// A weak prior around a mixture fitted to the first rows.
pub fn prior_around(mixture: &GaussianMixture) -> Posterior {
    prior_with_means(mixture, prior_strength(mixture.dim()) / 2.0, 1.0)
}

/// The same, with means that count for `kappa` rows, where a row is a weight of `unit`.
pub fn prior_with_means(mixture: &GaussianMixture, kappa: f64, unit: f64) -> Posterior {
    let (kappa, strength) = (kappa * unit, prior_strength(mixture.dim()) * unit);
    let component = |gaussian: &Gaussian| {
        let nu = gaussian.covariance().kind().beyond_rows(mixture.dim()) + strength;
        let mut psi = gaussian.covariance().clone();
        psi.scale_by(strength);
        NormalWishart::new(gaussian.mean().to_vec(), kappa, nu, psi).expect("nu is above its least")
    };
    let components = mixture.components().iter().map(component).collect();
    Posterior::new(prior_of_weights(mixture, unit), components).expect("one component for each weight")
}

/// The prior of the weights of the components, where a row is a weight of `unit`.
pub(in crate::learn) fn prior_of_weights(mixture: &GaussianMixture, unit: f64) -> Dirichlet {
    let k = mixture.k() as f64;
    let a = mixture.weights().iter().map(|weight| (k * weight).max(MIN_CONCENTRATION) * unit).collect();
    Dirichlet::new(a).expect("concentrations are at least MIN_CONCENTRATION")
}

/// A component that is empty after the start can still gain rows.
const MIN_CONCENTRATION: f64 = 1e-3;
