//! Forgetting: the weight of a row halves after a number of further rows.

use crate::learn::prior_strength;

/// The rate at which rows lose weight. With `φ = 2^(−1/H)` for a half-life of `H` rows, a row has weight `φ^age`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::learn) struct Forgetting {
    half_life: u64,
}

impl Forgetting {
    /// Forgetting with a half-life of `rows` rows, at least one.
    pub fn new(rows: u64) -> Self {
        Forgetting { half_life: rows.max(1) }
    }

    /// `λ = ln 2/H`: the logarithm of the weight that a row loses with each further row.
    pub fn rate(self) -> f64 {
        std::f64::consts::LN_2 / self.half_life as f64
    }

    /// `φ`.
    pub fn keep(self) -> f64 {
        (-self.rate()).exp()
    }

    /// `1 − φ`.
    pub fn loss(self) -> f64 {
        -(-self.rate()).exp_m1()
    }

    /// The total weight of all rows of an endless stream, `1/(1 − φ) ≈ H/ln 2`.
    pub fn most_rows(self) -> f64 {
        1.0 / self.loss()
    }

    /// The total weight of `rows` rows.
    pub fn weight_of(self, rows: f64) -> f64 {
        -(-self.rate() * rows).exp_m1() / self.loss()
    }

    /// The weight of a row after `age` further rows.
    pub fn weight(self, age: f64) -> f64 {
        (-self.rate() * age).exp()
    }
}

/// A component that gets no rows does not fall below these counts, which are those of the prior around the start.
#[derive(Debug, Clone, Copy)]
pub(in crate::learn) struct LeastCounts {
    /// Of `κ`.
    pub mean: f64,
    /// Of `ν − d − 1`.
    pub covariance: f64,
}

impl LeastCounts {
    /// The least concentration of a component.
    pub const CONCENTRATION: f64 = 1e-3;

    pub fn new(dim: usize) -> Self {
        let strength = prior_strength(dim);
        LeastCounts { mean: strength / 2.0, covariance: strength }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weight_halves_after_the_half_life_and_the_total_is_bounded() {
        for rows in [1, 7, 1000, 1 << 40] {
            let forgetting = Forgetting::new(rows);
            assert!((forgetting.weight(rows as f64) - 0.5).abs() < 1e-12);
            let most = forgetting.most_rows();
            assert!((most * std::f64::consts::LN_2 / rows as f64 - 1.0).abs() < 0.5 / rows as f64 + 1e-9);
            assert!((forgetting.weight_of(rows as f64) / most - 0.5).abs() < 1e-12);
            assert!((forgetting.weight_of(1.0) - 1.0).abs() < 1e-12);
        }
    }
}
