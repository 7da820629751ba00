//! The rows of a revision.

use std::sync::Arc;

use crate::learn::LearnError;
use crate::learn::structure::Size;
use crate::learn::structure::scaled::ScaledRows;
use crate::linalg::{CovarianceType, Table};

/// Rows of a smaller weight because of their age are left out.
const NEGLIGIBLE_WEIGHT: f64 = 1.0 / 128.0;

/// About `most` rows with the weights of their ages and their own weights, if they have any.
pub(super) fn weighted_rows(
    rows: Arc<Table>,
    dim: usize,
    ages: Option<&[f64]>,
    own: Option<&[f64]>,
    (most, kind): (usize, CovarianceType),
) -> Result<ScaledRows, LearnError> {
    let count = rows.len() / dim;
    if ages.is_none() && own.is_none() {
        return ScaledRows::shared(rows, dim, (count / most.max(1)).max(1), kind);
    }
    let age = |i: usize| ages.map_or(1.0, |ages| ages[i]);
    let mut chosen: Vec<usize> = (0..count).filter(|&i| age(i) >= NEGLIGIBLE_WEIGHT).collect();
    let step = (chosen.len() / most.max(1)).max(1);
    chosen = chosen.into_iter().step_by(step).collect();
    let own: Option<Vec<f64>> = own.map(|own| chosen.iter().map(|&i| own[i]).collect());
    let weight = |(n, &i): (usize, &usize)| age(i) * own.as_ref().map_or(1.0, |own| own[n]);
    let weights: Vec<f64> = chosen.iter().enumerate().map(weight).collect();
    ScaledRows::weighted(rows, dim, &chosen, &weights, own.as_deref(), kind)
}

/// The approximate number of rows of a search. It is smaller in many dimensions, to limit the work, and larger if K is learned,
/// because more rows distinguish more components.
pub(in crate::learn) fn search_rows(size: Size, kind: CovarianceType, k: usize, dim: usize) -> usize {
    const WORK: f64 = 2e8;
    let most = match size {
        Size::Given(_) => (600 * k).max(10_000),
        Size::Learned { .. } => 60_000,
    };
    let least = if kind.is_full() { 9 * k * dim } else { 100 * k };
    ((WORK / kind.work(k, dim)) as usize).min(most).max(least)
}
