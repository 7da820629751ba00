//! What a person or a program sees: results on standard output, everything else on standard error.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

pub(super) use crate::text::listed;
use crate::text::printable;

/// Where a command's words go.
#[derive(Debug)]
pub(super) struct Console {
    json: bool,
    quiet: bool,
}

/// A number with so many decimals, or with an exponent where its digits would fill a line.
pub(super) fn decimal(value: f64, decimals: usize) -> String {
    if value.abs() < 1e9 { format!("{value:.decimals$}") } else { format!("{value:.decimals$e}") }
}

/// An error of standard output with its name to it; its kind, by which a closed pipe is known, stays.
pub(super) fn stdout_failed(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write to standard output: {error}"))
}

/// An error and its causes in one line, those left out whose words the one before has already.
fn chain(error: &anyhow::Error) -> String {
    let mut said: Vec<String> = Vec::new();
    for cause in error.chain().map(ToString::to_string) {
        if said.last().is_none_or(|before| !before.contains(&cause)) {
            said.push(cause);
        }
    }
    said.join(": ")
}

/// Shards beyond these are not shown one by one.
const MOST_COUNTERS: usize = 16;

impl Console {
    pub fn new(json: bool, quiet: bool) -> Self {
        Console { json, quiet }
    }

    /// Whether a result that went into a file is to be told as well.
    pub fn tells_of_files(&self) -> bool {
        self.json || !self.quiet
    }

    /// The result of a command: as JSON if that was asked for, in `text`'s words otherwise.
    pub fn result<T: Serialize>(&self, result: &T, text: impl FnOnce(&T) -> String) -> io::Result<()> {
        self.styled_result(result, |result| printable(&text(result)).into_owned())
    }

    /// The same with words that hold escape sequences on purpose; names from files must have none.
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

    /// Something worth knowing.
    pub fn note(&self, text: &str) {
        self.say("note", text);
    }

    /// Something worth acting on.
    pub fn warn(&self, text: &str) {
        self.say("warning", text);
    }

    fn say(&self, kind: &str, text: &str) {
        if !self.quiet {
            // Nowhere to complain if standard error is closed.
            let _ = writeln!(io::stderr(), "{kind}: {}", printable(text));
        }
    }

    pub fn error(&self, error: &anyhow::Error) {
        let _ = writeln!(io::stderr(), "error: {}", printable(&chain(error)));
    }

    /// A progress bar over `total` bytes or rows, or a counter where the total is not known; hidden unless a
    /// person is watching.
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

    /// A counter below `bar` for each shard; none unless a person is watching, and no more than fit a screen.
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
        (0..shards.min(MOST_COUNTERS)).map(counter).collect()
    }
}
