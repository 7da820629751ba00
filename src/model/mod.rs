//! A learned mixture and its file: versioned, readable JSON that keeps every bit of a number.

mod curve;
mod file;
mod format;
mod labels;
mod lift;
mod merge;
mod no_revisions;
mod pass;
mod seal;

pub use curve::CurvePoint;
pub(crate) use file::FORMAT;
pub use file::{LooksLike, ModelError, VERSION};
pub use labels::Labels;
pub use merge::{MergeError, MergeOptions, Merged, merge_models};
pub use no_revisions::NoRevisions;
pub use pass::Checkpoint;
pub use seal::Seal;

#[cfg(feature = "cli")]
use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::data::ColumnNames;
use crate::dist::{GaussianMixture, Posterior, StudentMixture};
use crate::hash::Fingerprint;
use crate::learn::{
    Algorithm, CandidateState, Choice, DataChanges, DriftWatch, Effort, EmSettings, FitState, Health,
    KeptRows, LearnerState, Lineage, MergeReport, Prequential, RevisionRecord, RowSample, ScoreRanks,
    SeenRows, Shard, StartKind, Structure, mixture_of, variance_floor,
};
use crate::stats::{BatchSums, ColumnSummary};

/// How a model was made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Recipe {
    /// Batch EM.
    Em(EmSettings),
    /// The mixture that synthetic data were drawn from.
    Truth,
    /// An online learner, which can resume from the model.
    #[serde(untagged)]
    Online(Algorithm),
}

impl Recipe {
    /// Its name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Recipe::Online(algorithm) => algorithm.name(),
            Recipe::Em(_) => "em",
            Recipe::Truth => "truth",
        }
    }

    /// A description for users.
    pub fn describe(&self) -> String {
        match self {
            Recipe::Online(algorithm) => algorithm.describe(),
            Recipe::Em(_) => "batch EM".into(),
            Recipe::Truth => "the generating mixture (not learned)".into(),
        }
    }

    /// The online algorithm that can resume from such a model.
    pub fn online(&self) -> Option<Algorithm> {
        match *self {
            Recipe::Online(algorithm) => Some(algorithm),
            Recipe::Em(_) | Recipe::Truth => None,
        }
    }
}

/// A column of the data that a model was learned from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its mean and spread.
    pub summary: ColumnSummary,
    /// Least variance of the column given the columns before it.
    pub floor: f64,
}

/// A learned mixture and all that is needed to score with it, to explain it, and to resume learning.
///
/// ```
/// use gmm_bmm::{FitSettings, Model, OnlineFit};
/// use ndarray::Array2;
///
/// let rows = Array2::from_shape_fn((900, 2), |(i, j)| ((i % 3) * 20 + (i * (7 + j)) % 11) as f64);
/// let mut pass = OnlineFit::new(["width", "height"], FitSettings::obmm(3))?;
/// pass.observe(rows.view())?;
/// let mut file = Vec::new();
/// pass.to_model()?.write(&mut file)?;
///
/// let model = Model::read(file.as_slice())?;
/// assert_eq!((model.rows(), model.k(), model.columns()[1].name.as_str()), (900, 3, "height"));
/// assert_eq!(model.estimate().predict(rows.view()).len(), 900);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    format: String,
    version: u32,
    /// The version of the library that wrote it.
    tool: String,
    /// The algorithm and its settings.
    algorithm: Recipe,
    /// Seed of the start.
    seed: u64,
    /// What the pass began from.
    #[serde(default, skip_serializing_if = "StartKind::is_fitted")]
    start: StartKind,
    /// Rows to buffer for the start, if that was set.
    #[serde(rename = "init_rows", default, skip_serializing_if = "Option::is_none")]
    start_rows: Option<usize>,
    /// How much work goes into the start and into revisions.
    #[serde(default)]
    effort: Effort,
    /// The bounds of K, if K is learned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    learns_k: Option<[usize; 2]>,
    /// Rows to keep for revisions, if that was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keep_rows: Option<usize>,
    /// The number of further rows after which a row has half its weight, if rows lose weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    half_life: Option<u64>,
    /// Parameters of the Python estimator that saved it, where the other members do not tell them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    estimator: Option<Map<String, Value>>,
    /// Rows seen.
    rows: u64,
    /// Whether the column names come from a header.
    named: bool,
    /// The columns.
    columns: Vec<Column>,
    /// Prequential score.
    prequential: Prequential,
    /// Safeguards that triggered while learning.
    health: Health,
    /// What was learned.
    learned: LearnerState,
    /// The identifiers of its components, its revisions, and the end of the stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    structure: Option<Structure>,
    /// The distribution of the log-densities of its rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ranks: Option<ScoreRanks>,
    /// The other K learned in the same pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rivals: Vec<CandidateState>,
    /// The scores of all K over batches of rows, for the standard errors of their differences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scores: Option<BatchSums>,
    /// Where a shard comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lineage: Option<Lineage>,
    /// Keys of some of its rows, by which shards recognise the rows of their prior.
    #[serde(default, skip_serializing_if = "RowSample::is_empty")]
    sample: RowSample,
    /// Keys of some of its rows, by which a resumed pass notices rows that come again.
    #[serde(default, skip_serializing_if = "SeenRows::is_empty")]
    seen: SeenRows,
    /// In a checkpoint: fingerprint of the rows that were read before it was saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checkpoint: Option<Fingerprint>,
    /// In a checkpoint: the learning curve so far, if there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    curve: Vec<CurvePoint>,
    /// All rows, one after the other, while there are too few for the start.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "null_as_nan")]
    pending: Option<Vec<f64>>,
    /// Rows of the data that are kept for revisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept: Option<KeptRows>,
    /// Only while a file is read; writing computes a new one.
    #[serde(default, skip_serializing)]
    checksum: Option<String>,
}

impl Model {
    /// The version of the library that wrote it.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The algorithm and its settings.
    pub fn algorithm(&self) -> Recipe {
        self.algorithm
    }

    /// Seed of all random choices.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// What the pass began from.
    pub fn start(&self) -> StartKind {
        self.start
    }

    /// How much work goes into the start and into revisions.
    pub fn effort(&self) -> Effort {
        self.effort
    }

    /// Rows to keep for revisions, if that was set.
    pub fn keep_rows(&self) -> Option<usize> {
        self.keep_rows
    }

    /// The number of further rows after which a row has half its weight, if rows lose weight.
    pub fn half_life(&self) -> Option<u64> {
        self.half_life
    }

    /// Parameters of the Python estimator that saved it, where nothing else tells them. A pass that resumes does not keep them.
    pub fn estimator(&self) -> Option<&Map<String, Value>> {
        self.estimator.as_ref()
    }

    /// Sets the parameters of a Python estimator, which are saved with the model.
    pub fn set_estimator(&mut self, parameters: Option<Map<String, Value>>) {
        self.estimator = parameters;
    }

    /// The changes of the data that were found while it was learned.
    pub fn data_changes(&self) -> Option<DataChanges> {
        self.structure.as_ref().and_then(|structure| structure.drift.as_ref()).and_then(DriftWatch::changes)
    }

    /// Rows seen.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The prequential score.
    pub fn prequential(&self) -> Prequential {
        self.prequential
    }

    /// Where a shard comes from.
    pub fn lineage(&self) -> Option<&Lineage> {
        self.lineage.as_ref()
    }

    /// Whether the start waits for more rows. Until then the mixture is provisional.
    pub fn is_provisional(&self) -> bool {
        self.pending.is_some()
    }

    /// Whether it keeps rows to revise on.
    pub fn keeps_rows(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.most() > 0)
    }

    /// Whether the revisions are recorded: files of early versions have no record of them.
    pub fn has_history(&self) -> bool {
        self.structure.is_some()
    }

    /// All revisions, the oldest first.
    pub fn revisions(&self) -> impl Iterator<Item = &RevisionRecord> {
        self.structure.iter().flat_map(Structure::revisions)
    }

    /// Whether there may have been earlier revisions than [`Model::revisions`] has.
    pub fn may_have_forgotten(&self) -> bool {
        self.structure.as_ref().is_some_and(Structure::may_have_forgotten)
    }

    /// How well the shards of a merged model agree.
    pub fn merge_report(&self) -> Option<&MergeReport> {
        match &self.learned {
            LearnerState::Sharded(state) => Some(&state.merged),
            _ => self.lineage.as_ref().and_then(|lineage| lineage.merged.as_ref()),
        }
    }

    /// The model of a mixture that no online learner made.
    pub fn from_mixture(
        mixture: GaussianMixture,
        recipe: Recipe,
        seed: u64,
        columns: &ColumnNames,
        summaries: &[ColumnSummary],
    ) -> Self {
        Model::from_mixtures(mixture, Vec::new(), recipe, seed, columns, summaries)
    }

    /// The same with mixtures of other K.
    pub fn from_mixtures(
        best: GaussianMixture,
        rivals: Vec<GaussianMixture>,
        recipe: Recipe,
        seed: u64,
        columns: &ColumnNames,
        summaries: &[ColumnSummary],
    ) -> Self {
        let rows = summaries.iter().map(|summary| summary.count).max().unwrap_or(0);
        // Without scores, the first candidate is the best.
        let candidate = |mixture: GaussianMixture| CandidateState {
            learned: LearnerState::Point {
                start: mixture.clone(),
                start_rows: rows,
                mixture,
                rows: 0,
                matrix_states: Vec::new(),
            },
            prequential: Prequential::default(),
            health: Health::default(),
            structure: None,
            ranks: None,
        };
        let state = FitState {
            rows,
            columns: summaries.to_vec(),
            floor: summaries.iter().map(variance_floor).collect(),
            pending: None,
            candidates: std::iter::once(best).chain(rivals).map(candidate).collect(),
            shard: None,
            sample: RowSample::default(),
            seen: SeenRows::default(),
            scores: BatchSums::default(),
            kept: None,
        };
        Model::new(recipe, seed, state, columns)
    }

    fn new(recipe: Recipe, seed: u64, mut state: FitState, columns: &ColumnNames) -> Self {
        let ks = state.candidates.len();
        let best = state.candidates.remove(state.best());
        // While rows are pending, the scores are provisional.
        let lasts = ks > 1 && state.pending.is_none();
        let scores = Some(state.scores).filter(|scores| lasts && scores.is_sound(ks));
        let described = columns.names.iter().zip(&state.columns).zip(&state.floor);
        Model {
            format: FORMAT.into(),
            version: VERSION,
            tool: env!("CARGO_PKG_VERSION").into(),
            algorithm: recipe,
            seed,
            start: StartKind::Fitted,
            start_rows: None,
            effort: Effort::default(),
            learns_k: None,
            keep_rows: None,
            half_life: None,
            estimator: None,
            rows: state.rows,
            named: columns.named,
            columns: described
                .map(|((name, &summary), &floor)| Column { name: name.clone(), summary, floor })
                .collect(),
            prequential: best.prequential,
            health: best.health,
            learned: best.learned,
            structure: best.structure,
            ranks: best.ranks,
            rivals: state.candidates,
            scores,
            lineage: state.shard.map(|Shard { mut lineage, rows }| {
                lineage.shards.push(rows);
                lineage
            }),
            sample: state.sample,
            seen: state.seen,
            checkpoint: None,
            curve: Vec::new(),
            pending: state.pending,
            kept: state.kept,
            checksum: None,
        }
    }

    /// The mixture at the end of the stream if that was computed, and otherwise as learned so far.
    pub fn estimate(&self) -> GaussianMixture {
        mixture_of(&self.learned, self.structure.as_ref())
    }

    /// The posterior that [`Model::estimate`] is computed from. `None` if the learner is not Bayesian.
    pub fn posterior(&self) -> Option<&Posterior> {
        match self.structure.as_ref().and_then(|structure| structure.finished.as_ref()) {
            Some(finished) => finished.estimate.posterior(),
            None => self.learned.posterior(),
        }
    }

    /// The distribution of the log-densities of the rows that it was learned from, by which new rows get a rank. `None` if
    /// the rows are not known, as in files of earlier versions.
    pub fn ranks(&self) -> Option<&ScoreRanks> {
        let finished = self.structure.as_ref().and_then(|structure| structure.finished.as_ref());
        finished.and_then(|finished| finished.ranks.as_ref()).or(self.ranks.as_ref())
    }

    /// Sets the distribution of the log-densities of every K to that of these rows.
    #[cfg(feature = "cli")]
    pub(crate) fn with_ranks_of(mut self, rows: ArrayView2<f64>) -> Self {
        let ranks = |learned: &LearnerState| {
            let mut ranks = ScoreRanks::default();
            ranks.extend(learned.estimate().score_samples(rows), 1.0);
            Some(ranks)
        };
        self.ranks = ranks(&self.learned);
        self.rivals.iter_mut().for_each(|rival| rival.ranks = ranks(&rival.learned));
        self
    }

    /// Safeguards that triggered, including the end of the stream.
    pub fn health(&self) -> Health {
        let finished = self.structure.as_ref().and_then(|structure| structure.finished.as_ref());
        finished.map_or(self.health, |finished| self.health + finished.health)
    }

    /// Removes the rows of the data, so that the model can be shared. A pass that resumes from it does not revise until it has
    /// seen as many new rows. If the start waits for more rows, the provisional mixture replaces it.
    pub fn without_rows(mut self) -> Self {
        let Some((settings, state)) = self.clone().into_state() else { return self };
        let state = state.without_rows(&settings);
        (self.pending, self.kept, self.seen) = (state.pending, state.kept, state.seen);
        for candidate in state.candidates {
            let k = candidate.learned.k();
            if k == self.k() {
                self.structure = candidate.structure;
            } else if let Some(rival) = self.rivals.iter_mut().find(|rival| rival.learned.k() == k) {
                rival.structure = candidate.structure;
            }
        }
        self
    }

    /// How many rows of the data the model file contains: those kept for revisions, or those buffered for the start.
    pub fn rows_in_file(&self) -> u64 {
        let kept = self.kept.as_ref().map_or(0, |kept| kept.reservoir().len() + kept.validation().len());
        let pending = self.pending.as_ref().map_or(0, Vec::len);
        ((kept + pending) / self.columns.len().max(1)) as u64
    }

    /// The posterior predictive. `None` if the learner is not Bayesian.
    pub fn predictive(&self) -> Option<StudentMixture> {
        self.posterior().map(Posterior::predictive)
    }

    /// How many components.
    pub fn k(&self) -> usize {
        self.learned.k()
    }

    /// Every K of the model, in ascending order.
    pub fn ks(&self) -> Vec<usize> {
        self.choice().candidates.iter().map(|candidate| candidate.k).collect()
    }

    /// The scores of all K compared, in ascending order of K.
    pub fn choice(&self) -> Choice {
        let own = (self.k(), self.prequential);
        let rivals = self.rivals.iter().map(|rival| (rival.learned.k(), rival.prequential));
        let mut scores: Vec<_> = std::iter::once(own).chain(rivals).collect();
        scores.sort_by_key(|(k, _)| *k);
        let none = BatchSums::default();
        Choice::of_pass(&scores, self.scores.as_ref().unwrap_or(&none))
    }

    /// The model of one K alone; `None` if the model does not have that K. A pass that resumes from it learns that K as a pass
    /// with all K does. If the start waits for more rows, one K waits for fewer rows than several K do. A learned K stays as
    /// it is from then on.
    ///
    /// ```
    /// use gmm_bmm::{FitSettings, OnlineFit};
    ///
    /// let rows = ndarray::Array2::from_shape_fn((900, 1), |(i, _)| ((i % 3) * 20 + (i * 7) % 11) as f64);
    /// let mut pass = OnlineFit::new(["x"], FitSettings::obmm(1..=4))?;
    /// pass.observe(rows.view())?;
    /// let model = pass.to_model()?;
    /// assert_eq!(model.ks(), [1, 2, 3, 4]);
    /// assert_eq!(model.with_k(2).map(|model| (model.k(), model.ks())), Some((2, vec![2])));
    /// # Ok::<(), gmm_bmm::LearnError>(())
    /// ```
    pub fn with_k(mut self, k: usize) -> Option<Self> {
        if k != self.k() {
            let place = self.rivals.iter().position(|rival| rival.learned.k() == k)?;
            let CandidateState { learned, prequential, health, structure, ranks } =
                self.rivals.swap_remove(place);
            self = Model { learned, prequential, health, structure, ranks, ..self };
        }
        self.rivals.clear();
        self.scores = None;
        self.learns_k = None;
        Some(self)
    }

    /// The names of the columns.
    pub fn column_names(&self) -> ColumnNames {
        let names = self.columns.iter().map(|column| column.name.clone()).collect();
        ColumnNames { names, named: self.named }
    }

    /// The gain in log-density if the columns are measured in standard deviations instead of their own units.
    pub fn zscore_jacobian(&self) -> f64 {
        self.columns.iter().map(|column| column.summary.unit().ln()).sum()
    }
}

/// Numbers of which some are missing: JSON has `null` for NaN.
fn null_as_nan<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<f64>>, D::Error> {
    let values = Option::<Vec<Option<f64>>>::deserialize(deserializer)?;
    Ok(values.map(|values| values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect()))
}
