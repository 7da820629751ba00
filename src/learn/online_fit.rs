//! One pass over a stream: buffer the first rows, start from them, learn every row once, for one K or for several
//! side by side.

use ndarray::ArrayView2;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::columns::{ColumnFault, find_column_faults, tame_summaries};
use super::order::{ColumnShift, find_shifts};
use super::{
    Algorithm, CandidateState, Fingerprint, FitState, Health, LearnError, ObmmSettings, OnlineLearner,
    Prequential, StartRows, default_init_rows,
};
use crate::dist::GaussianMixture;
use crate::stats::{BatchSums, ColumnSummary};

/// Settings of one pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FitSettings {
    /// Which algorithm.
    pub algorithm: Algorithm,
    /// The numbers of components to learn side by side.
    pub ks: Vec<usize>,
    /// Seed of the start.
    pub seed: u64,
    /// Rows to buffer for the start; by default [`default_init_rows`] of the largest K.
    pub init_rows: Option<usize>,
}

impl FitSettings {
    /// oBMM with exact Bayes, for one number of components or several side by side: `FitSettings::obmm([4])`,
    /// `FitSettings::obmm(2..=10)`. The other fields can be changed afterwards.
    pub fn obmm(ks: impl IntoIterator<Item = usize>) -> Self {
        FitSettings {
            algorithm: Algorithm::Obmm(ObmmSettings::default()),
            ks: ks.into_iter().collect(),
            seed: 1,
            init_rows: None,
        }
    }

    fn check(&self) -> Result<(), LearnError> {
        self.algorithm.check()?;
        if self.ks.is_empty() || self.ks.contains(&0) {
            return Err(LearnError::Setting { name: "K", must: "at least 1", value: 0.0 });
        }
        if self.init_rows == Some(0) {
            return Err(LearnError::Setting { name: "init-rows", must: "at least 1", value: 0.0 });
        }
        Ok(())
    }

    /// Rows that the start is made from.
    pub fn init_rows(&self, dim: usize) -> usize {
        let largest = self.ks.iter().copied().max().unwrap_or(1);
        self.init_rows.unwrap_or_else(|| default_init_rows(largest, dim))
    }

    /// Rows that are buffered: those of the start, and half as many again where there are several K to choose from, so that a
    /// stream that ends soon after the start has enough to choose by.
    pub(super) fn buffered_rows(&self, dim: usize) -> usize {
        let start = self.init_rows(dim);
        start.saturating_add(if self.ks.len() > 1 { start / 2 } else { 0 })
    }

    /// The start, and the rows that were buffered after it learned.
    fn begin(&self, buffer: &[f64], dim: usize) -> Result<Learning, LearnError> {
        let (first, rest) = self.split(buffer, dim);
        let mut learning = self.start(first, dim)?;
        learning.learn(rest);
        Ok(learning)
    }

    /// Buffered rows: those of the start, and those after them.
    fn split<'a>(&self, buffer: &'a [f64], dim: usize) -> (&'a [f64], &'a [f64]) {
        buffer.split_at(buffer.len().min(self.init_rows(dim).saturating_mul(dim)))
    }

    /// The start of each K from the first rows, with those rows learned once each.
    fn start(&self, buffer: &[f64], dim: usize) -> Result<Learning, LearnError> {
        let rows = as_rows(buffer, dim);
        let start_rows = StartRows::new(rows)?;
        let begin = |&k: &usize| {
            let start = start_rows.fit(k, self.seed);
            let state = self.algorithm.begin(&start);
            let mut learner = self.algorithm.learner(state, start.floor.clone(), Health::default())?;
            // Rows that the start was fitted to are learned, but say nothing of how well it predicts.
            learner.observe_block(buffer, &mut Prequential::default());
            Ok((start.floor, Candidate { learner, prequential: Prequential::default() }))
        };
        let started: Vec<_> = self.ks.par_iter().map(begin).collect::<Result<_, LearnError>>()?;
        let floor = started[0].0.clone();
        let candidates = started.into_iter().map(|(_, candidate)| candidate).collect();
        let scores = BatchSums::new(vec![0.0; self.ks.len()]);
        Ok(Learning { floor, candidates, scores })
    }
}

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
    check_enough_rows(&settings.ks, rows.nrows() as u64)?;
    let mut pass = OnlineFit::new(rows.ncols(), settings)?;
    pass.observe(rows)?;
    pass.mixture()
}

/// Refuses more components than rows.
pub fn check_enough_rows(ks: &[usize], rows: u64) -> Result<(), LearnError> {
    let k = ks.iter().copied().max().unwrap_or(0);
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
    Learning(Learning),
}

struct Learning {
    floor: Vec<f64>,
    candidates: Vec<Candidate>,
    scores: BatchSums,
}

struct Candidate {
    learner: Box<dyn OnlineLearner>,
    prequential: Prequential,
}

impl Candidate {
    fn state(&self) -> CandidateState {
        CandidateState {
            learned: self.learner.state(),
            prequential: self.prequential,
            health: self.learner.health(),
        }
    }
}

impl OnlineFit {
    /// A pass over rows of `dim` numbers.
    pub fn new(dim: usize, mut settings: FitSettings) -> Result<Self, LearnError> {
        settings.check()?;
        settings.ks.sort_unstable();
        settings.ks.dedup();
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
                let restore = |saved: CandidateState| {
                    let learner =
                        settings.algorithm.learner(saved.learned, state.floor.clone(), saved.health)?;
                    Ok(Candidate { learner, prequential: saved.prequential })
                };
                let candidates: Vec<Candidate> =
                    state.candidates.into_iter().map(restore).collect::<Result<_, LearnError>>()?;
                let totals = || candidates.iter().map(|candidate| candidate.prequential.log_likelihood);
                let saved = Some(state.scores).filter(|scores| scores.is_sound(candidates.len()));
                let scores = saved.unwrap_or_else(|| BatchSums::new(totals().collect()));
                Stage::Learning(Learning { floor: state.floor, candidates, scores })
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

    /// Rows that each shard has learned, where the learner of the first K has shards.
    pub fn shard_rows(&self) -> Vec<u64> {
        match &self.stage {
            Stage::Learning(learning) => learning.candidates[0].learner.shard_rows(),
            Stage::Buffering(_) => Vec::new(),
        }
    }

    /// Learns some rows. Refuses all of them if one has not [`OnlineFit::dim`] columns, or a number that is not finite.
    pub fn observe(&mut self, rows: ArrayView2<f64>) -> Result<(), LearnError> {
        if rows.ncols() != self.dim {
            return Err(LearnError::Columns { found: rows.ncols(), expected: self.dim });
        }
        let rows = rows.as_standard_layout();
        let mut values = rows.as_slice().expect("standard layout is contiguous");
        // Without an early end the compiler looks at several at a time.
        if !values.iter().fold(true, |all, value| all & value.is_finite()) {
            let at = values.iter().position(|value| !value.is_finite()).unwrap_or_default();
            return Err(LearnError::NotFinite {
                row: self.rows + (at / self.dim) as u64 + 1,
                column: at % self.dim,
            });
        }
        for row in values.chunks_exact(self.dim) {
            ColumnSummary::push_row(&mut self.columns, row);
        }
        self.rows += rows.nrows() as u64;
        if let Some(fingerprint) = &mut self.fingerprint {
            values.chunks_exact(self.dim).for_each(|row| fingerprint.add_row(row));
        }
        if let Stage::Buffering(buffer) = &mut self.stage {
            let wanted = self.settings.buffered_rows(self.dim).saturating_mul(self.dim);
            let room = wanted.saturating_sub(buffer.len());
            let (first, rest) = values.split_at(room.min(values.len()));
            buffer.extend_from_slice(first);
            if first.len() < room {
                return Ok(());
            }
            let of_start = as_rows(self.settings.split(buffer, self.dim).0, self.dim);
            self.faults = find_column_faults(of_start);
            self.start_columns = tame_summaries(of_start);
            let learning = self.settings.begin(buffer, self.dim)?;
            self.stage = Stage::Learning(learning);
            values = rest;
        }
        if let Stage::Learning(learning) = &mut self.stage {
            learning.learn(values);
        }
        Ok(())
    }

    /// What has been learned so far: the point estimate of the K that predicts best. The pass can go on afterwards.
    pub fn mixture(&self) -> Result<GaussianMixture, LearnError> {
        Ok(self.state()?.mixture())
    }

    /// All there is to know to go on later; also the result of the pass.
    pub fn state(&self) -> Result<FitState, LearnError> {
        if self.rows == 0 {
            return Err(LearnError::TooFewRows { k: self.settings.ks[0], rows: 0 });
        }
        let (learning, pending) = match &self.stage {
            Stage::Learning(learning) => return Ok(self.state_of(learning, None)),
            Stage::Buffering(buffer) => (self.settings.begin(buffer, self.dim)?, buffer),
        };
        let mut state = self.state_of(&learning, Some(pending.clone()));
        if let Some(scored) = self.learn_by_halves(pending)? {
            for (candidate, scored) in state.candidates.iter_mut().zip(&scored.candidates) {
                candidate.prequential = scored.prequential;
            }
            state.scores = scored.scores;
        }
        Ok(state)
    }

    fn state_of(&self, learning: &Learning, pending: Option<Vec<f64>>) -> FitState {
        FitState {
            rows: self.rows,
            columns: self.columns.clone(),
            floor: learning.floor.clone(),
            pending,
            candidates: learning.candidates.iter().map(Candidate::state).collect(),
            fingerprint: self.fingerprint,
            scores: learning.scores.clone(),
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
        let mut learning = self.settings.start(&rows(first), self.dim)?;
        learning.learn(&rows(second));
        Ok(Some(learning))
    }

    /// Columns that lie elsewhere in the rows that the start was made from than in those after them, farthest first.
    pub fn start_shifts(&self) -> Vec<ColumnShift> {
        match &self.stage {
            Stage::Buffering(buffer) => {
                let of_start = as_rows(self.settings.split(buffer, self.dim).0, self.dim);
                find_shifts(&tame_summaries(of_start), &self.columns)
            }
            Stage::Learning(_) => find_shifts(&self.start_columns, &self.columns),
        }
    }

    /// Constant and collinear columns among the rows that the start is made from.
    pub fn column_faults(&self) -> Vec<ColumnFault> {
        match &self.stage {
            Stage::Buffering(buffer) if !buffer.is_empty() => {
                find_column_faults(as_rows(self.settings.split(buffer, self.dim).0, self.dim))
            }
            _ => self.faults.clone(),
        }
    }
}

impl Learning {
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
            self.scores.note((part.len() / dim) as u64, &totals);
        }
    }
}

fn as_rows(values: &[f64], dim: usize) -> ArrayView2<'_, f64> {
    ArrayView2::from_shape((values.len() / dim, dim), values).expect("the buffer holds whole rows")
}
