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

    /// Whether the first of `rows` rows has lost half its weight.
    pub fn has_forgotten(self, rows: u64) -> bool {
        rows > self.half_life
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

/// What the weight of a row does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::learn) struct RowWeight {
    /// The number of rows to learn before the weight of all rows is reduced.
    pub learned: f64,
    /// The weight that rows keep after it.
    pub keep: f64,
}

impl RowWeight {
    /// A row without a weight, where rows do not lose weight.
    pub const ONE: RowWeight = RowWeight { learned: 1.0, keep: 1.0 };
    /// A row makes the others at most this many times `1/e` times as light.
    const MOST: f64 = 30.0;

    /// A row that counts as `weight` rows. Where rows lose weight, these are learned one after the other, with the sum of their
    /// weights after the last.
    pub fn new(weight: f64, forgetting: Option<Forgetting>) -> Self {
        let Some(forgetting) = forgetting else { return RowWeight { learned: weight, keep: 1.0 } };
        if weight == 1.0 {
            return RowWeight { learned: 1.0, keep: forgetting.keep() };
        }
        let lost = (forgetting.rate() * weight).min(Self::MOST);
        RowWeight { learned: lost.exp_m1() / forgetting.rate().exp_m1(), keep: (-lost).exp() }
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

    #[test]
    fn a_heavy_row_counts_as_rows_one_after_the_other() {
        let forgetting = Forgetting::new(100);
        for rows in [2, 7, 500] {
            let one_by_one = (0..rows).fold(40.0, |total, _| (total + 1.0) * forgetting.keep());
            let RowWeight { learned, keep } = RowWeight::new(f64::from(rows), Some(forgetting));
            let at_once = (40.0 + learned) * keep;
            assert!((at_once / one_by_one - 1.0).abs() < 1e-12, "{rows}: {at_once} {one_by_one}");
        }
        assert_eq!(RowWeight::new(1.0, None), RowWeight::ONE);
        assert!(RowWeight::new(1e15, Some(forgetting)).learned.is_finite());
    }
}
