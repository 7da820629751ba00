//! What a pass takes, estimated before it begins.

use crate::learn::{Algorithm, Finding, FitSettings, LearnError, start_minutes};

/// A model file of more bytes is not read: a pipe that never ends must not fill the memory. Ten components over 3000
/// columns need half of this.
pub(crate) const MAX_MODEL_BYTES: u64 = 2 << 30;

/// More memory than this no machine has.
const MAX_GIGABYTES: f64 = 256.0;

/// A start that takes more than this is worth a finding.
const SHORT_MINUTES: f64 = 1.0;
const SMALL_GIGABYTES: f64 = 2.0;

impl FitSettings {
    /// Estimates what a pass over `columns` columns takes. An error where it cannot fit into memory or into a model
    /// file, and a finding where the start takes long.
    pub fn check_size(&self, columns: usize) -> Result<Option<Finding>, LearnError> {
        let (rows, components) = (self.rows_of_start(columns), self.components.expected_total());
        let d = columns as f64;
        // The buffered rows with a scaled copy; a prior, a posterior and two scratch matrices for each component.
        let gigabytes = 8e-9 * (2.0 * rows as f64 * d + 4.0 * self.covariance.numbers(components, columns));
        if gigabytes > MAX_GIGABYTES {
            return Err(LearnError::TooManyColumns { columns, gigabytes });
        }
        if let Algorithm::Odmm(odmm) = self.algorithm {
            check_shards(odmm.shards, components, columns)?;
        }
        self.check_kept_rows(columns)?;
        let minutes = start_minutes(rows, self.covariance, components, columns);
        let is_large = minutes > SHORT_MINUTES || gigabytes > SMALL_GIGABYTES;
        Ok(is_large.then_some(Finding::LargeStart { columns, rows, minutes, gigabytes }))
    }

    /// An error where the kept rows do not fit into a model file.
    fn check_kept_rows(&self, columns: usize) -> Result<(), LearnError> {
        let Some(rows) = self.keep_rows else { return Ok(()) };
        // Many rows are kept in single precision, and three bytes become four letters.
        let bytes = 4.0 / 3.0 * 4.0 * columns as f64 * rows as f64;
        if bytes <= 0.9 * MAX_MODEL_BYTES as f64 {
            return Ok(());
        }
        Err(LearnError::TooManyKeptRows { rows, columns, gigabytes: bytes / 1e9 })
    }
}

/// An error where shards do not fit into a model file. In memory they take about as much.
pub fn check_shards(shards: usize, components: usize, columns: usize) -> Result<(), LearnError> {
    let d = columns as f64;
    // Three triangles, the mean and some scalars for each component, at most 25 bytes a number.
    let bytes = 25.0 * (1.5 * d * (d + 1.0) + 2.0 * d + 20.0) * components as f64 * shards as f64;
    if bytes <= MAX_MODEL_BYTES as f64 {
        return Ok(());
    }
    Err(LearnError::TooManyShards { shards, components, columns, gigabytes: bytes / 1e9 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_do_not_fit_are_refused_and_large_ones_are_found() {
        let settings = FitSettings::obmm([4]);
        assert_eq!(settings.check_size(10), Ok(None));
        assert!(matches!(settings.check_size(500), Ok(Some(Finding::LargeStart { columns: 500, .. }))));
        assert!(matches!(settings.check_size(100_000), Err(LearnError::TooManyColumns { .. })));
        let kept = FitSettings { keep_rows: Some(100_000_000), ..settings };
        assert!(matches!(kept.check_size(10), Err(LearnError::TooManyKeptRows { rows: 100_000_000, .. })));
        assert!(matches!(check_shards(10_000, 50, 100), Err(LearnError::TooManyShards { .. })));
    }
}
