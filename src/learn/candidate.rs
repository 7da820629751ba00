//! One K of a pass: its learner, its score, and the history of its structure.

use super::structure::{Arrival, KeptRows, Reason, Reviser, RevisionRecord, Schedule, Size, Task, rows_of};
use super::{
    Algorithm, CandidateState, Estimate, Finished, Health, Identifiers, LearnError, LearnerState,
    OnlineLearner, Prequential, Structure,
};
use crate::dist::GaussianMixture;
use crate::stats::capped_mean_and_error;

pub(super) struct Candidate {
    pub learner: Box<dyn OnlineLearner>,
    pub prequential: Prequential,
    size: Size,
    structure: Structure,
    /// The part of [`OnlineLearner::low_rows`] that the schedule has counted.
    low: u64,
}

impl Candidate {
    /// A candidate after the start. `kept` has rows of the start.
    pub fn new(learner: Box<dyn OnlineLearner>, size: Size, structure: Structure, kept: &KeptRows) -> Self {
        let prequential = Prequential::default();
        let mut candidate = Candidate { learner, prequential, size, structure, low: 0 };
        candidate.set_level(kept);
        candidate
    }

    /// Sets the log-density below which a row counts as unlike the rows before it.
    fn set_level(&mut self, kept: &KeptRows) {
        if let Some(level) = usual_least(&self.learner.estimate(), kept) {
            self.structure.schedule.set_level(level);
        }
        self.learner.count_below(self.structure.schedule.level());
        self.low = 0;
    }

    /// Restores a saved state. Files of early versions, and passes that do not revise, have no history.
    pub fn restore(
        algorithm: &Algorithm,
        size: Size,
        floor: Vec<f64>,
        saved: CandidateState,
    ) -> Result<Self, LearnError> {
        let k = saved.learned.k();
        let structure = saved.structure.unwrap_or_else(|| Structure::new(k, Schedule::never()));
        if !structure.identifiers.is_sound(k) {
            return Err(LearnError::State("its identifiers are not those of its components".into()));
        }
        let mut learner = algorithm.learner(saved.learned, floor, saved.health)?;
        learner.count_below(structure.schedule.level());
        let structure = Structure { finished: None, ..structure };
        Ok(Candidate { learner, prequential: saved.prequential, size, structure, low: 0 })
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

    /// Lets the schedule count the rows of low density since the last call, if it does. `ends` closes a batch.
    pub fn watch(&mut self, rows: u64, ends: bool) {
        if !self.schedule().watches() {
            return;
        }
        let low = self.learner.low_rows();
        self.structure.schedule.add_low(low - self.low);
        self.low = low;
        if ends {
            self.structure.schedule.end_batch(rows);
        }
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
        }
    }

    /// Revises the structure after `rows` rows.
    pub fn revise(
        &mut self,
        algorithm: &Algorithm,
        floor: &[f64],
        kept: &KeptRows,
        reviser: &mut Reviser,
        (rows, reason): (u64, Reason),
    ) -> Result<(), LearnError> {
        let Closed { learned, identifiers, record, health, .. } =
            close(algorithm, self, kept, reviser, (rows, reason));
        if reviser.is_stopped() {
            return Ok(());
        }
        let moved = learned.is_some() && !record.moves.is_empty();
        if let Some(learned) = learned {
            self.learner = algorithm.learner(learned, floor.to_vec(), self.learner.health() + health)?;
            self.structure.identifiers = identifiers;
            self.set_level(kept);
        }
        self.structure.log(record);
        self.structure.schedule.revised(rows, reason, moved);
        Ok(())
    }

    /// Postpones a revision for which too few rows are kept.
    pub fn postpone(&mut self, rows: u64) {
        self.structure.schedule.postpone(rows);
    }

    /// The last revision of a stream of `rows` rows, on a copy.
    pub fn close(&self, algorithm: &Algorithm, kept: &KeptRows, reviser: &mut Reviser, rows: u64) -> Closed {
        close(algorithm, self, kept, reviser, (rows, Reason::End))
    }

    /// What the end of the stream makes of the candidate: the last revision, if there is one, and the validation rows
    /// learned. `all` has all rows if all are kept. `None` if the candidate stays as it is.
    pub fn finish(
        &self,
        algorithm: &Algorithm,
        floor: &[f64],
        kept: &KeptRows,
        closed: Option<Closed>,
        all: Option<&Reviser>,
    ) -> Result<Option<Finished>, LearnError> {
        if kept.validation().is_empty() && closed.is_none() {
            return Ok(None);
        }
        let (mut algorithm, mut learned) = (*algorithm, None);
        let mut identifiers = self.structure.identifiers.clone();
        let mut health = Health::default();
        let mut closing = None;
        let concludes = closed.is_some();
        if let Some(closed) = closed {
            closing = Some(closed.record);
            if let Some(revised) = closed.learned {
                (algorithm, learned) = (closed.algorithm, Some(revised));
                (identifiers, health) = (closed.identifiers, closed.health);
            }
        }
        let learned = learned.unwrap_or_else(|| self.learner.state());
        let before = self.learner.health();
        let concluded = all.filter(|_| concludes).and_then(|all| {
            let (revised, origins) = all.conclude(&learned.estimate(), self.size);
            Some((algorithm.reviser().revise(Some(&learned), &revised)?, revised.health, origins))
        });
        let (estimate, health) = match concluded {
            Some((learned, health, origins)) => {
                let anew = !origins.iter().copied().eq((0..identifiers.all().len()).map(Some));
                if let Some(record) = closing.as_mut().filter(|_| anew) {
                    identifiers.seen(record.rows);
                    identifiers.follow(&origins);
                    if !record.kept {
                        record.moves.clear();
                    }
                    (record.kept, record.anew) = (true, true);
                }
                (Estimate::of(learned), health)
            }
            None => {
                let mut copy = algorithm.learner(learned, floor.to_vec(), before + health)?;
                copy.observe_block(kept.validation(), &mut Prequential::default());
                (Estimate::of(copy.state()), copy.health().since(before))
            }
        };
        Ok(Some(Finished { estimate, identifiers, health, closing }))
    }
}

/// The outcome of a revision.
pub(super) struct Closed {
    /// The algorithm that can resume from it.
    algorithm: Algorithm,
    /// The revised state; `None` if the state stays as it is.
    learned: Option<LearnerState>,
    identifiers: Identifiers,
    record: RevisionRecord,
    /// Safeguards that the revision triggered.
    health: Health,
}

fn close(
    algorithm: &Algorithm,
    candidate: &Candidate,
    kept: &KeptRows,
    reviser: &mut Reviser,
    (rows, reason): (u64, Reason),
) -> Closed {
    let mut identifiers = candidate.structure.identifiers.clone();
    identifiers.seen(rows);
    let current = candidate.learner.estimate();
    let schedule = candidate.schedule();
    // With a given K, rows of a new kind need components that a few spikes would take.
    let spare_none = matches!(candidate.size, Size::Given(_)) && schedule.is_novel(rows);
    let task = Task {
        size: candidate.size,
        search: !(reviser.is_closing() && reviser.is_partial() && schedule.is_steady()),
        noise: Some(schedule.level()).filter(|level| spare_none && level.is_finite()),
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
        return Closed { algorithm, learned: None, identifiers, record, health };
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
    Closed { algorithm, learned, identifiers, record, health: revised.health }
}

/// Kept rows that the level of low density is computed from.
const LEVEL_ROWS: usize = 4000;
/// One in this many kept rows may be below the usual least log-density.
const LEVEL_SHARE: usize = 1000;
/// A row counts as unlike the rows before it if its log-density is this far below the usual least one.
const LEVEL_MARGIN: f64 = 5.0;

/// A log-density that few kept rows are below. Rows with gaps do not count, because their log-densities are of fewer columns.
fn usual_least(mixture: &GaussianMixture, kept: &KeptRows) -> Option<f64> {
    let rows = rows_of(kept.reservoir(), mixture.dim());
    let step = rows.nrows().div_ceil(LEVEL_ROWS).max(1);
    let rows = rows.slice_move(ndarray::s![..;step, ..]);
    let log_densities = mixture.score_samples(rows);
    let complete = |row: ndarray::ArrayView1<f64>| row.iter().all(|value| !value.is_nan());
    let mut found: Vec<f64> = log_densities
        .into_iter()
        .zip(rows.outer_iter())
        .filter(|(_, row)| complete(*row))
        .map(|(l, _)| l)
        .collect();
    let rank = found.len() / LEVEL_SHARE;
    found.sort_by(f64::total_cmp);
    found.get(rank).map(|least| least - LEVEL_MARGIN)
}

/// With fewer validation rows, all kept rows decide on a revision.
const LEAST_VALIDATION: usize = 20;

/// The gain in mean log-density of the validation rows, and its standard error.
fn judge(before: &GaussianMixture, after: &GaussianMixture, kept: &KeptRows) -> (f64, f64) {
    let dim = before.dim();
    let enough = kept.validation().len() >= LEAST_VALIDATION * dim;
    let rows = rows_of(if enough { kept.validation() } else { kept.reservoir() }, dim);
    capped_mean_and_error(after.score_samples(rows) - before.score_samples(rows))
}

/// Routes rows of the stream: appends the rows to learn now to `to`, in the order of learning.
pub(super) fn route(kept: &mut KeptRows, rows: &[f64], dim: usize, to: &mut Vec<f64>) {
    for row in rows.chunks_exact(dim) {
        let from = to.len();
        match kept.arrive(row, to) {
            Arrival::Learn => to.extend_from_slice(row),
            Arrival::Exchanged => {}
            Arrival::HeldBack => continue,
        }
        kept.keep(&to[from..]);
    }
}
