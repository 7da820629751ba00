//! Special functions: log-gamma ratios, log-sum-exp, and vectorised exponentials and logarithms.

use libm::lgamma;

use super::vector::{ROUNDING, Vector, Vector4};

/// `ln π`.
pub const LN_PI: f64 = 1.144_729_885_849_400_2;
/// `ln 2π`.
pub const LN_2PI: f64 = 1.837_877_066_409_345_5;

/// `ln Γ(x + d/2) − ln Γ(x)` for `x > 0`.
///
/// For a large `x` both log-gammas are huge and nearly equal: at `x = 10⁸` their difference loses eight digits. This function
/// subtracts the two Stirling series term by term. Small arguments are first increased by `Γ(x+1) = x Γ(x)`.
///
/// ```
/// use gmm_bmm::internals::special::log_gamma_ratio;
///
/// assert!((log_gamma_ratio(1e8, 2) - 1e8f64.ln()).abs() < 1e-13); // Γ(x + 1) = x Γ(x)
/// ```
pub fn log_gamma_ratio(x: f64, d: usize) -> f64 {
    let shift = d as f64 / 2.0;
    if x < STIRLING_FROM && x + shift < 2.0 * STIRLING_FROM {
        return lgamma(x + shift) - lgamma(x);
    }
    // The recurrence increases x to `STIRLING_FROM`. For x + shift the series is accurate without it.
    let mut base = x;
    let mut rising = 1.0;
    let mut gap = shift; // `top − base` without its rounding error
    while base < STIRLING_FROM {
        rising *= base;
        base += 1.0;
        gap -= 1.0;
    }
    let top = x + shift;
    let leading = gap * base.ln() + (top - 0.5) * (gap / base).ln_1p() - gap;
    leading + (stirling_tail(top) - stirling_tail(base)) + rising.ln()
}

/// The tail `ln Γ(x + h) − ln Γ(x) − h ln w`, with `h = d/2` and the centre `w = x + (h−1)/2`, where the odd terms of
/// Stirling's series cancel: `−B₃(a)/3w² − B₅(a)/10w⁴ − B₇(a)/21w⁶`, `a = (h+1)/2`, with the Bernoulli polynomials `B`.
#[derive(Debug, Clone)]
pub(crate) struct GammaTail {
    h: f64,
    /// `B₃(a)/3`, `B₅(a)/10`, `B₇(a)/21`.
    terms: [f64; 3],
}

impl GammaTail {
    pub fn new(dim: usize) -> Self {
        let h = dim as f64 / 2.0;
        let a = (h + 1.0) / 2.0;
        let b3 = a * (0.5 + a * (a - 1.5));
        let b5 = a * (-1.0 / 6.0 + a * a * (5.0 / 3.0 + a * (a - 2.5)));
        let b7 = a * (1.0 / 6.0 + a * a * (-7.0 / 6.0 + a * a * (3.5 + a * (a - 3.5))));
        GammaTail { h, terms: [b3 / 3.0, b5 / 10.0, b7 / 21.0] }
    }

    /// The smallest `w` at which the series has full double precision.
    pub fn accurate_from(&self) -> f64 {
        20.0 * self.h.max(1.0)
    }

    /// The tail, given `1/w`.
    #[inline(always)]
    pub fn at<V: Vector>(&self, inverse: V) -> V {
        let square = inverse * inverse;
        let tail = square.mul_add(V::splat(-self.terms[2]), V::splat(-self.terms[1]));
        square * square.mul_add(tail, V::splat(-self.terms[0]))
    }
}

/// From this argument, five terms of Stirling's series give full double precision.
const STIRLING_FROM: f64 = 16.0;

/// `ln Γ(z) − [(z − ½) ln z − z + ½ ln 2π]`.
fn stirling_tail(z: f64) -> f64 {
    let inverse = 1.0 / z;
    let square = inverse * inverse;
    inverse
        * (1.0 / 12.0
            + square
                * (-1.0 / 360.0
                    + square * (1.0 / 1260.0 + square * (-1.0 / 1680.0 + square * (1.0 / 1188.0)))))
}

/// `ln Σ exp(v)` without overflow.
///
/// ```
/// use gmm_bmm::internals::special::log_sum_exp;
///
/// assert_eq!(log_sum_exp(&[1e4, 1e4]), 1e4 + 2f64.ln());
/// ```
pub fn log_sum_exp(values: &[f64]) -> f64 {
    let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !top.is_finite() {
        return top;
    }
    top + values.iter().map(|value| (value - top).exp()).sum::<f64>().ln()
}

/// `exp(x)`, accurate to about one unit in the last place; 0 below −708, `∞` above 700.
#[inline(always)]
pub(crate) fn exp<V: Vector>(x: V) -> V {
    let shifted = x.mul_add(V::splat(std::f64::consts::LOG2_E), V::splat(ROUNDING));
    let k = shifted - V::splat(ROUNDING);
    let r = k.mul_add(V::splat(-LN_2_HIGH), x);
    let r = k.mul_add(V::splat(-LN_2_LOW), r);
    // Taylor's series for |r| ≤ ½ ln 2, in independent parts that the processor computes in parallel.
    let r2 = r * r;
    let r4 = r2 * r2;
    let low = r2.mul_add(taylor(r, 4), taylor(r, 2));
    let middle = r2.mul_add(taylor(r, 8), taylor(r, 6));
    let high = r2.mul_add(taylor(r, 12), taylor(r, 10));
    let tail = r4.mul_add(r4.mul_add(high, middle), low);
    let value = (r2.mul_add(tail, r) + V::splat(1.0)) * shifted.power_of_two();
    let value = V::splat(700.0).if_below(x, V::splat(f64::INFINITY), value);
    x.if_below(V::splat(-708.0), V::splat(0.0), value)
}

/// `1/i! + r/(i+1)!`.
#[inline(always)]
fn taylor<V: Vector>(r: V, i: usize) -> V {
    r.mul_add(V::splat(INVERSE_FACTORIALS[i + 1]), V::splat(INVERSE_FACTORIALS[i]))
}

/// `ln x` for positive normal `x`, accurate to about one unit in the last place; `∞` for `∞`.
///
/// With `x = 2^k m`, `f = m − 1`, `s = f/(2+f)`: `ln m = f − f²/2 + s(f²/2 + R(s²))`, the `R` of fdlibm.
#[inline(always)]
pub(crate) fn ln<V: Vector>(x: V) -> V {
    let parts = LogParts::new(x);
    parts.log(x, V::splat(1.0) / parts.divisor())
}

/// `1/x` and `ln x` with one division.
#[inline(always)]
fn inverse_and_ln<V: Vector>(x: V) -> (V, V) {
    let parts = LogParts::new(x);
    let divisor = parts.divisor();
    let both = V::splat(1.0) / (x * divisor);
    (divisor * both, parts.log(x, x * both))
}

/// `x = 2^k (1 + f)`.
struct LogParts<V> {
    f: V,
    k: V,
}

impl<V: Vector> LogParts<V> {
    #[inline(always)]
    fn new(x: V) -> Self {
        let (m, k) = x.split_exponent();
        LogParts { f: m - V::splat(1.0), k }
    }

    /// `2 + f`.
    #[inline(always)]
    fn divisor(&self) -> V {
        self.f + V::splat(2.0)
    }

    /// `ln x`, given `1/(2 + f)`.
    #[inline(always)]
    fn log(&self, x: V, inverse: V) -> V {
        let LogParts { f, k } = *self;
        let s = f * inverse;
        let half_square = V::splat(0.5) * f * f;
        let z = s * s;
        let w = z * z;
        let even = w.mul_add(V::splat(R[5]), V::splat(R[3]));
        let even = w.mul_add(even, V::splat(R[1]));
        let odd = w.mul_add(V::splat(R[6]), V::splat(R[4]));
        let odd = w.mul_add(w.mul_add(odd, V::splat(R[2])), V::splat(R[0]));
        let r = w.mul_add(even, z * odd);
        let low = s.mul_add(half_square + r, k * V::splat(LN_2_LOW)) - half_square + f;
        x.if_below(V::splat(f64::INFINITY), k.mul_add(V::splat(LN_2_HIGH), low), x)
    }
}

/// `1/(1 + x)` and `ln(1 + x)` for `x ≥ 0`. The logarithm is corrected for the rounding error of `1 + x`.
#[inline(always)]
pub(crate) fn inverse_and_ln_1p<V: Vector>(x: V) -> (V, V) {
    let sum = V::splat(1.0) + x;
    let (inverse, log) = inverse_and_ln(sum);
    let lost = (x - (sum - V::splat(1.0))) * inverse;
    (inverse, sum.if_below(V::splat(f64::INFINITY), log + lost, log))
}

/// The largest `|x|` for [`ln_1p_small`].
pub(crate) const SMALL: f64 = 1.0 / 32.0;

/// `ln(1 + x)` for `|x| ≤ SMALL`, without a division.
#[inline(always)]
pub(crate) fn ln_1p_small<V: Vector>(x: V) -> V {
    let x2 = x * x;
    let x4 = x2 * x2;
    let low = x2.mul_add(mercator(x, 2), mercator(x, 0));
    let middle = x2.mul_add(mercator(x, 6), mercator(x, 4));
    let high = x2.mul_add(mercator(x, 10), mercator(x, 8));
    x * x4.mul_add(x4.mul_add(high, middle), low)
}

/// The terms `x^i` and `x^(i+1)` of the series of `ln(1 + x)/x`, divided by `x^i`, for even `i`.
#[inline(always)]
fn mercator<V: Vector>(x: V, i: u32) -> V {
    x.mul_add(V::splat(-1.0 / f64::from(i + 2)), V::splat(1.0 / f64::from(i + 1)))
}

/// `ln(1 + x)` for `x ≥ 0`.
#[inline(always)]
pub(crate) fn ln_1p<V: Vector4>(x: V) -> V {
    if x.all_at_most(V::splat(SMALL)) { ln_1p_small(x) } else { inverse_and_ln_1p(x).1 }
}

const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// Coefficients of `R`.
const R: [f64; 7] = [
    6.666_666_666_666_735e-1,
    3.999_999_999_940_942e-1,
    2.857_142_874_366_239e-1,
    2.222_219_843_214_978_4e-1,
    1.818_357_216_161_805e-1,
    1.531_383_769_920_937_3e-1,
    1.479_819_860_511_658_6e-1,
];

const INVERSE_FACTORIALS: [f64; 14] = {
    let mut values = [1.0; 14];
    let mut factorial = 1.0;
    let mut i = 1;
    while i < 14 {
        factorial *= i as f64;
        values[i] = 1.0 / factorial;
        i += 1;
    }
    values
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_of_whole_shifts_is_a_rising_factorial() {
        for x in [0.25, 1.0, 3.5, 15.9, 16.0, 1e3, 1e9] {
            let exact = (x * (x + 1.0) * (x + 2.0) * (x + 3.0f64)).ln();
            let value = log_gamma_ratio(x, 8);
            assert!(
                (value - exact).abs() <= 1e-13 * exact.abs().max(1.0),
                "x = {x}: {value} against {exact}"
            );
        }
    }

    /// The error in units in the last place.
    fn ulps(found: f64, exact: f64) -> f64 {
        (found - exact).abs() / (exact.abs().max(f64::MIN_POSITIVE) * f64::EPSILON)
    }

    /// Without optimisation one number in fifty is compared.
    const STEP: usize = if cfg!(debug_assertions) { 50 } else { 1 };

    #[test]
    fn exponentials_are_those_of_the_library() {
        for i in (-7_000_000..=7_000_000).step_by(STEP) {
            let x = f64::from(i) * 0.999_9e-4;
            assert!(ulps(exp(x), x.exp()) < 2.0, "exp({x}) = {} against {}", exp(x), x.exp());
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f64::NEG_INFINITY), 0.0);
        assert_eq!(exp(-1e300), 0.0);
        assert_eq!((exp(701.0), exp(1e300)), (f64::INFINITY, f64::INFINITY));
        assert!(exp(f64::NAN).is_nan());
    }

    #[test]
    fn logarithms_are_those_of_the_library() {
        for i in (-3_000_000..=3_000_000).step_by(STEP) {
            let x = (f64::from(i) * 2.000_3e-4).exp();
            assert!(ulps(ln(x), x.ln()) < 2.5, "ln({x}) = {} against {}", ln(x), x.ln());
            let near_one = 1.0 + f64::from(i) * 1e-7;
            assert!(ulps(ln(near_one), near_one.ln()) < 2.5, "ln({near_one})");
            let small = (f64::from(i) * 2.000_3e-5).exp();
            assert!(ulps(inverse_and_ln_1p(small).1, small.ln_1p()) < 2.5, "ln_1p({small})");
            assert!(ulps(inverse_and_ln_1p(small).0, 1.0 / (1.0 + small)) < 2.0);
            let small = f64::from(i) / 3e6 * SMALL;
            assert!(ulps(ln_1p_small(small), small.ln_1p()) < 3.0, "ln_1p({small})");
        }
        assert_eq!(ln(1.0), 0.0);
        assert_eq!(ln(f64::INFINITY), f64::INFINITY);
        assert_eq!(inverse_and_ln_1p(f64::INFINITY), (0.0, f64::INFINITY));
    }

    #[test]
    fn the_gamma_tail_agrees_with_the_gamma_ratio() {
        for d in [1, 2, 3, 10, 50, 91] {
            let tail = GammaTail::new(d);
            let h = d as f64 / 2.0;
            for i in 0..200 {
                let w = tail.accurate_from() * (1.0 + 0.1 * f64::from(i));
                let exact = log_gamma_ratio(w - (h - 1.0) / 2.0, d);
                let found = h * w.ln() + tail.at(1.0 / w);
                assert!(
                    (found - exact).abs() <= 2e-14 * exact.abs().max(10.0),
                    "d {d}, w {w}: {found} {exact}"
                );
            }
        }
    }
}
