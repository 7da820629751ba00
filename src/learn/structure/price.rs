//! The price of a component where K is learned from few rows.

use super::e_step::label;
use super::em::{Em, Price};
use super::find::Finder;
use super::{Effort, PriceOfK, Size};
use crate::dist::GaussianMixture;
use crate::learn::RELATIVE_FLOOR;
use crate::linalg::blocks::RowBlocks;
use crate::stats::{capped_mean_and_error, weighted_mean_and_error};

/// Prices that are tried instead of BIC's.
const LOWER: [PriceOfK; 2] = [PriceOfK::Bic(0.5), PriceOfK::Bic(0.25)];
/// Prices that are tried instead of the evidence.
const OF_MANY_COLUMNS: [PriceOfK; 3] = [PriceOfK::Bic(1.0), PriceOfK::Bic(0.5), PriceOfK::Bic(0.25)];
/// Prices that are tried in a time series, whose rows say as much as fewer rows that are independent.
const OF_SERIES: [PriceOfK; 4] =
    [PriceOfK::Bic(64.0), PriceOfK::Bic(16.0), PriceOfK::Bic(4.0), PriceOfK::Bic(1.0)];
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

/// The size with the price of components that scores best on held-out rows.
///
/// With few rows and clusters that are not Gaussian, BIC's price gives too few components. A lower price is used if the
/// held-out rows gain more than one standard error. Rows of a Gaussian mixture gain nothing from more components, so they keep
/// BIC's price. With many columns the evidence decides unless the held-out rows prefer a price.
///
/// In a time series, each held-out row has its neighbours among the others, so any price seems worthwhile. Then blocks of
/// consecutive rows are held out, and the price is the highest one that others do not beat by more than one standard error.
///
/// Also returns the mixture that was found with this price in the rows that were not held out; `None` without a decision.
pub(in crate::learn) fn with_judged_price(
    rows: &RowBlocks,
    finder: Finder,
) -> (Size, Option<GaussianMixture>) {
    let Size::Learned { least, most, price } = finder.size else { return (finder.size, None) };
    let count = rows.rows();
    if !(MIN_ROWS..=MAX_ROWS).contains(&count) {
        return (finder.size, None);
    }
    let at = |price: PriceOfK| Size::Learned { least, most, price };
    // A lower price adds components to the mixture of a higher one.
    let scores = |held_out: &dyn Fn(usize) -> bool, price: PriceOfK, known: Option<&GaussianMixture>| {
        let (held_out, learned): (Vec<usize>, Vec<usize>) = (0..count).partition(|&row| held_out(row));
        let (held_out, learned) = (rows.reordered(&held_out), rows.reordered(&learned));
        let finder = Finder { size: at(price), limits: Effort::Default.limits(), ..finder };
        let (found, ordered) = match known {
            Some(known) => finder.find_from(&learned, known),
            None => finder.find(&learned),
        };
        let (iterations, prior) = (ITERATIONS, Some(finder.prior));
        let (ridge, price) = (RELATIVE_FLOOR, Price::NONE);
        let em = Em { kind: finder.kind, iterations, tolerance: 1e-5, prior, price, ridge, noise: None };
        let fit = em.run(ordered.as_ref().unwrap_or(&learned), &found, f64::NEG_INFINITY, finder.stop);
        (label(&held_out, &fit.mixture).1, fit.mixture)
    };
    // Rows with weights count by them.
    let of_rows = |held_out: &dyn Fn(usize) -> bool, gains: &[f64]| match rows.repeats(0) {
        None => capped_mean_and_error(gains.iter().copied()),
        Some(_) => {
            let held_out = (0..count).filter(|&row| held_out(row));
            weighted_mean_and_error(gains, &held_out.map(|row| rows.weight(row)).collect::<Vec<f64>>())
        }
    };
    // The last price that gains more than a standard error over those before it. `judge` gives the gain and its error.
    let best_price =
        |held_out: &dyn Fn(usize) -> bool, prices: &[PriceOfK], judge: &dyn Fn(&[f64]) -> (f64, f64)| {
            let (mut best, mut mixture) = scores(held_out, prices[0], None);
            let (mut chosen, mut last) = (prices[0], mixture.clone());
            for &price in &prices[1..] {
                let (other, found) = scores(held_out, price, Some(&last));
                let gains: Vec<f64> = other.iter().zip(&best).map(|(new, old)| new - old).collect();
                let (gain, error) = judge(&gains);
                if gain > error {
                    (best, chosen, mixture) = (other, price, found.clone());
                }
                last = found;
            }
            (chosen, mixture)
        };
    if is_series(rows) {
        let block = |row: usize| row * BLOCKS / count % HELD_OUT == HELD_OUT / 2;
        let of_blocks = |gains: &[f64]| {
            let of_block = gains.chunks(gains.len().div_ceil(BLOCKS / HELD_OUT).max(1));
            capped_mean_and_error(of_block.map(|gains| capped_mean_and_error(gains.iter().copied()).0))
        };
        let (price, mixture) = best_price(&block, &OF_SERIES, &of_blocks);
        if !matches!(price, PriceOfK::Bic(factor) if factor <= 1.0) {
            return (at(price), Some(mixture));
        }
    }
    let single = |row: usize| row.is_multiple_of(HELD_OUT);
    let others: &[PriceOfK] =
        if rows.dim() > PriceOfK::MAX_COLUMNS_OF_BIC { &OF_MANY_COLUMNS } else { &LOWER };
    let prices: Vec<PriceOfK> = [price].iter().chain(others).copied().collect();
    let (price, mixture) = best_price(&single, &prices, &|gains| of_rows(&single, gains));
    (at(price), Some(mixture))
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
