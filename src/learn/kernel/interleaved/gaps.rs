//! Rows with gaps: four components complete a row and learn it at the same time.
//!
//! Let `o` and `m` be the observed and the missing columns, and `v` the deviation of a row with zeros in `m`. `u = Mv` gives all
//! that is needed, with the Cholesky factor `R` of `M_mm`:
//!
//! - the conditional mean, `v_m ← −M_mm⁻¹ u_m`, for which the new `u_m` is zero;
//! - the quadratic form of the observed columns, `vᵀu − |R⁻¹u_m|²`;
//! - the conditional matrix `M_mm⁻¹`. Adding `t` times it to `P` subtracts `t/(1+t) WWᵀ` from `M`, with `W = M_·m R⁻ᵀ`. This changes
//!   neither `u` nor the quadratic form of the completed row, because `u_m` is zero.

use super::{Columns, Interleaved, MAX_COLUMNS, Triangle, row};
use crate::linalg::simd::Arithmetic;
use crate::linalg::special::ln;
use crate::linalg::vector::{Quad, Vector, Vector4};

/// `W` of the current row with gaps, for four components. Its rows of missing columns are `R`.
#[derive(Debug, Clone, Default)]
pub(in crate::learn) struct MissingColumns {
    /// One for each missing column.
    columns: Vec<Columns>,
    /// `1/R_nn`; 0 in lanes without a matrix.
    inverse_pivots: Columns,
    /// Space for `R⁻¹`, by rows.
    root: Vec<Quad>,
}

/// The completed row of four components.
pub(in crate::learn) struct Completed<V> {
    /// The quadratic form of the observed columns by `M`.
    pub form: V,
    /// `ln |M_mm|`.
    pub log_det: V,
    /// The smallest pivot of `M_mm`. If it is not positive, rounding has made `M` indefinite.
    pub least_pivot: V,
}

impl Interleaved {
    /// Applies the pending update of `M`, with this gain, and computes `v` and `u = Mv` of a row. NaN is a missing value, which `v`
    /// gets the conditional mean of.
    #[inline(always)]
    pub fn complete<A: Arithmetic>(
        &mut self,
        x: &[f64],
        missing: &[usize],
        gain: A::Vector,
        space: &mut MissingColumns,
    ) -> Completed<A::Vector> {
        let zero = A::Vector::splat(0.0);
        let mut form = self.quadratic_forms::<A, true>(x, gain);
        let Interleaved { dim, inverse, products, last, deviations, pending_rows, .. } = self;
        let (u, v) = (&mut products[*last][..*dim], &mut deviations[*pending_rows]);
        let MissingColumns { columns, inverse_pivots, .. } = space;
        columns.resize(missing.len(), [Quad::default(); MAX_COLUMNS]);
        let (mut log_det, mut least_pivot) = (zero, A::Vector::splat(f64::INFINITY));
        let mut along = [zero; MAX_COLUMNS];
        for (n, &column) in missing.iter().enumerate() {
            let (before, rest) = columns.split_at_mut(n);
            let own = &mut rest[0];
            copy_column(inverse, *dim, column, own);
            for other in before.iter() {
                let factor = A::Vector::load(&other[column]);
                for (to, other) in own[..*dim].iter_mut().zip(other) {
                    factor.neg_mul_add(A::Vector::load(other), A::Vector::load(to)).store(to);
                }
            }
            // They are zero up to rounding.
            for &earlier in &missing[..n] {
                own[earlier] = Quad::default();
            }
            let pivot = A::Vector::load(&own[column]);
            least_pivot = pivot.if_below(least_pivot, pivot, least_pivot).where_positive(pivot);
            log_det = log_det + ln(pivot.max(A::Vector::splat(f64::MIN_POSITIVE)));
            let scale = (A::Vector::splat(1.0) / pivot.sqrt()).where_positive(pivot);
            scale.store(&mut inverse_pivots[n]);
            along[n] = A::Vector::load(&u[column]) * scale;
            for (to, u) in own[..*dim].iter_mut().zip(&mut *u) {
                let value = A::Vector::load(to) * scale;
                value.store(to);
                along[n].neg_mul_add(value, A::Vector::load(u)).store(u);
            }
            u[column] = Quad::default();
            form = along[n].neg_mul_add(along[n], form);
        }
        // Rᵀ v_m = −R⁻¹ u_m, the last column first.
        for (n, &column) in missing.iter().enumerate().rev() {
            let mut sum = along[n];
            for &later in &missing[n + 1..] {
                sum = A::Vector::load(&columns[n][later]).mul_add(A::Vector::load(&v[later]), sum);
            }
            ((zero - sum) * A::Vector::load(&inverse_pivots[n])).store(&mut v[column]);
        }
        Completed { form, log_det, least_pivot }
    }

    /// Adds `t` times the conditional matrix of the missing columns of the last call of `complete` to `P`. `removed` is `t/(1+t)`.
    #[inline(always)]
    pub fn add_missing<A: Arithmetic>(
        &mut self,
        t: A::Vector,
        removed: A::Vector,
        missing: &[usize],
        space: &mut MissingColumns,
    ) {
        // Each element of P adds its terms in the order of the rows.
        if self.pending_rows > 0 {
            self.flush();
        }
        let Interleaved { dim, matrix, inverse, .. } = self;
        for own in &space.columns[..missing.len()] {
            for i in 0..*dim {
                let scaled = removed * A::Vector::load(&own[i]);
                for (place, other) in inverse[row(i)..][..=i].iter_mut().zip(own) {
                    scaled.neg_mul_add(A::Vector::load(other), A::Vector::load(place)).store(place);
                }
            }
        }
        invert_root::<A>(missing, space);
        for (a, &column) in missing.iter().enumerate() {
            for (b, &other) in missing[..=a].iter().enumerate() {
                let mut sum = A::Vector::splat(0.0);
                for l in a..missing.len() {
                    let other = A::Vector::load(&space.root[row(l) + b]);
                    sum = A::Vector::load(&space.root[row(l) + a]).mul_add(other, sum);
                }
                let place = &mut matrix[row(column) + other];
                t.mul_add(sum, A::Vector::load(place)).store(place);
            }
        }
    }
}

/// Copies a column of a symmetric matrix.
#[inline(always)]
fn copy_column(lower: &Triangle, dim: usize, column: usize, to: &mut Columns) {
    to[..=column].copy_from_slice(&lower[row(column)..][..=column]);
    for i in column + 1..dim {
        to[i] = lower[row(i) + column];
    }
}

/// Computes `R⁻¹`.
#[inline(always)]
fn invert_root<A: Arithmetic>(missing: &[usize], space: &mut MissingColumns) {
    let MissingColumns { columns, inverse_pivots, root } = space;
    root.resize(row(missing.len()).max(root.len()), Quad::default());
    for (n, &column) in missing.iter().enumerate() {
        let pivot = A::Vector::load(&inverse_pivots[n]);
        for a in 0..n {
            let mut sum = A::Vector::splat(0.0);
            for l in a..n {
                let element = A::Vector::load(&columns[l][column]);
                sum = element.mul_add(A::Vector::load(&root[row(l) + a]), sum);
            }
            (A::Vector::splat(0.0) - sum * pivot).store(&mut root[row(n) + a]);
        }
        pivot.store(&mut root[row(n) + n]);
    }
}
