use serde::{Deserialize, Serialize};

use super::Factor;
use super::matrix_state::MatrixState;
use super::precision::Precision;
use super::simd::Arithmetic;
use super::vector::{Quad, Vector, Vector4};

/// Location and matrix of one mixture component while it is being learned, with the scratch that its updates need.
///
/// A learner looks at a row and then, if it likes, adds that same row: the second step reuses what the first computed.
/// Which form the matrix is kept in is nobody else's business:
///
/// - the Cholesky form ([`Factor`]) is right at any conditioning, and the only one near the floor of the pivots;
/// - the precision form is a few times faster, for a matrix that is well enough conditioned for it.
///
/// Which of them it is to be is decided every so many updates, from the matrix alone, so that a saved matrix goes on
/// exactly as it would have.
///
/// In the precision form the numbers that every row changes are kept by [`super::ComponentGroup`], beside those of other
/// components; here they are as they were when it last put them down.
#[derive(Debug, Clone)]
pub(super) struct Component {
    /// `m`, padded with zeros.
    pub mean: Vec<Quad>,
    /// `v = x − m` of the current row, padded with zeros.
    pub deviation: Vec<Quad>,
    /// In the Cholesky form, the matrix. In the precision form it is empty.
    pub factor: Factor,
    whitened: Vec<f64>,
    work: Vec<f64>,
    /// In the precision form, the matrix.
    pub precision: Option<Box<Precision>>,
    pub schedule: FormSchedule,
}

/// When to look again which form is right.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FormSchedule {
    /// Updates until then.
    pub updates_left: u32,
    /// In the Cholesky form, updates to wait after the next look; it doubles with each look that changes nothing.
    pub patience: u32,
    /// In the precision form, no pivot is less than this times its floor.
    pub margin: f64,
}

/// Updates of a working copy before it is rebuilt: its rounding errors grow with them.
const UPDATES: u32 = 4096;
/// Updates in the Cholesky form before the first look at whether the other would do.
const PATIENCE: u32 = 64;
/// The precision form serves a matrix up to this variance inflation. With a million rows the truth, a plain sum, is then
/// still right to about eight digits in its weakest direction.
const MOST_INFLATION: f64 = 1e5;
/// A row that multiplies the variance in its own direction by more than this would drown the others in a sum.
pub(super) const LARGEST_JUMP: f64 = 1e3;
/// At a rebuild the pivots have to be so many times above the floor for the precision form.
const LEAST_MARGIN: f64 = 4.0;
/// Elements within this range cannot overflow when multiplied by one another.
const RANGE: std::ops::Range<f64> = 1e-100..1e100;

impl Component {
    /// Starts from this mean and matrix, and from its working copy if there is one.
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

    /// What has to be saved beside [`Component::to_factor`] to go on to the same bits.
    pub fn matrix_state(&self) -> MatrixState {
        MatrixState::new(self.schedule, self.factor.scale(), self.precision.as_deref())
    }

    /// Looks at a row, padded with zeros; `gain` is that of the update that a precision still has to get. Returns
    /// `vᵀΨ⁻¹v`, times the scale of a precision, as the sum of four.
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

    /// Notes that a precision is to get the row, for `root = √t`.
    #[inline(always)]
    pub fn add_row<A: Arithmetic>(&mut self, root: f64) {
        if let Some(precision) = &mut self.precision {
            precision.add::<A>(&self.deviation, root);
        }
    }

    /// Without the padding.
    pub fn unpadded<'a>(&self, quads: &'a [Quad]) -> &'a [f64] {
        &Quad::flat(quads)[..self.whitened.len()]
    }

    #[inline(never)]
    pub fn quadratic_form_by_factor(&mut self) -> f64 {
        let v = &Quad::flat(&self.deviation)[..self.whitened.len()];
        self.factor.quadratic_form(v, &mut self.whitened)
    }

    /// `vᵀΨ⁻¹v` where the precision form gave something that cannot be: it is not positive any more.
    pub fn quadratic_form_without_precision(&mut self) -> f64 {
        self.switch_to_factor();
        self.quadratic_form_by_factor()
    }

    /// `Ψ ← stretch·(Ψ + τ v vᵀ)`, `τ ≥ 0`, in the Cholesky form; then pivots are raised to the floor
    /// ([`Factor::raise_pivots`]). Returns how many were.
    pub fn update_factor(&mut self, tau: f64, stretch: f64, floor: &[f64]) -> usize {
        if self.precision.is_some() {
            self.quadratic_form_without_precision();
        }
        self.factor.rank_one(tau, &self.whitened, &mut self.work);
        self.factor.scale_by(stretch);
        let raised = self.factor.raise_pivots(floor);
        match self.schedule.updates_left {
            0 => self.try_switch_to_precision(floor),
            left => self.schedule.updates_left = left - 1,
        }
        raised
    }

    /// A fresh working copy, or the Cholesky form if the matrix has become unfit for one.
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
        let near = |(pivot, floor): (f64, &f64)| pivot < LEAST_MARGIN * floor;
        let inflated = |(pivot, variance): (f64, f64)| variance > MOST_INFLATION * pivot;
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

    /// The matrix as it is now.
    pub fn to_factor(&self) -> Factor {
        match &self.precision {
            Some(precision) => {
                let mut current = precision.clone();
                current.apply_pending();
                Factor::from_triangle(self.whitened.len(), current.scale, |i, j| current.matrix(i, j))
            }
            None => self.factor.clone(),
        }
    }
}

/// Rebuilds a working copy. Returns how many times above the floor all pivots are, or `None` if the matrix is not fit
/// for the precision form.
fn rebuild_and_check(precision: &mut Precision, floor: &[f64]) -> Option<f64> {
    let found = precision.rebuild();
    let margins = found.pivots.iter().zip(floor).map(|(pivot, floor)| precision.scale * pivot / floor);
    let margin = margins.fold(LARGEST_MARGIN, f64::min);
    let positive = found.pivots.iter().all(|pivot| *pivot > 0.0);
    let fit = positive
        && found.inflation <= MOST_INFLATION
        && RANGE.contains(&found.range.0)
        && RANGE.contains(&found.range.1)
        && margin >= LEAST_MARGIN;
    fit.then_some(margin)
}

/// A finite number, so that it can be saved.
pub(super) const LARGEST_MARGIN: f64 = 1e300;
/// How far the scale may wander from one before it is folded away in a rebuild.
pub(super) const LEAST_SCALE: f64 = 1e-9;

/// How much the logarithm of the determinant may grow on one working copy, whose errors the growth multiplies where all
/// of it is in one direction. Spread over many directions, as it nearly always is, it does less harm.
#[inline(always)]
pub(super) fn most_log_growth(dim: usize) -> f64 {
    (13.0 + dim as f64 / 8.0) * std::f64::consts::LN_2
}
