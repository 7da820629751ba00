//! The fused kernel alone, for `benches/`: a lower bound of what a row costs.

use crate::learn::kernel::interleaved::{Interleaved, MAX_COLUMNS};
use crate::learn::kernel::precision::Precision;
use crate::linalg::simd::{Arithmetic, at_run_time};
use crate::linalg::vector::{Quad, Vector, Vector4};

/// Runs the fused update and product of `k` unit matrices with each row of `rows`, each padded to a multiple of four
/// numbers, `repeat` times. The gain is small, so the matrices hardly change. Returns the sum of the quadratic forms.
pub fn fused_kernel(dim: usize, k: usize, rows: &[f64], repeat: usize) -> f64 {
    let mut unit = Precision::new(dim, 1.0, |i, j| if i == j { 1.0 } else { 0.0 });
    unit.rebuild();
    let rows = Quad::pad(rows, 0.0);
    if dim > MAX_COLUMNS {
        return separate(&mut vec![unit; k], &rows, repeat);
    }
    let mut group = Interleaved::new(&[], dim);
    (0..4).for_each(|lane| group.load_lane(lane, Some(&unit)));
    interleaved(&mut vec![group; k.div_ceil(4)], &rows, Quad::needed(dim), repeat)
}

#[inline(always)]
fn separate_kernel<A: Arithmetic>(matrices: &mut [Precision], rows: &[Quad], repeat: usize) -> f64 {
    let mut total = 0.0;
    for _ in 0..repeat {
        for row in rows.chunks_exact(Quad::needed(matrices[0].dim())) {
            for matrix in matrices.iter_mut() {
                total += matrix.form::<A>(row, 1e-9).sum();
            }
        }
    }
    total
}

at_run_time! {
    fn separate(matrices: &mut [Precision], rows: &[Quad], repeat: usize) -> f64 = separate_kernel
}

#[inline(always)]
fn interleaved_kernel<A: Arithmetic>(
    groups: &mut [Interleaved],
    rows: &[Quad],
    width: usize,
    repeat: usize,
) -> f64 {
    let mut total = A::Vector::splat(0.0);
    for _ in 0..repeat {
        for row in rows.chunks_exact(width) {
            for group in groups.iter_mut() {
                total = total + group.quadratic_forms::<A, false>(Quad::flat(row), A::Vector::splat(1e-9));
            }
        }
    }
    total.sum()
}

at_run_time! {
    fn interleaved(groups: &mut [Interleaved], rows: &[Quad], width: usize, repeat: usize) -> f64 = interleaved_kernel
}
