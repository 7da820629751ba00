use serde::{Deserialize, Serialize};

use super::standard_error;

/// Sums of the scores of one or several candidates over batches of consecutive rows (batch means), for standard errors.
///
/// Consecutive rows may be similar. A standard error that treats them as independent is then too small, so it is computed
/// from batches of equal size. Whenever there are 64 batches, neighbours are merged in pairs. Batches thus grow with the rows
/// until they are longer than the runs of similar rows, and memory is bounded.
///
/// Batches end after the same rows wherever the stream is interrupted, so a resumed pass computes the same sums.
///
/// ```
/// use gmm_bmm::internals::stats::BatchSums;
///
/// let mut batches = BatchSums::new(vec![0.0]);
/// let mut total = 0.0;
/// for row in 0..40_000 {
///     total += f64::from(row / 500 % 7); // runs of 500 equal scores
///     batches.record(1, &[total]);
/// }
/// let of_rows = 2.0 / 200.0; // from a standard deviation of 2
/// assert!(batches.standard_error(0).unwrap() > 5.0 * of_rows);
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchSums {
    /// Rows in a batch, a power of two.
    size: u64,
    /// For each full batch, the sum of the scores of each candidate.
    full: Vec<Vec<f64>>,
    /// Rows in the open batch.
    open_rows: u64,
    /// The sum of the scores of each candidate over all rows before the open batch.
    before: Vec<f64>,
    /// The total weight of each full batch and of the open one, once a row has another weight than 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    weights: Vec<f64>,
}

impl BatchSums {
    /// At this many batches, neighbours are merged.
    const MAX: usize = 64;
    /// From fewer batches, the standard error of a difference is too uncertain.
    const MIN: usize = 10;

    /// Whether it has nothing, as for a single candidate.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// For candidates whose scores over earlier rows have these sums.
    pub fn new(totals: Vec<f64>) -> Self {
        BatchSums { size: 1, before: totals, ..BatchSums::default() }
    }

    /// Divides this number of rows where batches end.
    pub(crate) fn cut(&self, mut rows: usize) -> Vec<usize> {
        let (mut size, mut full, mut open_rows) = (self.size, self.full.len(), self.open_rows);
        let mut parts = Vec::new();
        while rows > 0 {
            let part = usize::try_from(size - open_rows).unwrap_or(usize::MAX).min(rows);
            parts.push(part);
            (rows, full, open_rows) = (rows - part, full + 1, 0);
            if full == Self::MAX {
                (size, full) = (size.saturating_mul(2), full / 2);
            }
        }
        parts
    }

    /// Records cumulative scores after `rows` more rows and closes the batch when it is full. The rows must not extend beyond
    /// the end of the batch.
    pub fn record(&mut self, rows: u64, totals: &[f64]) {
        self.record_weighted(rows, None, totals);
    }

    /// [`BatchSums::record`] of rows with these weights.
    pub fn record_weighted(&mut self, rows: u64, weights: Option<&[f64]>, totals: &[f64]) {
        self.add_weights(rows, weights);
        self.open_rows += rows;
        debug_assert!(self.open_rows <= self.size, "rows extend beyond the end of a batch");
        if self.open_rows < self.size {
            return;
        }
        // JSON has no infinity.
        let finite = |value: f64| value.clamp(-f64::MAX, f64::MAX);
        self.full.push(totals.iter().zip(&self.before).map(|(now, before)| finite(now - before)).collect());
        (self.open_rows, self.before) = (0, totals.to_vec());
        let weighted = !self.weights.is_empty();
        if self.full.len() == Self::MAX {
            self.weights = self.weights.chunks(2).map(|pair| pair.iter().sum()).collect();
            let merge =
                |pair: &[Vec<f64>]| pair[0].iter().zip(&pair[1]).map(|(a, b)| finite(a + b)).collect();
            self.full = self.full.chunks_exact(2).map(merge).collect();
            self.size = self.size.saturating_mul(2);
        }
        if weighted {
            self.weights.push(0.0);
        }
    }

    fn add_weights(&mut self, rows: u64, weights: Option<&[f64]>) {
        let has_weights = |weights: &[f64]| weights.iter().any(|&weight| weight != 1.0);
        if self.weights.is_empty() {
            if !weights.is_some_and(has_weights) {
                return;
            }
            self.weights = vec![self.size as f64; self.full.len()];
            self.weights.push(self.open_rows as f64);
        }
        let Some(open) = self.weights.last_mut() else { return };
        match weights {
            Some(weights) => weights.iter().for_each(|weight| *open += weight),
            None => (0..rows).for_each(|_| *open += 1.0),
        }
    }

    /// The mean weight of a full batch.
    fn mean_weight(&self) -> f64 {
        let full = self.weights.len().saturating_sub(1);
        let mean = self.weights[..full].iter().sum::<f64>() / full as f64;
        if full > 0 && mean > 0.0 { mean } else { self.size as f64 }
    }

    /// Whether at least this many rows were recorded.
    pub fn covers(&self, rows: u64) -> bool {
        (self.full.len() as u64).saturating_mul(self.size).saturating_add(self.open_rows) >= rows
    }

    /// The sums of one candidate alone.
    pub(crate) fn only(&self, candidate: usize) -> BatchSums {
        let own = |sums: &Vec<f64>| sums.get(candidate).copied().into_iter().collect();
        BatchSums { full: self.full.iter().map(own).collect(), before: own(&self.before), ..self.clone() }
    }

    /// The rows of a batch, and the mean score of a candidate in each full batch, the first batch first.
    pub(crate) fn means(&self, candidate: usize) -> (u64, Vec<f64>) {
        let weight = |i: usize| self.weights.get(i).copied().unwrap_or(self.size as f64);
        (self.size, self.full.iter().enumerate().map(|(i, batch)| batch[candidate] / weight(i)).collect())
    }

    /// The standard error of a candidate's mean score per row; `None` from fewer than two rows.
    pub fn standard_error(&self, candidate: usize) -> Option<f64> {
        self.error_of(|batch| batch[candidate])
    }

    /// The standard error of the mean difference between the scores of two candidates; `None` from fewer than ten rows.
    pub fn standard_error_of_difference(&self, one: usize, other: usize) -> Option<f64> {
        self.error_of(|batch| batch[one] - batch[other]).filter(|_| self.full.len() >= Self::MIN)
    }

    fn error_of(&self, score: impl Fn(&[f64]) -> f64) -> Option<f64> {
        let sums: Vec<f64> = self.full.iter().map(|batch| score(batch)).collect();
        standard_error(&sums).map(|error| error / self.mean_weight()).filter(|error| error.is_finite())
    }

    /// Whether this is valid for this number of candidates: its shapes agree and its numbers are finite.
    pub(crate) fn is_sound(&self, candidates: usize) -> bool {
        let is_whole = |sums: &Vec<f64>| sums.len() == candidates && sums.iter().all(|sum| sum.is_finite());
        self.size.is_power_of_two()
            && (self.weights.is_empty() || self.weights.len() == self.full.len() + 1)
            && self.weights.iter().all(|&weight| weight.is_finite() && weight >= 0.0)
            && self.open_rows < self.size
            && self.full.len() < Self::MAX
            && self.full.iter().chain([&self.before]).all(is_whole)
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// The scores of three candidates for some rows.
    fn scores(rows: usize) -> Vec<[f64; 3]> {
        (0..rows).map(|i| [0.3, 0.7, 1.1].map(|f| -1e3 + (f * i as f64).sin())).collect()
    }

    fn batches_of(scores: &[[f64; 3]]) -> BatchSums {
        let (mut batches, mut totals) = (BatchSums::new(vec![0.0; 3]), [0.0; 3]);
        for row in scores {
            totals.iter_mut().zip(row).for_each(|(total, score)| *total += score);
            batches.record(1, &totals);
        }
        batches
    }

    #[test]
    fn few_rows_are_batches_of_their_own() {
        let scores = scores(63);
        let batches = batches_of(&scores);
        for (i, j) in [(0, 1), (1, 2), (2, 0)] {
            let differences: Vec<f64> = scores.iter().map(|row| row[i] - row[j]).collect();
            let (found, expected) =
                (batches.standard_error_of_difference(i, j).unwrap(), standard_error(&differences).unwrap());
            assert!((found - expected).abs() < 1e-9, "{found} against {expected}");
        }
        assert_eq!(batches.standard_error_of_difference(1, 1), Some(0.0));
        assert_eq!(batches_of(&scores[..9]).standard_error_of_difference(0, 1), None);
        assert!(batches_of(&scores[..2]).standard_error(0).is_some());
        assert_eq!(batches_of(&scores[..1]).standard_error(0), None);
    }

    #[test]
    fn batches_double_whenever_there_are_64() {
        for (rows, size, full, open) in
            [(63, 1, 63, 0), (64, 2, 32, 0), (127, 2, 63, 1), (128, 4, 32, 0), (100_000, 2048, 48, 1696)]
        {
            let scores = scores(rows);
            let batches = batches_of(&scores);
            assert_eq!(
                (batches.size, batches.full.len(), batches.open_rows),
                (size, full, open),
                "{rows} rows"
            );
            assert!(batches.covers(rows as u64) && !batches.covers(rows as u64 + 1));
            let sums: Vec<f64> = scores
                .chunks_exact(size as usize)
                .map(|batch| batch.iter().map(|row| row[0]).sum())
                .collect();
            let (found, expected) =
                (batches.standard_error(0).unwrap(), standard_error(&sums).unwrap() / size as f64);
            assert!((found - expected).abs() < 1e-9, "{rows} rows: {found} against {expected}");
        }
    }

    /// Runs of equal scores. After 100,000 rows a batch contains four runs.
    #[test]
    fn runs_of_similar_rows_increase_the_standard_error() {
        for seed in 0..20 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let runs: Vec<f64> = (0..200).map(|_| rng.random()).collect();
            let scores: Vec<[f64; 3]> = (0..100_000).map(|i| [runs[i / 500], 0.0, 0.0]).collect();
            let ratio = batches_of(&scores).standard_error_of_difference(0, 1).unwrap()
                / standard_error(&runs).unwrap();
            assert!((0.6..1.4).contains(&ratio), "{ratio}, seed {seed}");
        }
    }

    #[test]
    fn batches_do_not_depend_on_where_the_stream_is_cut() {
        let total = |k: usize, rows: usize| -1.5 * rows as f64 - (k as f64 * rows as f64).sin();
        let recorded = |cuts: &[usize]| {
            let (mut batches, mut seen) = (BatchSums::new(vec![total(1, 0), total(2, 0)]), 0);
            for &rows in cuts {
                for part in batches.clone().cut(rows) {
                    seen += part;
                    batches.record(part as u64, &[total(1, seen), total(2, seen)]);
                }
            }
            batches
        };
        let straight = recorded(&[1000]);
        assert_eq!(straight, recorded(&[10, 54, 0, 1, 199, 636, 100]));
        assert_eq!(straight, recorded(&[1; 1000]));
        let read: BatchSums = serde_json::from_str(&serde_json::to_string(&straight).unwrap()).unwrap();
        assert_eq!(read, straight);
    }

    #[test]
    fn numbers_of_a_damaged_file_are_not_sound() {
        let sound = batches_of(&scores(1000));
        assert!(sound.is_sound(3) && !sound.is_sound(2) && !BatchSums::default().is_sound(0));
        for size in [0, 3, u64::MAX] {
            assert!(!BatchSums { size, ..sound.clone() }.is_sound(3));
        }
        assert!(!BatchSums { open_rows: 16, ..sound.clone() }.is_sound(3));
        assert!(!BatchSums { before: vec![f64::NAN; 3], ..sound.clone() }.is_sound(3));
        assert!(!BatchSums { full: vec![vec![0.0; 3]; 64], ..sound.clone() }.is_sound(3));
        // The largest size that can be read causes no overflow.
        let mut huge = BatchSums { size: 1 << 63, ..sound };
        assert!(huge.is_sound(3) && huge.covers(u64::MAX));
        assert_eq!(huge.cut(2).len(), 1);
        huge.record(2, &[0.0; 3]);
    }

    #[test]
    fn scores_that_overflow_leave_finite_sums() {
        let mut batches = BatchSums::new(vec![f64::MAX, 0.0]);
        (0..200).for_each(|i| batches.record(1, &[f64::MAX * f64::from(i % 3 - 1), f64::from(i)]));
        assert!(batches.is_sound(2));
        assert_eq!(batches.standard_error_of_difference(0, 1), None);
    }
}
