use super::*;
use crate::learn::kernel::MatrixState;
use crate::learn::kernel::interleaved::MAX_COLUMNS;
use crate::linalg::{Factor, lower_inverse};
use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// The share of the conditional matrix, and the weight of the row.
const EXTRA: f64 = 0.4;
const TAU: f64 = 0.3;
const STRETCH: f64 = 0.98;

#[inline(always)]
fn learn_kernel<A: Arithmetic>(
    group: &mut ComponentGroup,
    x: &[f64],
    r: [f64; 4],
    completed: &mut CompletedRows,
    floor: &[f64],
) -> (Quad, Quad) {
    let missing: Vec<usize> = (0..x.len()).filter(|&i| x[i].is_nan()).collect();
    let all = |value: f64| Quad([value; 4]);
    let mut log_det = Quad::default();
    if missing.is_empty() {
        group.quadratic_forms::<A>(&Quad::pad(x, 0.0));
    } else {
        log_det = group.complete::<A>(x, &missing, completed);
    }
    let q = group.q;
    let changes = Changes {
        r: Quad(r),
        step: all(0.1),
        tau: all(TAU),
        gain: Quad(q.0.map(|q| TAU / (1.0 + TAU * q))),
        stretch: all(STRETCH),
        log_stretch: all(STRETCH.ln()),
    };
    if missing.is_empty() {
        group.learn::<A>(changes.load(), floor);
    } else {
        group.learn_completed::<A>(&changes, &all(EXTRA), &missing, completed, floor);
    }
    (q, log_det)
}

at_run_time! {
    fn learn(group: &mut ComponentGroup, x: &[f64], r: [f64; 4], completed: &mut CompletedRows, floor: &[f64]) -> (Quad, Quad) = learn_kernel
}

/// Correlated normal rows in columns of different units, with gaps.
struct Rows {
    rng: ChaCha8Rng,
    dim: usize,
    missing: f64,
}

impl Rows {
    fn new(dim: usize, missing: f64) -> Self {
        Rows { rng: ChaCha8Rng::seed_from_u64(dim as u64), dim, missing }
    }

    fn next(&mut self) -> Vec<f64> {
        let mut normal = || -> f64 { StandardNormal.sample(&mut self.rng) };
        let shared = normal();
        let mut row: Vec<f64> =
            (0..self.dim).map(|j| (shared + 0.5 * normal()) * 10f64.powi(j as i32 % 5 - 2)).collect();
        let kept = self.rng.random_range(0..self.dim);
        for (j, value) in row.iter_mut().enumerate() {
            if j != kept && self.rng.random::<f64>() < self.missing {
                *value = f64::NAN;
            }
        }
        row
    }
}

fn group(dim: usize, count: usize) -> ComponentGroup {
    let mut factor = Factor::identity(dim);
    factor.change_units(&(0..dim).map(|j| 10f64.powi(j as i32 % 5 - 2)).collect::<Vec<_>>());
    let mean = vec![0.0; dim];
    let parts = (0..count).map(|_| (&mean[..], &factor, None));
    ComponentGroup::new(parts)
}

/// The mean, the matrix, the quadratic form and the log-determinant by explicit inverses.
fn learn_plainly(mean: &mut [f64], matrix: &mut Array2<f64>, x: &[f64]) -> (f64, f64) {
    let dim = mean.len();
    let (missing, observed): (Vec<usize>, Vec<usize>) = (0..dim).partition(|&i| x[i].is_nan());
    let part = |rows: &[usize], columns: &[usize]| {
        Array2::from_shape_fn((rows.len(), columns.len()), |(i, j)| matrix[(rows[i], columns[j])])
    };
    let factor = Factor::from_matrix(part(&observed, &observed).view()).unwrap();
    let inverse = factor.inverse();
    let of_observed: ndarray::Array1<f64> = observed.iter().map(|&i| x[i] - mean[i]).collect();
    let form = of_observed.dot(&inverse.dot(&of_observed));
    let gain = part(&missing, &observed).dot(&inverse);
    let rest = part(&missing, &missing) - gain.dot(&part(&observed, &missing));
    let mut v = vec![0.0; dim];
    observed.iter().for_each(|&i| v[i] = x[i] - mean[i]);
    missing.iter().zip(gain.dot(&of_observed)).for_each(|(&i, value)| v[i] = value);
    for i in 0..dim {
        for j in 0..dim {
            matrix[(i, j)] += TAU * v[i] * v[j];
        }
    }
    for (a, &i) in missing.iter().enumerate() {
        for (b, &j) in missing.iter().enumerate() {
            matrix[(i, j)] += EXTRA * rest[(a, b)];
        }
    }
    *matrix *= STRETCH;
    mean.iter_mut().zip(&v).for_each(|(mean, v)| *mean += 0.1 * v);
    (form, factor.log_det())
}

/// The largest relative difference of two matrices in any direction.
fn difference(found: &Factor, expected: &Array2<f64>) -> f64 {
    let expected = Factor::from_matrix(expected.view()).unwrap();
    let whiten = lower_inverse(expected.lower_matrix().view()).dot(&found.lower_matrix());
    let apart = whiten.dot(&whiten.t()) - Array2::<f64>::eye(found.dim());
    apart.iter().map(|value| value * value).sum::<f64>().sqrt()
}

#[test]
fn rows_with_gaps_are_learned_as_by_explicit_inverses() {
    for dim in (2..=MAX_COLUMNS + 2).chain([23]) {
        for missing in [0.1, 0.6] {
            let mut source = Rows::new(dim, missing);
            let (mut together, mut completed) = (group(dim, 3), CompletedRows::default());
            let floor = vec![1e-300; dim];
            let (mut mean, mut matrix) = (vec![0.0; dim], together.factor(0).matrix());
            for row in 0..300 {
                let x = source.next();
                // The second component skips rows.
                let (q, log_det) =
                    learn(&mut together, &x, [1.0, f64::from(row % 2), 1.0, 0.0], &mut completed, &floor);
                let (form, expected) = learn_plainly(&mut mean, &mut matrix, &x);
                assert!((q.0[0] - form).abs() < 1e-8 * (1.0 + form), "d {dim}, row {row}: {q:?} {form}");
                if x.iter().any(|value| value.is_nan()) {
                    assert!((log_det.0[0] - expected).abs() < 1e-8, "d {dim}, row {row}: {log_det:?}");
                    assert_eq!((q.0[0], log_det.0[0]), (q.0[2], log_det.0[2]));
                }
            }
            assert!(together.components[0].precision.is_some() || dim > MAX_COLUMNS);
            assert!(difference(&together.factor(0), &matrix) < 1e-7, "d {dim}");
            let unit = |j: usize| matrix[(j, j)].sqrt();
            assert!(
                together
                    .mean(0)
                    .iter()
                    .zip(&mean)
                    .enumerate()
                    .all(|(j, (a, b))| (a - b).abs() < 1e-8 * unit(j))
            );
            assert_eq!(together.mean(0), together.mean(2));
            assert_ne!(together.mean(0), together.mean(1));
        }
    }
}

#[test]
fn resuming_between_rows_with_gaps_gives_the_same_bits() {
    for dim in [2, 3, 4, 7, 16, 19] {
        let mut source = Rows::new(dim, 0.2);
        let floor = vec![1e-300; dim];
        let (mut straight, mut resumed) = (group(dim, 1), group(dim, 1));
        let mut completed = [CompletedRows::default(), CompletedRows::default()];
        for row in 0..500 {
            let x = source.next();
            let r = [1.0, 0.0, 0.0, 0.0];
            let a = learn(&mut straight, &x, r, &mut completed[0], &floor);
            let b = learn(&mut resumed, &x, r, &mut completed[1], &floor);
            assert_eq!(a.0.0[0].to_bits(), b.0.0[0].to_bits(), "d {dim}, row {row}");
            if row % 7 == 0 {
                let text = serde_json::to_string(&(resumed.factor(0), resumed.matrix_state(0))).unwrap();
                let (factor, state): (Factor, MatrixState) = serde_json::from_str(&text).unwrap();
                let mean = resumed.mean(0);
                resumed = ComponentGroup::new([(&mean[..], &factor, Some(&state))].into_iter());
                completed[1] = CompletedRows::default();
            }
        }
        assert_eq!(straight.factor(0), resumed.factor(0), "d {dim}");
        assert_eq!(straight.matrix_state(0), resumed.matrix_state(0), "d {dim}");
    }
}

#[test]
fn a_column_that_follows_from_others_is_learned_in_the_cholesky_form() {
    // The third column is nearly the sum of the others.
    let mut source = Rows::new(2, 0.0);
    let (mut together, mut completed) = (group(3, 2), CompletedRows::default());
    let floor = [1e-14; 3];
    for row in 0..3000 {
        let x = source.next();
        let mut x = vec![x[0], x[1], x[0] + x[1] + 1e-6 * (row % 5) as f64];
        if row % 3 > 0 {
            x[row % 3] = f64::NAN;
        }
        let (q, _) = learn(&mut together, &x, [1.0; 4], &mut completed, &floor);
        assert!(q.0[0] >= 0.0 && q.0[0].is_finite(), "row {row}: {q:?}");
    }
    assert!(together.components[0].precision.is_none());
}
