//! EM on rows in memory.

use std::sync::atomic::{AtomicBool, Ordering};

use super::maximise::{Shape, maximise};
use super::sweep::{Others, sweep};
use crate::dist::GaussianMixture;
use crate::linalg::blocks::{BLOCK, RowBlocks};

/// How EM runs.
#[derive(Debug, Clone, Copy)]
pub(in crate::learn) struct Em {
    /// Iterations at most.
    pub iterations: usize,
    /// EM stops when the mean log-likelihood rises by less.
    pub tolerance: f64,
    /// What covariances are drawn towards.
    pub shape: Shape,
    /// Added to each variance.
    pub ridge: f64,
    /// Log-density of noise, where there is some: rows below it belong to no component.
    pub noise: Option<f64>,
}

/// What EM found.
#[derive(Debug, Clone)]
pub(in crate::learn) struct Improved {
    /// The mixture.
    pub mixture: GaussianMixture,
    /// Its mean log-likelihood on the rows.
    pub mean_log_likelihood: f64,
    /// Iterations done.
    pub iterations: usize,
    /// Whether the rise fell below the tolerance.
    pub converged: bool,
}

impl Em {
    /// Runs EM from `start`. Ends early where `stop` is set, or where the rise of the mean log-likelihood, if it stayed
    /// the same for the iterations that are left, would not reach `target`.
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
