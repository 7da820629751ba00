//! Means and matrices of four components, interleaved: the four values of each element are adjacent in memory. One vector
//! instruction works on all four components, even with a single column.
//!
//! The matrices are `P` and `M` of [`crate::linalg::precision`]. As there, the last update of `M` and the last rows of `P` stay
//! pending. Triangles are stored by rows.

mod gaps;

use crate::learn::kernel::component::Component;
use crate::learn::kernel::precision::Precision;
use crate::linalg::simd::{Arithmetic, at_run_time};
use crate::linalg::vector::{Quad, Vector, Vector4};
pub(in crate::learn) use gaps::MissingColumns;

/// The largest number of columns in this form. With more, unused lanes cost more than the form saves.
pub(in crate::learn) const MAX_COLUMNS: usize = 16;

/// Rows that are added to `P` together.
const MAX_PENDING: usize = 4;

/// One number for each column and component.
type Columns = [Quad; MAX_COLUMNS];

/// A lower triangle of each component, by rows.
type Triangle = [Quad; row(MAX_COLUMNS)];

/// Means and matrices of four components. Lanes whose component is in the Cholesky form have `P = M = 0`.
#[derive(Debug, Clone)]
pub(in crate::learn) struct Interleaved {
    dim: usize,
    mean: Columns,
    /// `P` without the pending rows.
    matrix: Triangle,
    /// `M` without the pending update.
    inverse: Triangle,
    /// `u = Mv` of the last row, and space for that of the next row.
    products: [Columns; 2],
    /// The index in `products` of the last row.
    last: usize,
    /// `v` of the pending rows of `P`, followed by that of the current row.
    deviations: [Columns; MAX_PENDING],
    /// `t` of the pending rows of `P`; 0 after them.
    weights: [Quad; MAX_PENDING],
    pending_rows: usize,
}

impl Interleaved {
    pub fn new(components: &[Component], dim: usize) -> Self {
        let none = [Quad::default(); MAX_COLUMNS];
        let mut own = Interleaved {
            dim,
            mean: none,
            matrix: [Quad::default(); row(MAX_COLUMNS)],
            inverse: [Quad::default(); row(MAX_COLUMNS)],
            products: [none; 2],
            last: 0,
            deviations: [none; MAX_PENDING],
            weights: [Quad::default(); MAX_PENDING],
            pending_rows: 0,
        };
        for (lane, component) in components.iter().enumerate() {
            let mean = component.unpadded(&component.mean);
            own.mean.iter_mut().zip(mean).for_each(|(to, value)| to.0[lane] = *value);
            own.load_lane(lane, component.precision.as_deref());
        }
        own
    }

    pub fn mean(&self, lane: usize) -> Vec<f64> {
        self.lane_mean(lane).collect()
    }

    pub fn lane_mean(&self, lane: usize) -> impl Iterator<Item = f64> {
        self.mean[..self.dim].iter().map(move |quad| quad.0[lane])
    }

    /// `x − m` of the current row.
    pub fn deviation(&self, lane: usize) -> Vec<f64> {
        self.deviations[self.pending_rows][..self.dim].iter().map(|quad| quad.0[lane]).collect()
    }

    /// `m ← m + step·v` for one component.
    pub fn move_mean(&mut self, lane: usize, step: f64, v: &[f64]) {
        self.mean.iter_mut().zip(v).for_each(|(mean, v)| mean.0[lane] += step * v);
    }

    /// Copies a component's matrices, to which nothing is pending, into its lane.
    pub fn load_lane(&mut self, lane: usize, precision: Option<&Precision>) {
        let places = (0..self.dim).flat_map(|i| (0..=i).map(move |j| (i, j)));
        for ((i, j), (matrix, inverse)) in places.zip(self.matrix.iter_mut().zip(&mut self.inverse)) {
            matrix.0[lane] = precision.map_or(0.0, |own| own.matrix(i, j));
            inverse.0[lane] = precision.map_or(0.0, |own| own.inverse(i, j));
        }
    }

    /// Copies a lane back to its component: the current row's deviation, and the matrices without what is pending.
    pub fn store_lane(&self, lane: usize, component: &mut Component) {
        let deviation = Quad::flat_mut(&mut component.deviation);
        let current = &self.deviations[self.pending_rows][..self.dim];
        deviation.iter_mut().zip(current).for_each(|(to, from)| *to = from.0[lane]);
        if let Some(precision) = &mut component.precision {
            precision.set_matrix(|i, j| self.matrix[row(i) + j].0[lane]);
            precision.set_inverse(|i, j| self.inverse[row(i) + j].0[lane]);
        }
    }

    /// Applies the pending update of `M`, with this gain, and computes `v` and `u = Mv` of a row. Returns `vᵀMv`. If the row has
    /// gaps, `v` is zero where `x` is NaN.
    #[inline(always)]
    pub fn quadratic_forms<A: Arithmetic, const GAPS: bool>(
        &mut self,
        x: &[f64],
        gain: A::Vector,
    ) -> A::Vector {
        match self.dim {
            1 => self.quadratic_forms_in_registers::<A, GAPS, 1>(x, gain),
            2 => self.quadratic_forms_in_registers::<A, GAPS, 2>(x, gain),
            3 => self.quadratic_forms_in_registers::<A, GAPS, 3>(x, gain),
            4 => self.quadratic_forms_in_registers::<A, GAPS, 4>(x, gain),
            _ => self.quadratic_forms_by_row_pairs::<A, GAPS>(x, gain),
        }
    }

    /// For few columns: `u`, `v` and `Mv` stay in registers.
    #[inline(always)]
    fn quadratic_forms_in_registers<A: Arithmetic, const GAPS: bool, const D: usize>(
        &mut self,
        x: &[f64],
        gain: A::Vector,
    ) -> A::Vector {
        let Interleaved { mean, inverse, products: [product, _], deviations, pending_rows, .. } = self;
        let (x, deviation) = (&x[..D], &mut deviations[*pending_rows]);
        let zero = A::Vector::splat(0.0);
        let (mut v, mut u, mut new) = ([zero; D], [zero; D], [zero; D]);
        for i in 0..D {
            v[i] = deviation_of::<A, GAPS>(x[i], &mean[i]);
            v[i].store(&mut deviation[i]);
            u[i] = A::Vector::load(&product[i]);
        }
        for i in 0..D {
            let gain_u = gain * u[i];
            for j in 0..=i {
                let m = updated::<A>(&mut inverse[row(i) + j], gain_u, u[j]);
                new[i] = m.mul_add(v[j], new[i]);
                if j < i {
                    new[j] = m.mul_add(v[i], new[j]);
                }
            }
        }
        let mut form = zero;
        for i in 0..D {
            new[i].store(&mut product[i]);
            form = v[i].mul_add(new[i], form);
        }
        form
    }

    /// For more columns: two rows of the triangle at a time. Each pair is compiled for its own length.
    #[inline(always)]
    fn quadratic_forms_by_row_pairs<A: Arithmetic, const GAPS: bool>(
        &mut self,
        x: &[f64],
        gain: A::Vector,
    ) -> A::Vector {
        let Interleaved { dim, mean, inverse: m, products, last, deviations, pending_rows, .. } = self;
        let v = &mut deviations[*pending_rows];
        for ((v, x), m) in v.iter_mut().zip(&x[..*dim]).zip(&*mean) {
            deviation_of::<A, GAPS>(*x, m).store(v);
        }
        let [first, second] = products;
        let (u, out) = if *last == 0 { (first, second) } else { (second, first) };
        *last ^= 1;
        let mut form = A::Vector::splat(0.0);
        macro_rules! rows {
            ($($i:literal)*) => {$(
                if *dim == $i {
                    return form;
                }
                if *dim == $i + 1 {
                    return form + one_row::<A, $i>(m, gain, u, v, out);
                }
                form = form + two_rows::<A, $i>(m, gain, u, v, out);
            )*};
        }
        rows!(0 2 4 6 8 10 12 14);
        form
    }

    /// `m ← m + step·v`.
    #[inline(always)]
    pub fn move_means<A: Arithmetic>(&mut self, step: A::Vector) {
        let deviation = &self.deviations[self.pending_rows];
        for (m, v) in self.mean[..self.dim].iter_mut().zip(deviation) {
            step.mul_add(A::Vector::load(v), A::Vector::load(m)).store(m);
        }
    }

    /// Adds `t v vᵀ` to the pending rows of `P`.
    #[inline(always)]
    pub fn add_row<A: Arithmetic>(&mut self, t: A::Vector) {
        t.store(&mut self.weights[self.pending_rows]);
        self.pending_rows += 1;
        if self.pending_rows == MAX_PENDING {
            self.flush();
        }
    }

    /// Adds the pending rows to `P`.
    #[inline(never)]
    fn flush(&mut self) {
        add_rows(&mut self.matrix, self.dim, &self.deviations, &self.weights);
        self.weights = [Quad::default(); MAX_PENDING];
        if let Some(current) = self.deviations.get(self.pending_rows) {
            self.deviations[0] = *current;
        }
        self.pending_rows = 0;
    }

    /// Applies what is pending to `P` and `M`, and sets the gain to 0.
    pub fn apply_pending(&mut self, gain: &mut Quad) {
        self.flush();
        apply_gain(&mut self.inverse, gain, &self.products[self.last][..self.dim]);
        *gain = Quad::default();
    }
}

/// The index of the first element of row `i` of a triangle.
const fn row(i: usize) -> usize {
    i * (i + 1) / 2
}

/// The deviation of a value from the means; with gaps, zero for NaN.
#[inline(always)]
fn deviation_of<A: Arithmetic, const GAPS: bool>(x: f64, mean: &Quad) -> A::Vector {
    if GAPS && x.is_nan() { A::Vector::splat(0.0) } else { A::Vector::splat(x) - A::Vector::load(mean) }
}

/// Updates an element of `M`, given `g u_i` and `u_j`, and returns it.
#[inline(always)]
fn updated<A: Arithmetic>(place: &mut Quad, gain_u: A::Vector, u: A::Vector) -> A::Vector {
    let m = gain_u.neg_mul_add(u, A::Vector::load(place));
    m.store(place);
    m
}

/// Rows `I` and `I + 1` of `M ← M − g u uᵀ` and of `out = Mv`, and their terms in the rows of `out` above them. Returns their
/// terms of `vᵀMv`.
#[inline(always)]
fn two_rows<A: Arithmetic, const I: usize>(
    m: &mut Triangle,
    gain: A::Vector,
    u: &Columns,
    v: &Columns,
    out: &mut Columns,
) -> A::Vector {
    let zero = A::Vector::splat(0.0);
    let (u_i, v_i) = (A::Vector::load(&u[I]), A::Vector::load(&v[I]));
    let (u_k, v_k) = (A::Vector::load(&u[I + 1]), A::Vector::load(&v[I + 1]));
    let (gain_i, gain_k) = (gain * u_i, gain * u_k);
    let (mut sum_i, mut sum_k) = (zero, zero);
    for j in 0..I {
        let (u, v) = (A::Vector::load(&u[j]), A::Vector::load(&v[j]));
        let m_i = updated::<A>(&mut m[row(I) + j], gain_i, u);
        let m_k = updated::<A>(&mut m[row(I + 1) + j], gain_k, u);
        sum_i = m_i.mul_add(v, sum_i);
        sum_k = m_k.mul_add(v, sum_k);
        m_k.mul_add(v_k, m_i.mul_add(v_i, A::Vector::load(&out[j]))).store(&mut out[j]);
    }
    let m_i = updated::<A>(&mut m[row(I) + I], gain_i, u_i);
    let across = updated::<A>(&mut m[row(I + 1) + I], gain_k, u_i);
    let m_k = updated::<A>(&mut m[row(I + 1) + I + 1], gain_k, u_k);
    let sum_k = across.mul_add(v_i, sum_k);
    across.mul_add(v_k, m_i.mul_add(v_i, sum_i)).store(&mut out[I]);
    m_k.mul_add(v_k, sum_k).store(&mut out[I + 1]);
    v_i * m_i.mul_add(v_i, sum_i + sum_i) + v_k * m_k.mul_add(v_k, sum_k + sum_k)
}

/// [`two_rows`] for row `I` alone, the last one of an odd number of columns.
#[inline(always)]
fn one_row<A: Arithmetic, const I: usize>(
    m: &mut Triangle,
    gain: A::Vector,
    u: &Columns,
    v: &Columns,
    out: &mut Columns,
) -> A::Vector {
    let zero = A::Vector::splat(0.0);
    let (u_i, v_i) = (A::Vector::load(&u[I]), A::Vector::load(&v[I]));
    let gain_u = gain * u_i;
    let mut sum = zero;
    for j in 0..I {
        let m = updated::<A>(&mut m[row(I) + j], gain_u, A::Vector::load(&u[j]));
        sum = m.mul_add(A::Vector::load(&v[j]), sum);
        m.mul_add(v_i, A::Vector::load(&out[j])).store(&mut out[j]);
    }
    let m = updated::<A>(&mut m[row(I) + I], gain_u, u_i);
    m.mul_add(v_i, sum).store(&mut out[I]);
    v_i * m.mul_add(v_i, sum + sum)
}

#[inline(always)]
fn apply_gain_kernel<A: Arithmetic>(m: &mut [Quad], gain: &Quad, u: &[Quad]) {
    let gain = A::Vector::load(gain);
    for (i, u_i) in u.iter().enumerate() {
        let gain_u = gain * A::Vector::load(u_i);
        for (place, u) in m[row(i)..row(i + 1)].iter_mut().zip(u) {
            updated::<A>(place, gain_u, A::Vector::load(u));
        }
    }
}

at_run_time! {
    /// `M ← M − g u uᵀ`, with the same bits as in [`Interleaved::quadratic_forms`].
    fn apply_gain(m: &mut [Quad], gain: &Quad, u: &[Quad]) = apply_gain_kernel
}

#[inline(always)]
fn add_rows_kernel<A: Arithmetic>(
    matrix: &mut Triangle,
    dim: usize,
    rows: &[Columns; MAX_PENDING],
    weights: &[Quad; MAX_PENDING],
) {
    macro_rules! rows {
        ($($i:literal)*) => {$(
            if dim == $i {
                return;
            }
            add_to_row::<A, $i>(matrix, rows, weights);
        )*};
    }
    rows!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
}

/// Row `I` of [`add_rows`].
#[inline(always)]
fn add_to_row<A: Arithmetic, const I: usize>(
    matrix: &mut Triangle,
    rows: &[Columns; MAX_PENDING],
    weights: &[Quad; MAX_PENDING],
) {
    let mut weighted = [A::Vector::splat(0.0); MAX_PENDING];
    for row in 0..MAX_PENDING {
        weighted[row] = A::Vector::load(&weights[row]) * A::Vector::load(&rows[row][I]);
    }
    for j in 0..=I {
        let place = &mut matrix[row(I) + j];
        let mut sum = A::Vector::load(place);
        for row in 0..MAX_PENDING {
            sum = weighted[row].mul_add(A::Vector::load(&rows[row][j]), sum);
        }
        sum.store(place);
    }
}

at_run_time! {
    /// `P ← P + Σ t v vᵀ` over the rows, in their order.
    fn add_rows(matrix: &mut Triangle, dim: usize, rows: &[Columns; MAX_PENDING], weights: &[Quad; MAX_PENDING]) = add_rows_kernel
}
