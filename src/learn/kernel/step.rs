//! The step that all online learners have in common: evidence, responsibilities, and a scaled rank-one update of each
//! component.
//!
//! The scalars of components are stored in groups of four, so that the scalar work of a row is done for four components at
//! a time. Lanes beyond the last component hold harmless numbers and have no weight.

mod gaps;

pub(in crate::learn) use gaps::GappedRow;
use gaps::{Run, runs};

use crate::dist::GaussianMixture;
use crate::learn::kernel::{Changes, CompletedRows, ComponentGroup, MatrixState};
use crate::learn::rules::forgetting::Forgetting;
use crate::learn::{Health, LearnerState, OnlineLearner, Rows, ScoreSink, Surprise};
use crate::linalg::Factor;
use crate::linalg::simd::{Arithmetic, at_run_time};
use crate::linalg::special::{exp, ln};
use crate::linalg::vector::{Quad, Vector, Vector4};

/// A row at squared distance `q` with responsibility `r` changes the moments of a component by about `r(1 + q)` rows. Below
/// this number the component does not change, which saves most of the work with many columns. For a component with one row
/// in a thousand, the error is at most 1e-5 of its moments.
pub(in crate::learn) const NEGLIGIBLE: f64 = 1e-8;

/// The means and matrices of the components while they are learned, in groups of four.
#[derive(Debug, Clone)]
pub(in crate::learn) struct ComponentGroups {
    dim: usize,
    pub groups: Vec<ComponentGroup>,
}

impl ComponentGroups {
    /// From each component's mean and matrix, and the matrix states if there are any.
    pub fn new<'a>(
        parts: impl Iterator<Item = (&'a [f64], &'a Factor)>,
        matrix_states: &[MatrixState],
    ) -> Self {
        let parts: Vec<_> =
            parts.enumerate().map(|(j, (mean, factor))| (mean, factor, matrix_states.get(j))).collect();
        let dim = parts.first().map_or(0, |(mean, ..)| mean.len());
        ComponentGroups {
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

/// What differs between learners: the evidence of a row, and the update of a component. All methods handle four components
/// at a time, the `i`-th group.
pub(in crate::learn) trait Rule: std::fmt::Debug + Send + Sync {
    /// Prepares for a row, given its quadratic forms.
    fn prepare<A: Arithmetic>(&mut self, i: usize, x: &[Quad], q: A::Vector);

    /// `ln density` of the current row, minus `less`.
    fn log_densities<A: Arithmetic>(&self, i: usize, less: A::Vector) -> A::Vector;

    /// The largest `ln density` of the first component.
    fn log_peak(&self) -> f64;

    /// The weights of the components, and their sum.
    fn weights(&self) -> (&[Quad], f64);

    /// Sets the weight of the current row. It is 1 for the rows of a block without weights.
    fn set_weight(&mut self, weight: f64);

    /// Learns the row with the responsibilities `r`, and returns the changes of means and matrices. `kept` equals `r`, but is 0
    /// for components that do not change.
    fn update<A: Arithmetic, const WEIGHTED: bool>(
        &mut self,
        i: usize,
        group: &ComponentGroup,
        r: A::Vector,
        kept: A::Vector,
        health: &mut Health,
    ) -> Changes<A::Vector>;

    /// Refreshes the values that depend on the matrices after they have changed.
    fn refresh<A: Arithmetic>(&mut self, i: usize, group: &ComponentGroup);

    /// `ln density` of the observed columns of a row with gaps, given their quadratic forms and `ln |matrix|`. The row becomes
    /// current.
    fn observed_log_densities<A: Arithmetic>(
        &mut self,
        i: usize,
        row: &GappedRow,
        q: &Quad,
        log_det: &Quad,
    ) -> A::Vector;

    /// [`Rule::update`] for the completed row with gaps. Also returns the factor on the conditional matrix of the missing
    /// columns.
    fn update_completed<A: Arithmetic>(
        &mut self,
        i: usize,
        group: &ComponentGroup,
        r: A::Vector,
        kept: A::Vector,
        health: &mut Health,
    ) -> (Changes<Quad>, Quad);

    /// Learns the weights from the responsibilities of all components, and counts the row. The next row becomes current
    /// afterwards.
    fn update_weights<A: Arithmetic, const WEIGHTED: bool>(&mut self, r: &[Quad], health: &mut Health);

    /// From now on, rows lose weight at this rate.
    fn set_forgetting(&mut self, forgetting: Option<Forgetting>);

    /// Whether [`Rule::forget`] has to be called after each row.
    fn forgets(&self) -> bool;

    /// Reduces the weight of all rows learned so far.
    fn forget<A: Arithmetic>(&mut self, i: usize, group: &mut ComponentGroup);

    fn estimate(&self, grouped: &ComponentGroups) -> GaussianMixture;

    fn state(&self, grouped: &ComponentGroups) -> LearnerState;
}

/// An online learner: components, and the rule that updates them.
#[derive(Debug, Clone)]
pub(in crate::learn) struct Online<R> {
    grouped: ComponentGroups,
    rule: R,
    /// Least variance of each column given the columns before it.
    floor: Vec<f64>,
    health: Health,
    /// The current row, padded with zeros.
    row: Vec<Quad>,
    responsibilities: Vec<Quad>,
    /// Rows with a log-density below `low`.
    low_rows: u64,
    low: f64,
    surprise: Surprise,
    /// For each component, the rows that most probably belong to it.
    assigned: Vec<Quad>,
    /// The largest squared distance that counts in `surprise`.
    farthest: f64,
    /// For rows with gaps: the missing columns, and the row as each group completes it.
    missing: Vec<usize>,
    completed: Vec<CompletedRows>,
}

impl<R: Rule> Online<R> {
    pub fn new(grouped: ComponentGroups, rule: R, floor: Vec<f64>, health: Health) -> Self {
        let mut online = Online {
            row: vec![Quad::default(); Quad::needed(grouped.dim)],
            responsibilities: vec![Quad::default(); grouped.groups.len()],
            assigned: vec![Quad::default(); grouped.groups.len()],
            low_rows: 0,
            low: f64::NEG_INFINITY,
            surprise: Surprise::default(),
            farthest: Surprise::farthest(grouped.dim),
            missing: Vec::new(),
            completed: Vec::new(),
            grouped,
            rule,
            floor,
            health,
        };
        begin(&mut online);
        online
    }

    /// Makes a row current.
    #[inline(always)]
    fn prepare<A: Arithmetic>(&mut self, x: &[f64]) {
        pad_row(x, &mut self.row);
        for (i, group) in self.grouped.groups.iter_mut().enumerate() {
            let q = group.quadratic_forms::<A>(&self.row);
            self.rule.prepare::<A>(i, &self.row, q);
        }
    }

    /// Learns the current row, and makes the next row current if there is one. Returns two numbers: the row's log-density
    /// before it is learned is the first plus the logarithm of the second. Returns `None` if the row is skipped.
    ///
    /// A step is a long chain of dependent operations. The next row needs the new means and matrices, but not the new
    /// constants of the densities. It becomes current before those are refreshed, so that the processor can do both in
    /// parallel.
    #[inline(always)]
    fn step<A: Arithmetic, const WEIGHTED: bool>(
        &mut self,
        weight: f64,
        next: Option<&[f64]>,
    ) -> Option<(f64, f64)> {
        let evidence = self.learn::<A, WEIGHTED>(weight);
        // Before the next row becomes current, since that may depend on the number of learned rows.
        if evidence.is_some() {
            self.rule.update_weights::<A, WEIGHTED>(&self.responsibilities, &mut self.health);
            if self.rule.forgets() {
                for (i, group) in self.grouped.groups.iter_mut().enumerate() {
                    self.rule.forget::<A>(i, group);
                }
            }
        }
        if let Some(next) = next {
            self.prepare::<A>(next);
        }
        for (i, group) in self.grouped.groups.iter().enumerate() {
            self.rule.refresh::<A>(i, group);
        }
        evidence
    }

    /// See [`Online::step`].
    #[inline(always)]
    fn learn<A: Arithmetic, const WEIGHTED: bool>(&mut self, weight: f64) -> Option<(f64, f64)> {
        let Online {
            grouped,
            rule,
            floor,
            health,
            responsibilities,
            low_rows,
            surprise,
            assigned,
            farthest,
            ..
        } = self;
        let (mut top, mut sum) = weigh_densities::<A, R>(rule, responsibilities);
        if !(MIN_SUM..1.0 / MIN_SUM).contains(&sum) {
            (top, sum) = weigh_densities_by_largest::<A, R>(rule, responsibilities);
        }
        if !(top.is_finite() && sum > 0.0) {
            // The squared distance overflows, so nothing can be learned from the row.
            health.rows_out_of_range += 1;
            *low_rows += 1;
            return None;
        }
        if WEIGHTED {
            rule.set_weight(weight);
        }
        let total = rule.weights().1;
        let all = A::Vector::splat(sum);
        let mut distance = A::Vector::splat(0.0);
        let (zero, half, one) = (A::Vector::splat(0.0), A::Vector::splat(0.5), A::Vector::splat(1.0));
        for (i, ((group, own), assigned)) in
            grouped.groups.iter_mut().zip(responsibilities).zip(assigned).enumerate()
        {
            // Divided, not multiplied by an inverse: the responsibility of a single component is exactly one.
            let r = A::Vector::load(own) / all;
            r.store(own);
            (A::Vector::load(assigned) + r.if_below(half, zero, one)).store(assigned);
            let moved = r.mul_add(A::Vector::load(&group.q), r);
            distance = distance + moved;
            let change = if WEIGHTED { moved * A::Vector::splat(weight) } else { moved };
            let kept = change.if_below(A::Vector::splat(NEGLIGIBLE), zero, r);
            let changes = rule.update::<A, WEIGHTED>(i, group, r, kept, health);
            health.pivots_raised += group.learn::<A>(changes, floor) as u64;
        }
        // The responsibilities sum to one.
        surprise.add(distance.sum() - 1.0, *farthest);
        Some((top, sum / total))
    }
}

/// Copies a row and keeps the padding. For few numbers a call of `memcpy` is slower.
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

/// Densities with a smaller sum are computed again, relative to the largest one.
const MIN_SUM: f64 = 1e-250;

/// `weight · density` of each component, in units of the largest density of the first component, which does not depend on
/// the row. Returns the logarithm of that unit, and the sum, which may be out of range.
#[inline(always)]
fn weigh_densities<A: Arithmetic, R: Rule>(rule: &R, responsibilities: &mut [Quad]) -> (f64, f64) {
    let unit = rule.log_peak();
    let mut sum = A::Vector::splat(0.0);
    for (i, (value, weight)) in responsibilities.iter_mut().zip(rule.weights().0).enumerate() {
        let weighted = weighted_density(rule.log_densities::<A>(i, A::Vector::splat(unit)), weight);
        weighted.store(value);
        sum = sum + weighted;
    }
    (unit, sum.sum())
}

/// [`weigh_densities`] in units of the largest density.
#[cold]
#[inline(never)]
fn weigh_densities_by_largest<A: Arithmetic, R: Rule>(rule: &R, responsibilities: &mut [Quad]) -> (f64, f64) {
    let (zero, nothing) = (A::Vector::splat(0.0), A::Vector::splat(f64::NEG_INFINITY));
    let weights = rule.weights().0;
    let mut top = nothing;
    for (i, (value, weight)) in responsibilities.iter_mut().zip(weights).enumerate() {
        let density = rule.log_densities::<A>(i, zero);
        density.store(value);
        top = zero.if_below(A::Vector::load(weight), density, nothing).max(top);
    }
    let top = top.largest();
    let mut sum = zero;
    for (value, weight) in responsibilities.iter_mut().zip(weights) {
        let weighted = weighted_density(A::Vector::load(value) - A::Vector::splat(top), weight);
        weighted.store(value);
        sum = sum + weighted;
    }
    (top, sum.sum())
}

/// `weight · exp(log density)`; 0 without weight, for any density.
#[inline(always)]
fn weighted_density<V: Vector4>(log_density: V, weight: &Quad) -> V {
    let weight = V::load(weight);
    (weight * exp(log_density)).where_positive(weight)
}

#[inline(always)]
fn begin_kernel<A: Arithmetic, R: Rule>(online: &mut Online<R>) {
    for (i, group) in online.grouped.groups.iter().enumerate() {
        online.rule.refresh::<A>(i, group);
    }
}

at_run_time! {
    fn begin<R: Rule>(online: &mut Online<R>) = begin_kernel
}

/// Up to four scores that are not added yet. Their logarithms are computed at once.
struct OpenScores {
    tops: Quad,
    sums: Quad,
    weights: [f64; 4],
    count: usize,
}

#[inline(always)]
fn learn_all<A: Arithmetic, R: Rule, const WEIGHTED: bool>(
    online: &mut Online<R>,
    rows: Rows,
    score: &mut dyn ScoreSink,
) {
    let mut open = OpenScores { tops: Quad::default(), sums: Quad([1.0; 4]), weights: [1.0; 4], count: 0 };
    let mut weights = rows.weights().unwrap_or_default().iter();
    let mut rows = rows.values().chunks_exact(online.floor.len());
    let Some(first) = rows.next() else { return };
    online.prepare::<A>(first);
    let mut more = true;
    while more {
        let next = rows.next();
        more = next.is_some();
        let weight = if WEIGHTED { weights.next().copied().unwrap_or(1.0) } else { 1.0 };
        if let Some((top, sum)) = online.step::<A, WEIGHTED>(weight, next) {
            let count = open.count;
            (open.tops.0[count], open.sums.0[count]) = (top, sum);
            if WEIGHTED {
                open.weights[count] = weight;
            }
            open.count += 1;
            if open.count == 4 {
                online.low_rows += add_scores::<A, WEIGHTED>(&open, online.low, score);
                open.count = 0;
            }
        }
    }
    online.low_rows += add_scores::<A, WEIGHTED>(&open, online.low, score);
    if WEIGHTED {
        online.rule.set_weight(1.0);
    }
}

/// Adds the scores of rows, in their order, and returns how many of them are below `low`.
#[inline(always)]
fn add_scores<A: Arithmetic, const WEIGHTED: bool>(
    open: &OpenScores,
    low: f64,
    score: &mut dyn ScoreSink,
) -> u64 {
    let sums = A::Vector::load(&open.sums).max(A::Vector::splat(f64::MIN_POSITIVE));
    let evidence = (A::Vector::load(&open.tops) + ln(sums)).to_array();
    let mut below = 0;
    for &evidence in &evidence[..open.count] {
        below += u64::from(evidence < low);
    }
    score.add(&evidence[..open.count], WEIGHTED.then_some(&open.weights[..open.count]));
    below
}

#[inline(always)]
fn learn_rows_kernel<A: Arithmetic, R: Rule>(online: &mut Online<R>, rows: Rows, score: &mut dyn ScoreSink) {
    learn_all::<A, R, false>(online, rows, score);
}

#[inline(always)]
fn learn_weighted_rows_kernel<A: Arithmetic, R: Rule>(
    online: &mut Online<R>,
    rows: Rows,
    score: &mut dyn ScoreSink,
) {
    learn_all::<A, R, true>(online, rows, score);
}

at_run_time! {
    fn learn_rows<R: Rule>(online: &mut Online<R>, rows: Rows, score: &mut dyn ScoreSink) = learn_rows_kernel
}

at_run_time! {
    fn learn_weighted_rows<R: Rule>(online: &mut Online<R>, rows: Rows, score: &mut dyn ScoreSink) = learn_weighted_rows_kernel
}

impl<R: Rule> OnlineLearner for Online<R> {
    fn observe_block(&mut self, rows: Rows, score: &mut dyn ScoreSink) {
        for run in runs(rows) {
            match run {
                Run::Complete(rows) if rows.weights().is_some() => learn_weighted_rows(self, rows, score),
                Run::Complete(rows) => learn_rows(self, rows, score),
                Run::Gapped(row, weight) => {
                    let log_density = self.learn_gapped(row, weight);
                    let scored = log_density.as_slice();
                    score.add_gapped(scored, (weight != 1.0).then_some(&[weight][..scored.len()]));
                }
            }
        }
    }

    fn count_below(&mut self, log_density: f64) {
        self.low = log_density;
    }

    fn low_rows(&self) -> u64 {
        self.low_rows
    }

    fn surprise(&self) -> Option<Surprise> {
        Some(self.surprise)
    }

    fn assigned_rows(&self) -> &[f64] {
        Quad::flat(&self.assigned)
    }

    fn set_half_life(&mut self, rows: Option<u64>) {
        self.rule.set_forgetting(rows.map(Forgetting::new));
        begin(self);
    }

    fn estimate(&self) -> GaussianMixture {
        self.rule.estimate(&self.grouped)
    }

    fn state(&self) -> LearnerState {
        self.rule.state(&self.grouped)
    }

    fn health(&self) -> Health {
        self.health
    }
}
