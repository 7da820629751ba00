//! Vectors of four numbers that the kernels compute with: one type for machines with AVX2 and FMA, and one for any machine.
//! A single number is a [`Vector`] too, so that scalar code shares the formulas.

use std::ops::{Add, Div, Mul, Sub};

/// Four numbers in memory, aligned for one vector load.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[repr(C, align(32))]
pub(crate) struct Quad(pub [f64; 4]);

impl Quad {
    /// The number of quads that hold `count` numbers.
    pub const fn needed(count: usize) -> usize {
        count.div_ceil(4)
    }

    /// These numbers, padded at the end.
    pub fn pad(values: &[f64], padding: f64) -> Vec<Quad> {
        let mut quads = vec![Quad([padding; 4]); Quad::needed(values.len())];
        Quad::flat_mut(&mut quads)[..values.len()].copy_from_slice(values);
        quads
    }

    /// The numbers of all quads as one slice.
    #[inline(always)]
    pub fn flat(quads: &[Quad]) -> &[f64] {
        // SAFETY: a `Quad` is four consecutive `f64` without padding (the test checks its size), and more strictly aligned.
        unsafe { std::slice::from_raw_parts(quads.as_ptr().cast(), 4 * quads.len()) }
    }

    /// [`Quad::flat`], mutable.
    #[inline(always)]
    pub fn flat_mut(quads: &mut [Quad]) -> &mut [f64] {
        // SAFETY: as in `flat`, and any four numbers make a `Quad`.
        unsafe { std::slice::from_raw_parts_mut(quads.as_mut_ptr().cast(), 4 * quads.len()) }
    }
}

/// Adding this to a small number rounds it to an integer, which the low bits of the sum hold.
pub(crate) const ROUNDING: f64 = 6_755_399_441_055_744.0; // 1.5 · 2⁵²

/// One or several numbers (lanes) that one operation computes together.
pub(crate) trait Vector:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// The same number in every lane.
    fn splat(value: f64) -> Self;

    /// `self·b + c`.
    fn mul_add(self, b: Self, c: Self) -> Self;

    /// `c − self·b`.
    fn neg_mul_add(self, b: Self, c: Self) -> Self;

    /// The larger of the two; `other` where either is NaN.
    fn max(self, other: Self) -> Self;

    /// `self` where `other` is positive, else 0.
    fn where_positive(self, other: Self) -> Self;

    /// `yes` where `self < than`, else `no`; also `no` where either is NaN.
    fn if_below(self, than: Self, yes: Self, no: Self) -> Self;

    /// `2^k`, where `self` is `ROUNDING + k`, `−1022 ≤ k ≤ 1023`.
    fn power_of_two(self) -> Self;

    /// `(m, k)` with `self = 2^k·m`, `√½ ≤ m < √2`, for positive normal numbers.
    fn split_exponent(self) -> (Self, Self);
}

/// A vector of four lanes that can be loaded from memory and stored to it.
pub(crate) trait Vector4: Vector {
    fn load(from: &Quad) -> Self;
    fn store(self, to: &mut Quad);

    /// The sum of the lanes of each vector. The order of addition differs from [`Vector4::sum`].
    fn sums(four: [Self; 4]) -> Self;

    /// The sum of the lanes of each vector, with the same bits as [`Vector4::sum`].
    fn sum_of_each(four: [Self; 4]) -> Self;

    /// The square root of each lane.
    fn sqrt(self) -> Self;

    /// Whether every lane is at most that of `other`; false where either is NaN.
    fn all_at_most(self, other: Self) -> bool;

    /// The lanes in memory.
    #[inline(always)]
    fn to_quad(self) -> Quad {
        let mut quad = Quad::default();
        self.store(&mut quad);
        quad
    }

    /// The lanes as an array.
    #[inline(always)]
    fn to_array(self) -> [f64; 4] {
        self.to_quad().0
    }

    /// The sum of the lanes.
    #[inline(always)]
    fn sum(self) -> f64 {
        let [a, b, c, d] = self.to_array();
        (a + c) + (b + d)
    }

    /// The largest lane. No lane may be NaN.
    #[inline(always)]
    fn largest(self) -> f64 {
        let [a, b, c, d] = self.to_array();
        Vector::max(Vector::max(a, b), Vector::max(c, d))
    }
}

/// The bits of `√½`, `1` and `2⁵²`, and the mask of the fraction.
const ROOT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
const ONE: u64 = 0x3ff0_0000_0000_0000;
const TWO_52: u64 = 0x4330_0000_0000_0000;
const FRACTION: u64 = 0x000f_ffff_ffff_ffff;
/// `2⁵² + 1023`.
const TWO_52_AND_BIAS: f64 = 4_503_599_627_371_519.0;

impl Vector for f64 {
    #[inline(always)]
    fn splat(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        self * b + c
    }

    #[inline(always)]
    fn neg_mul_add(self, b: Self, c: Self) -> Self {
        c - self * b
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        if self > other { self } else { other }
    }

    #[inline(always)]
    fn where_positive(self, other: Self) -> Self {
        if other > 0.0 { self } else { 0.0 }
    }

    #[inline(always)]
    fn if_below(self, than: Self, yes: Self, no: Self) -> Self {
        if self < than { yes } else { no }
    }

    #[inline(always)]
    fn power_of_two(self) -> Self {
        f64::from_bits(self.to_bits().wrapping_add(1023) << 52)
    }

    #[inline(always)]
    fn split_exponent(self) -> (Self, Self) {
        let shifted = self.to_bits().wrapping_add(ONE - ROOT_HALF);
        let mantissa = f64::from_bits((shifted & FRACTION) + ROOT_HALF);
        (mantissa, f64::from_bits((shifted >> 52) | TWO_52) - TWO_52_AND_BIAS)
    }
}

/// Four lanes, for any machine.
#[derive(Clone, Copy)]
pub(crate) struct Portable([f64; 4]);

macro_rules! lane_by_lane {
    ($($name:ident: $method:ident),*) => {$(
        impl $name for Portable {
            type Output = Portable;

            #[inline(always)]
            fn $method(self, other: Portable) -> Portable {
                let (Portable(a), Portable(b)) = (self, other);
                Portable([a[0].$method(b[0]), a[1].$method(b[1]), a[2].$method(b[2]), a[3].$method(b[3])])
            }
        }
    )*};
}
lane_by_lane!(Add: add, Sub: sub, Mul: mul, Div: div);

impl Vector for Portable {
    #[inline(always)]
    fn splat(value: f64) -> Self {
        Portable([value; 4])
    }

    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        self * b + c
    }

    #[inline(always)]
    fn neg_mul_add(self, b: Self, c: Self) -> Self {
        c - self * b
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Portable(std::array::from_fn(|i| Vector::max(self.0[i], other.0[i])))
    }

    #[inline(always)]
    fn where_positive(self, other: Self) -> Self {
        Portable(std::array::from_fn(|i| self.0[i].where_positive(other.0[i])))
    }

    #[inline(always)]
    fn if_below(self, than: Self, yes: Self, no: Self) -> Self {
        Portable(std::array::from_fn(|i| self.0[i].if_below(than.0[i], yes.0[i], no.0[i])))
    }

    #[inline(always)]
    fn power_of_two(self) -> Self {
        Portable(self.0.map(Vector::power_of_two))
    }

    #[inline(always)]
    fn split_exponent(self) -> (Self, Self) {
        let parts = self.0.map(Vector::split_exponent);
        (Portable(parts.map(|(mantissa, _)| mantissa)), Portable(parts.map(|(_, exponent)| exponent)))
    }
}

impl Vector4 for Portable {
    #[inline(always)]
    fn load(from: &Quad) -> Self {
        Portable(from.0)
    }

    #[inline(always)]
    fn store(self, to: &mut Quad) {
        to.0 = self.0;
    }

    #[inline(always)]
    fn sums(four: [Self; 4]) -> Self {
        Portable(four.map(|Portable(lanes)| (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])))
    }

    #[inline(always)]
    fn sum_of_each(four: [Self; 4]) -> Self {
        Portable(four.map(Vector4::sum))
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        Portable(self.0.map(f64::sqrt))
    }

    #[inline(always)]
    fn all_at_most(self, other: Self) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a <= b)
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use avx::Avx;

/// SAFETY of the whole module: only code that is generic over [`super::simd::Arithmetic`] and runs as `Fused` makes an
/// [`Avx`], and `Fused` is used only after a check that the machine has AVX2 and FMA ([`super::simd`]).
#[cfg(target_arch = "x86_64")]
mod avx {
    use std::arch::x86_64::*;
    use std::ops::{Add, Div, Mul, Sub};

    use super::{FRACTION, ONE, Quad, ROOT_HALF, TWO_52, TWO_52_AND_BIAS, Vector, Vector4};

    /// Four lanes in one AVX register.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx(__m256d);

    macro_rules! by_instruction {
        ($($name:ident: $method:ident = $instruction:ident),*) => {$(
            impl $name for Avx {
                type Output = Avx;

                #[inline(always)]
                fn $method(self, other: Avx) -> Avx {
                    // SAFETY: see the module.
                    unsafe { Avx($instruction(self.0, other.0)) }
                }
            }
        )*};
    }
    by_instruction!(Add: add = _mm256_add_pd, Sub: sub = _mm256_sub_pd, Mul: mul = _mm256_mul_pd, Div: div = _mm256_div_pd);

    impl Vector for Avx {
        #[inline(always)]
        fn splat(value: f64) -> Self {
            // SAFETY: see the module.
            unsafe { Avx(_mm256_set1_pd(value)) }
        }

        #[inline(always)]
        fn mul_add(self, b: Self, c: Self) -> Self {
            // SAFETY: see the module.
            unsafe { Avx(_mm256_fmadd_pd(self.0, b.0, c.0)) }
        }

        #[inline(always)]
        fn neg_mul_add(self, b: Self, c: Self) -> Self {
            // SAFETY: see the module.
            unsafe { Avx(_mm256_fnmadd_pd(self.0, b.0, c.0)) }
        }

        #[inline(always)]
        fn max(self, other: Self) -> Self {
            // SAFETY: see the module.
            unsafe { Avx(_mm256_max_pd(self.0, other.0)) }
        }

        #[inline(always)]
        fn where_positive(self, other: Self) -> Self {
            // SAFETY: see the module.
            unsafe {
                let positive = _mm256_cmp_pd::<_CMP_GT_OQ>(other.0, _mm256_setzero_pd());
                Avx(_mm256_and_pd(self.0, positive))
            }
        }

        #[inline(always)]
        fn if_below(self, than: Self, yes: Self, no: Self) -> Self {
            // SAFETY: see the module.
            unsafe {
                let below = _mm256_cmp_pd::<_CMP_LT_OQ>(self.0, than.0);
                Avx(_mm256_blendv_pd(no.0, yes.0, below))
            }
        }

        #[inline(always)]
        fn power_of_two(self) -> Self {
            // SAFETY: see the module.
            unsafe {
                let biased = _mm256_add_epi64(_mm256_castpd_si256(self.0), _mm256_set1_epi64x(1023));
                Avx(_mm256_castsi256_pd(_mm256_slli_epi64::<52>(biased)))
            }
        }

        #[inline(always)]
        fn split_exponent(self) -> (Self, Self) {
            // SAFETY: see the module.
            unsafe {
                let shifted = _mm256_add_epi64(
                    _mm256_castpd_si256(self.0),
                    _mm256_set1_epi64x((ONE - ROOT_HALF) as i64),
                );
                let mantissa = _mm256_add_epi64(
                    _mm256_and_si256(shifted, _mm256_set1_epi64x(FRACTION as i64)),
                    _mm256_set1_epi64x(ROOT_HALF as i64),
                );
                let exponent =
                    _mm256_or_si256(_mm256_srli_epi64::<52>(shifted), _mm256_set1_epi64x(TWO_52 as i64));
                let exponent = _mm256_sub_pd(_mm256_castsi256_pd(exponent), _mm256_set1_pd(TWO_52_AND_BIAS));
                (Avx(_mm256_castsi256_pd(mantissa)), Avx(exponent))
            }
        }
    }

    impl Vector4 for Avx {
        #[inline(always)]
        fn load(from: &Quad) -> Self {
            // SAFETY: see the module; a `Quad` is aligned to 32 bytes.
            unsafe { Avx(_mm256_load_pd(from.0.as_ptr())) }
        }

        #[inline(always)]
        fn store(self, to: &mut Quad) {
            // SAFETY: see the module; a `Quad` is aligned to 32 bytes.
            unsafe { _mm256_store_pd(to.0.as_mut_ptr(), self.0) }
        }

        #[inline(always)]
        fn sums(four: [Self; 4]) -> Self {
            // SAFETY: see the module.
            unsafe {
                let [a, b, c, d] = four;
                let low = _mm256_hadd_pd(a.0, b.0);
                let high = _mm256_hadd_pd(c.0, d.0);
                let crossed = _mm256_permute2f128_pd::<0x21>(low, high);
                let blended = _mm256_blend_pd::<0b1100>(low, high);
                Avx(_mm256_add_pd(crossed, blended))
            }
        }

        #[inline(always)]
        fn sum_of_each(four: [Self; 4]) -> Self {
            // SAFETY: see the module.
            unsafe {
                let [a, b, c, d] = four;
                let low = _mm256_permute2f128_pd::<0x20>(a.0, c.0);
                let ac = _mm256_add_pd(low, _mm256_permute2f128_pd::<0x31>(a.0, c.0));
                let low = _mm256_permute2f128_pd::<0x20>(b.0, d.0);
                let bd = _mm256_add_pd(low, _mm256_permute2f128_pd::<0x31>(b.0, d.0));
                Avx(_mm256_hadd_pd(ac, bd))
            }
        }

        #[inline(always)]
        fn sqrt(self) -> Self {
            // SAFETY: see the module.
            unsafe { Avx(_mm256_sqrt_pd(self.0)) }
        }

        #[inline(always)]
        fn all_at_most(self, other: Self) -> bool {
            // SAFETY: see the module.
            unsafe { _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_LE_OQ>(self.0, other.0)) == 0b1111 }
        }
    }
}

#[cfg(test)]
mod tests;
