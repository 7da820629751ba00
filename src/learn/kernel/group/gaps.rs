//! Rows with gaps. Components with few columns in the precision form learn them together. Others learn them one at a time, in the
//! Cholesky form.

use super::{Changes, ComponentGroup};
use crate::learn::kernel::component::Component;
use crate::learn::kernel::interleaved::MissingColumns;
use crate::linalg::Conditional;
use crate::linalg::simd::{Arithmetic, at_run_time};
use crate::linalg::special::ln_1p;
use crate::linalg::vector::{Quad, Vector, Vector4};

/// A row with gaps as the components of a group complete it.
#[derive(Debug, Clone, Default)]
pub(in crate::learn) struct CompletedRows {
    /// Of lanes in the Cholesky form.
    lanes: [Completion; 4],
    /// Of the other lanes.
    columns: MissingColumns,
}

/// A row with gaps as one component completes it.
#[derive(Debug, Clone, Default)]
struct Completion {
    conditional: Conditional,
    /// `x − m`, with the conditional mean in missing columns.
    deviation: Vec<f64>,
}

impl ComponentGroup {
    /// Completes a row for each component, and sets `q` to the quadratic form of the observed columns. NaN is a missing value.
    /// Returns `ln |Ψ_OO|`.
    #[inline(always)]
    pub fn complete<A: Arithmetic>(
        &mut self,
        x: &[f64],
        missing: &[usize],
        completed: &mut CompletedRows,
    ) -> Quad {
        let mut log_det = self.complete_together::<A>(x, missing, &mut completed.columns);
        // Lanes without a component have the log-determinant 0.
        for i in self.count()..4 {
            log_det.0[i] = 0.0;
        }
        for (i, own) in completed.lanes.iter_mut().enumerate().take(self.count()) {
            if self.components[i].precision.is_none() {
                log_det.0[i] = self.complete_by_factor(i, (x, missing), own);
            }
        }
        log_det
    }

    /// Completes a row for the lanes in the precision form. The others get it, or numbers without a meaning.
    #[inline(always)]
    fn complete_together<A: Arithmetic>(
        &mut self,
        x: &[f64],
        missing: &[usize],
        columns: &mut MissingColumns,
    ) -> Quad {
        self.q = Quad::default();
        let Some(interleaved) = &mut self.interleaved else {
            self.require_factors(Quad::default());
            return Quad::default();
        };
        let scalars = &mut self.scalars;
        let found = interleaved.complete::<A>(x, missing, A::Vector::load(&scalars.gain), columns);
        scalars.gain = Quad::default();
        let q = found.form * A::Vector::load(&scalars.inverse_scale);
        q.store(&mut self.q);
        let observed = A::Vector::splat((x.len() - missing.len()) as f64);
        let log_det = A::Vector::load(&scalars.log_det) + A::Vector::load(&scalars.log_growth);
        let log_det = observed.mul_add(A::Vector::load(&scalars.log_scale), log_det + found.log_det);
        let (zero, one) = (A::Vector::splat(0.0), A::Vector::splat(1.0));
        let sound = q.if_below(zero, zero, one.where_positive(found.least_pivot));
        let sound = q.if_below(A::Vector::splat(f64::INFINITY), sound, zero);
        self.require_factors(sound.to_quad());
        log_det.to_quad()
    }

    /// Lanes whose number is not positive use the Cholesky form from now on.
    #[inline(never)]
    fn require_factors(&mut self, sound: Quad) {
        for i in 0..self.count() {
            if !(sound.0[i] > 0.0) && self.components[i].precision.is_some() {
                self.with_component(i, Component::require_factor);
            }
        }
    }

    /// Completes a row for a component in the Cholesky form. Returns `ln |Ψ_OO|`.
    #[inline(never)]
    fn complete_by_factor(
        &mut self,
        i: usize,
        (x, missing): (&[f64], &[usize]),
        completion: &mut Completion,
    ) -> f64 {
        let Completion { conditional, deviation } = completion;
        deviation.clear();
        match &self.interleaved {
            Some(interleaved) => deviation.extend(interleaved.lane_mean(i)),
            None => deviation.extend_from_slice(self.components[i].unpadded(&self.components[i].mean)),
        }
        deviation.iter_mut().zip(x).for_each(|(v, x)| *v = x - *v);
        let factor = &self.components[i].factor;
        conditional.set(factor, missing.iter().copied());
        self.q.0[i] = conditional.complete(factor, deviation);
        factor.log_det() - conditional.log_det
    }

    /// Learns the row of the last call of `complete`: `m ← m + step·v`, `Ψ ← stretch·(Ψ + τ v vᵀ + extra·C)` with the
    /// conditional matrix `C` of the missing columns. Returns how many pivots were raised.
    #[inline(always)]
    pub fn learn_completed<A: Arithmetic>(
        &mut self,
        changes: &Changes<Quad>,
        extra: &Quad,
        missing: &[usize],
        completed: &mut CompletedRows,
        floor: &[f64],
    ) -> usize {
        let mut changes = *changes;
        let mut raised = 0;
        for (i, own) in completed.lanes.iter().enumerate().take(self.count()) {
            if changes.r.0[i] > 0.0 && self.components[i].precision.is_none() {
                raised += self.learn_by_factor(i, &changes, extra.0[i], own, floor);
                changes.r.0[i] = 0.0;
            }
        }
        let Some(interleaved) = &mut self.interleaved else { return raised };
        let (zero, one) = (A::Vector::splat(0.0), A::Vector::splat(1.0));
        let t = A::Vector::load(extra).where_positive(A::Vector::load(&changes.r));
        if !t.all_at_most(zero) {
            interleaved.add_missing::<A>(t, t / (one + t), missing, &mut completed.columns);
            let count = A::Vector::splat(missing.len() as f64);
            let scalars = &mut self.scalars;
            count.mul_add(ln_1p(t), A::Vector::load(&scalars.log_growth)).store(&mut scalars.log_growth);
            // Each column of the conditional matrix is an update.
            (A::Vector::load(&scalars.updates_left) - count.where_positive(t))
                .store(&mut scalars.updates_left);
        }
        raised + self.learn::<A>(changes.load(), floor)
    }

    /// [`ComponentGroup::learn_completed`] for a component in the Cholesky form.
    #[inline(never)]
    fn learn_by_factor(
        &mut self,
        i: usize,
        changes: &Changes<Quad>,
        extra: f64,
        Completion { conditional, deviation }: &Completion,
        floor: &[f64],
    ) -> usize {
        let step = changes.step.0[i];
        match &mut self.interleaved {
            Some(interleaved) => interleaved.move_mean(i, step, deviation),
            None => {
                let mean = Quad::flat_mut(&mut self.components[i].mean);
                mean.iter_mut().zip(deviation).for_each(|(mean, v)| *mean += step * *v);
            }
        }
        let update = (changes.tau.0[i], extra, changes.stretch.0[i]);
        self.with_component(i, |component| component.learn_completed((deviation, conditional), update, floor))
    }
}

#[inline(always)]
fn complete_kernel<A: Arithmetic>(
    group: &mut ComponentGroup,
    x: &[f64],
    missing: &[usize],
    completed: &mut CompletedRows,
) -> Quad {
    group.complete::<A>(x, missing, completed)
}

at_run_time! {
    /// [`ComponentGroup::complete`], outside of a kernel.
    pub(in crate::learn) fn complete(group: &mut ComponentGroup, x: &[f64], missing: &[usize], completed: &mut CompletedRows) -> Quad = complete_kernel
}

#[cfg(test)]
mod tests;
