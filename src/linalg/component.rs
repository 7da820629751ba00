use serde::{Deserialize, Serialize};

use super::Factor;
use super::lanes::Quad;
use super::precision::Precision;
use super::simd::Arithmetic;
use super::working::WorkingCopy;

/// The matrix of one mixture component while it is being learned, with the scratch its updates need.
///
/// A learner asks for the quadratic form of a deviation and then, if it likes, adds that same deviation:
/// the second step reuses what the first computed. Which form the matrix is kept in is nobody else's business:
///
/// - the Cholesky form ([`Factor`]) is right at any conditioning, and the only one near the floor of the pivots;
/// - the precision form is a few times faster, for a matrix that is well enough conditioned for it.
///
/// Which of them it is to be is decided every so many updates, from the matrix alone, so that a saved matrix goes on
/// exactly as it would have.
#[derive(Debug, Clone)]
pub struct ComponentMatrix {
    /// In the Cholesky form, the matrix. In the precision form it is out of date.
    factor: Factor,
    whitened: Vec<f64>,
    work: Vec<f64>,
    /// In the precision form, the matrix.
    precision: Option<Box<Precision>>,
    course: Course,
}

/// When to look again which form is right.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Course {
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
const LARGEST_JUMP: f64 = 1e3;
/// At a rebuild the pivots have to be so many times above the floor for the precision form.
const LEAST_MARGIN: f64 = 4.0;
/// Elements within this range cannot overflow when multiplied by one another.
const RANGE: std::ops::Range<f64> = 1e-100..1e100;

impl ComponentMatrix {
    /// Starts from this matrix.
    pub fn new(factor: Factor) -> Self {
        let dim = factor.dim();
        let course = Course { updates_left: 0, patience: PATIENCE, margin: 0.0 };
        ComponentMatrix { factor, whitened: vec![0.0; dim], work: vec![0.0; dim], precision: None, course }
    }

    /// Goes on from a saved matrix and its working copy.
    pub fn resume(factor: Factor, working: &WorkingCopy) -> Self {
        let course = working.course();
        ComponentMatrix { precision: working.precision(), course, ..ComponentMatrix::new(factor) }
    }

    /// What has to be saved beside [`ComponentMatrix::factor`] to go on to the same bits.
    pub fn working_copy(&self) -> WorkingCopy {
        WorkingCopy::new(self.course, self.precision.as_deref())
    }

    /// `vᵀΨ⁻¹v`, for `v` padded with zeros.
    #[inline(always)]
    pub(crate) fn quadratic_form<A: Arithmetic>(&mut self, v: &[Quad]) -> f64 {
        if let Some(precision) = &mut self.precision {
            let q = precision.quadratic_form::<A>(v);
            if q >= 0.0 {
                return q;
            }
            // The working copy is not positive any more.
            self.leave_precision();
        }
        self.quadratic_form_by_factor(v)
    }

    #[inline(never)]
    fn quadratic_form_by_factor(&mut self, v: &[Quad]) -> f64 {
        self.factor.quadratic_form(&Quad::flat(v)[..self.whitened.len()], &mut self.whitened)
    }

    /// `Ψ ← stretch·(Ψ + τ v vᵀ)`, `τ ≥ 0`, with the `v` of the last quadratic form, which was `q`; then pivots are
    /// raised to `times · floor` ([`Factor::raise_pivots`]). Returns how many were.
    #[inline(always)]
    pub(crate) fn update<A: Arithmetic>(
        &mut self,
        v: &[Quad],
        q: f64,
        update: Update,
        floor: &[f64],
    ) -> usize {
        let Update { tau, stretch, times } = update;
        match &mut self.precision {
            Some(precision) if tau * q <= LARGEST_JUMP => {
                precision.update::<A>(v, tau, stretch);
                let course = &mut self.course;
                course.margin *= stretch;
                course.updates_left -= 1;
                let due = course.updates_left == 0
                    || course.margin < times
                    || precision.growth > most_growth(floor.len())
                    || !(LEAST_SCALE..1.0 / LEAST_SCALE).contains(&precision.scale);
                if due { self.rebuild(floor, times) } else { 0 }
            }
            _ => self.update_factor(v, update, floor),
        }
    }

    #[inline(never)]
    fn update_factor(&mut self, v: &[Quad], update: Update, floor: &[f64]) -> usize {
        if self.precision.is_some() {
            self.leave_precision();
            self.quadratic_form_by_factor(v);
        }
        self.factor.rank_one(update.tau, &self.whitened, &mut self.work);
        self.factor.scale_by(update.stretch);
        let raised = self.factor.raise_pivots(floor, update.times);
        match self.course.updates_left {
            0 => self.consider_precision(floor, update.times),
            left => self.course.updates_left = left - 1,
        }
        raised
    }

    /// A fresh working copy, or the Cholesky form if the matrix has become unfit for one.
    #[cold]
    #[inline(never)]
    fn rebuild(&mut self, floor: &[f64], times: f64) -> usize {
        let Some(precision) = &mut self.precision else { return 0 };
        if let Some(margin) = fitness(precision, floor, times) {
            self.course = Course { updates_left: UPDATES, patience: PATIENCE, margin };
            return 0;
        }
        self.leave_precision();
        self.factor.raise_pivots(floor, times)
    }

    /// From the precision form to the Cholesky form.
    #[cold]
    #[inline(never)]
    fn leave_precision(&mut self) {
        self.factor = self.factor();
        self.precision = None;
        self.course = Course { updates_left: PATIENCE, patience: 2 * PATIENCE, margin: 0.0 };
    }

    /// From the Cholesky form to the precision form, if the matrix is fit for it.
    #[cold]
    #[inline(never)]
    fn consider_precision(&mut self, floor: &[f64], times: f64) {
        let near = |(pivot, floor): (f64, &f64)| pivot < LEAST_MARGIN * times * floor;
        let inflated = |(pivot, variance): (f64, f64)| variance > MOST_INFLATION * pivot;
        if !self.factor.pivots().zip(floor).any(near)
            && !self.factor.pivots().zip(self.factor.diagonal()).any(inflated)
        {
            let sums = self.factor.sums();
            let mut precision =
                Precision::new(floor.len(), self.factor.scale(), |i, j| sums[i * (i + 1) / 2 + j]);
            if let Some(margin) = fitness(&mut precision, floor, times) {
                self.precision = Some(Box::new(precision));
                self.course = Course { updates_left: UPDATES, patience: PATIENCE, margin };
                return;
            }
        }
        let patience = self.course.patience;
        self.course = Course { updates_left: patience, patience: (2 * patience).min(UPDATES), margin: 0.0 };
    }

    /// `(a, g, c)` such that `ln |Ψ| = a + ln g + d·ln c`: the two logarithms are left to those who can take several
    /// at once.
    #[inline(always)]
    pub(crate) fn log_det_parts(&self) -> (f64, f64, f64) {
        match &self.precision {
            Some(precision) => (precision.log_det, precision.growth, precision.scale),
            None => (self.factor.log_det(), 1.0, 1.0),
        }
    }

    /// The matrix as it is now.
    pub fn factor(&self) -> Factor {
        match &self.precision {
            Some(precision) => {
                let mut settled = precision.clone();
                settled.settle();
                Factor::from_sums(self.whitened.len(), settled.scale, |i, j| settled.truth(i, j))
            }
            None => self.factor.clone(),
        }
    }
}

/// `Ψ ← stretch·(Ψ + τ v vᵀ)`, then pivots held at `times` × the floor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Update {
    pub tau: f64,
    pub stretch: f64,
    pub times: f64,
}

/// Rebuilds a working copy. Returns how many times above the floor all pivots are, or `None` if the matrix is not fit
/// for the precision form.
fn fitness(precision: &mut Precision, floor: &[f64], times: f64) -> Option<f64> {
    let found = precision.rebuild();
    let margins = found.pivots.iter().zip(floor).map(|(pivot, floor)| precision.scale * pivot / floor);
    let margin = margins.fold(LARGEST_MARGIN, f64::min);
    let positive = found.pivots.iter().all(|pivot| *pivot > 0.0);
    let fit = positive
        && found.inflation <= MOST_INFLATION
        && RANGE.contains(&found.range.0)
        && RANGE.contains(&found.range.1)
        && margin >= LEAST_MARGIN * times;
    fit.then_some(margin)
}

/// A finite number, so that it can be saved.
const LARGEST_MARGIN: f64 = 1e300;
/// How far the scale may wander from one before it is folded away in a rebuild.
const LEAST_SCALE: f64 = 1e-9;

/// How much the determinant may grow on one working copy, whose errors it multiplies where all of it is in one
/// direction. Spread over many directions, as it nearly always is, it does less harm.
#[inline(always)]
fn most_growth(dim: usize) -> f64 {
    // 2^(13 + d/8)
    f64::from_bits((1023 + 13 + (dim as u64 / 8).min(900)) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::lower_inverse;
    use crate::linalg::simd::at_run_time;
    use ndarray::Array2;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    #[inline(always)]
    fn learn_kernel<A: Arithmetic>(
        matrix: &mut ComponentMatrix,
        v: &[Quad],
        update: Update,
        floor: &[f64],
    ) -> f64 {
        let q = matrix.quadratic_form::<A>(v);
        matrix.update::<A>(v, q, update, floor);
        q
    }

    at_run_time! {
        fn learn(matrix: &mut ComponentMatrix, v: &[Quad], update: Update, floor: &[f64]) -> f64 = learn_kernel
    }

    /// Normal rows in `dim` columns of very different units, whose covariance has this condition number beside that.
    struct Rows {
        rng: ChaCha8Rng,
        dim: usize,
        condition: f64,
    }

    impl Rows {
        fn new(dim: usize, condition: f64) -> Self {
            Rows { rng: ChaCha8Rng::seed_from_u64(dim as u64), dim, condition }
        }

        fn next(&mut self) -> Vec<Quad> {
            let mut v: Vec<f64> = (0..self.dim).map(|_| StandardNormal.sample(&mut self.rng)).collect();
            // One weak direction in the midst of all columns, by a reflection.
            v[0] *= self.condition.powf(-0.5);
            let mean = v.iter().sum::<f64>() * 2.0 / self.dim as f64;
            v.iter_mut().enumerate().for_each(|(j, v)| *v = (*v - mean) * 10f64.powi(j as i32 % 7 - 3));
            Quad::pad(&v, 0.0)
        }
    }

    /// The largest relative difference of the two in any direction.
    fn difference(found: &Factor, expected: &Factor) -> f64 {
        let whiten = lower_inverse(expected.lower_matrix().view()).dot(&found.lower_matrix());
        let apart = whiten.dot(&whiten.t()) - Array2::<f64>::eye(found.dim());
        apart.iter().map(|value| value * value).sum::<f64>().sqrt()
    }

    /// Learns rows in both forms; `forgetting` is that of a filter, 0 keeps all.
    fn compare(rows: u32, dim: usize, condition: f64, forgetting: f64) -> (f64, bool) {
        let mut source = Rows::new(dim, condition);
        let floor = vec![1e-300; dim];
        let update = if forgetting > 0.0 {
            Update { tau: forgetting, stretch: 1.0 - forgetting, times: 1.0 }
        } else {
            Update { tau: 1.0, stretch: 1.0, times: 1.0 }
        };
        let start = || {
            let mut units = Factor::identity(dim);
            units.change_units(&(0..dim).map(|j| 10f64.powi(j as i32 % 7 - 3)).collect::<Vec<_>>());
            ComponentMatrix::new(units)
        };
        let (mut fast, mut reference) = (start(), start());
        let mut ever_fast = false;
        for row in 0..rows {
            let v = source.next();
            let q = learn(&mut fast, &v, update, &floor);
            reference.course.updates_left = 2; // never looks at the other form
            let exact = learn(&mut reference, &v, update, &floor);
            assert!((q / exact - 1.0).abs() < 1e-6, "row {row}: {q} against {exact}");
            ever_fast |= fast.precision.is_some();
        }
        (difference(&fast.factor(), &reference.factor), ever_fast)
    }

    #[test]
    fn both_forms_agree_in_every_direction() {
        for (dim, condition, forgetting) in [
            (3, 1.0, 0.0),
            (10, 1e4, 0.0),
            (10, 1e4, 0.03),
            (21, 1e6, 0.0),
            (21, 1e8, 0.01),
            (7, 1e12, 0.0),
            (50, 1e2, 0.05),
        ] {
            let (apart, fast) = compare(6000, dim, condition, forgetting);
            assert!(apart < 1e-6, "d {dim}, condition {condition}, forgetting {forgetting}: {apart}");
            assert!(fast, "d {dim}, condition {condition}: never in the precision form");
        }
    }

    /// `cargo test --release --lib a_million -- --ignored`: some minutes.
    #[test]
    #[ignore = "takes minutes"]
    fn a_million_rows_agree_in_every_direction_at_any_condition() {
        for condition in [1.0, 1e4, 1e5, 1e6, 1e8, 1e12] {
            for (dim, forgetting) in [(4, 0.0), (20, 0.0), (20, 0.02)] {
                let (apart, _) = compare(1_000_000, dim, condition, forgetting);
                println!("d {dim}, condition {condition:e}, forgetting {forgetting}: {apart:.1e}");
                assert!(apart < 1e-6, "d {dim}, condition {condition}, forgetting {forgetting}: {apart}");
            }
        }
    }

    #[test]
    fn going_on_from_a_saved_matrix_gives_the_same_bits() {
        for (dim, forgetting) in [(1, 0.0), (3, 0.0), (10, 0.02), (21, 0.0), (22, 0.001)] {
            let mut source = Rows::new(dim, 1e3);
            // Now and then near the floor, in the Cholesky form.
            let floor = vec![1e-2; dim];
            let mut straight = ComponentMatrix::new(Factor::identity(dim));
            let mut resumed = straight.clone();
            for row in 0..3000u32 {
                let v = source.next();
                let update = Update { tau: 0.5, stretch: 1.0 - forgetting, times: 1.0 };
                let a = learn(&mut straight, &v, update, &floor);
                let b = learn(&mut resumed, &v, update, &floor);
                assert_eq!(a.to_bits(), b.to_bits(), "d {dim}, row {row}");
                if row % 37 == 0 {
                    let saved = (resumed.factor(), resumed.working_copy());
                    let text = serde_json::to_string(&saved).unwrap();
                    let (factor, working): (Factor, WorkingCopy) = serde_json::from_str(&text).unwrap();
                    assert!(working.belongs_to(&factor));
                    resumed = ComponentMatrix::resume(factor, &working);
                }
            }
            assert_eq!(straight.factor(), resumed.factor());
            assert_eq!(straight.working_copy(), resumed.working_copy());
        }
    }

    #[test]
    fn the_floor_holds_in_whatever_form() {
        let (dim, mut source) = (4, Rows::new(4, 1e7));
        let floor: Vec<f64> = (0..dim).map(|j| 1e-3 * 100f64.powi(j % 7 - 3)).collect();
        let dim = dim as usize;
        let mut matrix = ComponentMatrix::new(Factor::identity(dim));
        let mut reference = matrix.clone();
        for _ in 0..5000 {
            let v = source.next();
            let update = Update { tau: 0.01, stretch: 0.99, times: 1.0 };
            learn(&mut matrix, &v, update, &floor);
            reference.course.updates_left = 2;
            learn(&mut reference, &v, update, &floor);
            let held =
                matrix.factor().pivots().zip(&floor).all(|(pivot, floor)| pivot >= floor * (1.0 - 1e-9));
            assert!(held, "{:?}", matrix.factor().pivots().collect::<Vec<_>>());
        }
        assert!(difference(&matrix.factor(), &reference.factor) < 1e-6);
    }

    #[test]
    fn a_row_far_out_is_learned_in_the_cholesky_form() {
        let mut source = Rows::new(3, 1.0);
        let floor = [1e-300; 3];
        let update = Update { tau: 1.0, stretch: 1.0, times: 1.0 };
        let mut matrix = ComponentMatrix::new(Factor::identity(3));
        for _ in 0..100 {
            learn(&mut matrix, &source.next(), update, &floor);
        }
        assert!(matrix.precision.is_some());
        let far = Quad::pad(&[1e60, 2e60, -1e60], 0.0);
        learn(&mut matrix, &far, update, &floor);
        assert!(matrix.precision.is_none());
        let across = Quad::pad(&[2.0, -1.0, 0.0], 0.0);
        let q = learn(&mut matrix, &across, update, &floor);
        assert!(q.is_finite() && q > 0.0);
    }

    #[test]
    fn a_broken_working_copy_is_refused() {
        let mut source = Rows::new(2, 1.0);
        let mut matrix = ComponentMatrix::new(Factor::identity(2));
        let update = Update { tau: 1.0, stretch: 1.0, times: 1.0 };
        learn(&mut matrix, &source.next(), update, &[1e-300; 2]);
        let good = serde_json::to_value(matrix.working_copy()).unwrap();
        assert!(serde_json::from_value::<WorkingCopy>(good.clone()).is_ok());
        let break_with = |path: &str, value: serde_json::Value| {
            let mut broken = good.clone();
            *broken.pointer_mut(path).unwrap() = value;
            serde_json::from_value::<WorkingCopy>(broken).unwrap_err().to_string()
        };
        for (path, value) in [
            ("/precision/scale", serde_json::json!(-1.0)),
            ("/precision/inverse/1", serde_json::json!([1.0])),
            ("/precision/matrix/1/1", serde_json::json!(0.0)),
            ("/precision/inverse", serde_json::json!([[1.0]])),
            ("/updates_left", serde_json::json!(0)),
            ("/margin", serde_json::json!(-1.0)),
        ] {
            assert!(break_with(path, value).contains("working copy of a component is broken"), "{path}");
        }
        let other: WorkingCopy = serde_json::from_value(good).unwrap();
        assert!(other.belongs_to(&matrix.factor()) && !other.belongs_to(&Factor::identity(2)));
        assert!(!other.belongs_to(&Factor::identity(3)));
    }
}
