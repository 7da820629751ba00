//! Kernels that complete rows with gaps: [`super::Conditional`] for many rows, with vectors.
//!
//! As there, the columns `W` of `L⁻¹` that belong to the missing columns are `QR`. For each missing column, `[Q; R⁻¹]` is stored as
//! one column, because the same steps lead from `[W; I]` to it, and because the same steps use both parts. Both parts are padded
//! with zeros.

use super::simd::{Arithmetic, at_run_time};
use super::vector::{Quad, Vector, Vector4};

/// The quads of a column of `[Q; R⁻¹]` for rows of `dim` columns, of which `count` are missing.
pub(crate) fn quads_of_column(dim: usize, count: usize) -> usize {
    Quad::needed(dim) + Quad::needed(count)
}

/// The columns of a matrix that is given by rows, each padded with zeros.
pub(crate) fn padded_columns(matrix: &[f64], dim: usize) -> Vec<Quad> {
    let column = |j: usize| Quad::pad(&(0..dim).map(|i| matrix[i * dim + j]).collect::<Vec<f64>>(), 0.0);
    (0..dim).flat_map(column).collect()
}

#[inline(always)]
fn dot<A: Arithmetic>(a: &[Quad], b: &[Quad]) -> f64 {
    let mut sum = A::Vector::splat(0.0);
    for (a, b) in a.iter().zip(b) {
        sum = A::Vector::load(a).mul_add(A::Vector::load(b), sum);
    }
    sum.sum()
}

/// `to ← to − factor·other`.
#[inline(always)]
fn subtract<A: Arithmetic>(to: &mut [Quad], factor: f64, other: &[Quad]) {
    let factor = A::Vector::splat(factor);
    for (to, other) in to.iter_mut().zip(other) {
        factor.neg_mul_add(A::Vector::load(other), A::Vector::load(to)).store(to);
    }
}

at_run_time! {
    /// Sets `[Q; R⁻¹]` for these missing columns, given the columns of `L⁻¹`. Returns `ln |R⁻¹R⁻ᵀ|`.
    pub(crate) fn set_conditional(inverse: &[Quad], missing: &[usize], out: &mut [Quad]) -> f64 = set_conditional_kernel
}

#[inline(always)]
fn set_conditional_kernel<A: Arithmetic>(inverse: &[Quad], missing: &[usize], out: &mut [Quad]) -> f64 {
    let width = out.len() / missing.len();
    let quads = width - Quad::needed(missing.len());
    let mut product = 1.0;
    let mut log_det = 0.0;
    for (n, &column) in missing.iter().enumerate() {
        let (before, rest) = out.split_at_mut(n * width);
        let own = &mut rest[..width];
        own[..quads].copy_from_slice(&inverse[column * quads..][..quads]);
        own[quads..].fill(Quad::default());
        own[quads + n / 4].0[n % 4] = 1.0;
        // Twice is enough: the second time removes the rounding errors of the first.
        for _ in 0..2 {
            for other in before.chunks_exact(width) {
                subtract::<A>(own, dot::<A>(&other[..quads], &own[..quads]), other);
            }
        }
        let square = dot::<A>(&own[..quads], &own[..quads]);
        let scale = A::Vector::splat(1.0 / square.sqrt());
        for value in own {
            (A::Vector::load(value) * scale).store(value);
        }
        // One logarithm for several columns.
        product *= square;
        if !(1e-140..1e140).contains(&product) || n + 1 == missing.len() {
            log_det -= product.ln();
            product = 1.0;
        }
    }
    log_det
}

at_run_time! {
    /// Completes the deviation `v` of a row, with zeros for its missing values: the first part of `out` gets `L⁻¹v` less its projection on `Q`, and the
    /// second one the completed missing values. Returns the quadratic form of the observed columns.
    pub(crate) fn complete_row(inverse: &[Quad], v: &[Quad], conditional: &[Quad], count: usize, out: &mut [Quad]) -> f64 =
        complete_row_kernel
}

#[inline(always)]
fn complete_row_kernel<A: Arithmetic>(
    inverse: &[Quad],
    v: &[Quad],
    conditional: &[Quad],
    count: usize,
    out: &mut [Quad],
) -> f64 {
    let quads = v.len();
    let dim = inverse.len() / quads;
    let values = &Quad::flat(v)[..dim];
    let (whitened, completed) = out.split_at_mut(quads);
    completed.fill(Quad::default());
    for (i, to) in whitened.iter_mut().enumerate() {
        let mut sums = [A::Vector::splat(0.0); 2];
        // `L⁻¹` is lower triangular.
        for (j, value) in values.iter().enumerate().take(4 * i + 4) {
            let element = A::Vector::load(&inverse[j * quads + i]);
            sums[j % 2] = element.mul_add(A::Vector::splat(*value), sums[j % 2]);
        }
        (sums[0] + sums[1]).store(to);
    }
    let width = out.len();
    // The last column first, as in back substitution.
    for own in conditional.chunks_exact(width).take(count).rev() {
        let along = dot::<A>(&own[..quads], &out[..quads]);
        subtract::<A>(out, along, own);
    }
    dot::<A>(&out[..quads], &out[..quads])
}
