//! Online EM: Cappé & Moulines (2009), the baseline, in centred form.
//!
//! With `s0' = (1−γ)s0 + γr` and `ρ = γr/s0'`: `μ' = μ + ρ(x−μ)`, `Σ' = (1−ρ)(Σ + ρ(x−μ)(x−μ)ᵀ)`, `w = s0'`.

use serde::{Deserialize, Serialize};

use super::online::{Cell, Change, Online, Rule};
use super::{Health, LearnError, LearnerState, OnlineLearner};
use crate::dist::{Gaussian, GaussianMixture, Mixture};

/// Settings of online EM.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OemSettings {
    /// `α ∈ [0.5, 1]` of the step `(n+3)^−α`.
    pub alpha: f64,
    /// Whether `n` counts the rows that the start was fitted to (the strong form), or begins at the first row
    /// (as printed), where the first steps wipe out whatever start was given.
    pub count_start: bool,
}

impl Default for OemSettings {
    fn default() -> Self {
        OemSettings { alpha: 0.8, count_start: true }
    }
}

impl OemSettings {
    pub(super) fn check(&self) -> Result<(), LearnError> {
        if (0.5..=1.0).contains(&self.alpha) {
            return Ok(());
        }
        Err(LearnError::Setting { name: "alpha", must: "from 0.5 to 1", value: self.alpha })
    }

    /// A learner that goes on from `mixture` after `rows` rows, having started from `start`.
    pub(super) fn learner(
        &self,
        start: GaussianMixture,
        start_rows: u64,
        mixture: &GaussianMixture,
        rows: u64,
        floor: Vec<f64>,
        health: Health,
    ) -> Box<dyn OnlineLearner> {
        let mut rule = OemRule {
            settings: *self,
            weights: mixture.weights().to_vec(),
            frozen: cells_of(&start),
            frozen_log_det: Vec::new(),
            log_det: vec![0.0; mixture.k()],
            start,
            start_rows,
            rows,
            step: 0.0,
        };
        rule.step = rule.step_size();
        rule.frozen_log_det = rule.frozen.iter().map(|cell| cell.matrix.log_det()).collect();
        Box::new(Online::new(cells_of(mixture), rule, floor, health))
    }
}

fn cells_of(mixture: &GaussianMixture) -> Vec<Cell> {
    mixture.components().iter().map(|c| Cell::new(c.mean(), c.covariance())).collect()
}

/// The largest share of a component that one row may replace: at 1 its covariance would vanish.
const LARGEST_SHARE: f64 = 0.999;

#[derive(Debug, Clone)]
struct OemRule {
    settings: OemSettings,
    weights: Vec<f64>,
    log_det: Vec<f64>,
    start: GaussianMixture,
    start_rows: u64,
    rows: u64,
    /// `γ` of the next row.
    step: f64,
    /// The start, by which responsibilities are shared out while the statistics of the first rows gather.
    frozen: Vec<Cell>,
    frozen_log_det: Vec<f64>,
}

impl OemRule {
    fn gathering(&self) -> bool {
        self.rows < (2 * self.start.dim() as u64).max(20)
    }

    /// `γ_n = (n+3)^−α`.
    fn step_size(&self) -> f64 {
        let counted = if self.settings.count_start { self.start_rows } else { 0 };
        ((self.rows + counted + 1) as f64 + 3.0).powf(-self.settings.alpha)
    }

    fn mixture(&self, cells: &[Cell]) -> GaussianMixture {
        let component = |cell: &Cell| {
            Gaussian::new(cell.mean.clone(), cell.matrix.factor().clone()).expect("updates keep means finite")
        };
        // The weights as they are: each step pulls their sum back to one, and a resumed run needs the same bits.
        Mixture::new(self.weights.clone(), cells.iter().map(component).collect())
            .expect("every step keeps the weights on the simplex")
    }
}

impl Rule for OemRule {
    fn log_densities(&mut self, x: &[f64], cells: &[Cell], out: &mut [f64]) {
        let dim = x.len();
        let gathering = self.gathering();
        for (j, out) in out.iter_mut().enumerate() {
            let (q, log_det) = if gathering {
                self.frozen[j].look_at(x);
                (self.frozen[j].q, self.frozen_log_det[j])
            } else {
                (cells[j].q, self.log_det[j])
            };
            *out = Gaussian::log_density_of(q, log_det, dim);
        }
    }

    fn weights(&self) -> (&[f64], f64) {
        if self.gathering() { (self.start.weights(), 1.0) } else { (&self.weights, 1.0) }
    }

    fn update(&mut self, j: usize, r: f64, _cell: &Cell, _health: &mut Health) -> Option<Change> {
        let gained = self.step * r;
        let weight = (1.0 - self.step) * self.weights[j] + gained;
        let share = (gained / weight).min(LARGEST_SHARE);
        // A component that nothing has reached for so long that its weight underflowed stays as it is.
        share.is_finite().then_some(Change {
            step: share,
            tau: share,
            stretch: 1.0 - share,
            floor_times: 1.0,
        })
    }

    fn refresh(&mut self, j: usize, cell: &Cell) {
        self.log_det[j] = cell.matrix.log_det();
    }

    fn update_weights(&mut self, r: &[f64], _health: &mut Health) {
        let step = self.step;
        self.weights.iter_mut().zip(r).for_each(|(weight, r)| *weight += step * (r - *weight));
        self.rows += 1;
        self.step = self.step_size();
    }

    fn estimate(&self, cells: &[Cell]) -> GaussianMixture {
        self.mixture(cells)
    }

    fn state(&self, cells: &[Cell]) -> LearnerState {
        LearnerState::Point {
            start: self.start.clone(),
            start_rows: self.start_rows,
            mixture: self.mixture(cells),
            rows: self.rows,
        }
    }
}
