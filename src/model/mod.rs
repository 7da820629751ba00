//! A learned mixture and its file: versioned JSON that a person can read, with floats that survive exactly.

mod curve;
mod file;
mod format;
mod labels;
mod lift;
mod merge;
mod no_revisions;
mod output;
mod pass;
mod seal;

pub use curve::CurvePoint;
pub(crate) use file::FORMAT;
pub use file::{LooksLike, ModelError, VERSION};
pub use labels::Labels;
pub use merge::{MergeError, Merged, merge_models};
pub use no_revisions::NoRevisions;
pub use output::{OutputFile, is_output_failure};
pub use pass::Checkpoint;
pub use seal::Seal;

use serde::{Deserialize, Serialize};

use crate::data::ColumnNames;
use crate::dist::{GaussianMixture, Posterior, StudentMixture};
use crate::learn::{
    Algorithm, CandidateState, Choice, Effort, EmSettings, Fingerprint, FitState, Health, KeptRows,
    LearnerState, Lineage, MergeReport, Prequential, RevisionRecord, RowSample, Shard, Structure, mixture_of,
    variance_floor,
};
use crate::stats::{BatchSums, ColumnSummary};

/// How a model came about.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recipe {
    /// Batch EM.
    Em(EmSettings),
    /// The true mixture that data were drawn from.
    Truth,
    /// By an online learner, which can go on with it.
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

    /// Who learned it, for people.
    pub fn describe(&self) -> String {
        match self {
            Recipe::Online(algorithm) => algorithm.describe(),
            Recipe::Em(_) => "batch EM".into(),
            Recipe::Truth => "nobody: it is the truth that data were drawn from".into(),
        }
    }

    /// The online algorithm that can go on with such a model.
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
    /// Where it sits and how far it spreads.
    pub summary: ColumnSummary,
    /// Least variance of the column given the columns before it.
    pub floor: f64,
}

/// A learned mixture with all that is needed to score with it, to explain it, and to go on learning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    format: String,
    version: u32,
    /// The version of the tool that wrote it.
    tool: String,
    /// The algorithm and its settings.
    algorithm: Recipe,
    /// Seed of the start.
    seed: u64,
    /// Rows to buffer for the start, where that was set by hand.
    #[serde(rename = "init_rows", default, skip_serializing_if = "Option::is_none")]
    start_rows: Option<usize>,
    /// How much work goes into the start and into revisions.
    #[serde(default)]
    effort: Effort,
    /// The bounds of K, where K is learned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    learns_k: Option<[usize; 2]>,
    /// Rows to keep for revisions, where that was set by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keep_rows: Option<usize>,
    /// Rows seen.
    rows: u64,
    /// Whether the columns' names came from a header.
    named: bool,
    /// The columns.
    columns: Vec<Column>,
    /// Prequential score.
    prequential: Prequential,
    /// What had to be guarded while learning.
    health: Health,
    /// What was learned.
    learned: LearnerState,
    /// Its structure: identifiers, revisions, and what the end of the stream made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    structure: Option<Structure>,
    /// The other K learned in the same pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rivals: Vec<CandidateState>,
    /// The scores of all K over batches of rows, for the standard errors of their differences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scores: Option<BatchSums>,
    /// Where a shard comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lineage: Option<Lineage>,
    /// Some of its rows, by which shards that grow from this model are known to have learned them again.
    #[serde(default, skip_serializing_if = "RowSample::is_empty")]
    sample: RowSample,
    /// In a checkpoint: of the rows of the data that it was saved in the middle of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checkpoint: Option<Fingerprint>,
    /// In a checkpoint: the learning curve so far, where one is traced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    curve: Vec<CurvePoint>,
    /// The rows themselves, row after row, while there are too few for the start: a later run goes on from them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pending: Option<Vec<f64>>,
    /// Rows of the data that are kept for revisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept: Option<KeptRows>,
    /// Only while a file is read: writing makes a new one.
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

    /// How much work goes into the start and into revisions.
    pub fn effort(&self) -> Effort {
        self.effort
    }

    /// Rows to keep for revisions, where that was set.
    pub fn keep_rows(&self) -> Option<usize> {
        self.keep_rows
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

    /// A model that is a mixture alone: fitted in batch, or the truth that data were drawn from.
    pub fn from_mixture(
        mixture: GaussianMixture,
        recipe: Recipe,
        seed: u64,
        columns: &ColumnNames,
        summaries: &[ColumnSummary],
    ) -> Self {
        Model::from_mixtures(mixture, Vec::new(), recipe, seed, columns, summaries)
    }

    /// The same with mixtures of other K as its rivals.
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
        };
        let state = FitState {
            rows,
            columns: summaries.to_vec(),
            floor: summaries.iter().map(variance_floor).collect(),
            pending: None,
            candidates: std::iter::once(best).chain(rivals).map(candidate).collect(),
            shard: None,
            sample: RowSample::default(),
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
            start_rows: None,
            effort: Effort::default(),
            learns_k: None,
            keep_rows: None,
            rows: state.rows,
            named: columns.named,
            columns: described
                .map(|((name, &summary), &floor)| Column { name: name.clone(), summary, floor })
                .collect(),
            prequential: best.prequential,
            health: best.health,
            learned: best.learned,
            structure: best.structure,
            rivals: state.candidates,
            scores,
            lineage: state.shard.map(|Shard { mut lineage, rows }| {
                lineage.shards.push(rows);
                lineage
            }),
            sample: state.sample,
            checkpoint: None,
            curve: Vec::new(),
            pending: state.pending,
            kept: state.kept,
            checksum: None,
        }
    }

    /// The mixture as estimated at the end of the stream, or so far.
    pub fn estimate(&self) -> GaussianMixture {
        mixture_of(&self.learned, self.structure.as_ref())
    }

    /// The posterior at the end of the stream, or so far, where the model is Bayesian.
    pub fn posterior(&self) -> Option<&Posterior> {
        match self.structure.as_ref().and_then(|structure| structure.finished.as_ref()) {
            Some(finished) => finished.estimate.posterior(),
            None => self.learned.posterior(),
        }
    }

    /// Safeguards that triggered, those at the end of the stream included.
    pub fn health(&self) -> Health {
        let finished = self.structure.as_ref().and_then(|structure| structure.finished.as_ref());
        finished.map_or(self.health, |finished| self.health + finished.health)
    }

    /// The same model without rows of the data, to be shared. A pass that resumes from it does not revise the structure
    /// until it has seen as many new rows. Where the start waits for more rows, the provisional mixture takes its place.
    pub fn without_rows(mut self) -> Self {
        let Some((settings, state)) = self.clone().into_state() else { return self };
        let state = state.without_rows(&settings);
        (self.pending, self.kept) = (state.pending, state.kept);
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

    /// How many rows of the data the model file contains: those kept for revisions, or those that the start is made from
    /// when there are enough.
    pub fn rows_in_file(&self) -> u64 {
        let kept = self.kept.as_ref().map_or(0, |kept| kept.reservoir().len() + kept.validation().len());
        let pending = self.pending.as_ref().map_or(0, Vec::len);
        ((kept + pending) / self.columns.len().max(1)) as u64
    }

    /// The posterior predictive, where the model is Bayesian.
    pub fn predictive(&self) -> Option<StudentMixture> {
        self.posterior().map(Posterior::predictive)
    }

    /// How many components.
    pub fn k(&self) -> usize {
        self.learned.k()
    }

    /// Every K that the model has, its rivals included, in ascending order.
    pub fn ks(&self) -> Vec<usize> {
        self.choice().candidates.iter().map(|candidate| candidate.k).collect()
    }

    /// Every K that the model has with its score, in ascending order.
    pub fn choice(&self) -> Choice {
        let own = (self.k(), self.prequential);
        let rivals = self.rivals.iter().map(|rival| (rival.learned.k(), rival.prequential));
        let mut scores: Vec<_> = std::iter::once(own).chain(rivals).collect();
        scores.sort_by_key(|(k, _)| *k);
        let none = BatchSums::default();
        Choice::of_pass(&scores, self.scores.as_ref().unwrap_or(&none))
    }

    /// The model of one K alone, without its rivals; `None` if the model does not have it. A pass that resumes from it
    /// learns that K as one that resumes from all of them. Where the start waits for more rows, one K waits for fewer
    /// than several do. Where K is learned, it stays as it is from then on.
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
            let CandidateState { learned, prequential, health, structure } = self.rivals.swap_remove(place);
            self = Model { learned, prequential, health, structure, ..self };
        }
        self.rivals.clear();
        self.scores = None;
        self.learns_k = None;
        Some(self)
    }

    /// The columns' names.
    pub fn column_names(&self) -> ColumnNames {
        let names = self.columns.iter().map(|column| column.name.clone()).collect();
        ColumnNames { names, named: self.named }
    }

    /// What a log-density gains when the columns are measured in standard deviations instead of their own units.
    pub fn zscore_jacobian(&self) -> f64 {
        self.columns.iter().map(|column| column.summary.unit().ln()).sum()
    }
}
