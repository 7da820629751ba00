//! One pass over the rows of a file or pipe: reading, learning, checkpoints, the learning curve, and Ctrl-C.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use indicatif::ProgressBar;
use ndarray::s;

use super::Interrupted;
use super::console::Console;
use super::files::create_output;
use super::signals::on_request_to_stop;
use super::trace::{CurvePoints, Trace};
use super::usage;
use crate::data::{Block, Next, Prefetch, Reservoir, RowReader};
use crate::hash::Fingerprint;
use crate::learn::{Algorithm, Finding, OnlineFit, Progress, Reason, check_enough_rows};
use crate::model::Checkpoint;
use crate::text::count;

pub(super) struct Pass<'a> {
    pub fit: OnlineFit,
    /// The file of the checkpoint, and the rows between two checkpoints.
    pub checkpoint: Option<(PathBuf, u64)>,
    pub trace: Option<Trace>,
    /// How many rows of the data an earlier run has learned, and their fingerprint.
    pub learned_before: Option<(u64, Fingerprint)>,
    /// A sample of the rows for a picture.
    pub sample: Option<Reservoir>,
    /// The findings that were printed so far.
    pub told: Vec<Finding>,
    pub console: &'a Console,
}

pub(super) struct PassEnd {
    pub fit: OnlineFit,
    /// The points of the learning curve, for a picture.
    pub curve: Option<CurvePoints>,
    pub sample: Option<Reservoir>,
    /// The findings that were printed already.
    pub told: Vec<Finding>,
    /// The reader, for its notices.
    pub rows: RowReader,
    pub read_seconds: f64,
    pub learn_seconds: f64,
}

impl Pass<'_> {
    /// Learns all rows except those that an earlier run has learned.
    pub fn run(mut self, rows: RowReader) -> anyhow::Result<PassEnd> {
        let interrupted = watch_for_interrupt();
        let bar = self.console.progress(rows.total_bytes());
        let shards = match &self.fit.settings().algorithm {
            Algorithm::Odmm(settings) => self.console.shard_counters(&bar, settings.shards),
            _ => Vec::new(),
        };
        let begun = Instant::now();
        let mut learning = Duration::ZERO;
        let mut position = 0u64;
        // Only a checkpoint needs the fingerprint of the rows.
        let mut seen = self.checkpoint.as_ref().map(|_| Fingerprint::default());
        let ahead = Prefetch::start(rows, self.longest());
        loop {
            let block = match ahead.next(interrupted)? {
                Next::Rows(block) if !interrupted.load(Ordering::Relaxed) => block,
                Next::End => break,
                Next::Rows(_) | Next::Interrupted => {
                    bar.finish_and_clear();
                    return Err(self.save_interrupted(position, seen));
                }
            };
            if let Some(sample) = &mut self.sample {
                let counts = |i: &usize| block.weights().is_none_or(|weights| weights[*i] > 0.0);
                (0..block.rows()).filter(counts).for_each(|i| sample.offer(block.row(i)));
            }
            learning += self.learn_block(&block, &mut position, &mut seen, &bar)?;
            ahead.give_back(block);
            bar.set_position(ahead.bytes_read());
            let speed = position as f64 / begun.elapsed().as_secs_f64();
            bar.set_message(format!("{position} rows, {speed:.0} rows/s"));
            for (counter, learned) in shards.iter().zip(self.fit.shard_rows()) {
                counter.set_message(format!("{learned} rows"));
            }
        }
        let (rows, reading) = ahead.finish();
        shards.iter().for_each(|counter| counter.finish_and_clear());
        if self.learned_before.is_some_and(|(skip, _)| position < skip) {
            return Err(usage(
                "there are fewer rows than the checkpoint has learned: give the same rows again from the first, or name another \
                 checkpoint",
            ));
        }
        anyhow::ensure!(
            self.fit.rows() > 0,
            "there are no rows to learn from: check the file, and --skip and --limit if they are given"
        );
        if self.fit.lineage().is_none() {
            // Before the start is fitted, which takes long in many dimensions.
            check_enough_rows(self.fit.settings().components.largest_at_start(), self.fit.rows())?;
        }
        let started = Instant::now();
        bar.set_message(if self.fit.has_started() { "revising at the end" } else { "fitting the start" });
        let finished = self.fit.finish(interrupted);
        bar.finish_and_clear();
        if interrupted.load(Ordering::Relaxed) {
            return Err(self.save_interrupted(position, seen));
        }
        finished?;
        learning += started.elapsed();
        let curve = match self.trace {
            Some(trace) => trace.finish(&self.fit)?,
            None => None,
        };
        Ok(PassEnd {
            fit: self.fit,
            curve,
            sample: self.sample,
            told: self.told,
            rows,
            read_seconds: reading.as_secs_f64(),
            learn_seconds: learning.as_secs_f64(),
        })
    }

    /// Learns a block in batches that end where a checkpoint, a point of the curve or a revision is due. Returns the time of
    /// learning alone.
    fn learn_block(
        &mut self,
        block: &Block,
        position: &mut u64,
        seen: &mut Option<Fingerprint>,
        bar: &ProgressBar,
    ) -> anyhow::Result<Duration> {
        let skip = self.learned_before.map_or(0, |(skip, _)| skip);
        let mut learning = Duration::ZERO;
        let mut from = 0;
        while from < block.rows() {
            let most = if *position < skip { skip - *position } else { self.rows_until_stop(*position) };
            let mut to = block.rows().min(from.saturating_add(most.try_into().unwrap_or(usize::MAX)));
            let learns = *position >= skip;
            if learns {
                learning += self.revise_if_due(*position, *seen, bar)?;
                let started = Instant::now();
                let (rows, weights) = (block.view(), block.weights_of(from..to));
                to = match self.fit.advance_weighted(rows.slice(s![from..to, ..]), weights)? {
                    Progress::Learned(taken) => from + taken,
                    Progress::RevisionDue => from,
                };
                learning += started.elapsed();
            }
            *position += (to - from) as u64;
            if let Some(seen) = seen {
                (from..to).for_each(|i| seen.add_row(block.row(i)));
            }
            if *position == skip && self.learned_before.map(|(_, rows)| rows) != *seen {
                return Err(other_data());
            }
            if learns {
                learning += self.revise_if_due(*position, *seen, bar)?;
                self.stop_if_due(*position, *seen)?;
            }
            from = to;
        }
        Ok(learning)
    }

    /// Fits the start or makes a revision if one is due, with a checkpoint before and after it. Returns the time it took.
    fn revise_if_due(
        &mut self,
        position: u64,
        seen: Option<Fingerprint>,
        bar: &ProgressBar,
    ) -> anyhow::Result<Duration> {
        let Some(reason) = self.fit.revision_due() else { return Ok(Duration::ZERO) };
        if reason == Reason::Start {
            // The start may take long.
            self.told = self.fit.first_findings();
            bar.suspend(|| self.console.tell(self.told.clone()));
        }
        let interrupted = watch_for_interrupt();
        let checkpoint = self.checkpoint.as_ref().map(|(path, _)| path.clone());
        if let Some(path) = &checkpoint {
            self.save(path, seen)?;
        }
        bar.set_message(match reason {
            Reason::Start => "fitting the start".into(),
            _ => format!("revising at {} rows", self.fit.rows()),
        });
        let started = Instant::now();
        if !self.fit.revise(interrupted)? {
            bar.finish_and_clear();
            return Err(self.save_interrupted(position, seen));
        }
        let took = started.elapsed();
        if let Some(path) = &checkpoint {
            self.save(path, seen)?;
        }
        Ok(took)
    }

    /// Rows until a checkpoint or a point of the learning curve is due, after `position` rows of the data.
    fn rows_until_stop(&self, position: u64) -> u64 {
        let checkpoint = self.checkpoint.as_ref().map_or(u64::MAX, |(_, every)| every - position % every);
        // The learning curve counts all rows.
        let rows = self.fit.rows();
        checkpoint.min(self.trace.as_ref().map_or(u64::MAX, |trace| trace.rows_until_due(rows)))
    }

    /// The most rows between two stops.
    fn longest(&self) -> u64 {
        let checkpoint = self.checkpoint.as_ref().map_or(u64::MAX, |(_, every)| *every);
        checkpoint.min(self.trace.as_ref().map_or(u64::MAX, Trace::longest))
    }

    fn stop_if_due(&mut self, position: u64, seen: Option<Fingerprint>) -> anyhow::Result<()> {
        if let Some(trace) = &mut self.trace {
            trace.add_if_due(&self.fit)?;
        }
        match &self.checkpoint {
            Some((path, every)) if position.is_multiple_of(*every) => self.save(path, seen),
            _ => Ok(()),
        }
    }

    fn save(&self, path: &Path, seen: Option<Fingerprint>) -> anyhow::Result<()> {
        let file = create_output(path)?;
        let curve = self.trace.as_ref().map_or(Vec::new(), |trace| trace.points().to_vec());
        let model = self.fit.to_checkpoint(Checkpoint { rows: seen.unwrap_or_default(), curve })?;
        model.write_file(file).context("checkpoint")
    }

    /// Saves an interrupted pass, and describes what was saved.
    ///
    /// While rows that the checkpoint has already learned are read again, the checkpoint stays as it is: it holds
    /// more rows than `seen` does, so together they would make a checkpoint that no run can resume from.
    fn save_interrupted(&self, position: u64, seen: Option<Fingerprint>) -> anyhow::Error {
        let Some((path, _)) = &self.checkpoint else {
            return Interrupted(format!(
                " after {}: nothing was written (with --checkpoint FILE the rows learned so far are kept)",
                count(position, "row")
            ))
            .into();
        };
        match self.learned_before {
            Some((skip, _)) if position <= skip => Interrupted(format!(
                " while reading again the {} that the checkpoint has learned: '{}' is unchanged, and the same command \
                 resumes from it",
                count(skip, "row"),
                path.display()
            ))
            .into(),
            None if position == 0 => {
                Interrupted(" before any row was learned: there is nothing to save yet".into()).into()
            }
            _ => match self.save(path, seen) {
                Ok(()) => Interrupted(format!(
                    " after {}: saved to '{}'; the same command resumes from it",
                    count(position, "row"),
                    path.display()
                ))
                .into(),
                Err(error) => error,
            },
        }
    }
}

fn other_data() -> anyhow::Error {
    usage(
        "the rows are not those that the checkpoint has learned: give the same rows again from the first, or name another \
         checkpoint",
    )
}

/// Signals within this time count as one.
const ONE_SIGNAL: Duration = Duration::from_millis(100);

/// A flag that the first Ctrl-C sets. The second ends the process at once, unless it comes within [`ONE_SIGNAL`]: some
/// launchers signal a process and its group.
pub(super) fn watch_for_interrupt() -> &'static AtomicBool {
    static INTERRUPTED: AtomicBool = AtomicBool::new(false);
    static WATCHING: OnceLock<()> = OnceLock::new();
    WATCHING.get_or_init(|| {
        on_request_to_stop(|| {
            static FIRST: OnceLock<Instant> = OnceLock::new();
            if INTERRUPTED.swap(true, Ordering::Relaxed) {
                if FIRST.get().is_some_and(|first| first.elapsed() < ONE_SIGNAL) {
                    return;
                }
                std::process::exit(130);
            }
            let _ = FIRST.set(Instant::now());
            let _ = std::io::stderr().write_all(b"\nstopping; press Ctrl-C again to end at once\n");
        });
    });
    &INTERRUPTED
}
