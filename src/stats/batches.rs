use serde::{Deserialize, Serialize};

use super::standard_error;

/// Sums of the scores of one or several candidates over batches of consecutive rows, for standard errors.
///
/// Rows that follow one another may be alike, and a standard error that takes rows for independent is then too small. So it
/// is taken over batches, which all have the same number of rows. Whenever there are 64 batches, each two neighbours are
/// united: batches grow with the rows, until they are longer than the runs of rows that are alike, and few numbers are kept.
///
/// Batches end after the same rows wherever the stream is cut, so a pass that is resumed comes to the same sums.
///
/// ```
/// use gmm_bmm::stats::BatchSums;
///
/// let mut batches = BatchSums::new(vec![0.0]);
/// let mut total = 0.0;
/// for row in 0..40_000 {
///     total += f64::from(row / 500 % 7); // runs of 500 equal scores
///     batches.note(1, &[total]);
/// }
/// let of_rows = 2.0 / 200.0; // from a standard deviation of 2
/// assert!(batches.standard_error(0).unwrap() > 5.0 * of_rows);
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchSums {
    /// Rows of a batch: a power of two.
    size: u64,
    /// Of each full batch the sum of the scores of each candidate.
    full: Vec<Vec<f64>>,
    /// Rows of the batch under way.
    open_rows: u64,
    /// The score of each candidate, summed over all rows before that batch.
    before: Vec<f64>,
}

impl BatchSums {
    /// With so many batches, neighbours are united.
    const MOST: usize = 64;
    /// With fewer batches, the standard error of a difference would be chance itself.
    const FEWEST: usize = 10;

    /// For candidates with these scores so far, summed over the rows before.
    pub fn new(totals: Vec<f64>) -> Self {
        BatchSums { size: 1, full: Vec::new(), open_rows: 0, before: totals }
    }

    /// Cuts rows of `dim` numbers where batches end.
    pub(crate) fn cut<'a>(&self, mut values: &'a [f64], dim: usize) -> Vec<&'a [f64]> {
        let (mut size, mut full, mut open_rows) = (self.size, self.full.len(), self.open_rows);
        let mut parts = Vec::new();
        while !values.is_empty() {
            let wanted = usize::try_from(size - open_rows).unwrap_or(usize::MAX).saturating_mul(dim);
            let (part, rest) = values.split_at(wanted.min(values.len()));
            parts.push(part);
            (values, full, open_rows) = (rest, full + 1, 0);
            if full == Self::MOST {
                (size, full) = (size.saturating_mul(2), full / 2);
            }
        }
        parts
    }

    /// Records the total of each candidate after `rows` more rows, which do not reach beyond the end of a batch.
    pub fn note(&mut self, rows: u64, totals: &[f64]) {
        self.open_rows += rows;
        debug_assert!(self.open_rows <= self.size, "rows reach beyond the end of a batch");
        if self.open_rows < self.size {
            return;
        }
        // Scores that overflow must not make the sums unfit for a file.
        let finite = |value: f64| value.clamp(-f64::MAX, f64::MAX);
        self.full.push(totals.iter().zip(&self.before).map(|(now, before)| finite(now - before)).collect());
        (self.open_rows, self.before) = (0, totals.to_vec());
        if self.full.len() == Self::MOST {
            let unite =
                |pair: &[Vec<f64>]| pair[0].iter().zip(&pair[1]).map(|(a, b)| finite(a + b)).collect();
            self.full = self.full.chunks_exact(2).map(unite).collect();
            self.size = self.size.saturating_mul(2);
        }
    }

    /// Whether no fewer rows than this were recorded.
    pub fn covers(&self, rows: u64) -> bool {
        (self.full.len() as u64).saturating_mul(self.size).saturating_add(self.open_rows) >= rows
    }

    /// The standard error of a candidate's mean score per row; `None` from fewer than two rows.
    pub fn standard_error(&self, candidate: usize) -> Option<f64> {
        self.error_of(|batch| batch[candidate])
    }

    /// The standard error of the mean difference between the scores of two candidates; `None` from fewer than ten rows.
    pub fn standard_error_of_difference(&self, one: usize, other: usize) -> Option<f64> {
        self.error_of(|batch| batch[one] - batch[other]).filter(|_| self.full.len() >= Self::FEWEST)
    }

    fn error_of(&self, score: impl Fn(&[f64]) -> f64) -> Option<f64> {
        let sums: Vec<f64> = self.full.iter().map(|batch| score(batch)).collect();
        standard_error(&sums).map(|error| error / self.size as f64).filter(|error| error.is_finite())
    }

    /// Whether it is of so many candidates, with numbers that a file can hold.
    pub(crate) fn is_sound(&self, candidates: usize) -> bool {
        let is_whole = |sums: &Vec<f64>| sums.len() == candidates && sums.iter().all(|sum| sum.is_finite());
        self.size.is_power_of_two()
            && self.open_rows < self.size
            && self.full.len() < Self::MOST
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
            batches.note(1, &totals);
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

    /// Runs of equal scores; a batch of 100,000 rows has four of them.
    #[test]
    fn runs_of_rows_that_are_alike_are_allowed_for() {
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
        let told = |cuts: &[usize]| {
            let (mut batches, mut seen) = (BatchSums::new(vec![total(1, 0), total(2, 0)]), 0);
            for &rows in cuts {
                let values = vec![0.0; 3 * rows];
                for part in batches.clone().cut(&values, 3) {
                    seen += part.len() / 3;
                    batches.note(part.len() as u64 / 3, &[total(1, seen), total(2, seen)]);
                }
            }
            batches
        };
        let straight = told(&[1000]);
        assert_eq!(straight, told(&[10, 54, 0, 1, 199, 636, 100]));
        assert_eq!(straight, told(&[1; 1000]));
        let read: BatchSums = serde_json::from_str(&serde_json::to_string(&straight).unwrap()).unwrap();
        assert_eq!(read, straight);
    }

    #[test]
    fn what_a_damaged_file_says_is_not_sound() {
        let sound = batches_of(&scores(1000));
        assert!(sound.is_sound(3) && !sound.is_sound(2) && !BatchSums::default().is_sound(0));
        for size in [0, 3, u64::MAX] {
            assert!(!BatchSums { size, ..sound.clone() }.is_sound(3));
        }
        assert!(!BatchSums { open_rows: 16, ..sound.clone() }.is_sound(3));
        assert!(!BatchSums { before: vec![f64::NAN; 3], ..sound.clone() }.is_sound(3));
        assert!(!BatchSums { full: vec![vec![0.0; 3]; 64], ..sound.clone() }.is_sound(3));
        // The largest size that can be read leads nowhere, but to no overflow either.
        let mut huge = BatchSums { size: 1 << 63, ..sound };
        assert!(huge.is_sound(3) && huge.covers(u64::MAX));
        assert_eq!(huge.cut(&[0.0; 6], 3).len(), 1);
        huge.note(2, &[0.0; 3]);
    }

    #[test]
    fn scores_that_overflow_leave_sums_that_a_file_can_hold() {
        let mut batches = BatchSums::new(vec![f64::MAX, 0.0]);
        (0..200).for_each(|i| batches.note(1, &[f64::MAX * f64::from(i % 3 - 1), f64::from(i)]));
        assert!(batches.is_sound(2));
        assert_eq!(batches.standard_error_of_difference(0, 1), None);
    }
}
