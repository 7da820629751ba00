//! The scalars of online EM for tied, diagonal and spherical covariances.

use super::Matrices;
use crate::dist::{Gaussian, GaussianMixture};
use crate::learn::OemSettings;
use crate::learn::rules::forgetting::{Forgetting, LeastCounts};
use crate::learn::rules::oem::{MAX_FRACTION, gathering_rows, step_of_weight};
use crate::linalg::vector::Quad;

#[derive(Debug, Clone)]
pub(super) struct Point {
    settings: OemSettings,
    pub start: GaussianMixture,
    pub start_rows: f64,
    /// The start, which the responsibilities of the first rows are computed with.
    frozen: Matrices,
    pub weights: Vec<f64>,
    /// The weight of the rows since the start.
    pub rows: f64,
    /// Also the least number of rows of a component that gets few.
    forgetting: Option<(Forgetting, f64)>,
}

impl Point {
    pub fn new(
        settings: OemSettings,
        start: GaussianMixture,
        start_rows: f64,
        frozen: Matrices,
        weights: &[f64],
        rows: f64,
    ) -> Self {
        Point { settings, start, start_rows, frozen, weights: weights.to_vec(), rows, forgetting: None }
    }

    pub fn set_forgetting(&mut self, forgetting: Option<Forgetting>, dim: usize) {
        let least_rows = LeastCounts::new(dim).covariance;
        self.forgetting = forgetting.map(|forgetting| (forgetting, least_rows));
    }

    pub fn is_gathering(&self) -> bool {
        self.rows < gathering_rows(self.start.dim())
    }

    pub fn current_weights(&self) -> &[f64] {
        if self.is_gathering() { self.start.weights() } else { &self.weights }
    }

    /// The log-density of a row under each component of the start.
    pub fn frozen_log_densities(
        &mut self,
        row: &[Quad],
        x: &[f64],
        (gaps, observed): (bool, usize),
        log_densities: &mut [f64],
    ) {
        // Only the first rows come here, so the allocation does not matter.
        let mut distances = vec![0.0; log_densities.len()];
        self.frozen.distances(row, x, gaps, std::iter::once(x), &mut distances, log_densities);
        for (log_density, q) in log_densities.iter_mut().zip(distances) {
            *log_density = Gaussian::log_density_of(q, *log_density, observed);
        }
    }

    /// `γ` of the next row: `(n+3)^−α`, or `1/(1 + φ + … + φ^(n+2))` with a half-life.
    pub fn next_step(&self, weight: f64) -> f64 {
        let counted = if self.settings.count_start { self.start_rows } else { 0.0 };
        let (before, forgetting) =
            (self.rows + counted + 3.0, self.forgetting.map(|(forgetting, _)| forgetting));
        match forgetting {
            _ if weight != 1.0 => step_of_weight(self.settings.alpha, forgetting, before, weight),
            Some(forgetting) => 1.0 / forgetting.weight_of(before + 1.0),
            None => libm::pow(before + 1.0, -self.settings.alpha),
        }
    }

    /// The fraction of component `j` that a row replaces; `None` for a component whose weight has underflowed.
    pub fn fraction(&self, j: usize, r: f64, step: f64, weight: f64) -> Option<f64> {
        let gained = step * r;
        let mut total = (1.0 - step) * self.weights[j] + gained;
        if let Some((_, least_rows)) = self.forgetting {
            // The weight of a quiet component may fall without limit, but its moments stay those of a few rows.
            total = total.max(step / weight * least_rows);
        }
        let fraction = gained / total;
        fraction.is_finite().then(|| fraction.min(MAX_FRACTION))
    }

    pub fn learn_weights(&mut self, shares: &[f64], step: f64, weight: f64) {
        self.weights.iter_mut().zip(shares).for_each(|(own, r)| *own += step * (r - *own));
        self.rows += weight;
    }
}
