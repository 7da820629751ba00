//! Settings of one pass.

use serde::{Deserialize, Serialize};

use std::ops::RangeInclusive;

use super::structure::{Limits, Size, default_kept_rows};
use super::{Algorithm, Effort, LearnError, ObmmSettings, default_init_rows};

/// Numbers of components to learn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Components {
    /// These, in parallel.
    Given(Vec<usize>),
    /// As many as the rows ask for, within bounds: K grows and shrinks with the rows.
    Learned {
        /// At least.
        least: usize,
        /// At most.
        most: usize,
    },
}

impl Components {
    /// Within these bounds K is learned, unless others are given.
    pub const DEFAULT_BOUNDS: RangeInclusive<usize> = 1..=50;

    /// As many as the rows ask for, within bounds.
    pub fn learned(bounds: RangeInclusive<usize>) -> Self {
        Components::Learned { least: *bounds.start(), most: *bounds.end() }
    }

    /// One for each mixture that is learned.
    pub(super) fn sizes(&self) -> Vec<Size> {
        match self {
            Components::Given(ks) => ks.iter().copied().map(Size::Given).collect(),
            &Components::Learned { least, most } => vec![Size::Learned { least, most }],
        }
    }

    /// The largest number that is given, or that a start needs rows for where K is learned.
    pub fn largest_at_start(&self) -> usize {
        match self {
            Components::Given(ks) => ks.iter().copied().max().unwrap_or(1),
            Components::Learned { least, .. } => *least,
        }
    }

    /// About how many components there are in all, to estimate what a pass costs.
    pub fn expected_total(&self) -> usize {
        match self {
            Components::Given(ks) => ks.iter().sum(),
            Components::Learned { .. } => self.expected_largest(),
        }
    }

    /// About how many components the largest mixture has.
    pub(super) fn expected_largest(&self) -> usize {
        match self {
            Components::Given(_) => self.largest_at_start(),
            Components::Learned { least, most } => (*most).min(10).max(*least),
        }
    }

    pub(super) fn check(&self) -> Result<(), LearnError> {
        let refuse = |must: &'static str, value: usize| {
            Err(LearnError::Setting { name: "K", must, value: value as f64 })
        };
        match self {
            Components::Given(ks) if ks.is_empty() || ks.contains(&0) => refuse("at least 1", 0),
            Components::Learned { least: 0, .. } => refuse("at least 1", 0),
            Components::Learned { least, most } if least > most => {
                refuse("at least as large as its lower bound", *most)
            }
            _ => Ok(()),
        }
    }
}

/// Settings of one pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FitSettings {
    /// Which algorithm.
    pub algorithm: Algorithm,
    /// The numbers of components to learn.
    pub components: Components,
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
            components: Components::Given(ks.into_iter().collect()),
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

    /// The same with another choice of the number of components, such as `Components::learned(1..=50)`.
    pub fn with_components(self, components: Components) -> Self {
        FitSettings { components, ..self }
    }

    pub(super) fn check(&self) -> Result<(), LearnError> {
        self.algorithm.check()?;
        self.components.check()?;
        if self.init_rows == Some(0) {
            return Err(LearnError::Setting {
                name: "the number of start rows",
                must: "at least 1",
                value: 0.0,
            });
        }
        Ok(())
    }

    /// Rows that the start is made from.
    pub fn init_rows(&self, dim: usize) -> usize {
        self.init_rows.unwrap_or_else(|| default_init_rows(self.components.largest_at_start(), dim))
    }

    /// Rows that are buffered: those of the start, and half as many again where there are several K to choose from, so
    /// that a stream that ends soon after the start has enough to choose by.
    pub(super) fn buffered_rows(&self, dim: usize) -> usize {
        let start = self.init_rows(dim);
        start.saturating_add(if self.components.sizes().len() > 1 { start / 2 } else { 0 })
    }

    /// Rows that are kept for revisions: none where nothing can be revised.
    pub(super) fn kept_rows(&self, dim: usize) -> usize {
        if self.effort == Effort::Fast || self.components.sizes().into_iter().all(Size::is_one) {
            return 0;
        }
        self.keep_rows.unwrap_or_else(|| default_kept_rows(dim))
    }

    /// The limits of a start from all `rows` rows of a stream.
    pub(super) fn closing_limits(&self, rows: usize, dim: usize) -> Limits {
        self.effort.closing_limits(rows, self.components.expected_largest(), dim)
    }

    /// Buffered rows: those of the start, and those after them.
    pub(super) fn split<'a>(&self, buffer: &'a [f64], dim: usize) -> (&'a [f64], &'a [f64]) {
        buffer.split_at(buffer.len().min(self.init_rows(dim).saturating_mul(dim)))
    }
}
