//! A learned mixture and its file: versioned, readable JSON that keeps every bit of a number.

mod anomaly;
mod curve;
mod earlier;
mod file;
mod format;
mod labels;
mod merge;
mod no_revisions;
mod pass;
mod recipe;
mod seal;

pub use curve::CurvePoint;
pub(crate) use file::FORMAT;
pub use file::{LooksLike, ModelError, VERSION};
pub use labels::Labels;
pub use merge::{MergeError, MergeOptions, Merged, merge_models};
pub use no_revisions::NoRevisions;
pub use pass::Checkpoint;
pub use recipe::Recipe;
pub use seal::Seal;

pub use crate::learn::{Lineage, MergeReport, Numbered};

use std::borrow::Cow;

use ndarray::{Array2, ArrayView2, CowArray, Ix2};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::data::{ColumnNames, Dequantize, Noise};
use crate::dist::{GaussianMixture, Posterior, StudentMixture};
use crate::hash::Fingerprint;
use crate::learn::{
    ActiveRows, CandidateState, ChangeWatch, DataChanges, Effort, FitState, Health, KComparison,
    LearnerState, Prequential, PriorStrength, RevisionRecord, RowSample, RowWeights, ScoreRanks, SeenRows,
    Shard, StartKind, Structure, variance_floor,
};
use crate::stats::{BatchSums, ColumnSummary};

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
/// assert_eq!((model.rows(), model.k(), model.column_names().names[1].as_str()), (900, 3, "height"));
/// assert_eq!(model.estimate().predict(rows.view())?.len(), 900);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    format: String,
    version: u32,
    /// The version of the library that wrote it.
    tool: String,
    /// How it was made.
    settings: Recipe,
    /// The names of the columns.
    columns: ColumnNames,
    /// The index of the best K among the candidates of the state.
    best: usize,
    /// What was learned.
    state: FitState,
    /// Parameters of the Python estimator that saved it, where the other members do not tell them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    estimator: Option<Map<String, Value>>,
    /// In a checkpoint: fingerprint of the rows that were read before it was saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checkpoint: Option<Fingerprint>,
    /// In a checkpoint: the learning curve so far, if there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    curve: Vec<CurvePoint>,
    /// Only while a file is read; writing computes a new one.
    #[serde(default, skip_serializing)]
    checksum: Option<String>,
}

impl Model {
    /// The version of the library that wrote it.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// How it was made.
    pub fn recipe(&self) -> &Recipe {
        &self.settings
    }

    /// Seed of all random choices.
    pub fn seed(&self) -> u64 {
        self.settings.seed()
    }

    /// What the pass began from.
    pub fn start(&self) -> StartKind {
        self.settings.online().map_or(StartKind::Fitted, |settings| settings.start)
    }

    /// How much work goes into the start and into revisions.
    pub fn effort(&self) -> Effort {
        self.settings.online().map_or(Effort::default(), |settings| settings.effort)
    }

    /// Rows to keep for revisions, if that was set.
    pub fn keep_rows(&self) -> Option<usize> {
        self.settings.online()?.keep_rows
    }

    /// The number of further rows after which a row has half its weight, if rows lose weight.
    pub fn half_life(&self) -> Option<u64> {
        self.settings.online()?.half_life
    }

    /// How many rows the prior of a component's covariance was set to be worth.
    pub fn prior_strength(&self) -> PriorStrength {
        self.settings.online().map_or(PriorStrength::Auto, |settings| settings.prior_strength)
    }

    /// How many rows the prior of a component's covariance is worth, if the model knows it.
    pub fn prior_rows(&self) -> Option<f64> {
        self.structure().and_then(Structure::latest_prior_rows)
    }

    /// The weights of the rows that it was learned from, if a row had another than 1.
    pub fn weights(&self) -> Option<&RowWeights> {
        self.settings.weights()
    }

    /// Parameters of the Python estimator that saved it, where nothing else tells them. A pass that resumes does not keep them.
    pub fn estimator(&self) -> Option<&Map<String, Value>> {
        self.estimator.as_ref()
    }

    /// Sets the parameters of a Python estimator, which are saved with the model.
    pub fn set_estimator(&mut self, parameters: Option<Map<String, Value>>) {
        self.estimator = parameters;
    }

    /// The candidate with the best K.
    fn own(&self) -> &CandidateState {
        &self.state.candidates[self.best]
    }

    fn structure(&self) -> Option<&Structure> {
        self.own().structure.as_ref()
    }

    /// The changes of the data that were found while it was learned.
    pub fn data_changes(&self) -> Option<&DataChanges> {
        self.structure()?.changes.as_ref().and_then(ChangeWatch::changes)
    }

    /// Rows seen.
    pub fn rows(&self) -> u64 {
        self.state.rows
    }

    /// The mean and spread of each column.
    pub fn summaries(&self) -> &[ColumnSummary] {
        &self.state.columns
    }

    /// Whether values were missing: a column with gaps has fewer values than there are rows.
    pub fn has_gaps(&self) -> bool {
        self.state.columns.iter().any(|column| column.count < self.state.rows)
    }

    /// The prequential score.
    pub fn prequential(&self) -> Prequential {
        self.own().prequential
    }

    /// Where a shard comes from.
    pub fn lineage(&self) -> Option<&Lineage> {
        self.state.shard.as_ref().map(|shard| &shard.lineage)
    }

    /// Whether the rows were too few for a start, so that a resumed pass fits the start again. The mixture of a finished pass was
    /// fitted to all of them.
    pub fn waits_for_rows(&self) -> bool {
        self.state.pending.is_some()
    }

    /// Whether the mixture is provisional: a checkpoint of a pass that waits for rows.
    pub fn is_provisional(&self) -> bool {
        self.waits_for_rows() && self.checkpoint.is_some()
    }

    /// When each component of [`Model::estimate`] was active, as far as that is known.
    pub fn active_rows(&self) -> Vec<Option<ActiveRows>> {
        let known = self.structure().map(Structure::active_rows);
        known.unwrap_or_else(|| vec![None; self.k()])
    }

    /// Whether it keeps rows to revise on.
    pub fn keeps_rows(&self) -> bool {
        self.state.kept.as_ref().is_some_and(|kept| kept.most() > 0)
    }

    /// Whether the revisions are recorded: a mixture that no online learner made has no record of them.
    pub fn has_history(&self) -> bool {
        self.structure().is_some()
    }

    /// All revisions, the oldest first.
    pub fn revisions(&self) -> impl Iterator<Item = &RevisionRecord> {
        self.structure().into_iter().flat_map(Structure::revisions)
    }

    /// Whether there may have been earlier revisions than [`Model::revisions`] has.
    pub fn may_have_forgotten(&self) -> bool {
        self.structure().is_some_and(Structure::may_have_forgotten)
    }

    /// How well the shards of a merged model agree.
    pub fn merge_report(&self) -> Option<&MergeReport> {
        match &self.own().learned {
            LearnerState::Sharded(state) => Some(&state.merged),
            _ => self.lineage()?.merged.as_ref(),
        }
    }

    /// The model of mixtures of several K that no online learner made, the best one first.
    ///
    /// # Panics
    /// If there is no mixture, or one has another number of columns than `summaries`.
    pub fn from_mixtures(
        mixtures: Vec<GaussianMixture>,
        recipe: Recipe,
        columns: &ColumnNames,
        summaries: &[ColumnSummary],
    ) -> Self {
        let rows = summaries.iter().map(|summary| summary.count).max().unwrap_or(0);
        let best_k = mixtures.first().map_or(0, GaussianMixture::k);
        let candidate = |mixture: GaussianMixture| CandidateState {
            learned: LearnerState::Point {
                start: mixture.clone(),
                start_rows: rows as f64,
                mixture,
                rows: 0.0,
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
            pending_weights: None,
            candidates: mixtures.into_iter().map(candidate).collect(),
            shard: None,
            sample: RowSample::default(),
            seen: SeenRows::default(),
            scores: BatchSums::default(),
            kept: None,
        };
        let model = Model::new(recipe, state, columns.clone());
        let best = model.state.candidates.iter().position(|candidate| candidate.learned.k() == best_k);
        Model { best: best.unwrap_or(0), ..model }
    }

    fn new(settings: Recipe, mut state: FitState, columns: ColumnNames) -> Self {
        state.candidates.sort_by_key(|candidate| candidate.learned.k());
        let ks = state.candidates.len();
        // While rows are pending, the scores are provisional.
        if state.pending.is_some() || !state.scores.is_sound(ks) {
            state.scores = BatchSums::default();
        }
        if let Some(Shard { lineage, rows }) = &mut state.shard {
            // Rows that are learned from now on are a shard of their own.
            lineage.shards.push(std::mem::take(rows));
        }
        Model {
            format: FORMAT.into(),
            version: VERSION,
            tool: env!("CARGO_PKG_VERSION").into(),
            settings,
            columns,
            best: state.best(),
            state,
            estimator: None,
            checkpoint: None,
            curve: Vec::new(),
            checksum: None,
        }
    }

    /// The mixture at the end of the stream if that was computed, and otherwise as learned so far.
    pub fn estimate(&self) -> GaussianMixture {
        self.own().mixture()
    }

    /// The posterior that [`Model::estimate`] is computed from. `None` if the learner is not Bayesian.
    pub fn posterior(&self) -> Option<&Posterior> {
        match self.own().finished() {
            Some(finished) => finished.estimate.posterior(),
            None => self.own().learned.posterior(),
        }
    }

    /// The distribution of the log-densities of the rows that it was learned from, by which new rows get a rank. `None` if
    /// the rows are not known, as in files of earlier versions.
    pub fn ranks(&self) -> Option<&ScoreRanks> {
        self.own().finished().and_then(|finished| finished.ranks.as_ref()).or(self.own().ranks.as_ref())
    }

    /// Sets the distribution of the log-densities of every K to that of these rows, with their weights if they have any.
    #[cfg(feature = "cli")]
    pub(crate) fn with_ranks_of(mut self, rows: ArrayView2<f64>, weights: Option<&[f64]>) -> Self {
        for candidate in &mut self.state.candidates {
            let mut ranks = ScoreRanks::default();
            let weight = |i: usize| weights.map_or(1.0, |weights| weights[i]);
            let scores = candidate.learned.estimate().log_densities(rows).into_iter().enumerate();
            ranks.extend_weighted(scores.map(|(i, score)| (score, weight(i))));
            candidate.ranks = Some(ranks);
        }
        self
    }

    /// Safeguards that triggered, including the end of the stream.
    pub fn health(&self) -> Health {
        let own = self.own();
        own.finished().map_or(own.health, |finished| own.health + finished.health)
    }

    /// The noise of discrete columns, if it was learned with noise. Rows need it before they are scored: [`Noise::noisy`].
    pub fn noise(&self) -> Option<Noise> {
        self.decided_dequantize().noise(self.seed())
    }

    fn decided_dequantize(&self) -> Dequantize {
        let (pending, dim) = (self.state.pending.as_deref().unwrap_or_default(), self.columns.len().max(1));
        let rows = ArrayView2::from_shape((pending.len() / dim, dim), pending);
        rows.map_or(Dequantize::Off, |rows| self.settings.dequantize().decided(rows))
    }

    /// Removes the rows of the data, so that the model can be shared. A pass that resumes from it does not revise until it has
    /// seen as many new rows. If the start waits for more rows, the provisional mixture replaces it.
    pub fn without_rows(mut self) -> Self {
        let dequantize = self.decided_dequantize();
        if let Recipe::Online(settings) = &mut self.settings {
            settings.dequantize = dequantize;
            self.state = self.state.without_rows(settings);
        }
        self
    }

    /// Rows of the data that the model contains: a sample that is kept for revisions, or those buffered for the start.
    pub(crate) fn kept_rows(&self) -> CowArray<'_, f64, Ix2> {
        let dim = self.columns.len().max(1);
        let kept = || self.state.kept.as_ref().map(|kept| kept.reservoir(dim));
        let pending = self.state.pending.as_deref().map(Cow::Borrowed);
        let shape = |values: usize| (values / dim, dim);
        match pending.or_else(kept).unwrap_or_default() {
            Cow::Borrowed(values) => {
                ArrayView2::from_shape(shape(values.len()), values).expect("kept rows are whole").into()
            }
            Cow::Owned(values) => {
                Array2::from_shape_vec(shape(values.len()), values).expect("kept rows are whole").into()
            }
        }
    }

    /// The course of the score of the K at a place among all K: rows seen, and the mean score of the rows since the point
    /// before. Rows that are not scored, such as those of the start, have their place by proportion.
    pub(crate) fn score_course(&self, place: usize) -> Vec<(f64, f64)> {
        let (scores, rows) = (&self.state.scores, self.rows() as f64);
        let Some(settings) = self.settings.online().filter(|_| scores.is_sound(self.state.candidates.len()))
        else {
            return Vec::new();
        };
        let (batch, means) = scores.means(place);
        let start = (settings.rows_of_start(self.columns.len()) as f64).min(rows);
        let each = batch as f64 * (rows - start) / self.prequential().rows.max(1) as f64;
        means.into_iter().enumerate().map(|(i, mean)| (start + (i + 1) as f64 * each, mean)).collect()
    }

    /// How many rows of the data the model file contains: those kept for revisions, or those buffered for the start.
    pub fn rows_in_file(&self) -> u64 {
        let kept = self.state.kept.as_ref();
        let kept = kept.map_or(0, |kept| kept.reservoir_len() + kept.validation().len());
        let pending = self.state.pending.as_ref().map_or(0, Vec::len);
        ((kept + pending) / self.columns.len().max(1)) as u64
    }

    /// The posterior predictive. `None` if the learner is not Bayesian.
    pub fn predictive(&self) -> Option<StudentMixture> {
        self.posterior().map(Posterior::predictive)
    }

    /// How many components.
    pub fn k(&self) -> usize {
        self.own().learned.k()
    }

    /// Every K of the model, in ascending order.
    pub fn ks(&self) -> Vec<usize> {
        self.state.candidates.iter().map(|candidate| candidate.learned.k()).collect()
    }

    /// The scores of all K compared, in ascending order of K.
    pub fn choice(&self) -> KComparison {
        let scores: Vec<_> = self.state.candidates.iter().map(CandidateState::score).collect();
        KComparison::of_pass(&scores, &self.state.scores)
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
        let place = self.ks().iter().position(|own| *own == k)?;
        self.state.candidates = vec![self.state.candidates.swap_remove(place)];
        self.best = 0;
        self.state.scores = self.state.scores.only(place);
        if let Recipe::Online(settings) = &mut self.settings {
            settings.components = k.into();
        }
        Some(self)
    }

    /// The names of the columns.
    pub fn column_names(&self) -> ColumnNames {
        self.columns.clone()
    }
}
