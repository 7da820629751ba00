//! The step for a row with gaps: missing values are NaN.
//!
//! The evidence is that of the observed columns. Each component completes the row by its conditional mean, learns it like a
//! complete row, and adds the conditional covariance of the missing columns. Without that its covariance would shrink.

use super::{NEGLIGIBLE, Online, Rows, Rule, begin_kernel, weighted_density};
use crate::learn::kernel::CompletedRows;
use crate::linalg::has_gaps;
use crate::linalg::simd::{Arithmetic, at_run_time};
use crate::linalg::vector::{Vector, Vector4};

/// A row with gaps.
pub(in crate::learn) struct GappedRow<'a> {
    pub values: &'a [f64],
    /// The columns whose value is missing, in ascending order.
    pub missing: &'a [usize],
}

impl GappedRow<'_> {
    /// The number of observed columns.
    pub fn observed(&self) -> usize {
        self.values.len() - self.missing.len()
    }
}

/// Consecutive rows of one kind.
pub(super) enum Run<'a> {
    /// Rows without gaps.
    Complete(Rows<'a>),
    /// One row with gaps, and its weight.
    Gapped(&'a [f64], f64),
}

/// Divides rows into runs.
pub(super) fn runs(rows: Rows<'_>) -> impl Iterator<Item = Run<'_>> {
    let mut rest = rows;
    let any = rows.have_gaps();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let complete =
            if any { rest.iter().take_while(|(row, _)| !has_gaps(row)).count() } else { rest.count() };
        let (run, after) = rest.split_at(complete.max(1));
        rest = after;
        if complete > 0 {
            return Some(Run::Complete(run));
        }
        run.iter().next().map(|(row, weight)| Run::Gapped(row, weight))
    })
}

impl<R: Rule> Online<R> {
    /// Learns a row with gaps and this weight. Returns the log-density of its observed columns before it is learned, or `None` if the row is
    /// skipped.
    pub(super) fn learn_gapped(&mut self, values: &[f64], weight: f64) -> Option<f64> {
        self.missing.clear();
        self.missing.extend((0..values.len()).filter(|&i| values[i].is_nan()));
        if self.missing.len() == values.len() {
            return None;
        }
        learn_gapped(self, values, weight)
    }
}

#[inline(always)]
fn learn_gapped_kernel<A: Arithmetic, R: Rule>(
    online: &mut Online<R>,
    values: &[f64],
    weight: f64,
) -> Option<f64> {
    let Online { grouped, rule, floor, health, responsibilities, missing, completed, assigned, .. } = online;
    completed.resize_with(grouped.groups.len(), CompletedRows::default);
    let row = GappedRow { values, missing };
    let (zero, half, one) = (A::Vector::splat(0.0), A::Vector::splat(0.5), A::Vector::splat(1.0));
    let nothing = A::Vector::splat(f64::NEG_INFINITY);
    let mut top = nothing;
    for (i, (group, own)) in grouped.groups.iter_mut().zip(&mut *completed).enumerate() {
        let log_det = group.complete::<A>(values, missing, own);
        let log_densities = rule.observed_log_densities::<A>(i, &row, &group.q, &log_det);
        log_densities.store(&mut responsibilities[i]);
        let weights = A::Vector::load(&rule.weights().0[i]);
        top = zero.if_below(weights, log_densities, nothing).max(top);
    }
    let top = top.largest();
    if !top.is_finite() {
        health.rows_out_of_range += 1;
        return None;
    }
    let (weights, total) = rule.weights();
    let mut sum = zero;
    for (share, weights) in responsibilities.iter_mut().zip(weights) {
        let weighted = weighted_density(A::Vector::load(share) - A::Vector::splat(top), weights);
        weighted.store(share);
        sum = sum + weighted;
    }
    let sum = sum.sum();
    rule.set_weight(weight);
    for (i, (group, own)) in grouped.groups.iter_mut().zip(completed).enumerate() {
        let r = A::Vector::load(&responsibilities[i]) / A::Vector::splat(sum);
        r.store(&mut responsibilities[i]);
        (A::Vector::load(&assigned[i]) + r.if_below(half, zero, one)).store(&mut assigned[i]);
        let change = r.mul_add(A::Vector::load(&group.q), r) * A::Vector::splat(weight);
        let kept = change.if_below(A::Vector::splat(NEGLIGIBLE), zero, r);
        let (changes, extra) = rule.update_completed::<A>(i, group, r, kept, health);
        health.pivots_raised += group.learn_completed::<A>(&changes, &extra, missing, own, floor) as u64;
    }
    rule.update_weights::<A, true>(responsibilities, health);
    if rule.forgets() {
        for (i, group) in grouped.groups.iter_mut().enumerate() {
            rule.forget::<A>(i, group);
        }
    }
    rule.set_weight(1.0);
    // As when a saved state is restored, so that resuming changes no bit.
    begin_kernel::<A, R>(online);
    Some(top + (sum / total).ln())
}

at_run_time! {
    fn learn_gapped<R: Rule>(online: &mut Online<R>, values: &[f64], weight: f64) -> Option<f64> = learn_gapped_kernel
}
