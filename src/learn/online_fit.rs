//! One pass over a stream: buffer the first rows, start from them, learn every row once and revise the structure, for
//! one K or for several in parallel.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ndarray::ArrayView2;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::candidate::{Candidate, route};
use super::columns::{ColumnFault, find_column_faults, tame_summaries};
use super::order::{ColumnShift, find_shifts};
use super::structure::{BATCH, KeptRows, Limits, Reviser, Schedule, Size, rows_of, search_rows};
use super::{
    Algorithm, CandidateState, Components, Fingerprint, FitSettings, FitState, Health, LearnError,
    Prequential, Reason, Structure,
};
use crate::dist::GaussianMixture;
use crate::learn::fingerprint::mix_bits;
use crate::stats::{BatchSums, ColumnSummary};

/// Learns a mixture from rows in memory, in one pass. Rows that come in portions are for [`OnlineFit`].
///
/// ```
/// use gmm_bmm::{FitSettings, fit};
/// let rows = ndarray::Array2::from_shape_fn((600, 2), |(i, j)| ((i % 3) * 20 + (i * (7 + j)) % 11) as f64);
/// let mixture = fit(rows.view(), FitSettings::obmm([3]))?;
/// assert_eq!((mixture.k(), mixture.predict(rows.view()).len()), (3, 600));
/// # Ok::<(), gmm_bmm::LearnError>(())
/// ```
pub fn fit(rows: ArrayView2<f64>, settings: FitSettings) -> Result<GaussianMixture, LearnError> {
    check_enough_rows(settings.components.largest_at_start(), rows.nrows() as u64)?;
    let mut pass = OnlineFit::new(rows.ncols(), settings)?;
    pass.observe(rows)?;
    pass.mixture()
}

/// Refuses more components than rows.
pub fn check_enough_rows(k: usize, rows: u64) -> Result<(), LearnError> {
    if k as u64 > rows { Err(LearnError::TooFewRows { k, rows }) } else { Ok(()) }
}

/// One pass under way.
pub struct OnlineFit {
    settings: FitSettings,
    dim: usize,
    rows: u64,
    columns: Vec<ColumnSummary>,
    faults: Vec<ColumnFault>,
    /// Of the rows that the start was made from; none where that was in an earlier run.
    start_columns: Vec<ColumnSummary>,
    fingerprint: Option<Fingerprint>,
    stage: Stage,
}

enum Stage {
    Buffering(Vec<f64>),
    Learning(Box<Learning>),
}

struct Learning {
    floor: Vec<f64>,
    candidates: Vec<Candidate>,
    scores: BatchSums,
    kept: KeptRows,
    /// Rows to learn next, while they are put together.
    staged: Vec<f64>,
}

impl OnlineFit {
    /// A pass over rows of `dim` numbers.
    pub fn new(dim: usize, mut settings: FitSettings) -> Result<Self, LearnError> {
        settings.check()?;
        if let Components::Given(ks) = &mut settings.components {
            ks.sort_unstable();
            ks.dedup();
        }
        if dim == 0 {
            return Err(LearnError::Setting {
                name: "the number of columns",
                must: "at least 1",
                value: 0.0,
            });
        }
        let columns = vec![ColumnSummary::default(); dim];
        Ok(OnlineFit {
            settings,
            dim,
            rows: 0,
            columns,
            faults: Vec::new(),
            start_columns: Vec::new(),
            fingerprint: None,
            stage: Stage::Buffering(Vec::new()),
        })
    }

    /// Goes on from a saved state.
    pub fn restore(settings: FitSettings, state: FitState) -> Result<Self, LearnError> {
        settings.check()?;
        let dim = state.columns.len();
        let stage = match state.pending {
            Some(values) if dim > 0 && values.len() % dim == 0 => Stage::Buffering(values),
            Some(_) => return Err(LearnError::State("its buffered rows are not whole".into())),
            None => {
                let sizes = settings.components.sizes();
                if sizes.len() != state.candidates.len() {
                    return Err(LearnError::State("it has other numbers of components".into()));
                }
                let restore =
                    |(saved, size)| Candidate::restore(&settings.algorithm, size, state.floor.clone(), saved);
                let saved = state.candidates.into_iter().zip(sizes);
                let candidates: Vec<Candidate> = saved.map(restore).collect::<Result<_, LearnError>>()?;
                let totals = || candidates.iter().map(|candidate| candidate.prequential.log_likelihood);
                let saved = Some(state.scores).filter(|scores| scores.is_sound(candidates.len()));
                let scores = saved.unwrap_or_else(|| BatchSums::new(totals().collect()));
                let kept = state.kept.unwrap_or_else(|| KeptRows::new(settings.seed, 0, false));
                if !kept.is_sound(dim) {
                    return Err(LearnError::State("its kept rows are not those of the pass".into()));
                }
                let staged = Vec::new();
                Stage::Learning(Box::new(Learning { floor: state.floor, candidates, scores, kept, staged }))
            }
        };
        Ok(OnlineFit {
            settings,
            dim,
            rows: state.rows,
            columns: state.columns,
            faults: Vec::new(),
            start_columns: Vec::new(),
            fingerprint: state.fingerprint,
            stage,
        })
    }

    /// Rows seen so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Numbers in a row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Whether the start has been made.
    pub fn has_started(&self) -> bool {
        matches!(self.stage, Stage::Learning(_))
    }

    /// The prequential score of each K so far; nothing before the start.
    pub fn scores(&self) -> Vec<(usize, Prequential)> {
        match &self.stage {
            Stage::Learning(learning) => learning.candidates.iter().map(Candidate::score).collect(),
            Stage::Buffering(_) => Vec::new(),
        }
    }

    /// Rows that each shard has learned, where the learner of the first K has shards.
    pub fn shard_rows(&self) -> Vec<u64> {
        match &self.stage {
            Stage::Learning(learning) => learning.candidates[0].learner.shard_rows(),
            Stage::Buffering(_) => Vec::new(),
        }
    }

    /// Learns some rows, and revises the structure where that is due. Refuses all rows if one does not have
    /// [`OnlineFit::dim`] columns, or has a number that is not finite.
    pub fn observe(&mut self, rows: ArrayView2<f64>) -> Result<(), LearnError> {
        let never = AtomicBool::new(false);
        let mut from = 0;
        loop {
            from += self.advance(rows.slice(ndarray::s![from.., ..]))?;
            if self.revision_due().is_some() {
                self.revise(&never)?;
            } else if from == rows.nrows() {
                return Ok(());
            }
        }
    }

    /// Learns rows until a revision is due, and returns how many. Refuses all of them as [`OnlineFit::observe`] does.
    pub fn advance(&mut self, rows: ArrayView2<f64>) -> Result<usize, LearnError> {
        if rows.ncols() != self.dim {
            return Err(LearnError::Columns { found: rows.ncols(), expected: self.dim });
        }
        let rows = rows.as_standard_layout();
        let values = rows.as_slice().expect("standard layout is contiguous");
        // Without an early end the compiler looks at several at a time.
        if !values.iter().fold(true, |all, value| all & value.is_finite()) {
            let at = values.iter().position(|value| !value.is_finite()).unwrap_or_default();
            return Err(LearnError::NotFinite {
                row: self.rows + (at / self.dim) as u64 + 1,
                column: at % self.dim,
            });
        }
        let mut taken = 0;
        while taken < rows.nrows() && self.revision_due().is_none() {
            let most = self.rows_until_due().min((rows.nrows() - taken) as u64) as usize;
            let next = &values[taken * self.dim..(taken + most) * self.dim];
            self.take(next);
            taken += most;
        }
        Ok(taken)
    }

    /// Takes rows of which none but the last makes a revision due.
    fn take(&mut self, values: &[f64]) {
        for row in values.chunks_exact(self.dim) {
            ColumnSummary::push_row(&mut self.columns, row);
        }
        if let Some(fingerprint) = &mut self.fingerprint {
            values.chunks_exact(self.dim).for_each(|row| fingerprint.add_row(row));
        }
        let before = self.rows;
        self.rows += (values.len() / self.dim) as u64;
        match &mut self.stage {
            Stage::Buffering(buffer) => buffer.extend_from_slice(values),
            Stage::Learning(learning) => learning.take(values, before),
        }
    }

    /// Rows until a revision is due at the latest, or something has to be looked at. At least one.
    fn rows_until_due(&self) -> u64 {
        let until = match &self.stage {
            Stage::Buffering(buffer) => {
                self.settings.buffered_rows(self.dim).saturating_sub(buffer.len() / self.dim) as u64
            }
            Stage::Learning(learning) => {
                let due = learning.candidates.iter().map(|c| c.schedule().rows_until_due(self.rows));
                due.min().unwrap_or(u64::MAX).min(learning.rows_until_watched(self.rows))
            }
        };
        until.max(1)
    }

    /// Why a revision is due, if one is: [`OnlineFit::revise`] has to be called before more rows are learned.
    pub fn revision_due(&self) -> Option<Reason> {
        match &self.stage {
            Stage::Buffering(buffer) => {
                let full = buffer.len() / self.dim >= self.settings.buffered_rows(self.dim);
                full.then_some(Reason::Start)
            }
            Stage::Learning(learning) => {
                learning.candidates.iter().find_map(|candidate| candidate.schedule().due(self.rows))
            }
        }
    }

    /// Makes the start, or revises the structure. Where `stop` is set meanwhile, it ends soon and changes nothing; then
    /// it is due still. Returns whether it came to its end.
    pub fn revise(&mut self, stop: &AtomicBool) -> Result<bool, LearnError> {
        let seed = self.revision_seed();
        match &mut self.stage {
            Stage::Buffering(buffer) => {
                let of_start = rows_of(self.settings.split(buffer, self.dim).0, self.dim);
                let faults = find_column_faults(of_start);
                let start_columns = tame_summaries(of_start);
                // Shards do not revise, so their start is as thorough as the end of a stream. A prior learned from the same
                // rows in a run of its own is then the same.
                let closing = matches!(self.settings.algorithm, Algorithm::Odmm(_));
                let limits = if closing {
                    self.settings.closing_limits(of_start.nrows(), self.dim)
                } else {
                    self.settings.effort.limits()
                };
                let Some(learning) = begin(&self.settings, buffer, self.dim, limits, closing, stop)? else {
                    return Ok(false);
                };
                (self.faults, self.start_columns) = (faults, start_columns);
                self.stage = Stage::Learning(Box::new(learning));
                Ok(true)
            }
            Stage::Learning(learning) => learning.revise(&self.settings, self.rows, seed, stop),
        }
    }

    /// Random choices of a revision follow from the seed and the number of rows.
    fn revision_seed(&self) -> u64 {
        mix_bits(self.settings.seed ^ mix_bits(self.rows))
    }

    /// What has been learned: the point estimate of the K that predicts best, as [`OnlineFit::finish`] gives it. The pass
    /// can be continued afterwards.
    pub fn mixture(&self) -> Result<GaussianMixture, LearnError> {
        Ok(self.finish(&AtomicBool::new(false))?.mixture())
    }

    /// All that is needed to resume later, as it is now.
    pub fn state(&self) -> Result<FitState, LearnError> {
        match &self.stage {
            Stage::Learning(learning) => Ok(self.state_of(learning, learning.states(), None)),
            // Rows that are still buffered are all that matters; the mixture is provisional.
            Stage::Buffering(buffer) => {
                self.state_of_buffer(buffer, Limits::PROVISIONAL, &AtomicBool::new(false))
            }
        }
    }

    /// The state at the end of the stream, with a last revision and all rows learned, on a copy: resuming from it is
    /// the same as never having stopped. Where `stop` is set meanwhile, the last revision ends early.
    pub fn finish(&self, stop: &AtomicBool) -> Result<FitState, LearnError> {
        let learning = match &self.stage {
            Stage::Learning(learning) => learning,
            Stage::Buffering(buffer) => {
                let limits = self.settings.closing_limits(buffer.len() / self.dim, self.dim);
                let mut state = self.state_of_buffer(buffer, limits, stop)?;
                if let Some(scored) = self.learn_by_halves(buffer)? {
                    for (candidate, scored) in state.candidates.iter_mut().zip(&scored.candidates) {
                        candidate.prequential = scored.prequential;
                    }
                    state.scores = scored.scores;
                }
                return Ok(state);
            }
        };
        let candidates = learning.finish(&self.settings, self.rows, self.revision_seed(), stop)?;
        Ok(self.state_of(learning, candidates, None))
    }

    fn state_of_buffer(
        &self,
        buffer: &[f64],
        limits: Limits,
        stop: &AtomicBool,
    ) -> Result<FitState, LearnError> {
        if self.rows == 0 {
            return Err(LearnError::TooFewRows { k: self.settings.components.largest_at_start(), rows: 0 });
        }
        // Nothing is held back from a stream that ends here, and the start is made from all rows.
        let init_rows = Some(buffer.len() / self.dim);
        let settings = FitSettings { keep_rows: Some(0), init_rows, ..self.settings.clone() };
        let learning = begin(&settings, buffer, self.dim, limits, true, stop)?;
        let learning = learning.ok_or(LearnError::Stopped)?;
        let mut state = self.state_of(&learning, learning.states(), Some(buffer.to_vec()));
        state.kept = None;
        Ok(state)
    }

    fn state_of(
        &self,
        learning: &Learning,
        candidates: Vec<CandidateState>,
        pending: Option<Vec<f64>>,
    ) -> FitState {
        FitState {
            rows: self.rows,
            columns: self.columns.clone(),
            floor: learning.floor.clone(),
            pending,
            candidates,
            fingerprint: self.fingerprint,
            scores: learning.scores.clone(),
            kept: Some(learning.kept.clone()),
        }
    }

    /// For prequential scores where all rows are still buffered: each K learns half of them, drawn at random, for the
    /// rows may be sorted, and is scored on the others. `None` from a lone row.
    fn learn_by_halves(&self, buffer: &[f64]) -> Result<Option<Learning>, LearnError> {
        let mut order: Vec<usize> = (0..buffer.len() / self.dim).collect();
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(self.settings.seed));
        let (first, second) = order.split_at(order.len() / 2);
        if first.is_empty() {
            return Ok(None);
        }
        let rows = |chosen: &[usize]| -> Vec<f64> {
            chosen.iter().flat_map(|i| &buffer[i * self.dim..(i + 1) * self.dim]).copied().collect()
        };
        let settings =
            FitSettings { init_rows: Some(first.len()), keep_rows: Some(0), ..self.settings.clone() };
        let never = AtomicBool::new(false);
        let Some(mut learning) =
            begin(&settings, &rows(first), self.dim, settings.effort.limits(), false, &never)?
        else {
            return Ok(None);
        };
        learning.learn(&rows(second));
        Ok(Some(learning))
    }

    /// Columns that lie elsewhere in the rows that the start was made from than in those after them, farthest first.
    pub fn start_shifts(&self) -> Vec<ColumnShift> {
        match &self.stage {
            Stage::Buffering(buffer) => {
                let of_start = rows_of(self.settings.split(buffer, self.dim).0, self.dim);
                find_shifts(&tame_summaries(of_start), &self.columns)
            }
            Stage::Learning(_) => find_shifts(&self.start_columns, &self.columns),
        }
    }

    /// Constant and collinear columns among the rows that the start is made from.
    pub fn column_faults(&self) -> Vec<ColumnFault> {
        match &self.stage {
            Stage::Buffering(buffer) if !buffer.is_empty() => {
                find_column_faults(rows_of(self.settings.split(buffer, self.dim).0, self.dim))
            }
            _ => self.faults.clone(),
        }
    }
}

/// The start of each K from the first rows. Rows that were buffered after them are learned too. `closing` says whether no
/// more rows will come. `None` where `stop` was set meanwhile.
fn begin(
    settings: &FitSettings,
    buffer: &[f64],
    dim: usize,
    limits: Limits,
    closing: bool,
    stop: &AtomicBool,
) -> Result<Option<Learning>, LearnError> {
    let (first, rest) = settings.split(buffer, dim);
    let shards = matches!(settings.algorithm, Algorithm::Odmm(_));
    let most = settings.kept_rows(dim);
    // Shards are not revised before they are merged, so nothing has to be judged meanwhile.
    let mut kept = KeptRows::new(settings.seed, most, most > 0 && !shards);
    let learned = route_first(&mut kept, first, dim);
    let rows = (learned.len() / dim) as u64;
    let reviser = Reviser::on_all(Arc::clone(&learned), dim, limits, closing, settings.seed, stop)?;
    let begin = |size: Size| {
        let (revised, start) = reviser.start(size);
        let k = start.mixture.k();
        let (state, again) = match settings.algorithm.revise(None, &revised) {
            Some(state) => (state, false),
            None => (settings.algorithm.begin(&start), true),
        };
        let health = if again { Health::default() } else { revised.health };
        let mut learner = settings.algorithm.learner(state, start.floor.clone(), health)?;
        if again {
            // Rows that the start was fitted to are learned, but say nothing of how well it predicts.
            learner.observe_block(&learned, &mut Prequential::default());
        }
        let schedule = Schedule::of(size, most, shards, rows);
        Ok((start.floor, Candidate::new(learner, size, Structure::new(k, schedule), &kept)))
    };
    let started: Vec<_> =
        settings.components.sizes().into_iter().map(begin).collect::<Result<_, LearnError>>()?;
    if reviser.is_stopped() {
        return Ok(None);
    }
    let floor = started[0].0.clone();
    let scores = BatchSums::new(vec![0.0; started.len()]);
    let candidates = started.into_iter().map(|(_, candidate)| candidate).collect();
    let mut learning = Learning { floor, candidates, scores, kept, staged: Vec::new() };
    // The reservoir must not be held by others when it changes.
    drop((reviser, learned));
    learning.take(rest, (first.len() / dim) as u64);
    Ok(Some(learning))
}

/// Rows that a revision looks at, unless it is the last one of a structure that still changes: a few times the rows of a
/// search.
fn revision_rows(candidate: &Candidate, limits: Limits, dim: usize) -> usize {
    4 * limits.row_factor * search_rows(candidate.size(), candidate.k(), dim)
}
/// Routes the first rows and returns those to learn. Where the reservoir holds all of them, they are not copied.
fn route_first(kept: &mut KeptRows, first: &[f64], dim: usize) -> Arc<Vec<f64>> {
    let has_room = first.len() / dim <= kept.most();
    let mut learned = Vec::new();
    for rows in first.chunks(dim * BATCH as usize) {
        if has_room {
            learned.clear();
        }
        route(kept, rows, dim, &mut learned);
    }
    if kept.is_complete() { kept.shared_reservoir() } else { Arc::new(learned) }
}

impl Learning {
    /// Rows until a batch ends, where batches are looked at. Shards are given all rows at once, or they would wait for
    /// one another.
    fn rows_until_watched(&self, rows: u64) -> u64 {
        let watches = self.candidates.iter().any(|candidate| candidate.schedule().watches());
        if watches { BATCH - rows % BATCH } else { u64::MAX }
    }

    /// Takes rows of the stream, of which `before` were seen before.
    fn take(&mut self, values: &[f64], before: u64) {
        let dim = self.floor.len();
        let mut rows = before;
        let mut values = values;
        while !values.is_empty() {
            let most = usize::try_from(self.rows_until_watched(rows)).unwrap_or(usize::MAX);
            let most = most.saturating_mul(dim).min(values.len());
            let (now, rest) = values.split_at(most);
            rows += (now.len() / dim) as u64;
            let mut staged = std::mem::take(&mut self.staged);
            staged.clear();
            route(&mut self.kept, now, dim, &mut staged);
            self.learn(&staged);
            self.staged = staged;
            for candidate in &mut self.candidates {
                candidate.watch(rows, rows.is_multiple_of(BATCH));
            }
            values = rest;
        }
    }

    /// Revises the candidates that are due. Returns whether that came to its end.
    fn revise(
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
            let most = revision_rows(candidate, limits, floor.len());
            // One for each K, so that none depends on what the others do.
            let mut reviser = Reviser::new(kept, floor, limits, most, false, seed, stop)?;
            candidate.revise(&settings.algorithm, floor, kept, &mut reviser, (rows, reason))?;
            if reviser.is_stopped() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Each candidate as it is now.
    fn states(&self) -> Vec<CandidateState> {
        self.candidates.iter().map(Candidate::state).collect()
    }

    /// Each candidate at the end of the stream.
    fn finish(
        &self,
        settings: &FitSettings,
        rows: u64,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<Vec<CandidateState>, LearnError> {
        let Learning { floor, candidates, kept, .. } = self;
        let finish = |candidate: &Candidate| {
            let limits = if kept.is_complete() {
                settings.effort.closing_limits(kept.learned() as usize, candidate.k(), floor.len())
            } else {
                settings.effort.limits()
            };
            let cheap = kept.is_complete() && limits.restarts > 1;
            let revises = candidate.schedule().wants_closing(rows, cheap) && kept.may_revise();
            let steady = !kept.is_complete() && candidate.schedule().is_steady();
            let most = if steady { revision_rows(candidate, limits, floor.len()) } else { usize::MAX };
            let reviser = revises.then(|| Reviser::new(kept, floor, limits, most, true, seed, stop));
            let mut reviser = reviser.transpose()?;
            let closed =
                reviser.as_mut().map(|reviser| candidate.close(&settings.algorithm, kept, reviser, rows));
            if let Some(reviser) = &mut reviser {
                reviser.add_rows(kept.validation());
            }
            let all = reviser.as_ref().filter(|reviser| kept.is_complete() && !reviser.is_stopped());
            candidate.finish(&settings.algorithm, floor, kept, closed, all)
        };
        candidates.iter().map(finish).collect()
    }

    fn learn(&mut self, values: &[f64]) {
        if values.is_empty() {
            return;
        }
        if let [only] = self.candidates.as_mut_slice() {
            only.learner.observe_block(values, &mut only.prequential);
            return;
        }
        let dim = self.floor.len();
        let parts = self.scores.cut(values, dim);
        let learn =
            |candidate: &mut Candidate| candidate.learner.observe_parts(&parts, &mut candidate.prequential);
        let totals: Vec<Vec<f64>> = self.candidates.par_iter_mut().map(learn).collect();
        for (i, part) in parts.iter().enumerate() {
            let totals: Vec<f64> = totals.iter().map(|totals| totals[i]).collect();
            self.scores.record((part.len() / dim) as u64, &totals);
        }
    }
}
