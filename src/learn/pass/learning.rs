//! The candidates of a pass after the start: learning rows, revisions, and the end of the stream.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rayon::prelude::*;

use crate::learn::pass::candidate::Candidate;
use crate::learn::pass::places::Places;
use crate::learn::pass::ranking::whole_scores;
use crate::learn::rows::RowBuffer;
use crate::learn::rules::forgetting::Forgetting;
use crate::learn::structure::{
    BATCH, KeptRows, Limits, Reason, Reviser, Revising, Schedule, Size, rows_of, search_rows,
};
use crate::learn::{
    Algorithm, BlindPrior, CandidateState, ChangeWatch, Finished, FitSettings, Health, LearnError,
    Prequential, Rows, StartKind, Structure, WeightedRows, blind_start,
};
use crate::linalg::{CovarianceType, MAX_EXACT, Table, has_gaps};
use crate::stats::BatchSums;

/// The candidates of a pass after the start.
pub(in crate::learn) struct Learning {
    /// Least variance of each column given the columns before it.
    pub floor: Vec<f64>,
    pub candidates: Vec<Candidate>,
    pub scores: BatchSums,
    pub kept: KeptRows,
    /// A buffer for the rows to learn next.
    staged: RowBuffer,
}

/// Makes the start of each K from the first rows of `buffer` and learns the other rows of it. `closing` says that the stream
/// ends here. Returns `None` if `stop` is set meanwhile.
pub(in crate::learn) fn begin(
    settings: &FitSettings,
    buffer: Rows,
    places: &Places,
    (limits, closing): (Limits, bool),
    stop: &AtomicBool,
) -> Result<Option<Learning>, LearnError> {
    let (first, rest) = settings.split(buffer);
    settings.check_half_life(first.weights().unwrap_or_default())?;
    let begun = match settings.start {
        StartKind::Fitted => begin_fitted(settings, first, limits, closing, stop)?,
        StartKind::Blind => Some(begin_blind(settings, first)?),
    };
    let Some(mut learning) = begun else { return Ok(None) };
    learning.take(rest, first.count() as u64, places);
    Ok(Some(learning))
}

/// Draws the blind start of each K around the first rows, and learns these.
fn begin_blind(settings: &FitSettings, first: Rows) -> Result<Learning, LearnError> {
    let kept = KeptRows::new(settings.seed, 0, false);
    let mut floor = Vec::new();
    let begin = |size: Size| {
        let (Size::Given(k) | Size::Learned { least: k, .. }) = size;
        let rows = rows_of(first.values(), first.dim());
        let weighted = WeightedRows { rows, weights: first.weights() };
        let start = blind_start(weighted, k, settings.seed, (BlindPrior::default(), settings.covariance))?;
        let state = settings.algorithm.begin(&start);
        let mut learner =
            settings.learner(&settings.algorithm, state, start.floor.clone(), Health::default())?;
        // As with a fitted start, its own rows are not scored.
        learner.observe_block(first, &mut Prequential::default());
        let structure = Structure::new(k, Schedule::never());
        let mut candidate = Candidate::new(learner, size, structure, &kept);
        let log_densities = candidate.learner.estimate().log_densities(rows);
        candidate
            .ranks
            .extend_weighted(log_densities.into_iter().zip(first.iter().map(|(_, weight)| weight)));
        floor = start.floor;
        Ok(candidate)
    };
    let candidates = settings.components.sizes().into_iter().map(begin).collect::<Result<_, LearnError>>()?;
    Ok(Learning::new(floor, candidates, None, kept))
}

/// Fits the start of each K to the first rows.
fn begin_fitted(
    settings: &FitSettings,
    first: Rows,
    limits: Limits,
    closing: bool,
    stop: &AtomicBool,
) -> Result<Option<Learning>, LearnError> {
    let dim = first.dim();
    let shards = matches!(settings.algorithm, Algorithm::Odmm(_));
    let most = settings.kept_rows(dim);
    // Shards are not revised before they are merged, so they need no validation rows.
    let mut kept = KeptRows::new(settings.seed, most, most > 0 && !shards);
    kept.set_half_life(settings.half_life, dim);
    let (learned, weights) = route_first(&mut kept, first);
    let learned_rows = Rows::new(learned.exact().unwrap_or_default(), dim).with_weights(weights.as_deref());
    let rows = learned_rows.count() as u64;
    let forgetting = settings.half_life.map(Forgetting::new);
    let (prior, seed) = (settings.prior_strength, settings.seed);
    let how = Revising { limits, kind: settings.covariance, prior, closing, seed, stop };
    let reviser = Reviser::on_all(Arc::clone(&learned), weights.as_deref(), dim, forgetting, how)?;
    let begin = |size: Size| {
        let (revised, start) = reviser.start(size);
        let k = start.mixture.k();
        let (state, again) = match settings.algorithm.revise(None, &revised) {
            Some(state) => (state, false),
            None => (settings.algorithm.begin(&start), true),
        };
        let health = if again { Health::default() } else { revised.health };
        let mut learner = settings.learner(&settings.algorithm, state, start.floor.clone(), health)?;
        if again {
            // The rows of the start are learned but not scored: the start was fitted to them.
            learner.observe_block(learned_rows, &mut Prequential::default());
        }
        let schedule = Schedule::of(size, most, shards, rows).with_half_life(settings.half_life, rows);
        let prior_rows = Some(revised.strength);
        let changes = settings.unwatched.then(ChangeWatch::never);
        let structure = Structure { prior_rows, changes, ..Structure::new(k, schedule) };
        let mut candidate = Candidate::new(learner, size, structure, &kept);
        if kept.most() == 0 {
            let scores = whole_scores(&candidate.learner.estimate(), learned_rows.values());
            let weights = learned_rows.iter().map(|(_, weight)| weight);
            candidate.ranks.extend_weighted(scores.into_iter().zip(weights));
        }
        candidate.ranks.set_half_life(settings.half_life);
        Ok((start.floor, candidate))
    };
    let started: Vec<_> =
        settings.components.sizes().into_iter().map(begin).collect::<Result<_, LearnError>>()?;
    if reviser.is_stopped() {
        return Ok(None);
    }
    let floor = started[0].0.clone();
    let candidates = started.into_iter().map(|(_, candidate)| candidate).collect();
    Ok(Some(Learning::new(floor, candidates, None, kept)))
}

/// Rows that a revision uses: a few times the rows of a search, and more on novelty, because few of the kept rows are new then.
/// The last revision uses all kept rows.
fn revision_rows(
    candidate: &Candidate,
    reason: Reason,
    limits: Limits,
    (kind, dim): (CovarianceType, usize),
) -> usize {
    let factor = if reason == Reason::Novelty { 8 } else { 2 };
    factor * limits.row_factor * search_rows(candidate.size(), kind, candidate.k(), dim)
}

/// Routes the first rows and returns those to learn, and their weights if they have any. Rows are not copied if the reservoir
/// holds all of them, exactly.
fn route_first(kept: &mut KeptRows, first: Rows) -> (Arc<Table>, Option<Vec<f64>>) {
    let has_room = first.count() <= kept.most() && first.values().len() <= MAX_EXACT;
    let mut learned = RowBuffer::default();
    for rows in first.chunks(BATCH as usize) {
        if has_room {
            learned.clear();
        }
        kept.route(rows, &mut learned);
    }
    if has_room && kept.is_complete() {
        return (kept.shared_reservoir(), kept.own_weights_of_reservoir().map(<[f64]>::to_vec));
    }
    let weights = learned.weights().map(<[f64]>::to_vec);
    (Arc::new(Table::Exact(learned.into_values())), weights)
}

impl Learning {
    /// `scores` are those of earlier rows, where there are any.
    pub fn new(
        floor: Vec<f64>,
        candidates: Vec<Candidate>,
        scores: Option<BatchSums>,
        kept: KeptRows,
    ) -> Self {
        let totals = || candidates.iter().map(|candidate| candidate.prequential.log_likelihood).collect();
        let scores = scores.unwrap_or_else(|| BatchSums::new(totals()));
        Learning { floor, candidates, scores, kept, staged: RowBuffer::default() }
    }

    /// Resets the scores: they count from the next row on.
    #[cfg(feature = "cli")]
    pub fn restart_scores(&mut self) {
        self.candidates.iter_mut().for_each(|candidate| candidate.prequential = Prequential::default());
        self.scores = BatchSums::new(vec![0.0; self.candidates.len()]);
    }

    /// Changes the half-life after `rows` rows.
    pub fn set_half_life(&mut self, settings: &FitSettings, rows: u64) -> Result<(), LearnError> {
        settings.check_half_life(self.kept.own_weights_of_reservoir().unwrap_or_default())?;
        self.kept.set_half_life(settings.half_life, self.floor.len());
        let change = |own: &mut Candidate| own.set_half_life(settings, &self.floor, rows);
        self.candidates.iter_mut().try_for_each(change)
    }

    /// Rows until the end of a batch, if rows are counted in batches. Shards get all rows at once,
    /// so that none waits for another.
    pub fn rows_until_watched(&self, rows: u64) -> u64 {
        let watches = self.candidates.iter().any(Candidate::watches);
        if watches { BATCH - rows % BATCH } else { u64::MAX }
    }

    /// Routes and learns rows that follow `before` others. `places` has where they are in the stream.
    pub fn take(&mut self, mut left: Rows, before: u64, places: &Places) {
        let mut rows = before;
        while !left.is_empty() {
            let most = usize::try_from(self.rows_until_watched(rows)).unwrap_or(usize::MAX);
            let (now, rest) = left.split_at(most);
            rows += now.count() as u64;
            let mut staged = std::mem::take(&mut self.staged);
            staged.clear();
            self.kept.route(now, &mut staged);
            self.learn(staged.rows(now.dim()));
            self.staged = staged;
            for candidate in &mut self.candidates {
                candidate.watch(rows, rows.is_multiple_of(BATCH), places);
            }
            left = rest;
        }
    }

    /// Revises the candidates that are due. Returns `false` if it was stopped.
    pub fn revise(
        &mut self,
        settings: &FitSettings,
        rows: u64,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<bool, LearnError> {
        let Learning { floor, candidates, kept, .. } = self;
        let limits = settings.effort.limits();
        for candidate in candidates {
            let Some(reason) = candidate.schedule().due(rows) else { continue };
            if !kept.may_revise() {
                candidate.postpone(rows);
                continue;
            }
            let most = revision_rows(candidate, reason, limits, (settings.covariance, floor.len()));
            // One for each K, so that the K do not depend on one another.
            let (kind, prior) = (settings.covariance, settings.prior_strength);
            let how = Revising { limits, kind, prior, closing: false, seed, stop };
            let mut reviser = Reviser::new(kept, floor, most, how)?;
            candidate.revise(settings, floor, kept, &mut reviser, (rows, reason))?;
            if reviser.is_stopped() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Each candidate as it is now.
    pub fn states(&self) -> Vec<CandidateState> {
        self.candidates.iter().map(Candidate::state).collect()
    }

    /// Finishes each candidate; `None` where one stays as it is.
    pub fn finish(
        &self,
        settings: &FitSettings,
        rows: u64,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<Vec<Option<Finished>>, LearnError> {
        let Learning { floor, candidates, kept, .. } = self;
        let gaps = kept.reservoir_parts(floor.len()).any(|rows| has_gaps(&rows));
        let finish = |candidate: &Candidate| {
            let limits = if kept.is_complete() {
                let shape = (settings.covariance, candidate.k(), floor.len());
                settings.effort.closing_limits(kept.learned() as usize, shape, gaps)
            } else {
                settings.effort.limits()
            };
            let cheap = kept.is_complete() && limits.restarts > 1;
            let memory = settings.algorithm.memory(rows);
            let revises = candidate.schedule().wants_closing(rows, memory, cheap) && kept.may_revise();
            let (kind, prior) = (settings.covariance, settings.prior_strength);
            let how = Revising { limits, kind, prior, closing: true, seed, stop };
            let reviser = revises.then(|| Reviser::new(kept, floor, usize::MAX, how));
            let mut reviser = reviser.transpose()?;
            let last = reviser
                .as_mut()
                .map(|reviser| candidate.revise_last(&settings.algorithm, kept, reviser, rows));
            if let Some(reviser) = &mut reviser {
                reviser.add_validation_rows(kept);
            }
            let all = reviser.as_ref().filter(|reviser| kept.is_complete() && !reviser.is_stopped());
            candidate.finish(settings, floor, kept, last, all)
        };
        candidates.iter().map(finish).collect()
    }

    pub fn learn(&mut self, rows: Rows) {
        if rows.is_empty() {
            return;
        }
        let mut rest = rows;
        let part = |rows: usize| {
            let (part, after) = rest.split_at(rows);
            rest = after;
            part
        };
        let parts: Vec<Rows> = self.scores.cut(rows.count()).into_iter().map(part).collect();
        let learn = |candidate: &mut Candidate| candidate.observe_parts(&parts);
        // Threads take longer than a few rows.
        let totals: Vec<Vec<f64>> = match self.candidates.as_mut_slice() {
            [one] => vec![learn(one)],
            all => all.par_iter_mut().map(learn).collect(),
        };
        for (i, part) in parts.iter().enumerate() {
            let totals: Vec<f64> = totals.iter().map(|totals| totals[i]).collect();
            self.scores.record_weighted(part.count() as u64, part.weights(), &totals);
        }
    }
}
