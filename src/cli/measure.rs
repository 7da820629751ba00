//! `gmm-bmm measure`: runs a command, measures it, and ends it at a time limit. `compare` calls it for learners that are
//! commands; see [`Launcher`](crate::experiment::Launcher).

mod processes;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::signals::on_request_to_stop;
use crate::experiment::{Usage, remove_abandoned_folder};
use processes::{adopt_orphans, end_processes, end_rest, resources};

/// Run a command and measure it
///
/// The command and the processes that it starts are ended at the time limit, or when standard input is closed.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// File to write what was measured to
    report: PathBuf,

    /// Time limit in seconds; 0 for none
    seconds: f64,

    /// The command
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Why a command is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The time limit.
    Late,
    /// The comparison asks for it.
    Asked,
    /// The comparison was killed.
    Orphaned,
    /// A signal to this process.
    Signalled,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let (usage, end) = measured(args);
    if end == Some(End::Orphaned) {
        if let Some(folder) = args.report.parent() {
            remove_rows(folder);
        }
        return Ok(());
    }
    std::fs::write(&args.report, serde_json::to_vec(&usage)?)
        .with_context(|| format!("cannot write '{}'", args.report.display()))
}

/// Removes the folder of a comparison that was killed. The system may close its files one after the other.
fn remove_rows(folder: &Path) {
    let begun = Instant::now();
    while !remove_abandoned_folder(folder) && begun.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn measured(args: &Args) -> (Usage, Option<End>) {
    adopt_orphans();
    // Before the command starts, so that a signal cannot end this process alone.
    let ends = watch_for_ends();
    let begun = Instant::now();
    let mut command = Command::new(&args.words[0]);
    command.args(&args.words[1..]).stdin(Stdio::null()).stderr(Stdio::piped());
    // A group of its own, so that its children can be ended with it.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut usage = Usage::default();
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            usage.not_started = Some(format!("'{}': {error}", args.words[0]));
            return (usage, None);
        }
    };
    let (group, errors) = (child.id(), child.stderr.take().map(keep_tail));
    let (status, end) = wait(child, args.seconds, ends);
    usage.seconds = begun.elapsed().as_secs_f64();
    // Processes that a command leaves behind would disturb the measurements of the next one.
    end_rest(group);
    (usage.cpu_seconds, usage.peak_memory) = resources();
    usage.timed_out = end == Some(End::Late);
    usage.errors = errors.map(Errors::last).unwrap_or_default();
    usage.failed = match status {
        Ok(_) if end == Some(End::Signalled) => Some("a signal to its launcher".into()),
        Ok(status) if status.success() => None,
        Ok(status) => Some(status.to_string().replace("exit status:", "status")),
        Err(error) => Some(error.to_string()),
    };
    (usage, end)
}

/// Tells when the comparison closes standard input, or a signal arrives.
fn watch_for_ends() -> Receiver<End> {
    let (sender, ends) = channel();
    let signals: Sender<End> = sender.clone();
    // The other side is gone once the command has ended.
    on_request_to_stop(move || {
        let _ = signals.send(End::Signalled);
    });
    std::thread::spawn(move || {
        // A comparison that ends the command says so; one that was killed cannot.
        let asked = std::io::stdin().read(&mut [0]).is_ok_and(|bytes| bytes > 0);
        let _ = sender.send(if asked { End::Asked } else { End::Orphaned });
    });
    ends
}

/// Waits for the end of a command. A second thread ends it if it is to end earlier.
fn wait(mut child: Child, seconds: f64, ends: Receiver<End>) -> (std::io::Result<ExitStatus>, Option<End>) {
    let limit = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let limit = if limit.is_zero() { Duration::MAX } else { limit };
    /// Whether the command runs, has ended, or is ended.
    enum State {
        Runs,
        Over,
        Ended(End),
    }
    let (state, group) = (Arc::new(Mutex::new(State::Runs)), child.id());
    let shared = Arc::clone(&state);
    std::thread::spawn(move || {
        let end = ends.recv_timeout(limit).unwrap_or(End::Late);
        let mut state = shared.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if matches!(*state, State::Runs) {
            *state = State::Ended(end);
            end_processes(group);
        }
    });
    let status = child.wait();
    let mut state = state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    match *state {
        State::Ended(end) => (status, Some(end)),
        _ => {
            *state = State::Over;
            (status, None)
        }
    }
}

/// Bytes that are kept of what a command writes to standard error.
const TAIL: usize = 16 * 1024;

/// The end of what a command writes to standard error.
struct Errors {
    tail: Arc<Mutex<Vec<u8>>>,
    over: Receiver<()>,
}

/// Reads what a command writes to standard error, however much it is.
fn keep_tail(mut errors: ChildStderr) -> Errors {
    let tail = Arc::new(Mutex::new(Vec::new()));
    let (shared, (sender, over)) = (Arc::clone(&tail), channel());
    std::thread::spawn(move || {
        let mut part = vec![0; 64 * 1024];
        while let Ok(bytes @ 1..) = errors.read(&mut part) {
            let mut tail = shared.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            tail.extend_from_slice(&part[..bytes]);
            let more = tail.len().saturating_sub(TAIL);
            tail.drain(..more);
        }
        let _ = sender.send(());
    });
    Errors { tail, over }
}

impl Errors {
    /// The last text. All processes of the command have ended, unless one of them could not be ended.
    fn last(self) -> String {
        let _ = self.over.recv_timeout(Duration::from_secs(2));
        let tail = self.tail.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        String::from_utf8_lossy(&tail).into_owned()
    }
}
