//! EM on rows in memory.

use std::sync::atomic::{AtomicBool, Ordering};

use super::e_step::{Others, sweep};
use super::m_step::{Shape, maximise};
use crate::dist::GaussianMixture;
use crate::linalg::blocks::{BLOCK, RowBlocks};

/// Settings of EM.
#[derive(Debug, Clone, Copy)]
pub(in crate::learn) struct Em {
    /// The largest number of iterations.
    pub iterations: usize,
    /// EM stops when the mean log-likelihood rises by less than this.
    pub tolerance: f64,
    /// The prior on the shape of covariances.
    pub shape: Shape,
    /// Added to each variance.
    pub ridge: f64,
    /// The log-density of noise, if any. Rows of a lower density belong to no component.
    pub noise: Option<f64>,
}

/// The result of EM.
#[derive(Debug, Clone)]
pub(in crate::learn) struct Improved {
    /// The mixture.
    pub mixture: GaussianMixture,
    /// Its mean log-likelihood on the rows.
    pub mean_log_likelihood: f64,
    /// The number of iterations.
    pub iterations: usize,
    /// Whether EM stopped because of the tolerance.
    pub converged: bool,
}

impl Em {
    /// Runs EM from `start`. It ends early if `stop` is set, or if the mean log-likelihood would not reach `target` even with
    /// the current rise in each remaining iteration.
    pub fn run(&self, rows: &RowBlocks, start: &GaussianMixture, target: f64, stop: &AtomicBool) -> Improved {
        let mut mixture = start.clone();
        let mut before = f64::NEG_INFINITY;
        let count = rows.total_weight();
        let noise = self.noise.map(|noise| vec![noise; rows.blocks() * BLOCK]);
        let noise = noise.as_deref().map(Others::noise);
        for iteration in 0..self.iterations {
            let sums = sweep(rows, &mixture, noise);
            let now = sums.log_likelihood / count;
            let rise = now - before;
            let hopeless = iteration >= 2 && now + rise * ((self.iterations - iteration) as f64) < target;
            if rise < self.tolerance || hopeless || stop.load(Ordering::Relaxed) {
                return Improved {
                    mixture,
                    mean_log_likelihood: now,
                    iterations: iteration,
                    converged: rise < self.tolerance,
                };
            }
            before = now;
            mixture = maximise(&sums, &mixture, self.shape, self.ridge);
        }
        let mean_log_likelihood = sweep(rows, &mixture, noise).log_likelihood / count;
        Improved { mixture, mean_log_likelihood, iterations: self.iterations, converged: false }
    }
}
