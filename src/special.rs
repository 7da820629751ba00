//! Special functions: log-gamma ratios and log-sum-exp, without the cancellation of the textbook forms.

use libm::lgamma;

/// `ln π`.
pub const LN_PI: f64 = 1.144_729_885_849_400_2;
/// `ln 2π`.
pub const LN_2PI: f64 = 1.837_877_066_409_345_5;

/// `ln Γ(x + d/2) − ln Γ(x)` for `x > 0`.
///
/// Two log-gammas of a large `x` are huge and nearly equal: at `x = 10⁸` their difference has lost eight
/// digits. Here the difference of the two Stirling series is taken term by term instead; small arguments
/// are first moved up by `Γ(x+1) = x Γ(x)`.
pub fn log_gamma_ratio(x: f64, d: usize) -> f64 {
    let shift = d as f64 / 2.0;
    if x < STIRLING_FROM && x + shift < 2.0 * STIRLING_FROM {
        return lgamma(x + shift) - lgamma(x);
    }
    // Below `STIRLING_FROM` the recurrence moves x up; x + shift is large enough for the series already.
    let mut base = x;
    let mut rising = 1.0;
    while base < STIRLING_FROM {
        rising *= base;
        base += 1.0;
    }
    let top = x + shift;
    let gap = top - base;
    let leading = gap * base.ln() + (top - 0.5) * (gap / base).ln_1p() - gap;
    leading + (stirling_tail(top) - stirling_tail(base)) + rising.ln()
}

/// `ln Γ(x + d/2) − ln Γ(x) + d/2 · ln b` for `x, b > 0`: what the evidence of a component needs after every
/// update, with one logarithm where `x` is large.
///
/// About the middle `w = x + (h−1)/2`, `h = d/2`, the odd terms of Stirling's series cancel:
/// `h ln w − B₃(a)/3w² − B₅(a)/10w⁴ − B₇(a)/21w⁶`, `a = (h+1)/2`, with the Bernoulli polynomials `B`.
pub fn log_gamma_ratio_scaled(x: f64, d: usize, b: f64) -> f64 {
    let h = d as f64 / 2.0;
    let w = x + (h - 1.0) / 2.0;
    if w < 20.0 * h.max(1.0) {
        return log_gamma_ratio(x, d) + h * b.ln();
    }
    let a = (h + 1.0) / 2.0;
    let b3 = a * (0.5 + a * (a - 1.5));
    let b5 = a * (-1.0 / 6.0 + a * a * (5.0 / 3.0 + a * (a - 2.5)));
    let b7 = a * (1.0 / 6.0 + a * a * (-7.0 / 6.0 + a * a * (3.5 + a * (a - 3.5))));
    let square = 1.0 / (w * w);
    h * (w * b).ln() - square * (b3 / 3.0 + square * (b5 / 10.0 + square * (b7 / 21.0)))
}

/// From here on five terms of Stirling's series give full double precision.
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

/// `ln Σ exp(v)`, and leaves `exp(v − that)` in `values`: log-densities in, responsibilities out.
///
/// If no value is finite nothing can be shared out: returns −∞ and leaves zeros.
pub fn normalise_log_weights(values: &mut [f64]) -> f64 {
    let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !top.is_finite() {
        values.fill(0.0);
        return f64::NEG_INFINITY;
    }
    let mut sum = 0.0;
    for value in values.iter_mut() {
        *value = (*value - top).exp();
        sum += *value;
    }
    let inverse = 1.0 / sum;
    for value in values.iter_mut() {
        *value *= inverse;
    }
    top + sum.ln()
}

/// Shares a row out: log-densities in, responsibilities `∝ weight · density` out. Returns
/// `ln Σ weight · density / Σ weight`, or −∞ (and zeros) if nothing is finite.
pub fn share_out(log_densities: &mut [f64], weights: &[f64], total_weight: f64) -> f64 {
    let weighty = log_densities.iter().zip(weights).filter(|(_, weight)| **weight > 0.0);
    let top = weighty.fold(f64::NEG_INFINITY, |top, (value, _)| top.max(*value));
    let mut sum = 0.0;
    for (value, weight) in log_densities.iter_mut().zip(weights) {
        *value = if *weight > 0.0 { weight * (*value - top).exp() } else { 0.0 };
        sum += *value;
    }
    if !(top.is_finite() && sum > 0.0) {
        log_densities.fill(0.0);
        return f64::NEG_INFINITY;
    }
    // Divided, not multiplied by an inverse: the share of a lone component is exactly one.
    log_densities.iter_mut().for_each(|value| *value /= sum);
    top + (sum / total_weight).ln()
}

/// `ln Σ exp(v)`.
pub fn log_sum_exp(values: &[f64]) -> f64 {
    let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !top.is_finite() {
        return top;
    }
    top + values.iter().map(|value| (value - top).exp()).sum::<f64>().ln()
}

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

    #[test]
    fn log_weights_far_from_zero_keep_their_shares() {
        let mut values = [-1e4, -1e4 + 2f64.ln(), f64::NEG_INFINITY];
        let total = normalise_log_weights(&mut values);
        assert!((total - (-1e4 + 3f64.ln())).abs() < 1e-9);
        assert!((values[0] - 1.0 / 3.0).abs() < 1e-12 && values[2] == 0.0);
        assert_eq!(normalise_log_weights(&mut [f64::NEG_INFINITY; 3]), f64::NEG_INFINITY);
    }
}
