//! oBMM and online EM for tied, diagonal and spherical covariances. A row costs time in proportion to the columns, or for tied
//! covariances to their square once for all components.

mod bayes;
mod columns;
mod learner;
mod point;
#[cfg(test)]
mod tests;
mod tied;

use std::sync::Arc;

use bayes::{Projection, log_constant};
use columns::Columns;
use point::Point;
pub(in crate::learn) use tied::SharedState;
use tied::{NEW_ROWS, Tied};

use crate::dist::{Dirichlet, Gaussian, GaussianMixture, Mixture, NormalWishart, Posterior};
use crate::learn::kernel::MatrixState;
use crate::learn::kernel::step::NEGLIGIBLE;
use crate::learn::rules::forgetting::{Forgetting, LeastCounts, RowWeight};
use crate::learn::{Health, OemSettings, Surprise};
use crate::linalg::vector::Quad;
use crate::linalg::{CovarianceType, Factor, has_gaps};

/// A learner of components whose covariances are not full.
#[derive(Debug, Clone)]
pub(in crate::learn) struct Constrained {
    kind: CovarianceType,
    dim: usize,
    matrices: Matrices,
    scalars: LearnerScalars,
    health: Health,
    /// The current row, padded with zeros.
    row: Vec<Quad>,
    distances: Vec<f64>,
    /// Log-densities, and then responsibilities.
    shares: Vec<f64>,
    low_rows: u64,
    low: f64,
    surprise: Surprise,
    assigned: Vec<f64>,
}

#[derive(Debug, Clone)]
enum Matrices {
    Columns(Columns),
    Tied(Box<Tied>),
}

#[derive(Debug, Clone)]
enum LearnerScalars {
    Bayes(Bayes),
    Point(Box<Point>),
}

/// What oBMM knows of each component besides its mean and its matrix, which is `Ψ/ν`.
#[derive(Debug, Clone)]
struct Bayes {
    prior: Arc<Posterior>,
    a: Vec<f64>,
    kappa: Vec<f64>,
    nu: Vec<f64>,
    /// The terms of the log-densities that do not depend on the row.
    constants: Vec<f64>,
    forgetting: Option<Forgetting>,
}

impl Constrained {
    /// An oBMM learner that resumes from `posterior`.
    pub fn obmm(
        kind: CovarianceType,
        prior: Arc<Posterior>,
        posterior: &Posterior,
        matrix_states: &[MatrixState],
        floor: &[f64],
        health: Health,
    ) -> Self {
        let components = posterior.components();
        let matrices = match kind {
            CovarianceType::Tied => {
                let (first, means) = (&components[0], components.iter().map(|own| own.mean().to_vec()));
                let state = matrix_states.first().and_then(MatrixState::shared);
                Matrices::Tied(Box::new(Tied::new(means.collect(), first.psi(), first.nu(), floor, state)))
            }
            _ => {
                let parts = components.iter().map(|own| (own.mean(), own.psi().variances_over(own.nu())));
                Matrices::Columns(Columns::new(parts, floor, kind == CovarianceType::Spherical))
            }
        };
        let scalars = LearnerScalars::Bayes(Bayes {
            prior,
            a: posterior.weights().concentrations().to_vec(),
            kappa: components.iter().map(NormalWishart::kappa).collect(),
            nu: components.iter().map(NormalWishart::nu).collect(),
            constants: vec![0.0; components.len()],
            forgetting: None,
        });
        Constrained::new(kind, floor.len(), matrices, scalars, health)
    }

    /// An online EM learner that resumes from `mixture`, `rows` rows after the start.
    pub fn oem(
        kind: CovarianceType,
        settings: OemSettings,
        (start, start_rows): (GaussianMixture, f64),
        (mixture, rows): (&GaussianMixture, f64),
        matrix_states: &[MatrixState],
        floor: &[f64],
        health: Health,
    ) -> Self {
        let state = matrix_states.first().and_then(MatrixState::shared);
        let matrices = |mixture: &GaussianMixture, state| Matrices::of_mixture(kind, mixture, floor, state);
        let frozen = matrices(&start, None);
        let own = matrices(mixture, state);
        let scalars = LearnerScalars::Point(Box::new(Point::new(
            settings,
            start,
            start_rows,
            frozen,
            mixture.weights(),
            rows,
        )));
        Constrained::new(kind, floor.len(), own, scalars, health)
    }

    fn new(
        kind: CovarianceType,
        dim: usize,
        matrices: Matrices,
        scalars: LearnerScalars,
        health: Health,
    ) -> Self {
        let k = matrices.count();
        let mut learner = Constrained {
            kind,
            dim,
            matrices,
            scalars,
            health,
            row: vec![Quad::default(); Quad::needed(dim)],
            distances: vec![0.0; k],
            shares: vec![0.0; k],
            low_rows: 0,
            low: f64::NEG_INFINITY,
            surprise: Surprise::default(),
            assigned: vec![0.0; k],
        };
        (0..k).for_each(|j| learner.refresh(j));
        learner
    }

    /// Learns a row. Returns its log-density before it is learned, or `None` if it is skipped. `ahead` has the complete rows that
    /// follow, this one included.
    fn learn_row<'a>(
        &mut self,
        x: &[f64],
        weight: f64,
        ahead: impl Iterator<Item = &'a [f64]>,
    ) -> Option<f64> {
        let gaps = has_gaps(x);
        let observed = if gaps { x.iter().filter(|value| !value.is_nan()).count() } else { self.dim };
        if observed == 0 {
            return None;
        }
        Quad::flat_mut(&mut self.row)[..self.dim].copy_from_slice(x);
        self.compute_densities(x, gaps, observed, ahead);
        let (weights, total): (&[f64], f64) = match &self.scalars {
            LearnerScalars::Bayes(bayes) => (&bayes.a, bayes.a.iter().sum()),
            LearnerScalars::Point(point) => (point.current_weights(), 1.0),
        };
        let top = self.shares.iter().zip(weights).filter(|(_, weight)| **weight > 0.0);
        let top = top.map(|(log_density, _)| *log_density).fold(f64::NEG_INFINITY, f64::max);
        if !top.is_finite() {
            // The squared distance overflows, so nothing can be learned from the row.
            self.health.rows_out_of_range += 1;
            self.low_rows += u64::from(!gaps);
            return None;
        }
        for (share, weight) in self.shares.iter_mut().zip(weights) {
            *share = if *weight > 0.0 { weight * libm::exp(*share - top) } else { 0.0 };
        }
        let sum: f64 = self.shares.iter().sum();
        // Divided, not multiplied by an inverse: the responsibility of a single component is exactly one.
        self.shares.iter_mut().for_each(|share| *share /= sum);
        let log_density = top + libm::log(sum / total);
        let mut distance = 0.0;
        for (j, r) in self.shares.iter().enumerate() {
            distance += r * (1.0 + self.distances[j]);
            self.assigned[j] += f64::from(u8::from(*r >= 0.5));
        }
        if !gaps {
            self.surprise.add(distance - 1.0, Surprise::farthest(self.dim));
            self.low_rows += u64::from(log_density < self.low);
        }
        self.update(x, gaps, observed, weight);
        Some(log_density)
    }

    /// The log-density and the squared distance of the row under each component.
    fn compute_densities<'a>(
        &mut self,
        x: &[f64],
        gaps: bool,
        observed: usize,
        ahead: impl Iterator<Item = &'a [f64]>,
    ) {
        let Constrained { kind, dim, matrices, scalars, row, distances, shares, .. } = self;
        if let LearnerScalars::Point(point) = &mut *scalars
            && point.is_gathering()
        {
            point.frozen_log_densities(row, x, (gaps, observed), shares);
            // The distances are those from the components as they are now.
            matrices.distances(row, x, gaps, ahead, distances, &mut vec![0.0; shares.len()]);
            return;
        }
        matrices.distances(row, x, gaps, ahead, distances, shares);
        match scalars {
            LearnerScalars::Point(_) => {
                for (share, q) in shares.iter_mut().zip(&*distances) {
                    *share = Gaussian::log_density_of(*q, *share, observed);
                }
            }
            LearnerScalars::Bayes(bayes) => {
                for (j, share) in shares.iter_mut().enumerate() {
                    let (kappa, nu, q) = (bayes.kappa[j], bayes.nu[j], distances[j]);
                    let constant = if gaps || *kind == CovarianceType::Tied {
                        log_constant(*kind, (*dim, observed), (kappa, nu), *share)
                    } else {
                        bayes.constants[j]
                    };
                    let c = kappa / ((kappa + 1.0) * nu);
                    *share = constant
                        - match (&*matrices, &*kind) {
                            (Matrices::Columns(own), _) if !own.is_spherical => {
                                0.5 * (nu + 1.0) * own.log_sum(j, row, c)
                            }
                            (Matrices::Columns(_), _) => {
                                let freedom = nu * *dim as f64;
                                0.5 * (freedom + observed as f64) * libm::log1p(c * q / *dim as f64)
                            }
                            (Matrices::Tied(_), _) => {
                                let missing = (*dim - observed) as f64;
                                0.5 * (nu - missing + 1.0) * libm::log1p(c * q)
                            }
                        };
                }
            }
        }
    }

    /// Learns the row from the responsibilities.
    fn update(&mut self, x: &[f64], gaps: bool, observed: usize, weight: f64) {
        let k = self.shares.len();
        let row_weight = match &self.scalars {
            LearnerScalars::Bayes(bayes) => RowWeight::new(weight, bayes.forgetting),
            LearnerScalars::Point(_) => RowWeight { learned: weight, keep: 1.0 },
        };
        let step =
            if let LearnerScalars::Point(point) = &mut self.scalars { point.next_step(weight) } else { 0.0 };
        if let (LearnerScalars::Point(_), Matrices::Tied(tied)) = (&self.scalars, &mut self.matrices) {
            // Each row takes a part of the weight of all others.
            tied.scale *= 1.0 - step;
        }
        for j in 0..k {
            let r = self.shares[j];
            if !(weight * (r * (1.0 + self.distances[j])) >= NEGLIGIBLE) {
                continue;
            }
            match &mut self.scalars {
                LearnerScalars::Bayes(_) => self.update_moments(j, x, gaps, observed, row_weight.learned),
                LearnerScalars::Point(point) => {
                    let Some(rho) = point.fraction(j, r, step, weight) else { continue };
                    match &mut self.matrices {
                        Matrices::Columns(own) if own.is_spherical => {
                            let (o, d) = (observed as f64, self.dim as f64);
                            let factor =
                                (1.0 - rho) * (1.0 + rho * self.distances[j] / d) + rho * (d - o) / d;
                            self.health.pivots_raised += own.learn_spherical(j, &self.row, rho, factor);
                        }
                        Matrices::Columns(own) => {
                            self.health.pivots_raised += own.learn_fraction(j, &self.row, rho);
                        }
                        Matrices::Tied(tied) => {
                            tied.learn(j, (!gaps).then_some(x), rho, step * r * (1.0 - rho));
                        }
                    }
                }
            }
            self.refresh(j);
        }
        self.finish_row(gaps, row_weight, step);
    }

    /// The projection of component `j`.
    fn update_moments(&mut self, j: usize, x: &[f64], gaps: bool, observed: usize, weight: f64) {
        let LearnerScalars::Bayes(bayes) = &mut self.scalars else { return };
        let scalars = (bayes.kappa[j], bayes.nu[j]);
        let step = Projection::new(self.kind, self.dim, scalars, self.shares[j], weight);
        let mut floored = false;
        match &mut self.matrices {
            Matrices::Columns(own) if own.is_spherical => {
                let (nu, factor, [z, z_left], low) = step.spherical(self.distances[j], observed);
                (bayes.kappa[j], bayes.nu[j], floored) = (step.kappa(z, z_left), nu, low);
                self.health.pivots_raised += own.learn_spherical(j, &self.row, step.step, factor);
            }
            Matrices::Columns(own) => {
                let (sums, raised) = own.learn_moments(j, &self.row, &step);
                self.health.pivots_raised += raised;
                let (nu, low) = step.nu_of_columns(sums.variance);
                (bayes.kappa[j], bayes.nu[j], floored) = (step.kappa(sums.z, sums.z_left), nu, low);
            }
            Matrices::Tied(tied) => {
                let (tau, kappa) = step.tied(self.distances[j] / step.nu);
                bayes.kappa[j] = kappa;
                tied.learn(j, (!gaps).then_some(x), step.step, tau);
            }
        }
        self.health.nu_floored += u64::from(floored);
    }

    /// What follows after all components have learned the row: weights, the shared matrix, and forgetting.
    fn finish_row(&mut self, gaps: bool, weight: RowWeight, step: f64) {
        let least = LeastCounts::new(self.dim);
        match &mut self.scalars {
            LearnerScalars::Point(point) => {
                point.learn_weights(&self.shares, step, weight.learned);
                if let Matrices::Tied(tied) = &mut self.matrices {
                    if gaps {
                        tied.learn_missing(step);
                    }
                    if tied.scale <= 1.0 - NEW_ROWS {
                        tied.publish(1.0);
                    }
                }
            }
            LearnerScalars::Bayes(bayes) => {
                let learned = weight.learned;
                bayes.a.iter_mut().zip(&self.shares).for_each(|(a, r)| *a += learned * r);
                if let Matrices::Tied(tied) = &mut self.matrices {
                    let nu = bayes.nu[0];
                    if gaps {
                        tied.learn_missing(learned * nu / (nu - self.dim as f64 - 1.0).max(1.0));
                    }
                    bayes.nu.fill(nu + learned);
                    tied.new_rows += learned;
                }
                if bayes.forgetting.is_some() {
                    bayes.forget(self.kind, self.dim, &mut self.matrices, weight.keep, least);
                }
                if let Matrices::Tied(tied) = &mut self.matrices
                    && tied.new_rows >= NEW_ROWS * bayes.nu[0]
                {
                    tied.publish(bayes.nu[0]);
                }
                if bayes.forgetting.is_some() {
                    (0..self.shares.len()).for_each(|j| self.refresh(j));
                }
            }
        }
    }

    /// Computes the constant of component `j` again.
    fn refresh(&mut self, j: usize) {
        if let (LearnerScalars::Bayes(bayes), Matrices::Columns(own)) = (&mut self.scalars, &self.matrices) {
            let scalars = (bayes.kappa[j], bayes.nu[j]);
            bayes.constants[j] = log_constant(self.kind, (self.dim, self.dim), scalars, own.log_det(j));
        }
    }

    /// The factor of each component's matrix, times `count(j)`.
    fn factors(&self, divisor: f64, count: impl Fn(usize) -> f64) -> Vec<Factor> {
        match &self.matrices {
            Matrices::Columns(own) => (0..own.count()).map(|j| own.factor(j).times(count(j))).collect(),
            Matrices::Tied(tied) => vec![tied.matrix(divisor).times(count(0)); tied.means().len()],
        }
    }

    fn mixture(&self, point: &Point) -> GaussianMixture {
        let factors = self.factors(1.0, |_| 1.0);
        let component = |(j, factor): (usize, Factor)| {
            Gaussian::new(self.matrices.mean(j).to_vec(), factor).expect("updates keep means finite")
        };
        let components = factors.into_iter().enumerate().map(component).collect();
        Mixture::new(point.weights.clone(), components).expect("every step keeps the weights on the simplex")
    }

    fn posterior(&self, bayes: &Bayes) -> Posterior {
        let factors = self.factors(bayes.nu[0], |j| bayes.nu[j]);
        let component = |(j, psi): (usize, Factor)| {
            NormalWishart::new(self.matrices.mean(j).to_vec(), bayes.kappa[j], bayes.nu[j], psi)
                .expect("every update keeps a component in range")
        };
        let weights =
            Dirichlet::new(bayes.a.clone()).expect("every update keeps the concentrations positive");
        Posterior::new(weights, factors.into_iter().enumerate().map(component).collect())
            .expect("the parts have one shape")
    }
}

impl Matrices {
    fn of_mixture(
        kind: CovarianceType,
        mixture: &GaussianMixture,
        floor: &[f64],
        state: Option<&SharedState>,
    ) -> Self {
        let components = mixture.components();
        match kind {
            CovarianceType::Tied => {
                let means = components.iter().map(|own| own.mean().to_vec()).collect();
                Matrices::Tied(Box::new(Tied::new(means, components[0].covariance(), 1.0, floor, state)))
            }
            _ => {
                let parts = components.iter().map(|own| (own.mean(), own.covariance().variances_over(1.0)));
                Matrices::Columns(Columns::new(parts, floor, kind == CovarianceType::Spherical))
            }
        }
    }

    fn count(&self) -> usize {
        match self {
            Matrices::Columns(own) => own.count(),
            Matrices::Tied(tied) => tied.means().len(),
        }
    }

    fn mean(&self, j: usize) -> &[f64] {
        match self {
            Matrices::Columns(own) => own.mean(j),
            Matrices::Tied(tied) => &tied.means()[j],
        }
    }

    /// The squared distance of a row from each component, and `ln |matrix|` in its observed columns.
    fn distances<'a>(
        &mut self,
        row: &[Quad],
        x: &[f64],
        gaps: bool,
        ahead: impl Iterator<Item = &'a [f64]>,
        distances: &mut [f64],
        log_dets: &mut [f64],
    ) {
        match self {
            Matrices::Columns(own) => {
                for (j, (distance, log_det)) in distances.iter_mut().zip(log_dets).enumerate() {
                    (*distance, *log_det) = own.view(j, row, gaps);
                }
            }
            Matrices::Tied(tied) if gaps => {
                let log_det = tied.complete(x, |j, distance| distances[j] = distance);
                log_dets.fill(log_det);
            }
            Matrices::Tied(tied) => {
                tied.prepare(ahead);
                distances.iter_mut().enumerate().for_each(|(j, distance)| *distance = tied.distance(j));
                log_dets.fill(tied.log_det);
            }
        }
    }
}

impl Bayes {
    /// `κ ← φκ`, and `ν − beyond ← φ(ν − beyond)`, while `E[Σ]` stays.
    fn forget(
        &mut self,
        kind: CovarianceType,
        dim: usize,
        matrices: &mut Matrices,
        keep: f64,
        least: LeastCounts,
    ) {
        let faded = |count: f64, least: f64| (keep * count).max(least).min(count);
        let beyond = kind.beyond_rows(dim);
        self.a.iter_mut().for_each(|a| *a = faded(*a, LeastCounts::CONCENTRATION));
        self.kappa.iter_mut().for_each(|kappa| *kappa = faded(*kappa, least.mean));
        for (j, nu) in self.nu.iter_mut().enumerate() {
            let count = *nu - beyond;
            let new_count = faded(count, least.covariance);
            let new = new_count + beyond;
            if new_count < count {
                match matrices {
                    // The matrix is Ψ/ν.
                    Matrices::Columns(own) => own.scale(j, new_count / count * (*nu / new)),
                    Matrices::Tied(tied) if j == 0 => tied.scale *= new_count / count,
                    Matrices::Tied(_) => {}
                }
            }
            *nu = new;
        }
    }
}
