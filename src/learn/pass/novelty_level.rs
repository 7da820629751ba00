//! The log-density below which a row counts as unlike the rows before it.

use ndarray::ArrayView1;

use crate::dist::GaussianMixture;
use crate::learn::structure::{KeptRows, rows_of};

/// Kept rows that the level is computed from.
const LEVEL_ROWS: usize = 4000;
/// One in this many kept rows may be below the usual least log-density.
const LEVEL_SHARE: usize = 1000;
/// The level is this far below the usual least log-density.
const LEVEL_MARGIN: f64 = 5.0;
/// With more columns a mixture is closer to the rows that it was fitted to than to further ones.
const MANY_COLUMNS: usize = 40;
/// With fewer validation rows, nothing is known about further rows.
const MIN_VALIDATION: usize = 20;
/// Standard errors by which further rows may be below the validation rows.
const ERRORS: f64 = 2.0;
/// The log-densities of further rows may be this many times as spread as those of learned rows.
const MAX_WIDER: f64 = 2.0;

/// A log-density that few rows are below. Rows with gaps do not count, because their log-densities are of fewer columns.
pub(super) fn novelty_level(mixture: &GaussianMixture, kept: &KeptRows) -> Option<f64> {
    let step = kept.held(mixture.dim()).div_ceil(LEVEL_ROWS).max(1);
    let rows = kept.every_row(step, mixture.dim());
    let rows = rows_of(&rows, mixture.dim());
    let weights = kept.reservoir_weights().unwrap_or_else(|| vec![1.0; kept.held(mixture.dim())]);
    let weights = weights.into_iter().step_by(step);
    let found = mixture.log_densities(rows).into_iter().zip(weights).zip(rows.outer_iter());
    let found: Vec<_> = found.filter(|(_, row)| is_complete(row)).map(|(found, _)| found).collect();
    let further = if mixture.dim() > MANY_COLUMNS { further_rows(mixture, kept) } else { Vec::new() };
    let learned = found.iter().map(|(log_density, _)| *log_density).collect();
    let least = weighted_least(found)?;
    let expected = if further.len() < MIN_VALIDATION { least } else { least_of(further, learned, least) };
    Some(expected - LEVEL_MARGIN)
}

fn is_complete(row: &ArrayView1<f64>) -> bool {
    row.iter().all(|value| !value.is_nan())
}

/// The log-density that one row in a thousand is below.
fn weighted_least(mut found: Vec<(f64, f64)>) -> Option<f64> {
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut left = found.iter().map(|(_, weight)| weight).sum::<f64>() / LEVEL_SHARE as f64;
    let is_rank = |(_, weight): &&(f64, f64)| {
        left -= weight;
        left < 0.0
    };
    found.iter().find(is_rank).map(|(least, _)| *least)
}

/// The log-densities of the validation rows, which were not learned.
fn further_rows(mixture: &GaussianMixture, kept: &KeptRows) -> Vec<f64> {
    let rows = rows_of(kept.validation(), mixture.dim());
    let found = mixture.log_densities(rows).into_iter().zip(rows.outer_iter());
    found.filter(|(_, row)| is_complete(row)).map(|(log_density, _)| log_density).collect()
}

/// The usual least log-density of further rows, from that of learned rows: those of further rows are lower and more spread.
/// Medians and quartiles say by how much, because outliers do not change them.
fn least_of(mut further: Vec<f64>, mut learned: Vec<f64>, least: f64) -> f64 {
    further.sort_by(f64::total_cmp);
    learned.sort_by(f64::total_cmp);
    let quarter = |sorted: &[f64], quarters: usize| sorted[(sorted.len() - 1) * quarters / 4];
    let spread = |sorted: &[f64]| quarter(sorted, 3) - quarter(sorted, 1);
    // The quartiles of a normal distribution are 1.35 standard deviations apart.
    let error = 1.25 * spread(&further) / 1.35 / (further.len() as f64).sqrt();
    let wider = (spread(&further) / spread(&learned).max(f64::MIN_POSITIVE)).clamp(1.0, MAX_WIDER);
    let below = (quarter(&learned, 2) - least) * wider;
    (quarter(&further, 2) - ERRORS * error - below).min(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_rows_are_lower_and_more_spread_than_learned_ones() {
        let learned: Vec<f64> = (0..=1000).map(|i| f64::from(i) / 10.0).collect();
        let further: Vec<f64> = learned.iter().map(|value| 1.5 * value - 60.0).collect();
        // 50 below the median of learned rows is 75 below that of further rows, which is 15. Its error is 1.25·55.6/√1001.
        let least = least_of(further, learned.clone(), 0.0);
        assert!((least - (15.0 - 75.0 - 2.0 * 2.196)).abs() < 0.01, "{least}");
        let least = least_of(vec![200.0; 50], learned, 0.0);
        assert_eq!(least, 0.0, "the level never rises");
    }
}
