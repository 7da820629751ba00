//! Probabilities of two parts of a component, where the log-odds are linear in one number per row, for many rows.

use crate::linalg::simd::{Arithmetic, at_run_time};
use crate::linalg::special::{exp, ln};
use crate::linalg::vector::{Quad, Vector, Vector4};

/// Log-odds `z = offset + slope·t` of the first part for a row with number `t`.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogOdds {
    pub offset: f64,
    pub slope: f64,
}

impl LogOdds {
    /// Replaces each number by the probability of the first part.
    pub fn probabilities(self, numbers: &mut [Quad]) {
        probabilities(numbers, self);
    }

    /// Replaces each number by `ln(1 + e^z)`: the difference between the log-density of both parts together and that of the
    /// second part, weights included.
    pub fn excesses(self, numbers: &mut [Quad]) {
        excesses(numbers, self);
    }
}

at_run_time! {
    fn probabilities(numbers: &mut [Quad], odds: LogOdds) = probabilities_kernel
}

#[inline(always)]
fn probabilities_kernel<A: Arithmetic>(numbers: &mut [Quad], odds: LogOdds) {
    let of = A::Vector::splat;
    for number in numbers {
        let z = A::Vector::load(number).mul_add(of(odds.slope), of(odds.offset));
        (of(1.0) / (of(1.0) + exp(of(0.0) - z))).store(number);
    }
}

at_run_time! {
    fn excesses(numbers: &mut [Quad], odds: LogOdds) = excesses_kernel
}

#[inline(always)]
fn excesses_kernel<A: Arithmetic>(numbers: &mut [Quad], odds: LogOdds) {
    let of = A::Vector::splat;
    for number in numbers {
        let z = A::Vector::load(number).mul_add(of(odds.slope), of(odds.offset));
        let size = z.max(of(0.0) - z);
        (z.max(of(0.0)) + ln(of(1.0) + exp(of(0.0) - size))).store(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_and_excesses_agree_with_plain_arithmetic() {
        let odds = LogOdds { offset: 0.7, slope: -1.3 };
        let numbers = [-2000.0, -300.0, -3.0, -0.4, 0.0, 0.2, 5.0, 4000.0];
        let quads = || vec![Quad(numbers[..4].try_into().unwrap()), Quad(numbers[4..].try_into().unwrap())];
        let (mut probabilities, mut excesses) = (quads(), quads());
        odds.probabilities(&mut probabilities);
        odds.excesses(&mut excesses);
        for (i, number) in numbers.iter().enumerate() {
            let z: f64 = 0.7 - 1.3 * number;
            let probability = 1.0 / (1.0 + (-z).exp());
            let excess = z.max(0.0) + (-z.abs()).exp().ln_1p();
            assert!((Quad::flat(&probabilities)[i] - probability).abs() < 1e-14, "{number}");
            assert!((Quad::flat(&excesses)[i] - excess).abs() < 1e-13 * (1.0 + excess), "{number}");
        }
    }
}
