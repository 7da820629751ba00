//! Rows drawn from a known mixture, so that a learned mixture can be compared with the truth.
//!
//! A cluster `j` of `k` is a Gaussian `N(μ_j, Σ_j)` with weight `w_j ∝ j^−skew`. In the units of the draw
//! - `Σ_j` is a random rotation of a diagonal matrix whose entries fall geometrically from the largest to the
//!   smallest, `condition` times less, and average 1: the *spread* of every cluster is 1;
//! - the `μ_j` are Gaussian around 0, scaled so that the root mean square distance between two of them is
//!   `separation` spreads. Of 32 draws, the one with the largest distance between the closest two is taken.
//!
//! If `shared_condition` is above 1, one linear map is applied to all clusters: a random rotation and a stretch by at most its
//! square root. It correlates the columns and does not change the overlap of the clusters. `unit_decades` gives every
//! column its own unit and offset.
//!
//! With [`Tails::Heavy`] every cluster is three Gaussians with the same mean, which are one, three and ten times as wide and
//! have 80, 15 and 5 % of its weight. Outliers are common, and the truth is still a Gaussian mixture.
//! With `drift`, `μ_j` moves in a random direction by `drift` spreads, at constant speed from the first row to the last. The
//! truth, and the test rows, are the mixture at the end.
//!
//! Every 1024 rows have their own random stream. So the rows of a seed do not depend on the size of blocks or the number of
//! threads, and fewer rows are the beginning of more rows (without drift).

mod level;
mod presets;
mod rows;
mod truth;

pub use level::TrueLevel;
pub use presets::{PAPER_SETS, PAPER_TEST_ROWS};
pub use rows::SynthRows;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::data::ColumnNames;
use crate::dist::{DistError, GaussianMixture};
use crate::linalg::FactorError;

/// What to draw. See the [module](self) for what the numbers mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SynthSpec {
    /// Clusters.
    pub k: usize,
    /// Columns.
    pub dim: usize,
    /// Training rows.
    pub rows: u64,
    /// Seed of everything.
    pub seed: u64,
    /// Root mean square distance between the means of two clusters, in spreads.
    pub separation: f64,
    /// Largest over smallest eigenvalue of each cluster's covariance.
    pub condition: f64,
    /// The weight of cluster `j` is proportional to `j^−weight_skew`.
    pub weight_skew: f64,
    /// How far each mean moves over all rows, in spreads.
    pub drift: f64,
    /// Whether outliers are common.
    pub tails: Tails,
    /// Largest over smallest eigenvalue of the square of the map that is applied to all clusters.
    pub shared_condition: f64,
    /// Powers of ten over which the columns' units range. With 0, all units are 1 and the data are centred on 0.
    pub unit_decades: f64,
}

impl Default for SynthSpec {
    fn default() -> Self {
        SynthSpec {
            k: 4,
            dim: 10,
            rows: 100_000,
            seed: 1,
            separation: 4.0,
            condition: 10.0,
            weight_skew: 0.5,
            drift: 0.0,
            tails: Tails::Normal,
            shared_condition: 1.0,
            unit_decades: 0.0,
        }
    }
}

/// The tails of a cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tails {
    /// Those of a Gaussian.
    #[default]
    Normal,
    /// Those of three concentric Gaussians.
    Heavy,
}

impl Tails {
    /// The Gaussians of a cluster: fraction of its weight, and relative width.
    fn layers(self) -> &'static [(f64, f64)] {
        match self {
            Tails::Normal => &[(1.0, 1.0)],
            Tails::Heavy => &[(0.80, 1.0), (0.15, 3.0), (0.05, 10.0)],
        }
    }
}

/// Why a mixture cannot be drawn.
#[allow(missing_docs)]
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SynthError {
    /// A setting is out of range.
    #[error("{name} must be {must}, this one is {value}")]
    OutOfRange { name: &'static str, must: &'static str, value: f64 },
    /// More parameters than fit in memory.
    #[error(
        "{k} full covariances of {dim} columns hold more than {MAX_ENTRIES} numbers: ask for fewer clusters or columns"
    )]
    TooLarge { k: usize, dim: usize },
    /// There is no such set in Figure 1.
    #[error("the paper's Figure 1 has sets 1 to {PAPER_SETS}, not {0}")]
    NoSuchPaperSet(usize),
    /// The catalogue does not know the columns of the set.
    #[error(
        "the columns of '{0}' are not known, so there is no stand-in for it: give the size that you want yourself"
    )]
    UnknownColumns(String),
    /// The number of names is not that of columns.
    #[error("{found} names were given for {expected} columns: name every column once")]
    Names { found: usize, expected: usize },
    /// The drawn numbers are not the parameters of a mixture.
    #[error("the drawn parameters do not make a mixture ({0}): ask for a smaller condition")]
    Mixture(#[from] DistError),
    /// The drawn numbers are not a covariance.
    #[error("the drawn parameters do not make a covariance ({0}): ask for a smaller condition")]
    Covariance(#[from] FactorError),
}

/// The most numbers in all covariances together.
const MAX_ENTRIES: usize = 100_000_000;

impl SynthSpec {
    fn check(&self) -> Result<(), SynthError> {
        let settings = [
            ("the number of clusters", self.k as f64, 1.0, f64::MAX, "at least 1"),
            ("the number of columns", self.dim as f64, 1.0, f64::MAX, "at least 1"),
            ("the number of rows", self.rows as f64, 1.0, f64::MAX, "at least 1"),
            ("the separation", self.separation, 0.0, 1e6, "from 0 to 1e6"),
            ("the condition", self.condition, 1.0, 1e10, "from 1 to 1e10"),
            ("the weight skew", self.weight_skew, 0.0, 10.0, "from 0 to 10"),
            ("the drift", self.drift, 0.0, 1e6, "from 0 to 1e6"),
            ("the shared condition", self.shared_condition, 1.0, 1e10, "from 1 to 1e10"),
            ("the range of units", self.unit_decades, 0.0, 20.0, "from 0 to 20"),
        ];
        for (name, value, least, most, must) in settings {
            if !(least..=most).contains(&value) {
                return Err(SynthError::OutOfRange { name, must, value });
            }
        }
        let entries = self.dim.checked_mul(self.dim).and_then(|square| square.checked_mul(self.k));
        match entries.and_then(|entries| entries.checked_mul(self.tails.layers().len())) {
            Some(entries) if entries <= MAX_ENTRIES => Ok(()),
            _ => Err(SynthError::TooLarge { k: self.k, dim: self.dim }),
        }
    }
}

/// A known mixture and the rows drawn from it.
///
/// ```
/// use gmm_bmm::data::{Block, RowSource, synth::{Synth, SynthSpec}};
///
/// let synth = Synth::new(SynthSpec { k: 3, dim: 2, rows: 5000, seed: 7, ..SynthSpec::default() })?;
/// assert_eq!((synth.truth().k(), synth.truth().dim()), (3, 2));
///
/// let mut rows = synth.training();
/// assert_eq!(rows.columns().names, ["x1", "x2"]);
/// let mut block = Block::new(2);
/// assert!(rows.read_block(&mut block, 100)?);
/// assert_eq!(block.rows(), 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Synth(Arc<SynthPlan>);

/// All that drawing needs.
#[derive(Debug, Clone)]
struct SynthPlan {
    spec: SynthSpec,
    columns: ColumnNames,
    truth: GaussianMixture,
    /// How far each cluster's mean moves from the first row to the last; empty without drift.
    travel: Vec<Vec<f64>>,
    /// Cumulative sums of the weights.
    cumulative: Vec<f64>,
}

impl Synth {
    /// Draws the mixture.
    pub fn new(spec: SynthSpec) -> Result<Synth, SynthError> {
        let columns = ColumnNames::named((1..=spec.dim).map(|position| format!("x{position}")));
        Synth::with_columns(spec, columns)
    }

    /// Draws the mixture, with names for its columns.
    pub fn with_columns(spec: SynthSpec, columns: impl Into<ColumnNames>) -> Result<Synth, SynthError> {
        spec.check()?;
        let columns = columns.into();
        if columns.len() != spec.dim {
            return Err(SynthError::Names { found: columns.len(), expected: spec.dim });
        }
        let (truth, travel) = truth::draw(&spec)?;
        let mut total = 0.0;
        let mut add = |weight: &f64| {
            total += weight;
            total
        };
        let cumulative = truth.weights().iter().map(&mut add).collect();
        Ok(Synth(Arc::new(SynthPlan { spec, columns, truth, travel, cumulative })))
    }

    /// The specification.
    pub fn spec(&self) -> &SynthSpec {
        &self.0.spec
    }

    /// The columns.
    pub fn columns(&self) -> &ColumnNames {
        &self.0.columns
    }

    /// The mixture that the rows are drawn from; with drift, the mixture at the end of the training rows.
    pub fn truth(&self) -> &GaussianMixture {
        &self.0.truth
    }

    /// The training rows.
    pub fn training(&self) -> SynthRows {
        SynthRows::training(self.clone())
    }

    /// Rows from [`Synth::truth`] that are independent of the training rows.
    pub fn test(&self, rows: u64) -> SynthRows {
        SynthRows::test(self.clone(), rows)
    }

    /// Mean and variance of each column under the truth.
    pub fn column_moments(&self) -> Vec<(f64, f64)> {
        let truth = self.truth();
        let mut moments = vec![(0.0, 0.0); truth.dim()];
        for (weight, component) in truth.weights().iter().zip(truth.components()) {
            moments.iter_mut().zip(component.mean()).for_each(|(moment, mean)| moment.0 += weight * mean);
        }
        for (weight, component) in truth.weights().iter().zip(truth.components()) {
            let parts = component.mean().iter().zip(component.covariance().diagonal());
            for (moment, (mean, variance)) in moments.iter_mut().zip(parts) {
                moment.1 += weight * (variance + (mean - moment.0) * (mean - moment.0));
            }
        }
        moments
    }

    /// Gaussians in a cluster.
    fn layers(&self) -> usize {
        self.spec().tails.layers().len()
    }
}
