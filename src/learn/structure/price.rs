//! The price of a component where K is learned from few rows.

use std::sync::atomic::AtomicBool;

use super::e_step::label;
use super::em::Em;
use super::revision::polishing_shape;
use super::{Effort, Size, find_structure};
use crate::learn::RELATIVE_FLOOR;
use crate::linalg::blocks::RowBlocks;
use crate::stats::capped_mean_and_error;

/// Prices that are tried, as fractions of BIC's.
const LOWER: [f64; 2] = [0.5, 0.25];
/// One row in this many is held out.
const HELD_OUT: usize = 5;
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
pub(in crate::learn) fn with_judged_price(
    rows: &RowBlocks,
    size: Size,
    seed: u64,
    ridge: f64,
    stop: &AtomicBool,
) -> Size {
    let Size::Learned { least, most, price } = size else { return size };
    if !(MIN_ROWS..=MAX_ROWS).contains(&rows.rows()) {
        return size;
    }
    let (held_out, learned): (Vec<usize>, Vec<usize>) = (0..rows.rows()).partition(|i| i % HELD_OUT == 0);
    let (held_out, learned) = (rows.reordered(&held_out), rows.reordered(&learned));
    let at = |share: f64| Size::Learned { least, most, price: share * price };
    let scores = |share: f64| {
        let found = find_structure(&learned, at(share), seed, Effort::Default.limits(), ridge, stop);
        let shape = polishing_shape(learned.rows(), &found, true);
        let em = Em { iterations: ITERATIONS, tolerance: 1e-5, shape, ridge: RELATIVE_FLOOR, noise: None };
        label(&held_out, &em.run(&learned, &found, f64::NEG_INFINITY, stop).mixture).1
    };
    let (mut best, mut chosen) = (scores(1.0), 1.0);
    for share in LOWER {
        let lower = scores(share);
        let (gain, error) = capped_mean_and_error(lower.iter().zip(&best).map(|(new, old)| new - old));
        if gain > error {
            (best, chosen) = (lower, share);
        }
    }
    at(chosen)
}
