//! How the rows of a resumed run compare with the rows before.

use serde::Serialize;

use crate::learn::ScoreRanks;
use crate::learn::structure::BATCH;

/// How the rows of a resumed run compare with the rows that were learned before, by their log-densities.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Today {
    /// Rows of the run that were scored before they were learned.
    pub rows: u64,
    /// Their mean log-density.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
    /// The mean log-density of the rows before.
    pub expected: f64,
    /// By how much the mean of as many rows differs from it by chance.
    pub expected_error: f64,
    /// The fraction of equally long parts of the earlier rows that have a higher mean, as far as chance explains them.
    pub lower_than: f64,
}

/// Sums over the rows of a run. Values far below the usual ones count as less far, so a few outliers do not decide.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::learn) struct RunScores {
    /// The mean and the standard deviation of the log-densities of the rows before.
    before: (f64, f64),
    all: ScoreSums,
    /// The means of batches, which show how much consecutive rows depend on each other.
    batches: ScoreSums,
    batch: ScoreSums,
}

#[derive(Debug, Clone, Copy, Default)]
struct ScoreSums {
    count: f64,
    sum: f64,
    squares: f64,
}

impl ScoreSums {
    fn add(&mut self, value: f64, weight: f64) {
        self.count += weight;
        self.sum += weight * value;
        self.squares += weight * (value * value);
    }

    fn mean(&self) -> f64 {
        self.sum / self.count
    }

    fn variance(&self) -> f64 {
        (self.squares / self.count - self.mean().powi(2)).max(0.0)
    }
}

/// The most standard deviations by which a row counts as lower than the mean of the rows before.
const MAX_DEVIATIONS: f64 = 10.0;
/// Batches from which the dependence of rows is known.
const MIN_BATCHES: f64 = 4.0;

impl RunScores {
    /// The sums of a run that resumes after these rows; `None` if they have no log-densities.
    pub fn after(ranks: &ScoreRanks) -> Option<Self> {
        let before = ranks.mean_and_deviation()?;
        Some(RunScores { before, ..RunScores::default() })
    }

    /// Adds the log-density of a row, which counts as `weight` rows.
    pub fn add(&mut self, log_density: f64, weight: f64) {
        let (mean, deviation) = self.before;
        let least = mean - MAX_DEVIATIONS * deviation;
        let apart = if log_density > least { log_density - mean } else { least - mean };
        self.all.add(apart, weight);
        self.batch.add(apart, weight);
        if self.batch.count >= BATCH as f64 {
            self.batches.add(self.batch.mean(), 1.0);
            self.batch = ScoreSums::default();
        }
    }

    /// The comparison; `None` without rows.
    pub fn today(&self) -> Option<Today> {
        let (expected, deviation) = self.before;
        if self.all.count < 2.0 || deviation <= 0.0 {
            return None;
        }
        // Batches of dependent rows differ more than those of independent rows.
        let dependence = self.batches.variance() * BATCH as f64 / self.all.variance();
        let known = self.batches.count >= MIN_BATCHES && dependence.is_finite();
        let dependence = if known { dependence.max(1.0) } else { 1.0 };
        let error = |variance: f64| (variance * dependence / self.all.count).sqrt();
        let expected_error = error(deviation * deviation);
        let apart = self.all.mean() / expected_error;
        Some(Today {
            rows: self.all.count as u64,
            mean: expected + self.all.mean(),
            error: error(self.all.variance()),
            expected,
            expected_error,
            lower_than: 0.5 * libm::erfc(apart / std::f64::consts::SQRT_2),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_like_the_rows_before_is_in_the_middle_and_a_lower_one_is_at_the_end() {
        let value = |i: u64| -0.5 * ((i * 7919 % 1000) as f64 / 100.0);
        let mut ranks = ScoreRanks::default();
        (0..5000).for_each(|i| ranks.push(value(i)));
        let run = |shift: f64| {
            let mut run = RunScores::after(&ranks).unwrap();
            (0..3000).for_each(|i| run.add(value(i) + shift, 1.0));
            run.today().unwrap()
        };
        let (like, lower) = (run(0.0), run(-0.3));
        assert!((like.lower_than - 0.5).abs() < 0.2 && lower.lower_than > 0.999, "{like:?} {lower:?}");
        assert!((lower.mean - like.mean + 0.3).abs() < 1e-9 && lower.rows == 3000);
        assert!(RunScores::after(&ScoreRanks::default()).is_none());
        assert_eq!(RunScores::after(&ranks).unwrap().today(), None);
    }
}
