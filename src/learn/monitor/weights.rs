//! What the weights of rows say about how much is known from them.

use crate::learn::Finding;

/// The sums of weights and of their squares.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::learn) struct WeightSums {
    rows: u64,
    sum: f64,
    squares: f64,
}

/// Rows that count as this many times fewer rows are worth a word.
const FEWER: f64 = 10.0;

impl WeightSums {
    /// The sums with a further row.
    pub fn with(self, weight: f64) -> Self {
        WeightSums { rows: self.rows + 1, sum: self.sum + weight, squares: self.squares + weight * weight }
    }

    /// What a user should know of the weights.
    pub fn finding(self) -> Option<Finding> {
        let WeightSums { rows, sum, squares } = self;
        let (count, effective) = (rows as f64, sum * sum / squares);
        if sum * FEWER < count {
            return Some(Finding::SmallWeights { rows, total: sum });
        }
        let uneven = || Finding::UnevenWeights { rows, effective: effective.round() as u64 };
        (effective * FEWER < count).then(uneven)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_uneven_weights_are_worth_a_word() {
        let of = |weights: &[f64]| {
            weights.iter().fold(WeightSums::default(), |sums, weight| sums.with(*weight)).finding()
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[100.0; 50]), None);
        assert_eq!(of(&[0.0, 1.0, 2.0, 5.0]), None);
        assert!(matches!(of(&[0.02; 50]), Some(Finding::SmallWeights { rows: 50, .. })));
        let heavy: Vec<f64> = (0..100).map(|i| if i == 7 { 1e6 } else { 1.0 }).collect();
        assert_eq!(of(&heavy), Some(Finding::UnevenWeights { rows: 100, effective: 1 }));
    }
}
