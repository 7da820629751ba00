//! Weights of kept rows in a pass with a half-life.
//!
//! A full sample of `m` rows takes each new row with a probability `p` and drops a random one for it, so a row stays for
//! `m/p` further rows on average. The rate of that loss is at most `λ = ln 2/H`. What it lacks to `λ` is in the weights of the
//! rows: a row's weight is `φ^age` divided by the probability that the row is still there. A large sample has all recent rows,
//! and their weights are `φ^age`; a small sample has rows of equal weight.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::learn::rules::forgetting::Forgetting;

/// The weights of a sample of rows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SampleWeights {
    /// The logarithm of the weight that a row has lost that was there from the beginning.
    lost: f64,
    /// `lost` when each row came, plus the logarithm of the number of rows that it represents.
    #[serde(with = "super::packed")]
    births: Arc<Vec<f64>>,
}

impl SampleWeights {
    /// Equal weights of `count` rows, whose sum is at most `most`.
    pub fn equal(count: usize, most: f64) -> Self {
        let birth = (most / count.max(1) as f64).min(1.0).ln();
        SampleWeights { lost: 0.0, births: Arc::new(vec![birth; count]) }
    }

    /// Weights of rows in the order of the stream. `rows` has how many rows there are up to each.
    pub fn in_order(rows: impl Iterator<Item = f64>, rate: f64) -> Self {
        let births: Vec<f64> = rows.map(|rows| rate * rows).collect();
        SampleWeights { lost: births.last().copied().unwrap_or(0.0), births: Arc::new(births) }
    }

    pub fn count(&self) -> usize {
        self.births.len()
    }

    /// All rows become older by a row.
    pub fn age(&mut self, rate: f64) {
        self.lost += rate;
    }

    /// Appends a row.
    pub fn push(&mut self) {
        Arc::make_mut(&mut self.births).push(self.lost);
    }

    /// A new row, which was taken with the probability `p`, replaces the one at `place`. Returns the weight of the latter.
    pub fn replace(&mut self, place: usize, p: f64) -> f64 {
        let birth = self.newest(p);
        let old = std::mem::replace(&mut Arc::make_mut(&mut self.births)[place], birth);
        (old - birth).min(0.0).exp()
    }

    /// A row was offered to the full sample, which takes it with the probability `p`.
    pub fn offered(&mut self, p: f64) {
        self.lost += (-p / self.count().max(2) as f64).ln_1p();
    }

    /// The weight of each row, relative to a new row that is taken with the probability `p`. If rows also have weights of their
    /// own, earlier ones may have a larger one than the new row.
    pub fn weights(&self, p: f64, with_own: bool) -> Vec<f64> {
        let (newest, most) = (self.newest(p), if with_own { f64::INFINITY } else { 0.0 });
        self.births.iter().map(|birth| (birth - newest).min(most).exp()).collect()
    }

    fn newest(&self, p: f64) -> f64 {
        self.lost - p.ln()
    }

    pub fn is_sound(&self, rows: usize) -> bool {
        self.count() == rows && self.lost.is_finite() && self.births.iter().all(|birth| birth.is_finite())
    }
}

/// The probability that a full sample of `most` rows takes the next row, after `offered` rows were offered to it. `rate` is
/// the loss of weight between two offers.
pub(super) fn admission(most: usize, offered: u64, rate: f64) -> f64 {
    let most = most as f64;
    (most / offered.max(1) as f64).max(most * rate).min(1.0)
}

/// The weights of the kept rows of a pass with a half-life.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fading {
    pub half_life: u64,
    pub of_reservoir: SampleWeights,
    pub of_validation: SampleWeights,
}

impl Fading {
    pub fn forgetting(&self) -> Forgetting {
        Forgetting::new(self.half_life)
    }
}

/// Weights of their own that the rows of a pass have. The reservoir takes rows whatever their weights, and keeps the weights.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnWeights {
    /// The total weight of the rows that the reservoir is a sample of.
    pub learned: f64,
    #[serde(with = "super::packed")]
    pub of_reservoir: Arc<Vec<f64>>,
    #[serde(with = "super::packed")]
    pub of_validation: Arc<Vec<f64>>,
}

impl OwnWeights {
    /// Weights of one.
    pub fn ones(learned: u64, reservoir: usize, validation: usize) -> Self {
        OwnWeights {
            learned: learned as f64,
            of_reservoir: Arc::new(vec![1.0; reservoir]),
            of_validation: Arc::new(vec![1.0; validation]),
        }
    }

    pub fn is_sound(&self, reservoir: usize, validation: usize) -> bool {
        let is_weight = |weight: &f64| weight.is_finite() && *weight > 0.0;
        self.learned.is_finite()
            && (self.of_reservoir.len(), self.of_validation.len()) == (reservoir, validation)
            && self.of_reservoir.iter().chain(self.of_validation.iter()).all(is_weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_and_inclusion_together_are_those_of_the_ages() {
        // The weighted number of rows of each age is that of the whole stream, whatever the size of the sample.
        let forgetting = Forgetting::new(100);
        for most in [40, 150, 600] {
            let mut total = [0.0; 5];
            for seed in 0..400_u64 {
                let mut weights = SampleWeights::default();
                let mut rows: Vec<u64> = Vec::new();
                for i in 0..2000_u64 {
                    weights.age(forgetting.rate());
                    if rows.len() < most {
                        weights.push();
                        rows.push(i);
                        continue;
                    }
                    let p = admission(most, i, forgetting.rate());
                    weights.offered(p);
                    let random = crate::hash::mix_bits(seed << 32 | i);
                    if (random >> 11) as f64 * (-53f64).exp2() < p {
                        let place = (crate::hash::mix_bits(random) % most as u64) as usize;
                        weights.replace(place, p);
                        rows[place] = i;
                    }
                }
                let p = admission(most, 2000, forgetting.rate());
                for (row, weight) in rows.iter().zip(weights.weights(p, false)) {
                    let age = (1999 - row) / 100;
                    if age < 5 {
                        total[age as usize] += weight;
                    }
                }
            }
            for (i, pair) in total.windows(2).enumerate() {
                let ratio = pair[1] / pair[0];
                assert!((0.4..0.6).contains(&ratio), "{most} rows, ages from {i}00: {total:?}");
            }
        }
    }

    #[test]
    fn rows_that_are_all_there_have_the_weights_of_their_ages() {
        let rate = Forgetting::new(10).rate();
        let weights = SampleWeights::in_order((1..=31).map(f64::from), rate).weights(1.0, false);
        for (age, expected) in [(0, 1.0), (10, 0.5), (30, 0.125)] {
            assert!((weights[30 - age] - expected).abs() < 1e-12);
        }
        let equal = SampleWeights::equal(1000, 14.4).weights(1.0, false);
        assert!((equal.iter().sum::<f64>() - 14.4).abs() < 1e-9);
    }
}
