//! The precision form of a component's matrix: `Ψ = c·P`, where `P` is a sum of positive terms, and `M ≈ P⁻¹`, which gives a
//! quadratic form with one product.
//!
//! Adding `t v vᵀ` to `P` subtracts `g u uᵀ` from `M`, with `u = Mv` and `g = t/(1 + t vᵀu)`. This update stays pending until
//! the next product, which reads `M` in any case, so the triangle is read once per row. `P` is updated by
//! [`MAX_PENDING`] rows at a time. Each element adds its terms in the order of the rows, so an earlier update gives the same
//! bits.
//!
//! Both matrices are lower triangles of 4 × 4 blocks, stored by panels (four columns, from the diagonal block down) and
//! within a block by columns. Diagonal blocks are stored whole.

use crate::linalg::simd::{Arithmetic, at_run_time};
use crate::linalg::vector::{Quad, Vector, Vector4};

/// Rows that are added to `P` together.
const MAX_PENDING: usize = 16;

/// A matrix in the precision form.
#[derive(Debug, Clone)]
pub(in crate::learn) struct Precision {
    dim: usize,
    /// 4 × 4 blocks in the first panel.
    blocks: usize,
    /// `c`.
    pub scale: f64,
    /// `ln c`, computed by the last rebuild and updated since.
    pub log_scale: f64,
    /// `P` without the pending rows.
    matrix: Vec<Quad>,
    /// `M` without the pending update.
    inverse: Vec<Quad>,
    /// `u = Mv` of the last row.
    product: Vec<Quad>,
    /// `u` of the row before the last.
    previous_product: Vec<Quad>,
    /// `g` of the pending update of `M`; 0 if there is none.
    pub gain: f64,
    /// `√t v` of each pending row of `P`.
    pending: Vec<Quad>,
    pending_rows: usize,
    /// `ln |P|` at the last rebuild.
    pub log_det: f64,
    /// The increase of `ln |P|` since the last rebuild.
    pub log_growth: f64,
}

/// Properties of `P` that a rebuild computes.
pub(in crate::learn) struct Inspection {
    /// Variance of each column given the columns before it.
    pub pivots: Vec<f64>,
    /// `max P_jj M_jj`: the largest factor by which a column's variance shrinks when all other columns are known. It
    /// measures the conditioning and does not depend on units.
    pub inflation: f64,
    /// The smallest and the largest element on the diagonals of `P` and `M`.
    pub range: (f64, f64),
}

/// Quads in a triangle of blocks.
fn triangle(blocks: usize) -> usize {
    2 * blocks * (blocks + 1)
}

/// The index of element `(i, j)` in a triangle of blocks, for `j ≤ i` or both in one diagonal block.
fn place(blocks: usize, i: usize, j: usize) -> usize {
    let (row, panel) = (i / 4, j / 4);
    let before = panel * blocks - panel * panel.saturating_sub(1) / 2;
    16 * (before + row - panel) + 4 * (j % 4) + i % 4
}

impl Precision {
    /// `c·P`, with `P` given by the elements of its lower triangle. `M` is zero until [`Precision::rebuild`] or
    /// [`Precision::set_inverse`].
    pub fn new(dim: usize, scale: f64, lower: impl Fn(usize, usize) -> f64) -> Self {
        let blocks = Quad::needed(dim);
        let zeros = |count: usize| vec![Quad::default(); count];
        let mut own = Precision {
            dim,
            blocks,
            scale,
            log_scale: scale.ln(),
            matrix: zeros(triangle(blocks)),
            inverse: zeros(triangle(blocks)),
            product: zeros(blocks),
            previous_product: zeros(blocks),
            gain: 0.0,
            pending: zeros(MAX_PENDING * blocks),
            pending_rows: 0,
            log_det: 0.0,
            log_growth: 0.0,
        };
        fill(&mut own.matrix, dim, lower);
        own
    }

    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Replaces `P` by one that includes all rows.
    pub fn set_matrix(&mut self, lower: impl Fn(usize, usize) -> f64) {
        self.pending_rows = 0;
        fill(&mut self.matrix, self.dim, lower);
    }

    /// Replaces `M` by one that includes all updates.
    pub fn set_inverse(&mut self, lower: impl Fn(usize, usize) -> f64) {
        self.gain = 0.0;
        fill(&mut self.inverse, self.dim, lower);
    }

    /// Applies the pending update of `M`, with this gain, and computes `u = Mv`. Returns four numbers whose sum is `vᵀMv`.
    #[inline(always)]
    pub fn form<A: Arithmetic>(&mut self, v: &[Quad], gain: f64) -> A::Vector {
        let Precision { inverse, product: out, previous_product: u, .. } = self;
        std::mem::swap(out, u);
        if gain > 0.0 {
            product::<A, true>(inverse, gain, u, v, out)
        } else {
            product::<A, false>(inverse, 0.0, u, v, out)
        }
    }

    /// Adds `t v vᵀ` to the pending rows of `P`, given `root = √t`.
    #[inline(always)]
    pub fn add<A: Arithmetic>(&mut self, v: &[Quad], root: f64) {
        let pending = &mut self.pending[self.pending_rows * v.len()..];
        let root = A::Vector::splat(root);
        for (to, v) in pending.iter_mut().zip(v) {
            (root * A::Vector::load(v)).store(to);
        }
        self.pending_rows += 1;
        if self.pending_rows == MAX_PENDING {
            self.flush();
        }
    }

    /// Adds the pending rows to `P`.
    #[inline(never)]
    fn flush(&mut self) {
        let pending = &self.pending[..self.pending_rows * self.blocks];
        add_rows(&mut self.matrix, pending, self.blocks);
        self.pending_rows = 0;
    }

    /// Applies what is pending to `P` and `M`.
    pub fn apply_pending(&mut self) {
        self.flush();
        if self.gain > 0.0 {
            apply_gain(&mut self.inverse, self.gain, &self.product, &mut self.previous_product);
            self.gain = 0.0;
        }
    }

    /// A copy to which everything pending is applied.
    pub fn with_pending(&self) -> Self {
        let mut current = self.clone();
        current.apply_pending();
        current
    }

    /// Computes `M` and `ln |P|` from `P`.
    pub fn rebuild(&mut self) -> Inspection {
        self.flush();
        self.gain = 0.0;
        self.log_growth = 0.0;
        self.fold_scale();
        self.log_scale = self.scale.ln();
        let dim = self.dim;
        let mut lower: Vec<f64> =
            (0..dim).flat_map(|i| (0..=i).map(move |j| (i, j))).map(|(i, j)| self.matrix(i, j)).collect();
        let diagonal: Vec<f64> = (0..dim).map(|i| self.matrix(i, i)).collect();
        let mut pivots = vec![0.0; dim];
        sweep(&mut lower, &mut pivots, &mut self.product);
        fill(&mut self.inverse, dim, |i, j| -lower[i * (i + 1) / 2 + j]);
        self.log_det = pivots.iter().map(|pivot| pivot.ln()).sum();
        let mut found = Inspection { pivots, inflation: 1.0, range: (f64::INFINITY, 0.0) };
        for (i, &variance) in diagonal.iter().enumerate() {
            let precision = -lower[i * (i + 1) / 2 + i];
            found.inflation = found.inflation.max(variance * precision);
            found.range.0 = found.range.0.min(variance).min(precision);
            found.range.1 = found.range.1.max(variance).max(precision);
        }
        found
    }

    /// Moves the power of two in `c` into `P`. This is exact.
    fn fold_scale(&mut self) {
        let (_, exponent) = libm::frexp(self.scale);
        let power = libm::ldexp(1.0, exponent);
        self.scale /= power;
        Quad::flat_mut(&mut self.matrix).iter_mut().for_each(|value| *value *= power);
    }

    /// An element of `P`, `j ≤ i`, without the pending rows.
    pub fn matrix(&self, i: usize, j: usize) -> f64 {
        Quad::flat(&self.matrix)[place(self.blocks, i, j)]
    }

    /// An element of `M`, `j ≤ i`, without the pending update.
    pub fn inverse(&self, i: usize, j: usize) -> f64 {
        Quad::flat(&self.inverse)[place(self.blocks, i, j)]
    }
}

/// Fills a triangle of blocks, including both halves of the diagonal blocks.
fn fill(triangle: &mut [Quad], dim: usize, lower: impl Fn(usize, usize) -> f64) {
    let blocks = Quad::needed(dim);
    let flat = Quad::flat_mut(triangle);
    for i in 0..dim {
        for j in 0..=i {
            let value = lower(i, j);
            flat[place(blocks, i, j)] = value;
            if i / 4 == j / 4 {
                flat[place(blocks, j, i)] = value;
            }
        }
    }
}

/// A diagonal block: `M ← M − g u uᵀ` (if `UPDATE`). Returns `out` plus the block's product with `v`.
///
/// Multiplying the elements of `u` first keeps both halves of the block equal to the last bit.
#[inline(always)]
fn diagonal_block<A: Arithmetic, const UPDATE: bool>(
    block: &mut [Quad],
    u: &Quad,
    gain: A::Vector,
    v: &Quad,
    out: A::Vector,
) -> A::Vector {
    let mut sums = [out, A::Vector::splat(0.0)];
    for (c, column) in block.iter_mut().enumerate() {
        let mut m = A::Vector::load(column);
        if UPDATE {
            m = (A::Vector::load(u) * A::Vector::splat(u.0[c])).mul_add(gain, m);
            m.store(column);
        }
        sums[c % 2] = m.mul_add(A::Vector::splat(v.0[c]), sums[c % 2]);
    }
    sums[0] + sums[1]
}

/// The values of a panel's four columns, broadcast for its blocks below the diagonal.
struct Panel<V> {
    /// `−g u_c`.
    gains: [V; 4],
    /// `v_c`.
    v: [V; 4],
    /// `Σ_i M_ic v_i`, over the rows of each lane.
    sums: [V; 4],
}

impl<V: Vector4> Panel<V> {
    #[inline(always)]
    fn new(u: &Quad, minus_gain: V, v: &Quad) -> Self {
        let zero = V::splat(0.0);
        let [a, b, c, d] = u.0;
        let gains = [
            V::splat(a) * minus_gain,
            V::splat(b) * minus_gain,
            V::splat(c) * minus_gain,
            V::splat(d) * minus_gain,
        ];
        let [a, b, c, d] = v.0;
        Panel { gains, v: [V::splat(a), V::splat(b), V::splat(c), V::splat(d)], sums: [zero; 4] }
    }

    /// A block below the diagonal: `M ← M − g u uᵀ` (if `UPDATE`). Returns `out` plus the block's product with `v`.
    #[inline(always)]
    fn block<const UPDATE: bool>(&mut self, block: &mut [Quad], u: V, v: V, mut out: V) -> V {
        for (c, column) in block.iter_mut().enumerate() {
            let mut m = V::load(column);
            if UPDATE {
                m = u.mul_add(self.gains[c], m);
                m.store(column);
            }
            out = m.mul_add(self.v[c], out);
            self.sums[c] = m.mul_add(v, self.sums[c]);
        }
        out
    }
}

/// `M ← M − g u uᵀ` (if `UPDATE`), then `out = Mv`. Returns four numbers whose sum is `vᵀMv`.
#[inline(always)]
fn product<A: Arithmetic, const UPDATE: bool>(
    m: &mut [Quad],
    gain: f64,
    u: &[Quad],
    v: &[Quad],
    out: &mut [Quad],
) -> A::Vector {
    let count = v.len();
    let (u, out) = (&u[..count], &mut out[..count]);
    let minus_gain = A::Vector::splat(-gain);
    let mut m = &mut m[..triangle(count)];
    out.fill(Quad::default());
    let mut form = A::Vector::splat(0.0);
    for p in 0..count {
        let (panel, rest) = m.split_at_mut(4 * (count - p));
        m = rest;
        let (diagonal, below) = panel.split_at_mut(4);
        let sum = A::Vector::load(&out[p]);
        let sum = diagonal_block::<A, UPDATE>(diagonal, &u[p], minus_gain, &v[p], sum);
        let mut own = Panel::<A::Vector>::new(&u[p], minus_gain, &v[p]);
        let rows = u[p + 1..].iter().zip(&v[p + 1..]).zip(&mut out[p + 1..]);
        for (block, ((u, v), out)) in below.chunks_exact_mut(4).zip(rows) {
            let sum = A::Vector::load(out);
            own.block::<UPDATE>(block, A::Vector::load(u), A::Vector::load(v), sum).store(out);
        }
        let sum = sum + A::Vector::sums(own.sums);
        sum.store(&mut out[p]);
        form = A::Vector::load(&v[p]).mul_add(sum, form);
    }
    form
}

#[inline(always)]
fn apply_gain_kernel<A: Arithmetic>(m: &mut [Quad], gain: f64, u: &[Quad], scratch: &mut [Quad]) {
    // Only the update counts; the product goes to scratch space.
    product::<A, true>(m, gain, u, u, scratch);
}

at_run_time! {
    /// `M ← M − g u uᵀ`, with the same bits as in [`product`].
    fn apply_gain(m: &mut [Quad], gain: f64, u: &[Quad], scratch: &mut [Quad]) = apply_gain_kernel
}

#[inline(always)]
fn add_rows_kernel<A: Arithmetic>(matrix: &mut [Quad], rows: &[Quad], blocks: usize) {
    let mut rest = matrix;
    for p in 0..blocks {
        let (panel, after) = rest.split_at_mut(4 * (blocks - p));
        rest = after;
        // Two blocks at a time share the broadcast columns.
        for (pair, columns) in panel.chunks_mut(8).enumerate() {
            let i = p + 2 * pair;
            match columns.split_at_mut(4) {
                (first, []) => {
                    let mut sums = load_block::<A::Vector>(first);
                    for row in rows.chunks_exact(blocks) {
                        add_to_block(&mut sums, A::Vector::load(&row[i]), &row[p]);
                    }
                    store_block(sums, first);
                }
                (first, second) => {
                    let mut upper = load_block::<A::Vector>(first);
                    let mut lower = load_block::<A::Vector>(second);
                    for row in rows.chunks_exact(blocks) {
                        add_to_block(&mut upper, A::Vector::load(&row[i]), &row[p]);
                        add_to_block(&mut lower, A::Vector::load(&row[i + 1]), &row[p]);
                    }
                    store_block(upper, first);
                    store_block(lower, second);
                }
            }
        }
    }
}

#[inline(always)]
fn load_block<V: Vector4>(block: &[Quad]) -> [V; 4] {
    [V::load(&block[0]), V::load(&block[1]), V::load(&block[2]), V::load(&block[3])]
}

#[inline(always)]
fn store_block<V: Vector4>(sums: [V; 4], block: &mut [Quad]) {
    for (sum, column) in sums.into_iter().zip(block) {
        sum.store(column);
    }
}

#[inline(always)]
fn add_to_block<V: Vector4>(sums: &mut [V; 4], rows: V, columns: &Quad) {
    for (sum, column) in sums.iter_mut().zip(columns.0) {
        *sum = rows.mul_add(V::splat(column), *sum);
    }
}

at_run_time! {
    /// `P ← P + Σ v vᵀ` over the rows, in their order.
    fn add_rows(matrix: &mut [Quad], rows: &[Quad], blocks: usize) = add_rows_kernel
}

/// Replaces a symmetric matrix, given by the rows of its lower triangle, by minus its inverse (sweep operator). `pivots`
/// gets the variance of each column given the columns before it.
#[inline(always)]
fn sweep_kernel<A: Arithmetic>(lower: &mut [f64], pivots: &mut [f64], scratch: &mut [Quad]) {
    let dim = pivots.len();
    let column = &mut Quad::flat_mut(scratch)[..dim];
    for k in 0..dim {
        for (i, value) in column.iter_mut().enumerate() {
            *value = lower[if i < k { k * (k + 1) / 2 + i } else { i * (i + 1) / 2 + k }];
        }
        pivots[k] = column[k];
        let inverse = 1.0 / column[k];
        let mut rest = &mut lower[..];
        for i in 0..dim {
            let (row, after) = rest.split_at_mut(i + 1);
            rest = after;
            let factor = -column[i] * inverse;
            for (value, other) in row.iter_mut().zip(column.iter()) {
                *value = A::mul_add(factor, *other, *value);
            }
        }
        for (i, value) in column.iter().enumerate() {
            let at = if i < k { k * (k + 1) / 2 + i } else { i * (i + 1) / 2 + k };
            lower[at] = if i == k { -inverse } else { value * inverse };
        }
    }
}

at_run_time! {
    fn sweep(lower: &mut [f64], pivots: &mut [f64], scratch: &mut [Quad]) = sweep_kernel
}

#[cfg(test)]
mod tests;
