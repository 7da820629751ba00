//! The prior and the posterior of a mixture with tied, diagonal or spherical covariances.

use ndarray::{Array1, Array2};

use super::constrained::{centre, diagonal_factor};
use super::m_step::Part;
use super::posterior::{Learned, MIN_ROWS};
use crate::dist::{Gaussian, NormalWishart, Posterior};
use crate::learn::Health;
use crate::learn::rules::prior::prior_strength;
use crate::linalg::{CovarianceType, Factor};

impl Learned<'_> {
    /// [`Learned::prior`] for these covariances.
    pub(super) fn constrained_prior(&self) -> Posterior {
        let (kind, dim, centre) = (self.parts.kind, self.mixture.dim(), centre(self.parts));
        let parts = |spread: f64| {
            let (rows, counted) = (self.rows(spread), self.counted(spread));
            (rows.min(counted), (counted - rows).max(0.0), counted)
        };
        let shared = (kind == CovarianceType::Tied).then(|| {
            let own = self.mixture.components()[0].covariance();
            let (of_centre, of_own, counted) = parts(1.0);
            let mut sum = own.matrix() * of_own;
            sum.diag_mut().iter_mut().zip(&centre).for_each(|(to, value)| *to += of_centre * value);
            self.in_units(Factor::from_matrix(sum.view()).unwrap_or_else(|_| own.times(counted)))
        });
        let component = |(part, gaussian): (&Part, &Gaussian)| {
            // A tied covariance has one prior.
            let spread = if shared.is_some() { 1.0 } else { part.spread };
            let (of_centre, of_own, counted) = parts(spread);
            let kappa = prior_strength(dim) / 2.0 * self.parts.prior_unit * spread;
            let nu = kind.beyond_rows(dim) + counted;
            let psi = shared.clone().unwrap_or_else(|| {
                let own = gaussian.covariance().diagonal();
                let sums = own.iter().zip(&centre).map(|(own, centre)| of_centre * centre + of_own * own);
                self.in_units(diagonal_factor(kind, sums))
            });
            NormalWishart::new(self.unscaled(gaussian.mean()), kappa, nu, psi).expect("nu is above its least")
        };
        let parts = self.parts.parts.iter().zip(self.mixture.components());
        Posterior::new(self.prior_of_weights(), parts.map(component).collect())
            .expect("one component for each weight")
    }

    /// The posterior of one component, in the units of the data. If components share `Ψ` and `ν`, these are given.
    pub(super) fn constrained_component(
        &self,
        part: &Part,
        gaussian: &Gaussian,
        prior: &NormalWishart,
        shared: Option<&(Factor, f64)>,
        health: &mut Health,
    ) -> Option<NormalWishart> {
        let count = if part.count < MIN_ROWS { 0.0 } else { part.count };
        let (psi, nu) = match shared {
            Some(shared) => shared.clone(),
            None if count == 0.0 => return None,
            None => self.own_variances(part, gaussian, prior, health),
        };
        let kappa = prior.kappa() + count;
        let mean: Vec<f64> = (gaussian.mean().iter().zip(&part.mean))
            .map(|(mean, rows)| mean + count / kappa * (rows - mean))
            .collect();
        NormalWishart::new(self.unscaled(&mean), kappa, nu, psi).ok()
    }

    /// `Ψ` and `ν` of one component, in the units of the data.
    fn own_variances(
        &self,
        part: &Part,
        gaussian: &Gaussian,
        prior: &NormalWishart,
        health: &mut Health,
    ) -> (Factor, f64) {
        let (count, counted) = (part.count, self.counted(part.spread));
        let rows = self.rows(part.spread).max(counted);
        let nu = prior.nu() + count;
        let weight = prior.kappa() * count / (prior.kappa() + count);
        let before = prior.psi().diagonal();
        let columns = before.iter().zip(self.units).zip(&part.squares);
        let away = part.mean.iter().zip(gaussian.mean());
        let sums = columns.zip(away).map(|(((before, (_, unit)), square), (mean, old))| {
            let sum = before / (unit * unit) * (rows / counted) + square;
            sum * ((counted + count) / (rows + count)) + weight * (mean - old).powi(2)
        });
        let mut psi = self.in_units(diagonal_factor(self.parts.kind, sums));
        health.pivots_raised += psi.raise_pivots(&self.least(nu)) as u64;
        (psi, nu)
    }

    /// `Ψ` and `ν` of all components, in the units of the data.
    pub(super) fn shared_matrix(
        &self,
        scatter: &Array2<f64>,
        prior: &Posterior,
        health: &mut Health,
    ) -> (Factor, f64) {
        let counted = self.counted(1.0);
        let rows = self.rows(1.0).max(counted);
        let own = &prior.components()[0];
        let count: f64 = self.parts.filled().map(|(_, part)| part.count).sum();
        let mut before = own.psi().clone();
        before.change_units(&self.units.iter().map(|(_, unit)| unit.recip()).collect::<Vec<f64>>());
        let mut psi = before.matrix() * (rows / counted) + scatter;
        psi *= (counted + count) / (rows + count);
        for (j, part) in self.parts.filled().filter(|(_, part)| part.count >= MIN_ROWS) {
            let old = self.mixture.components()[j].mean();
            let away: Array1<f64> = part.mean.iter().zip(old).map(|(mean, old)| mean - old).collect();
            let weight = own.kappa() * part.count / (own.kappa() + part.count);
            for ((i, l), value) in psi.indexed_iter_mut() {
                *value += weight * away[i] * away[l];
            }
        }
        let nu = own.nu() + count;
        let factor = Factor::from_matrix(psi.view()).unwrap_or_else(|_| before.times((rows + count) / rows));
        let mut factor = self.in_units(factor);
        health.pivots_raised += factor.raise_pivots(&self.least(nu)) as u64;
        (factor, nu)
    }

    fn in_units(&self, mut factor: Factor) -> Factor {
        factor.change_units(&self.units());
        factor
    }

    fn least(&self, nu: f64) -> Vec<f64> {
        self.floor.iter().map(|floor| nu * floor).collect()
    }
}
