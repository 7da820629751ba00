//! Kernels over blocks of rows, in which each column is contiguous: the two products that scoring and batch EM consist of.
//! With the cargo feature `openblas` they use BLAS; without it, the kernels here, which exploit that a factor is triangular
//! and a second moment symmetric.

#[cfg(feature = "openblas")]
use ndarray::ArrayView2;

use super::simd::{Arithmetic, at_run_time};
use super::vector::{Quad, Vector, Vector4};

pub use super::row_blocks::{RowBlocks, Table, in_units};

/// Rows in one block: many enough for fast products, few enough for the cache.
pub const BLOCK: usize = 128;

/// Rows whose sums fit in registers.
const TILE: usize = 16;

/// Sums over weighted rows `v`, relative to some origin.
#[derive(Debug, Clone)]
pub struct Moments {
    /// `Σ w`.
    pub count: f64,
    /// `Σ w v`.
    pub first: Vec<f64>,
    /// `Σ w v vᵀ` by rows. Only elements on and below the diagonal are valid.
    pub second: Vec<f64>,
}

impl Moments {
    /// The sums over no rows.
    pub fn new(dim: usize) -> Self {
        Moments { count: 0.0, first: vec![0.0; dim], second: vec![0.0; dim * dim] }
    }

    /// Multiplies all weights by `c`.
    pub fn scale_by(&mut self, c: f64) {
        self.count *= c;
        self.first.iter_mut().chain(&mut self.second).for_each(|sum| *sum *= c);
    }

    /// Adds the sums over other rows, relative to the same origin.
    pub fn merge(&mut self, other: &Moments) {
        self.count += other.count;
        self.first.iter_mut().zip(&other.first).for_each(|(sum, other)| *sum += other);
        self.second.iter_mut().zip(&other.second).for_each(|(sum, other)| *sum += other);
    }

    /// Adds a block of weighted rows.
    pub fn add(&mut self, block: &[f64], weights: &[f64]) {
        self.count += weights.iter().sum::<f64>();
        add_moments(&mut self.first, &mut self.second, block, weights);
    }
}

/// `out = block − m`, column by column.
pub fn subtract_mean(block: &[f64], mean: &[f64], out: &mut [f64]) {
    for ((out, column), mean) in out.chunks_exact_mut(BLOCK).zip(block.chunks_exact(BLOCK)).zip(mean) {
        for (out, value) in out.iter_mut().zip(column) {
            *out = value - mean;
        }
    }
}

at_run_time! {
    /// `|x − m|²` of each row `x` of a block.
    pub fn square_distances(block: &[f64], mean: &[f64], out: &mut [f64; BLOCK]) = square_distances_kernel
}

#[inline(always)]
fn square_distances_kernel<A: Arithmetic>(block: &[f64], mean: &[f64], out: &mut [f64; BLOCK]) {
    out.fill(0.0);
    for (column, mean) in block.chunks_exact(BLOCK).zip(mean) {
        for (sum, value) in out.iter_mut().zip(column) {
            *sum = A::mul_add(value - mean, value - mean, *sum);
        }
    }
}

#[cfg(not(feature = "openblas"))]
at_run_time! {
    /// `|L⁻¹v|²` of each row `v` of a block; `inverse` is `L⁻¹` by rows.
    pub fn square_norms(inverse: &[f64], block: &[f64], out: &mut [f64]) = square_norms_kernel
}

at_run_time! {
    /// [`square_norms`], where norms above `most`, given for each row, may become infinite. This saves work.
    pub fn square_norms_up_to(inverse: &[f64], block: &[f64], most: &[f64; BLOCK], out: &mut [f64]) =
        square_norms_up_to_kernel
}

#[cfg(not(feature = "openblas"))]
at_run_time! {
    fn add_moments(first: &mut [f64], second: &mut [f64], block: &[f64], weights: &[f64]) = add_moments_kernel
}

/// `|L⁻¹v|²` of each row `v` of a block; `inverse` is `L⁻¹` by rows.
#[cfg(feature = "openblas")]
pub fn square_norms(inverse: &[f64], block: &[f64], out: &mut [f64]) {
    let dim = block.len() / BLOCK;
    let inverse = ArrayView2::from_shape((dim, dim), inverse).expect("a square matrix");
    let whitened = inverse.dot(&as_columns(block));
    out.fill(0.0);
    for column in whitened.outer_iter() {
        out.iter_mut().zip(column).for_each(|(sum, value)| *sum += value * value);
    }
}

#[cfg(feature = "openblas")]
fn add_moments(first: &mut [f64], second: &mut [f64], block: &[f64], weights: &[f64]) {
    let dim = first.len();
    let block = as_columns(block);
    let weighted = &block * &ndarray::ArrayView1::from(weights);
    first.iter_mut().zip(weighted.outer_iter()).for_each(|(sum, column)| *sum += column.sum());
    let mut second = ndarray::ArrayViewMut2::from_shape((dim, dim), second).expect("a square matrix");
    ndarray::linalg::general_mat_mul(1.0, &weighted, &block.t(), 1.0, &mut second);
}

#[cfg(feature = "openblas")]
fn as_columns(block: &[f64]) -> ArrayView2<'_, f64> {
    ArrayView2::from_shape((block.len() / BLOCK, BLOCK), block).expect("blocks are whole")
}

#[cfg_attr(feature = "openblas", allow(dead_code))]
#[inline(always)]
fn square_norms_kernel<A: Arithmetic>(inverse: &[f64], block: &[f64], out: &mut [f64]) {
    let dim = block.len() / BLOCK;
    for (tile, out) in out.chunks_exact_mut(TILE).enumerate() {
        let mut norms = [0.0; TILE];
        let mut i = 0;
        while i + 1 < dim {
            whiten::<A, 2>(inverse, block, tile * TILE, i, &mut norms);
            i += 2;
        }
        if i < dim {
            whiten::<A, 1>(inverse, block, tile * TILE, i, &mut norms);
        }
        out.copy_from_slice(&norms);
    }
}

/// Columns between two checks. A tile whose rows all exceed their limit by then is skipped.
const CHECK_EVERY: usize = 4;

#[inline(always)]
fn square_norms_up_to_kernel<A: Arithmetic>(
    inverse: &[f64],
    block: &[f64],
    most: &[f64; BLOCK],
    out: &mut [f64],
) {
    let dim = block.len() / BLOCK;
    for (tile, (out, most)) in out.chunks_exact_mut(TILE).zip(most.chunks_exact(TILE)).enumerate() {
        let mut norms = [0.0; TILE];
        let mut i = 0;
        while i + 1 < dim {
            whiten::<A, 2>(inverse, block, tile * TILE, i, &mut norms);
            i += 2;
            if i % CHECK_EVERY == 0 && norms.iter().zip(most).all(|(norm, most)| norm > most) {
                norms.fill(f64::INFINITY);
                i = dim;
            }
        }
        if i < dim {
            whiten::<A, 1>(inverse, block, tile * TILE, i, &mut norms);
        }
        out.copy_from_slice(&norms);
    }
}

/// Adds to `norms` the squares of the whitened columns `i..i + N` of the tile of rows that begins at `from`.
#[inline(always)]
fn whiten<A: Arithmetic, const N: usize>(
    inverse: &[f64],
    block: &[f64],
    from: usize,
    i: usize,
    norms: &mut [f64; TILE],
) {
    let dim = block.len() / BLOCK;
    let coefficients: [&[f64]; N] = std::array::from_fn(|n| &inverse[(i + n) * dim..][..i + N]);
    let mut sums = [[0.0; TILE]; N];
    for j in 0..i + N {
        let column = &block[j * BLOCK + from..][..TILE];
        for (sums, coefficients) in sums.iter_mut().zip(coefficients) {
            let coefficient = coefficients[j];
            for (sum, value) in sums.iter_mut().zip(column) {
                *sum = A::mul_add(coefficient, *value, *sum);
            }
        }
    }
    for sums in sums {
        for (norm, value) in norms.iter_mut().zip(sums) {
            *norm = A::mul_add(value, value, *norm);
        }
    }
}

/// Rows of the second moment that are computed together, so that each loaded value contributes to several sums.
const STRIPE: usize = 4;

#[cfg_attr(feature = "openblas", allow(dead_code))]
#[inline(always)]
fn add_moments_kernel<A: Arithmetic>(first: &mut [f64], second: &mut [f64], block: &[f64], weights: &[f64]) {
    let dim = first.len();
    let mut weighted = [[0.0; BLOCK]; STRIPE];
    let mut from = 0;
    while from < dim {
        let count = if from + STRIPE <= dim { STRIPE } else { 1 };
        for (n, weighted) in weighted.iter_mut().enumerate().take(count) {
            let column = &block[(from + n) * BLOCK..][..BLOCK];
            for ((weighted, value), weight) in weighted.iter_mut().zip(column).zip(weights) {
                *weighted = value * weight;
            }
            first[from + n] += add_up(weighted);
        }
        let rows = &mut second[from * dim..][..count * dim];
        if count == STRIPE {
            for j in (0..from + STRIPE).step_by(2) {
                add_stripe::<A>(&weighted, &block[j * BLOCK..], rows, j);
            }
        } else {
            let mut j = 0;
            while j + 4 <= from + 1 {
                add_products::<A, 4>(&weighted[0], &block[j * BLOCK..], &mut rows[j..]);
                j += 4;
            }
            while j < from + 1 {
                add_products::<A, 1>(&weighted[0], &block[j * BLOCK..], &mut rows[j..]);
                j += 1;
            }
        }
        from += count;
    }
}

/// Adds the products of four weighted columns with the next two columns. Elements above the diagonal get invalid numbers.
#[inline(always)]
fn add_stripe<A: Arithmetic>(weighted: &[[f64; BLOCK]; STRIPE], columns: &[f64], rows: &mut [f64], j: usize) {
    let quad = |values: &[f64], r: usize| {
        A::Vector::load(&Quad([values[r], values[r + 1], values[r + 2], values[r + 3]]))
    };
    let columns: [&[f64]; 2] = std::array::from_fn(|n| &columns[n * BLOCK..][..BLOCK]);
    let mut lanes = [[A::Vector::splat(0.0); 2]; STRIPE];
    for r in (0..BLOCK).step_by(4) {
        let (one, other) = (quad(columns[0], r), quad(columns[1], r));
        for (lanes, weighted) in lanes.iter_mut().zip(weighted) {
            let weighted = quad(weighted, r);
            lanes[0] = weighted.mul_add(one, lanes[0]);
            lanes[1] = weighted.mul_add(other, lanes[1]);
        }
    }
    let dim = rows.len() / STRIPE;
    for (row, lanes) in rows.chunks_exact_mut(dim).zip(lanes) {
        row[j] += lanes[0].sum();
        row[j + 1] += lanes[1].sum();
    }
}

/// Independent partial sums, which let the processor overlap the additions.
const LANES: usize = 8;

/// Adds the products of `weighted` with each of the next `N` columns.
#[inline(always)]
fn add_products<A: Arithmetic, const N: usize>(weighted: &[f64; BLOCK], columns: &[f64], sums: &mut [f64]) {
    let columns: [&[f64]; N] = std::array::from_fn(|n| &columns[n * BLOCK..][..BLOCK]);
    let mut lanes = [[0.0; LANES]; N];
    for r in (0..BLOCK).step_by(LANES) {
        for (lanes, column) in lanes.iter_mut().zip(columns) {
            for (l, lane) in lanes.iter_mut().enumerate() {
                *lane = A::mul_add(weighted[r + l], column[r + l], *lane);
            }
        }
    }
    for (sum, lanes) in sums.iter_mut().zip(lanes) {
        *sum += lanes.iter().sum::<f64>();
    }
}

#[inline(always)]
fn add_up(values: &[f64; BLOCK]) -> f64 {
    let mut lanes = [0.0; LANES];
    for chunk in values.chunks_exact(LANES) {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane += value);
    }
    lanes.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::super::simd::Plain;
    use super::*;
    use ndarray::Array2;

    fn numbers(rows: usize, dim: usize) -> Array2<f64> {
        Array2::from_shape_fn((rows, dim), |(i, j)| ((i * 37 + j * 11) % 101) as f64 / 25.0 - 2.0)
    }

    /// Compares each kernel with plain loops, in its portable form and in the one that this machine runs.
    #[test]
    fn kernels_agree_with_plain_loops_at_every_size() {
        // Miri is slow.
        for dim in 1..=if cfg!(miri) { 9 } else { 100 } {
            let rows = numbers(BLOCK, dim);
            let blocks = RowBlocks::new(rows.view());
            let (block, filled) = blocks.block(0);
            let block = block.as_ref();
            assert_eq!(filled, BLOCK);
            let inverse =
                Array2::from_shape_fn(
                    (dim, dim),
                    |(i, j)| if j > i { 0.0 } else { 1.0 / (1 + i + j) as f64 },
                );
            let weights: Vec<f64> = (0..BLOCK).map(|i| (i % 7) as f64 / 7.0).collect();
            let whitened = rows.dot(&inverse.t());
            let weighted = Array2::from_shape_fn((BLOCK, dim), |(i, j)| weights[i] * rows[(i, j)]);
            let second = weighted.t().dot(&rows);
            let flat = inverse.as_slice().unwrap();
            for kernel in [square_norms_kernel::<Plain>, square_norms] {
                let mut norms = [0.0; BLOCK];
                kernel(flat, block, &mut norms);
                for (norm, row) in norms.iter().zip(whitened.outer_iter()) {
                    assert!((norm - row.dot(&row)).abs() < 1e-12 * (1.0 + norm));
                }
            }
            let mut exact = [0.0; BLOCK];
            square_norms(flat, block, &mut exact);
            let most: [f64; BLOCK] =
                std::array::from_fn(|r| if r < 64 { f64::INFINITY } else { 0.5 * exact[r] });
            let mut norms = [0.0; BLOCK];
            square_norms_up_to(flat, block, &most, &mut norms);
            for r in 0..BLOCK {
                let skipped = norms[r] == f64::INFINITY && exact[r] >= most[r];
                assert!(skipped || (norms[r] - exact[r]).abs() < 1e-12 * (1.0 + exact[r]));
                assert!(r >= 64 || !skipped);
            }
            let mean: Vec<f64> = (0..dim).map(|j| j as f64 / 9.0).collect();
            for kernel in [square_distances_kernel::<Plain>, square_distances] {
                let mut distances = [0.0; BLOCK];
                kernel(block, &mean, &mut distances);
                for (distance, row) in distances.iter().zip(rows.outer_iter()) {
                    let exact: f64 = row.iter().zip(&mean).map(|(x, m)| (x - m) * (x - m)).sum();
                    assert!((distance - exact).abs() < 1e-12 * (1.0 + exact));
                }
            }
            for kernel in [add_moments_kernel::<Plain>, add_moments] {
                let mut sums = Moments::new(dim);
                kernel(&mut sums.first, &mut sums.second, block, &weights);
                for i in 0..dim {
                    assert!((sums.first[i] - weighted.column(i).sum()).abs() < 1e-11);
                    for j in 0..=i {
                        assert!((sums.second[i * dim + j] - second[(i, j)]).abs() < 1e-11);
                    }
                }
            }
        }
    }
}
