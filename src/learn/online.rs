//! The one step that all online learners share: evidence, responsibilities, one scaled rank-one update each.
//!
//! What there is one of for each component stands side by side in fours, so that the scalar work of a row is done for
//! four components at a time. Lanes beyond the last component hold numbers that do no harm, and weigh nothing.

use super::{Health, LearnerState, OnlineLearner, Prequential};
use crate::dist::GaussianMixture;
use crate::linalg::lanes::{Four, Lanes, Quad};
use crate::linalg::simd::{Arithmetic, at_run_time};
use crate::linalg::{ComponentMatrix, Factor, Update, WorkingCopy};
use crate::special::{exp, ln};

/// A responsibility `r` of a component that a row is at squared distance `q` from moves its moments by about `r(1 + q)`
/// rows. Below this many it is taken as 0 and the component is left as it is, which saves most of the work in many
/// columns. Over a billion rows that is a tenth of a row for each component at most.
pub(super) const NEGLIGIBLE: f64 = 1e-10;

/// The components' locations and matrices while they are being learned, and their view of the current row.
#[derive(Debug, Clone)]
pub(super) struct Cells {
    dim: usize,
    matrices: Vec<ComponentMatrix>,
    /// `m` of each component, padded with zeros.
    means: Vec<Quad>,
    /// `v = x − m` of the current row, padded with zeros.
    deviations: Vec<Quad>,
    /// `vᵀ matrix⁻¹ v` of the current row.
    pub q: Vec<Quad>,
    /// The same, each four times: a machine waits where it reads four numbers at once that were written one by one.
    spread: Vec<Quad>,
    /// `ln |matrix| = a + ln g + d·ln c`.
    pub log_det: LogDeterminants,
}

/// See [`Cells::log_det`].
#[derive(Debug, Clone)]
pub(super) struct LogDeterminants {
    pub a: Vec<Quad>,
    pub g: Vec<Quad>,
    pub c: Vec<Quad>,
}

/// What a row does to each component: `m ← m + step·v`, `matrix ← stretch·(matrix + τ v vᵀ)`, then pivots held at
/// `floor_times` × the floor.
#[derive(Debug, Clone)]
pub(super) struct Changes {
    pub step: Vec<Quad>,
    pub tau: Vec<Quad>,
    pub stretch: Vec<Quad>,
    pub floor_times: Vec<Quad>,
}

impl Cells {
    /// From each component's mean and matrix, and the working copies of the matrices if there are any.
    pub fn new<'a>(parts: impl Iterator<Item = (&'a [f64], &'a Factor)>, working: &[WorkingCopy]) -> Self {
        let (mut means, mut matrices, mut dim) = (Vec::new(), Vec::new(), 0);
        for (j, (mean, factor)) in parts.enumerate() {
            dim = mean.len();
            means.extend(Quad::pad(mean, 0.0));
            matrices.push(match working.get(j) {
                Some(working) => ComponentMatrix::resume(factor.clone(), working),
                None => ComponentMatrix::new(factor.clone()),
            });
        }
        let lanes = |value: f64| vec![Quad([value; 4]); Quad::needed(matrices.len())];
        let log_det = LogDeterminants { a: lanes(0.0), g: lanes(1.0), c: lanes(1.0) };
        let mut cells = Cells {
            dim,
            deviations: vec![Quad::default(); means.len()],
            means,
            q: lanes(0.0),
            spread: vec![Quad::default(); 4 * Quad::needed(matrices.len())],
            log_det,
            matrices,
        };
        (0..cells.count()).for_each(|j| cells.note_log_det(j));
        cells
    }

    /// How many components.
    pub fn count(&self) -> usize {
        self.matrices.len()
    }

    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Quads in a row.
    #[inline(always)]
    fn width(&self) -> usize {
        Quad::needed(self.dim)
    }

    pub fn mean(&self, j: usize) -> &[f64] {
        &Quad::flat(&self.means[j * self.width()..])[..self.dim]
    }

    pub fn deviation(&self, j: usize) -> &[f64] {
        &Quad::flat(&self.deviations[j * self.width()..])[..self.dim]
    }

    pub fn factor(&self, j: usize) -> Factor {
        self.matrices[j].factor()
    }

    pub fn working_copies(&self) -> Vec<WorkingCopy> {
        self.matrices.iter().map(ComponentMatrix::working_copy).collect()
    }

    #[inline(always)]
    fn note_log_det(&mut self, j: usize) {
        let (a, g, c) = self.matrices[j].log_det_parts();
        Quad::flat_mut(&mut self.log_det.a)[j] = a;
        Quad::flat_mut(&mut self.log_det.g)[j] = g;
        Quad::flat_mut(&mut self.log_det.c)[j] = c;
    }

    /// Deviations and quadratic forms of a row, padded with zeros.
    #[inline(always)]
    pub fn look_at<A: Arithmetic>(&mut self, x: &[Quad]) {
        let width = x.len();
        let views = self.means.chunks_exact(width).zip(self.deviations.chunks_exact_mut(width));
        for (((mean, deviation), matrix), q) in views.zip(&mut self.matrices).zip(&mut self.spread) {
            for ((v, x), m) in deviation.iter_mut().zip(x).zip(mean) {
                (A::Lanes::load(x) - A::Lanes::load(m)).store(v);
            }
            A::Lanes::splat(matrix.quadratic_form::<A>(deviation)).store(q);
        }
        for (q, four) in self.q.iter_mut().zip(self.spread.chunks_exact(4)) {
            let [a, b, c, d] = [&four[0], &four[1], &four[2], &four[3]];
            let four = [A::Lanes::load(a), A::Lanes::load(b), A::Lanes::load(c), A::Lanes::load(d)];
            A::Lanes::diagonal(four).store(q);
        }
    }

    /// Changes component `j`. Returns how many pivots were raised.
    #[inline(always)]
    fn apply<A: Arithmetic>(&mut self, j: usize, changes: &Changes, floor: &[f64]) -> usize {
        let width = self.width();
        let deviation = &self.deviations[j * width..(j + 1) * width];
        let step = A::Lanes::splat(Quad::flat(&changes.step)[j]);
        for (m, v) in self.means[j * width..(j + 1) * width].iter_mut().zip(deviation) {
            step.mul_add(A::Lanes::load(v), A::Lanes::load(m)).store(m);
        }
        let update = Update {
            tau: Quad::flat(&changes.tau)[j],
            stretch: Quad::flat(&changes.stretch)[j],
            times: Quad::flat(&changes.floor_times)[j],
        };
        let raised = self.matrices[j].update::<A>(deviation, Quad::flat(&self.q)[j], update, floor);
        self.note_log_det(j);
        raised
    }
}

/// What differs between learners: the evidence of a row, and what a responsibility does to a component.
pub(super) trait Rule: Send {
    /// `ln density_j(x)` of each component; the cells have looked at `x`.
    fn log_densities<A: Arithmetic>(&mut self, x: &[Quad], cells: &Cells, out: &mut [Quad]);

    /// What each component's density is weighted by, and the sum of that.
    fn weights(&self) -> (&[Quad], f64);

    /// Learns the row for each component, given their responsibilities; components whose responsibility is 0 are to stay
    /// as they are. Responsibilities may be set to 0, which leaves a cell as it is.
    fn update<A: Arithmetic>(
        &mut self,
        r: &mut [Quad],
        cells: &Cells,
        changes: &mut Changes,
        health: &mut Health,
    );

    /// Once the cells have changed: refreshes what depends on their matrices.
    fn refresh<A: Arithmetic>(&mut self, cells: &Cells);

    /// Learns the weights from the row's responsibilities.
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
    changed: Vec<Quad>,
    changes: Changes,
}

impl<R: Rule> Online<R> {
    pub fn new(cells: Cells, rule: R, floor: Vec<f64>, health: Health) -> Self {
        let lanes = || vec![Quad::default(); cells.q.len()];
        let changes = Changes { step: lanes(), tau: lanes(), stretch: lanes(), floor_times: lanes() };
        let mut online = Online {
            row: vec![Quad::default(); cells.width()],
            shares: lanes(),
            changed: lanes(),
            cells,
            rule,
            floor,
            health,
            changes,
        };
        begin(&mut online);
        online
    }

    /// Learns one row. Returns two numbers of which the first and the logarithm of the second sum to the log-density
    /// that it had beforehand, or `None` if nothing can be learned from it.
    #[inline(always)]
    fn step<A: Arithmetic>(&mut self, x: &[f64]) -> Option<(f64, f64)> {
        pad_row(x, &mut self.row);
        self.cells.look_at::<A>(&self.row);
        self.rule.log_densities::<A>(&self.row, &self.cells, &mut self.shares);
        let (weights, total) = self.rule.weights();
        let Some((top, sum)) = share_out::<A>(&mut self.shares, weights) else {
            // So far out that its squared distance is not a number any more: nothing can be learned from it.
            self.health.rows_out_of_range += 1;
            return None;
        };
        let evidence = (top, sum / total);
        for ((changed, share), q) in self.changed.iter_mut().zip(&self.shares).zip(&self.cells.q) {
            let share = A::Lanes::load(share);
            let moved = share.mul_add(A::Lanes::load(q), share);
            moved.if_below(A::Lanes::splat(NEGLIGIBLE), A::Lanes::splat(0.0), share).store(changed);
        }
        self.rule.update::<A>(&mut self.changed, &self.cells, &mut self.changes, &mut self.health);
        for j in 0..self.cells.count() {
            if Quad::flat(&self.changed)[j] > 0.0 {
                let raised = self.cells.apply::<A>(j, &self.changes, &self.floor);
                self.health.pivots_raised += raised as u64;
            }
        }
        self.rule.refresh::<A>(&self.cells);
        self.rule.update_weights::<A>(&self.shares, &mut self.health);
        Some(evidence)
    }
}

/// Copies a row; the padding stays. (For a few numbers a call of `memcpy` costs more than the copying.)
#[inline(always)]
fn pad_row(x: &[f64], row: &mut [Quad]) {
    let mut fours = x.chunks_exact(4);
    let mut row = row.iter_mut();
    for (x, to) in fours.by_ref().zip(row.by_ref()) {
        to.0 = [x[0], x[1], x[2], x[3]];
    }
    if let Some(to) = row.next() {
        match *fours.remainder() {
            [a] => to.0[0] = a,
            [a, b] => (to.0[0], to.0[1]) = (a, b),
            [a, b, c] => (to.0[0], to.0[1], to.0[2]) = (a, b, c),
            _ => {}
        }
    }
}

/// Shares a row out: log-densities in, responsibilities `∝ weight · density` out. Returns the largest log-density and
/// the sum of `weight · density` in units of the largest density, or `None` if nothing is finite.
#[inline(always)]
fn share_out<A: Arithmetic>(shares: &mut [Quad], weights: &[Quad]) -> Option<(f64, f64)> {
    let zero = A::Lanes::splat(0.0);
    let nothing = A::Lanes::splat(f64::NEG_INFINITY);
    let mut top = nothing;
    for (value, weight) in shares.iter().zip(weights) {
        let value = zero.if_below(A::Lanes::load(weight), A::Lanes::load(value), nothing);
        top = value.max(top);
    }
    let top = top.largest();
    let mut sum = zero;
    for (value, weight) in shares.iter_mut().zip(weights) {
        let weight = A::Lanes::load(weight);
        let share = weight * exp(A::Lanes::load(value) - A::Lanes::splat(top));
        let share = zero.if_below(weight, share, zero);
        share.store(value);
        sum = sum + share;
    }
    let sum = sum.sum();
    if !(top.is_finite() && sum > 0.0) {
        return None;
    }
    // Divided, not multiplied by an inverse: the share of a lone component is exactly one.
    for value in shares.iter_mut() {
        (A::Lanes::load(value) / A::Lanes::splat(sum)).store(value);
    }
    Some((top, sum))
}

#[inline(always)]
fn begin_kernel<A: Arithmetic, R: Rule>(online: &mut Online<R>) {
    online.rule.refresh::<A>(&online.cells);
}

at_run_time! {
    fn begin<R: Rule>(online: &mut Online<R>) = begin_kernel
}

#[inline(always)]
fn learn_rows_kernel<A: Arithmetic, R: Rule>(online: &mut Online<R>, rows: &[f64], score: &mut Prequential) {
    // The logarithms of four rows are taken at once; the scores are added in the order of the rows.
    let (mut tops, mut sums, mut count) = (Quad::default(), Quad([1.0; 4]), 0);
    for row in rows.chunks_exact(online.floor.len()) {
        if let Some((top, sum)) = online.step::<A>(row) {
            (tops.0[count], sums.0[count]) = (top, sum);
            count += 1;
            if count == 4 {
                add_scores::<A>(&tops, &sums, count, score);
                count = 0;
            }
        }
    }
    add_scores::<A>(&tops, &sums, count, score);
}

#[inline(always)]
fn add_scores<A: Arithmetic>(tops: &Quad, sums: &Quad, count: usize, score: &mut Prequential) {
    let sums = A::Lanes::load(sums).max(A::Lanes::splat(f64::MIN_POSITIVE));
    let evidence = (A::Lanes::load(tops) + ln(sums)).to_array();
    for &evidence in &evidence[..count] {
        score.add(Some(evidence));
    }
}

at_run_time! {
    fn learn_rows<R: Rule>(online: &mut Online<R>, rows: &[f64], score: &mut Prequential) = learn_rows_kernel
}

impl<R: Rule> OnlineLearner for Online<R> {
    fn observe(&mut self, x: &[f64]) -> Option<f64> {
        let mut score = Prequential::default();
        learn_rows(self, x, &mut score);
        score.mean()
    }

    fn observe_block(&mut self, rows: &[f64], score: &mut Prequential) {
        learn_rows(self, rows, score);
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
