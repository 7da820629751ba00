//! Online Bayesian Moment Matching: Jaini & Poupart (2016), with the moments of [`super::projection`].

use serde::{Deserialize, Serialize};

use super::online::{Cell, Change, Online, Rule};
use super::projection::{RawPrecision, Scalars, least_nu, project_dirichlet, project_dirichlet_literally};
use super::{Health, LearnError, LearnerState, OnlineLearner};
use crate::dist::{Dirichlet, GaussianMixture, NormalWishart, Posterior};
use crate::special::{LN_PI, log_gamma_ratio_scaled};

/// Which moments the projection keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moments {
    /// Whitened moments: affine-equivariant, and exact in every moment they name.
    #[default]
    Whitened,
    /// The paper's printed equations, as closely as they can be followed.
    Paper,
}

/// Settings of oBMM.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObmmSettings {
    /// Which moments the projection keeps.
    pub moments: Moments,
    /// `β ∈ [0, 1)`: how fast early rows lose weight. 0 is exact Bayes.
    pub discount: f64,
}

impl ObmmSettings {
    pub(super) fn check(&self) -> Result<(), LearnError> {
        if (0.0..1.0).contains(&self.discount) {
            return Ok(());
        }
        Err(LearnError::Setting { name: "discount", must: "from 0 to below 1", value: self.discount })
    }

    /// A learner that goes on from `posterior`, having started from `prior`.
    pub(super) fn learner(
        &self,
        prior: Posterior,
        posterior: &Posterior,
        floor: Vec<f64>,
        health: Health,
    ) -> Box<dyn OnlineLearner> {
        let cells = posterior.components().iter().map(|c| Cell::new(c.mean(), c.psi())).collect();
        let rule = ObmmRule {
            settings: *self,
            a: posterior.weights().concentrations().to_vec(),
            total: posterior.weights().total(),
            scalars: posterior.components().iter().map(ComponentScalars::new).collect(),
            prior,
        };
        Box::new(Online::new(cells, rule, floor, health))
    }
}

/// `κ`, `ν` of a component and what its evidence needs beside `q`.
#[derive(Debug, Clone)]
struct ComponentScalars {
    kappa: f64,
    nu: f64,
    /// Everything in `ln t(x)` that does not depend on the row.
    log_constant: f64,
}

impl ComponentScalars {
    fn new(component: &NormalWishart) -> Self {
        ComponentScalars { kappa: component.kappa(), nu: component.nu(), log_constant: 0.0 }
    }
}

#[derive(Debug, Clone)]
struct ObmmRule {
    settings: ObmmSettings,
    prior: Posterior,
    a: Vec<f64>,
    total: f64,
    scalars: Vec<ComponentScalars>,
}

impl ObmmRule {
    fn dim(&self) -> usize {
        self.prior.dim()
    }

    /// Rows that a discounted component is never tempered below.
    fn tempering_start(&self) -> f64 {
        20.0 + prior_strength(self.dim())
    }

    fn posterior(&self, cells: &[Cell]) -> Posterior {
        let component = |(cell, scalars): (&Cell, &ComponentScalars)| {
            NormalWishart::new(cell.mean.clone(), scalars.kappa, scalars.nu, cell.matrix.factor().clone())
                .expect("every update keeps a component in range")
        };
        let components = cells.iter().zip(&self.scalars).map(component).collect();
        let weights = Dirichlet::new(self.a.clone()).expect("every update keeps the concentrations positive");
        Posterior::new(weights, components).expect("the parts have one shape")
    }
}

impl Rule for ObmmRule {
    /// `ln t_j(x)`, the Student-t evidence of the component.
    fn log_densities(&mut self, _x: &[f64], cells: &[Cell], out: &mut [f64]) {
        for ((out, cell), own) in out.iter_mut().zip(cells).zip(&self.scalars) {
            let b = own.kappa / (own.kappa + 1.0);
            *out = own.log_constant - 0.5 * (own.nu + 1.0) * (b * cell.q).ln_1p();
        }
    }

    fn weights(&self) -> (&[f64], f64) {
        (&self.a, self.total)
    }

    fn update(&mut self, j: usize, r: f64, cell: &Cell, health: &mut Health) -> Option<Change> {
        let dim = self.dim();
        let d = dim as f64;
        let tempering_start = self.tempering_start();
        let own = &mut self.scalars[j];
        let before = Scalars { dim, kappa: own.kappa, nu: own.nu, q: cell.q, r };
        let projected = match self.settings.moments {
            Moments::Whitened => before.whitened(),
            Moments::Paper => match before.literal(&raw_precision(cell)) {
                Some(projected) => projected,
                None => {
                    health.literal_steps_kept += 1;
                    return None;
                }
            },
        };
        if projected.nu <= least_nu(dim) {
            health.nu_floored += 1;
        }
        let keep = 1.0 - self.settings.discount * r / (projected.nu - d + tempering_start);
        own.kappa = keep * projected.kappa;
        own.nu = d + keep * (projected.nu - d);
        Some(Change {
            step: projected.step,
            tau: projected.tau,
            stretch: keep * projected.stretch,
            floor_times: own.nu,
        })
    }

    fn refresh(&mut self, j: usize, cell: &Cell) {
        let dim = self.dim();
        let d = dim as f64;
        let own = &mut self.scalars[j];
        let b = own.kappa / (own.kappa + 1.0);
        own.log_constant = log_gamma_ratio_scaled((own.nu + 1.0 - d) / 2.0, dim, b)
            - 0.5 * (d * LN_PI + cell.matrix.log_det());
    }

    fn update_weights(&mut self, r: &[f64], health: &mut Health) {
        self.total = match self.settings.moments {
            Moments::Whitened => project_dirichlet(&mut self.a, r),
            Moments::Paper => {
                let (total, kept) = project_dirichlet_literally(&mut self.a, r);
                health.literal_steps_kept += kept;
                total
            }
        };
        if self.settings.discount > 0.0 {
            let keep = 1.0 - self.settings.discount / (self.total + self.tempering_start());
            self.a.iter_mut().for_each(|a| *a *= keep);
        }
        // One sum, so that a posterior read back from a file has the very same total.
        self.total = self.a.iter().sum();
    }

    fn estimate(&self, cells: &[Cell]) -> GaussianMixture {
        self.posterior(cells).point_estimate()
    }

    fn state(&self, cells: &[Cell]) -> LearnerState {
        LearnerState::Bayes { prior: self.prior.clone(), posterior: self.posterior(cells) }
    }
}

/// The literal variant matches elements of the raw precision, so it has to look at them: O(d³) a row.
fn raw_precision(cell: &Cell) -> RawPrecision {
    let w = cell.matrix.factor().inverse();
    let v = ndarray::ArrayView1::from(&cell.deviation);
    let u = w.dot(&v);
    RawPrecision {
        mean: cell.mean[0],
        deviation: cell.deviation[0],
        trace: w.diag().sum(),
        squares: w.iter().map(|value| value * value).sum(),
        u_square: u.dot(&u),
        u_form: u.dot(&w.dot(&u)),
    }
}

/// `nx`: rows that the prior of a component is worth. Grows with the columns, for a component that lags in many
/// dimensions has the heavier-tailed evidence and starves.
pub fn prior_strength(dim: usize) -> f64 {
    (dim as f64 / 4.0).max(2.0)
}

/// A weak prior around a mixture fitted to the first rows.
pub fn prior_around(mixture: &GaussianMixture) -> Posterior {
    let strength = prior_strength(mixture.dim());
    let nu = mixture.dim() as f64 + 1.0 + strength;
    let kappa = (strength / 2.0).max(1.0);
    let component = |gaussian: &crate::dist::Gaussian| {
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
