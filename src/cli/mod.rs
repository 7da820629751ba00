//! The command line: each command parses its arguments, calls the library and prints the result.

mod choice;
mod clusters;
mod compare;
mod console;
mod data_args;
mod datasets;
mod eval;
mod export;
mod figure1;
mod files;
mod fit;
mod impute;
mod ks;
mod launch;
mod manuals;
mod measure;
mod memory;
mod merge;
mod option_values;
mod pass;
mod plot;
mod show;
mod signals;
mod structure;
mod synth;
mod trace;
mod wording;

use std::process::ExitCode;
use std::sync::LazyLock;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

use crate::files::is_output_failure;
use console::Console;

/// More threads than any machine has cores for; each needs memory.
const MAX_THREADS: i64 = 1024;

/// Learn Gaussian mixtures from streams, in one pass and bounded memory
#[derive(Debug, Parser)]
#[command(name = "gmm-bmm", version, long_version = long_version(), propagate_version = true, max_term_width = 100)]
#[command(after_long_help = "Examples:
  gmm-bmm fit --data abalone --k 5 --out model.json
  gmm-bmm eval --model model.json --data abalone
  zcat big.csv.gz | gmm-bmm fit --data - --k 2..10 --out model.json

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.")]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Print results as JSON
    #[arg(long, global = true, help_heading = "Any command")]
    json: bool,

    /// Print only results and errors
    #[arg(long, short, global = true, help_heading = "Any command")]
    quiet: bool,

    /// Number of threads; results do not depend on it [default: all cores]
    #[arg(long, global = true, help_heading = "Any command", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MAX_THREADS))]
    threads: Option<u16>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Fit(Box<fit::Args>),
    #[command(visible_alias = "predict")]
    Eval(eval::Args),
    Impute(impute::Args),
    Compare(Box<compare::Args>),
    Figure1(figure1::Args),
    Merge(merge::Args),
    Show(show::Args),
    Export(export::Args),
    Synth(synth::Args),
    Datasets(datasets::Args),
    Completions(manuals::CompletionsArgs),
    Man(manuals::ManArgs),
    #[command(hide = true)]
    Measure(measure::Args),
}

/// The version with the features of this build and the kernels that this machine uses.
fn long_version() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let features = [
            ("parquet", cfg!(feature = "parquet")),
            ("openblas", cfg!(feature = "openblas")),
            ("mpi", cfg!(feature = "mpi")),
        ];
        let built_in: Vec<_> =
            features.iter().filter(|(_, is_there)| *is_there).map(|(name, _)| *name).collect();
        let features = if built_in.is_empty() { "none".to_string() } else { built_in.join(", ") };
        format!("{}\nfeatures: {features}\nkernels: {}", env!("CARGO_PKG_VERSION"), crate::linalg::kernels())
    });
    &TEXT
}

/// A mistake in how the command was called, found after parsing: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct UsageError(String);

/// A usage error as `anyhow` carries it.
fn usage(text: impl Into<String>) -> anyhow::Error {
    UsageError(text.into()).into()
}

/// An error of the library that comes from how the command was called.
fn usage_error(error: impl std::error::Error + 'static) -> anyhow::Error {
    usage(wording::error(&error))
}

/// The user pressed Ctrl-C: exit code 130.
#[derive(Debug, thiserror::Error)]
#[error("interrupted{0}")]
struct Interrupted(String);

/// Runs the command that the process was called with.
pub fn main() -> ExitCode {
    memory::return_freed_blocks();
    let cli = Cli::try_parse().unwrap_or_else(|error| {
        if error.use_stderr() && launch::is_another_first() {
            std::process::exit(2);
        }
        with_tip(error).exit()
    });
    let console = Console::new(cli.json, cli.quiet);
    match run(cli, &console) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // All processes that were started together would print the same usage error.
            if !(error.is::<UsageError>() && launch::is_another_first()) {
                console.error(&error);
            }
            ExitCode::from(exit_code(&error))
        }
    }
}

/// Shows the usage of the whole command, not that of the given options. Where a file was given without its option, a tip names
/// the option.
fn with_tip(mut error: clap::Error) -> clap::Error {
    let mut cli = Cli::command();
    cli.build();
    if error.kind() == ErrorKind::InvalidSubcommand {
        let commands: Vec<&str> =
            cli.get_subcommands().filter(|sub| !sub.is_hide_set()).map(|sub| sub.get_name()).collect();
        let tip = format!("the commands are {}", commands.join(", "));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        return error;
    }
    let mut words = std::env::args_os().skip(1);
    let called = words.find_map(|word| Some(cli.find_subcommand(word)?.get_name().to_string()));
    let Some(called) = called.and_then(|name| cli.find_subcommand_mut(name)) else { return error };
    if error.get(ContextKind::Usage).is_some() {
        error.insert(ContextKind::Usage, ContextValue::StyledStr(called.render_usage()));
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return error };
    if error.kind() != ErrorKind::UnknownArgument || word.starts_with('-') {
        return error;
    }
    let takes = |option: &str| called.get_opts().any(|arg| arg.get_id() == option);
    let option = if word.ends_with(".json") && takes("model") { "model" } else { "data" };
    if takes(option) {
        let tip = format!("give a file with its option: '--{option} {word}'");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Whether these words, without the name of the program, parse as a command. For the tests.
#[doc(hidden)]
pub fn parses<T: Into<std::ffi::OsString> + Clone>(words: impl IntoIterator<Item = T>) -> bool {
    let words = words.into_iter().map(Into::into);
    Cli::try_parse_from([std::ffi::OsString::from("gmm-bmm")].into_iter().chain(words)).is_ok()
}

fn run(cli: Cli, console: &Console) -> anyhow::Result<()> {
    signals::ignore_file_size_signal();
    if let Some(threads) = cli.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global()?;
    }
    match cli.command {
        Command::Fit(args) => fit::run(&args, console),
        Command::Eval(args) => eval::run(&args, console),
        Command::Impute(args) => impute::run(&args, console),
        Command::Compare(args) => compare::run(&args, console),
        Command::Figure1(args) => figure1::run(&args, console),
        Command::Merge(args) => merge::run(&args, console),
        Command::Show(args) => show::run(&args, console),
        Command::Export(args) => export::run(&args, console),
        Command::Synth(args) => synth::run(&args, console),
        Command::Datasets(args) => datasets::run(&args, console),
        Command::Completions(args) => manuals::completions(&args),
        Command::Man(args) => manuals::man(&args, console),
        Command::Measure(args) => measure::run(&args),
    }
}

fn exit_code(error: &anyhow::Error) -> u8 {
    if error.is::<UsageError>() {
        2
    } else if error.is::<Interrupted>() {
        130
    } else {
        1
    }
}

/// Whether the reader of standard output has closed the pipe (`gmm-bmm show … | head`), which is no failure. It is one for a
/// pipe that was named as an output file, because the result is lost.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let closed = |cause: &(dyn std::error::Error + 'static)| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe && !is_output_failure(error))
    };
    error.chain().any(closed)
}
