//! Settings of a pass.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::data::Dequantize;
use crate::learn::Rows;
use crate::learn::pass::start::start_rows_of;
use crate::learn::rules::forgetting::Forgetting;
use crate::learn::structure::{Limits, PriceOfK, PriorStrength, Size, default_kept_rows};
use crate::learn::{
    Algorithm, Effort, Health, LearnError, LearnerState, Moments, ObmmSettings, OdmmSettings, OemSettings,
    OnlineLearner, blind_start_rows,
};
use crate::linalg::CovarianceType;

/// The numbers of components to learn.
///
/// A number, a list or a range converts into it:
///
/// ```
/// use gmm_bmm::settings::Components;
/// assert_eq!(Components::from(2..=4), Components::Given(vec![2, 3, 4]));
/// assert_eq!(Components::learned(1..=50), Components::Learned { least: 1, most: 50 });
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Components {
    /// Each of these, in parallel.
    Given(Vec<usize>),
    /// One mixture whose K grows and shrinks with the rows, within bounds.
    Learned {
        /// The smallest K.
        least: usize,
        /// The largest K.
        most: usize,
    },
}

impl From<usize> for Components {
    fn from(k: usize) -> Self {
        Components::Given(vec![k])
    }
}

impl From<Vec<usize>> for Components {
    fn from(ks: Vec<usize>) -> Self {
        Components::Given(ks)
    }
}

impl<const N: usize> From<[usize; N]> for Components {
    fn from(ks: [usize; N]) -> Self {
        Components::Given(ks.to_vec())
    }
}

impl From<RangeInclusive<usize>> for Components {
    fn from(ks: RangeInclusive<usize>) -> Self {
        Components::Given(ks.collect())
    }
}

impl Components {
    /// The bounds of a learned K, unless others are given.
    pub const DEFAULT_BOUNDS: RangeInclusive<usize> = 1..=50;

    /// A learned K within bounds.
    pub fn learned(bounds: RangeInclusive<usize>) -> Self {
        Components::Learned { least: *bounds.start(), most: *bounds.end() }
    }

    /// One for each mixture that is learned.
    pub(in crate::learn) fn sizes(&self) -> Vec<Size> {
        match self {
            Components::Given(ks) => ks.iter().copied().map(Size::Given).collect(),
            &Components::Learned { least, most } => {
                vec![Size::Learned { least, most, price: PriceOfK::ByColumns }]
            }
        }
    }

    /// The largest K that the start needs rows for.
    pub fn largest_at_start(&self) -> usize {
        match self {
            Components::Given(ks) => ks.iter().copied().max().unwrap_or(1),
            Components::Learned { least, .. } => *least,
        }
    }

    /// The largest K that a mixture may have.
    pub(in crate::learn) fn largest(&self) -> usize {
        match self {
            Components::Given(_) => self.largest_at_start(),
            Components::Learned { most, .. } => *most,
        }
    }

    /// About how many components there are in all mixtures, to estimate the cost of a pass.
    pub fn expected_total(&self) -> usize {
        match self {
            Components::Given(ks) => ks.iter().sum(),
            Components::Learned { .. } => self.expected_largest(),
        }
    }

    /// About how many components the largest mixture has.
    pub(in crate::learn) fn expected_largest(&self) -> usize {
        match self {
            Components::Given(_) => self.largest_at_start(),
            Components::Learned { least, most } => (*most).min(10).max(*least),
        }
    }

    pub(crate) fn check(&self) -> Result<(), LearnError> {
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

/// The largest strength of a prior in rows.
const MAX_PRIOR_STRENGTH: f64 = 1e9;

/// What a pass begins from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StartKind {
    /// A mixture fitted to the first rows, which are buffered
    #[default]
    Fitted,
    /// Components drawn around the mean and covariance of the first few rows, as the paper may have begun; no revisions
    Blind,
}

impl StartKind {
    /// Whether it is the default.
    pub(crate) fn is_fitted(&self) -> bool {
        *self == StartKind::Fitted
    }
}

/// The weights of the rows that a model has learned.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RowWeights {
    /// The column that has them, if they come from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
}

/// Settings of a pass.
///
/// ```
/// use gmm_bmm::FitSettings;
/// use gmm_bmm::settings::Effort;
/// // Two to four components in parallel; the best is kept.
/// let settings = FitSettings::obmm(2..=4).seed(7).effort(Effort::Thorough);
/// assert_eq!((settings.seed, settings.start_rows), (7, None));
/// // A K that is learned.
/// let settings = FitSettings::learned_k(1..=50).keep_rows(20_000);
/// # assert_eq!(settings.keep_rows, Some(20_000));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FitSettings {
    /// The algorithm and its own settings.
    pub algorithm: Algorithm,
    /// The numbers of components to learn.
    pub components: Components,
    /// Seed of all random choices.
    pub seed: u64,
    /// What the pass begins from.
    #[serde(default, skip_serializing_if = "StartKind::is_fitted")]
    pub start: StartKind,
    /// Rows to buffer for the start; by default [`default_start_rows`](crate::learn::default_start_rows) of the largest K.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_rows: Option<usize>,
    /// How much work goes into the start and into revisions.
    #[serde(default)]
    pub effort: Effort,
    /// Rows to keep for revisions; by default 80,000, and no more than 64 MB. 0 turns revisions off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_rows: Option<usize>,
    /// The number of further rows after which a row has half its weight; without it, all rows have the same weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_life: Option<u64>,
    /// The covariances of the components.
    #[serde(default, skip_serializing_if = "CovarianceType::is_full")]
    pub covariance: CovarianceType,
    /// How many rows the prior of a component's covariance is worth.
    #[serde(default, skip_serializing_if = "PriorStrength::is_auto")]
    pub prior_strength: PriorStrength,
    /// Whether discrete columns get noise of one quantum. The rows of the start decide which they are.
    #[serde(default, skip_serializing_if = "Dequantize::is_off")]
    pub dequantize: Dequantize,
    /// The weights of the rows, once a row has had another weight than 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<RowWeights>,
    /// Whether values may be missing. A missing value is NaN. It is not part of a model file: a resumed pass allows gaps if it
    /// has met some, and [`OnlineFit::allow_gaps`](crate::learn::OnlineFit::allow_gaps) changes that.
    #[serde(skip)]
    pub gaps: bool,
    /// Whether the pass does not look for changes of the data.
    #[serde(skip)]
    pub(crate) unwatched: bool,
}

impl FitSettings {
    /// Default settings for an algorithm and the numbers of components to learn.
    pub fn new(algorithm: Algorithm, components: impl Into<Components>) -> Self {
        FitSettings {
            algorithm,
            components: components.into(),
            seed: 1,
            start: StartKind::Fitted,
            start_rows: None,
            effort: Effort::default(),
            keep_rows: None,
            half_life: None,
            covariance: CovarianceType::Full,
            prior_strength: PriorStrength::Auto,
            dequantize: Dequantize::Off,
            weights: None,
            gaps: false,
            unwatched: false,
        }
    }

    /// These settings with noise of one quantum in discrete columns, so that likelihoods are those of densities.
    ///
    /// The noise of a value follows from the seed, its column and the number of its row. Rows that are scored later need the
    /// noise too: [`Model::noise`](crate::Model::noise).
    pub fn dequantize(self) -> Self {
        FitSettings { dequantize: Dequantize::Discrete, ..self }
    }

    /// oBMM for one K or for several in parallel: `FitSettings::obmm(4)`, `FitSettings::obmm(2..=10)`.
    pub fn obmm(components: impl Into<Components>) -> Self {
        FitSettings::new(Algorithm::Obmm(ObmmSettings::default()), components)
    }

    /// Online EM for one K or for several in parallel.
    pub fn oem(components: impl Into<Components>) -> Self {
        FitSettings::new(Algorithm::Oem(OemSettings::default()), components)
    }

    /// oBMM on this number of shards, which learn in parallel and are merged.
    pub fn odmm(components: impl Into<Components>, shards: usize) -> Self {
        let settings = OdmmSettings { shards, ..OdmmSettings::default() };
        FitSettings::new(Algorithm::Odmm(settings), components)
    }

    /// oBMM with a K that is learned within bounds.
    pub fn learned_k(bounds: RangeInclusive<usize>) -> Self {
        FitSettings::obmm(Components::learned(bounds))
    }

    /// Sets the seed of all random choices.
    pub fn seed(self, seed: u64) -> Self {
        FitSettings { seed, ..self }
    }

    /// Begins from a [blind start](StartKind::Blind), to compare with learners that have neither a buffer nor revisions. For
    /// oBMM and online EM with a given K.
    ///
    /// ```
    /// use gmm_bmm::{FitSettings, OnlineFit};
    /// let rows = ndarray::Array2::from_shape_fn((300, 1), |(i, _)| ((i * 7) % 11) as f64);
    /// let mut pass = OnlineFit::new(1, FitSettings::obmm(2).blind())?;
    /// pass.observe(rows.slice(ndarray::s![..10, ..]))?;
    /// assert!(pass.has_started() && !pass.keeps_rows());
    /// # Ok::<(), gmm_bmm::LearnError>(())
    /// ```
    pub fn blind(self) -> Self {
        FitSettings { start: StartKind::Blind, ..self }
    }

    /// Sets how many rows the start is fitted to.
    pub fn start_rows(self, rows: usize) -> Self {
        FitSettings { start_rows: Some(rows), ..self }
    }

    /// Sets how much work goes into the start and into revisions.
    pub fn effort(self, effort: Effort) -> Self {
        FitSettings { effort, ..self }
    }

    /// Sets how many rows are kept for revisions. 0 turns revisions off.
    pub fn keep_rows(self, rows: usize) -> Self {
        FitSettings { keep_rows: Some(rows), ..self }
    }

    /// Lets rows lose weight: a row has half its weight after this many further rows. For data that drift.
    ///
    /// ```
    /// use gmm_bmm::{FitSettings, fit};
    /// // The mean moves from 0 to 40.
    /// let noise = |i: usize| ((i * 7919) % 101) as f64 / 50.0 - 1.0;
    /// let rows = ndarray::Array2::from_shape_fn((8000, 1), |(i, _)| i as f64 / 200.0 + noise(i));
    /// let mixture = fit(rows.view(), FitSettings::obmm(1).half_life(200))?.mixture;
    /// assert!((mixture.means()[(0, 0)] - 38.6).abs() < 0.5);
    /// # Ok::<(), gmm_bmm::LearnError>(())
    /// ```
    pub fn half_life(self, rows: u64) -> Self {
        FitSettings { half_life: Some(rows), ..self }
    }

    /// Sets the covariances of the components.
    pub fn covariance(self, covariance: CovarianceType) -> Self {
        FitSettings { covariance, ..self }
    }

    /// Sets how many rows the prior of a component's covariance is worth. By default this is learned from the data.
    pub fn prior_strength(self, rows: f64) -> Self {
        FitSettings { prior_strength: PriorStrength::Rows(rows), ..self }
    }

    /// A learner of this pass that resumes from a state.
    pub(in crate::learn) fn learner(
        &self,
        algorithm: &Algorithm,
        state: LearnerState,
        floor: Vec<f64>,
        health: Health,
    ) -> Result<Box<dyn OnlineLearner>, LearnError> {
        let mut learner = algorithm.learner(state, floor, health)?;
        if self.half_life.is_some() {
            learner.set_half_life(self.half_life);
        }
        Ok(learner)
    }

    /// Sets whether values may be missing; a missing value is NaN. A row is then learned from its observed columns.
    pub fn gaps(self, gaps: bool) -> Self {
        FitSettings { gaps, ..self }
    }

    pub(crate) fn check(&self) -> Result<(), LearnError> {
        self.algorithm.check()?;
        self.components.check()?;
        if self.half_life == Some(0) {
            return Err(LearnError::Setting { name: "the half-life", must: "at least 1 row", value: 0.0 });
        }
        if self.half_life.is_some() && matches!(self.algorithm, Algorithm::Odmm(_)) {
            return Err(LearnError::ShardsForget);
        }
        self.check_covariance()?;
        if let PriorStrength::Rows(rows) = self.prior_strength
            && !(rows > 0.0 && rows <= MAX_PRIOR_STRENGTH)
        {
            let (name, must) = ("the strength of the prior", "above 0 and at most a billion rows");
            return Err(LearnError::Setting { name, must, value: rows });
        }
        if self.start == StartKind::Blind {
            self.check_blind()?;
        }
        if self.start_rows == Some(0) {
            return Err(LearnError::Setting {
                name: "the number of rows of the start",
                must: "at least 1",
                value: 0.0,
            });
        }
        Ok(())
    }

    /// An error if the algorithm has settings that these covariances have no form for.
    fn check_covariance(&self) -> Result<(), LearnError> {
        let obmm = match self.algorithm {
            Algorithm::Obmm(settings) => settings,
            Algorithm::Odmm(settings) => settings.obmm,
            _ => ObmmSettings::default(),
        };
        let what = match obmm {
            _ if self.covariance.is_full() => return Ok(()),
            ObmmSettings { moments: Moments::Paper, .. } => "the paper's moments",
            ObmmSettings { discount, .. } if discount > 0.0 => "a discount",
            _ => return Ok(()),
        };
        Err(LearnError::Covariance { what, covariance: self.covariance.name() })
    }

    /// An error if there are settings that a blind start has no use for.
    fn check_blind(&self) -> Result<(), LearnError> {
        let refused = [
            (matches!(self.components, Components::Learned { .. }), "a K that is learned"),
            (matches!(self.algorithm, Algorithm::Odmm(_)), "shards"),
            (self.start_rows.is_some(), "a number of rows to fit the start to"),
            (self.keep_rows.is_some_and(|rows| rows > 0), "rows that are kept for revisions"),
        ];
        match refused.into_iter().find(|(given, _)| *given) {
            Some((_, what)) => Err(LearnError::BlindStart { what }),
            None => Ok(()),
        }
    }

    /// An error if rows with these weights are so heavy that the half-life leaves too few of them for the components.
    pub(in crate::learn) fn check_half_life(&self, weights: &[f64]) -> Result<(), LearnError> {
        const ROWS_PER_COMPONENT: u64 = 10;
        let Some(half_life) = self.half_life else { return Ok(()) };
        let (total, squares) =
            weights.iter().fold((0.0, 0.0), |(sum, squares), w| (sum + w, squares + w * w));
        let least = ROWS_PER_COMPONENT * self.components.largest_at_start() as u64;
        let (weight, counted) = (squares / total, Forgetting::new(half_life).most_rows());
        // A half-life that is short for rows of weight 1 is meant.
        if weight > 1.0 && counted >= least as f64 && counted < least as f64 * weight {
            return Err(LearnError::ShortHalfLife { half_life, weight, least });
        }
        Ok(())
    }

    /// Rows that the start is fitted to.
    pub fn rows_of_start(&self, dim: usize) -> usize {
        self.start_rows.unwrap_or_else(|| match self.start {
            StartKind::Fitted => start_rows_of(self.covariance, self.components.largest_at_start(), dim),
            StartKind::Blind => blind_start_rows(dim),
        })
    }

    /// Rows that are buffered: those of the start, and half as many again where there are several K, so that a stream that
    /// ends soon after the start has rows to compare the K by.
    pub(in crate::learn) fn buffered_rows(&self, dim: usize) -> usize {
        let start = self.rows_of_start(dim);
        let more = self.start.is_fitted() && self.components.sizes().len() > 1;
        start.saturating_add(if more { start / 2 } else { 0 })
    }

    /// Rows that are kept for revisions: none where nothing can be revised.
    pub(in crate::learn) fn kept_rows(&self, dim: usize) -> usize {
        let revises = self.effort != Effort::Fast && self.start.is_fitted();
        if !revises || self.components.sizes().into_iter().all(Size::is_one) {
            return 0;
        }
        self.keep_rows.unwrap_or_else(|| default_kept_rows(self.components.expected_largest(), dim))
    }

    /// The limits of a start from all `rows` rows of a stream.
    pub(in crate::learn) fn closing_limits(&self, rows: usize, dim: usize) -> Limits {
        let shape = (self.covariance, self.components.expected_largest(), dim);
        self.effort.closing_limits(rows, shape, false)
    }

    /// Splits buffered rows into those of the start and those after them.
    pub(in crate::learn) fn split<'a>(&self, buffer: Rows<'a>) -> (Rows<'a>, Rows<'a>) {
        buffer.split_at(self.rows_of_start(buffer.dim()))
    }
}
