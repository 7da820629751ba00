use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A random sample of the rows of a stream, in bounded memory. Every row offered so far is in it with the same probability.
/// Equal seeds give equal samples.
#[derive(Debug, Clone)]
pub struct Reservoir {
    columns: usize,
    most: usize,
    seen: u64,
    rng: ChaCha8Rng,
    values: Vec<f64>,
}

impl Reservoir {
    /// A sample of at most `most` rows of `columns` numbers.
    ///
    /// # Panics
    /// If `columns` is zero.
    pub fn new(columns: usize, most: usize, seed: u64) -> Self {
        assert!(columns > 0, "a row needs at least one column");
        Reservoir { columns, most, seen: 0, rng: ChaCha8Rng::seed_from_u64(seed), values: Vec::new() }
    }

    /// Offers one more row.
    ///
    /// # Panics
    /// If `row` has another number of columns.
    pub fn offer(&mut self, row: &[f64]) {
        assert_eq!(row.len(), self.columns, "a row must have the sample's columns");
        self.seen += 1;
        if self.seen <= self.most as u64 {
            self.values.extend_from_slice(row);
            return;
        }
        // The n-th row belongs to a sample of the first n with probability most/n.
        let place = self.rng.random_range(0..self.seen);
        if place < self.most as u64 {
            let start = place as usize * self.columns;
            self.values[start..start + self.columns].copy_from_slice(row);
        }
    }

    /// Rows offered so far.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// The sample.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.values.chunks_exact(self.columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(rows: u32, most: usize, seed: u64) -> Vec<f64> {
        let mut reservoir = Reservoir::new(2, most, seed);
        (0..rows).map(f64::from).for_each(|value| reservoir.offer(&[value, -value]));
        assert_eq!(reservoir.seen(), u64::from(rows));
        assert!(reservoir.rows().all(|row| row[1] == -row[0]), "rows stay whole");
        reservoir.rows().map(|row| row[0]).collect()
    }

    #[test]
    fn few_rows_are_all_kept_and_of_many_no_more_than_asked_for() {
        assert_eq!(sample(3, 5, 1), [0.0, 1.0, 2.0]);
        assert_eq!(sample(1000, 5, 1).len(), 5);
        assert_eq!(sample(1000, 5, 1), sample(1000, 5, 1));
        assert_ne!(sample(1000, 5, 1), sample(1000, 5, 2));
        assert!(sample(10, 0, 1).is_empty());
    }

    #[test]
    fn every_row_is_as_likely_to_be_kept() {
        let mut times = [0u32; 10];
        for seed in 0..4000 {
            sample(10, 3, seed).iter().for_each(|&row| times[row as usize] += 1);
        }
        assert!(times.iter().all(|&n| (1080..1320).contains(&n)), "{times:?}");
    }
}
