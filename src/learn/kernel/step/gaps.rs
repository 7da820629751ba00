//! The step for a row with gaps: missing values are NaN.
//!
//! The evidence is that of the observed columns. Each component completes the row by its conditional mean, learns it like a
//! complete row, and adds the conditional covariance of the missing columns. Without that its covariance would shrink.

use super::{NEGLIGIBLE, Online, Rows, Rule, begin};
use crate::learn::kernel::Completion;
use crate::linalg::has_gaps;
use crate::linalg::simd::Plain;
use crate::linalg::vector::Quad;

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
    #[inline(never)]
    pub(super) fn learn_gapped(&mut self, values: &[f64], weight: f64) -> Option<f64> {
        let Online { grouped, rule, floor, health, responsibilities, missing, completions, assigned, .. } =
            self;
        missing.clear();
        missing.extend((0..values.len()).filter(|&i| values[i].is_nan()));
        if missing.len() == values.len() {
            return None;
        }
        completions.resize_with(grouped.count(), Completion::default);
        let row = GappedRow { values, missing };
        for (i, completions) in completions.chunks_mut(4).enumerate() {
            let group = &mut grouped.groups[i];
            let log_det = group.complete(values, row.missing, completions);
            responsibilities[i] = rule.observed_log_densities(i, &row, &group.q, &log_det);
        }
        let (weights, total) = rule.weights();
        let weights = Quad::flat(weights);
        let shares = Quad::flat_mut(responsibilities);
        let weighted = shares.iter().zip(weights).filter(|(_, weight)| **weight > 0.0);
        let top = weighted.map(|(log_density, _)| *log_density).fold(f64::NEG_INFINITY, f64::max);
        if !top.is_finite() {
            health.rows_out_of_range += 1;
            return None;
        }
        for (share, weight) in shares.iter_mut().zip(weights) {
            *share = if *weight > 0.0 { weight * (*share - top).exp() } else { 0.0 };
        }
        let sum: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= sum);
        let assigned = Quad::flat_mut(assigned).iter_mut().zip(shares.iter());
        assigned.for_each(|(rows, share)| *rows += f64::from(u8::from(*share >= 0.5)));
        rule.set_weight(weight);
        for (i, completions) in completions.chunks(4).enumerate() {
            let (group, r) = (&mut grouped.groups[i], responsibilities[i]);
            let is_learned = |n: usize| weight * (r.0[n] * (1.0 + group.q.0[n])) >= NEGLIGIBLE;
            let kept = Quad(std::array::from_fn(|n| if is_learned(n) { r.0[n] } else { 0.0 }));
            let (changes, extra) = rule.update_completed(i, group, &r, &kept, health);
            health.pivots_raised += group.learn_completed(&changes, &extra, completions, floor) as u64;
        }
        rule.update_weights::<Plain, true>(responsibilities, health);
        if rule.forgets() {
            for (i, group) in grouped.groups.iter_mut().enumerate() {
                rule.forget::<Plain>(i, group);
            }
        }
        rule.set_weight(1.0);
        // As when a saved state is restored, so that resuming changes no bit.
        begin(self);
        Some(top + (sum / total).ln())
    }
}
