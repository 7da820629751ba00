//! Runs a command through a launcher, which measures it.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Failure, PROTOCOL, Step, Unscored};

/// A program that runs another one and measures it.
///
/// It is called with the path of a report, a time limit in seconds (0 for none) and the words of the command. It runs
/// the command, ends it and all processes that it has started at the time limit, at its end, or when a byte arrives at its
/// own standard input, and writes a [`Usage`] as JSON to the report. If standard input ends without a byte, the comparison
/// was killed: then it also removes the folder of the report. A small process of its own is needed because the
/// system reports as the peak memory of a child at least the memory of the process that started it, and because it outlives
/// a comparison that is killed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Launcher {
    /// Its command.
    pub words: Vec<OsString>,
    /// The time limit of each command.
    pub time_limit: Option<Duration>,
}

/// What a command used, and how it ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Seconds from start to end.
    pub seconds: f64,
    /// Seconds of processor time of the command and its children, if the system says it.
    pub cpu_seconds: Option<f64>,
    /// The most memory that one of these processes had, in bytes.
    pub peak_memory: Option<u64>,
    /// How it ended, unless with status 0.
    pub failed: Option<String>,
    /// Whether it was ended at the time limit.
    pub timed_out: bool,
    /// Why it could not be started.
    pub not_started: Option<String>,
    /// The end of what it wrote to standard error.
    pub errors: String,
}

/// One run of a command.
pub(super) struct Launch<'a> {
    pub launcher: &'a Launcher,
    pub words: &'a [String],
    pub step: Step,
    pub folder: &'a Path,
    pub stop: &'a AtomicBool,
}

/// Variables by which numerical libraries take their number of threads.
const THREADS: [&str; 5] = [
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
];

/// A request to stop that reaches all processes at once may reach the command first. So the comparison waits this long before
/// it takes the end of a command for a failure.
const GRACE: Duration = Duration::from_millis(200);

impl Launch<'_> {
    /// Runs the command. A command that ends while the comparison is asked to stop has not failed.
    pub fn run(&self) -> Result<Usage, Unscored> {
        match self.launch() {
            Err(Unscored::Failed(Failure::Status { .. } | Failure::NotStarted { .. }))
                if self.stops_soon() =>
            {
                Err(Unscored::Stopped)
            }
            ended => ended,
        }
    }

    fn launch(&self) -> Result<Usage, Unscored> {
        let report = self.folder.join("usage.json");
        let not_started = |error: std::io::Error| Failure::NotStarted { message: error.to_string() };
        let (program, first) = self
            .launcher
            .words
            .split_first()
            .ok_or_else(|| Failure::NotStarted { message: "the comparison has no launcher".into() })?;
        let seconds = self.launcher.time_limit.map_or(0.0, |limit| limit.as_secs_f64());
        let threads = rayon::current_num_threads().to_string();
        let mut command = Command::new(program);
        command
            .args(first)
            .arg(&report)
            .arg(seconds.to_string())
            .args(self.words)
            .env("GMM_BMM_PROTOCOL", PROTOCOL.to_string())
            .envs(THREADS.map(|name| (name, threads.as_str())))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // A group of its own: Ctrl-C reaches the comparison only, which then ends the command through the launcher.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let status = self.wait(command.spawn().map_err(not_started)?)?;
        let no_report = |error: String| Failure::NotStarted {
            message: format!("the launcher ended with {status} and without a report: {error}"),
        };
        let text = std::fs::read(&report).map_err(|error| no_report(error.to_string()))?;
        let usage: Usage = serde_json::from_slice(&text).map_err(|error| no_report(error.to_string()))?;
        self.judge(usage)
    }

    /// Waits for the end, or ends the command if the comparison is asked to stop.
    fn wait(&self, mut child: Child) -> Result<ExitStatus, Unscored> {
        let mut input = child.stdin.take();
        let mut pause = Duration::from_millis(1);
        loop {
            match child.try_wait() {
                Ok(Some(_)) if input.is_none() => return Err(Unscored::Stopped),
                Ok(Some(status)) => return Ok(status),
                Ok(None) => {}
                Err(error) => return Err(Failure::NotStarted { message: error.to_string() }.into()),
            }
            if self.stop.load(Ordering::Relaxed)
                && let Some(mut input) = input.take()
            {
                // The launcher may have ended meanwhile.
                let _ = input.write_all(b".");
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    /// Whether the comparison is asked to stop, now or soon.
    fn stops_soon(&self) -> bool {
        let begun = Instant::now();
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return true;
            }
            if begun.elapsed() > GRACE {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn judge(&self, usage: Usage) -> Result<Usage, Unscored> {
        let step = self.step;
        if let Some(message) = usage.not_started {
            return Err(Failure::NotStarted { message }.into());
        }
        if usage.timed_out {
            let seconds = self.launcher.time_limit.map_or(usage.seconds, |limit| limit.as_secs_f64());
            return Err(Failure::TimedOut { step, seconds }.into());
        }
        match usage.failed {
            None => Ok(usage),
            Some(status) => Err(Failure::Status { step, status, message: last_line(&usage.errors) }.into()),
        }
    }
}

/// The last line with text, without control characters and not too long for a table's note.
fn last_line(text: &str) -> String {
    let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    last.chars().filter(|c| !c.is_control()).take(200).collect()
}
