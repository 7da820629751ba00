//! The end of the stream, and the state of a pass.

use std::sync::atomic::{AtomicBool, Ordering};

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::{OnlineFit, Stage};
use crate::dist::GaussianMixture;
use crate::learn::pass::learning::{Learning, begin};
use crate::learn::rows::RowBuffer;
use crate::learn::structure::Limits;
use crate::learn::{CandidateState, Finished, FitSettings, FitState, LearnError, Reason, Rows};
use crate::stats::BatchSums;

/// The mixtures of a finished pass.
pub(super) enum FinishedPass {
    /// After the start, one for each K; `None` where a K stays as it is.
    Learned(Vec<Option<Finished>>),
    /// Before the start.
    Buffered(Provisional),
}

/// Mixtures fitted to the buffered rows, which a later start replaces.
pub(super) struct Provisional {
    pub floor: Vec<f64>,
    pub candidates: Vec<CandidateState>,
    pub scores: BatchSums,
}

impl OnlineFit {
    /// The mixture of the K with the best score at the end of the rows so far. Calls [`OnlineFit::finish`] if that was not
    /// done since the last row. The pass can be continued afterwards.
    pub fn mixture(&mut self) -> Result<GaussianMixture, LearnError> {
        self.finish(&AtomicBool::new(false))?;
        self.mixture_of(self.best())
    }

    /// [`OnlineFit::mixture`] for a pass that nobody asks for its prequential score. That costs a further fit while all rows are
    /// buffered, which several K need.
    pub(crate) fn unscored_mixture(&mut self) -> Result<GaussianMixture, LearnError> {
        let needs_scores = self.settings.components.sizes().len() > 1;
        if let (Stage::Buffering(buffer), false, None) = (&self.stage, needs_scores, &self.finished_pass) {
            let noisy = self.with_noise(buffer).0;
            let buffer = Rows::new(&noisy, self.dim()).with_weights(buffer.weights());
            self.finished_pass = Some(FinishedPass::Buffered(self.closing(buffer, &AtomicBool::new(false))?));
        }
        self.mixture()
    }

    /// The mixtures fitted to all rows, while they are still buffered.
    fn closing(&self, buffer: Rows, stop: &AtomicBool) -> Result<Provisional, LearnError> {
        self.provisional(buffer, self.settings.closing_limits(buffer.count(), self.dim()), stop)
    }

    /// The mixture of one K, after the start or after [`OnlineFit::finish`].
    pub(super) fn mixture_of(&self, place: usize) -> Result<GaussianMixture, LearnError> {
        match (&self.stage, &self.finished_pass) {
            (Stage::Learning(learning), _) => Ok(match self.finished(place) {
                Some(finished) => finished.estimate.mixture(),
                None => learning.candidates[place].learner.estimate(),
            }),
            (_, Some(FinishedPass::Buffered(made))) => Ok(made.candidates[place].mixture()),
            _ => Err(self.no_rows()),
        }
    }

    /// Finishes the mixtures: revises them for the last time, and learns all rows that were held back
    /// learned. The learners stay as they are, so resuming is exact; the next row discards the end.
    ///
    /// # Errors
    /// [`LearnError::Stopped`] if `stop` is set meanwhile, and [`LearnError::TooFewRows`] if there are no rows.
    pub fn finish(&mut self, stop: &AtomicBool) -> Result<(), LearnError> {
        if self.finished_pass.is_some() {
            return Ok(());
        }
        let end = match &self.stage {
            Stage::Learning(learning) => FinishedPass::Learned(learning.finish(
                &self.settings,
                self.rows,
                self.revision_seed(),
                stop,
            )?),
            Stage::Buffering(buffer) => {
                let noisy = self.with_noise(buffer).0;
                let buffer = Rows::new(&noisy, self.dim()).with_weights(buffer.weights());
                let mut made = self.closing(buffer, stop)?;
                if let Some(scored) = self.learn_by_halves(buffer)? {
                    for (candidate, scored) in made.candidates.iter_mut().zip(&scored.candidates) {
                        candidate.prequential = scored.prequential;
                    }
                    made.scores = scored.scores;
                }
                FinishedPass::Buffered(made)
            }
        };
        if stop.load(Ordering::Relaxed) {
            return Err(LearnError::Stopped);
        }
        self.finished_pass = Some(end);
        Ok(())
    }

    /// All that a model file contains, with the end of the stream if [`OnlineFit::finish`] has computed it.
    #[doc(hidden)]
    pub fn state(&self) -> Result<FitState, LearnError> {
        self.state_at(self.finished_pass.as_ref())
    }

    /// All that is needed to resume.
    pub(crate) fn running_state(&self) -> Result<FitState, LearnError> {
        self.state_at(None)
    }

    fn state_at(&self, end: Option<&FinishedPass>) -> Result<FitState, LearnError> {
        let state = |floor: &[f64], candidates, scores: &BatchSums| FitState {
            rows: self.rows,
            columns: self.summaries.clone(),
            floor: floor.to_vec(),
            pending: None,
            pending_weights: None,
            candidates,
            shard: self.recognition.shard(),
            sample: self.recognition.sample(),
            seen: self.seen.seen(),
            scores: scores.clone(),
            kept: None,
        };
        let buffer = match &self.stage {
            Stage::Buffering(buffer) => buffer,
            Stage::Learning(learning) => {
                let mut candidates = learning.states();
                if let Some(FinishedPass::Learned(finished)) = end {
                    let structures = candidates.iter_mut().filter_map(|own| own.structure.as_mut());
                    structures.zip(finished).for_each(|(structure, end)| structure.finished = end.clone());
                }
                let state = state(&learning.floor, candidates, &learning.scores);
                return Ok(FitState { kept: Some(learning.kept.clone()), ..state });
            }
        };
        let provisional;
        let made = match end {
            Some(FinishedPass::Buffered(made)) => made,
            // Rows that are still buffered are all that matters for resuming.
            _ => {
                let noisy = self.with_noise(buffer).0;
                let rows = Rows::new(&noisy, self.dim()).with_weights(buffer.weights());
                provisional = self.provisional(rows, Limits::PROVISIONAL, &AtomicBool::new(false))?;
                &provisional
            }
        };
        let state = state(&made.floor, made.candidates.clone(), &made.scores);
        let (pending, pending_weights) =
            (Some(buffer.rows(self.dim()).values().to_vec()), buffer.weights().map(<[f64]>::to_vec));
        Ok(FitState { pending, pending_weights, ..state })
    }

    pub(super) fn provisional(
        &self,
        buffer: Rows,
        limits: Limits,
        stop: &AtomicBool,
    ) -> Result<Provisional, LearnError> {
        if self.rows == 0 {
            return Err(self.no_rows());
        }
        // The start is fitted to all rows, and none is held back.
        let start_rows = Some(buffer.count());
        let settings = FitSettings { keep_rows: Some(0), start_rows, ..self.settings.clone() };
        let learning =
            begin(&settings, buffer, &self.places, (limits, true), stop)?.ok_or(LearnError::Stopped)?;
        let candidates = learning.states();
        Ok(Provisional { floor: learning.floor, candidates, scores: learning.scores })
    }

    fn no_rows(&self) -> LearnError {
        LearnError::TooFewRows { k: self.settings.components.largest_at_start(), rows: 0 }
    }

    /// Marks the closing revision as that of a merge.
    pub(in crate::learn) fn finished_by_merge(mut self) -> Self {
        if let Some(FinishedPass::Learned(finished)) = &mut self.finished_pass {
            let closing = finished.iter_mut().flatten().filter_map(|end| end.closing.as_mut());
            closing.for_each(|closing| closing.reason = Reason::Merge);
        }
        self
    }

    /// Prequential scores where all rows are still buffered: each K learns half of them, drawn at random because the rows
    /// may be sorted, and is scored on the others. `None` from a single row.
    fn learn_by_halves(&self, buffer: Rows) -> Result<Option<Learning>, LearnError> {
        let mut order: Vec<usize> = (0..buffer.count()).collect();
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(self.settings.seed));
        let (first, second) = order.split_at(order.len() / 2);
        if order.len() < 2 {
            return Ok(None);
        }
        let rows = |chosen: &[usize]| {
            let mut rows = RowBuffer::default();
            chosen.iter().for_each(|&i| rows.extend(buffer.slice(i, i + 1)));
            rows
        };
        let (first, second) = (rows(first), rows(second));
        let settings =
            FitSettings { start_rows: Some(order.len() / 2), keep_rows: Some(0), ..self.settings.clone() };
        let never = AtomicBool::new(false);
        let Some(mut learning) = begin(
            &settings,
            first.rows(buffer.dim()),
            &self.places,
            (settings.effort.limits(), false),
            &never,
        )?
        else {
            return Ok(None);
        };
        learning.learn(second.rows(buffer.dim()));
        Ok(Some(learning))
    }
}
