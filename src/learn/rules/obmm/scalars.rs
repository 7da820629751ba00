//! The scalars of four components, and how a row changes them.

use crate::learn::Health;
use crate::learn::kernel::{Changes, ComponentGroup};
use crate::learn::rules::projection::{RawPrecision, Scalars, Whitened};
use crate::linalg::simd::Arithmetic;
use crate::linalg::special::ln_1p;
use crate::linalg::vector::{Quad, Vector, Vector4};

/// The scalars of four components, and values derived from them.
#[derive(Debug, Clone, Default)]
pub(super) struct GroupScalars {
    pub(super) kappa: Quad,
    pub(super) nu: Quad,
    /// `κ/(κ+1)`.
    pub(super) b: Quad,
    /// `1/(κ+1)`.
    pub(super) next: Quad,
    /// `1/κ`.
    pub(super) inverse: Quad,
    /// `1/ν`.
    pub(super) inverse_nu: Quad,
    /// `1/(1 + bq)` of the current row.
    pub(super) p: Quad,
    /// `ln(1 + bq)` of the current row.
    pub(super) log: Quad,
    /// The terms of `ln t(x)` that do not depend on the row.
    pub(super) log_constant: Quad,
}

/// The update of four components by a row.
pub(super) struct Learned<V> {
    pub(super) changes: Changes<V>,
    pub(super) kappa: V,
    pub(super) nu: V,
}

impl GroupScalars {
    /// Sets `κ` and `ν`, and the values derived from them.
    #[inline(always)]
    pub(super) fn set_scalars<A: Arithmetic>(&mut self, kappa: A::Vector, nu: A::Vector) {
        let one = A::Vector::splat(1.0);
        kappa.store(&mut self.kappa);
        nu.store(&mut self.nu);
        let both = one / (kappa * (kappa + one));
        let next = kappa * both;
        next.store(&mut self.next);
        (kappa * next).store(&mut self.b);
        ((kappa + one) * both).store(&mut self.inverse);
        (one / nu).store(&mut self.inverse_nu);
    }

    /// The projection of four components. Those with `kept = 0` do not change.
    #[inline(always)]
    pub(super) fn update_whitened<A: Arithmetic>(
        &self,
        dim: usize,
        q: &Quad,
        r: A::Vector,
        kept: A::Vector,
    ) -> Learned<A::Vector> {
        let nothing = A::Vector::splat(0.0);
        let q = A::Vector::load(q);
        let (kappa, nu) = (A::Vector::load(&self.kappa), A::Vector::load(&self.nu));
        let inverse_nu = A::Vector::load(&self.inverse_nu);
        let (b, p) = (A::Vector::load(&self.b), A::Vector::load(&self.p));
        let next = A::Vector::load(&self.next);
        let before = Whitened {
            weight: A::Vector::splat(1.0),
            nu,
            r,
            q: q * inverse_nu,
            p,
            next,
            pull: next,
            inverse: A::Vector::load(&self.inverse),
            b,
        };
        let new = before.project(dim);
        // The numerator of τ.
        let pull = r * ((nu + A::Vector::splat(1.0)) * b * p * inverse_nu);
        let changes = Changes {
            r: kept,
            step: new.step,
            tau: new.tau * inverse_nu,
            gain: pull / pull.mul_add(q, new.along),
            stretch: nu * new.across,
            log_stretch: nothing - ln_1p(r * inverse_nu),
        };
        let (kappa, nu) = (nothing.if_below(kept, new.kappa, kappa), nothing.if_below(kept, new.nu, nu));
        Learned { changes, kappa, nu }
    }

    /// [`GroupScalars::update_whitened`] by a row of weight `w`. Of `w` equal rows, each of which belongs to the component with
    /// probability `r`, about `wr` do, with the variance `wr(1−r)`. That is also the mean and the variance of `r(w − s)`
    /// rows for certain and `s` more with probability `r`, where `s = √w`; `s = w` if `w < 1`. The first part is an exact update,
    /// and the second part a projection.
    #[inline(always)]
    pub(super) fn update_weighted<A: Arithmetic>(
        &self,
        (dim, weight): (usize, f64),
        q: &Quad,
        r: A::Vector,
        kept: A::Vector,
    ) -> Learned<A::Vector> {
        let (nothing, one) = (A::Vector::splat(0.0), A::Vector::splat(1.0));
        let s = weight.min(weight.sqrt());
        let (w, rest, s) = (A::Vector::splat(weight), A::Vector::splat(weight - s), A::Vector::splat(s));
        let form = A::Vector::load(q);
        let (kappa, nu) = (A::Vector::load(&self.kappa), A::Vector::load(&self.nu));
        let inverse_nu = A::Vector::load(&self.inverse_nu);
        let q = form * inverse_nu;
        // The exact update leaves v' = left·v.
        let certain = r * rest;
        let inverse = one / (kappa + certain);
        let left = kappa * inverse;
        let added = left * certain;
        let q_left = left * left * q / added.mul_add(q, one);
        let next = one / (kappa + certain + s);
        let b = s * (kappa + certain) * next;
        let p = one / b.mul_add(q_left, one);
        let nu_left = nu + certain;
        let before = Whitened { weight: s, nu: nu_left, r, q: q_left, p, next, pull: s * next, inverse, b };
        let new = before.project(dim);
        let tau = (new.tau * left).mul_add(left, added) * inverse_nu;
        let changes = Changes {
            r: kept,
            step: new.step.mul_add(left, certain * inverse),
            tau,
            gain: tau / tau.mul_add(form, one),
            stretch: nu * new.across,
            log_stretch: nothing - ln_1p(r * w * inverse_nu),
        };
        let (kappa, nu) = (nothing.if_below(kept, new.kappa, kappa), nothing.if_below(kept, new.nu, nu));
        Learned { changes, kappa, nu }
    }

    /// The printed equations, one component at a time. A component whose equations have no solution does not change.
    #[inline(never)]
    pub(super) fn update_literally(
        &mut self,
        dim: usize,
        group: &ComponentGroup,
        r: Quad,
        health: &mut Health,
    ) -> Changes<Quad> {
        let none = Quad::default();
        let mut changes = Changes { r, step: none, tau: none, gain: none, stretch: none, log_stretch: none };
        for j in 0..group.count() {
            let r = changes.r.0[j];
            if r == 0.0 {
                continue;
            }
            let nu = self.nu.0[j];
            let before = Scalars { dim, kappa: self.kappa.0[j], nu, q: group.q.0[j] / nu, r };
            let Some(new) = before.literal(&raw_precision(group, j, nu)) else {
                health.literal_steps_kept += 1;
                changes.r.0[j] = 0.0;
                continue;
            };
            (self.kappa.0[j], self.nu.0[j]) = (new.kappa, new.nu);
            (changes.step.0[j], changes.tau.0[j]) = (new.step, new.tau / nu);
            changes.gain.0[j] = changes.tau.0[j] / (1.0 + changes.tau.0[j] * group.q.0[j]);
            changes.stretch.0[j] = new.stretch * nu / new.nu;
            changes.log_stretch.0[j] = changes.stretch.0[j].ln();
        }
        changes
    }
}

/// The printed equations match elements of the raw precision, which costs O(d³) per row.
fn raw_precision(grouped: &ComponentGroup, j: usize, nu: f64) -> RawPrecision {
    let mut w = grouped.factor(j).times(nu).inverse();
    // Scaled so that squares of W neither overflow nor underflow. The result does not depend on the scale, and a power of two
    // loses no digit.
    let power = libm::frexp(w.diag().sum()).1.div_euclid(2);
    let unit = libm::ldexp(1.0, power);
    w *= libm::ldexp(1.0, -2 * power);
    let v: ndarray::Array1<f64> = grouped.deviation(j).iter().map(|value| unit * value).collect();
    let u = w.dot(&v);
    RawPrecision {
        mean: unit * grouped.mean(j)[0],
        deviation: v[0],
        trace: w.diag().sum(),
        squares: w.iter().map(|value| value * value).sum(),
        u_square: u.dot(&u),
        u_form: u.dot(&w.dot(&u)),
    }
}
