//! Online Bayesian Moment Matching: Jaini & Poupart (2016), with the moments of [`crate::learn::projection`].
//!
//! A component's matrix is stored as `S = Ψ/ν`, the inverse of `E[Λ]`. Its update depends only on `ν` before the row, which
//! removes the data dependency on the new `ν`. Its quadratic forms are `νq`.

mod scalars;

use std::f64::consts::PI;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::dist::{Dirichlet, GaussianMixture, NormalWishart, Posterior};
use scalars::{GroupScalars, Learned};

use crate::learn::kernel::step::{ComponentGroups, GappedRow, Online, Rule};
use crate::learn::kernel::{Changes, ComponentGroup, MatrixState};
use crate::learn::rules::constrained::Constrained;
use crate::learn::rules::forgetting::{Forgetting, LeastCounts, RowWeight};
use crate::learn::rules::method::foreign_state;
use crate::learn::rules::projection::{least_nu, project_dirichlet_literally};
use crate::learn::{Health, LearnError, LearnerState, Method, OnlineLearner, Revised, Start, prior_strength};
use crate::linalg::Factor;
use crate::linalg::simd::{Arithmetic, Plain};
use crate::linalg::special::{GammaTail, LN_2PI, SMALL, inverse_and_ln_1p, ln, ln_1p_small, log_gamma_ratio};
use crate::linalg::vector::{Quad, Vector, Vector4};

/// Which moments the projection keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moments {
    /// Whitened moments, which are affine-equivariant and matched exactly
    #[default]
    Whitened,
    /// The paper's printed equations, as closely as possible
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
    /// A learner that resumes from `posterior`, with the matrix states if there are any.
    pub(in crate::learn) fn restore(
        &self,
        prior: Arc<Posterior>,
        posterior: &Posterior,
        matrix_states: &[MatrixState],
        floor: Vec<f64>,
        health: Health,
    ) -> Box<dyn OnlineLearner> {
        let kind = posterior.covariance_type();
        if !kind.is_full() {
            return Box::new(Constrained::obmm(kind, prior, posterior, matrix_states, &floor, health));
        }
        let components = posterior.components();
        let matrices: Vec<Factor> = components.iter().map(mean_matrix).collect();
        let grouped =
            ComponentGroups::new(components.iter().map(NormalWishart::mean).zip(&matrices), matrix_states);
        let group = |components: &[NormalWishart]| {
            let of_each = |value: fn(&NormalWishart) -> f64, padding: f64| {
                Quad(std::array::from_fn(|i| components.get(i).map_or(padding, value)))
            };
            let (kappa, nu) = (of_each(NormalWishart::kappa, PADDING), of_each(NormalWishart::nu, PADDING));
            let mut group = GroupScalars::default();
            group.set_scalars::<Plain>(Vector4::load(&kappa), Vector4::load(&nu));
            group
        };
        let rule = ObmmRule {
            settings: *self,
            dim: prior.dim(),
            a: Quad::pad(posterior.weights().concentrations(), 0.0),
            total: posterior.weights().total(),
            groups: components.chunks(4).map(group).collect(),
            gamma_tail: GammaTail::new(prior.dim()),
            forgetting: None,
            row: RowWeight::ONE,
            prior,
        };
        Box::new(Online::new(grouped, rule, floor, health))
    }
}

impl Method for ObmmSettings {
    const NAME: &'static str = "obmm";
    const SUMMARY: &'static str = "Online Bayesian Moment Matching";

    fn check(&self) -> Result<(), LearnError> {
        if (0.0..1.0).contains(&self.discount) {
            return Ok(());
        }
        Err(LearnError::Setting { name: "discount", must: "from 0 to below 1", value: self.discount })
    }

    fn begin(&self, start: &Start) -> LearnerState {
        let prior = start.prior();
        LearnerState::Bayes { posterior: prior.clone(), prior, matrix_states: Vec::new() }
    }

    fn revise(&self, before: Option<&LearnerState>, revised: &Revised) -> Option<LearnerState> {
        let posterior = revised.posterior_after(before.and_then(LearnerState::posterior));
        Some(LearnerState::Bayes { prior: revised.prior.clone(), posterior, matrix_states: Vec::new() })
    }

    fn makes(state: &LearnerState) -> bool {
        matches!(state, LearnerState::Bayes { .. })
    }

    fn learner(
        &self,
        state: LearnerState,
        floor: Vec<f64>,
        health: Health,
    ) -> Result<Box<dyn OnlineLearner>, LearnError> {
        let LearnerState::Bayes { prior, posterior, matrix_states } = state else {
            return Err(foreign_state());
        };
        Ok(self.restore(Arc::new(prior), &posterior, &matrix_states, floor, health))
    }

    fn describe(&self) -> String {
        let moments = match self.moments {
            Moments::Whitened => "whitened moments",
            Moments::Paper => "the paper's moments",
        };
        match self.discount {
            0.0 => format!("oBMM ({moments})"),
            discount => format!("oBMM ({moments}, discount {discount})"),
        }
    }
}

/// `κ` and `ν` in lanes without a component, within the range of the series for the evidence.
const PADDING: f64 = 1e9;

/// `Ψ/ν`, the matrix that a component's matrix state belongs to.
pub(in crate::learn) fn mean_matrix(component: &NormalWishart) -> Factor {
    component.psi().times(1.0 / component.nu())
}

#[derive(Debug, Clone)]
struct ObmmRule {
    settings: ObmmSettings,
    prior: Arc<Posterior>,
    dim: usize,
    gamma_tail: GammaTail,
    a: Vec<Quad>,
    total: f64,
    groups: Vec<GroupScalars>,
    /// Also the counts that a quiet component keeps.
    forgetting: Option<(Forgetting, LeastCounts)>,
    /// The weight of the current row.
    row: RowWeight,
}

impl ObmmRule {
    /// Discounting does not temper a component below this number of rows.
    fn tempering_start(&self) -> f64 {
        20.0 + prior_strength(self.dim)
    }

    fn posterior(&self, grouped: &ComponentGroups) -> Posterior {
        let component = |j: usize| {
            let GroupScalars { kappa, nu, .. } = &self.groups[j / 4];
            let (kappa, nu) = (kappa.0[j % 4], nu.0[j % 4]);
            NormalWishart::new(grouped.mean(j), kappa, nu, grouped.factor(j).times(nu))
                .expect("every update keeps a component in range")
        };
        let a = Quad::flat(&self.a)[..grouped.count()].to_vec();
        let weights = Dirichlet::new(a).expect("every update keeps the concentrations positive");
        Posterior::new(weights, (0..grouped.count()).map(component).collect())
            .expect("the parts have one shape")
    }

    /// Tempers the update, so that early rows lose weight.
    #[inline(always)]
    fn discount<V: Vector4>(&self, learned: &mut Learned<V>) {
        let (d, beta) = (V::splat(self.dim as f64), V::splat(self.settings.discount));
        let Learned { changes, kappa, nu } = learned;
        let rows = V::splat(self.row.learned) * changes.r;
        let keep = V::splat(1.0) - beta * rows / (*nu - d + V::splat(self.tempering_start()));
        *kappa = *kappa * keep;
        let new = V::splat(0.0).if_below(changes.r, d + keep * (*nu - d), *nu);
        changes.stretch = changes.stretch * (keep * *nu / new);
        changes.log_stretch = ln(changes.stretch);
        *nu = new;
    }

    /// Sets `κ` and `ν` after an update, and returns the changes of the means and matrices.
    #[inline(always)]
    fn adopt<A: Arithmetic>(
        &mut self,
        i: usize,
        mut learned: Learned<A::Vector>,
        health: &mut Health,
    ) -> Changes<A::Vector> {
        let least = least_nu(self.dim);
        if !A::Vector::splat(least.next_up()).all_at_most(learned.nu) {
            let pairs = learned.nu.to_array().into_iter().zip(learned.changes.r.to_array());
            health.nu_floored += pairs.filter(|(nu, r)| *nu <= least && *r > 0.0).count() as u64;
        }
        if self.settings.discount > 0.0 {
            self.discount(&mut learned);
        }
        self.groups[i].set_scalars::<A>(learned.kappa, learned.nu);
        learned.changes
    }

    /// The least `κ` and `ν` in the range of the series for the evidence.
    #[inline(always)]
    fn series_from(&self) -> (f64, f64) {
        (1.0 / SMALL, 2.0 * self.gamma_tail.accurate_from() + 0.5 * self.dim as f64)
    }

    /// [`Rule::observed_log_densities`] outside the range of the series.
    #[inline(never)]
    fn observed_of_small(&self, i: usize, row: &GappedRow, log_det: Quad) -> Quad {
        let GroupScalars { nu, b, log, .. } = &self.groups[i];
        let (d, observed) = (self.dim as f64, row.observed() as f64);
        Quad(std::array::from_fn(|n| {
            let ratio = log_gamma_ratio((nu.0[n] + 1.0 - d) * 0.5, row.observed());
            let scale = (b.0[n] / (PI * nu.0[n])).ln();
            let degrees = nu.0[n] - row.missing.len() as f64 + 1.0;
            ratio + 0.5 * (observed * scale - log_det.0[n] - degrees * log.0[n])
        }))
    }

    /// The constants of components outside the range of the series.
    #[inline(never)]
    fn refresh_small(&mut self, i: usize, group: &ComponentGroup) {
        let (least_kappa, least_nu) = self.series_from();
        let d = self.dim as f64;
        let GroupScalars { kappa, nu, b, log_constant, .. } = &mut self.groups[i];
        for j in 0..group.count() {
            let nu = nu.0[j];
            if kappa.0[j] < least_kappa || nu < least_nu {
                let ratio = log_gamma_ratio((nu + 1.0 - d) * 0.5, self.dim);
                let scale = (b.0[j] / (PI * nu)).ln() - group.scalars.log_scale.0[j];
                let log_det = group.scalars.log_det.0[j] + group.scalars.log_growth.0[j];
                log_constant.0[j] = ratio + 0.5 * (d * scale - log_det);
            }
        }
    }
}

impl Rule for ObmmRule {
    #[inline(always)]
    fn prepare<A: Arithmetic>(&mut self, i: usize, _x: &[Quad], q: A::Vector) {
        let GroupScalars { b, inverse_nu, p, log, .. } = &mut self.groups[i];
        let x = A::Vector::load(b) * A::Vector::load(inverse_nu) * q;
        let (inverse, logarithm) = if x.all_at_most(A::Vector::splat(SMALL)) {
            (A::Vector::splat(1.0) / (A::Vector::splat(1.0) + x), ln_1p_small(x))
        } else {
            inverse_and_ln_1p(x)
        };
        inverse.store(p);
        logarithm.store(log);
    }

    /// `ln t(x)`, the Student-t evidence of the component.
    #[inline(always)]
    fn log_densities<A: Arithmetic>(&self, i: usize, less: A::Vector) -> A::Vector {
        let GroupScalars { nu, log, log_constant, .. } = &self.groups[i];
        let half = A::Vector::splat(-0.5) * (A::Vector::load(nu) + A::Vector::splat(1.0));
        half.mul_add(A::Vector::load(log), A::Vector::load(log_constant) - less)
    }

    #[inline(always)]
    fn log_peak(&self) -> f64 {
        self.groups[0].log_constant.0[0]
    }

    #[inline(always)]
    fn weights(&self) -> (&[Quad], f64) {
        (&self.a, self.total)
    }

    fn set_weight(&mut self, weight: f64) {
        let forgetting = self.forgetting.map(|(forgetting, _)| forgetting);
        self.row = RowWeight::new(weight, forgetting);
    }

    #[inline(always)]
    fn update<A: Arithmetic, const WEIGHTED: bool>(
        &mut self,
        i: usize,
        group: &ComponentGroup,
        r: A::Vector,
        kept: A::Vector,
        health: &mut Health,
    ) -> Changes<A::Vector> {
        let own = &mut self.groups[i];
        let learned = match self.settings.moments {
            // The printed equations have no form for weights.
            _ if WEIGHTED && self.row.learned != 1.0 => {
                own.update_weighted::<A>((self.dim, self.row.learned), &group.q, r, kept)
            }
            Moments::Whitened => own.update_whitened::<A>(self.dim, &group.q, r, kept),
            Moments::Paper => {
                let changes = own.update_literally(self.dim, group, kept.to_quad(), health).load();
                Learned { changes, kappa: A::Vector::load(&own.kappa), nu: A::Vector::load(&own.nu) }
            }
        };
        self.adopt::<A>(i, learned, health)
    }

    /// The marginal Student-t, which has `ν − |M|` degrees of freedom in place of `ν`.
    #[inline(always)]
    fn observed_log_densities<A: Arithmetic>(
        &mut self,
        i: usize,
        row: &GappedRow,
        q: &Quad,
        log_det: &Quad,
    ) -> A::Vector {
        self.prepare::<A>(i, &[], Vector4::load(q));
        let all = A::Vector::splat;
        let (d, h) = (self.dim as f64, 0.5 * row.observed() as f64);
        let GroupScalars { nu, b, inverse_nu, log, .. } = &self.groups[i];
        let (nu, b, inverse_nu) = (A::Vector::load(nu), A::Vector::load(b), A::Vector::load(inverse_nu));
        let (log, log_det) = (A::Vector::load(log), A::Vector::load(log_det));
        let tail = GammaTail::new(row.observed());
        // The centre of the log-gamma ratio, as in `refresh`.
        let centre = all(0.5) * (nu - all(d - h));
        if !all(tail.accurate_from()).all_at_most(centre) {
            return A::Vector::load(&self.observed_of_small(i, row, log_det.to_quad()));
        }
        let ratio = all(h).mul_add(ln(centre * b * inverse_nu * all(1.0 / PI)), tail.at(all(1.0) / centre));
        let degrees = nu - all(row.missing.len() as f64 - 1.0);
        all(-0.5).mul_add(degrees.mul_add(log, log_det), ratio)
    }

    /// The whitened moments of the completed row. The printed equations have no form for gaps.
    #[inline(always)]
    fn update_completed<A: Arithmetic>(
        &mut self,
        i: usize,
        group: &ComponentGroup,
        r: A::Vector,
        kept: A::Vector,
        health: &mut Health,
    ) -> (Changes<Quad>, Quad) {
        let (own, weight) = (&self.groups[i], self.row.learned);
        // E[Σ] = Ψ/(ν − d − 1), and the matrix is Ψ/ν. The limit is for components without rows, which have no E[Σ].
        let one = A::Vector::splat(1.0);
        let rows = (A::Vector::load(&own.nu) - A::Vector::splat(self.dim as f64 + 1.0)).max(one);
        let extra = A::Vector::splat(weight) * r / rows;
        let learned = if weight == 1.0 {
            own.update_whitened::<A>(self.dim, &group.q, r, kept)
        } else {
            own.update_weighted::<A>((self.dim, weight), &group.q, r, kept)
        };
        (self.adopt::<A>(i, learned, health).store(), extra.to_quad())
    }

    #[inline(always)]
    fn refresh<A: Arithmetic>(&mut self, i: usize, group: &ComponentGroup) {
        let all = A::Vector::splat;
        let h = 0.5 * self.dim as f64;
        let (least_kappa, least_nu) = self.series_from();
        let GroupScalars { kappa, nu, inverse, inverse_nu, log_constant, .. } = &mut self.groups[i];
        let (kappa, nu) = (A::Vector::load(kappa), A::Vector::load(nu));
        // The centre of the log-gamma ratio is w = (ν − h)/2, so ln w − ln ν = ln(1 − h/ν) − ln 2.
        let middle = ln_1p_small(all(-h) * A::Vector::load(inverse_nu));
        let b = ln_1p_small(A::Vector::load(inverse));
        let scale = A::Vector::load(&group.scalars.log_scale) + all(LN_2PI);
        let tail = self.gamma_tail.at(all(2.0) / (nu - all(h)));
        let log_det = A::Vector::load(&group.scalars.log_det) + A::Vector::load(&group.scalars.log_growth);
        all(h).mul_add(middle - b - scale, log_det.mul_add(all(-0.5), tail)).store(log_constant);
        if !(all(least_kappa).all_at_most(kappa) && all(least_nu).all_at_most(nu)) {
            self.refresh_small(i, group);
        }
    }

    #[inline(always)]
    fn update_weights<A: Arithmetic, const WEIGHTED: bool>(&mut self, r: &[Quad], health: &mut Health) {
        match self.settings.moments {
            _ if WEIGHTED && self.row.learned != 1.0 => {
                let weight = A::Vector::splat(self.row.learned);
                for (a, r) in self.a.iter_mut().zip(r) {
                    weight.mul_add(A::Vector::load(r), A::Vector::load(a)).store(a);
                }
            }
            Moments::Whitened => {
                for (a, r) in self.a.iter_mut().zip(r) {
                    (A::Vector::load(a) + A::Vector::load(r)).store(a);
                }
            }
            Moments::Paper => {
                let k = self.prior.k();
                let a = &mut Quad::flat_mut(&mut self.a)[..k];
                health.literal_steps_kept += project_dirichlet_literally(a, &Quad::flat(r)[..k]);
            }
        }
        if self.settings.discount > 0.0 {
            let total: f64 = Quad::flat(&self.a).iter().sum();
            let keep = 1.0 - self.settings.discount * self.row.learned / (total + self.tempering_start());
            Quad::flat_mut(&mut self.a).iter_mut().for_each(|a| *a *= keep);
        }
        if self.forgetting.is_some() {
            let (keep, least) = (self.row.keep, A::Vector::splat(LeastCounts::CONCENTRATION));
            for a in &mut self.a {
                faded(A::Vector::load(a), A::Vector::splat(keep), least).store(a);
            }
        }
        // One sum in a fixed order, so that a posterior read from a file has the same total.
        self.total = self.a.iter().fold(0.0, |total, Quad([a, b, c, d])| total + a + b + c + d);
    }

    fn set_forgetting(&mut self, forgetting: Option<Forgetting>) {
        self.forgetting = forgetting.map(|forgetting| (forgetting, LeastCounts::new(self.dim)));
        self.set_weight(1.0);
    }

    #[inline(always)]
    fn forgets(&self) -> bool {
        self.forgetting.is_some()
    }

    /// `κ ← φκ` and `ν − d − 1 ← φ(ν − d − 1)`, while `E[Σ] = Ψ/(ν − d − 1)` stays. The matrix is `Ψ/ν`, so it becomes
    /// `1 − (1−φ)(d+1)/ν'` times as large, where `ν'` is the new `ν`.
    #[inline(always)]
    fn forget<A: Arithmetic>(&mut self, i: usize, group: &mut ComponentGroup) {
        let Some((_, least)) = self.forgetting else { return };
        let all = A::Vector::splat;
        let (zero, one, keep) = (all(0.0), all(1.0), all(self.row.keep));
        let beyond = all(self.dim as f64 + 1.0);
        let (kappa, nu) = (A::Vector::load(&self.groups[i].kappa), A::Vector::load(&self.groups[i].nu));
        let count = nu - beyond;
        let new_count = faded(count, keep, all(least.covariance));
        let new_nu = new_count + beyond;
        let lost = count - new_count;
        // Lanes without a component have no weight, and do not change.
        let weight = A::Vector::load(&self.a[i]);
        let change = (zero - beyond * lost / (count * new_nu)).where_positive(lost).where_positive(weight);
        let log =
            if (zero - change).all_at_most(all(SMALL)) { ln_1p_small(change) } else { ln(one + change) };
        group.scale::<A>(one + change, log);
        let kappa = zero.if_below(weight, faded(kappa, keep, all(least.mean)), kappa);
        self.groups[i].set_scalars::<A>(kappa, zero.if_below(weight, new_nu, nu));
    }

    fn estimate(&self, grouped: &ComponentGroups) -> GaussianMixture {
        self.posterior(grouped).point_estimate()
    }

    fn state(&self, grouped: &ComponentGroups) -> LearnerState {
        LearnerState::Bayes {
            prior: Posterior::clone(&self.prior),
            posterior: self.posterior(grouped),
            matrix_states: grouped.matrix_states(),
        }
    }
}

/// `keep · count`, but at least `least`; a count below `least` stays.
#[inline(always)]
fn faded<V: Vector4>(count: V, keep: V, least: V) -> V {
    let less = (keep * count).max(least);
    less.if_below(count, less, count)
}
