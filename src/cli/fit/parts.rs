//! `fit --algo odmm --deal parts`: each shard reads and learns its own part of the data. The shards are threads here and
//! ranks in an MPI job.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ndarray::s;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::learner_args::DealBy;
use super::{Args, FitResult, Fitted};
use crate::cli::Interrupted;
use crate::cli::console::Console;
use crate::cli::data_args::MissingResult;
use crate::cli::pass::watch_for_interrupt;
use crate::cli::{usage, usage_error, wording};
use crate::data::{BadRow, Block, FileShards, Next, Prefetch};
use crate::learn::{
    Algorithm, CommonPrior, Finding, FitSettings, LearnedShard, OnlineFit, WarmUp, name_column_faults,
};

/// What a shard needs to begin.
#[derive(Serialize, Deserialize)]
pub(super) struct ShardInput {
    pub dealt: FileShards,
    pub prior: CommonPrior,
}

/// What a shard has learned from its part, and how long it took.
#[derive(Serialize, Deserialize)]
pub(super) struct PartEnd {
    learned: LearnedShard,
    rows_skipped: u64,
    first_skipped: Option<String>,
    /// What a user should know about the rows.
    notices: Vec<String>,
    missing: MissingResult,
    read_seconds: f64,
    learn_seconds: f64,
}

/// How the progress of a part is shown, and what stops it.
#[derive(Clone, Copy)]
pub(super) struct Watch<'a> {
    /// Called with the rows and bytes since the last call.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
    pub interrupted: &'a AtomicBool,
}

/// The settings of the run. An error for options that need one reader of all rows.
pub(super) fn check(args: &Args, shards: usize) -> anyhow::Result<FitSettings> {
    if args.resume.is_some() || args.checkpoint.checkpoint.is_some() || args.trace.is_asked_for() {
        return Err(usage(
            "shards that read their own parts cannot be resumed, and have no checkpoints and no learning curve: \
             use --deal rows in one process, or learn each shard with 'fit --prior' and --checkpoint",
        ));
    }
    if args.plot.plot.is_some() {
        return Err(usage(
            "no process sees all rows if shards read their own parts: draw the picture afterwards, with 'gmm-bmm show MODEL \
             --plot FILE --data FILE'",
        ));
    }
    if args.dequantize {
        return Err(usage("--dequantize numbers the rows of one reader: leave it out, or use --deal rows"));
    }
    if args.data.reading.picks_rows() {
        return Err(usage(
            "--skip and --limit count the rows of one reader: leave them out, or use --deal rows",
        ));
    }
    let mut settings = args.settings()?;
    if let Algorithm::Odmm(odmm) = &mut settings.algorithm {
        odmm.shards = shards;
    }
    Ok(settings)
}

/// Whether shards read their own parts in this process.
pub(super) fn is_asked_for(args: &Args) -> bool {
    args.odmm.deal == Some(DealBy::Parts)
}

/// Learns all shards in this process, in parallel.
pub(super) fn fit_parts(args: &Args, console: &Console) -> anyhow::Result<Fitted> {
    let Algorithm::Odmm(odmm) = args.settings()?.algorithm else {
        return Err(usage("--deal parts is for shards: use it with --algo odmm"));
    };
    let settings = check(args, odmm.shards)?;
    let dealt = args.data.deal(odmm.shards)?;
    let bar = console.progress(Some(dealt.total_bytes()));
    let begun = Instant::now();
    let learned = AtomicU64::new(0);
    let progress = |rows: u64, bytes: u64| {
        let rows = rows + learned.fetch_add(rows, Ordering::Relaxed);
        bar.inc(bytes);
        bar.set_message(format!("{rows} rows, {:.0} rows/s", rows as f64 / begun.elapsed().as_secs_f64()));
    };
    let watch = Watch { progress: &progress, interrupted: watch_for_interrupt() };
    let (input, first) = begin(args, settings, dealt, watch, console)?;
    let first = Mutex::new(Some(first));
    let ends = (0..odmm.shards).into_par_iter().map(|share| {
        let taken = if share == 0 {
            first.lock().expect("no thread panics while it holds the lock").take()
        } else {
            None
        };
        let part = match taken {
            Some(first) => first,
            None => Part::open(args, &input, share, watch)?,
        };
        part.learn(&input.prior)
    });
    let ends = ends.collect::<anyhow::Result<Vec<PartEnd>>>()?;
    bar.finish_and_clear();
    let wall = begun.elapsed();
    finish(&input, &ends, wall, console)
}

/// Learns the warm-up from the first part, and returns the rest of that part.
pub(super) fn begin<'a>(
    args: &Args,
    settings: FitSettings,
    dealt: FileShards,
    watch: Watch<'a>,
    console: &Console,
) -> anyhow::Result<(ShardInput, Part<'a>)> {
    let rows = args.data.open_shard(&dealt, 0, args.seed, console)?;
    let (columns, weights) = (rows.columns().clone(), rows.weight_column().map(str::to_string));
    console.tell(settings.check_size(columns.len()).map_err(usage_error)?);
    let mut warm = WarmUp::new(columns, settings)?;
    warm.pass().set_weight_column(weights);
    let mut reader = Reader { ahead: Prefetch::start(rows, u64::MAX), bytes: 0, watch };
    let mut learning = Duration::ZERO;
    let mut rest = None;
    while rest.is_none() && warm.rows_wanted() > 0 {
        let Some(block) = reader.next()? else { break };
        let wanted = warm.rows_wanted().min(block.rows() as u64) as usize;
        let started = Instant::now();
        warm.pass().observe_weighted(block.view().slice(s![..wanted, ..]), block.weights_of(0..wanted))?;
        learning += started.elapsed();
        reader.learned(wanted);
        if wanted < block.rows() {
            rest = Some((block, wanted));
        } else {
            reader.ahead.give_back(block);
        }
    }
    let pass = warm.pass();
    console.tell(name_column_faults(&pass.column_faults(), &pass.columns().names));
    let (prior, mut pass) = warm.finish()?;
    if let Some((block, from)) = rest {
        let started = Instant::now();
        let weights = block.weights_of(from..block.rows());
        pass.observe_weighted(block.view().slice(s![from.., ..]), weights)?;
        learning += started.elapsed();
        reader.learned(block.rows() - from);
        reader.ahead.give_back(block);
    }
    let input = ShardInput { dealt, prior };
    Ok((input, Part { pass, reader, learning }))
}

/// One part while it is learned.
pub(super) struct Part<'a> {
    pass: OnlineFit,
    reader: Reader<'a>,
    learning: Duration,
}

impl<'a> Part<'a> {
    /// Any part but the first.
    pub fn open(args: &Args, input: &ShardInput, share: usize, watch: Watch<'a>) -> anyhow::Result<Self> {
        // The notices about the columns were printed when the first part was opened.
        let rows = args.data.open_shard(&input.dealt, share, args.seed, &Console::new(false, true))?;
        let pass = input.prior.begin_shard()?;
        let reader = Reader { ahead: Prefetch::start(rows, u64::MAX), bytes: 0, watch };
        Ok(Part { pass, reader, learning: Duration::ZERO })
    }

    /// Learns all remaining rows.
    pub fn learn(mut self, prior: &CommonPrior) -> anyhow::Result<PartEnd> {
        while let Some(block) = self.reader.next()? {
            let started = Instant::now();
            self.pass.observe_weighted(block.view(), block.weights())?;
            self.learning += started.elapsed();
            self.reader.learned(block.rows());
            self.reader.ahead.give_back(block);
        }
        let (mut rows, reading) = self.reader.ahead.finish();
        Ok(PartEnd {
            notices: rows.take_notices().iter().map(wording::notice).collect(),
            learned: prior.learned_shard(&self.pass)?,
            rows_skipped: rows.rows_skipped(),
            first_skipped: rows.first_skipped().map(BadRow::to_string),
            missing: MissingResult::of_part(&rows),
            read_seconds: reading.as_secs_f64(),
            learn_seconds: self.learning.as_secs_f64(),
        })
    }
}

struct Reader<'a> {
    ahead: Prefetch,
    /// Bytes that `watch` knows of.
    bytes: u64,
    watch: Watch<'a>,
}

impl Reader<'_> {
    fn next(&mut self) -> anyhow::Result<Option<Block>> {
        match self.ahead.next(self.watch.interrupted)? {
            Next::Rows(block) if !self.watch.interrupted.load(Ordering::Relaxed) => Ok(Some(block)),
            Next::End => Ok(None),
            Next::Rows(_) | Next::Interrupted => Err(Interrupted(": nothing was written".into()).into()),
        }
    }

    fn learned(&mut self, rows: usize) {
        let bytes = self.ahead.bytes_read();
        (self.watch.progress)(rows as u64, bytes - self.bytes);
        self.bytes = bytes;
    }
}

/// Merges the parts in their order.
pub(super) fn finish(
    input: &ShardInput,
    ends: &[PartEnd],
    wall: Duration,
    console: &Console,
) -> anyhow::Result<Fitted> {
    let shards: Vec<LearnedShard> = ends.iter().map(|end| end.learned.clone()).collect();
    let pass = input.prior.merge(&shards)?;
    let skipped = ends.iter().map(|end| end.rows_skipped).sum();
    ends.iter().flat_map(|end| &end.notices).for_each(|notice| console.note(notice));
    if let Some(first) = ends.iter().find_map(|end| end.first_skipped.as_deref()) {
        console.warn(&wording::skipped_rows(skipped, first));
    }
    let missing = ends.iter().map(|end| end.missing.clone()).reduce(|all, part| all.with(&part));
    let missing = missing.and_then(MissingResult::if_any);
    missing.iter().for_each(|missing| missing.tell(console));
    let empty = shards.iter().filter(|shard| shard.rows == 0).count();
    if empty > 0 {
        console.tell([Finding::EmptyShards { empty, shards: shards.len() }]);
    }
    console.tell(pass.findings());
    let (choice, model) = (pass.choice(), pass.to_model()?);
    // Shards read and learn in parallel, so the slowest counts.
    let most = |seconds: fn(&PartEnd) -> f64| ends.iter().map(seconds).fold(0.0, f64::max);
    let mut result =
        FitResult::new(&model, skipped, choice, most(|end| end.read_seconds), most(|end| end.learn_seconds));
    result.missing = missing;
    result.parts = Some(PartsResult {
        wall_seconds: wall.as_secs_f64(),
        rows: shards.iter().map(|shard| shard.rows).collect(),
        learn_seconds: ends.iter().map(|end| end.learn_seconds).collect(),
    });
    Ok(Fitted { model, result, sample: None, curve: None })
}

/// Times and sizes of the parts.
#[derive(Debug, Serialize)]
pub(super) struct PartsResult {
    /// From the first row to the end of the last shard.
    wall_seconds: f64,
    /// Rows of each part.
    rows: Vec<u64>,
    /// Seconds of learning in each part.
    learn_seconds: Vec<f64>,
}
