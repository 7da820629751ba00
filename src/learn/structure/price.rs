//! The price of a component where K is learned from few rows.

use std::sync::atomic::AtomicBool;

use super::e_step::label;
use super::em::Em;
use super::revision::polishing_shape;
use super::{Effort, Size, find_structure};
use crate::learn::RELATIVE_FLOOR;
use crate::linalg::blocks::RowBlocks;
use crate::stats::capped_mean_and_error;

/// Prices that are tried, the usual one first, as fractions of BIC's.
const LOWER: [f64; 3] = [1.0, 0.5, 0.25];
/// Prices that are tried in a time series, whose rows say as much as fewer rows that are independent.
const OF_SERIES: [f64; 4] = [64.0, 16.0, 4.0, 1.0];
/// One row in this many is held out.
const HELD_OUT: usize = 5;
/// The rows are divided into this many blocks of consecutive rows, of which one in [`HELD_OUT`] is held out.
const BLOCKS: usize = 25;
/// Rows are a time series if neighbours differ by less than this fraction of what rows in random order differ by (as mean squares).
const NEIGHBOURS: f64 = 0.5;
/// With fewer rows, there are too few held-out rows for a decision.
const MIN_ROWS: usize = 100;
/// With more rows, BIC's price does not cost anything that matters, and the searches would take long.
const MAX_ROWS: usize = 5000;
/// Iterations of EM before held-out rows are scored.
const ITERATIONS: usize = 60;

/// The size with the price per component that scores best on held-out rows.
///
/// With few rows and clusters that are not Gaussian, BIC's price gives too few components. A lower price is used if the
/// held-out rows gain more than one standard error. Rows of a Gaussian mixture gain nothing from more components, so they keep
/// BIC's price.
///
/// In a time series, each held-out row has its neighbours among the others, so any price seems worthwhile. Then blocks of
/// consecutive rows are held out, and the price is the highest one that others do not beat by more than one standard error.
pub(in crate::learn) fn with_judged_price(
    rows: &RowBlocks,
    size: Size,
    seed: u64,
    ridge: f64,
    stop: &AtomicBool,
) -> Size {
    let Size::Learned { least, most, price } = size else { return size };
    let count = rows.rows();
    if !(MIN_ROWS..=MAX_ROWS).contains(&count) {
        return size;
    }
    let at = |share: f64| Size::Learned { least, most, price: share * price };
    let scores = |held_out: &dyn Fn(usize) -> bool, share: f64| {
        let (held_out, learned): (Vec<usize>, Vec<usize>) = (0..count).partition(|&row| held_out(row));
        let (held_out, learned) = (rows.reordered(&held_out), rows.reordered(&learned));
        let found = find_structure(&learned, at(share), seed, Effort::Default.limits(), ridge, stop);
        let shape = polishing_shape(learned.rows(), &found, true);
        let em = Em { iterations: ITERATIONS, tolerance: 1e-5, shape, ridge: RELATIVE_FLOOR, noise: None };
        label(&held_out, &em.run(&learned, &found, f64::NEG_INFINITY, stop).mixture).1
    };
    // The last price that gains more than a standard error over those before it. `units` gives what is independent.
    let best_price =
        |held_out: &dyn Fn(usize) -> bool, shares: &[f64], units: &dyn Fn(&[f64]) -> Vec<f64>| {
            let (mut best, mut chosen) = (scores(held_out, shares[0]), shares[0]);
            for &share in &shares[1..] {
                let other = scores(held_out, share);
                let gains: Vec<f64> = other.iter().zip(&best).map(|(new, old)| new - old).collect();
                let (gain, error) = capped_mean_and_error(units(&gains));
                if gain > error {
                    (best, chosen) = (other, share);
                }
            }
            chosen
        };
    if is_series(rows) {
        let block = |row: usize| row * BLOCKS / count % HELD_OUT == HELD_OUT / 2;
        let block_means = |gains: &[f64]| -> Vec<f64> {
            let of_block = gains.chunks(gains.len().div_ceil(BLOCKS / HELD_OUT).max(1));
            of_block.map(|gains| capped_mean_and_error(gains.iter().copied()).0).collect()
        };
        let share = best_price(&block, &OF_SERIES, &block_means);
        if share > 1.0 {
            return at(share);
        }
    }
    let single = |row: usize| row.is_multiple_of(HELD_OUT);
    at(best_price(&single, &LOWER, &<[f64]>::to_vec))
}

/// Whether neighbouring rows are alike.
fn is_series(rows: &RowBlocks) -> bool {
    let count = rows.rows();
    let ratio = |column: usize| {
        let values: Vec<f64> = (0..count).map(|row| rows.value(row, column)).collect();
        let mean = values.iter().sum::<f64>() / count as f64;
        let variance: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let steps: f64 = values.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
        0.5 * steps / variance
    };
    // Not a number, as with gaps or a constant column, is no series.
    let ratios = (0..rows.dim()).map(ratio).sum::<f64>() / rows.dim() as f64;
    ratios < NEIGHBOURS
}
