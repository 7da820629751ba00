//! Settings of one pass.

use serde::{Deserialize, Serialize};

use super::structure::default_kept_rows;
use super::{Algorithm, Effort, LearnError, ObmmSettings, default_init_rows};

/// Settings of one pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FitSettings {
    /// Which algorithm.
    pub algorithm: Algorithm,
    /// The numbers of components to learn in parallel.
    pub ks: Vec<usize>,
    /// Seed of all random choices.
    pub seed: u64,
    /// Rows to buffer for the start; by default [`default_init_rows`] of the largest K.
    pub init_rows: Option<usize>,
    /// How much work goes into the start and into revisions.
    #[serde(default)]
    pub effort: Effort,
    /// Rows to keep for revisions; by default [`default_kept_rows`]. 0 turns revisions off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_rows: Option<usize>,
}

impl FitSettings {
    /// An algorithm, for one number of components or several in parallel, with default settings otherwise.
    pub fn new(algorithm: Algorithm, ks: impl IntoIterator<Item = usize>) -> Self {
        FitSettings {
            algorithm,
            ks: ks.into_iter().collect(),
            seed: 1,
            init_rows: None,
            effort: Effort::default(),
            keep_rows: None,
        }
    }

    /// oBMM with exact Bayes, for one number of components or several in parallel: `FitSettings::obmm([4])`,
    /// `FitSettings::obmm(2..=10)`. The other fields can be changed afterwards.
    pub fn obmm(ks: impl IntoIterator<Item = usize>) -> Self {
        FitSettings::new(Algorithm::Obmm(ObmmSettings::default()), ks)
    }

    pub(super) fn check(&self) -> Result<(), LearnError> {
        self.algorithm.check()?;
        if self.ks.is_empty() || self.ks.contains(&0) {
            return Err(LearnError::Setting { name: "K", must: "at least 1", value: 0.0 });
        }
        if self.init_rows == Some(0) {
            return Err(LearnError::Setting { name: "init-rows", must: "at least 1", value: 0.0 });
        }
        Ok(())
    }

    /// Rows that the start is made from.
    pub fn init_rows(&self, dim: usize) -> usize {
        let largest = self.ks.iter().copied().max().unwrap_or(1);
        self.init_rows.unwrap_or_else(|| default_init_rows(largest, dim))
    }

    /// Rows that are buffered: those of the start, and half as many again where there are several K to choose from, so
    /// that a stream that ends soon after the start has enough to choose by.
    pub(super) fn buffered_rows(&self, dim: usize) -> usize {
        let start = self.init_rows(dim);
        start.saturating_add(if self.ks.len() > 1 { start / 2 } else { 0 })
    }

    /// Rows that are kept for revisions: none where nothing can be revised.
    pub(super) fn kept_rows(&self, dim: usize) -> usize {
        if self.effort == Effort::Fast || self.ks.iter().all(|&k| k == 1) {
            return 0;
        }
        self.keep_rows.unwrap_or_else(|| default_kept_rows(dim))
    }

    /// Buffered rows: those of the start, and those after them.
    pub(super) fn split<'a>(&self, buffer: &'a [f64], dim: usize) -> (&'a [f64], &'a [f64]) {
        buffer.split_at(buffer.len().min(self.init_rows(dim).saturating_mul(dim)))
    }
}
