//! One K of a pass: its learner, its score, and the history of its structure.

use std::borrow::Cow;

use crate::dist::GaussianMixture;
use crate::learn::monitor::changes::{ChangeWatch, DataChanges};
use crate::learn::monitor::today::{RunScores, Today};
use crate::learn::pass::novelty_level::novelty_level;
use crate::learn::pass::places::Places;
use crate::learn::pass::ranking::{MIN_RANKED, RankedScore, gain_of_newest, ranks_of_kept, whole_scores};
use crate::learn::rows::RowBuffer;
use crate::learn::rules::forgetting::Forgetting;
use crate::learn::structure::{KeptRows, Reason, Reviser, RevisionRecord, Schedule, Size, Task, rows_of};
use crate::learn::{
    Algorithm, CandidateState, Estimate, Finished, FitSettings, Health, Identifiers, LearnError,
    LearnerState, OnlineLearner, Prequential, Rows, ScoreRanks, Structure, Surprise,
};
use crate::stats::{capped_mean_and_error, weighted_mean_and_error};

pub(in crate::learn) struct Candidate {
    pub learner: Box<dyn OnlineLearner>,
    pub prequential: Prequential,
    /// The distribution of the log-densities of the rows so far.
    pub ranks: ScoreRanks,
    size: Size,
    columns: usize,
    structure: Structure,
    /// The part of [`OnlineLearner::low_rows`] that the schedule has counted.
    low: u64,
    /// The part of [`OnlineLearner::surprise`] that the schedule has counted.
    surprise: Surprise,
    /// The part of [`OnlineLearner::assigned_rows`] that was counted.
    assigned: Vec<f64>,
    /// The rows of a resumed run.
    run: Option<RunScores>,
}

impl Candidate {
    /// A candidate after the start. `kept` has rows of the start. It looks for changes of the data unless `structure` has a watch.
    pub fn new(learner: Box<dyn OnlineLearner>, size: Size, structure: Structure, kept: &KeptRows) -> Self {
        let prequential = Prequential::default();
        let mixture = learner.estimate();
        let (ranks, columns) = (ranks_of_kept(&mixture, kept), mixture.dim());
        let (surprise, assigned, run) = (Surprise::default(), Vec::new(), None);
        let mut candidate = Candidate {
            learner,
            prequential,
            ranks,
            size,
            columns,
            structure,
            low: 0,
            surprise,
            assigned,
            run,
        };
        let given = candidate.structure.changes.take();
        let changes = |_| given.unwrap_or_else(|| ChangeWatch::new(&mixture));
        candidate.structure.changes = candidate.learner.surprise().map(changes);
        candidate.set_level(&mixture, kept);
        candidate
    }

    /// Sets the log-density below which a row counts as unlike the rows before it.
    fn set_level(&mut self, mixture: &GaussianMixture, kept: &KeptRows) {
        if let Some(level) = novelty_level(mixture, kept) {
            self.structure.schedule.set_level(level);
        }
        self.learner.count_below(self.structure.schedule.level());
        self.low = 0;
        self.surprise = self.learner.surprise().unwrap_or_default();
        self.assigned = self.learner.assigned_rows().to_vec();
    }

    /// Restores a saved state. Files of early versions, and passes that do not revise, have no history.
    pub fn restore(
        settings: &FitSettings,
        size: Size,
        floor: Vec<f64>,
        kept: &KeptRows,
        saved: CandidateState,
    ) -> Result<Self, LearnError> {
        let k = saved.learned.k();
        let structure = saved.structure.unwrap_or_else(|| Structure::new(k, Schedule::never()));
        if !structure.identifiers.is_sound(k) {
            return Err(LearnError::State("its identifiers are not those of its components".into()));
        }
        let columns = floor.len();
        let mut learner = settings.learner(&settings.algorithm, saved.learned, floor, saved.health)?;
        learner.count_below(structure.schedule.level());
        let changes =
            learner.surprise().map(|_| structure.changes.unwrap_or_default().resumed(&learner.estimate()));
        let structure = Structure { finished: None, changes, ..structure };
        let surprise = Surprise::default();
        let ranks = saved.ranks.unwrap_or_else(|| ranks_of_kept(&learner.estimate(), kept));
        let (assigned, run, prequential) = (Vec::new(), RunScores::after(&ranks), saved.prequential);
        Ok(Candidate {
            learner,
            prequential,
            ranks,
            size,
            columns,
            structure,
            low: 0,
            surprise,
            assigned,
            run,
        })
    }

    /// Learns consecutive parts of the stream, and returns the cumulative score after each.
    pub fn observe_parts(&mut self, parts: &[Rows]) -> Vec<f64> {
        parts.iter().for_each(|rows| self.watch_changes(*rows));
        let (learner, mut score) = self.learner_and_score();
        learner.observe_parts(parts, &mut score)
    }

    fn watch_changes(&mut self, rows: Rows) {
        if let Some(changes) = &mut self.structure.changes {
            changes.add(rows);
        }
    }

    fn learner_and_score(&mut self) -> (&mut dyn OnlineLearner, RankedScore<'_>) {
        let (total, ranks, run) = (&mut self.prequential, &mut self.ranks, self.run.as_mut());
        let score = RankedScore { total, ranks, run };
        (self.learner.as_mut(), score)
    }

    /// Changes the half-life after `rows` rows.
    pub fn set_half_life(
        &mut self,
        settings: &FitSettings,
        floor: &[f64],
        rows: u64,
    ) -> Result<(), LearnError> {
        self.watch(rows, false, &Places::default());
        let mut state = self.learner.state();
        if let Some(half_life) = settings.half_life {
            state.bound_rows(Forgetting::new(half_life));
        }
        self.learner = settings.learner(&settings.algorithm, state, floor.to_vec(), self.learner.health())?;
        self.learner.count_below(self.structure.schedule.level());
        (self.low, self.surprise) = (0, Surprise::default());
        self.assigned.clear();
        self.structure.schedule.set_half_life(settings.half_life, rows);
        self.ranks.set_half_life(settings.half_life);
        Ok(())
    }

    /// The changes of the data that were found.
    pub fn changes(&self) -> Option<&DataChanges> {
        self.structure.changes.as_ref().and_then(ChangeWatch::changes)
    }

    /// How the rows of a resumed run compare with those before.
    pub fn today(&self) -> Option<Today> {
        self.run.as_ref().and_then(RunScores::today)
    }

    /// Whether rows are counted in batches.
    pub fn watches(&self) -> bool {
        self.schedule().watches() || self.structure.changes.is_some()
    }

    /// How many components.
    pub fn k(&self) -> usize {
        self.structure.identifiers.all().len()
    }

    /// How many components, and the prequential score.
    pub fn score(&self) -> (usize, Prequential) {
        (self.k(), self.prequential)
    }

    pub fn size(&self) -> Size {
        self.size
    }

    pub fn schedule(&self) -> &Schedule {
        &self.structure.schedule
    }

    /// Lets the schedule count the rows since the last call, if it does. `ends` closes a batch. `places` has rows of the stream.
    pub fn watch(&mut self, rows: u64, ends: bool, places: &Places) {
        if let Some(surprise) = self.learner.surprise() {
            self.structure.schedule.add_distances(surprise.since(self.surprise));
            self.surprise = surprise;
        }
        let activity = &mut self.structure.activity;
        activity.add(self.learner.assigned_rows(), &self.assigned);
        self.assigned.clear();
        self.assigned.extend_from_slice(self.learner.assigned_rows());
        if ends {
            activity.end_batch(rows, self.structure.identifiers.all());
        }
        if let Some(changes) = self.structure.changes.as_mut().filter(|_| ends) {
            changes.end_batch(rows, places, || self.learner.estimate());
        }
        if !self.schedule().watches() {
            return;
        }
        let low = self.learner.low_rows();
        self.structure.schedule.add_low(low - self.low);
        self.low = low;
        if ends {
            self.structure.schedule.end_batch(rows, self.columns);
        }
    }

    /// The identifiers of its components.
    pub fn identifiers(&self) -> &Identifiers {
        &self.structure.identifiers
    }

    /// The revisions so far.
    pub fn history(&self) -> &[RevisionRecord] {
        &self.structure.history
    }

    pub fn state(&self) -> CandidateState {
        CandidateState {
            learned: self.learner.state(),
            prequential: self.prequential,
            health: self.learner.health(),
            structure: Some(self.structure.clone()),
            ranks: Some(self.ranks.clone()),
        }
    }

    /// Revises the structure after `rows` rows.
    pub fn revise(
        &mut self,
        settings: &FitSettings,
        floor: &[f64],
        kept: &KeptRows,
        reviser: &mut Reviser,
        (rows, reason): (u64, Reason),
    ) -> Result<(), LearnError> {
        let RevisedCandidate { learned, identifiers, record, prior_rows, health, .. } =
            revised(&settings.algorithm, self, kept, reviser, (rows, reason));
        if reviser.is_stopped() {
            return Ok(());
        }
        let changed = learned.is_some();
        let moved = changed && !record.moves.is_empty();
        if let Some(learned) = learned {
            let health = self.learner.health() + health;
            self.learner = settings.learner(&settings.algorithm, learned, floor.to_vec(), health)?;
            self.structure.identifiers = identifiers;
            self.structure.prior_rows = prior_rows;
            self.structure.activity.follow(&record.moves, self.structure.identifiers.all());
            let mixture = self.learner.estimate();
            self.set_level(&mixture, kept);
            // With a half-life, the latest rows say how fresh rows score: the mixture lags behind data that drift.
            if settings.half_life.is_none() {
                self.ranks = ranks_of_kept(&mixture, kept);
            }
        }
        self.structure.log(record);
        self.structure.schedule.revised(rows, reason, moved, changed);
        Ok(())
    }

    /// Postpones a revision for which too few rows are kept.
    pub fn postpone(&mut self, rows: u64) {
        self.structure.schedule.postpone(rows);
    }

    /// The last revision of a stream of `rows` rows, on a copy.
    pub fn revise_last(
        &self,
        algorithm: &Algorithm,
        kept: &KeptRows,
        reviser: &mut Reviser,
        rows: u64,
    ) -> RevisedCandidate {
        revised(algorithm, self, kept, reviser, (rows, Reason::End))
    }

    /// Finishes the candidate: the last revision, if there is one, and the validation rows
    /// learned. `all` has all rows if all are kept. `None` if the candidate stays as it is.
    pub fn finish(
        &self,
        settings: &FitSettings,
        floor: &[f64],
        kept: &KeptRows,
        last: Option<RevisedCandidate>,
        all: Option<&Reviser>,
    ) -> Result<Option<Finished>, LearnError> {
        let forgets = kept.forgetting().is_some_and(|forgetting| forgetting.has_forgotten(kept.learned()));
        if last.is_none() && (kept.validation().is_empty() || forgets) {
            return Ok(None);
        }
        let (mut algorithm, mut learned) = (settings.algorithm, None);
        let mut identifiers = self.structure.identifiers.clone();
        let mut health = Health::default();
        let (mut closing, mut prior_rows) = (None, None);
        let is_revised = last.is_some();
        if let Some(last) = last {
            closing = Some(last.record);
            if let Some(revised) = last.learned {
                (algorithm, learned) = (last.algorithm, Some(revised));
                (identifiers, health) = (last.identifiers, last.health);
                prior_rows = last.prior_rows;
            }
        }
        let learned_anew = learned.is_some();
        let learned = learned.unwrap_or_else(|| self.learner.state());
        let before = self.learner.health();
        let adjusts = is_revised && (!forgets || learned_anew);
        let searched = all.filter(|_| adjusts).and_then(|all| {
            let (revised, origins) = all.finish(&learned.estimate(), self.size);
            let state = algorithm.reviser().revise(Some(&learned), &revised)?;
            Some((state, revised.strength, revised.health, origins))
        });
        let (estimate, health) = match searched {
            Some((learned, strength, health, origins)) => {
                prior_rows = Some(strength);
                let anew = !origins.iter().copied().eq((0..identifiers.all().len()).map(Some));
                if let Some(record) = closing.as_mut().filter(|_| anew) {
                    identifiers.follow(&origins);
                    if !record.kept {
                        record.moves.clear();
                    }
                    (record.kept, record.anew) = (true, true);
                }
                (Estimate::of(learned), health)
            }
            None => {
                let mut copy = settings.learner(&algorithm, learned, floor.to_vec(), before)?;
                // With a half-life, the validation rows are older than most that were learned.
                if !forgets {
                    let (rows, set_aside) = self.rows_to_learn_last(&copy.estimate(), kept);
                    copy.observe_block(rows.rows(floor.len()), &mut Prequential::default());
                    health.rows_set_aside = set_aside;
                }
                (Estimate::of(copy.state()), copy.health().since(before) + health)
            }
        };
        let ranks = Some(self.closing_ranks(&estimate.mixture(), kept, closing.as_ref()));
        Ok(Some(Finished { estimate, identifiers, prior_rows, health, closing, ranks }))
    }
}

impl Candidate {
    /// The validation rows that are learned at the end of the stream, and the number of those that are not. A few rows far from
    /// all components would ruin one of them, because no search follows that could give them their own. A single component
    /// has to hold all rows, and with K given so do the components of a short stream.
    fn rows_to_learn_last(&self, mixture: &GaussianMixture, kept: &KeptRows) -> (RowBuffer, u64) {
        let rows = kept.validation_rows(mixture.dim());
        let (level, count) = (self.schedule().level(), rows.count());
        let may = !matches!(self.size, Size::Given(k) if k == 1 || kept.learned() < LONG_STREAM);
        let scores = match may && level.is_finite() {
            true => whole_scores(mixture, kept.validation()),
            false => Default::default(),
        };
        let is_far = |i: usize| scores.get(i).is_some_and(|&score| score < level);
        let far = (0..count).filter(|&i| is_far(i)).count();
        let leaves_out = far <= count / FEW_VALIDATION_ROWS;
        let mut learned = RowBuffer::default();
        for (i, (row, weight)) in rows.iter().enumerate() {
            if !(leaves_out && is_far(i)) {
                learned.push(row, weight);
            }
        }
        (learned, if leaves_out { far as u64 } else { 0 })
    }

    /// The distribution of the log-densities of all rows at the end of the stream. The kept rows are scored again if they are
    /// all rows, or if the mixture was revised. Otherwise the mixture has hardly changed since the last rows were scored.
    fn closing_ranks(
        &self,
        mixture: &GaussianMixture,
        kept: &KeptRows,
        closing: Option<&RevisionRecord>,
    ) -> ScoreRanks {
        if self.ranks.half_life().is_some() && self.ranks.rows() >= MIN_RANKED {
            if !closing.is_some_and(|closing| closing.kept) {
                return self.ranks.clone();
            }
            let mut ranks = self.ranks.clone();
            ranks.shift(gain_of_newest(&self.learner.estimate(), mixture, kept));
            return ranks;
        }
        if kept.is_complete() || closing.is_some_and(|closing| closing.kept) && kept.may_revise() {
            return ranks_of_kept(mixture, kept);
        }
        let mut ranks = self.ranks.clone();
        let own = kept.own_weights_of_validation();
        let weight = |i: usize| own.map_or(1.0, |own| own[i]);
        let scores = whole_scores(mixture, kept.validation()).into_iter().enumerate();
        ranks.extend_weighted(scores.map(|(i, score)| (score, weight(i))));
        ranks
    }
}

/// The outcome of a revision.
pub(in crate::learn) struct RevisedCandidate {
    /// The algorithm that can resume from it.
    algorithm: Algorithm,
    /// The revised state; `None` if the state stays as it is.
    learned: Option<LearnerState>,
    identifiers: Identifiers,
    record: RevisionRecord,
    /// How many rows the prior of a component's covariance is worth, after a revision that is kept.
    prior_rows: Option<f64>,
    /// Safeguards that the revision triggered.
    health: Health,
}

fn revised(
    algorithm: &Algorithm,
    candidate: &Candidate,
    kept: &KeptRows,
    reviser: &mut Reviser,
    (rows, reason): (u64, Reason),
) -> RevisedCandidate {
    let mut identifiers = candidate.structure.identifiers.clone();
    let current = candidate.learner.estimate();
    let schedule = candidate.schedule();
    // With a given K, rows of a new kind need components that a few spikes would take.
    let spare_none = matches!(candidate.size, Size::Given(_)) && schedule.is_novel(rows);
    let task = Task {
        size: candidate.size,
        adjusts: reason == Reason::Misfit,
        noise: Some(schedule.level()).filter(|level| spare_none && level.is_finite()),
        alert: schedule.is_alert(rows),
    };
    let revision = reviser.revise(&current, &mut identifiers, task);
    let mut record = RevisionRecord {
        rows,
        reason,
        kept: false,
        validation_gain: None,
        moves: revision.moves,
        anew: false,
    };
    let algorithm = algorithm.reviser();
    let Some(revised) = revision.revised.filter(|_| !reviser.is_stopped()) else {
        let health = Health::default();
        return RevisedCandidate { algorithm, learned: None, identifiers, record, prior_rows: None, health };
    };
    let before = candidate.learner.state_to_revise();
    let learned = algorithm.revise(Some(&before), &revised);
    let after = learned.as_ref().map(LearnerState::estimate);
    if let Some(after) = after {
        let (gain, error) = judge(&current, &after, kept);
        record.validation_gain = Some(gain);
        // A move has already gained on the kept rows, so it is enough that the validation rows do not lose. They may lose up
        // to a standard error if all rows are kept or there are fewer components. Without a move, the state learned from the
        // whole stream stays, unless the validation rows gain more than a standard error.
        let lenient = !reviser.is_partial() || after.k() < current.k();
        record.kept = gain
            > if record.moves.is_empty() {
                error
            } else if lenient {
                -error
            } else {
                0.0
            };
    }
    let learned = learned.filter(|_| record.kept);
    let (prior_rows, health) = (Some(revised.strength), revised.health);
    RevisedCandidate { algorithm, learned, identifiers, record, prior_rows, health }
}

/// A stream of as many rows can leave out a few of them.
const LONG_STREAM: u64 = 20_000;
/// At most one in this many validation rows may be left out at the end of a stream.
const FEW_VALIDATION_ROWS: usize = 100;
/// With fewer validation rows, all kept rows decide on a revision.
const MIN_VALIDATION: usize = 20;

/// The gain in mean log-density of the validation rows, and its standard error.
fn judge(before: &GaussianMixture, after: &GaussianMixture, kept: &KeptRows) -> (f64, f64) {
    let dim = before.dim();
    let enough = kept.validation().len() >= MIN_VALIDATION * dim;
    let rows = if enough { Cow::Borrowed(kept.validation()) } else { kept.reservoir(dim) };
    let rows = rows_of(&rows, dim);
    let gains = after.log_densities(rows) - before.log_densities(rows);
    match if enough { kept.validation_weights() } else { kept.reservoir_weights() } {
        None => capped_mean_and_error(gains),
        Some(weights) => weighted_mean_and_error(&gains.to_vec(), &weights),
    }
}
