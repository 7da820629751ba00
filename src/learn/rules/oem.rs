//! Online EM: Cappé & Moulines (2009), the baseline, in centred form.
//!
//! With `s0' = (1−γ)s0 + γr` and `ρ = γr/s0'`: `μ' = μ + ρ(x−μ)`, `Σ' = (1−ρ)(Σ + ρ(x−μ)(x−μ)ᵀ)`, `w = s0'`.

use serde::{Deserialize, Serialize};

use crate::dist::{Gaussian, GaussianMixture, Mixture};
use crate::learn::kernel::step::{ComponentGroups, GappedRow, Online, Rule};
use crate::learn::kernel::{Changes, CompletedRows, ComponentGroup, MatrixState, complete};
use crate::learn::rules::constrained::Constrained;
use crate::learn::rules::forgetting::{Forgetting, LeastCounts};
use crate::learn::rules::method::foreign_state;
use crate::learn::{Health, LearnError, LearnerState, Method, OnlineLearner, Revised, Start};
use crate::linalg::simd::{Arithmetic, Plain};
use crate::linalg::special::{LN_2PI, SMALL, exp, ln, ln_1p_small};
use crate::linalg::vector::{Quad, Vector, Vector4};

/// Settings of online EM.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OemSettings {
    /// `α ∈ [0.5, 1]` of the step `(n+3)^−α`. Without effect if the pass has a half-life, which sets the step.
    pub alpha: f64,
    /// Whether `n` counts the rows of the start. If it begins at the first row, as printed, the first steps erase the start.
    pub count_start: bool,
}

impl Default for OemSettings {
    fn default() -> Self {
        OemSettings { alpha: 0.8, count_start: true }
    }
}

impl Method for OemSettings {
    const NAME: &'static str = "oem";
    const SUMMARY: &'static str = "Online EM (Cappé & Moulines), the baseline";

    fn check(&self) -> Result<(), LearnError> {
        if (0.5..=1.0).contains(&self.alpha) {
            return Ok(());
        }
        Err(LearnError::Setting { name: "alpha", must: "from 0.5 to 1", value: self.alpha })
    }

    fn begin(&self, start: &Start) -> LearnerState {
        LearnerState::Point {
            start: start.mixture.clone(),
            start_rows: start.weight,
            mixture: start.mixture.clone(),
            rows: 0.0,
            matrix_states: Vec::new(),
        }
    }

    fn revise(&self, before: Option<&LearnerState>, revised: &Revised) -> Option<LearnerState> {
        let (old, start_rows, rows) = match before {
            Some(LearnerState::Point { mixture, start_rows, rows, .. }) => {
                (Some(mixture), *start_rows, *rows)
            }
            _ => (None, revised.weight, 0.0),
        };
        let mixture = revised.mixture_after(old);
        Some(LearnerState::Point {
            start: mixture.clone(),
            start_rows,
            mixture,
            rows,
            matrix_states: Vec::new(),
        })
    }

    fn makes(state: &LearnerState) -> bool {
        matches!(state, LearnerState::Point { .. })
    }

    fn learner(
        &self,
        state: LearnerState,
        floor: Vec<f64>,
        health: Health,
    ) -> Result<Box<dyn OnlineLearner>, LearnError> {
        let LearnerState::Point { start, start_rows, mixture, rows, matrix_states } = state else {
            return Err(foreign_state());
        };
        let kind = mixture.covariance_type();
        if !kind.is_full() {
            let (start, now) = ((start, start_rows), (&mixture, rows));
            let learner = Constrained::oem(kind, *self, start, now, &matrix_states, &floor, health);
            return Ok(Box::new(learner));
        }
        let grouped = group_components(&mixture, &matrix_states);
        let frozen = group_components(&start, &[]);
        let rule = OemRule {
            settings: *self,
            weights: Quad::pad(mixture.weights(), 0.0),
            start_weights: Quad::pad(start.weights(), 0.0),
            q: vec![Quad::default(); grouped.groups.len()],
            log_constant: vec![Quad::default(); grouped.groups.len()],
            frozen_log_constant: frozen
                .groups
                .iter()
                .map(|group| log_constants::<Plain>(start.dim(), group))
                .collect(),
            frozen,
            start,
            start_rows,
            rows,
            steps: Quad::default(),
            steps_from: f64::INFINITY,
            weight: 1.0,
            weighted_step: 0.0,
            forgetting: None,
        };
        Ok(Box::new(Online::new(grouped, rule, floor, health)))
    }

    fn describe(&self) -> String {
        let form = if self.count_start { "start counted" } else { "as printed" };
        format!("oEM (α = {}, {form})", self.alpha)
    }
}

fn group_components(mixture: &GaussianMixture, matrix_states: &[MatrixState]) -> ComponentGroups {
    ComponentGroups::new(mixture.components().iter().map(|c| (c.mean(), c.covariance())), matrix_states)
}

/// `γ` of a row of this weight after `before` rows.
pub(super) fn step_of_weight(alpha: f64, forgetting: Option<Forgetting>, before: f64, weight: f64) -> f64 {
    if let Some(forgetting) = forgetting {
        return forgetting.weight_of(weight) / forgetting.weight_of(before + weight);
    }
    // The product of 1 − γ over these rows, by the integral of its logarithm; with α = 1 that is exact.
    let (rest, growth) = (1.0 - alpha, (weight / before).ln_1p());
    let lost = if rest == 0.0 { growth } else { before.powf(rest) * (rest * growth).exp_m1() / rest };
    -(-lost).exp_m1()
}

/// The number of first rows whose responsibilities are those of the start.
pub(super) fn gathering_rows(dim: usize) -> f64 {
    (2 * dim).max(20) as f64
}

/// The largest fraction of a component that one row may replace. At 1 its covariance would vanish.
pub(super) const MAX_FRACTION: f64 = 0.999;

#[derive(Debug, Clone)]
struct OemRule {
    settings: OemSettings,
    weights: Vec<Quad>,
    /// Quadratic forms of the current row, by the matrices that the responsibilities are computed with.
    q: Vec<Quad>,
    /// `ln density` at the mean.
    log_constant: Vec<Quad>,
    start: GaussianMixture,
    start_rows: f64,
    /// The weight of the rows since the start.
    rows: f64,
    /// `γ` of four rows of weight 1, the first of which is `steps_from`.
    steps: Quad,
    steps_from: f64,
    /// The weight of the current row, and its `γ` if that is not 1.
    weight: f64,
    weighted_step: f64,
    /// The start, which the responsibilities of the first rows are computed with.
    frozen: ComponentGroups,
    frozen_log_constant: Vec<Quad>,
    start_weights: Vec<Quad>,
    /// Also the least number of rows of a component that gets few.
    forgetting: Option<(Forgetting, f64)>,
}

impl OemRule {
    #[inline(always)]
    fn gathering(&self) -> bool {
        self.rows < gathering_rows(self.start.dim())
    }

    /// The weights that the responsibilities are computed with.
    #[inline(always)]
    fn log_constants(&self) -> &[Quad] {
        if self.gathering() { &self.frozen_log_constant } else { &self.log_constant }
    }

    /// `γ_n` of the next row: `(n+3)^−α`, or `1/(1 + φ + … + φ^(n+2))` with a half-life.
    #[inline(always)]
    fn step<const WEIGHTED: bool>(&self) -> f64 {
        if WEIGHTED && self.weight != 1.0 {
            return self.weighted_step;
        }
        self.steps.0[(self.rows - self.steps_from) as usize]
    }

    /// Rows that `n` counts before the first row.
    #[inline(always)]
    fn counted(&self) -> f64 {
        if self.settings.count_start { self.start_rows } else { 0.0 }
    }

    /// `γ` of a row of this weight: after it, the rows before count as much as after as many rows of weight 1.
    fn step_of_weight(&self, weight: f64) -> f64 {
        let before = self.rows + self.counted() + 3.0;
        let forgetting = self.forgetting.map(|(forgetting, _)| forgetting);
        step_of_weight(self.settings.alpha, forgetting, before, weight)
    }

    /// Computes `γ` of the next row if its weight is 1. Four are computed at a time, or one where `n` is no whole number.
    #[inline(always)]
    fn note_steps<A: Arithmetic>(&mut self) {
        let whole = self.rows as u64;
        let first = if whole as f64 == self.rows { (whole & !3) as f64 } else { self.rows };
        if self.steps_from != first {
            let n = A::Vector::splat(first + self.counted() + 1.0 + 3.0)
                + A::Vector::load(&Quad([0.0, 1.0, 2.0, 3.0]));
            match self.forgetting {
                None => exp(A::Vector::splat(-self.settings.alpha) * ln(n)).store(&mut self.steps),
                Some((forgetting, _)) => {
                    self.steps = Quad(n.to_array().map(|n| 1.0 / forgetting.weight_of(n)));
                }
            }
            self.steps_from = first;
        }
    }

    fn mixture(&self, grouped: &ComponentGroups) -> GaussianMixture {
        let component =
            |j: usize| Gaussian::new(grouped.mean(j), grouped.factor(j)).expect("updates keep means finite");
        // The weights are not normalised: each step pulls their sum back to one, and a resumed run needs the same bits.
        let weights = Quad::flat(&self.weights)[..grouped.count()].to_vec();
        Mixture::new(weights, (0..grouped.count()).map(component).collect())
            .expect("every step keeps the weights on the simplex")
    }
}

/// `−½(d ln 2π + ln|Σ|)` of each component.
#[inline(always)]
fn log_constants<A: Arithmetic>(dim: usize, group: &ComponentGroup) -> Quad {
    let scalars = &group.scalars;
    let scale = A::Vector::load(&scalars.log_scale) + A::Vector::splat(LN_2PI);
    let rest = A::Vector::load(&scalars.log_det) + A::Vector::load(&scalars.log_growth);
    (A::Vector::splat(-0.5) * A::Vector::splat(dim as f64).mul_add(scale, rest)).to_quad()
}

impl Rule for OemRule {
    #[inline(always)]
    fn prepare<A: Arithmetic>(&mut self, i: usize, x: &[Quad], q: A::Vector) {
        let q = if self.gathering() { self.frozen.groups[i].quadratic_forms::<A>(x) } else { q };
        q.store(&mut self.q[i]);
    }

    #[inline(always)]
    fn log_densities<A: Arithmetic>(&self, i: usize, less: A::Vector) -> A::Vector {
        let constant = A::Vector::load(&self.log_constants()[i]);
        A::Vector::load(&self.q[i]).mul_add(A::Vector::splat(-0.5), constant - less)
    }

    #[inline(always)]
    fn log_peak(&self) -> f64 {
        self.log_constants()[0].0[0]
    }

    #[inline(always)]
    fn weights(&self) -> (&[Quad], f64) {
        if self.gathering() { (&self.start_weights, 1.0) } else { (&self.weights, 1.0) }
    }

    fn set_weight(&mut self, weight: f64) {
        self.weight = weight;
        if weight != 1.0 {
            self.weighted_step = self.step_of_weight(weight);
        }
    }

    #[inline(always)]
    fn update<A: Arithmetic, const WEIGHTED: bool>(
        &mut self,
        i: usize,
        group: &ComponentGroup,
        r: A::Vector,
        kept: A::Vector,
        _health: &mut Health,
    ) -> Changes<A::Vector> {
        let step = A::Vector::splat(self.step::<WEIGHTED>());
        let (one, zero, most) =
            (A::Vector::splat(1.0), A::Vector::splat(0.0), A::Vector::splat(MAX_FRACTION));
        let gained = step * r;
        let weight = (one - step) * A::Vector::load(&self.weights[i]) + gained;
        let mut fraction = gained / weight;
        if let Some((_, least_rows)) = self.forgetting {
            // The weight of a quiet component may fall without limit, but its moments stay those of a few rows.
            let of_one = if WEIGHTED { step / A::Vector::splat(self.weight) } else { step };
            fraction = gained / weight.max(of_one * A::Vector::splat(least_rows));
        }
        // A component whose weight has underflowed stays as it is.
        let r = fraction.if_below(A::Vector::splat(f64::INFINITY), kept, zero);
        let fraction = fraction.if_below(most, fraction, most);
        let gain = fraction / fraction.mul_add(A::Vector::load(&group.q), one);
        let rest = one - fraction;
        let log_stretch = if fraction.all_at_most(A::Vector::splat(SMALL)) {
            ln_1p_small(zero - fraction)
        } else {
            ln(rest)
        };
        Changes { r, step: fraction, tau: fraction, gain, stretch: rest, log_stretch }
    }

    #[inline(always)]
    fn observed_log_densities<A: Arithmetic>(
        &mut self,
        i: usize,
        row: &GappedRow,
        q: &Quad,
        log_det: &Quad,
    ) -> A::Vector {
        let (mut q, mut log_det) = (*q, *log_det);
        if self.gathering() {
            let frozen = &mut self.frozen.groups[i];
            // Only the first rows come here, so the allocation does not matter.
            log_det = complete(frozen, row.values, row.missing, &mut CompletedRows::default());
            q = frozen.q;
        }
        let constant = A::Vector::splat(row.observed() as f64 * LN_2PI);
        A::Vector::splat(-0.5) * (constant + A::Vector::load(&log_det) + A::Vector::load(&q))
    }

    #[inline(always)]
    fn update_completed<A: Arithmetic>(
        &mut self,
        i: usize,
        group: &ComponentGroup,
        r: A::Vector,
        kept: A::Vector,
        health: &mut Health,
    ) -> (Changes<Quad>, Quad) {
        let changes = self.update::<A, true>(i, group, r, kept, health);
        // Σ' = (1−ρ)(Σ + ρvvᵀ) + ρC.
        (changes.store(), (changes.tau / changes.stretch).to_quad())
    }

    #[inline(always)]
    fn refresh<A: Arithmetic>(&mut self, i: usize, group: &ComponentGroup) {
        self.log_constant[i] = log_constants::<A>(self.start.dim(), group);
        self.note_steps::<A>();
    }

    #[inline(always)]
    fn update_weights<A: Arithmetic, const WEIGHTED: bool>(&mut self, r: &[Quad], _health: &mut Health) {
        let step = A::Vector::splat(self.step::<WEIGHTED>());
        for (weight, r) in self.weights.iter_mut().zip(r) {
            let old = A::Vector::load(weight);
            step.mul_add(A::Vector::load(r) - old, old).store(weight);
        }
        self.rows += if WEIGHTED { self.weight } else { 1.0 };
        self.note_steps::<A>();
    }

    fn set_forgetting(&mut self, forgetting: Option<Forgetting>) {
        let least_rows = LeastCounts::new(self.start.dim()).covariance;
        self.forgetting = forgetting.map(|forgetting| (forgetting, least_rows));
        self.steps_from = f64::INFINITY;
    }

    /// The step has this effect.
    #[inline(always)]
    fn forgets(&self) -> bool {
        false
    }

    #[inline(always)]
    fn forget<A: Arithmetic>(&mut self, _i: usize, _group: &mut ComponentGroup) {}

    fn estimate(&self, grouped: &ComponentGroups) -> GaussianMixture {
        self.mixture(grouped)
    }

    fn state(&self, grouped: &ComponentGroups) -> LearnerState {
        LearnerState::Point {
            start: self.start.clone(),
            start_rows: self.start_rows,
            mixture: self.mixture(grouped),
            rows: self.rows,
            matrix_states: grouped.matrix_states(),
        }
    }
}
