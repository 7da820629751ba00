//! One pass over a stream, for one K or for several in parallel.

mod findings;
mod finish;
mod from_mixture;
mod observe;
mod scores;
#[cfg(feature = "cli")]
mod trials;

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::AtomicBool;

use ndarray::ArrayView2;

use finish::FinishedPass;

use crate::data::{ColumnNames, Dequantize, Noise};
use crate::dist::GaussianMixture;
use crate::hash::mix_bits;
use crate::learn::monitor::column_faults::{ColumnFault, find_column_faults, tame_summaries};
use crate::learn::monitor::recognise::Recognition;
use crate::learn::monitor::seen::SeenWatch;
use crate::learn::monitor::start_shift::{ColumnShift, find_shifts};
use crate::learn::monitor::weights::WeightSums;
use crate::learn::pass::candidate::Candidate;
use crate::learn::pass::learning::{Learning, begin};
use crate::learn::pass::places::Places;
use crate::learn::rows::RowBuffer;
use crate::learn::structure::{KeptRows, rows_of};
use crate::learn::{
    Algorithm, Components, Finding, FitSettings, FitState, LearnError, Lineage, Numbered, Reason, RowSample,
    Rows, SeenRows, StartKind,
};
use crate::stats::ColumnSummary;

/// Learns a mixture from rows in memory, in one pass. For rows that arrive in batches, use
/// [`OnlineFit`].
///
/// ```
/// use gmm_bmm::{FitSettings, fit};
/// let rows = ndarray::Array2::from_shape_fn((600, 2), |(i, j)| ((i % 3) * 20 + (i * (7 + j)) % 11) as f64);
/// let fitted = fit(rows.view(), FitSettings::obmm([3]))?;
/// assert_eq!((fitted.mixture.k(), fitted.mixture.predict(rows.view())?.len()), (3, 600));
/// for finding in &fitted.findings {
///     eprintln!("{finding}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn fit(rows: ArrayView2<f64>, settings: FitSettings) -> Result<Fitted, LearnError> {
    check_enough_rows(settings.components.largest_at_start(), rows.nrows() as u64)?;
    let mut pass = OnlineFit::new(rows.ncols(), settings)?;
    pass.observe(rows)?;
    let mixture = pass.unscored_mixture()?;
    Ok(Fitted { mixture, findings: pass.findings() })
}

/// What [`fit`] has learned.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The mixture with the best K.
    pub mixture: GaussianMixture,
    /// What is worth knowing about the rows and the fit.
    pub findings: Vec<Finding>,
}

/// The largest weight of a row.
const MAX_WEIGHT: f64 = 1e10;

/// An error if there is not one weight for each row, or one is none that a row can have. `before` rows came before them.
pub(in crate::learn) fn check_weights(
    weights: Option<&[f64]>,
    rows: usize,
    before: u64,
) -> Result<(), LearnError> {
    let Some(weights) = weights else { return Ok(()) };
    if weights.len() != rows {
        return Err(LearnError::WeightCount { weights: weights.len(), rows });
    }
    match weights.iter().position(|weight| !(0.0..=MAX_WEIGHT).contains(weight)) {
        Some(at) => Err(LearnError::Weight { row: before + at as u64 + 1, weight: weights[at] }),
        None => Ok(()),
    }
}

/// An error if there are more components than rows.
pub fn check_enough_rows(k: usize, rows: u64) -> Result<(), LearnError> {
    if k as u64 > rows { Err(LearnError::TooFewRows { k, rows }) } else { Ok(()) }
}

/// One pass over a stream of rows, which can be saved and resumed.
///
/// The pass buffers the first rows, fits the start to them (or [draws it around](FitSettings::blind) a few of them), learns
/// every row once, and revises the structure from time to time. How rows are divided into batches changes no bit of the result.
///
/// ```
/// use gmm_bmm::{FitSettings, OnlineFit};
/// use ndarray::{Array2, Axis};
///
/// let rows = Array2::from_shape_fn((3000, 2), |(i, j)| ((i % 3) * 20 + (i * (7 + j)) % 11) as f64);
/// let mut pass = OnlineFit::new(["width", "height"], FitSettings::obmm(2..=3))?;
/// for batch in rows.axis_chunks_iter(Axis(0), 100) {
///     pass.observe(batch)?;
/// }
/// assert_eq!(pass.mixture()?.k(), 3);
///
/// // A model file holds all that is needed to resume.
/// let mut file = Vec::new();
/// pass.to_model()?.write(&mut file)?;
/// let mut resumed = gmm_bmm::Model::read(file.as_slice())?.resume()?;
/// resumed.observe(rows.view())?;
/// pass.observe(rows.view())?;
/// assert_eq!(pass.mixture()?, resumed.mixture()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct OnlineFit {
    settings: FitSettings,
    columns: ColumnNames,
    rows: u64,
    summaries: Vec<ColumnSummary>,
    faults: Vec<ColumnFault>,
    /// What the first rows show; empty if they were learned in an earlier run.
    first_findings: Vec<Finding>,
    /// Of the rows learned in earlier runs.
    resumed_from: Vec<ColumnSummary>,
    /// Of the rows that the start was fitted to; empty if that was in an earlier run.
    start_summaries: Vec<ColumnSummary>,
    /// Rows without any value or without weight, which were ignored.
    empty_rows: u64,
    /// Where these were in the stream of this run.
    places: Places,
    /// The column that weights come from.
    weight_column: Option<String>,
    /// The weights of this run.
    weights: WeightSums,
    recognition: Recognition,
    seen: SeenWatch,
    stage: Stage,
    /// Space for rows with noise.
    noisy: Vec<f64>,
    /// The finished mixtures. The next row discards them.
    finished_pass: Option<FinishedPass>,
}

enum Stage {
    Buffering(RowBuffer),
    Learning(Box<Learning>),
}

/// What [`OnlineFit::advance`] has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It has learned this many of the rows. The others are for the next call.
    Learned(usize),
    /// It has learned none, because a revision is due: call [`OnlineFit::revise`].
    RevisionDue,
}

impl fmt::Debug for OnlineFit {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("OnlineFit")
            .field("settings", &self.settings)
            .field("columns", &self.columns.names)
            .field("rows", &self.rows)
            .field("scores", &self.scores())
            .finish_non_exhaustive()
    }
}

impl OnlineFit {
    /// Begins a pass. `columns` are names, or a number of columns without names.
    pub fn new(columns: impl Into<ColumnNames>, mut settings: FitSettings) -> Result<Self, LearnError> {
        settings.check()?;
        if let Components::Given(ks) = &mut settings.components {
            ks.sort_unstable();
            ks.dedup();
        }
        let columns = columns.into();
        let dim = columns.len();
        if dim == 0 {
            return Err(LearnError::Setting {
                name: "the number of columns",
                must: "at least 1",
                value: 0.0,
            });
        }
        Ok(OnlineFit {
            recognition: Recognition::new(&settings.algorithm, None, RowSample::default(), dim),
            seen: SeenWatch::new(SeenRows::default(), dim),
            settings,
            columns,
            rows: 0,
            summaries: vec![ColumnSummary::default(); dim],
            faults: Vec::new(),
            first_findings: Vec::new(),
            resumed_from: Vec::new(),
            start_summaries: Vec::new(),
            empty_rows: 0,
            places: Places::default(),
            weight_column: None,
            weights: WeightSums::default(),
            stage: Stage::Buffering(RowBuffer::default()),
            noisy: Vec::new(),
            finished_pass: None,
        })
    }

    /// Resumes from a saved state.
    #[doc(hidden)]
    pub fn restore(settings: FitSettings, columns: ColumnNames, state: FitState) -> Result<Self, LearnError> {
        settings.check()?;
        let dim = state.columns.len();
        if columns.len() != dim {
            return Err(LearnError::State("it has other columns".into()));
        }
        let stage = match state.pending {
            Some(values) if dim > 0 && values.len() % dim == 0 => {
                let weights = state.pending_weights;
                if weights.as_ref().is_some_and(|weights| weights.len() * dim != values.len()) {
                    return Err(LearnError::State("its buffered rows have other weights".into()));
                }
                Stage::Buffering(RowBuffer::new(values, weights))
            }
            Some(_) => return Err(LearnError::State("its buffered rows are not whole".into())),
            None => {
                let sizes = settings.components.sizes();
                if sizes.len() != state.candidates.len() {
                    return Err(LearnError::State("it has other numbers of components".into()));
                }
                let kept = state.kept.unwrap_or_else(|| KeptRows::new(settings.seed, 0, false));
                if !kept.is_sound(dim) {
                    return Err(LearnError::State("its kept rows are not those of the pass".into()));
                }
                let restore =
                    |(saved, size)| Candidate::restore(&settings, size, state.floor.clone(), &kept, saved);
                let saved = state.candidates.into_iter().zip(sizes);
                let candidates: Vec<Candidate> = saved.map(restore).collect::<Result<_, LearnError>>()?;
                let scores = Some(state.scores).filter(|scores| scores.is_sound(candidates.len()));
                Stage::Learning(Box::new(Learning::new(state.floor, candidates, scores, kept)))
            }
        };
        Ok(OnlineFit {
            recognition: Recognition::new(&settings.algorithm, state.shard, state.sample, dim),
            seen: SeenWatch::new(state.seen, dim),
            settings,
            columns,
            rows: state.rows,
            resumed_from: state.columns.clone(),
            summaries: state.columns,
            faults: Vec::new(),
            first_findings: Vec::new(),
            start_summaries: Vec::new(),
            empty_rows: 0,
            places: Places::default(),
            weight_column: None,
            weights: WeightSums::default(),
            stage,
            noisy: Vec::new(),
            finished_pass: None,
        })
    }

    /// Numbers the shard that this pass learns, from 1 to `of`, so that a merge can name the shards that are missing.
    /// Without effect on a pass that learns no shard.
    pub fn with_shard_number(mut self, number: u32, of: u32) -> Result<Self, LearnError> {
        if number == 0 || number > of || of > Numbered::MAX {
            return Err(LearnError::Setting {
                name: "the number of a shard",
                must: "from 1 to the number of shards, which is at most 1000000",
                value: number.into(),
            });
        }
        if let Recognition::Shard(shard, _) = &mut self.recognition {
            shard.lineage.numbered = Some(Numbered { of, shards: vec![number] });
        }
        Ok(self)
    }

    /// Sets, changes or removes the half-life: how many further rows it takes until a row has half its weight.
    ///
    /// What was learned without a half-life counts as the rows of an endless stream with it, `H/ln 2`. Without one again, the
    /// model counts as these rows, and all rows from then on have the same weight.
    ///
    /// # Errors
    /// [`LearnError`] if the algorithm cannot forget, the pass is a shard, or the half-life is 0.
    pub fn set_half_life(&mut self, rows: Option<u64>) -> Result<(), LearnError> {
        if rows == self.settings.half_life {
            return Ok(());
        }
        if self.lineage().is_some_and(|lineage| lineage.merged.is_none()) {
            return Err(LearnError::ShardsForget);
        }
        let settings = FitSettings { half_life: rows, ..self.settings.clone() };
        settings.check()?;
        if let Stage::Learning(learning) = &mut self.stage {
            learning.set_half_life(&settings, self.rows)?;
        }
        (self.settings, self.finished_pass) = (settings, None);
        Ok(())
    }

    /// The settings.
    pub fn settings(&self) -> &FitSettings {
        &self.settings
    }

    /// The noise of discrete columns, if they have it: those that the start has decided on, or that the rows so far show.
    pub fn noise(&self) -> Option<Noise> {
        let decided = match &self.stage {
            Stage::Buffering(buffer) => {
                self.settings.dequantize.decided(rows_of(buffer.rows(self.dim()).values(), self.dim()))
            }
            Stage::Learning(_) => self.settings.dequantize.clone(),
        };
        decided.noise(self.settings.seed)
    }

    /// The names of the columns.
    pub fn columns(&self) -> &ColumnNames {
        &self.columns
    }

    /// Rows seen so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The number of columns.
    pub fn dim(&self) -> usize {
        self.summaries.len()
    }

    /// Whether the start has been made.
    pub fn has_started(&self) -> bool {
        matches!(self.stage, Stage::Learning(_))
    }

    /// Mean and spread of each column so far.
    pub fn summaries(&self) -> &[ColumnSummary] {
        &self.summaries
    }

    /// Where the shard that this pass learns comes from, if it learns one.
    pub fn lineage(&self) -> Option<&Lineage> {
        match &self.recognition {
            Recognition::Shard(shard, _) => Some(&shard.lineage),
            _ => None,
        }
    }

    /// Whether the pass revises on rows that it keeps.
    pub fn keeps_rows(&self) -> bool {
        matches!(&self.stage, Stage::Learning(learning) if learning.kept.most() > 0)
    }

    /// The buffered rows as the start uses them, with noise if they are to have it, and the columns that have it.
    fn with_noise<'a>(&self, buffer: &'a RowBuffer) -> (Cow<'a, [f64]>, Dequantize) {
        let buffer = buffer.rows(self.dim()).values();
        let decided = self.settings.dequantize.decided(rows_of(buffer, self.dim()));
        let Some(noise) = decided.noise(self.settings.seed) else { return (Cow::Borrowed(buffer), decided) };
        let mut noisy = buffer.to_vec();
        noise.add_to(&mut noisy, self.dim(), 0);
        (Cow::Owned(noisy), decided)
    }

    /// Why a revision is due, if one is. Then [`OnlineFit::revise`] has to be called before more rows are learned.
    pub fn revision_due(&self) -> Option<Reason> {
        match &self.stage {
            Stage::Buffering(buffer) => {
                let dim = self.dim();
                let full = buffer.rows(dim).count() >= self.settings.buffered_rows(dim);
                full.then_some(Reason::Start)
            }
            Stage::Learning(learning) => {
                learning.candidates.iter().find_map(|candidate| candidate.schedule().due(self.rows))
            }
        }
    }

    /// Makes the start, or revises the structure. If `stop` is set meanwhile, it returns `false` soon, changes nothing, and
    /// the revision stays due.
    pub fn revise(&mut self, stop: &AtomicBool) -> Result<bool, LearnError> {
        let seed = self.revision_seed();
        match &mut self.stage {
            Stage::Buffering(_) => self.make_start(stop),
            Stage::Learning(learning) => learning.revise(&self.settings, self.rows, seed, stop),
        }
    }

    /// Makes the start from the buffered rows. Returns false if `stop` is set meanwhile.
    fn make_start(&mut self, stop: &AtomicBool) -> Result<bool, LearnError> {
        let Stage::Buffering(buffer) = &self.stage else { return Ok(true) };
        let (first_findings, dim) = (self.first_findings(), self.dim());
        let (noisy, dequantize) = self.with_noise(buffer);
        let buffer = Rows::new(&noisy, dim).with_weights(buffer.weights());
        let of_start = rows_of(self.settings.split(buffer).0.values(), dim);
        // The few rows of a blind start say nothing about columns and order.
        let (faults, start_summaries) = match self.settings.start {
            StartKind::Fitted => (find_column_faults(of_start), tame_summaries(of_start)),
            StartKind::Blind => (Vec::new(), Vec::new()),
        };
        // Shards do not revise, so their start is as thorough as the end of a stream. A prior learned from the same rows in a
        // run of its own is then the same.
        let closing = matches!(self.settings.algorithm, Algorithm::Odmm(_));
        let limits = if closing {
            self.settings.closing_limits(of_start.nrows(), dim)
        } else {
            self.settings.effort.limits()
        };
        let Some(learning) = begin(&self.settings, buffer, &self.places, (limits, closing), stop)? else {
            return Ok(false);
        };
        (self.faults, self.start_summaries) = (faults, start_summaries);
        (self.first_findings, self.settings.dequantize) = (first_findings, dequantize);
        self.finished_pass = None;
        self.stage = Stage::Learning(Box::new(learning));
        Ok(true)
    }

    /// Random choices of a revision follow from the seed and the number of rows.
    fn revision_seed(&self) -> u64 {
        mix_bits(self.settings.seed ^ mix_bits(self.rows))
    }

    /// Columns whose mean differs between the rows of the start and the rows after them, the largest shift first.
    pub fn start_shifts(&self) -> Vec<ColumnShift> {
        match &self.stage {
            Stage::Buffering(buffer) => {
                let of_start = rows_of(self.settings.split(buffer.rows(self.dim())).0.values(), self.dim());
                find_shifts(&tame_summaries(of_start), &self.summaries)
            }
            Stage::Learning(_) => find_shifts(&self.start_summaries, &self.summaries),
        }
    }

    /// Constant and collinear columns in the rows that the start is fitted to.
    pub fn column_faults(&self) -> Vec<ColumnFault> {
        match &self.stage {
            Stage::Buffering(buffer) if self.rows > 0 => {
                let of_start = self.settings.split(buffer.rows(self.dim())).0;
                find_column_faults(rows_of(of_start.values(), self.dim()))
            }
            _ => self.faults.clone(),
        }
    }
}
