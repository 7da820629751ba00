//! Runs missing cells and curves in parallel.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use ndarray::s;

use super::curve::{self, CurveJob, missing_curves};
use super::error::ExperimentError;
use super::index::RecordIndex;
use super::paper::paper_figures;
use super::plan::{Cell, Plan, PlannedSet};
use super::record::{CellRecord, DataRecord, Record};
use super::store::RecordFile;
use super::trial::Trial;
use crate::data::Reservoir;
use crate::dist::Axes;
use crate::learn::LearnError;

/// How a comparison is spread over the cores. Scores do not depend on it; times do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workers {
    /// Folds and K that run in parallel.
    pub jobs: usize,
    /// Threads of each of them.
    pub threads: usize,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All cells and curves are recorded.
    Complete,
    /// It was asked to stop; finished cells are recorded.
    Stopped,
}

/// Runs `cells` and then the curves of `plan` that the record file does not have, and appends each record as soon as it
/// is there. Setting `stop` ends the run after the cells in progress.
///
/// Cells of one data set, fold and K share their rows and their start, and run one after the other; such groups run
/// in parallel. The order of the records depends on the threads, their contents (apart from seconds) do not.
pub(super) fn run(
    plan: &Plan,
    cells: &[Cell],
    file: &mut RecordFile,
    workers: Workers,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&CellRecord),
) -> Result<Ending, ExperimentError> {
    for set in new_sets(plan, file.index()) {
        file.append(&Record::Data(set))?;
    }
    let mut keep = |record: Record| {
        file.append(&record)?;
        if let Record::Cell(cell) = &record {
            progress(cell);
        }
        Ok(())
    };
    spread(&group(plan, cells), workers, stop, &mut keep, |cells, out| run_group(plan, cells, stop, out))?;
    if stop.load(Ordering::Relaxed) {
        return Ok(Ending::Stopped);
    }
    let curves = missing_curves(plan, file.index());
    spread(&curves, workers, stop, &mut |record| file.append(&record), |job, out| {
        run_curves(plan, job, out)
    })?;
    Ok(if stop.load(Ordering::Relaxed) { Ending::Stopped } else { Ending::Complete })
}

/// The sets of a plan that are not recorded yet, or were recorded as missing and are there now, or the reverse.
fn new_sets(plan: &Plan, index: &RecordIndex) -> Vec<DataRecord> {
    let is_new = |set: &DataRecord| {
        let known = index.set(&set.data).and_then(|known| known.data());
        known.is_none_or(|known| known.missing.is_some() != set.missing.is_some())
    };
    let sets = plan.sets.iter().map(|set| with_sample(plan, set)).chain(plan.missing.iter().cloned());
    let with_paper = |set: DataRecord| {
        let paper = set.paper.clone().unwrap_or_else(|| paper_figures(&set));
        DataRecord { paper: Some(paper), ..set }
    };
    sets.filter(is_new).map(with_paper).collect()
}

/// Rows in the picture of a set: few, because every table reads all records.
const SAMPLE_ROWS: usize = 200;

/// The record of a set with a sample of its rows.
fn with_sample(plan: &Plan, set: &PlannedSet) -> DataRecord {
    let leading = set.rows.slice(s![.., ..set.rows.ncols().min(Axes::LEADING)]);
    let mut sample = Reservoir::new(leading.ncols(), SAMPLE_ROWS, plan.seed_of(set, "sample"));
    // A record cannot hold missing values.
    let complete = leading.outer_iter().filter(|row| row.iter().all(|value| !value.is_nan()));
    complete.for_each(|row| sample.offer(&row.to_vec()));
    let sample = sample.rows().map(<[f64]>::to_vec).collect();
    DataRecord { sample: Some(sample), ..set.record.clone() }
}

/// Groups of cells that share rows and start. The most expensive groups come first, so that no core idles at the end.
fn group(plan: &Plan, cells: &[Cell]) -> Vec<Vec<Cell>> {
    let together = |a: &Cell, b: &Cell| (a.set, a.fold, a.k) == (b.set, b.fold, b.k);
    let mut groups: Vec<Vec<Cell>> = cells.chunk_by(together).map(<[Cell]>::to_vec).collect();
    let cost = |group: &Vec<Cell>| {
        let (rows, columns) = plan.sets[group[0].set].rows.dim();
        group[0].k * rows * columns * columns
    };
    groups.sort_by_key(|group| std::cmp::Reverse(cost(group)));
    groups
}

/// What a worker sends: a record, or why it failed.
type Message = Result<Record, ExperimentError>;

/// Where a job sends its records.
struct Out<'a> {
    sender: &'a Sender<Message>,
    stop: &'a AtomicBool,
}

impl Out<'_> {
    /// Sends a record. Returns whether more are wanted.
    fn emit(&self, record: Record) -> bool {
        self.sender.send(Ok(record)).is_ok() && self.wanted()
    }

    fn wanted(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }
}

/// Runs jobs in parallel. Each worker has its own thread pool: in a shared pool, a thread that waits for its part of one
/// fit would start another job, and the first fit's clock would keep running.
fn spread<J: Sync>(
    jobs: &[J],
    workers: Workers,
    stop: &AtomicBool,
    keep: &mut dyn FnMut(Record) -> Result<(), ExperimentError>,
    work: impl Fn(&J, &Out) -> Result<(), ExperimentError> + Sync,
) -> Result<(), ExperimentError> {
    let next = AtomicUsize::new(0);
    // A failure ends the other workers, and is not a request of the user to stop.
    let failed = AtomicBool::new(false);
    let (sender, receiver) = channel::<Message>();
    let pools = (0..workers.jobs.clamp(1, jobs.len().max(1)))
        .map(|_| rayon::ThreadPoolBuilder::new().num_threads(workers.threads.max(1)).build())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| ExperimentError::Plan(format!("cannot start threads: {error}")))?;
    std::thread::scope(|scope| {
        for pool in &pools {
            let (sender, next, failed, work) = (sender.clone(), &next, &failed, &work);
            scope.spawn(move || {
                let out = Out { sender: &sender, stop };
                while out.wanted() && !failed.load(Ordering::Relaxed) {
                    let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                    if let Err(error) = pool.install(|| work(job, &out)) {
                        failed.store(true, Ordering::Relaxed);
                        // The receiver is gone only if another failure came first.
                        let _ = sender.send(Err(error));
                    }
                }
            });
        }
        drop(sender);
        let kept = receive(receiver, keep);
        failed.store(true, Ordering::Relaxed);
        kept
    })
}

fn receive(
    receiver: Receiver<Message>,
    keep: &mut dyn FnMut(Record) -> Result<(), ExperimentError>,
) -> Result<(), ExperimentError> {
    receiver.into_iter().try_for_each(|message| keep(message?))
}

fn run_group(plan: &Plan, cells: &[Cell], stop: &AtomicBool, out: &Out) -> Result<(), ExperimentError> {
    let Cell { set, fold, k, .. } = cells[0];
    let mut trial = Trial::new(plan, &plan.sets[set], fold, k);
    for cell in cells {
        let record = trial.run(&cell.contender, stop).map_err(|error| failure(plan, cell, error))?;
        let Some(record) = record else { break };
        if !out.emit(Record::Cell(Box::new(record))) {
            break;
        }
    }
    Ok(())
}

fn run_curves(plan: &Plan, job: &CurveJob, out: &Out) -> Result<(), ExperimentError> {
    curve::run_curves(plan, job, &mut |curve| out.emit(Record::Curve(curve))).map_err(|(contender, error)| {
        failure(plan, &Cell { set: job.set, fold: 0, k: job.k, contender }, error)
    })
}

fn failure(plan: &Plan, cell: &Cell, source: LearnError) -> ExperimentError {
    let Cell { set, fold, k, contender } = cell;
    let (data, contender) = (plan.sets[*set].record.data.clone(), contender.name().to_string());
    ExperimentError::Learn { data, fold: fold + 1, contender, k: *k, source }
}
