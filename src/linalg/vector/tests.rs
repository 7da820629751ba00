use super::*;
use crate::linalg::simd::{Arithmetic, Plain, at_run_time};

#[test]
fn a_quad_is_four_numbers() {
    assert_eq!(size_of::<Quad>(), 32);
    let mut quads = Quad::pad(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.5);
    assert_eq!(Quad::flat(&quads), [1.0, 2.0, 3.0, 4.0, 5.0, 0.5, 0.5, 0.5]);
    Quad::flat_mut(&mut quads)[4] = 7.0;
    assert_eq!(quads[1].0[0], 7.0);
}

/// The result of every operation. Operations that round differently with FMA get 0 as the rounded part.
#[inline(always)]
fn operations_kernel<A: Arithmetic>(a: &Quad, b: &Quad) -> Vec<[f64; 4]> {
    let (x, y) = (A::Vector::load(a), A::Vector::load(b));
    let half = A::Vector::splat(0.5);
    // `split_exponent` needs positive numbers.
    let (mantissa, exponent) = half.if_below(x, x, half).split_exponent();
    let results = [
        x + y,
        x - y,
        x * y,
        x / y,
        x.mul_add(A::Vector::splat(0.0), y),
        x.neg_mul_add(A::Vector::splat(0.0), y),
        x.max(y),
        x.if_below(y, x, half),
        x.where_positive(y),
        (A::Vector::splat(ROUNDING) + A::Vector::splat(7.0)).power_of_two(),
        mantissa,
        exponent,
        A::Vector::sums([x, y, half, x - y]),
        A::Vector::sum_of_each([x, y, half, x - y]),
        (x * x).sqrt(),
        A::Vector::splat(x.sum()),
        A::Vector::splat(x.largest()),
    ];
    results.map(Vector4::to_array).to_vec()
}

at_run_time! {
    fn operations(a: &Quad, b: &Quad) -> Vec<[f64; 4]> = operations_kernel
}

#[test]
fn vector_instructions_agree_with_the_portable_form() {
    let numbers = [0.0, -0.0, 1.0, -2.5, 1e300, 1e-300, 3.7e-12, f64::INFINITY, f64::NAN, -7.0, 0.1];
    for i in 0..numbers.len() {
        for j in 0..numbers.len() {
            let four = |from: usize| Quad(std::array::from_fn(|l| numbers[(from + l * l) % numbers.len()]));
            let (a, b) = (four(i), four(j));
            let (found, expected) = (operations(&a, &b), operations_kernel::<Plain>(&a, &b));
            for (operation, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let same = |(x, y): (&f64, &f64)| x == y || x.is_nan() && y.is_nan();
                let alike = found.iter().zip(expected).all(same);
                assert!(alike, "operation {operation} of {a:?}, {b:?}: {found:?} against {expected:?}");
            }
        }
    }
}

#[inline(always)]
fn sums_kernel<A: Arithmetic>(quads: &[Quad; 4]) -> ([f64; 4], [f64; 4]) {
    let four: [A::Vector; 4] = quads.map(|quad| A::Vector::load(&quad));
    let one_by_one = [four[0].sum(), four[1].sum(), four[2].sum(), four[3].sum()];
    (A::Vector::sum_of_each(four).to_array(), one_by_one)
}

at_run_time! {
    fn sums(quads: &[Quad; 4]) -> ([f64; 4], [f64; 4]) = sums_kernel
}

#[test]
fn sums_of_four_vectors_agree_with_the_sum_of_each() {
    let value = |i: usize| (i as f64 * 1.7).sin() * 10f64.powi(i as i32 % 5);
    let quads = std::array::from_fn(|i| Quad(std::array::from_fn(|j| value(4 * i + j))));
    for (together, one_by_one) in [sums(&quads), sums_kernel::<Plain>(&quads)] {
        assert_eq!(together, one_by_one);
    }
}
