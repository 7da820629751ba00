//! The one step that all online learners share: evidence, responsibilities, one scaled rank-one update each.
//!
//! What there is one of for each component stands side by side in fours, so that the scalar work of a row is done for
//! four components at a time. Lanes beyond the last component hold numbers that do no harm, and weigh nothing.

use super::{Health, LearnerState, OnlineLearner, Prequential};
use crate::dist::GaussianMixture;
use crate::linalg::simd::{Arithmetic, at_run_time};
use crate::linalg::vector::{Quad, Vector, Vector4};
use crate::linalg::{Changes, ComponentGroup, Factor, MatrixState};
use crate::special::{exp, ln};

/// A responsibility `r` of a component that a row is at squared distance `q` from moves its moments by about `r(1 + q)`
/// rows. Below this many the component is left as it is, which saves most of the work in many columns. Of a component
/// with one row in a thousand that is no more than a hundred-thousandth of its moments.
pub(super) const NEGLIGIBLE: f64 = 1e-8;

/// The components' locations and matrices while they are being learned, in fours.
#[derive(Debug, Clone)]
pub(super) struct Cells {
    dim: usize,
    pub groups: Vec<ComponentGroup>,
}

impl Cells {
    /// From each component's mean and matrix, and the working copies of the matrices if there are any.
    pub fn new<'a>(
        parts: impl Iterator<Item = (&'a [f64], &'a Factor)>,
        matrix_states: &[MatrixState],
    ) -> Self {
        let parts: Vec<_> =
            parts.enumerate().map(|(j, (mean, factor))| (mean, factor, matrix_states.get(j))).collect();
        let dim = parts.first().map_or(0, |(mean, ..)| mean.len());
        Cells {
            dim,
            groups: parts.chunks(4).map(|group| ComponentGroup::new(group.iter().copied())).collect(),
        }
    }

    /// How many components.
    pub fn count(&self) -> usize {
        self.groups.iter().map(ComponentGroup::count).sum()
    }

    pub fn mean(&self, j: usize) -> Vec<f64> {
        self.groups[j / 4].mean(j % 4)
    }

    pub fn factor(&self, j: usize) -> Factor {
        self.groups[j / 4].factor(j % 4)
    }

    pub fn matrix_states(&self) -> Vec<MatrixState> {
        (0..self.count()).map(|j| self.groups[j / 4].matrix_state(j % 4)).collect()
    }
}

/// What differs between learners: the evidence of a row, and what a responsibility does to a component. All of it is
/// asked for four components at a time, the `i`-th four of the cells.
pub(super) trait Rule: std::fmt::Debug + Send + Sync {
    /// Looks at a row, given its quadratic forms.
    fn look_at<A: Arithmetic>(&mut self, i: usize, x: &[Quad], q: A::Vector);

    /// `ln density` of the row that was last looked at, less so much.
    fn log_densities<A: Arithmetic>(&self, i: usize, less: A::Vector) -> A::Vector;

    /// `ln density` of the first component where it is largest.
    fn log_peak(&self) -> f64;

    /// What the density of all components is weighted by, and the sum of that.
    fn weights(&self) -> (&[Quad], f64);

    /// Learns the row, given the responsibilities `r`, and says what it does to the cells. `kept` is `r` too, but 0 for
    /// components that are to stay as they are.
    fn update<A: Arithmetic>(
        &mut self,
        i: usize,
        group: &ComponentGroup,
        r: A::Vector,
        kept: A::Vector,
        health: &mut Health,
    ) -> Changes<A::Vector>;

    /// Once the cells have changed: refreshes what depends on their matrices.
    fn refresh<A: Arithmetic>(&mut self, i: usize, group: &ComponentGroup);

    /// Learns the weights from the row's responsibilities, those of all components, and counts the row. The next row is
    /// looked at afterwards.
    fn update_weights<A: Arithmetic>(&mut self, r: &[Quad], health: &mut Health);

    fn estimate(&self, cells: &Cells) -> GaussianMixture;

    fn state(&self, cells: &Cells) -> LearnerState;
}

/// An online learner: components, and the rule by which rows change them.
#[derive(Debug, Clone)]
pub(super) struct Online<R> {
    cells: Cells,
    rule: R,
    /// Least variance of each column given the columns before it.
    floor: Vec<f64>,
    health: Health,
    /// The current row, padded with zeros.
    row: Vec<Quad>,
    shares: Vec<Quad>,
    /// Rows with a log-density below `low`.
    low_rows: u64,
    low: f64,
}

impl<R: Rule> Online<R> {
    pub fn new(cells: Cells, rule: R, floor: Vec<f64>, health: Health) -> Self {
        let mut online = Online {
            row: vec![Quad::default(); Quad::needed(cells.dim)],
            shares: vec![Quad::default(); cells.groups.len()],
            low_rows: 0,
            low: f64::NEG_INFINITY,
            cells,
            rule,
            floor,
            health,
        };
        begin(&mut online);
        online
    }

    /// Looks at a row.
    #[inline(always)]
    fn look_at<A: Arithmetic>(&mut self, x: &[f64]) {
        pad_row(x, &mut self.row);
        for (i, group) in self.cells.groups.iter_mut().enumerate() {
            let q = group.quadratic_forms::<A>(&self.row);
            self.rule.look_at::<A>(i, &self.row, q);
        }
    }

    /// Learns the row that was last looked at, and looks at the next if there is one. Returns two numbers of which the
    /// first and the logarithm of the second sum to the log-density that the row had beforehand, or `None` if nothing
    /// can be learned from it.
    ///
    /// A step is one long chain of numbers that wait for one another. The next row needs the means and matrices, but
    /// not yet the constants of the densities: looked at before those are refreshed, it gives the machine something to
    /// do meanwhile.
    #[inline(always)]
    fn step<A: Arithmetic>(&mut self, next: Option<&[f64]>) -> Option<(f64, f64)> {
        let evidence = self.learn::<A>();
        // Before the next row is looked at, for how that is done may depend on the number of rows learned.
        if evidence.is_some() {
            self.rule.update_weights::<A>(&self.shares, &mut self.health);
        }
        if let Some(next) = next {
            self.look_at::<A>(next);
        }
        for (i, group) in self.cells.groups.iter().enumerate() {
            self.rule.refresh::<A>(i, group);
        }
        evidence
    }

    /// See [`Online::step`].
    #[inline(always)]
    fn learn<A: Arithmetic>(&mut self) -> Option<(f64, f64)> {
        let Online { cells, rule, floor, health, shares, low_rows, .. } = self;
        let (mut top, mut sum) = weigh::<A, R>(rule, shares);
        if !(LEAST_SUM..1.0 / LEAST_SUM).contains(&sum) {
            (top, sum) = weigh_by_the_largest::<A, R>(rule, shares);
        }
        if !(top.is_finite() && sum > 0.0) {
            // So far out that its squared distance is not a number any more: nothing can be learned from it.
            health.rows_out_of_range += 1;
            *low_rows += 1;
            return None;
        }
        let total = rule.weights().1;
        let all = A::Vector::splat(sum);
        for share in shares.iter_mut() {
            // Divided, not multiplied by an inverse: the share of a lone component is exactly one.
            (A::Vector::load(share) / all).store(share);
        }
        for (i, (group, share)) in cells.groups.iter_mut().zip(&*shares).enumerate() {
            let r = A::Vector::load(share);
            let moved = r.mul_add(A::Vector::load(&group.q), r);
            let kept = moved.if_below(A::Vector::splat(NEGLIGIBLE), A::Vector::splat(0.0), r);
            let changes = rule.update::<A>(i, group, r, kept, health);
            health.pivots_raised += group.learn::<A>(changes, floor) as u64;
        }
        Some((top, sum / total))
    }
}

/// Copies a row; the padding stays. (For a few numbers a call of `memcpy` costs more than the copying.)
#[inline(always)]
fn pad_row(x: &[f64], row: &mut [Quad]) {
    let mut chunks = x.chunks_exact(4);
    let mut row = row.iter_mut();
    for (x, to) in chunks.by_ref().zip(row.by_ref()) {
        to.0 = [x[0], x[1], x[2], x[3]];
    }
    if let Some(to) = row.next() {
        match *chunks.remainder() {
            [a] => to.0 = [a, 0.0, 0.0, 0.0],
            [a, b] => to.0 = [a, b, 0.0, 0.0],
            [a, b, c] => to.0 = [a, b, c, 0.0],
            _ => {}
        }
    }
}

/// Shares that sum to less are computed anew in units of the largest density.
const LEAST_SUM: f64 = 1e-250;

/// `weight · density` of each component, in units of the first one's largest density, which nobody has to wait for.
/// Returns the logarithm of that unit, and the sum of the shares, which may be out of range.
#[inline(always)]
fn weigh<A: Arithmetic, R: Rule>(rule: &R, shares: &mut [Quad]) -> (f64, f64) {
    let unit = rule.log_peak();
    let mut sum = A::Vector::splat(0.0);
    for (i, (value, weight)) in shares.iter_mut().zip(rule.weights().0).enumerate() {
        let share = share(rule.log_densities::<A>(i, A::Vector::splat(unit)), weight);
        share.store(value);
        sum = sum + share;
    }
    (unit, sum.sum())
}

/// [`weigh`] in units of the largest density.
#[cold]
#[inline(never)]
fn weigh_by_the_largest<A: Arithmetic, R: Rule>(rule: &R, shares: &mut [Quad]) -> (f64, f64) {
    let (zero, nothing) = (A::Vector::splat(0.0), A::Vector::splat(f64::NEG_INFINITY));
    let weights = rule.weights().0;
    let mut top = nothing;
    for (i, (value, weight)) in shares.iter_mut().zip(weights).enumerate() {
        let density = rule.log_densities::<A>(i, zero);
        density.store(value);
        top = zero.if_below(A::Vector::load(weight), density, nothing).max(top);
    }
    let top = top.largest();
    let mut sum = zero;
    for (value, weight) in shares.iter_mut().zip(weights) {
        let share = share(A::Vector::load(value) - A::Vector::splat(top), weight);
        share.store(value);
        sum = sum + share;
    }
    (top, sum.sum())
}

/// `weight · exp(log density)`; 0 without weight, whatever the density.
#[inline(always)]
fn share<V: Vector4>(log_density: V, weight: &Quad) -> V {
    let weight = V::load(weight);
    (weight * exp(log_density)).where_positive(weight)
}

#[inline(always)]
fn begin_kernel<A: Arithmetic, R: Rule>(online: &mut Online<R>) {
    for (i, group) in online.cells.groups.iter().enumerate() {
        online.rule.refresh::<A>(i, group);
    }
}

at_run_time! {
    fn begin<R: Rule>(online: &mut Online<R>) = begin_kernel
}

#[inline(always)]
fn learn_rows_kernel<A: Arithmetic, R: Rule>(online: &mut Online<R>, rows: &[f64], score: &mut Prequential) {
    // The logarithms of four rows are taken at once; the scores are added in the order of the rows.
    let (mut tops, mut sums, mut count) = (Quad::default(), Quad([1.0; 4]), 0);
    let mut rows = rows.chunks_exact(online.floor.len());
    let Some(first) = rows.next() else { return };
    online.look_at::<A>(first);
    let mut more = true;
    while more {
        let next = rows.next();
        more = next.is_some();
        if let Some((top, sum)) = online.step::<A>(next) {
            (tops.0[count], sums.0[count]) = (top, sum);
            count += 1;
            if count == 4 {
                online.low_rows += add_scores::<A>(&tops, &sums, count, online.low, score);
                count = 0;
            }
        }
    }
    online.low_rows += add_scores::<A>(&tops, &sums, count, online.low, score);
}

/// Adds the scores of `count` rows, and returns how many of them are below `low`.
#[inline(always)]
fn add_scores<A: Arithmetic>(
    tops: &Quad,
    sums: &Quad,
    count: usize,
    low: f64,
    score: &mut Prequential,
) -> u64 {
    let sums = A::Vector::load(sums).max(A::Vector::splat(f64::MIN_POSITIVE));
    let evidence = (A::Vector::load(tops) + ln(sums)).to_array();
    let mut below = 0;
    for &evidence in &evidence[..count] {
        score.add(Some(evidence));
        below += u64::from(evidence < low);
    }
    below
}

at_run_time! {
    fn learn_rows<R: Rule>(online: &mut Online<R>, rows: &[f64], score: &mut Prequential) = learn_rows_kernel
}

impl<R: Rule> OnlineLearner for Online<R> {
    fn observe_block(&mut self, rows: &[f64], score: &mut Prequential) {
        learn_rows(self, rows, score);
    }

    fn count_below(&mut self, log_density: f64) {
        self.low = log_density;
    }

    fn low_rows(&self) -> u64 {
        self.low_rows
    }

    fn estimate(&self) -> GaussianMixture {
        self.rule.estimate(&self.cells)
    }

    fn state(&self) -> LearnerState {
        self.rule.state(&self.cells)
    }

    fn health(&self) -> Health {
        self.health
    }
}
