//! Noticing that rows no longer fit their components: their squared distances become larger or smaller than they were.

use serde::{Deserialize, Serialize};

use crate::learn::Surprise;

/// The weights of a batch in the recent and in the usual mean, two exponential averages.
const RECENT: f64 = 0.25;
const USUAL: f64 = 0.03;
/// Batches before the first judgement.
const MIN_BATCHES: u32 = 8;
/// The means differ if they are apart by more than this many standard errors, and by this part of the usual mean. After few
/// batches the error is uncertain, and more are needed.
const MIN_ERRORS: f64 = 6.0;
const MIN_DIFFERENCE: f64 = 0.03;
/// With more columns, distances fall for many rows, because the covariances become more accurate. So only rises count.
const MANY_COLUMNS: usize = 40;

/// The mean squared distance of rows from their components, batch by batch.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MisfitWatch {
    /// The rows of the current batch.
    open: Surprise,
    batches: u32,
    recent: f64,
    usual: f64,
    /// The usual squared difference between consecutive batches, halved: the variance of one batch.
    variance: f64,
    last: f64,
}

impl MisfitWatch {
    /// Adds rows of the current batch.
    pub fn add(&mut self, rows: Surprise) {
        self.open = self.open.plus(rows);
    }

    /// Ends a batch. Returns whether its rows, with those of a few batches before, are off.
    pub fn end_batch(&mut self, columns: usize) -> bool {
        if self.open == Surprise::default() {
            return false;
        }
        let mean = std::mem::take(&mut self.open).mean();
        if self.batches == 0 {
            (self.recent, self.usual, self.last) = (mean, mean, mean);
        }
        // The first batches count the same, so that the first one does not dominate.
        self.batches = self.batches.saturating_add(1);
        let weight = |least: f64| least.max(1.0 / f64::from(self.batches));
        self.recent += weight(RECENT) * (mean - self.recent);
        let error = (self.variance * RECENT / (2.0 - RECENT)).sqrt();
        let rise = self.recent - self.usual;
        let apart = if columns > MANY_COLUMNS { rise } else { rise.abs() };
        let errors = MIN_ERRORS * (1.0 + f64::from(MIN_BATCHES) / f64::from(self.batches));
        let off = self.batches > MIN_BATCHES
            && apart > (errors * error).max(MIN_DIFFERENCE * self.usual)
            && apart.is_finite();
        self.usual += weight(USUAL) * (mean - self.usual);
        self.variance += weight(USUAL) * (0.5 * (mean - self.last).powi(2) - self.variance);
        self.last = mean;
        off
    }

    /// Begins anew, after a revision: what is usual has changed.
    pub fn reset(&mut self) {
        *self = MisfitWatch { open: self.open, ..MisfitWatch::default() };
    }

    /// Whether all values are finite.
    pub fn is_sound(&self) -> bool {
        [self.recent, self.usual, self.variance, self.last].iter().all(|value| value.is_finite())
    }
}
