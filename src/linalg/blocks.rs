//! Kernels over blocks of rows, in which each column is contiguous: the two products that scoring and batch EM consist of.
//! They exploit that a factor is triangular and a second moment symmetric. With the cargo feature `openblas`, second moments use
//! BLAS.

use super::gram::add_gram;
use super::simd::{Arithmetic, at_run_time};
use super::vector::{Quad, Vector, Vector4};

pub use super::row_blocks::{RowBlocks, UnitTable, in_units};

/// Rows in one block: many enough for fast products, few enough for the cache.
pub const BLOCK: usize = 128;

/// Rows whose sums fit in registers.
pub const TILE: usize = 16;

/// Sums over weighted rows `v`, relative to some origin.
#[derive(Debug, Clone)]
pub struct Moments {
    /// `Σ w`.
    pub count: f64,
    /// `Σ w v`.
    pub first: Vec<f64>,
    /// `Σ w v vᵀ` by rows. Only elements on and below the diagonal are valid. Moments of single columns have only its diagonal.
    pub second: Vec<f64>,
}

impl Moments {
    /// The sums over no rows.
    pub fn new(dim: usize) -> Self {
        Moments { count: 0.0, first: vec![0.0; dim], second: vec![0.0; dim * dim] }
    }

    /// The sums over no rows, without products of two columns.
    pub fn of_columns(dim: usize) -> Self {
        Moments { count: 0.0, first: vec![0.0; dim], second: vec![0.0; dim] }
    }

    /// Makes them sums over no rows.
    pub fn clear(&mut self) {
        self.count = 0.0;
        self.first.iter_mut().chain(&mut self.second).for_each(|sum| *sum = 0.0);
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
        let dim = self.first.len();
        self.add_relative(block, &vec![0.0; dim], weights, &mut vec![Quad::default(); dim * QUADS]);
    }

    /// Adds a block of weighted rows, relative to `origin`. `space` has as many numbers as the block.
    pub fn add_relative(&mut self, block: &[f64], origin: &[f64], weights: &[f64], space: &mut [Quad]) {
        let Moments { count, first, second } = self;
        *count += match second.len() == first.len() {
            true => add_column_moments(first, second, block, origin, weights),
            #[cfg(feature = "openblas")]
            false if super::batch::uses_openblas() => {
                add_moments_by_blas(first, second, block, origin, weights, space)
            }
            false => add_moments(first, second, block, origin, weights, space),
        };
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

at_run_time! {
    /// `Σ (w (x − m))²` over the columns of each row `x` of a block.
    pub fn scaled_distances(block: &[f64], mean: &[f64], scales: &[f64], out: &mut [f64]) = scaled_distances_kernel
}

#[inline(always)]
fn scaled_distances_kernel<A: Arithmetic>(block: &[f64], mean: &[f64], scales: &[f64], out: &mut [f64]) {
    for (tile, out) in out.chunks_exact_mut(TILE).enumerate() {
        let mut sums = [0.0; TILE];
        for ((column, mean), scale) in block.chunks_exact(BLOCK).zip(mean).zip(scales) {
            for (sum, value) in sums.iter_mut().zip(&column[tile * TILE..][..TILE]) {
                let scaled = (value - mean) * scale;
                *sum = A::mul_add(scaled, scaled, *sum);
            }
        }
        out.copy_from_slice(&sums);
    }
}

at_run_time! {
    /// `L⁻¹(x − m)` of each row `x` of a block, by columns. The arguments are those of [`square_norms`]. The block may have any number
    /// of whole tiles.
    pub fn whitened(inverse: &[f64], block: &[f64], mean: &[f64], space: &mut [f64], out: &mut [f64]) = whitened_kernel
}

#[inline(always)]
fn whitened_kernel<A: Arithmetic>(
    inverse: &[f64],
    block: &[f64],
    mean: &[f64],
    space: &mut [f64],
    out: &mut [f64],
) {
    let dim = mean.len();
    let width = block.len() / dim;
    for tile in 0..width / TILE {
        subtract_mean(block, mean, tile, space);
        let mut i = 0;
        while i + 1 < dim {
            store_columns(
                whitened_columns::<A, 2>(inverse, dim, i, space),
                i * width + tile * TILE,
                width,
                out,
            );
            i += 2;
        }
        if i < dim {
            store_columns(
                whitened_columns::<A, 1>(inverse, dim, i, space),
                i * width + tile * TILE,
                width,
                out,
            );
        }
    }
}

#[inline(always)]
fn store_columns<const N: usize>(columns: [[f64; TILE]; N], first: usize, width: usize, out: &mut [f64]) {
    for (n, column) in columns.iter().enumerate() {
        out[first + n * width..][..TILE].copy_from_slice(column);
    }
}

at_run_time! {
    /// Adds the moments of the columns of weighted rows relative to `origin`, and returns the sum of the weights.
    fn add_column_moments(first: &mut [f64], second: &mut [f64], block: &[f64], origin: &[f64], weights: &[f64]) -> f64 =
        add_column_moments_kernel
}

#[inline(always)]
fn add_column_moments_kernel<A: Arithmetic>(
    first: &mut [f64],
    second: &mut [f64],
    block: &[f64],
    origin: &[f64],
    weights: &[f64],
) -> f64 {
    let columns = block.chunks_exact(BLOCK).zip(origin);
    for ((column, origin), (first, second)) in columns.zip(first.iter_mut().zip(second)) {
        let (mut sums, mut squares) = ([0.0; TILE], [0.0; TILE]);
        for (values, weights) in column.chunks_exact(TILE).zip(weights.chunks_exact(TILE)) {
            for r in 0..TILE {
                let deviation = values[r] - origin;
                let weighted = weights[r] * deviation;
                sums[r] += weighted;
                squares[r] = A::mul_add(weighted, deviation, squares[r]);
            }
        }
        *first += sums.iter().sum::<f64>();
        *second += squares.iter().sum::<f64>();
    }
    weights.iter().sum()
}

at_run_time! {
    /// `|L⁻¹(x − m)|²` of each row `x`, in whole tiles of [`TILE`] rows. `inverse` is `L⁻¹` by rows; `block` has the rows by
    /// columns. `space` has [`TILE`] numbers for each column. Norms above `most`, given for each row, may become infinite: this saves
    /// work.
    pub fn square_norms(inverse: &[f64], block: &[f64], mean: &[f64], most: Option<&[f64; BLOCK]>, space: &mut [f64], out: &mut [f64]) =
        square_norms_kernel
}

at_run_time! {
    /// Adds the moments of weighted rows relative to `origin`, and returns the sum of the weights.
    fn add_moments(first: &mut [f64], second: &mut [f64], block: &[f64], origin: &[f64], weights: &[f64], space: &mut [Quad]) -> f64 =
        add_moments_kernel
}

/// [`add_moments`] by BLAS.
#[cfg(feature = "openblas")]
fn add_moments_by_blas(
    first: &mut [f64],
    second: &mut [f64],
    block: &[f64],
    origin: &[f64],
    weights: &[f64],
    space: &mut [Quad],
) -> f64 {
    let dim = first.len();
    let deviations = Quad::flat_mut(space);
    for ((to, column), origin) in
        deviations.chunks_exact_mut(BLOCK).zip(block.chunks_exact(BLOCK)).zip(origin)
    {
        to.iter_mut().zip(column).for_each(|(to, value)| *to = value - origin);
    }
    let block = ndarray::ArrayView2::from_shape((dim, BLOCK), &*deviations).expect("blocks are whole");
    let weighted = &block * &ndarray::ArrayView1::from(weights);
    first.iter_mut().zip(weighted.outer_iter()).for_each(|(sum, column)| *sum += column.sum());
    let mut second = ndarray::ArrayViewMut2::from_shape((dim, dim), second).expect("a square matrix");
    ndarray::linalg::general_mat_mul(1.0, &weighted, &block.t(), 1.0, &mut second);
    weights.iter().sum()
}

/// Columns between two checks. A tile whose rows all exceed their limit by then is skipped.
const CHECK_EVERY: usize = 4;

#[inline(always)]
fn square_norms_kernel<A: Arithmetic>(
    inverse: &[f64],
    block: &[f64],
    mean: &[f64],
    most: Option<&[f64; BLOCK]>,
    space: &mut [f64],
    out: &mut [f64],
) {
    let dim = mean.len();
    for (tile, out) in out.chunks_exact_mut(TILE).enumerate() {
        let most = most.map(|most| &most[tile * TILE..][..TILE]);
        subtract_mean(block, mean, tile, space);
        let mut norms = [0.0; TILE];
        let mut i = 0;
        while i + 1 < dim {
            whiten::<A, 2>(inverse, dim, i, space, &mut norms);
            i += 2;
            if let Some(most) = most
                && i % CHECK_EVERY == 0
                && norms.iter().zip(most).all(|(norm, most)| norm > most)
            {
                norms.fill(f64::INFINITY);
                i = dim;
            }
        }
        if i < dim {
            whiten::<A, 1>(inverse, dim, i, space, &mut norms);
        }
        out.copy_from_slice(&norms);
    }
}

/// `x − m` of the rows of a tile.
#[inline(always)]
fn subtract_mean(block: &[f64], mean: &[f64], tile: usize, deviations: &mut [f64]) {
    let stride = block.len() / mean.len();
    for (j, (to, mean)) in deviations.chunks_exact_mut(TILE).zip(mean).enumerate() {
        let column = &block[j * stride + tile * TILE..][..TILE];
        for (to, value) in to.iter_mut().zip(column) {
            *to = value - mean;
        }
    }
}

/// Adds to `norms` the squares of the whitened columns `i..i + N` of a tile. Elements of `L⁻¹` above the diagonal are zero.
#[inline(always)]
fn whiten<A: Arithmetic, const N: usize>(
    inverse: &[f64],
    dim: usize,
    i: usize,
    deviations: &[f64],
    norms: &mut [f64; TILE],
) {
    for sums in whitened_columns::<A, N>(inverse, dim, i, deviations) {
        for (norm, value) in norms.iter_mut().zip(sums) {
            *norm = A::mul_add(value, value, *norm);
        }
    }
}

/// The whitened columns `i..i + N` of a tile.
#[inline(always)]
fn whitened_columns<A: Arithmetic, const N: usize>(
    inverse: &[f64],
    dim: usize,
    i: usize,
    deviations: &[f64],
) -> [[f64; TILE]; N] {
    let rows = &inverse[i * dim..][..N * dim];
    let mut sums = [[0.0; TILE]; N];
    for (j, column) in deviations[..(i + N) * TILE].chunks_exact(TILE).enumerate() {
        for n in 0..N {
            let coefficient = rows[n * dim + j];
            for (sum, value) in sums[n].iter_mut().zip(column) {
                *sum = A::mul_add(coefficient, *value, *sum);
            }
        }
    }
    sums
}

/// Quads in a block.
const QUADS: usize = BLOCK / 4;

#[inline(always)]
fn add_moments_kernel<A: Arithmetic>(
    first: &mut [f64],
    second: &mut [f64],
    block: &[f64],
    origin: &[f64],
    weights: &[f64],
    space: &mut [Quad],
) -> f64 {
    let quad = |values: &[f64], r: usize| {
        A::Vector::load(&Quad([values[r], values[r + 1], values[r + 2], values[r + 3]]))
    };
    let zero = A::Vector::splat(0.0);
    let (mut roots, mut count) = ([Quad::default(); QUADS], zero);
    for (r, root) in (0..).step_by(4).zip(&mut roots) {
        let weight = quad(weights, r);
        count = count + weight;
        weight.sqrt().store(root);
    }
    // Rows are multiplied by the roots of their weights, so that their products have the weights.
    for (j, (column, scaled)) in block.chunks_exact(BLOCK).zip(space.chunks_exact_mut(QUADS)).enumerate() {
        let (origin, mut sum) = (A::Vector::splat(origin[j]), zero);
        for (r, (root, scaled)) in (0..).step_by(4).zip(roots.iter().zip(scaled)) {
            let root = A::Vector::load(root);
            let value = (quad(column, r) - origin) * root;
            value.store(scaled);
            sum = value.mul_add(root, sum);
        }
        first[j] += sum.sum();
    }
    add_gram::<A>(second, space, QUADS, BLOCK);
    count.sum()
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
            let weights: [f64; BLOCK] = std::array::from_fn(|i| (i % 7) as f64 / 7.0);
            let whitened = rows.dot(&inverse.t());
            let weighted = Array2::from_shape_fn((BLOCK, dim), |(i, j)| weights[i] * rows[(i, j)]);
            let second = weighted.t().dot(&rows);
            let flat = inverse.as_slice().unwrap();
            let (origin, mut space) = (vec![0.0; dim], vec![0.0; dim * TILE]);
            for kernel in [square_norms_kernel::<Plain>, square_norms] {
                let mut norms = [0.0; BLOCK];
                kernel(flat, block, &origin, None, &mut space, &mut norms);
                for (norm, row) in norms.iter().zip(whitened.outer_iter()) {
                    assert!((norm - row.dot(&row)).abs() < 1e-12 * (1.0 + norm));
                }
            }
            let mut exact = [0.0; BLOCK];
            square_norms(flat, block, &origin, None, &mut space, &mut exact);
            let most: [f64; BLOCK] =
                std::array::from_fn(|r| if r < 64 { f64::INFINITY } else { 0.5 * exact[r] });
            let mut norms = [0.0; BLOCK];
            square_norms(flat, block, &origin, Some(&most), &mut space, &mut norms);
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
            let scales: Vec<f64> = (0..dim).map(|j| 1.0 / (1 + j) as f64).collect();
            for kernel in [scaled_distances_kernel::<Plain>, scaled_distances] {
                let mut distances = [0.0; BLOCK];
                kernel(block, &mean, &scales, &mut distances);
                for (distance, row) in distances.iter().zip(rows.outer_iter()) {
                    let columns = row.iter().zip(&mean).zip(&scales);
                    let exact: f64 = columns.map(|((x, m), s)| ((x - m) * s).powi(2)).sum();
                    assert!((distance - exact).abs() < 1e-12 * (1.0 + exact));
                }
            }
            for kernel in [whitened_kernel::<Plain>, super::whitened] {
                let mut columns = vec![0.0; dim * BLOCK];
                kernel(flat, block, &origin, &mut vec![0.0; dim * TILE], &mut columns);
                for ((i, j), exact) in whitened.indexed_iter() {
                    assert!((columns[j * BLOCK + i] - exact).abs() < 1e-12 * (1.0 + exact.abs()));
                }
            }
            for kernel in [add_column_moments_kernel::<Plain>, add_column_moments] {
                let mut sums = Moments::of_columns(dim);
                kernel(&mut sums.first, &mut sums.second, block, &origin, &weights);
                for i in 0..dim {
                    assert!((sums.first[i] - weighted.column(i).sum()).abs() < 1e-11);
                    assert!((sums.second[i] - second[(i, i)]).abs() < 1e-11);
                }
            }
            for kernel in [
                add_moments_kernel::<Plain>,
                add_moments,
                #[cfg(feature = "openblas")]
                add_moments_by_blas,
            ] {
                let mut sums = Moments::new(dim);
                let mut space = vec![Quad::default(); dim * QUADS];
                let count = kernel(&mut sums.first, &mut sums.second, block, &origin, &weights, &mut space);
                assert!((count - weights.iter().sum::<f64>()).abs() < 1e-11);
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
