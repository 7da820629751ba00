//! The price of a component where K is learned from few rows.

use super::e_step::label;
use super::em::{Em, Price};
use super::find::Finder;
use super::{Effort, PriceOfK, Size};
use crate::learn::RELATIVE_FLOOR;
use crate::linalg::blocks::RowBlocks;
use crate::stats::capped_mean_and_error;

/// Prices that are tried instead of BIC's.
const LOWER: [PriceOfK; 2] = [PriceOfK::Bic(0.5), PriceOfK::Bic(0.25)];
/// Prices that are tried instead of the evidence.
const OF_MANY_COLUMNS: [PriceOfK; 3] = [PriceOfK::Bic(1.0), PriceOfK::Bic(0.5), PriceOfK::Bic(0.25)];
/// One row in this many is held out.
const HELD_OUT: usize = 5;
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
pub(in crate::learn) fn with_judged_price(rows: &RowBlocks, finder: Finder) -> Size {
    let Size::Learned { least, most, price } = finder.size else { return finder.size };
    if !(MIN_ROWS..=MAX_ROWS).contains(&rows.rows()) {
        return finder.size;
    }
    let (held_out, learned): (Vec<usize>, Vec<usize>) = (0..rows.rows()).partition(|i| i % HELD_OUT == 0);
    let (held_out, learned) = (rows.reordered(&held_out), rows.reordered(&learned));
    let at = |price: PriceOfK| Size::Learned { least, most, price };
    let scores = |price: PriceOfK| {
        let finder = Finder { size: at(price), limits: Effort::Default.limits(), ..finder };
        let (found, ordered) = finder.find(&learned);
        let (iterations, prior) = (ITERATIONS, Some(finder.prior));
        let (ridge, price) = (RELATIVE_FLOOR, Price::NONE);
        let em = Em { iterations, tolerance: 1e-5, prior, price, ridge, noise: None };
        let fit = em.run(ordered.as_ref().unwrap_or(&learned), &found, f64::NEG_INFINITY, finder.stop);
        label(&held_out, &fit.mixture).1
    };
    let others: &[PriceOfK] =
        if rows.dim() > PriceOfK::MAX_COLUMNS_OF_BIC { &OF_MANY_COLUMNS } else { &LOWER };
    let (mut best, mut chosen) = (scores(price), price);
    for &other in others {
        let lower = scores(other);
        let (gain, error) = capped_mean_and_error(lower.iter().zip(&best).map(|(new, old)| new - old));
        if gain > error {
            (best, chosen) = (lower, other);
        }
    }
    at(chosen)
}
