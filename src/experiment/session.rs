//! A plan and the record file it is run into.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::error::ExperimentError;
use super::external::remove_abandoned_folders;
use super::index::RecordIndex;
use super::plan::{Cell, Plan};
use super::record::{CellRecord, RECORDS_VERSION, Record, RunRecord};
use super::run::{Ending, Workers, run};
use super::store::RecordFile;

/// An open record file with the plan that is run into it. The file stays locked as long as the session lives.
#[derive(Debug)]
pub struct Session {
    plan: Plan,
    file: RecordFile,
    missing: Vec<Cell>,
}

/// When, where and by what command a run was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    /// Version of the tool.
    pub tool: String,
    /// The command line.
    pub command: String,
    /// When it began, as `2026-01-31T12:00:00Z`.
    pub began: String,
    /// The processor, as the system names it.
    pub processor: String,
}

impl Session {
    /// Opens the record file in `folder`, which is created if necessary, locks it, reads it, and refuses a plan that
    /// does not fit its records. Changes nothing in the file.
    pub fn open(folder: &Path, plan: Plan) -> Result<Session, ExperimentError> {
        plan.check()?;
        let file = RecordFile::open(folder)?;
        plan.check_against(file.index())?;
        let missing = plan.missing_cells(file.index());
        Ok(Session { plan, file, missing })
    }

    /// The records that are there.
    pub fn index(&self) -> &RecordIndex {
        self.file.index()
    }

    /// The cells of the plan that are still to be run.
    pub fn missing_cells(&self) -> &[Cell] {
        &self.missing
    }

    /// Runs the missing cells and curves, and appends each record as soon as it is there; `progress` sees each cell.
    /// Setting `stop` ends the run after the cells in progress.
    pub fn run(
        &mut self,
        provenance: Provenance,
        workers: Workers,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(&CellRecord),
    ) -> Result<Ending, ExperimentError> {
        if !self.missing.is_empty() || self.commands_differ() {
            self.file.append(&Record::Run(self.run_record(provenance, workers)))?;
        }
        if self.plan.learners().next().is_some() {
            remove_abandoned_folders();
        }
        // Cells that fail again are not missing.
        self.plan.retry_failed = false;
        let ending = run(&self.plan, &self.missing, &mut self.file, workers, stop, progress);
        self.missing = self.plan.missing_cells(self.file.index());
        self.file.sync()?;
        ending
    }

    /// Whether the last run had other commands, so that the tables would show its learners.
    fn commands_differ(&self) -> bool {
        let last = self.index().runs().last().map(|run| run.learners.as_slice()).unwrap_or_default();
        self.plan.learners().any(|learner| !last.contains(learner))
    }

    fn run_record(&self, provenance: Provenance, workers: Workers) -> RunRecord {
        let Provenance { tool, command, began, processor } = provenance;
        RunRecord {
            version: RECORDS_VERSION,
            tool,
            command,
            began,
            processor,
            threads: workers.jobs * workers.threads,
            seed: self.plan.seed,
            seeds: self.plan.seeds,
            folds: self.plan.folds,
            ks: self.plan.ks.clone(),
            settings: self.plan.settings,
            learners: self.plan.learners().cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::sync::atomic::Ordering;

    use super::super::plan::tests::plan_of;
    use super::super::store::RECORDS_FILE;
    use super::*;

    /// Runs a plan and stops it after a number of cells. Gives the ending and the cells that are missing then.
    fn run_cells(plan: &Plan, folder: &Path, jobs: usize, most: usize) -> (Ending, usize) {
        let stop = AtomicBool::new(false);
        let mut cells = 0;
        let mut progress = |_: &CellRecord| {
            cells += 1;
            stop.store(cells >= most, Ordering::Relaxed);
        };
        let mut session = Session::open(folder, plan.clone()).unwrap();
        let workers = Workers { jobs, threads: 1 };
        let ending = session.run(provenance(), workers, &stop, &mut progress).unwrap();
        (ending, session.missing_cells().len())
    }

    fn provenance() -> Provenance {
        let text = String::new;
        Provenance { tool: text(), command: text(), began: text(), processor: text() }
    }

    /// Without runs and seconds, in an order that does not depend on threads.
    fn comparable(folder: &Path) -> Vec<String> {
        let text = |record: Record| match record {
            Record::Run(_) => None,
            Record::Cell(mut cell) => {
                (cell.start_seconds, cell.learn_seconds, cell.machine_seconds) = (0.0, 0.0, None);
                Some(format!("{cell:?}"))
            }
            other => Some(format!("{other:?}")),
        };
        let mut lines: Vec<String> =
            super::super::read_records(folder).unwrap().into_iter().filter_map(text).collect();
        lines.sort();
        lines
    }

    #[test]
    fn a_stopped_and_resumed_run_has_the_records_of_an_uninterrupted_one() {
        let plan = plan_of(90, 3);
        let (straight, stopped) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert_eq!(run_cells(&plan, straight.path(), 2, usize::MAX), (Ending::Complete, 0));
        let expected = comparable(straight.path());
        assert_eq!(expected.len(), 1 + 12 + 1, "one set, twelve cells, one curve");
        let (ending, missing) = run_cells(&plan, stopped.path(), 1, 3);
        // The worker may finish one more cell before it sees the request to stop.
        assert!(ending == Ending::Stopped && (1..=9).contains(&missing), "{missing} cells are missing");
        assert_eq!(run_cells(&plan, stopped.path(), 3, usize::MAX), (Ending::Complete, 0));
        assert_eq!(comparable(stopped.path()), expected);
        let before = super::super::read_records(straight.path()).unwrap();
        assert_eq!(run_cells(&plan, straight.path(), 1, usize::MAX), (Ending::Complete, 0));
        assert_eq!(super::super::read_records(straight.path()).unwrap(), before, "nothing is left to do");
    }

    #[test]
    fn records_of_other_rows_are_refused() {
        let mut plan = plan_of(90, 3);
        let folder = tempfile::tempdir().unwrap();
        run_cells(&plan, folder.path(), 1, usize::MAX);
        plan.sets[0].rows[(5, 1)] += 1.0;
        let refused = Session::open(folder.path(), plan).unwrap_err().to_string();
        assert!(refused.contains("other rows"), "{refused}");
    }

    #[test]
    fn a_record_that_cannot_be_written_ends_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let mut session = Session::open(folder.path(), plan_of(90, 3)).unwrap();
        let path = folder.path().join(RECORDS_FILE);
        let mut cells = 0;
        let mut progress = |_: &CellRecord| {
            cells += 1;
            OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{").unwrap();
        };
        let workers = Workers { jobs: 2, threads: 1 };
        let error = session.run(provenance(), workers, &AtomicBool::new(false), &mut progress).unwrap_err();
        assert!(matches!(error, ExperimentError::InUse { .. }), "{error}");
        assert_eq!(cells, 1);
    }
}
