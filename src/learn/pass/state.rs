//! The states of learners and passes, as model files contain them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::dist::{Dirichlet, GaussianMixture, NormalWishart, Posterior};
use crate::learn::kernel::MatrixState;
use crate::learn::monitor::changes::ChangeWatch;
use crate::learn::rules::forgetting::{Forgetting, LeastCounts};
use crate::learn::rules::obmm::mean_matrix;
use crate::learn::structure::{ActiveRows, Activity, Identifiers, KeptRows, RevisionRecord, Schedule};
use crate::learn::{
    Algorithm, FitSettings, Health, Prequential, RowSample, ScoreRanks, SeenRows, Shard, ShardedState,
};
use crate::linalg::Factor;
use crate::stats::{BatchSums, ColumnSummary};

/// The complete state of a learner. A learner that resumes from it gives the same bits as one that never stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LearnerState {
    /// A posterior and its prior.
    Bayes {
        /// Before the first row.
        prior: Posterior,
        /// Now.
        posterior: Posterior,
        /// The states of the components' matrices while they are learned. Computed again if there are none.
        #[serde(rename = "working", default, skip_serializing_if = "Vec::is_empty")]
        matrix_states: Vec<MatrixState>,
    },
    /// A point estimate and its start.
    Point {
        /// Before the first row.
        start: GaussianMixture,
        /// Rows that the start was fitted to, or their weight.
        #[serde(serialize_with = "as_whole_number")]
        start_rows: f64,
        /// Now.
        mixture: GaussianMixture,
        /// Rows learned since the start, or their weight.
        #[serde(serialize_with = "as_whole_number")]
        rows: f64,
        /// See [`LearnerState::Bayes::matrix_states`](LearnerState::Bayes).
        #[serde(rename = "working", default, skip_serializing_if = "Vec::is_empty")]
        matrix_states: Vec<MatrixState>,
    },
    /// Shards that were learned apart and merged.
    Sharded(Box<ShardedState>),
}

impl LearnerState {
    /// The point estimate.
    pub fn estimate(&self) -> GaussianMixture {
        match self {
            LearnerState::Point { mixture, .. } => mixture.clone(),
            LearnerState::Bayes { posterior, .. } => posterior.point_estimate(),
            LearnerState::Sharded(state) => state.posterior.point_estimate(),
        }
    }

    /// The posterior, if the learner has one.
    pub fn posterior(&self) -> Option<&Posterior> {
        match self {
            LearnerState::Bayes { posterior, .. } => Some(posterior),
            LearnerState::Sharded(state) => Some(&state.posterior),
            LearnerState::Point { .. } => None,
        }
    }

    /// How many components.
    pub fn k(&self) -> usize {
        self.shape().0
    }

    /// The number of columns.
    pub fn dim(&self) -> usize {
        self.shape().1
    }

    fn shape(&self) -> (usize, usize) {
        match self {
            LearnerState::Point { mixture, .. } => (mixture.k(), mixture.dim()),
            LearnerState::Bayes { posterior, .. } => (posterior.k(), posterior.dim()),
            LearnerState::Sharded(state) => (state.posterior.k(), state.posterior.dim()),
        }
    }

    /// Reduces the number of rows that it counts for to that of an endless stream with a half-life, if it is larger. The
    /// estimate stays.
    pub(in crate::learn) fn bound_rows(&mut self, forgetting: Forgetting) {
        let LearnerState::Bayes { posterior, matrix_states, .. } = self else { return };
        let factor = forgetting.most_rows() / posterior.weights().total();
        if factor < 1.0 {
            *posterior = with_fewer_rows(posterior, factor);
            matrix_states.clear();
        }
    }

    /// Whether all parts have the same shape.
    pub(crate) fn is_consistent(&self) -> bool {
        let shape = self.shape();
        let fits = |posterior: &Posterior| (posterior.k(), posterior.dim()) == shape;
        match self {
            LearnerState::Point { start, .. } => (start.k(), start.dim()) == shape,
            LearnerState::Bayes { prior, .. } => fits(prior),
            LearnerState::Sharded(state) => {
                fits(&state.prior)
                    && fits(&state.common)
                    && state.shards.iter().all(|shard| fits(&shard.posterior))
            }
        }
    }

    /// Whether the matrix states, if there are any, belong to its matrices.
    pub(crate) fn owns_its_matrix_states(&self) -> bool {
        match self {
            LearnerState::Point { mixture, matrix_states, .. } => states_belong(
                matrix_states,
                mixture.components().iter().map(|component| component.covariance().clone()),
            ),
            LearnerState::Bayes { posterior, matrix_states, .. } => {
                states_belong(matrix_states, mean_matrices(posterior))
            }
            LearnerState::Sharded(state) => {
                states_belong(&state.common_matrix_states, mean_matrices(&state.common))
                    && state
                        .shards
                        .iter()
                        .all(|shard| states_belong(&shard.matrix_states, mean_matrices(&shard.posterior)))
            }
        }
    }
}

/// The posterior of `factor` times the rows, with the same point estimate.
fn with_fewer_rows(posterior: &Posterior, factor: f64) -> Posterior {
    let least = LeastCounts::new(posterior.dim());
    let fewer = |count: f64, least: f64| (factor * count).max(least).min(count);
    let component = |own: &NormalWishart| {
        let beyond = own.beyond_rows();
        let count = own.nu() - beyond;
        let new_count = fewer(count, least.covariance);
        // Without a finite expected covariance, the component stays.
        let scale = if count > 0.0 { new_count / count } else { 1.0 };
        let kappa = fewer(own.kappa(), least.mean);
        NormalWishart::new(own.mean().to_vec(), kappa, new_count + beyond, own.psi().times(scale))
            .unwrap_or_else(|_| own.clone())
    };
    let a = posterior.weights().concentrations().iter();
    let a = a.map(|&a| fewer(a, LeastCounts::CONCENTRATION)).collect();
    Posterior::new(
        Dirichlet::new(a).expect("concentrations stay positive"),
        posterior.components().iter().map(component).collect(),
    )
    .expect("one component for each weight")
}

fn mean_matrices(posterior: &Posterior) -> impl ExactSizeIterator<Item = Factor> {
    posterior.components().iter().map(mean_matrix)
}

/// Whether there are no matrix states, or one for each matrix that belongs to it.
fn states_belong(matrix_states: &[MatrixState], matrices: impl ExactSizeIterator<Item = Factor>) -> bool {
    let mut matrices = matrices.peekable();
    if let [only] = matrix_states
        && let Some(shared) = only.shared()
    {
        let (k, dim) = (matrices.len(), matrices.peek().map_or(0, Factor::dim));
        return shared.fits(k, dim);
    }
    matrix_states.is_empty()
        || matrix_states.len() == matrices.len()
            && matrix_states.iter().zip(matrices).all(|(state, matrix)| state.belongs_to(&matrix))
}

/// The state of one K of a pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CandidateState {
    /// What it has learned.
    pub learned: LearnerState,
    /// Its prequential score.
    pub prequential: Prequential,
    /// Safeguards that triggered.
    pub health: Health,
    /// Its structure; files of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structure: Option<Structure>,
    /// The distribution of the log-densities of its rows; files of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<ScoreRanks>,
}

impl CandidateState {
    /// How many components, and the prequential score.
    pub(crate) fn score(&self) -> (usize, Prequential) {
        (self.learned.k(), self.prequential)
    }

    /// The mixture at the end of the stream, if that was computed.
    pub(crate) fn finished(&self) -> Option<&Finished> {
        self.structure.as_ref()?.finished.as_ref()
    }

    /// The mixture at the end of the stream if that was computed, and otherwise as learned so far.
    pub fn mixture(&self) -> GaussianMixture {
        self.finished().map_or_else(|| self.learned.estimate(), |finished| finished.estimate.mixture())
    }
}

/// The structure of one K: identifiers of its components, the schedule of revisions, and their history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Structure {
    /// The identifiers of the components.
    pub identifiers: Identifiers,
    pub(crate) schedule: Schedule,
    /// The latest revisions, the oldest first.
    pub history: Vec<RevisionRecord>,
    /// How many rows the prior of a component's covariance is worth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prior_rows: Option<f64>,
    /// The mixture after the closing revision; ignored on resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<Finished>,
    /// When its components were active.
    #[serde(default)]
    pub(crate) activity: Activity,
    /// Watches for changes of the data.
    #[serde(rename = "drift", default, skip_serializing_if = "Option::is_none")]
    pub(crate) changes: Option<ChangeWatch>,
}

/// The length of a history.
const MAX_HISTORY: usize = 500;

impl Structure {
    pub(in crate::learn) fn new(k: usize, schedule: Schedule) -> Self {
        let (identifiers, activity) = (Identifiers::new(k), Activity::default());
        let (history, prior_rows) = (Vec::new(), None);
        Structure { identifiers, schedule, history, prior_rows, finished: None, activity, changes: None }
    }

    /// The structure of a pass that begins from the mixture at the end of this one: the same components with their history,
    /// and no further revisions.
    pub(crate) fn inherited(&self) -> Self {
        let revisions: Vec<&RevisionRecord> = self.revisions().collect();
        let latest = &revisions[revisions.len().saturating_sub(MAX_HISTORY)..];
        Structure {
            identifiers: self.latest_identifiers().clone(),
            schedule: Schedule::never(),
            history: latest.iter().map(|&record| record.clone()).collect(),
            prior_rows: self.latest_prior_rows(),
            finished: None,
            activity: Activity::default(),
            changes: None,
        }
    }

    pub(in crate::learn) fn log(&mut self, record: RevisionRecord) {
        if self.history.len() == MAX_HISTORY {
            self.history.remove(0);
        }
        self.history.push(record);
    }

    /// All revisions, the closing one included.
    pub fn revisions(&self) -> impl Iterator<Item = &RevisionRecord> {
        self.history.iter().chain(self.finished.as_ref().and_then(|finished| finished.closing.as_ref()))
    }

    /// Whether earlier revisions may be missing from the history.
    pub fn may_have_forgotten(&self) -> bool {
        self.history.len() >= MAX_HISTORY
    }

    /// How many rows the prior of a component's covariance is worth at the end of the stream, or so far.
    pub fn latest_prior_rows(&self) -> Option<f64> {
        self.finished.as_ref().and_then(|finished| finished.prior_rows).or(self.prior_rows)
    }

    /// The identifiers at the end of the stream, or so far.
    pub fn latest_identifiers(&self) -> &Identifiers {
        self.finished.as_ref().map_or(&self.identifiers, |finished| &finished.identifiers)
    }

    /// When each of the latest components was active, as far as that is known.
    pub fn active_rows(&self) -> Vec<Option<ActiveRows>> {
        let (mut activity, identifiers) = (self.activity.clone(), self.latest_identifiers().all());
        let closing = self.finished.as_ref().and_then(|finished| finished.closing.as_ref());
        if let Some(closing) = closing.filter(|closing| closing.kept) {
            activity.follow(&closing.moves, identifiers);
        }
        identifiers.iter().map(|&identifier| activity.of(identifier)).collect()
    }

    /// Whether it can be the structure of `k` components after `rows` rows.
    pub(crate) fn is_sound(&self, k: usize, dim: usize, rows: u64) -> bool {
        let finished = self.finished.as_ref().is_none_or(|finished| {
            let mixture = finished.estimate.mixture();
            mixture.dim() == dim && finished.identifiers.is_sound(mixture.k())
        });
        let changes = self.changes.as_ref().is_none_or(|changes| changes.is_sound(dim));
        finished && changes && self.identifiers.is_sound(k) && self.schedule.is_sound(rows)
    }
}

/// A mixture at the end of a stream: after the closing revision, with the validation rows learned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finished {
    /// The estimate.
    pub estimate: Estimate,
    /// The identifiers of its components.
    pub identifiers: Identifiers,
    /// How many rows the prior of a component's covariance is worth, if the end of the stream changed that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prior_rows: Option<f64>,
    /// Safeguards that triggered at the end of the stream.
    #[serde(default)]
    pub health: Health,
    /// The closing revision, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closing: Option<RevisionRecord>,
    /// The distribution of the log-densities of all rows under the estimate; files of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<ScoreRanks>,
}

/// A posterior or a point estimate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Estimate {
    /// A posterior.
    Posterior(Posterior),
    /// A point estimate.
    Mixture(GaussianMixture),
}

impl Estimate {
    pub(in crate::learn) fn of(learned: LearnerState) -> Self {
        match learned {
            LearnerState::Point { mixture, .. } => Estimate::Mixture(mixture),
            LearnerState::Bayes { posterior, .. } => Estimate::Posterior(posterior),
            LearnerState::Sharded(state) => Estimate::Posterior(state.posterior),
        }
    }

    /// The point estimate.
    pub fn mixture(&self) -> GaussianMixture {
        match self {
            Estimate::Posterior(posterior) => posterior.point_estimate(),
            Estimate::Mixture(mixture) => mixture.clone(),
        }
    }

    /// The posterior, if there is one.
    pub fn posterior(&self) -> Option<&Posterior> {
        match self {
            Estimate::Posterior(posterior) => Some(posterior),
            Estimate::Mixture(_) => None,
        }
    }
}

/// All that a model file contains of a pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitState {
    /// Rows seen.
    pub rows: u64,
    /// A summary of each column.
    #[serde(rename = "summaries")]
    pub columns: Vec<ColumnSummary>,
    /// Least variance of each column given the columns before it.
    pub floor: Vec<f64>,
    /// The rows themselves while there are too few for the start; then the candidates are provisional.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "null_as_nan")]
    pub pending: Option<Vec<f64>>,
    /// The weights of these rows, if they have any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_weights: Option<Vec<f64>>,
    /// One for each K.
    pub candidates: Vec<CandidateState>,
    /// The shard that the pass learns, if it learns one.
    #[serde(rename = "lineage", default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// Keys of some rows, if the model can be a common prior.
    #[serde(default, skip_serializing_if = "RowSample::is_empty")]
    pub sample: RowSample,
    /// Keys of some rows, by which the pass notices rows that come again.
    #[serde(default, skip_serializing_if = "SeenRows::is_empty")]
    pub seen: SeenRows,
    /// The prequential scores of several K over batches of rows. Empty for merged shards.
    #[serde(default, skip_serializing_if = "BatchSums::is_empty")]
    pub scores: BatchSums,
    /// Rows kept for revisions, if the pass keeps any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptRows>,
}

/// A number of rows, without a fraction if it has none.
pub(in crate::learn) fn as_whole_number<S: Serializer>(rows: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    let whole = *rows as u64;
    if whole as f64 == *rows { serializer.serialize_u64(whole) } else { serializer.serialize_f64(*rows) }
}

/// Numbers of which some are missing: JSON has `null` for NaN.
fn null_as_nan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<f64>>, D::Error> {
    let values = Option::<Vec<Option<f64>>>::deserialize(deserializer)?;
    Ok(values.map(|values| values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect()))
}

impl FitState {
    /// A shard before its first row. `common` has the common prior of each K and its structure.
    pub(crate) fn of_new_shard(
        settings: &FitSettings,
        floor: Vec<f64>,
        common: impl IntoIterator<Item = (Posterior, Option<Structure>)>,
    ) -> Self {
        let kept = KeptRows::new(settings.seed, settings.kept_rows(floor.len()), false);
        let begin = |(prior, structure): (Posterior, Option<Structure>)| CandidateState {
            learned: LearnerState::Bayes { posterior: prior.clone(), prior, matrix_states: Vec::new() },
            prequential: Prequential::default(),
            health: Health::default(),
            structure,
            ranks: None,
        };
        FitState {
            rows: 0,
            columns: vec![ColumnSummary::default(); floor.len()],
            floor,
            pending: None,
            pending_weights: None,
            candidates: common.into_iter().map(begin).collect(),
            shard: None,
            sample: RowSample::default(),
            seen: SeenRows::default(),
            scores: BatchSums::default(),
            kept: Some(kept),
        }
    }

    /// Removes the rows of the data. If the start has not been made, the provisional mixtures replace it. A pass that resumes
    /// from this state does not revise until it has seen as many new rows.
    pub(crate) fn without_rows(mut self, settings: &FitSettings) -> Self {
        self.seen = SeenRows::default();
        self.pending_weights = None;
        if self.pending.take().is_none() {
            self.kept = self.kept.map(|kept| kept.without_rows());
            return self;
        }
        let most = settings.kept_rows(self.columns.len());
        let shards = matches!(settings.algorithm, Algorithm::Odmm(_));
        let kept = KeptRows::new(settings.seed, most, most > 0 && !shards);
        let kept = kept.with_half_life(settings.half_life, self.columns.len());
        self.kept = Some(kept.after_unknown(self.rows));
        for (candidate, size) in self.candidates.iter_mut().zip(settings.components.sizes()) {
            let schedule =
                Schedule::of(size, most, shards, self.rows).with_half_life(settings.half_life, self.rows);
            candidate.structure = Some(Structure::new(candidate.learned.k(), schedule));
        }
        self
    }

    /// The index of the K with the best prequential score, or of the smallest K if there are no scores.
    pub fn best(&self) -> usize {
        best_score(self.candidates.iter().map(|candidate| candidate.prequential))
    }

    /// The mixture of that K.
    pub fn mixture(&self) -> GaussianMixture {
        self.candidates[self.best()].mixture()
    }
}

/// The index of the best mean score, the first where there is none.
pub(in crate::learn) fn best_score(scores: impl Iterator<Item = Prequential>) -> usize {
    let means: Vec<f64> = scores.map(|score| score.mean().unwrap_or(f64::NEG_INFINITY)).collect();
    (0..means.len()).fold(0, |best, i| if means[i] > means[best] { i } else { best })
}
