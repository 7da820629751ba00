//! How far rows are from their components.
//!
//! The log-density of a row under a Gaussian component is a constant of the component minus half the squared distance of the row,
//! which has the same distribution in every component.

use serde::{Deserialize, Serialize};

/// Sums of squared distances of rows from their components, weighted by responsibility. Whole numbers, so that they do not
/// depend on how rows are divided into batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Surprise {
    /// The number of rows.
    rows: u64,
    /// The sum, in units of `1/UNIT`.
    squares: u64,
}

const UNIT: f64 = 4096.0;

impl Surprise {
    /// The largest squared distance that counts: about one row in a billion of a Gaussian component is beyond.
    pub(in crate::learn) fn farthest(dim: usize) -> f64 {
        dim as f64 + 8.0 * (2.0 * dim as f64).sqrt() + 20.0
    }

    /// Adds a row. A distance that is not a number counts as the farthest.
    #[inline(always)]
    pub(in crate::learn) fn add(&mut self, distance: f64, farthest: f64) {
        let clipped = if distance < farthest { distance } else { farthest };
        self.rows += 1;
        self.squares += (clipped * UNIT) as u64;
    }

    pub(in crate::learn) fn plus(self, other: Surprise) -> Self {
        Surprise {
            rows: self.rows.saturating_add(other.rows),
            squares: self.squares.saturating_add(other.squares),
        }
    }

    pub(in crate::learn) fn since(self, before: Surprise) -> Self {
        Surprise { rows: self.rows - before.rows, squares: self.squares - before.squares }
    }

    /// The mean loss of log-density by the distance from the component.
    pub(in crate::learn) fn mean(&self) -> f64 {
        0.5 * self.squares as f64 / (UNIT * self.rows.max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_outliers_have_little_effect() {
        let mut farther = Surprise::default();
        for distance in [2e6, f64::NAN, f64::INFINITY] {
            farther.add(distance, 10.0);
        }
        assert_eq!(farther, Surprise { rows: 3, squares: (3.0 * 10.0 * UNIT) as u64 });
    }
}
