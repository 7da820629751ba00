//! Complete rows for searches: gaps are filled by draws from a mixture.
//!
//! Moves need complete rows. EM, which follows them, and the decision whether they are kept use the observed values only.

use std::sync::atomic::AtomicBool;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::em::{Em, Price};
use super::{RIDGE, Size};
use crate::dist::{BlockScorer, Gaussian, GaussianMixture, Mixture};
use crate::linalg::blocks::RowBlocks;
use crate::linalg::{CovarianceType, Factor};

/// The rows without gaps, if there are enough of them for a search.
pub(super) fn complete_rows(rows: &RowBlocks, size: Size) -> Option<RowBlocks> {
    let (Size::Given(k) | Size::Learned { least: k, .. }) = size;
    let is_complete = |&i: &usize| (0..rows.dim()).all(|j| !rows.value(i, j).is_nan());
    let complete: Vec<usize> = (0..rows.rows()).filter(is_complete).collect();
    let enough = complete.len() >= (20 * k * rows.dim()).max(rows.rows() / 4);
    enough.then(|| rows.reordered(&complete))
}

/// The rows with gaps filled by draws. Without a mixture, they are drawn from one Gaussian that is fitted to the rows, which
/// must be in scaled units.
pub(in crate::learn) fn filled(
    rows: &RowBlocks,
    mixture: Option<&GaussianMixture>,
    seed: u64,
    stop: &AtomicBool,
) -> RowBlocks {
    match mixture {
        Some(mixture) => drawn(rows, mixture, seed),
        None => drawn(rows, &one_gaussian(rows, stop), seed),
    }
}

fn drawn(rows: &RowBlocks, mixture: &GaussianMixture, seed: u64) -> RowBlocks {
    let mut scorer = BlockScorer::new(mixture);
    rows.map_blocks(|i, block, filled| {
        scorer.score_block(mixture, block, filled);
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(i as u64);
        scorer.draw_missing(mixture, block, &mut random);
    })
}

/// The Gaussian of the largest likelihood, nearly.
fn one_gaussian(rows: &RowBlocks, stop: &AtomicBool) -> GaussianMixture {
    const ITERATIONS: usize = 30;
    let dim = rows.dim();
    let start = Gaussian::new(vec![0.0; dim], Factor::identity(dim)).expect("zeros are finite");
    let start = Mixture::new(vec![1.0], vec![start]).expect("one weight for one component");
    let price = Price::NONE;
    let kind = CovarianceType::Full;
    let em =
        Em { kind, iterations: ITERATIONS, tolerance: 1e-4, prior: None, price, ridge: RIDGE, noise: None };
    em.run(rows, &start, f64::NEG_INFINITY, stop).mixture
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_gaps_are_used_if_there_are_enough() {
        let complete = |gap_every: usize, k: usize| {
            let value =
                |i: usize, j: usize| if j == 0 && i.is_multiple_of(gap_every) { f64::NAN } else { i as f64 };
            let found = complete_rows(&RowBlocks::from_fn(1000, 2, value), Size::Given(k));
            found.map(|rows| (rows.rows(), rows.has_gaps(), rows.value(0, 0)))
        };
        assert_eq!(complete(4, 3), Some((750, false, 1.0)));
        assert_eq!(complete(4, 30), None, "fewer than 20 for each component and column");
        assert_eq!(complete(1, 3), None);
    }
}
