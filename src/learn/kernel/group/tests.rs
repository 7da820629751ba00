use super::*;
use crate::linalg::lower_inverse;
use crate::linalg::simd::at_run_time;
use ndarray::Array2;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// The update of the matrix by one row.
#[derive(Clone, Copy)]
struct Update {
    tau: f64,
    stretch: f64,
}

/// One component whose mean stays at the origin.
fn lone(factor: Factor, matrix_state: Option<&MatrixState>) -> ComponentGroup {
    ComponentGroup::new([(&vec![0.0; factor.dim()][..], &factor, matrix_state)].into_iter())
}

#[inline(always)]
fn learn_kernel<A: Arithmetic>(group: &mut ComponentGroup, v: &[Quad], update: Update, floor: &[f64]) -> f64 {
    let Update { tau, stretch } = update;
    let q = group.quadratic_forms::<A>(v).to_array()[0];
    let [r, step, tau, gain, stretch, log_stretch] =
        [1.0, 0.0, tau, tau / (1.0 + tau * q), stretch, stretch.ln()]
            .map(|value| A::Vector::load(&Quad([value, 0.0, 0.0, 0.0])));
    group.learn::<A>(Changes { r, step, tau, gain, stretch, log_stretch }, floor);
    q
}

at_run_time! {
    fn learn(group: &mut ComponentGroup, v: &[Quad], update: Update, floor: &[f64]) -> f64 = learn_kernel
}

/// Normal rows in `dim` columns of very different units. Apart from the units, the covariance has this condition number.
struct DrawnRows {
    rng: ChaCha8Rng,
    dim: usize,
    condition: f64,
}

impl DrawnRows {
    fn new(dim: usize, condition: f64) -> Self {
        DrawnRows { rng: ChaCha8Rng::seed_from_u64(dim as u64), dim, condition }
    }

    fn next(&mut self) -> Vec<Quad> {
        let mut v: Vec<f64> = (0..self.dim).map(|_| StandardNormal.sample(&mut self.rng)).collect();
        // A reflection turns the weak direction away from the first column.
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

/// Learns rows in both forms. `forgetting` is the step of an exponential filter; 0 keeps all rows.
fn compare(rows: u32, dim: usize, condition: f64, forgetting: f64) -> (f64, bool) {
    let mut source = DrawnRows::new(dim, condition);
    let floor = vec![1e-300; dim];
    let update = if forgetting > 0.0 {
        Update { tau: forgetting, stretch: 1.0 - forgetting }
    } else {
        Update { tau: 1.0, stretch: 1.0 }
    };
    let start = || {
        let mut units = Factor::identity(dim);
        units.change_units(&(0..dim).map(|j| 10f64.powi(j as i32 % 7 - 3)).collect::<Vec<_>>());
        lone(units, None)
    };
    let (mut fast, mut reference) = (start(), start());
    let mut ever_fast = false;
    for row in 0..rows {
        let v = source.next();
        let q = learn(&mut fast, &v, update, &floor);
        reference.components[0].schedule.updates_left = 2; // never tries the precision form
        let exact = learn(&mut reference, &v, update, &floor);
        assert!((q / exact - 1.0).abs() < 1e-6, "row {row}: {q} against {exact}");
        ever_fast |= fast.components[0].precision.is_some();
    }
    (difference(&fast.factor(0), &reference.factor(0)), ever_fast)
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

#[test]
fn both_forms_agree_with_any_number_of_columns() {
    for dim in 1..=MAX_COLUMNS + 1 {
        for forgetting in [0.0, 0.02] {
            let (apart, fast) = compare(600, dim, 10.0, forgetting);
            assert!(fast && apart < 1e-9, "d {dim}, forgetting {forgetting}: {apart}");
        }
    }
}

/// Each component learns rows with other rates, or not at all.
#[test]
fn a_group_computes_what_each_component_computes_alone() {
    for (dim, learn_one) in (1..=MAX_COLUMNS + 1).flat_map(|dim| [(dim, false), (dim, true)]) {
        let mut source = DrawnRows::new(dim, 10.0);
        let floor = vec![1e-300; dim];
        let start = |_: usize| (vec![0.0; dim], Factor::identity(dim));
        let parts: Vec<_> = (0..3).map(start).collect();
        let mut together = ComponentGroup::new(parts.iter().map(|(m, factor)| (&m[..], factor, None)));
        let mut alone: Vec<_> = (0..3).map(|_| lone(Factor::identity(dim), None)).collect();
        for row in 0..50 {
            let v = source.next();
            // The second component skips every third row, or only the first one learns.
            let r =
                [1.0, f64::from(u8::from(row % 3 > 0 && !learn_one)), f64::from(u8::from(!learn_one)), 0.0];
            let rows_of = |i: usize| Rates { r: r[i], step: 0.1 / (i + 1) as f64, tau: 0.5 + i as f64 };
            let found = learn_group(&mut together, &v, std::array::from_fn(rows_of), &floor);
            for (i, alone) in alone.iter_mut().enumerate() {
                let none = Rates { r: 0.0, step: 0.0, tau: 0.0 };
                let expected = learn_group(alone, &v, [rows_of(i), none, none, none], &floor)[0];
                assert_eq!(found[i].to_bits(), expected.to_bits(), "d {dim}, row {row}, component {i}");
            }
        }
        for (i, alone) in alone.iter().enumerate() {
            assert_eq!(together.mean(i), alone.mean(0));
            assert_eq!(together.matrix_state(i), alone.matrix_state(0), "d {dim}, component {i}");
        }
    }
}

/// The update of one component by one row.
#[derive(Clone, Copy)]
struct Rates {
    r: f64,
    step: f64,
    tau: f64,
}

#[inline(always)]
fn learn_group_kernel<A: Arithmetic>(
    group: &mut ComponentGroup,
    v: &[Quad],
    rates: [Rates; 4],
    floor: &[f64],
) -> [f64; 4] {
    let lanes = |value: fn(&Rates) -> f64| A::Vector::load(&Quad(rates.map(|rates| value(&rates))));
    let q = group.quadratic_forms::<A>(v);
    let (r, step, tau) = (lanes(|own| own.r), lanes(|own| own.step), lanes(|own| own.tau));
    let one = A::Vector::splat(1.0);
    let stretch = A::Vector::splat(0.75);
    let log_stretch = A::Vector::splat(0.75f64.ln());
    group.learn::<A>(Changes { r, step, tau, gain: tau / (one + tau * q), stretch, log_stretch }, floor);
    q.to_array()
}

at_run_time! {
    fn learn_group(group: &mut ComponentGroup, v: &[Quad], rates: [Rates; 4], floor: &[f64]) -> [f64; 4] = learn_group_kernel
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
fn resuming_from_a_saved_matrix_gives_the_same_bits() {
    for (dim, forgetting) in [(1, 0.0), (3, 0.0), (10, 0.02), (21, 0.0), (22, 0.001)] {
        let mut source = DrawnRows::new(dim, 1e3);
        // Sometimes near the floor, which needs the Cholesky form.
        let floor = vec![1e-2; dim];
        let mut straight = lone(Factor::identity(dim), None);
        let mut resumed = straight.clone();
        for row in 0..3000u32 {
            let v = source.next();
            let update = Update { tau: 0.5, stretch: 1.0 - forgetting };
            let a = learn(&mut straight, &v, update, &floor);
            let b = learn(&mut resumed, &v, update, &floor);
            assert_eq!(a.to_bits(), b.to_bits(), "d {dim}, row {row}");
            if row % 37 == 0 {
                let saved = (resumed.factor(0), resumed.matrix_state(0));
                let text = serde_json::to_string(&saved).unwrap();
                let (factor, matrix_state): (Factor, MatrixState) = serde_json::from_str(&text).unwrap();
                assert!(matrix_state.belongs_to(&factor));
                resumed = lone(factor, Some(&matrix_state));
            }
        }
        assert_eq!(straight.factor(0), resumed.factor(0));
        assert_eq!(straight.matrix_state(0), resumed.matrix_state(0));
    }
}

#[test]
fn the_floor_holds_in_both_forms() {
    let (dim, mut source) = (4, DrawnRows::new(4, 1e7));
    let floor: Vec<f64> = (0..dim).map(|j| 1e-3 * 100f64.powi(j % 7 - 3)).collect();
    let dim = dim as usize;
    let mut matrix = lone(Factor::identity(dim), None);
    let mut reference = matrix.clone();
    for _ in 0..5000 {
        let v = source.next();
        let update = Update { tau: 0.01, stretch: 0.99 };
        learn(&mut matrix, &v, update, &floor);
        reference.components[0].schedule.updates_left = 2;
        learn(&mut reference, &v, update, &floor);
        let held = matrix.factor(0).pivots().zip(&floor).all(|(pivot, floor)| pivot >= floor * (1.0 - 1e-9));
        assert!(held, "{:?}", matrix.factor(0).pivots().collect::<Vec<_>>());
    }
    assert!(difference(&matrix.factor(0), &reference.factor(0)) < 1e-6);
}

#[test]
fn a_row_far_out_is_learned_in_the_cholesky_form() {
    let mut source = DrawnRows::new(3, 1.0);
    let floor = [1e-300; 3];
    let update = Update { tau: 1.0, stretch: 1.0 };
    let mut matrix = lone(Factor::identity(3), None);
    for _ in 0..100 {
        learn(&mut matrix, &source.next(), update, &floor);
    }
    assert!(matrix.components[0].precision.is_some());
    let far = Quad::pad(&[1e60, 2e60, -1e60], 0.0);
    learn(&mut matrix, &far, update, &floor);
    assert!(matrix.components[0].precision.is_none());
    let across = Quad::pad(&[2.0, -1.0, 0.0], 0.0);
    let q = learn(&mut matrix, &across, update, &floor);
    assert!(q.is_finite() && q > 0.0);
}

#[test]
fn an_invalid_matrix_state_is_refused() {
    let mut source = DrawnRows::new(2, 1.0);
    let mut matrix = lone(Factor::identity(2), None);
    let update = Update { tau: 1.0, stretch: 1.0 };
    learn(&mut matrix, &source.next(), update, &[1e-300; 2]);
    let good = serde_json::to_value(matrix.matrix_state(0)).unwrap();
    assert!(serde_json::from_value::<MatrixState>(good.clone()).is_ok());
    let break_with = |path: &str, value: serde_json::Value| {
        let mut broken = good.clone();
        *broken.pointer_mut(path).unwrap() = value;
        serde_json::from_value::<MatrixState>(broken).unwrap_err().to_string()
    };
    for (path, value) in [
        ("/scale", serde_json::json!(-1.0)),
        ("/precision/inverse/1", serde_json::json!([1.0])),
        ("/precision/matrix/1/1", serde_json::json!(0.0)),
        ("/precision/inverse", serde_json::json!([[1.0]])),
        ("/updates_left", serde_json::json!(0)),
        ("/margin", serde_json::json!(-1.0)),
    ] {
        assert!(break_with(path, value).contains("state of a component's matrix is invalid"), "{path}");
    }
    let other: MatrixState = serde_json::from_value(good).unwrap();
    assert!(other.belongs_to(&matrix.factor(0)) && !other.belongs_to(&Factor::identity(2)));
    assert!(!other.belongs_to(&Factor::identity(3)));
}
