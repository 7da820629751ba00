//! The prior that Bayesian learners begin from.

use crate::dist::{Dirichlet, Gaussian, GaussianMixture, NormalWishart, Posterior};

/// `nx`: rows that the prior of a component is worth. Grows with the columns, for a component that lags in many
/// dimensions has the heavier-tailed evidence and starves. Fewer than eight rows let the first ones after the start
/// pull a component away from where it belongs.
pub fn prior_strength(dim: usize) -> f64 {
    (dim as f64 / 4.0).max(8.0)
}

/// A weak prior around a mixture fitted to the first rows.
pub fn prior_around(mixture: &GaussianMixture) -> Posterior {
    let strength = prior_strength(mixture.dim());
    let nu = mixture.dim() as f64 + 1.0 + strength;
    let kappa = strength / 2.0;
    let component = |gaussian: &Gaussian| {
        let mut psi = gaussian.covariance().clone();
        psi.scale_by(strength);
        NormalWishart::new(gaussian.mean().to_vec(), kappa, nu, psi).expect("nu > d − 1 by construction")
    };
    let k = mixture.k() as f64;
    let a = mixture.weights().iter().map(|weight| (k * weight).max(LEAST_CONCENTRATION)).collect();
    Posterior::new(
        Dirichlet::new(a).expect("concentrations are at least LEAST_CONCENTRATION"),
        mixture.components().iter().map(component).collect(),
    )
    .expect("one component for each weight")
}

/// A component that the first rows left empty still gets a chance.
const LEAST_CONCENTRATION: f64 = 1e-3;
