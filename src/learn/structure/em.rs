//! EM on rows in memory.

use std::sync::atomic::{AtomicBool, Ordering};

use super::covariance_prior::{PriorStrength, Strength, evidence_price};
use super::e_step::{Others, sweep};
use super::m_step::{Parts, maximise};
use crate::dist::GaussianMixture;
use crate::linalg::CovarianceType;
use crate::linalg::blocks::{BLOCK, RowBlocks};

/// Settings of EM.
#[derive(Debug, Clone, Copy)]
pub(in crate::learn) struct Em {
    /// The covariances of the components.
    pub kind: CovarianceType,
    /// The largest number of iterations.
    pub iterations: usize,
    /// EM stops when the mean log-likelihood changes by less than this.
    pub tolerance: f64,
    /// The prior of covariances; without it, EM maximises the likelihood.
    pub prior: Option<PriorStrength>,
    /// The price of components.
    pub price: Price,
    /// Added to each variance.
    pub ridge: f64,
    /// The log-density of noise, if any. Rows of a lower density belong to no component.
    pub noise: Option<f64>,
}

/// What components cost, to compare mixtures with different K.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::learn) enum Price {
    /// This much of the mean log-likelihood for each component.
    Component(f64),
    /// What the evidence of the mixture is below its likelihood.
    Evidence,
}

impl Price {
    /// For mixtures with the same K.
    pub const NONE: Price = Price::Component(0.0);
}

/// The result of EM.
#[derive(Debug, Clone)]
pub(in crate::learn) struct Improved {
    /// The mixture.
    pub mixture: GaussianMixture,
    /// Its mean log-likelihood on the rows.
    pub mean_log_likelihood: f64,
    /// The mean log-likelihood minus the price of all components.
    pub level: f64,
    /// What each component costs, in units of the price. One if rows have no weights.
    pub costs: Vec<f64>,
    /// The strength of the prior of covariances; `None` without a prior.
    pub strength: Option<Strength>,
    /// The number of iterations.
    pub iterations: usize,
    /// Whether EM stopped because of the tolerance.
    pub converged: bool,
}

/// Iterations after which the strength of the prior is learned again.
const LEARN_EVERY: usize = 5;

/// The sum of rises that shrink by a constant factor (Aitken) is exceeded by this factor at most: the factor grows while EM
/// leaves the region of its start.
const SLACK: f64 = 4.0;

/// How much the level may still rise in `left` iterations, after two earlier levels.
fn still_to_rise([first, second]: [f64; 2], level: f64, left: f64) -> f64 {
    let (before, rise) = (second - first, level - second);
    let steady = rise * left;
    if rise > 0.0 && rise < before { steady.min(SLACK * rise * rise / (before - rise)) } else { steady }
}

impl Em {
    /// Runs EM from `start`. It ends early if `stop` is set, or if the rises so far promise that the level will not reach
    /// `target`.
    pub fn run(&self, rows: &RowBlocks, start: &GaussianMixture, target: f64, stop: &AtomicBool) -> Improved {
        let mut mixture = start.clone();
        let (mut before, mut levels, mut strength) = (f64::NEG_INFINITY, [f64::NEG_INFINITY; 2], None);
        let count = rows.total_weight();
        let noise = self.noise.map(|noise| vec![noise; rows.blocks() * BLOCK]);
        let noise = noise.as_deref().map(Others::noise);
        let mut iteration = 0;
        loop {
            let sums = sweep(rows, &mixture, self.kind, noise);
            let now = sums.log_likelihood / count;
            let parts = Parts::new(sums, &mixture);
            if let Some(prior) = self.prior.filter(|_| iteration % LEARN_EVERY == 0 || strength.is_none()) {
                strength = Some(Strength::learn(&parts, prior));
            }
            // Under a prior the likelihood may also fall.
            let converged = (now - before).abs() < self.tolerance;
            let ends = converged || iteration == self.iterations || stop.load(Ordering::Relaxed);
            let judges = ends || target > f64::NEG_INFINITY && iteration > 0;
            let level = if judges { now - self.price_of(&parts, &mixture, strength) } else { now };
            let left = (self.iterations - iteration) as f64;
            let hopeless = iteration >= 2 && level + still_to_rise(levels, level, left) < target;
            if ends || hopeless {
                let (iterations, costs) = (iteration, parts.costs());
                return Improved {
                    mixture,
                    mean_log_likelihood: now,
                    level,
                    costs,
                    strength,
                    iterations,
                    converged,
                };
            }
            (before, levels) = (now, [levels[1], level]);
            mixture = maximise(parts, &mixture, strength, self.ridge);
            iteration += 1;
        }
    }

    fn price_of(&self, parts: &Parts, mixture: &GaussianMixture, strength: Option<Strength>) -> f64 {
        match (self.price, strength) {
            (Price::Component(each), _) => each * parts.costs().iter().sum::<f64>(),
            (Price::Evidence, Some(strength)) => evidence_price(parts, mixture, strength),
            (Price::Evidence, None) => 0.0,
        }
    }
}
