//! Products of the columns of a block with each other.

use super::simd::Arithmetic;
use super::vector::{Quad, Vector, Vector4};

/// Adds `Σ v vᵀ` over the first `rows` rows `v`, a multiple of four, to `sums`, which is by rows. Only elements on and below the
/// diagonal are valid. `columns` has one column after the other, `stride` quads each.
#[inline(always)]
pub(super) fn add_gram<A: Arithmetic>(sums: &mut [f64], columns: &[Quad], stride: usize, rows: usize) {
    let (dim, quads) = (columns.len() / stride, rows / 4);
    let column = |j: usize| &columns[j * stride..][..quads];
    let mut from = 0;
    while from < dim {
        let sums = &mut sums[from * dim..];
        match dim - from {
            1 => add_stripe::<A, 1>(sums, dim, from, column),
            2 => add_stripe::<A, 2>(sums, dim, from, column),
            3 => add_stripe::<A, 3>(sums, dim, from, column),
            _ => add_stripe::<A, 4>(sums, dim, from, column),
        }
        from += 4;
    }
}

/// Columns `from..from + M` with all columns up to them. Elements above the diagonal get invalid numbers.
#[inline(always)]
fn add_stripe<'a, A: Arithmetic, const M: usize>(
    sums: &mut [f64],
    dim: usize,
    from: usize,
    column: impl Fn(usize) -> &'a [Quad],
) {
    let stripe: [&[Quad]; M] = std::array::from_fn(|m| column(from + m));
    let mut j = 0;
    while j + 1 < from + M {
        let [one, other] = products::<A, M, 2>(stripe, [column(j), column(j + 1)]);
        for m in 0..M {
            sums[m * dim + j] += one[m];
            sums[m * dim + j + 1] += other[m];
        }
        j += 2;
    }
    if j < from + M {
        let [last] = products::<A, M, 1>(stripe, [column(j)]);
        for m in 0..M {
            sums[m * dim + j] += last[m];
        }
    }
}

/// The products of each column of `b` with up to four columns `a`.
#[inline(always)]
fn products<A: Arithmetic, const M: usize, const N: usize>(
    a: [&[Quad]; M],
    b: [&[Quad]; N],
) -> [[f64; 4]; N] {
    let quads = b[0].len();
    let mut lanes = [[A::Vector::splat(0.0); 4]; N];
    for r in 0..quads {
        let mut right = [A::Vector::splat(0.0); N];
        for n in 0..N {
            right[n] = A::Vector::load(&b[n][r]);
        }
        for m in 0..M {
            let left = A::Vector::load(&a[m][r]);
            for n in 0..N {
                lanes[n][m] = left.mul_add(right[n], lanes[n][m]);
            }
        }
    }
    // No closure: the compiler would not inline it here.
    let mut sums = [[0.0; 4]; N];
    for n in 0..N {
        sums[n] = A::Vector::sums(lanes[n]).to_array();
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::super::simd::{Plain, at_run_time};
    use super::*;

    at_run_time! {
        fn wide_or_plain(sums: &mut [f64], columns: &[Quad], stride: usize, rows: usize) = add_gram
    }

    #[test]
    fn products_agree_with_plain_loops_at_every_size() {
        let (stride, value) = (5, |i: usize, j: usize| ((i * 37 + j * 11) % 101) as f64 / 25.0 - 2.0);
        for dim in 1..=if cfg!(miri) { 9 } else { 40 } {
            for rows in [0, 4, 8, 20] {
                let columns: Vec<Quad> = (0..dim)
                    .flat_map(|j| {
                        (0..stride).map(move |q| Quad(std::array::from_fn(|n| value(4 * q + n, j))))
                    })
                    .collect();
                for kernel in [add_gram::<Plain>, wide_or_plain] {
                    let mut sums = vec![1.0; dim * dim];
                    kernel(&mut sums, &columns, stride, rows);
                    for i in 0..dim {
                        for j in 0..=i {
                            let exact: f64 = (0..rows).map(|r| value(r, i) * value(r, j)).sum();
                            assert!((sums[i * dim + j] - 1.0 - exact).abs() < 1e-11);
                        }
                    }
                }
            }
        }
    }
}
