//! How sure a difference between two scores is, from running sums, so that no row is kept.

use serde::{Deserialize, Serialize};

/// Scores of several rivals for the same rows, as sums over portions of rows. A portion counts as one draw: rows beside
/// one another may be alike.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairedSums {
    portions: u64,
    rows: f64,
    squared_rows: f64,
    /// Of each rival, what its scores are above those of the first.
    gains: Vec<f64>,
    /// The same, each portion times its rows.
    gains_by_rows: Vec<f64>,
    /// Products of the gains of every two.
    products: Vec<f64>,
}

impl PairedSums {
    /// Portions below which a standard error would be chance itself.
    const FEWEST: u64 = 10;

    /// For so many rivals.
    pub fn new(rivals: usize) -> Self {
        PairedSums {
            portions: 0,
            rows: 0.0,
            squared_rows: 0.0,
            gains: vec![0.0; rivals],
            gains_by_rows: vec![0.0; rivals],
            products: vec![0.0; rivals * rivals],
        }
    }

    /// Whether it is of so many rivals, with numbers that a file can hold.
    pub(crate) fn is_sound(&self, rivals: usize) -> bool {
        let lists = [(&self.gains, rivals), (&self.gains_by_rows, rivals), (&self.products, rivals * rivals)];
        let is_whole = |(list, length): &(&Vec<f64>, usize)| {
            list.len() == *length && list.iter().all(|value| value.is_finite())
        };
        self.rows.is_finite() && self.squared_rows.is_finite() && lists.iter().all(is_whole)
    }

    /// Rows added so far.
    pub fn rows(&self) -> f64 {
        self.rows
    }

    /// Adds a portion of so many rows: the sum of their scores for each rival.
    pub fn add(&mut self, rows: f64, sums: &[f64]) {
        self.portions = self.portions.saturating_add(1);
        self.rows += rows;
        self.squared_rows += rows * rows;
        // A row that lies so far out that a square is beyond all numbers must not make the sums unfit for a file.
        let finite = |value: f64| value.clamp(-f64::MAX, f64::MAX);
        let add = |sum: &mut f64, value: f64| *sum = finite(*sum + finite(value));
        for (i, sum) in sums.iter().enumerate() {
            let gain = finite(sum - sums[0]);
            add(&mut self.gains[i], gain);
            add(&mut self.gains_by_rows[i], rows * gain);
            for (j, other) in sums.iter().enumerate() {
                add(&mut self.products[i * sums.len() + j], gain * finite(other - sums[0]));
            }
        }
    }

    /// The standard error of the mean difference between the scores of two, given by their places; `None` from few portions.
    pub fn standard_error(&self, i: usize, j: usize) -> Option<f64> {
        if self.portions < Self::FEWEST {
            return None;
        }
        let product = |i: usize, j: usize| self.products[i * self.gains.len() + j];
        let mean = (self.gains[i] - self.gains[j]) / self.rows;
        let squares = product(i, i) - 2.0 * product(i, j) + product(j, j)
            - 2.0 * mean * (self.gains_by_rows[i] - self.gains_by_rows[j])
            + mean * mean * self.squared_rows;
        let portions = self.portions as f64;
        if !squares.is_finite() {
            return None;
        }
        let variance = squares.max(0.0) * portions / (portions - 1.0);
        Some(variance.sqrt() / self.rows).filter(|error| error.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{mean, standard_error};

    #[test]
    fn portions_of_one_row_give_the_paired_standard_error() {
        let scores: Vec<[f64; 3]> =
            (0..40).map(|i| [0.3, 0.7, 1.1].map(|f| -1e6 + (f * f64::from(i)).sin())).collect();
        let mut sums = PairedSums::new(3);
        scores.iter().for_each(|row| sums.add(1.0, row));
        for (i, j) in [(0, 1), (1, 2), (2, 0)] {
            let differences: Vec<f64> = scores.iter().map(|row| row[i] - row[j]).collect();
            let (found, expected) =
                (sums.standard_error(i, j).unwrap(), standard_error(&differences).unwrap());
            assert!((found - expected).abs() < 1e-9, "{found} against {expected}");
        }
        assert_eq!(sums.standard_error(1, 1), Some(0.0));
    }

    #[test]
    fn uneven_portions_count_by_their_rows() {
        let mut sums = PairedSums::new(2);
        let portions: Vec<(f64, f64)> = (0..12).map(|i| (f64::from(1 + i % 3), f64::from(i % 5))).collect();
        portions.iter().for_each(|&(rows, gain)| sums.add(rows, &[0.0, gain]));
        let rows: f64 = portions.iter().map(|(rows, _)| rows).sum();
        let average = portions.iter().map(|(_, gain)| gain).sum::<f64>() / rows;
        let residuals: Vec<f64> = portions.iter().map(|(rows, gain)| gain - rows * average).collect();
        assert!(mean(&residuals).unwrap().abs() < 1e-12);
        let expected = standard_error(&residuals).unwrap() * 12.0 / rows;
        assert!((sums.standard_error(0, 1).unwrap() - expected).abs() < 1e-12);
    }

    #[test]
    fn scores_beyond_all_measure_leave_sums_that_a_file_can_hold() {
        let mut sums = PairedSums::new(2);
        (0..20).for_each(|i| sums.add(64.0, &[1.0, -1e200 * f64::from(i % 2)]));
        assert!(sums.is_sound(2) && !sums.is_sound(3));
        assert_eq!(sums.standard_error(0, 1), None);
    }

    #[test]
    fn few_portions_have_no_standard_error() {
        let mut sums = PairedSums::new(2);
        (0..9).for_each(|i| sums.add(1.0, &[0.0, f64::from(i)]));
        assert_eq!(sums.standard_error(0, 1), None);
    }
}
