use ndarray::{Array2, ArrayView1};

use super::*;
use crate::linalg::Factor;
use crate::linalg::simd::Plain;

/// Learns one row, with the scalar arithmetic that [`crate::linalg::ComponentGroup`] does for four components.
#[inline(always)]
fn learn_kernel<A: Arithmetic>(matrix: &mut Precision, v: &[Quad], tau: f64, stretch: f64) -> f64 {
    let form = matrix.form::<A>(v, matrix.gain).sum();
    let t = tau / matrix.scale;
    let q = form / matrix.scale;
    matrix.gain = t / (1.0 + t * form);
    matrix.scale *= stretch;
    matrix.add::<A>(v, t.sqrt());
    q
}

at_run_time! {
    fn learn(matrix: &mut Precision, v: &[Quad], tau: f64, stretch: f64) -> f64 = learn_kernel
}

#[track_caller]
fn assert_close(found: f64, expected: f64, size: f64, what: &str) {
    assert!((found - expected).abs() < 1e-9 * size, "{what}: {found} against {expected}");
}

/// Compares rebuilding, products with and without an update, and pending and added rows with plain loops over a whole matrix.
/// Products are also compared in their portable compilation.
#[test]
fn kernels_agree_with_plain_loops_at_every_size() {
    // Miri is slow. Large sizes take most of the time, so a few of them have to do.
    let (most, large) = if cfg!(miri) { (9, &[][..]) } else { (33, &[47, 64, 100][..]) };
    for dim in (1..=most).chain(large.iter().copied()) {
        for learn in [learn, learn_kernel::<Plain>] {
            let number = |i: usize, j: usize| ((i * 37 + j * 11) % 101) as f64 / 50.0 - 1.0;
            let spread = Array2::from_shape_fn((dim, dim), |(i, j)| number(i, j));
            let mut expected = Array2::eye(dim) + spread.dot(&spread.t()) / dim as f64;
            let mut found = Precision::new(dim, 1.0, |i, j| expected[(i, j)]);
            found.rebuild();
            for row in 0..MAX_PENDING + 3 {
                let v: Vec<f64> = (0..dim).map(|j| number(row + 7, j)).collect();
                let exact =
                    Factor::from_matrix(expected.view()).unwrap().quadratic_form(&v, &mut vec![0.0; dim]);
                let (tau, stretch) = (0.3, 0.98);
                let q = learn(&mut found, &Quad::pad(&v, 0.0), tau, stretch);
                assert_close(q, exact, 1.0 + exact, &format!("d {dim}, row {row}"));
                let v = ArrayView1::from(&v).insert_axis(ndarray::Axis(1));
                expected = stretch * (expected + tau * v.dot(&v.t()));
            }
            found.apply_pending();
            let inverse = Factor::from_matrix(expected.view()).unwrap().inverse();
            for i in 0..dim {
                for j in 0..=i {
                    let what = format!("d {dim}, element {i}, {j}");
                    assert_close(found.scale * found.matrix(i, j), expected[(i, j)], 10.0, &what);
                    assert_close(found.inverse(i, j) / found.scale, inverse[(i, j)], 10.0, &what);
                }
            }
        }
    }
}
