//! Rows with gaps. They are learned one component at a time, in the Cholesky form.

use super::{Changes, ComponentGroup};
use crate::learn::kernel::component::Component;
use crate::linalg::Conditional;
use crate::linalg::vector::Quad;

/// A row with gaps as one component completes it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Completion {
    conditional: Conditional,
    /// `x − m`, with the conditional mean in missing columns.
    deviation: Vec<f64>,
}

impl ComponentGroup {
    /// Completes a row for each component, and sets `q` to the quadratic form of the observed columns. Returns `ln |Ψ_OO|`.
    pub fn complete(&mut self, x: &[f64], missing: &[usize], completions: &mut [Completion]) -> Quad {
        let mut log_det = Quad::default();
        self.q = Quad::default();
        for (i, completion) in completions.iter_mut().enumerate().take(self.count()) {
            if self.components[i].precision.is_some() {
                self.with_component(i, Component::require_factor);
            }
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
            log_det.0[i] = factor.log_det() - conditional.log_det;
        }
        log_det
    }

    /// Learns the row of the last call of `complete`: `m ← m + step·v`, `Ψ ← stretch·(Ψ + τ v vᵀ + extra·C)` with the
    /// conditional matrix `C` of the missing columns. Returns how many pivots were raised.
    pub fn learn_completed(
        &mut self,
        changes: &Changes<Quad>,
        extra: &Quad,
        completions: &[Completion],
        floor: &[f64],
    ) -> usize {
        let mut raised = 0;
        for (i, Completion { conditional, deviation }) in completions.iter().enumerate().take(self.count()) {
            if !(changes.r.0[i] > 0.0) {
                continue;
            }
            let step = changes.step.0[i];
            match &mut self.interleaved {
                Some(interleaved) => interleaved.move_mean(i, step, deviation),
                None => {
                    let mean = Quad::flat_mut(&mut self.components[i].mean);
                    mean.iter_mut().zip(deviation).for_each(|(mean, v)| *mean += step * *v);
                }
            }
            let update = (changes.tau.0[i], extra.0[i], changes.stretch.0[i]);
            raised += self.with_component(i, |component| {
                component.learn_completed((deviation, conditional), update, floor)
            });
        }
        raised
    }
}
