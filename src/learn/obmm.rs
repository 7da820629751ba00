//! Online Bayesian Moment Matching: Jaini & Poupart (2016), with the moments of [`super::projection`].

use serde::{Deserialize, Serialize};

use super::method::foreign_state;
use super::online::{Cells, Changes, Online, Rule};
use super::projection::{
    RawPrecision, Scalars, Whitened, least_nu, project_dirichlet_lanes, project_dirichlet_literally,
};
use super::{Health, LearnError, LearnerState, Method, OnlineLearner, Start};
use crate::dist::{Dirichlet, GaussianMixture, NormalWishart, Posterior};
use crate::linalg::WorkingCopy;
use crate::linalg::lanes::{Four, Lanes, Quad};
use crate::linalg::simd::Arithmetic;
use crate::special::{GammaRatio, LN_PI, inverse_and_ln_1p};

/// Which moments the projection keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moments {
    /// Whitened moments: affine-equivariant, and exact in every moment they name.
    #[default]
    Whitened,
    /// The paper's printed equations, as closely as they can be followed.
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
    /// A learner that goes on from `posterior`, having started from `prior`, with the working copies of its matrices if
    /// there are any.
    pub(super) fn restore(
        &self,
        prior: Posterior,
        posterior: &Posterior,
        working: &[WorkingCopy],
        floor: Vec<f64>,
        health: Health,
    ) -> Box<dyn OnlineLearner> {
        let components = posterior.components();
        let cells = Cells::new(components.iter().map(|c| (c.mean(), c.psi())), working);
        let of_each = |value: fn(&NormalWishart) -> f64, padding: f64| {
            Quad::pad(&components.iter().map(value).collect::<Vec<_>>(), padding)
        };
        let lanes = vec![Quad::default(); cells.q.len()];
        let rule = ObmmRule {
            settings: *self,
            a: Quad::pad(posterior.weights().concentrations(), 0.0),
            total: posterior.weights().total(),
            kappa: of_each(NormalWishart::kappa, 1.0),
            nu: of_each(NormalWishart::nu, PADDING_NU),
            b: lanes.clone(),
            next: lanes.clone(),
            inverse: lanes.clone(),
            p: lanes.clone(),
            log_constant: lanes,
            gamma_ratio: GammaRatio::new(prior.dim()),
            prior,
        };
        Box::new(Online::new(cells, rule, floor, health))
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
        let prior = prior_around(&start.mixture);
        LearnerState::Bayes { posterior: prior.clone(), prior, working: Vec::new() }
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
        let LearnerState::Bayes { prior, posterior, working } = state else { return Err(foreign_state()) };
        Ok(self.restore(prior, &posterior, &working, floor, health))
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

/// `ν` in lanes without a component: one that the fast series of the log-gamma ratio serves.
const PADDING_NU: f64 = 1e9;

#[derive(Debug, Clone)]
struct ObmmRule {
    settings: ObmmSettings,
    prior: Posterior,
    gamma_ratio: GammaRatio,
    a: Vec<Quad>,
    total: f64,
    kappa: Vec<Quad>,
    nu: Vec<Quad>,
    /// `κ/(κ+1)`.
    b: Vec<Quad>,
    /// `1/(κ+1)`.
    next: Vec<Quad>,
    /// `1/κ`.
    inverse: Vec<Quad>,
    /// `1/(1 + bq)` of the current row.
    p: Vec<Quad>,
    /// Everything in `ln t(x)` that does not depend on the row.
    log_constant: Vec<Quad>,
}

impl ObmmRule {
    fn dim(&self) -> usize {
        self.prior.dim()
    }

    /// Rows that a discounted component is never tempered below.
    fn tempering_start(&self) -> f64 {
        20.0 + prior_strength(self.dim())
    }

    fn posterior(&self, cells: &Cells) -> Posterior {
        let (kappa, nu) = (Quad::flat(&self.kappa), Quad::flat(&self.nu));
        let component = |j: usize| {
            NormalWishart::new(cells.mean(j).to_vec(), kappa[j], nu[j], cells.factor(j))
                .expect("every update keeps a component in range")
        };
        let a = Quad::flat(&self.a)[..cells.count()].to_vec();
        let weights = Dirichlet::new(a).expect("every update keeps the concentrations positive");
        Posterior::new(weights, (0..cells.count()).map(component).collect())
            .expect("the parts have one shape")
    }

    /// The literal variant, a component at a time. One whose equations have no solution gets no responsibility.
    #[inline(never)]
    fn update_literally(
        &mut self,
        r: &mut [Quad],
        cells: &Cells,
        changes: &mut Changes,
        health: &mut Health,
    ) {
        for j in 0..cells.count() {
            let share = Quad::flat(r)[j];
            if share == 0.0 {
                continue;
            }
            let (kappa, nu) = (Quad::flat(&self.kappa)[j], Quad::flat(&self.nu)[j]);
            let before = Scalars { dim: self.dim(), kappa, nu, q: Quad::flat(&cells.q)[j], r: share };
            let Some(new) = before.literal(&raw_precision(cells, j)) else {
                health.literal_steps_kept += 1;
                Quad::flat_mut(r)[j] = 0.0;
                continue;
            };
            let parts =
                [&mut self.kappa, &mut self.nu, &mut changes.step, &mut changes.tau, &mut changes.stretch];
            for (part, value) in parts.into_iter().zip([new.kappa, new.nu, new.step, new.tau, new.stretch]) {
                Quad::flat_mut(part)[j] = value;
            }
        }
    }

    /// The projection of every component that the row says something about.
    #[inline(always)]
    fn update_whitened<A: Arithmetic>(&mut self, r: &[Quad], cells: &Cells, changes: &mut Changes) {
        let dim = self.dim();
        let nothing = A::Lanes::splat(0.0);
        for (i, r) in r.iter().enumerate() {
            let (kappa, nu, r) =
                (A::Lanes::load(&self.kappa[i]), A::Lanes::load(&self.nu[i]), A::Lanes::load(r));
            let before = Whitened {
                nu,
                r,
                q: A::Lanes::load(&cells.q[i]),
                p: A::Lanes::load(&self.p[i]),
                next: A::Lanes::load(&self.next[i]),
                inverse: A::Lanes::load(&self.inverse[i]),
                b: A::Lanes::load(&self.b[i]),
            };
            let new = before.project(dim);
            nothing.if_below(r, new.kappa, kappa).store(&mut self.kappa[i]);
            nothing.if_below(r, new.nu, nu).store(&mut self.nu[i]);
            new.step.store(&mut changes.step[i]);
            new.tau.store(&mut changes.tau[i]);
            new.stretch.store(&mut changes.stretch[i]);
        }
    }

    /// Tempers what was just learned: early rows lose weight.
    #[inline(never)]
    fn discount(&mut self, r: &[Quad], changes: &mut Changes) {
        let (d, beta, start) = (self.dim() as f64, self.settings.discount, self.tempering_start());
        let scalars = Quad::flat_mut(&mut self.kappa).iter_mut().zip(Quad::flat_mut(&mut self.nu));
        let stretches = Quad::flat_mut(&mut changes.stretch).iter_mut();
        for (((kappa, nu), stretch), &r) in scalars.zip(stretches).zip(Quad::flat(r)) {
            if r > 0.0 {
                let keep = 1.0 - beta * r / (*nu - d + start);
                *kappa *= keep;
                *nu = d + keep * (*nu - d);
                *stretch *= keep;
            }
        }
    }
}

impl Rule for ObmmRule {
    /// `ln t_j(x)`, the Student-t evidence of the component.
    #[inline(always)]
    fn log_densities<A: Arithmetic>(&mut self, _x: &[Quad], cells: &Cells, out: &mut [Quad]) {
        let one = A::Lanes::splat(1.0);
        for (i, out) in out.iter_mut().enumerate() {
            let (p, log) = inverse_and_ln_1p(A::Lanes::load(&self.b[i]) * A::Lanes::load(&cells.q[i]));
            p.store(&mut self.p[i]);
            let half = A::Lanes::splat(-0.5) * (A::Lanes::load(&self.nu[i]) + one);
            half.mul_add(log, A::Lanes::load(&self.log_constant[i])).store(out);
        }
    }

    #[inline(always)]
    fn weights(&self) -> (&[Quad], f64) {
        (&self.a, self.total)
    }

    #[inline(always)]
    fn update<A: Arithmetic>(
        &mut self,
        r: &mut [Quad],
        cells: &Cells,
        changes: &mut Changes,
        health: &mut Health,
    ) {
        match self.settings.moments {
            Moments::Whitened => self.update_whitened::<A>(r, cells, changes),
            Moments::Paper => self.update_literally(r, cells, changes, health),
        }
        let least = least_nu(self.dim());
        let mut smallest = A::Lanes::splat(f64::INFINITY);
        for nu in &self.nu {
            let nu = A::Lanes::load(nu);
            smallest = nu.if_below(smallest, nu, smallest);
        }
        if smallest.to_array().iter().any(|nu| *nu <= least) {
            let pairs = Quad::flat(&self.nu).iter().zip(Quad::flat(r));
            health.nu_floored += pairs.filter(|(nu, r)| **nu <= least && **r > 0.0).count() as u64;
        }
        if self.settings.discount > 0.0 {
            self.discount(r, changes);
        }
        for (times, nu) in changes.floor_times.iter_mut().zip(&self.nu) {
            A::Lanes::load(nu).store(times);
        }
    }

    #[inline(always)]
    fn refresh<A: Arithmetic>(&mut self, cells: &Cells) {
        let d = self.dim() as f64;
        let (one, half) = (A::Lanes::splat(1.0), A::Lanes::splat(0.5));
        let small = A::Lanes::splat(self.gamma_ratio.series_from());
        let mut any_small = A::Lanes::splat(0.0);
        for i in 0..self.nu.len() {
            let kappa = A::Lanes::load(&self.kappa[i]);
            let both = one / (kappa * (kappa + one));
            let next = kappa * both;
            let b = kappa * next;
            next.store(&mut self.next[i]);
            b.store(&mut self.b[i]);
            ((kappa + one) * both).store(&mut self.inverse[i]);
            let x = (A::Lanes::load(&self.nu[i]) + A::Lanes::splat(1.0 - d)) * half;
            any_small = x.if_below(small, one, any_small);
            let (c, g) = (A::Lanes::load(&cells.log_det.c[i]), A::Lanes::load(&cells.log_det.g[i]));
            let ratio = self.gamma_ratio.series(x, b, c, g);
            let rest = A::Lanes::splat(d * LN_PI) + A::Lanes::load(&cells.log_det.a[i]);
            (ratio - half * rest).store(&mut self.log_constant[i]);
        }
        if any_small.largest() > 0.0 {
            self.refresh_small(cells);
        }
    }

    #[inline(always)]
    fn update_weights<A: Arithmetic>(&mut self, r: &[Quad], health: &mut Health) {
        match self.settings.moments {
            Moments::Whitened => {
                project_dirichlet_lanes::<A>(&mut self.a, r, self.total);
            }
            Moments::Paper => {
                let k = self.prior.k();
                let a = &mut Quad::flat_mut(&mut self.a)[..k];
                health.literal_steps_kept += project_dirichlet_literally(a, &Quad::flat(r)[..k]).1;
            }
        }
        if self.settings.discount > 0.0 {
            let total: f64 = Quad::flat(&self.a).iter().sum();
            let keep = 1.0 - self.settings.discount / (total + self.tempering_start());
            Quad::flat_mut(&mut self.a).iter_mut().for_each(|a| *a *= keep);
        }
        // One sum, so that a posterior read back from a file has the very same total.
        self.total = Quad::flat(&self.a).iter().sum();
    }

    fn estimate(&self, cells: &Cells) -> GaussianMixture {
        self.posterior(cells).point_estimate()
    }

    fn state(&self, cells: &Cells) -> LearnerState {
        LearnerState::Bayes {
            prior: self.prior.clone(),
            posterior: self.posterior(cells),
            working: cells.working_copies(),
        }
    }
}

impl ObmmRule {
    /// The log-gamma ratio of components whose `ν` is too small for its series.
    #[inline(never)]
    fn refresh_small(&mut self, cells: &Cells) {
        let d = self.dim() as f64;
        for j in 0..cells.count() {
            let x = (Quad::flat(&self.nu)[j] + 1.0 - d) * 0.5;
            if x < self.gamma_ratio.series_from() {
                let b = Quad::flat(&self.b)[j] / Quad::flat(&cells.log_det.c)[j];
                let log_det = Quad::flat(&cells.log_det.a)[j] + Quad::flat(&cells.log_det.g)[j].ln();
                Quad::flat_mut(&mut self.log_constant)[j] =
                    self.gamma_ratio.scaled(x, b) - 0.5 * (d * LN_PI + log_det);
            }
        }
    }
}

/// The literal variant matches elements of the raw precision, so it has to look at them: O(d³) a row.
fn raw_precision(cells: &Cells, j: usize) -> RawPrecision {
    let mut w = cells.factor(j).inverse();
    // In a unit, one for all columns, in which squares of W neither overflow nor vanish: nothing depends on it, and as a
    // power of two it costs no digit.
    let power = libm::frexp(w.diag().sum()).1.div_euclid(2);
    let unit = libm::ldexp(1.0, power);
    w *= libm::ldexp(1.0, -2 * power);
    let v: ndarray::Array1<f64> = cells.deviation(j).iter().map(|value| unit * value).collect();
    let u = w.dot(&v);
    RawPrecision {
        mean: unit * cells.mean(j)[0],
        deviation: v[0],
        trace: w.diag().sum(),
        squares: w.iter().map(|value| value * value).sum(),
        u_square: u.dot(&u),
        u_form: u.dot(&w.dot(&u)),
    }
}

/// `nx`: rows that the prior of a component is worth. Grows with the columns, for a component that lags in many
/// dimensions has the heavier-tailed evidence and starves. Fewer than eight rows let the first ones after the start
/// pull a component away from where it belongs.
pub fn prior_strength(dim: usize) -> f64 {
    (dim as f64 / 4.0).max(8.0)
}

/// A weak prior around a mixture fitted to the first rows.
pub fn prior_around(mixture: &GaussianMixture) -> Posterior {
    let strength = prior_strength(mixture.dim());
    let nu = mixture.dim() as f64 + 1.0 + strength;
    let kappa = strength / 2.0;
    let component = |gaussian: &crate::dist::Gaussian| {
        let mut psi = gaussian.covariance().clone();
        psi.scale_by(strength);
        NormalWishart::new(gaussian.mean().to_vec(), kappa, nu, psi).expect("nu > d − 1 by construction")
    };
    let k = mixture.k() as f64;
    let a = mixture.weights().iter().map(|weight| (k * weight).max(LEAST_CONCENTRATION)).collect();
    Posterior::new(
        Dirichlet::new(a).expect("concentrations are at least LEAST_CONCENTRATION"),
        mixture.components().iter().map(component).collect(),
    )
    .expect("one component for each weight")
}

/// A component that the first rows left empty still gets a chance.
const LEAST_CONCENTRATION: f64 = 1e-3;
