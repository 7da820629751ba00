//! `gmm-bmm compare`: run several learners over a range of K on one or more data sets.

mod choices;
mod planning;
mod provenance;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::Context;
use clap::ValueEnum;
use serde::Serialize;

use self::choices::{Algos, Dequantize, parse_algo, parse_contender, parse_dequantize, parse_folds, words};
use super::Interrupted;
use super::console::Console;
use super::data_args::ReadingArgs;
use super::files::refuse_overwriting;
use super::fit::MOST_SHARDS;
use super::ks::{Ks, parse_k};
use super::pass::watch_for_interrupt;
use super::usage;
use crate::data::Units;
use crate::experiment::{
    CellRecord, Contender, Ending, ExperimentError, Pairs, Plan, RECORDS_FILE, RecordIndex, SelectRule,
    Session, Workers, read_records, refuse_file_as_folder,
};
use crate::report::{ReportOptions, SetSummary, report_files, write_report};
use crate::words::printable;

/// Compare learners over a range of K on one or more data sets
///
/// Every learner is run with every K on every fold of the cross-validation. Each finished cell is written to DIR/records.jsonl at once: a comparison that was interrupted goes on where it stopped when the same command is called again, and a longer one adds to a shorter one. Tables and pictures are made from the records alone.
#[derive(Debug, clap::Args)]
#[command(override_usage = "gmm-bmm compare --data <FILE|NAME> [OPTIONS]
       gmm-bmm compare --from-records <DIR> [OPTIONS]")]
#[command(after_long_help = "Examples:
  gmm-bmm compare --data abalone --k 2..10 --out abalone
  gmm-bmm compare --data airfoil --data transfusion --k 2..10 --dequantize both --out discrete
  gmm-bmm compare --data train.csv --test test.csv --k 2..6 --algos oem,obmm
  gmm-bmm compare --from-records abalone --select paper --units zscore --out abalone-as-in-the-paper
  gmm-bmm compare --from-records abalone --reference oem_counted")]
pub(super) struct Args {
    /// CSV file to compare on (also .gz), or the name of a set in the catalogue; each is a set of its own
    #[arg(long, required_unless_present = "from_records", value_name = "FILE|NAME", help_heading = "Data")]
    data: Vec<PathBuf>,

    /// Score these rows, and learn from all of --data, instead of cross-validation
    ///
    /// The rows of --data are learned in an order drawn by the seed, as those of a fold are.
    #[arg(long, value_name = "FILE|NAME", conflicts_with = "folds", help_heading = "Data")]
    test: Option<PathBuf>,

    /// Add noise of one quantum to discrete columns: 'auto' finds them, a list names them, 'both' runs each
    /// set that has them without noise as well, 'off' adds none
    #[arg(long, value_name = "auto|both|off|COLUMNS", num_args = 0..=1, default_value = "off",
          default_missing_value = "auto", value_parser = parse_dequantize, help_heading = "Data")]
    dequantize: Dequantize,

    /// The data stand in for the real sets of these names, which the tables then say
    #[arg(long, hide_short_help = true, help_heading = "Data")]
    stand_in: bool,

    /// A set of the catalogue that is not at hand keeps its row in the tables, with how to get it
    #[arg(long, hide_short_help = true, help_heading = "Data")]
    keep_missing: bool,

    /// Number of components, a range such as 2..10 (both ends included), or a list such as 2,3,5
    #[arg(long, value_parser = parse_k, value_name = "K|LO..HI|LIST", default_value = "2..10")]
    k: Ks,

    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = parse_algo,
          help = format!("Learners, a list of {}", words()),
          long_help = format!("Learners, a list of {}\n\n'oem' and 'obmm' stand for all their forms. Those called 'revised' revise their structure as 'fit' does; the other online learners learn each row once from the start. 'em' is batch EM with moves (splits and joins of components), 'em_plain' without them.", words()),
          default_value = "start,oem_counted,oem_revised,obmm_exact,obmm_revised,obmm_auto,odmm,em")]
    algos: Vec<Algos>,

    /// Folds of the cross-validation
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = parse_folds)]
    folds: u16,

    /// Seed of splits and starts; equal seeds give equal scores
    ///
    /// The number of threads does not matter.
    #[arg(long, default_value_t = 1, allow_negative_numbers = true)]
    seed: u64,

    /// Shards of oDMM
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=MOST_SHARDS))]
    shards: u16,

    /// Rows that the shards of oDMM share before they part; 0 is the paper's set-up [default: the start's rows]
    #[arg(long, hide_short_help = true, value_name = "ROWS")]
    warmup: Option<u64>,

    /// Independent starts of batch EM with moves (splits and joins of components); the best by likelihood is kept
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    em_restarts: u16,

    /// Time each fit so many times and write down the median
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,

    /// Folds and K to run at a time; 1 gives each fit all threads [default: the number of threads]
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,

    /// Folder for records, tables and pictures; records that are there are not run again [default: gmm-bmm-compare, or that of
    /// --from-records]
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Run nothing: make tables and pictures from the records in this folder, in their place or that of --out
    #[arg(long, value_name = "DIR", conflicts_with_all = ["data", "test", "dequantize", "stand_in", "keep_missing", "k",
          "algos", "folds", "seed", "shards", "warmup", "em_restarts", "repeat", "jobs"])]
    from_records: Option<PathBuf>,

    #[command(flatten)]
    reading: ReadingArgs,

    #[command(flatten)]
    shown: ShownArgs,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Tables")]
struct ShownArgs {
    /// How K is chosen for the tables
    #[arg(long, value_enum, default_value_t = SelectArg::Validation, value_name = "RULE")]
    select: SelectArg,

    /// What the Wilcoxon tests pair
    #[arg(long, hide_short_help = true, value_enum, default_value_t = PairsArg::Rows)]
    pairs: PairsArg,

    /// Units of the scores: the data's own, columns scaled to standard deviation 1, or for each set what the
    /// paper's figures fit
    #[arg(long, value_enum, default_value_t = UnitsArg::Paper)]
    units: UnitsArg,

    /// The learner that the others are tested against, a single one of --algos or a name in the tables [default: obmm_exact]
    #[arg(long, hide_short_help = true, value_name = "LEARNER", value_parser = parse_contender)]
    reference: Option<Contender>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SelectArg {
    /// In each fold by its validation rows, which are part of its training rows
    Validation,
    /// In each fold by the density of training rows just before they are learned
    Evidence,
    /// As in the paper, over all folds: until the test rows' score stops improving significantly
    Paper,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PairsArg {
    /// Test rows
    Rows,
    /// Means of folds
    Folds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum UnitsArg {
    Raw,
    Zscore,
    Paper,
}

/// What a comparison came to.
#[derive(Debug, Serialize)]
struct CompareResult {
    folder: PathBuf,
    /// Cells in the records.
    cells: usize,
    /// Cells that this call ran.
    cells_run: usize,
    seconds: f64,
    /// The figures of the tables.
    sets: Vec<SetSummary>,
    #[serde(skip)]
    tables: String,
}

pub(super) fn run(args: &Args, console: &Console) -> anyhow::Result<()> {
    let begun = std::time::Instant::now();
    let folder = args.folder();
    args.refuse_overwriting_data()?;
    // The session keeps the record file locked until the tables are written, so that they show all its records.
    let (session, read, cells_run);
    let records = match &args.from_records {
        Some(source) => {
            check_place_of_tables(folder, source)?;
            (read, cells_run) = (read_records(source)?, 0);
            read.as_slice()
        }
        None => {
            (session, cells_run) = run_plan(folder, args.workers(), args.plan(console)?, console)?;
            session.records()
        }
    };
    let cells = RecordIndex::new(records).cell_count();
    let source = args.from_records.as_deref().unwrap_or(folder);
    anyhow::ensure!(cells > 0, "'{}' has no finished cells to make tables of", source.display());
    let summary = write_report(records, &args.shown.options(), folder)
        .with_context(|| format!("cannot write the tables to '{}'", folder.display()))?;
    let result = CompareResult {
        folder: folder.to_path_buf(),
        cells,
        cells_run,
        seconds: begun.elapsed().as_secs_f64(),
        tables: summary.terminal(std::io::stdout().is_terminal()),
        sets: summary.sets,
    };
    console.styled_result(&result, describe).map_err(Into::into)
}

/// Tables of some records must not replace those of others.
fn check_place_of_tables(folder: &Path, records: &Path) -> anyhow::Result<()> {
    refuse_file_as_folder(folder)?;
    let file = |folder: &Path| std::fs::canonicalize(folder.join(RECORDS_FILE)).ok();
    if file(folder).is_some_and(|own| Some(own) != file(records)) {
        return Err(usage(format!(
            "'{}' has records of its own, whose tables would be replaced: give another folder with --out",
            folder.display()
        )));
    }
    Ok(())
}

fn describe(result: &CompareResult) -> String {
    format!(
        "{}\n{} cells, {} of them run now in {:.1} s; tables and pictures are in {}: open {}\n",
        result.tables.trim_end(),
        result.cells,
        result.cells_run,
        result.seconds,
        printable(&result.folder.display().to_string()),
        printable(&result.folder.join("report.html").display().to_string())
    )
}

impl ShownArgs {
    fn options(&self) -> ReportOptions {
        ReportOptions {
            select: match self.select {
                SelectArg::Validation => SelectRule::Validation,
                SelectArg::Evidence => SelectRule::Evidence,
                SelectArg::Paper => SelectRule::Paper,
            },
            pairs: match self.pairs {
                PairsArg::Rows => Pairs::Rows,
                PairsArg::Folds => Pairs::Folds,
            },
            units: match self.units {
                UnitsArg::Raw => Some(Units::Raw),
                UnitsArg::Zscore => Some(Units::Zscore),
                UnitsArg::Paper => None,
            },
            reference: self.reference,
        }
    }
}

/// Runs the cells that the records do not have. Returns the session and the number of cells that were run.
fn run_plan(
    folder: &Path,
    workers: Workers,
    plan: Plan,
    console: &Console,
) -> anyhow::Result<(Session, usize)> {
    let interrupted = watch_for_interrupt();
    let mut session = Session::open(folder, plan).map_err(|error| match error {
        error @ ExperimentError::OtherSettings { .. } => {
            anyhow::Error::from(error).context(format!("cannot add to '{}'", folder.display()))
        }
        other => other.into(),
    })?;
    let missing = session.missing_cells().len();
    let finished = RecordIndex::new(session.records()).cell_count();
    if finished > 0 {
        console.note(&format!("'{}' has {finished} cells already; {missing} are missing", folder.display()));
    }
    let bar = console.progress(Some(missing as u64));
    let mut progress = |cell: &CellRecord| {
        bar.inc(1);
        let (run, data) = (bar.position(), printable(&cell.data));
        bar.set_message(format!("{run} of {missing} cells, {data} fold {} K={}", cell.fold + 1, cell.k));
    };
    let ending = session.run(provenance::of_this_run(), workers, interrupted, &mut progress);
    bar.finish_and_clear();
    let run = missing - session.missing_cells().len();
    if ending? == Ending::Stopped && interrupted.load(Ordering::Relaxed) {
        return Err(Interrupted(format!(
            " after {run} of {missing} cells: they are kept in '{}', and the same command resumes from there",
            folder.display()
        ))
        .into());
    }
    Ok((session, run))
}

impl Args {
    /// Where tables and pictures go.
    fn folder(&self) -> &Path {
        let default = self.from_records.as_deref().unwrap_or(Path::new("gmm-bmm-compare"));
        self.out.as_deref().unwrap_or(default)
    }

    /// Tables must not replace the rows that they are about.
    fn refuse_overwriting_data(&self) -> anyhow::Result<()> {
        let written = report_files().chain([RECORDS_FILE]).map(|name| self.folder().join(name));
        let (data, test) = (self.reading.files(&self.data)?, self.reading.files(self.test.as_slice())?);
        refuse_overwriting(written.collect::<Vec<_>>().iter(), data.iter().chain(&test))
    }

    fn workers(&self) -> Workers {
        let threads = rayon::current_num_threads();
        let jobs = self.jobs.map_or(threads, usize::from);
        Workers { jobs, threads: (threads / jobs).max(1) }
    }
}
