//! Means and matrices of four components abreast: of each element the four numbers stand side by side, so that all four
//! are worked on at once, however few columns there are.
//!
//! The matrices are those of [`super::precision`], `P` and `M`, and so is what is kept back of them: the last update of
//! `M`, and the last few of `P`. Triangles are kept by rows.

use super::component::Component;
use super::precision::Precision;
use super::simd::{Arithmetic, at_run_time};
use super::vector::{Quad, Vector, Vector4};

/// Up to so many columns components are kept abreast. With more, lanes without a component cost more than it saves.
pub(super) const MOST_COLUMNS: usize = 16;

/// Rows whose terms wait to be added to `P` together.
const WAITING: usize = 4;

/// One number of each component for each column.
type Columns = [Quad; MOST_COLUMNS];

/// Rows of a lower triangle.
type Triangle = [Quad; row(MOST_COLUMNS)];

/// See the module. Lanes whose component is not in the precision form hold zeros in `P` and `M`.
#[derive(Debug, Clone)]
pub(super) struct Abreast {
    dim: usize,
    mean: Columns,
    truth: Triangle,
    inverse: Triangle,
    /// `u = Mv` of the last row, and room for the next.
    products: [Columns; 2],
    /// Which of `products` is that of the last row.
    last: usize,
    /// `v` of rows that `P` still has to get, and after them that of the current row.
    deviations: [Columns; WAITING],
    /// `t` of rows that `P` still has to get; 0 beyond them.
    weights: [Quad; WAITING],
    rows_waiting: usize,
}

impl Abreast {
    pub fn new(components: &[Component], dim: usize) -> Self {
        let none = [Quad::default(); MOST_COLUMNS];
        let mut own = Abreast {
            dim,
            mean: none,
            truth: [Quad::default(); row(MOST_COLUMNS)],
            inverse: [Quad::default(); row(MOST_COLUMNS)],
            products: [none; 2],
            last: 0,
            deviations: [none; WAITING],
            weights: [Quad::default(); WAITING],
            rows_waiting: 0,
        };
        for (lane, component) in components.iter().enumerate() {
            let mean = component.unpadded(&component.mean);
            own.mean.iter_mut().zip(mean).for_each(|(to, value)| to.0[lane] = *value);
            own.take(lane, component.precision.as_deref());
        }
        own
    }

    pub fn mean(&self, lane: usize) -> Vec<f64> {
        self.mean[..self.dim].iter().map(|quad| quad.0[lane]).collect()
    }

    /// `x − m` of the current row.
    pub fn deviation(&self, lane: usize) -> Vec<f64> {
        self.deviations[self.rows_waiting][..self.dim].iter().map(|quad| quad.0[lane]).collect()
    }

    /// Takes a component's matrices, which have nothing that they still have to get.
    pub fn take(&mut self, lane: usize, precision: Option<&Precision>) {
        let places = (0..self.dim).flat_map(|i| (0..=i).map(move |j| (i, j)));
        for ((i, j), (truth, inverse)) in places.zip(self.truth.iter_mut().zip(&mut self.inverse)) {
            truth.0[lane] = precision.map_or(0.0, |own| own.truth(i, j));
            inverse.0[lane] = precision.map_or(0.0, |own| own.inverse(i, j));
        }
    }

    /// Gives a component's matrices back to it, once they are settled, and the current row's deviation.
    pub fn give(&self, lane: usize, component: &mut Component) {
        let deviation = Quad::flat_mut(&mut component.deviation);
        let current = &self.deviations[self.rows_waiting][..self.dim];
        deviation.iter_mut().zip(current).for_each(|(to, from)| *to = from.0[lane]);
        if let Some(precision) = &mut component.precision {
            precision.set_truth(|i, j| self.truth[row(i) + j].0[lane]);
            precision.set_inverse(|i, j| self.inverse[row(i) + j].0[lane]);
        }
    }

    /// Looks at a row, after the update that `M` still had to get, with this gain. Returns `vᵀMv`.
    #[inline(always)]
    pub fn look_at<A: Arithmetic>(&mut self, x: &[f64], gain: A::Vector) -> A::Vector {
        match self.dim {
            1 => self.look_at_few::<A, 1>(x, gain),
            2 => self.look_at_few::<A, 2>(x, gain),
            3 => self.look_at_few::<A, 3>(x, gain),
            4 => self.look_at_few::<A, 4>(x, gain),
            _ => self.look_at_more::<A>(x, gain),
        }
    }

    /// So few columns that all of `u`, `v` and `Mv` stay in registers.
    #[inline(always)]
    fn look_at_few<A: Arithmetic, const D: usize>(&mut self, x: &[f64], gain: A::Vector) -> A::Vector {
        let Abreast { mean, inverse, products: [product, _], deviations, rows_waiting, .. } = self;
        let (x, deviation) = (&x[..D], &mut deviations[*rows_waiting]);
        let zero = A::Vector::splat(0.0);
        let (mut v, mut u, mut new) = ([zero; D], [zero; D], [zero; D]);
        for i in 0..D {
            v[i] = A::Vector::splat(x[i]) - A::Vector::load(&mean[i]);
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

    /// Two rows of the triangle at a time, each pair compiled for its own length.
    #[inline(always)]
    fn look_at_more<A: Arithmetic>(&mut self, x: &[f64], gain: A::Vector) -> A::Vector {
        let Abreast { dim, mean, inverse: m, products, last, deviations, rows_waiting, .. } = self;
        let v = &mut deviations[*rows_waiting];
        for ((v, x), m) in v.iter_mut().zip(&x[..*dim]).zip(&*mean) {
            (A::Vector::splat(*x) - A::Vector::load(m)).store(v);
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
        let deviation = &self.deviations[self.rows_waiting];
        for (m, v) in self.mean[..self.dim].iter_mut().zip(deviation) {
            step.mul_add(A::Vector::load(v), A::Vector::load(m)).store(m);
        }
    }

    /// Notes that `P` is to get `t v vᵀ`.
    #[inline(always)]
    pub fn add_row<A: Arithmetic>(&mut self, t: A::Vector) {
        t.store(&mut self.weights[self.rows_waiting]);
        self.rows_waiting += 1;
        if self.rows_waiting == WAITING {
            self.flush();
        }
    }

    /// Gives `P` the rows that wait.
    #[inline(never)]
    fn flush(&mut self) {
        add_rows(&mut self.truth, self.dim, &self.deviations, &self.weights);
        self.weights = [Quad::default(); WAITING];
        if let Some(current) = self.deviations.get(self.rows_waiting) {
            self.deviations[0] = *current;
        }
        self.rows_waiting = 0;
    }

    /// Gives `P` and `M` all that they still have to get.
    pub fn settle(&mut self, gain: &mut Quad) {
        self.flush();
        apply_gain(&mut self.inverse, gain, &self.products[self.last][..self.dim]);
        *gain = Quad::default();
    }
}

/// Where row `i` of a triangle begins.
const fn row(i: usize) -> usize {
    i * (i + 1) / 2
}

/// An element of `M` after its update, given `g u_i` and `u_j`.
#[inline(always)]
fn updated<A: Arithmetic>(place: &mut Quad, gain_u: A::Vector, u: A::Vector) -> A::Vector {
    let m = gain_u.neg_mul_add(u, A::Vector::load(place));
    m.store(place);
    m
}

/// Rows `I` and `I + 1` of `M ← M − g u uᵀ` and of `out = Mv`, with what they add to the rows before. Returns what they
/// add to `vᵀMv`.
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

/// The same for row `I` alone, the last of an odd number.
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
    /// `M ← M − g u uᵀ`, to the bits of the update that goes with a product.
    fn apply_gain(m: &mut [Quad], gain: &Quad, u: &[Quad]) = apply_gain_kernel
}

#[inline(always)]
fn add_rows_kernel<A: Arithmetic>(
    truth: &mut Triangle,
    dim: usize,
    rows: &[Columns; WAITING],
    weights: &[Quad; WAITING],
) {
    macro_rules! rows {
        ($($i:literal)*) => {$(
            if dim == $i {
                return;
            }
            add_to_row::<A, $i>(truth, rows, weights);
        )*};
    }
    rows!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
}

/// Row `I` of [`add_rows`].
#[inline(always)]
fn add_to_row<A: Arithmetic, const I: usize>(
    truth: &mut Triangle,
    rows: &[Columns; WAITING],
    weights: &[Quad; WAITING],
) {
    let mut weighted = [A::Vector::splat(0.0); WAITING];
    for row in 0..WAITING {
        weighted[row] = A::Vector::load(&weights[row]) * A::Vector::load(&rows[row][I]);
    }
    for j in 0..=I {
        let place = &mut truth[row(I) + j];
        let mut sum = A::Vector::load(place);
        for row in 0..WAITING {
            sum = weighted[row].mul_add(A::Vector::load(&rows[row][j]), sum);
        }
        sum.store(place);
    }
}

at_run_time! {
    /// `P ← P + Σ t v vᵀ` over the rows, each element in their order.
    fn add_rows(truth: &mut Triangle, dim: usize, rows: &[Columns; WAITING], weights: &[Quad; WAITING]) = add_rows_kernel
}
