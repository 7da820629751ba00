//! `gmm-bmm compare`: runs several learners over a range of K on one or more data sets.

mod learners;
mod option_values;
mod plan;
mod provenance;
mod shown;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::Context;
use serde::Serialize;

use self::learners::LearnerArgs;
use self::option_values::{
    DEFAULT_BLIND_PRIOR, Learners, NoiseChoice, Order, StartChoice, learner_list, parse_alpha,
    parse_blind_prior, parse_dequantize, parse_folds, parse_learners,
};
use self::shown::ShownArgs;
use super::Interrupted;
use super::console::Console;
use super::data_args::ReadingArgs;
use super::files::refuse_overwriting;
use super::fit::MAX_SHARDS;
use super::ks::{Ks, parse_k};
use super::pass::watch_for_interrupt;
use super::usage;
use crate::experiment::{
    CellRecord, Contender, Ending, ExperimentError, FOLDS_FILE, PACKED_FILE, Plan, RECORDS_FILE, RecordIndex,
    Session, Workers, export_folds, read_records, refuse_file_as_folder, write_packed,
};
use crate::learn::BlindPrior;
use crate::linalg::CovarianceType;
use crate::report::{ReportError, SetSummary, pack, report_files, write_report};
use crate::text::{count, printable};

/// Compare learners over a range of K on one or more data sets
///
/// Runs every learner with every K on every fold of a cross-validation. Each finished cell is written to DIR/records.jsonl immediately. Run the same command again to resume an interrupted comparison; run it with more learners or more K to add to a finished one. Tables and pictures are made from the records alone.
#[derive(Debug, clap::Args)]
#[command(override_usage = "gmm-bmm compare --data <FILE|NAME> [OPTIONS]
       gmm-bmm compare --from-records <DIR> [OPTIONS]")]
#[command(after_long_help = "Examples:
  gmm-bmm compare --data abalone --k 2..10 --out abalone
  gmm-bmm compare --data airfoil --data transfusion --k 2..10 --dequantize --out discrete
  gmm-bmm compare --data train.csv --test test.csv --k 2..6 --algos oem,obmm
  gmm-bmm compare --from-records abalone --select paper --units zscore --out abalone-as-in-the-paper
  gmm-bmm compare --from-records abalone --reference oem
  gmm-bmm compare --data abalone --k 2..6 --learner 'mine=./learn {train} {k} {seed} {model}' --scorer './score {model} {test} {scores}'")]
pub(super) struct Args {
    /// CSV (also .gz), .npy, Parquet or Arrow file to compare on, or the name of a set in the catalogue; repeat it for several data sets
    #[arg(long, required_unless_present = "from_records", value_name = "FILE|NAME", help_heading = "Data")]
    data: Vec<PathBuf>,

    /// Learn from all rows of --data and score these rows, instead of cross-validation
    ///
    /// The rows of --data are shuffled by the seed, as the training rows of a fold are.
    #[arg(long, value_name = "FILE|NAME", conflicts_with = "folds", help_heading = "Data")]
    test: Option<PathBuf>,

    /// Add noise of one quantum to discrete columns
    ///
    /// Without noise the density of a discrete column is unbounded, and scores are not comparable. 'both' runs a set that has such
    /// columns as it is and with noise, as two sets. 'auto' runs it with noise only, a list names the columns, 'off' adds none.
    #[arg(long, value_name = "auto|both|off|COLUMNS", num_args = 0..=1, default_value = "both",
          default_missing_value = "auto", value_parser = parse_dequantize, help_heading = "Data")]
    dequantize: NoiseChoice,

    /// Mark these data as synthetic substitutes in the tables
    #[arg(long, hide_short_help = true, help_heading = "Data")]
    stand_in: bool,

    /// Keep a row in the tables for a set of the catalogue whose file is missing, and say how to get it
    #[arg(long, hide_short_help = true, help_heading = "Data")]
    keep_missing: bool,

    /// Number of components, a range such as 2..10 (both ends included), or a list such as 2,3,5
    #[arg(long, value_parser = parse_k, value_name = "K|LO..HI|LIST", default_value = "2..10")]
    k: Ks,

    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = parse_learners,
          help = format!("Learners, a list of {}", learner_list()),
          long_help = format!("Learners, a list of {}\n\n'oem_all' and 'obmm_all' select all their variants. The 'blind' variants begin as the paper may have: with components drawn around the mean and covariance of the first few rows. The 'revised' variants revise the structure of the mixture as 'fit' does; the other online learners learn each row once, beginning with the start. 'em' is batch EM with moves (splits and merges of components), 'em_plain' is batch EM without moves.", learner_list()),
          default_value = "start,oem,oem_revised,obmm,obmm_revised,obmm_auto,odmm,em")]
    algos: Vec<Learners>,

    /// Folds of the cross-validation
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = parse_folds)]
    folds: u16,

    /// Seed of splits and starts; equal seeds, sets and names give equal scores
    ///
    /// The name of a set, which is that of its file without folder and ending, is mixed into the seed. So the same rows in a file of another name are split differently. The number of threads does not change the scores.
    #[arg(long, hide_short_help = true, default_value_t = 1, allow_negative_numbers = true)]
    seed: u64,

    /// Repeat splits and starts with N seeds: --seed, the next number, and so on
    ///
    /// The tables then show means over the seeds with standard errors over the seeds. Tests average the scores of a row over the seeds first. More seeds can be added to existing records.
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    seeds: u16,

    /// The order in which training rows are learned
    ///
    /// In file order, the validation rows, by which K and parameters are chosen, are the last training rows of the file. Test rows are drawn from the whole file in both cases.
    #[arg(long, hide_short_help = true, value_enum, default_value_t, value_name = "ORDER")]
    order: Order,

    /// Shards of oDMM
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=MAX_SHARDS))]
    shards: u16,

    /// Rows that oDMM learns before it splits into shards; 0 is the paper's setup [default: the rows of the start]
    #[arg(long, hide_short_help = true, value_name = "ROWS")]
    warmup: Option<u64>,

    /// Adds the learner obmm_forgetting: a row has half its weight after this many further rows [default: a tenth of the
    /// training rows, if --algos names it]
    ///
    /// Training rows are in random order, so this measures what forgetting costs on data that do not drift.
    #[arg(long, hide_short_help = true, value_name = "ROWS", value_parser = clap::value_parser!(u64).range(1..))]
    half_life: Option<u64>,

    /// Adds EM and oBMM revised with these covariances: a list of tied, diag, spherical
    #[arg(
        long,
        hide_short_help = true,
        value_name = "LIST",
        value_delimiter = ',',
        value_enum,
        hide_possible_values = true
    )]
    covariance: Vec<CovarianceType>,

    /// What a blind start supposes about a component: the rows that its mean counts for, and its covariance as a multiple of that
    /// of the first rows
    #[arg(long, hide_short_help = true, value_name = "ROWS,SPREAD", default_value = DEFAULT_BLIND_PRIOR, value_parser = parse_blind_prior)]
    blind_prior: BlindPrior,

    /// The step-size exponent α of online EM, from 0.5 to 1 [default: chosen on validation rows]
    #[arg(long, hide_short_help = true, value_parser = parse_alpha)]
    alpha: Option<f64>,

    /// Independent starts of batch EM with moves (splits and merges of components); the likeliest fit is kept
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    em_restarts: u16,

    /// Time each fit N times and record the median
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,

    /// Folds and K to run in parallel; 1 gives each fit all threads [default: the number of threads]
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,

    /// The start of oEM and oBMM: fitted to the first rows, blind as the paper's may have been, or both
    ///
    /// A blind start draws components around the mean and covariance of the first few rows: no buffer, no EM, no revisions. 'blind' replaces the online learners of --algos by oem_blind and obmm_blind, and 'both' adds these two.
    #[arg(long, hide_short_help = true, value_enum, default_value_t, value_name = "START")]
    start: StartChoice,

    #[command(flatten)]
    learners: LearnerArgs,

    /// Folder for records, tables and pictures; cells that it already has are not run again [default: gmm-bmm-compare, or
    /// the folder of --from-records]
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Run nothing: write the training and test rows of each fold to this folder, so that anyone can recompute a cell
    ///
    /// The files are those that commands get as {train} and {test}. DIR/folds.json describes them, with the seeds of the learners.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["out", "from_records"],
          hide_short_help = true)]
    export_folds: Option<PathBuf>,

    /// Run nothing: make tables and pictures from the records in this folder, in the same folder or in --out
    #[arg(long, value_name = "DIR", conflicts_with_all = ["data", "test", "dequantize", "stand_in", "keep_missing", "k",
          "algos", "start", "learner", "scorer", "learners", "time_limit", "retry_failed", "folds", "seed", "seeds", "order", "shards",
          "warmup", "half_life", "covariance", "blind_prior", "alpha", "em_restarts", "repeat", "jobs"])]
    from_records: Option<PathBuf>,

    #[command(flatten)]
    reading: ReadingArgs,

    #[command(flatten)]
    shown: ShownArgs,
}

/// The result of the command.
#[derive(Debug, Serialize)]
struct CompareResult {
    folder: PathBuf,
    /// Cells in the records.
    cells: usize,
    /// Cells that this command ran.
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
    if let Some(target) = &args.export_folds {
        return export(args, target, console);
    }
    // The session keeps the record file locked until the tables are written, so that they show all its records.
    let (session, cells_run);
    let mut index: RecordIndex = match &args.from_records {
        Some(source) => {
            check_place_of_tables(folder, source, args.shown.pack)?;
            cells_run = 0;
            read_records(source)?.into_iter().collect()
        }
        None => {
            (session, cells_run) = run_plan(folder, args.workers(), args.plan(console)?, console)?;
            session.index().clone()
        }
    };
    args.shown.choose(&mut index)?;
    if args.shown.pack {
        let packed = pack(&index, &args.shown.options(&index)?).map_err(with_remedy)?;
        write_packed(folder, &packed)?;
        index = packed.into_iter().collect();
    }
    let cells = index.cell_count();
    let source = args.from_records.as_deref().unwrap_or(folder);
    anyhow::ensure!(cells > 0, "'{}' has no finished cells to make tables from", source.display());
    let summary = write_report(&index, &args.shown.options(&index)?, folder)
        .map_err(with_remedy)
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

/// The result of `--export-folds`.
#[derive(Debug, Serialize)]
struct FoldsResult {
    folder: PathBuf,
    folds: usize,
}

fn export(args: &Args, folder: &Path, console: &Console) -> anyhow::Result<()> {
    let plan = args.plan(console)?;
    refuse_file_as_folder(folder)?;
    if folder.join(FOLDS_FILE).exists() {
        return Err(usage(format!("'{}' has folds already: give another folder", folder.display())));
    }
    let folds = export_folds(&plan, folder)
        .with_context(|| format!("cannot write the folds to '{}'", folder.display()))?;
    let result = FoldsResult { folder: folder.to_path_buf(), folds };
    console.result(&result, |result| {
        format!(
            "{} folds written to {}; {FOLDS_FILE} describes them\n",
            result.folds,
            result.folder.display()
        )
    })?;
    Ok(())
}

fn with_remedy(error: ReportError) -> anyhow::Error {
    let remedy = match error {
        ReportError::NoReference(_) => "give --reference a learner that took part",
        ReportError::RowsNotKept => {
            "use --select validation, or make the tables from records that are not packed"
        }
        ReportError::Unpaired { .. } => "remove them and run the comparison again",
        _ => return error.into(),
    };
    anyhow::anyhow!("{error}: {remedy}")
}

/// Refuses to replace the tables of other records.
fn check_place_of_tables(folder: &Path, records: &Path, packs: bool) -> anyhow::Result<()> {
    refuse_file_as_folder(folder)?;
    let own =
        |name: &str| folder.join(name).exists() && folder.canonicalize().ok() != records.canonicalize().ok();
    // Packed records are replaced by new ones.
    if own(RECORDS_FILE) || (own(PACKED_FILE) && !packs) {
        return Err(usage(format!(
            "'{}' has records of its own, and its tables would be replaced: give another folder with --out",
            folder.display()
        )));
    }
    Ok(())
}

fn describe(result: &CompareResult) -> String {
    format!(
        "{}\n{} cells, {} of them run now, in {:.1} s; tables and pictures are in {}: open {}\n",
        result.tables.trim_end(),
        result.cells,
        result.cells_run,
        result.seconds,
        printable(&result.folder.display().to_string()),
        printable(&result.folder.join("report.html").display().to_string())
    )
}

/// Runs the cells that the records do not have. Returns the session and the number of cells that were run.
fn run_plan(
    folder: &Path,
    workers: Workers,
    plan: Plan,
    console: &Console,
) -> anyhow::Result<(Session, usize)> {
    let interrupted = watch_for_interrupt();
    let retry_failed = plan.retry_failed;
    let mut session = Session::open(folder, plan).map_err(|error| match error {
        error @ ExperimentError::OtherSettings { .. } => {
            anyhow::Error::from(error).context(format!("cannot add to '{}'", folder.display()))
        }
        other => other.into(),
    })?;
    let missing = session.missing_cells().len();
    let finished = session.index().cell_count();
    if finished > 0 {
        let failed = match failures(session.index()).values().map(|learner| learner.failed).sum::<usize>() {
            0 => String::new(),
            failed => format!(", of which {failed} failed"),
        };
        console.note(&format!(
            "'{}' has {finished} cells already{failed}; {missing} are {}",
            folder.display(),
            if retry_failed { "missing or run again" } else { "missing" }
        ));
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
    tell_failures(session.index(), console);
    Ok((session, run))
}

/// The cells of a learner, over all sets.
#[derive(Debug, Default)]
struct Failures {
    failed: usize,
    scored: usize,
    /// Why the first one failed.
    first: String,
}

/// The learners of the tables that failed somewhere.
fn failures(index: &RecordIndex) -> BTreeMap<Contender, Failures> {
    let mut all: BTreeMap<Contender, Failures> = BTreeMap::new();
    for set in index.sets() {
        for contender in set.contenders() {
            let learner = all.entry(contender.clone()).or_default();
            learner.scored += set.cells_of(contender).count();
            for failure in set.failures_of(contender).filter_map(|cell| cell.failure.as_ref()) {
                learner.failed += 1;
                if learner.first.is_empty() {
                    learner.first = failure.to_string();
                }
            }
        }
    }
    all.retain(|_, learner| learner.failed > 0);
    all
}

/// Says which cells have no scores, and how to run them again.
fn tell_failures(index: &RecordIndex, console: &Console) {
    let failures = failures(index);
    for (contender, Failures { failed, first, .. }) in failures.iter().filter(|(_, one)| one.scored == 0) {
        let name = contender.name();
        match failed {
            1 => console.warn(&format!("the only cell of '{name}' failed: {first}")),
            _ => console.warn(&format!("all {failed} cells of '{name}' failed; the first: {first}")),
        }
    }
    let failed: usize = failures.values().map(|learner| learner.failed).sum();
    if failed > 0 {
        console.warn(&format!(
            "{} failed, and the tables say why; once the cause is removed, --retry-failed runs failed cells again",
            count(failed as u64, "cell")
        ));
    }
}

impl Args {
    /// Where tables and pictures go.
    fn folder(&self) -> &Path {
        let default = self.from_records.as_deref().unwrap_or(Path::new("gmm-bmm-compare"));
        self.out.as_deref().unwrap_or(default)
    }

    /// Refuses to write tables over the data that they are about.
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
