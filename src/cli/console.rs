//! Output of the command: results on standard output, everything else on standard error.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use super::wording;
use crate::learn::Finding;
use crate::text::printable;

/// Writes results, messages and progress.
#[derive(Debug)]
pub(super) struct Console {
    json: bool,
    quiet: bool,
}

/// The error with the words that standard output has failed. It keeps its kind, by which a closed pipe is recognised.
pub(super) fn stdout_failed(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write to standard output: {error}"))
}

/// An error and its causes in one line, without causes whose text is part of the one before.
pub(super) fn chain(error: &anyhow::Error) -> String {
    let mut said: Vec<String> = Vec::new();
    for cause in error.chain().map(wording::error) {
        if said.last().is_none_or(|before| !before.contains(&cause)) {
            said.push(cause);
        }
    }
    said.join(": ")
}

/// Shards beyond these have no counter of their own.
const MAX_COUNTERS: usize = 16;

/// Faulty columns beyond these are not named one by one.
const MAX_FAULTS: usize = 5;

impl Console {
    pub fn new(json: bool, quiet: bool) -> Self {
        Console { json, quiet }
    }

    /// Whether to print a result that was also written to a file.
    pub fn tells_of_files(&self) -> bool {
        self.json || !self.quiet
    }

    /// Prints the result of a command, as JSON or as `text`.
    pub fn result<T: Serialize>(&self, result: &T, text: impl FnOnce(&T) -> String) -> io::Result<()> {
        self.styled_result(result, |result| printable(&text(result)).into_owned())
    }

    /// The same for text that contains escape sequences on purpose. Names from files must have none.
    pub fn styled_result<T: Serialize>(&self, result: &T, text: impl FnOnce(&T) -> String) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let written = if self.json {
            serde_json::to_writer_pretty(&mut out, result)
                .map_err(io::Error::from)
                .and_then(|()| writeln!(out))
        } else {
            out.write_all(text(result).as_bytes())
        };
        written.and_then(|()| out.flush()).map_err(stdout_failed)
    }

    /// Prints something worth knowing.
    pub fn note(&self, text: &str) {
        self.say("note", text);
    }

    /// Prints something worth acting on.
    pub fn warn(&self, text: &str) {
        self.say("warning", text);
    }

    /// Prints findings: warnings, or notes where there is nothing to act on. Many constant and collinear columns are only
    /// counted.
    pub fn tell(&self, findings: impl IntoIterator<Item = Finding>) {
        let is_fault = |finding: &Finding| {
            matches!(finding, Finding::ConstantColumn { .. } | Finding::CollinearColumn { .. })
        };
        let (faults, mut others): (Vec<_>, Vec<_>) = findings.into_iter().partition(is_fault);
        if faults.len() > MAX_FAULTS {
            self.warn(&wording::faulty_columns(faults.len()));
        } else {
            others.splice(0..0, faults);
        }
        for finding in &others {
            let text = wording::finding(finding);
            if wording::is_warning(finding) { self.warn(&text) } else { self.note(&text) }
        }
    }

    fn say(&self, kind: &str, text: &str) {
        if !self.quiet {
            // Nothing can be done if standard error is closed.
            let _ = writeln!(io::stderr(), "{kind}: {}", printable(text));
        }
    }

    pub fn error(&self, error: &anyhow::Error) {
        let _ = writeln!(io::stderr(), "error: {}", printable(&chain(error)));
    }

    /// A progress bar over `total` bytes or rows, or a counter where the total is not known. Hidden unless standard error is a
    /// terminal.
    pub fn progress(&self, total: Option<u64>) -> ProgressBar {
        if self.quiet || !io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
        let template = match total {
            Some(_) => "{elapsed_precise} {wide_bar} {percent:>3}% {msg} eta {eta}",
            None => "{elapsed_precise} {spinner} {msg}",
        };
        bar.set_style(ProgressStyle::with_template(template).expect("the template is well formed"));
        bar.enable_steady_tick(Duration::from_millis(200));
        bar
    }

    /// A counter below `bar` for each shard, as many as fit on a screen; none where the bar is hidden.
    pub fn shard_counters(&self, bar: &ProgressBar, shards: usize) -> Vec<ProgressBar> {
        if bar.is_hidden() {
            return Vec::new();
        }
        let group = MultiProgress::new();
        group.add(bar.clone());
        let style = ProgressStyle::with_template("  {prefix} {msg}").expect("the template is well formed");
        let counter = |shard: usize| {
            let counter = group.add(ProgressBar::new_spinner().with_style(style.clone()));
            counter.set_prefix(format!("shard {:>2}", shard + 1));
            counter
        };
        (0..shards.min(MAX_COUNTERS)).map(counter).collect()
    }
}
