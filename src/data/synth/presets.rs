//! Named mixtures: the sets of the paper's Figure 1, and substitutes for sets of the catalogue.

use super::{SynthError, SynthSpec, Tails};
use crate::data::DataSet;

/// Sets in the paper's Figure 1.
pub const PAPER_SETS: usize = 9;
/// Test rows of each.
pub const PAPER_TEST_ROWS: u64 = 30_000;
const PAPER_ROWS: u64 = 170_000;

/// Clusters, columns, separation, condition and skew of the weights of each set. The paper gives the rows and the ranges of
/// the first two. The others are chosen such that the most probable cluster is wrong for 3 to 20 % of the rows.
const PAPER: [(usize, usize, f64, f64, f64); PAPER_SETS] = [
    (2, 3, 2.0, 5.0, 0.5),
    (2, 6, 2.5, 10.0, 1.0),
    (3, 4, 2.5, 10.0, 0.5),
    (3, 8, 2.5, 10.0, 1.0),
    (4, 5, 3.0, 10.0, 0.5),
    (4, 10, 2.5, 20.0, 0.5),
    (5, 7, 2.8, 10.0, 0.5),
    (6, 9, 2.8, 20.0, 0.5),
    (6, 10, 3.0, 20.0, 1.0),
];

/// Sets with at least this many rows are large, and their substitutes have more clusters.
const LARGE: u64 = 100_000;

impl SynthSpec {
    /// Set `1..=9` of the paper's Figure 1.
    pub fn paper(set: usize) -> Result<SynthSpec, SynthError> {
        let index = set.checked_sub(1).ok_or(SynthError::NoSuchPaperSet(set))?;
        let &(k, dim, separation, condition, weight_skew) =
            PAPER.get(index).ok_or(SynthError::NoSuchPaperSet(set))?;
        let seed = set as u64;
        Ok(SynthSpec {
            k,
            dim,
            rows: PAPER_ROWS,
            seed,
            separation,
            condition,
            weight_skew,
            ..SynthSpec::default()
        })
    }

    /// A substitute for a set of the catalogue. It has the same numbers of rows and columns, overlapping clusters, correlated
    /// columns of different units, and heavy tails. Nothing else is taken from the set.
    pub fn like(set: &DataSet) -> Result<SynthSpec, SynthError> {
        let dim = set.width().ok_or_else(|| SynthError::UnknownColumns(set.name.clone()))?;
        Ok(SynthSpec {
            k: if set.rows >= LARGE { 8 } else { 5 },
            dim,
            rows: set.rows,
            separation: 4.0,
            // Small differences between the covariances add up over many columns.
            condition: (7.2 / dim as f64).sqrt().exp(),
            weight_skew: 0.5,
            tails: Tails::Heavy,
            shared_condition: 1e4,
            unit_decades: 4.0,
            ..SynthSpec::default()
        })
    }
}
