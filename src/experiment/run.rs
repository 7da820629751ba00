//! Running what a plan asks for and the records do not have yet.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use ndarray::s;

use super::curve::{CurveJob, draw, missing_curves};
use super::error::ExperimentError;
use super::plan::{Cell, Plan, PlannedSet};
use super::record::{DataRecord, Record};
use super::trial::Trial;
use crate::data::Reservoir;
use crate::dist::Axes;
use crate::learn::LearnError;

/// How a comparison is spread over the cores. Results do not depend on it; times do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workers {
    /// Folds and K under way at a time.
    pub jobs: usize,
    /// Threads of each of them.
    pub threads: usize,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All cells and curves are there.
    Complete,
    /// It was told to stop; what was finished has been handed on.
    Stopped,
}

/// Runs the cells and curves of `plan` that `earlier` records do not have, and hands each record to `sink` as soon
/// as it is there. Setting `stop` ends the run after the cells under way.
///
/// Cells of one data set, fold and K share their rows and their start, and run one after the other; such groups run
/// in parallel. The order of the records depends on the threads, their contents (but for seconds) do not.
pub fn run(
    plan: &Plan,
    earlier: &[Record],
    workers: Workers,
    stop: &AtomicBool,
    sink: &mut dyn FnMut(&Record) -> io::Result<()>,
) -> Result<Ending, ExperimentError> {
    plan.check()?;
    plan.check_against(earlier)?;
    let mut records = earlier.to_vec();
    let mut keep = |record: Record| {
        sink(&record).map_err(ExperimentError::Sink)?;
        records.push(record);
        Ok(())
    };
    let sets = plan.sets.iter().map(|set| with_sample(plan, set));
    for set in sets.chain(plan.missing.iter().cloned()) {
        let same =
            |data: &DataRecord| data.data == set.data && data.missing.is_some() == set.missing.is_some();
        let known = |record: &Record| matches!(record, Record::Data(data) if same(data));
        if !earlier.iter().any(known) {
            keep(Record::Data(set))?;
        }
    }
    let jobs = group(plan, plan.missing_cells(earlier));
    spread(&jobs, workers, stop, &mut keep, |cells, out| run_group(plan, cells, out))?;
    if stop.load(Ordering::Relaxed) {
        return Ok(Ending::Stopped);
    }
    let curves = missing_curves(plan, &records);
    let mut keep = |record: Record| sink(&record).map_err(ExperimentError::Sink);
    spread(&curves, workers, stop, &mut keep, |job, out| run_curves(plan, job, out))?;
    Ok(if stop.load(Ordering::Relaxed) { Ending::Stopped } else { Ending::Complete })
}

/// Rows that the picture of a set shows: few, since every record is read to make any table.
const SAMPLE_ROWS: usize = 200;

/// What the records say of a set, with a sample of its rows.
fn with_sample(plan: &Plan, set: &PlannedSet) -> DataRecord {
    let leading = set.rows.slice(s![.., ..set.rows.ncols().min(Axes::LEADING)]);
    let mut sample = Reservoir::new(leading.ncols(), SAMPLE_ROWS, plan.seed_of(set, "sample"));
    leading.outer_iter().for_each(|row| sample.offer(&row.to_vec()));
    let sample = sample.rows().map(<[f64]>::to_vec).collect();
    DataRecord { sample: Some(sample), ..set.record.clone() }
}

/// Cells that share rows and start, the groups that take longest first, so that no core idles at the end.
fn group(plan: &Plan, cells: Vec<Cell>) -> Vec<Vec<Cell>> {
    let together = |a: &Cell, b: &Cell| (a.set, a.fold, a.k) == (b.set, b.fold, b.k);
    let mut groups: Vec<Vec<Cell>> = cells.chunk_by(together).map(<[Cell]>::to_vec).collect();
    let cost = |group: &Vec<Cell>| {
        let (rows, columns) = plan.sets[group[0].set].rows.dim();
        group[0].k * rows * columns * columns
    };
    groups.sort_by_key(|group| std::cmp::Reverse(cost(group)));
    groups
}

/// What a worker hands on: a record, or why it gave up.
type Message = Result<Record, ExperimentError>;

/// Where a job puts its records; `false` says that no more are wanted.
struct Out<'a> {
    sender: &'a Sender<Message>,
    stop: &'a AtomicBool,
}

impl Out<'_> {
    fn emit(&self, record: Record) -> bool {
        self.sender.send(Ok(record)).is_ok() && self.wanted()
    }

    fn wanted(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }
}

/// Runs jobs in parallel, each in a pool of threads of its own: in a common pool a thread that waits for its part
/// of one fit would take up another job, and the clock of the first would go on.
fn spread<J: Sync>(
    jobs: &[J],
    workers: Workers,
    stop: &AtomicBool,
    keep: &mut dyn FnMut(Record) -> Result<(), ExperimentError>,
    work: impl Fn(&J, &Out) -> Result<(), ExperimentError> + Sync,
) -> Result<(), ExperimentError> {
    let next = AtomicUsize::new(0);
    // A failure ends the other workers without being mistaken for the user's wish.
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
                        // Nobody listens any more only if another failure came first.
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

fn run_group(plan: &Plan, cells: &[Cell], out: &Out) -> Result<(), ExperimentError> {
    let Cell { set, fold, k, .. } = cells[0];
    let mut trial = Trial::new(plan, &plan.sets[set], fold, k);
    for cell in cells {
        let record = trial.run(cell.contender).map_err(|error| failure(plan, cell, error))?;
        if !out.emit(Record::Cell(Box::new(record))) {
            break;
        }
    }
    Ok(())
}

fn run_curves(plan: &Plan, job: &CurveJob, out: &Out) -> Result<(), ExperimentError> {
    draw(plan, job, &mut |curve| out.emit(Record::Curve(curve))).map_err(|(contender, error)| {
        failure(plan, &Cell { set: job.set, fold: 0, k: job.k, contender }, error)
    })
}

fn failure(plan: &Plan, cell: &Cell, source: LearnError) -> ExperimentError {
    let &Cell { set, fold, k, contender } = cell;
    ExperimentError::Learn { data: plan.sets[set].record.data.clone(), fold: fold + 1, contender, k, source }
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::plan_of;
    use super::*;

    fn run_all(plan: &Plan, earlier: &[Record], jobs: usize, most: usize) -> (Ending, Vec<Record>) {
        let stop = AtomicBool::new(false);
        let mut records = Vec::new();
        let mut sink = |record: &Record| {
            records.push(record.clone());
            stop.store(records.len() >= most, Ordering::Relaxed);
            Ok(())
        };
        let workers = Workers { jobs, threads: 1 };
        let ending = run(plan, earlier, workers, &stop, &mut sink).unwrap();
        (ending, records)
    }

    /// Without seconds, in an order that does not depend on threads.
    fn comparable(records: &[Record]) -> Vec<String> {
        let mut lines: Vec<String> = records
            .iter()
            .map(|record| match record {
                Record::Cell(cell) => {
                    let mut cell = cell.clone();
                    (cell.start_seconds, cell.learn_seconds) = (0.0, 0.0);
                    format!("{cell:?}")
                }
                other => format!("{other:?}"),
            })
            .collect();
        lines.sort();
        lines
    }

    #[test]
    fn stopped_and_gone_on_with_is_the_same_as_never_stopped() {
        let plan = plan_of(90, 3);
        let (ending, straight) = run_all(&plan, &[], 2, usize::MAX);
        assert_eq!(ending, Ending::Complete);
        assert_eq!(straight.len(), 1 + 12 + 1, "one set, twelve cells, one curve");
        let (ending, first) = run_all(&plan, &[], 1, 4);
        // The worker may be a cell ahead of whoever asks it to stop.
        assert!(ending == Ending::Stopped && (4..12).contains(&first.len()), "{} records", first.len());
        let (ending, rest) = run_all(&plan, &first, 3, usize::MAX);
        assert_eq!(ending, Ending::Complete);
        assert_eq!(comparable(&[first, rest].concat()), comparable(&straight));
        assert!(run_all(&plan, &straight, 1, usize::MAX).1.is_empty(), "nothing is left to do");
    }

    #[test]
    fn records_of_other_rows_are_refused() {
        let mut plan = plan_of(90, 3);
        let (_, records) = run_all(&plan, &[], 1, usize::MAX);
        plan.sets[0].rows[(5, 1)] += 1.0;
        let refused = plan.check_against(&records).unwrap_err().to_string();
        assert!(refused.contains("other rows"), "{refused}");
    }

    #[test]
    fn a_sink_that_fails_ends_the_run() {
        let plan = plan_of(90, 3);
        let mut sink = |_: &Record| Err(io::Error::other("disk full"));
        let workers = Workers { jobs: 2, threads: 1 };
        let error = run(&plan, &[], workers, &AtomicBool::new(false), &mut sink).unwrap_err();
        assert!(matches!(error, ExperimentError::Sink(_)));
    }
}
