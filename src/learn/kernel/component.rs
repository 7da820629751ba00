use serde::{Deserialize, Serialize};

use crate::learn::kernel::matrix_state::MatrixState;
use crate::learn::kernel::precision::Precision;
use crate::linalg::simd::Arithmetic;
use crate::linalg::vector::{Quad, Vector, Vector4};
use crate::linalg::{Conditional, Factor};

/// Mean and matrix of one mixture component while it is being learned, with the scratch space of its updates.
///
/// A row is learned in two steps: its quadratic form, then the update, which reuses what the first step computed.
///
/// The component chooses the form of its matrix:
///
/// - the Cholesky form ([`Factor`]) is exact at any conditioning, and the only one near the floor of the pivots;
/// - the precision form ([`Precision`]) is a few times faster and needs a well-conditioned matrix.
///
/// The choice is made again after a number of updates ([`FormSchedule`]). It depends on the matrix and the schedule alone,
/// so a resumed pass makes the same choices.
///
/// In the precision form [`crate::linalg::ComponentGroup`] holds the numbers that change with every row. Here they are stale until
/// its `flush`.
#[derive(Debug, Clone)]
pub(in crate::learn) struct Component {
    /// `m`, padded with zeros.
    pub mean: Vec<Quad>,
    /// `v = x − m` of the current row, padded with zeros.
    pub deviation: Vec<Quad>,
    /// The matrix in the Cholesky form; empty in the precision form.
    pub factor: Factor,
    whitened: Vec<f64>,
    work: Vec<f64>,
    /// The matrix in the precision form.
    pub precision: Option<Box<Precision>>,
    pub schedule: FormSchedule,
}

/// When to choose the form of the matrix again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::learn) struct FormSchedule {
    /// Updates until the next choice.
    pub updates_left: u32,
    /// In the Cholesky form, updates between the next choice and the one after it. It doubles with each choice that keeps
    /// the form.
    pub patience: u32,
    /// In the precision form, every pivot is at least this many times its floor.
    pub margin: f64,
}

/// Updates of `M` before it is computed from `P` again, because its rounding errors grow with each.
const UPDATES: u32 = 4096;
/// Updates in the Cholesky form before the precision form is tried again for the first time.
const PATIENCE: u32 = 64;
/// The largest variance inflation of a matrix in the precision form. After a million rows `P`, a plain sum, then still has
/// about eight correct digits in its weakest direction.
const MAX_INFLATION: f64 = 1e5;
/// A row that multiplies the variance in its own direction by more than this would cancel the digits of the other rows in
/// `P`.
pub(in crate::learn) const MAX_JUMP: f64 = 1e3;
/// The precision form needs pivots of at least this many times their floor.
const MIN_MARGIN: f64 = 4.0;
/// Products of elements within this range do not overflow.
const RANGE: std::ops::Range<f64> = 1e-100..1e100;

impl Component {
    /// From a mean and a matrix, and the state of the matrix if it was saved.
    pub fn new(mean: &[f64], factor: &Factor, matrix_state: Option<&MatrixState>) -> Self {
        let dim = mean.len();
        let precision = matrix_state.and_then(MatrixState::precision);
        let factor = match (matrix_state, &precision) {
            (_, Some(_)) => Factor::empty(),
            (Some(matrix_state), None) => factor.with_scale(matrix_state.scale()),
            (None, None) => factor.clone(),
        };
        let start = FormSchedule { updates_left: 0, patience: PATIENCE, margin: 0.0 };
        Component {
            mean: Quad::pad(mean, 0.0),
            deviation: vec![Quad::default(); Quad::needed(dim)],
            factor,
            whitened: vec![0.0; dim],
            work: vec![0.0; dim],
            precision,
            schedule: matrix_state.map_or(start, MatrixState::schedule),
        }
    }

    /// Numbers in a row.
    pub fn dim(&self) -> usize {
        self.whitened.len()
    }

    /// What a file needs in addition to [`Component::to_factor`] to resume with the same bits.
    pub fn matrix_state(&self) -> MatrixState {
        MatrixState::new(self.schedule, self.factor.scale(), self.precision.as_deref())
    }

    /// Computes the deviation `v` of a row, padded with zeros, and its quadratic form. `gain` is that of the pending update
    /// of `M`. Returns four numbers whose sum is `vᵀMv` in the precision form and `vᵀΨ⁻¹v` in the Cholesky form.
    #[inline(always)]
    pub fn quadratic_form<A: Arithmetic>(&mut self, x: &[Quad], gain: f64) -> A::Vector {
        for ((v, x), m) in self.deviation.iter_mut().zip(x).zip(&self.mean) {
            (A::Vector::load(x) - A::Vector::load(m)).store(v);
        }
        match &mut self.precision {
            Some(precision) => precision.form::<A>(&self.deviation, gain),
            None => A::Vector::load(&Quad([self.quadratic_form_by_factor(), 0.0, 0.0, 0.0])),
        }
    }

    /// `m ← m + step·v`.
    #[inline(always)]
    pub fn move_mean<A: Arithmetic>(&mut self, step: f64) {
        let step = A::Vector::splat(step);
        for (m, v) in self.mean.iter_mut().zip(&self.deviation) {
            step.mul_add(A::Vector::load(v), A::Vector::load(m)).store(m);
        }
    }

    /// In the precision form, adds `t v vᵀ` to the pending rows, given `root = √t`.
    #[inline(always)]
    pub fn add_row<A: Arithmetic>(&mut self, root: f64) {
        if let Some(precision) = &mut self.precision {
            precision.add::<A>(&self.deviation, root);
        }
    }

    /// The numbers without their padding.
    pub fn unpadded<'a>(&self, quads: &'a [Quad]) -> &'a [f64] {
        &Quad::flat(quads)[..self.whitened.len()]
    }

    #[inline(never)]
    pub fn quadratic_form_by_factor(&mut self) -> f64 {
        let v = &Quad::flat(&self.deviation)[..self.whitened.len()];
        self.factor.quadratic_form(v, &mut self.whitened)
    }

    /// `vᵀΨ⁻¹v` by the Cholesky form, after the precision form gave a negative number or NaN.
    pub fn quadratic_form_without_precision(&mut self) -> f64 {
        self.switch_to_factor();
        self.quadratic_form_by_factor()
    }

    /// `Ψ ← stretch·(Ψ + τ v vᵀ)`, `τ ≥ 0`, in the Cholesky form, then raises pivots to the floor
    /// ([`Factor::raise_pivots`]). Returns how many were raised.
    pub fn update_factor(&mut self, tau: f64, stretch: f64, floor: &[f64]) -> usize {
        if self.precision.is_some() {
            self.quadratic_form_without_precision();
        }
        self.factor.rank_one(tau, &self.whitened, &mut self.work);
        self.finish_update(stretch, floor)
    }

    /// `Ψ ← stretch·Ψ` in the Cholesky form, then raises pivots to the floor. Returns how many were raised.
    fn finish_update(&mut self, stretch: f64, floor: &[f64]) -> usize {
        self.factor.scale_by(stretch);
        let raised = self.factor.raise_pivots(floor);
        match self.schedule.updates_left {
            0 => self.try_switch_to_precision(floor),
            left => self.schedule.updates_left = left - 1,
        }
        raised
    }

    /// The matrix in the Cholesky form, which the component uses from now on.
    pub fn require_factor(&mut self) {
        if self.precision.is_some() {
            self.switch_to_factor();
        }
    }

    /// `Ψ ← stretch·(Ψ + τ v vᵀ + extra·C)` in the Cholesky form, with the completed deviation `v` of a row with gaps and the
    /// conditional matrix `C` of its missing columns. Returns how many pivots were raised.
    pub fn learn_completed(
        &mut self,
        (v, conditional): (&[f64], &Conditional),
        (tau, extra, stretch): (f64, f64, f64),
        floor: &[f64],
    ) -> usize {
        self.factor.quadratic_form(v, &mut self.whitened);
        self.factor.rank_one(tau, &self.whitened, &mut self.work);
        for root in conditional.roots() {
            let column = &mut Quad::flat_mut(&mut self.deviation)[..v.len()];
            column.fill(0.0);
            root.for_each(|(i, value)| column[i] = value);
            self.factor.quadratic_form(column, &mut self.whitened);
            self.factor.rank_one(extra, &self.whitened, &mut self.work);
        }
        self.finish_update(stretch, floor)
    }

    /// Computes `M` from `P` again, or switches to the Cholesky form if the matrix has become unfit. Returns how many pivots
    /// were raised.
    #[cold]
    #[inline(never)]
    pub fn rebuild(&mut self, floor: &[f64]) -> usize {
        let Some(precision) = &mut self.precision else { return 0 };
        if let Some(margin) = rebuild_and_check(precision, floor) {
            self.schedule = FormSchedule { updates_left: UPDATES, patience: PATIENCE, margin };
            return 0;
        }
        self.switch_to_factor();
        self.factor.raise_pivots(floor)
    }

    /// From the precision form to the Cholesky form.
    #[cold]
    #[inline(never)]
    fn switch_to_factor(&mut self) {
        self.factor = self.to_factor();
        self.precision = None;
        self.schedule = FormSchedule { updates_left: PATIENCE, patience: 2 * PATIENCE, margin: 0.0 };
    }

    /// From the Cholesky form to the precision form, if the matrix is fit for it.
    #[cold]
    #[inline(never)]
    fn try_switch_to_precision(&mut self, floor: &[f64]) {
        let near = |(pivot, floor): (f64, &f64)| pivot < MIN_MARGIN * floor;
        let inflated = |(pivot, variance): (f64, f64)| variance > MAX_INFLATION * pivot;
        if !self.factor.pivots().zip(floor).any(near)
            && !self.factor.pivots().zip(self.factor.diagonal()).any(inflated)
        {
            let sums = self.factor.lower_triangle();
            let mut precision =
                Precision::new(floor.len(), self.factor.scale(), |i, j| sums[i * (i + 1) / 2 + j]);
            if let Some(margin) = rebuild_and_check(&mut precision, floor) {
                self.precision = Some(Box::new(precision));
                self.factor = Factor::empty();
                self.schedule = FormSchedule { updates_left: UPDATES, patience: PATIENCE, margin };
                return;
            }
        }
        let patience = self.schedule.patience;
        self.schedule =
            FormSchedule { updates_left: patience, patience: (2 * patience).min(UPDATES), margin: 0.0 };
    }

    /// The matrix with every row, in the Cholesky form.
    pub fn to_factor(&self) -> Factor {
        match &self.precision {
            Some(precision) => {
                let current = precision.with_pending();
                Factor::from_triangle(self.whitened.len(), current.scale, |i, j| current.matrix(i, j))
            }
            None => self.factor.clone(),
        }
    }
}

/// Computes `M` from `P` again. Returns the smallest ratio of a pivot to its floor, or `None` if the matrix is unfit for the
/// precision form.
fn rebuild_and_check(precision: &mut Precision, floor: &[f64]) -> Option<f64> {
    let found = precision.rebuild();
    let margins = found.pivots.iter().zip(floor).map(|(pivot, floor)| precision.scale * pivot / floor);
    let margin = margins.fold(MAX_MARGIN, f64::min);
    let positive = found.pivots.iter().all(|pivot| *pivot > 0.0);
    let fit = positive
        && found.inflation <= MAX_INFLATION
        && RANGE.contains(&found.range.0)
        && RANGE.contains(&found.range.1)
        && margin >= MIN_MARGIN;
    fit.then_some(margin)
}

/// Finite, because JSON has no infinity.
pub(in crate::learn) const MAX_MARGIN: f64 = 1e300;
/// A scale below this, or above its inverse, is folded into `P` by a rebuild.
pub(in crate::learn) const MIN_SCALE: f64 = 1e-9;

/// How much `ln |P|` may grow between rebuilds. Growth in one direction multiplies the errors of `M`; growth that is spread
/// over many directions, as it nearly always is, does less harm.
#[inline(always)]
pub(in crate::learn) fn most_log_growth(dim: usize) -> f64 {
    (13.0 + dim as f64 / 8.0) * std::f64::consts::LN_2
}
