//! The prior and the posterior of a mixture that was fitted to rows in scaled units.

use super::covariance_prior::{Centres, Strength};
use super::m_step::{Part, Parts};
use crate::dist::{Dirichlet, Gaussian, GaussianMixture, NormalWishart, Posterior};
use crate::learn::Health;
use crate::learn::rules::prior::{prior_of_weights, prior_strength};
use crate::linalg::Factor;

/// A mixture in scaled units, the rows of its components, and the strength of their prior.
pub(super) struct Learned<'a> {
    pub parts: &'a Parts,
    pub mixture: &'a GaussianMixture,
    pub strength: Strength,
    /// Centre and unit of each column.
    pub units: &'a [(f64, f64)],
    /// The smallest variance of each column given the columns before it.
    pub floor: &'a [f64],
}

/// A component with fewer rows keeps its prior.
pub(super) const MIN_ROWS: f64 = 1e-6;
/// Added to each variance of a prior's centre, which is singular if columns are functions of others.
const MIN_VARIANCE: f64 = 1e-9;

impl Learned<'_> {
    /// The prior, in the units of the data: around the mean of each component, with the learned prior of its covariance. A
    /// learner that begins from it counts it as [`Learned::counted`] rows. If it is weaker than that, rows of the component's
    /// own covariance are added.
    pub fn prior(&self) -> Posterior {
        if !self.parts.kind.is_full() {
            return self.constrained_prior();
        }
        let centres = Centres::new(self.parts, self.strength.shared);
        let units = self.units();
        let component = |(j, gaussian): (usize, &Gaussian)| {
            let part = &self.parts.parts[j];
            let (rows, counted) = (self.rows(part.spread), self.counted(part.spread));
            let nu = self.mixture.dim() as f64 + 1.0 + counted;
            let kappa = prior_strength(self.mixture.dim()) / 2.0 * self.parts.prior_unit * part.spread;
            let mut sum = centres.matrix(j) * rows.min(counted);
            sum.diag_mut().iter_mut().for_each(|value| *value *= 1.0 + MIN_VARIANCE);
            if rows < counted {
                sum.scaled_add(counted - rows, &gaussian.covariance().matrix());
            }
            // If it has no factor, the component's own covariance takes its place.
            let factor = Factor::from_matrix(sum.view());
            let mut psi = factor.unwrap_or_else(|_| gaussian.covariance().times(counted));
            psi.change_units(&units);
            NormalWishart::new(self.unscaled(gaussian.mean()), kappa, nu, psi)
                .expect("nu > d − 1 by construction")
        };
        let components = self.mixture.components().iter().enumerate().map(component).collect();
        Posterior::new(self.prior_of_weights(), components).expect("one component for each weight")
    }

    pub(super) fn prior_of_weights(&self) -> Dirichlet {
        prior_of_weights(self.mixture, self.parts.prior_unit)
    }

    /// The strength of the learned prior, in the weights of the rows, for components with this [`Part::spread`].
    pub(super) fn rows(&self, spread: f64) -> f64 {
        self.strength.rows / self.parts.information * spread
    }

    /// How many rows a learner counts the prior as. The prior is learned from the same rows, so that a strong one would make
    /// the learner slow where components change.
    pub(super) fn counted(&self, spread: f64) -> f64 {
        let (least, unit) = (prior_strength(self.mixture.dim()), self.parts.prior_unit * spread);
        self.rows(spread).clamp(unit * least, unit * least.max(self.mixture.dim() as f64))
    }

    /// The posterior in the units of the data. A weight of one counts as `scale` rows in the concentrations.
    pub fn posterior(&self, prior: &Posterior, scale: f64) -> (Posterior, Health) {
        let mut health = Health::default();
        let is_full = self.parts.kind.is_full();
        let shared =
            self.parts.shared.as_ref().map(|scatter| self.shared_matrix(scatter, prior, &mut health));
        let component = |((part, gaussian), own): ((&Part, &Gaussian), &NormalWishart)| {
            let found = match is_full {
                true => self.component(part, gaussian, own, &mut health),
                false => self.constrained_component(part, gaussian, own, shared.as_ref(), &mut health),
            };
            found.unwrap_or_else(|| own.clone())
        };
        let parts = self.parts.parts.iter().zip(self.mixture.components()).zip(prior.components());
        let components = parts.map(component).collect();
        let a = prior.weights().concentrations().iter().zip(&self.parts.parts);
        let a = a.map(|(a, part)| a + scale * part.count).collect();
        let posterior = Posterior::new(Dirichlet::new(a).expect("counts are not negative"), components)
            .expect("one component for each weight");
        (posterior, health)
    }

    fn component(
        &self,
        part: &Part,
        gaussian: &Gaussian,
        prior: &NormalWishart,
        health: &mut Health,
    ) -> Option<NormalWishart> {
        if part.count < MIN_ROWS {
            return None;
        }
        let (count, units) = (part.count, self.units());
        let mut before = prior.psi().clone();
        before.change_units(&units.iter().map(|unit| unit.recip()).collect::<Vec<f64>>());
        // The covariance has the learned prior in full, whatever it counts as.
        let counted = self.counted(part.spread);
        let rows = self.rows(part.spread).max(counted);
        let mut psi = before.matrix() * (rows / counted);
        psi += &part.scatter;
        psi *= (counted + count) / (rows + count);
        let (kappa, nu) = (prior.kappa() + count, prior.nu() + count);
        let away: Vec<f64> = part.mean.iter().zip(gaussian.mean()).map(|(a, b)| a - b).collect();
        let weight = prior.kappa() * count / kappa;
        for ((i, j), value) in psi.indexed_iter_mut() {
            *value += weight * away[i] * away[j];
        }
        let mut factor = Factor::from_matrix(psi.view()).ok()?;
        factor.change_units(&units);
        let least: Vec<f64> = self.floor.iter().map(|floor| nu * floor).collect();
        health.pivots_raised += factor.raise_pivots(&least) as u64;
        let mean: Vec<f64> =
            gaussian.mean().iter().zip(&away).map(|(mean, away)| mean + count / kappa * away).collect();
        NormalWishart::new(self.unscaled(&mean), kappa, nu, factor).ok()
    }

    pub(super) fn units(&self) -> Vec<f64> {
        self.units.iter().map(|(_, unit)| *unit).collect()
    }

    pub(super) fn unscaled(&self, mean: &[f64]) -> Vec<f64> {
        mean.iter().zip(self.units).map(|(mean, (centre, unit))| centre + unit * mean).collect()
    }
}
