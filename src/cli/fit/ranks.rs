//! `mpirun gmm-bmm fit --algo odmm`: each rank of an MPI job is a shard and learns its part of the data.
//!
//! Rank 0 deals the files, learns the warm-up and broadcasts both. Every rank learns its part. Rank 0 merges the shards in
//! the order of the ranks and writes the model. Messages are JSON, which keeps numbers exactly.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Context;
use mpi::Threading;
use mpi::point_to_point::MatchedReceiveVec;
use mpi::request::{Request, Scope, scope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::learner_args::DealBy;
use super::parts::{Part, PartEnd, ShardInput, Watch, begin, check, finish};
use super::{Args, open_outputs, write_and_tell};
use crate::cli::console::Console;
use crate::cli::exit_code;
use crate::cli::launch::RankOfLaunch;
use crate::cli::usage;

/// Time between checks for a message: a rank that spins takes a core from one that learns.
const NAP: Duration = Duration::from_millis(5);
/// Time between progress lines of rank 0.
const TELL_EVERY: Duration = Duration::from_secs(10);
/// A signal ends a rank at once: no file is open that could be left incomplete.
static NEVER: AtomicBool = AtomicBool::new(false);

/// Runs this rank's part of the job. An error on any rank ends all ranks.
pub(super) fn run(args: &Args, launch: RankOfLaunch, console: &Console) -> anyhow::Result<()> {
    let (universe, _) =
        mpi::initialize_with_threading(Threading::Funneled).context("MPI is running already")?;
    let world = universe.world();
    let rank = world.rank();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        if world.size() as u32 != launch.size {
            return Err(usage(format!(
                "{} processes were started, but MPI sees {}: this mpirun belongs to another MPI than the one that \
                 gmm-bmm was built with",
                launch.size,
                world.size()
            )));
        }
        if rank == 0 { lead(args, &world, console) } else { follow(args, &world) }
    }));
    match outcome {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => {
            let code = exit_code(&error);
            console.error(&error.context(format!("rank {rank}")));
            world.abort(code.into())
        }
        // The panic has written its message.
        Err(_) => world.abort(101),
    }
}

fn lead(args: &Args, world: &SimpleCommunicator, console: &Console) -> anyhow::Result<()> {
    let size = world.size() as usize;
    if args.odmm.shards.is_some_and(|shards| usize::from(shards) != size) {
        return Err(usage(format!(
            "every rank is a shard: leave --shards out, or start as many ranks, not {size}"
        )));
    }
    if args.odmm.deal == Some(DealBy::Rows) {
        return Err(usage("ranks read their own parts: leave --deal rows out, or run one process"));
    }
    // Opened to fail early, then closed: a killed rank could not remove the temporary file.
    drop(open_outputs(args)?);
    let settings = check(args, size)?;
    let dealt = args.data.deal(size)?;
    let begun = Instant::now();
    let progress = RankProgress::new(dealt.bytes_of(0), console);
    let tell = |rows, bytes| progress.add(rows, bytes);
    let watch = Watch { progress: &tell, interrupted: &NEVER };
    let (input, part) = begin(args, settings, dealt, watch, console)?;
    let message = encode(&input)?;
    let kilobytes = message.len().div_ceil(1000);
    console
        .note(&format!("warm-up learned in {:.1} s; prior ({kilobytes} kB) to {size} ranks", seconds(begun)));
    broadcast(world, message)?;
    let own = part.learn(&input.prior)?;
    console.note(&format!("rank 0 has learned its part after {:.1} s", seconds(begun)));
    let mut ends = vec![own];
    for rank in 1..world.size() {
        // In the order of the ranks, so that the result is reproducible.
        ends.push(receive(world, rank).with_context(|| format!("shard of rank {rank}"))?);
    }
    console.note(&format!("all {size} ranks have learned their parts after {:.1} s", seconds(begun)));
    let fitted = finish(&input, &ends, begun.elapsed(), console)?;
    write_and_tell(args, open_outputs(args)?, fitted, console)
}

fn follow(args: &Args, world: &SimpleCommunicator) -> anyhow::Result<()> {
    let input: ShardInput = decode(&broadcast(world, Vec::new())?)?;
    let watch = Watch { progress: &|_, _| (), interrupted: &NEVER };
    let part = Part::open(args, &input, world.rank() as usize, watch)?;
    send(world, &part.learn(&input.prior)?)
}

fn seconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64()
}

fn encode(value: &impl Serialize) -> anyhow::Result<Vec<u8>> {
    let bytes = serde_json::to_vec(value)?;
    anyhow::ensure!(
        i32::try_from(bytes.len()).is_ok(),
        "a message of more than 2 GB: use fewer K or columns"
    );
    Ok(bytes)
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> anyhow::Result<T> {
    serde_json::from_slice(bytes).context("a message between ranks is damaged: do all run the same gmm-bmm?")
}

/// Sends a message of rank 0 to all ranks.
fn broadcast(world: &SimpleCommunicator, mut message: Vec<u8>) -> anyhow::Result<Vec<u8>> {
    let root = world.process_at_rank(0);
    let mut length = message.len() as u64;
    scope(|scope| wait(root.immediate_broadcast_into(scope, &mut length)));
    message.resize(length.try_into()?, 0);
    scope(|scope| wait(root.immediate_broadcast_into(scope, &mut message[..])));
    Ok(message)
}

fn send(world: &SimpleCommunicator, end: &PartEnd) -> anyhow::Result<()> {
    let message = encode(end)?;
    scope(|scope| wait(world.process_at_rank(0).immediate_send(scope, &message[..])));
    Ok(())
}

fn receive(world: &SimpleCommunicator, rank: i32) -> anyhow::Result<PartEnd> {
    let from = world.process_at_rank(rank);
    loop {
        match from.immediate_matched_probe() {
            Some(message) => return decode(&message.matched_receive_vec::<u8>().0),
            None => std::thread::sleep(NAP),
        }
    }
}

/// Waits without spinning.
fn wait<'a, D: ?Sized, S: Scope<'a>>(mut request: Request<'a, D, S>) {
    while let Err(unfinished) = request.test() {
        request = unfinished;
        std::thread::sleep(NAP);
    }
}

/// The progress of rank 0, which is about that of all ranks, because parts have about the same size.
struct RankProgress<'a> {
    console: &'a Console,
    total: u64,
    state: Mutex<Far>,
}

struct Far {
    begun: Instant,
    told: Instant,
    rows: u64,
    bytes: u64,
}

impl<'a> RankProgress<'a> {
    fn new(total: u64, console: &'a Console) -> Self {
        let begun = Instant::now();
        RankProgress { console, total, state: Mutex::new(Far { begun, told: begun, rows: 0, bytes: 0 }) }
    }

    fn add(&self, rows: u64, bytes: u64) {
        let mut far = self.state.lock().expect("no thread panics while it holds the lock");
        far.rows += rows;
        far.bytes += bytes;
        if far.told.elapsed() >= TELL_EVERY {
            far.told = Instant::now();
            let percent = 100.0 * far.bytes as f64 / self.total.max(1) as f64;
            let speed = far.rows as f64 / seconds(far.begun);
            self.console
                .note(&format!("rank 0: {} rows, {percent:.0}% of its part, {speed:.0} rows/s", far.rows));
        }
    }
}
