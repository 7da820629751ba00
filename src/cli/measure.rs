//! `gmm-bmm measure`: runs a command, measures it, and ends it at a time limit. `compare` calls it for learners that are
//! commands; see [`Launcher`](crate::experiment::Launcher).

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::experiment::Usage;

/// Run a command and measure it
///
/// The command is ended at the time limit, or when standard input is closed.
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

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let usage = measured(args);
    std::fs::write(&args.report, serde_json::to_vec(&usage)?)
        .with_context(|| format!("cannot write '{}'", args.report.display()))
}

fn measured(args: &Args) -> Usage {
    let begun = Instant::now();
    let mut command = Command::new(&args.words[0]);
    command.args(&args.words[1..]).stdin(Stdio::null());
    // A group of its own, so that its children can be ended with it.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let ended = match command.spawn() {
        Ok(child) => wait(child, args.seconds),
        Err(error) => {
            let message = format!("'{}': {error}", args.words[0]);
            return Usage {
                seconds: 0.0,
                cpu_seconds: None,
                peak_memory: None,
                failed: None,
                timed_out: false,
                not_started: Some(message),
            };
        }
    };
    let seconds = begun.elapsed().as_secs_f64();
    let (cpu_seconds, peak_memory) = resources();
    let failed = match &ended.status {
        Ok(status) if status.success() => None,
        Ok(status) => Some(status.to_string().replace("exit status:", "status")),
        Err(error) => Some(error.to_string()),
    };
    Usage { seconds, cpu_seconds, peak_memory, failed, timed_out: ended.timed_out, not_started: None }
}

struct Ended {
    status: std::io::Result<ExitStatus>,
    timed_out: bool,
}

/// Waits for the end of a command. A second thread ends it at the time limit or at the end of standard input.
fn wait(mut child: Child, seconds: f64) -> Ended {
    let (closed, is_closed) = channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        // The other side is gone once the command has ended.
        let _ = closed.send(());
    });
    let limit = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let limit = if limit.is_zero() { Duration::MAX } else { limit };
    let (timed_out, has_ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (late, over, group) = (Arc::clone(&timed_out), Arc::clone(&has_ended), child.id());
    std::thread::spawn(move || {
        let waited = is_closed.recv_timeout(limit);
        if !over.load(Ordering::SeqCst) {
            late.store(waited == Err(RecvTimeoutError::Timeout), Ordering::SeqCst);
            end_group(group);
        }
    });
    let status = child.wait();
    has_ended.store(true, Ordering::SeqCst);
    Ended { status, timed_out: timed_out.load(Ordering::SeqCst) }
}

#[cfg(unix)]
fn end_group(id: u32) {
    use nix::sys::signal::{Signal, killpg};
    // It may have ended meanwhile.
    let _ = killpg(nix::unistd::Pid::from_raw(id as i32), Signal::SIGKILL);
}

#[cfg(not(unix))]
fn end_group(id: u32) {
    // The standard library can only end a process that no other thread waits for.
    let _ = Command::new("taskkill").args(["/F", "/T", "/PID", &id.to_string()]).output();
}

/// Processor seconds of all ended children, and the most memory of one of them.
#[cfg(unix)]
fn resources() -> (Option<f64>, Option<u64>) {
    use nix::sys::resource::{UsageWho, getrusage};
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return (None, None) };
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 * 1e-6;
    // Apple's systems count bytes, the others kilobytes.
    let unit = if cfg!(target_vendor = "apple") { 1 } else { 1024 };
    (
        Some(seconds(usage.user_time()) + seconds(usage.system_time())),
        u64::try_from(usage.max_rss()).ok().map(|most| most * unit),
    )
}

#[cfg(not(unix))]
fn resources() -> (Option<f64>, Option<u64>) {
    (None, None)
}
