//! `gmm-bmm fit`: learn a mixture from a stream in one pass and write a model file.

mod batch;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ValueEnum;
use serde::Serialize;

use super::advice;
use super::console::{Console, decimal};
use super::data_args::{
    DataArgs, KRange, ModelOutput, create_output, parse_k, read_model, refuse_overwriting, usage,
};
use super::pass::{Pass, PassEnd, Provenance, Stops};
use super::trace::Trace;
use crate::learn::{
    Algorithm, Fingerprint, FitSettings, Health, LearnError, Moments, ObmmSettings, OdmmSettings,
    OemSettings, OnlineFit,
};
use crate::model::{ColumnNames, Lineage, Model};

/// Learn a mixture from a stream in one pass and write a model file
///
/// The first rows are buffered and a start is fitted to them; then every row is learned once. Memory does not grow with the rows. With a range of K all K are learned side by side in the same pass, and the one with the best prequential score (the density that each row got just before it was learned) is kept.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  gmm-bmm fit --data abalone --k 5 --out model.json
  zcat big.csv.gz | gmm-bmm fit --data - --k 2..10 --out model.json
  gmm-bmm fit --data day2.csv --resume model.json --out model.json
  gmm-bmm fit --data big.csv --k 8 --out model.json --checkpoint big.checkpoint
  gmm-bmm fit --data big.csv --k 8 --out model.json --algo odmm --shards 8
  gmm-bmm fit --data part1.csv --prior prior.json --out p1.json
  gmm-bmm fit --data train.csv --k 4 --out model.json --trace curve.csv --test test.csv")]
pub(super) struct Args {
    /// Number of components, or a range such as 2..10 (both ends included)
    #[arg(long, value_parser = parse_k, value_name = "K|LO..HI", required_unless_present_any = ["resume", "prior"])]
    k: Option<KRange>,

    /// Where to write the model ('-' is standard output)
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,

    /// How to learn
    #[arg(long, value_enum, default_value_t = Algo::Obmm)]
    algo: Algo,

    /// Seed of all random choices: the same seed gives the same model, bit for bit
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Rows that the start is fitted to [default: the larger of 5000 and 10·K·columns]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    init_rows: Option<u32>,

    #[command(flatten)]
    data: DataArgs,

    #[command(flatten)]
    obmm: ObmmArgs,

    #[command(flatten)]
    odmm: OdmmArgs,

    #[command(flatten)]
    oem: OemArgs,

    /// Learn one shard from this model as the common prior; combine shards with 'gmm-bmm merge'
    #[arg(long, value_name = "MODEL", help_heading = "oDMM", conflicts_with_all = FIXED_BY_A_MODEL)]
    prior: Option<PathBuf>,

    /// Go on from this model: fitting A, then resuming with B, gives the bits of fitting A and B together
    #[arg(long, value_name = "MODEL", help_heading = "Going on",
          conflicts_with_all = FIXED_BY_A_MODEL, conflicts_with = "prior")]
    resume: Option<PathBuf>,

    #[command(flatten)]
    checkpoint: CheckpointArgs,

    #[command(flatten)]
    trace: TraceArgs,
}

/// What a run that begins from a model takes from it.
const FIXED_BY_A_MODEL: [&str; 10] =
    ["k", "algo", "seed", "init_rows", "moments", "discount", "shards", "warmup", "alpha", "count_start"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Algo {
    /// Online Bayesian Moment Matching
    Obmm,
    /// Online EM (Cappé & Moulines), the baseline
    Oem,
    /// oBMM on shards, learned in parallel and merged
    Odmm,
    /// Batch EM with restarts; holds all rows in memory
    Em,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "oBMM")]
struct ObmmArgs {
    /// Which moments each step keeps: 'paper' follows the paper's printed equations
    #[arg(long, value_enum, default_value_t = MomentsArg::Whitened)]
    moments: MomentsArg,

    /// How fast early rows lose weight, from 0 (exact Bayes) to below 1
    #[arg(long, value_name = "BETA", default_value_t = 0.0)]
    discount: f64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum MomentsArg {
    Whitened,
    Paper,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "oDMM")]
struct OdmmArgs {
    /// Shards that rows are dealt to; the model depends on it, but not on the number of threads
    #[arg(long, value_name = "T", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    shards: u16,

    /// Rows that all shards share before they part; 0 is the paper's set-up [default: the rows of the start]
    #[arg(long, value_name = "N")]
    warmup: Option<u64>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "oEM")]
struct OemArgs {
    /// Exponent of the step (n+3)^−α, from 0.5 to 1
    #[arg(long, default_value_t = 0.8)]
    alpha: f64,

    /// Whether the step counts the rows of the start ('false' is the printed form, which forgets its start)
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, value_name = "BOOL")]
    count_start: bool,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Going on")]
struct CheckpointArgs {
    /// Save the state here from time to time; the same command, called again after a kill, goes on from it
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,

    /// Rows between checkpoints
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    checkpoint_every: u64,
}

impl CheckpointArgs {
    /// A place that cannot be written to is told at once, not when the first checkpoint is due.
    fn check(&self) -> anyhow::Result<()> {
        let Some(path) = &self.checkpoint else { return Ok(()) };
        if path.exists() && !path.is_dir() && !path.is_file() {
            return Err(usage(format!(
                "checkpoint '{}' has to be a file that can be read again",
                path.display()
            )));
        }
        create_output(path).context("checkpoint").map(drop)
    }
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Learning curve")]
struct TraceArgs {
    /// Write the learning curve to this CSV file
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Rows between points of the curve
    #[arg(long, value_name = "N", default_value_t = 10_000, requires = "trace",
          value_parser = clap::value_parser!(u64).range(1..))]
    trace_every: u64,

    /// Score each point on these rows (held in memory)
    #[arg(long, value_name = "FILE|NAME", requires = "trace")]
    test: Option<PathBuf>,
}

/// What a fit came to.
#[derive(Debug, Serialize)]
struct FitResult {
    algorithm: &'static str,
    rows: u64,
    rows_skipped: u64,
    columns: Vec<String>,
    k: usize,
    seed: u64,
    read_seconds: f64,
    learn_seconds: f64,
    prequential_log_likelihood: Option<f64>,
    prequential_rows: u64,
    /// Each K learned, with its score.
    candidates: Vec<CandidateResult>,
    health: Health,
    out: PathBuf,
}

#[derive(Debug, Serialize)]
struct CandidateResult {
    k: usize,
    /// Mean prequential log-likelihood, or −BIC/(2n) for batch EM.
    score: Option<f64>,
}

impl FitResult {
    fn new(
        model: &Model,
        rows_skipped: u64,
        candidates: Vec<CandidateResult>,
        read_seconds: f64,
        learn_seconds: f64,
    ) -> Self {
        FitResult {
            algorithm: model.algorithm.name(),
            rows: model.rows,
            rows_skipped,
            columns: model.column_names().names,
            k: model.k(),
            seed: model.seed,
            read_seconds,
            learn_seconds,
            prequential_log_likelihood: model.prequential.mean(),
            prequential_rows: model.prequential.rows,
            candidates,
            health: model.health,
            out: PathBuf::new(),
        }
    }
}

pub(super) fn run(args: &Args, console: &Console) -> anyhow::Result<()> {
    let outputs = [Some(&args.out), args.trace.trace.as_ref(), args.checkpoint.checkpoint.as_ref()];
    let inputs = args.data.data.iter().chain(&args.trace.test).chain(&args.prior);
    refuse_overwriting(outputs.into_iter().flatten(), inputs)?;
    let out = ModelOutput::open(&args.out)?;
    args.checkpoint.check()?;
    let (model, mut result) = match args.algo {
        Algo::Em => batch::fit_batch(args, console)?,
        _ => fit_online(args, console)?,
    };
    out.write(&model)?;
    if let Some(checkpoint) = &args.checkpoint.checkpoint {
        // The run is over and its model is safe.
        let _ = std::fs::remove_file(checkpoint);
    }
    advice::warn_of_health(&result.health, console);
    result.out = args.out.clone();
    if args.out == Path::new("-") {
        return Ok(());
    }
    console.result(&result, describe).map_err(Into::into)
}

impl Args {
    fn ks(&self) -> Vec<usize> {
        self.k.as_ref().map(|range| range.0.clone()).unwrap_or_default()
    }

    fn settings(&self) -> anyhow::Result<FitSettings> {
        let obmm = ObmmSettings {
            moments: match self.obmm.moments {
                MomentsArg::Whitened => Moments::Whitened,
                MomentsArg::Paper => Moments::Paper,
            },
            discount: self.obmm.discount,
        };
        let algorithm = match self.algo {
            Algo::Oem => {
                Algorithm::Oem(OemSettings { alpha: self.oem.alpha, count_start: self.oem.count_start })
            }
            Algo::Odmm => {
                let OdmmArgs { shards, warmup } = self.odmm;
                Algorithm::Odmm(OdmmSettings { obmm, shards: shards.into(), warmup })
            }
            Algo::Obmm | Algo::Em => Algorithm::Obmm(obmm),
        };
        algorithm.check().map_err(|error| usage(error.to_string()))?;
        let init_rows = self.init_rows.map(|rows| rows as usize);
        Ok(FitSettings { algorithm, ks: self.ks(), seed: self.seed, init_rows })
    }
}

/// Where an online fit begins: from nothing, from a model or prior, or from the checkpoint of a run that was killed.
struct Beginning {
    /// `None` begins from nothing.
    from: Option<(Provenance, OnlineFit)>,
    /// Rows of the present data that are learned already, and what they were.
    learned_before: Option<(u64, Fingerprint)>,
}

fn beginning(args: &Args, console: &Console) -> anyhow::Result<Beginning> {
    let from = match (&args.resume, &args.prior) {
        (Some(model), _) => Some(read_resumable(model)?),
        (None, Some(prior)) => Some(read_prior(prior)?),
        (None, None) => None,
    };
    let checkpoint = args.checkpoint.checkpoint.as_ref().filter(|path| path.exists());
    let Some(path) = checkpoint else { return Ok(Beginning { from, learned_before: None }) };
    let (saved, fit, seen) = read_checkpoint(path)?;
    let name = path.display();
    let same = match &from {
        Some((begun, _)) => saved.settings == begun.settings && same_prior(&saved.lineage, &begun.lineage),
        None => saved.settings == args.settings()? && saved.lineage.is_none(),
    };
    if !same {
        return Err(usage(format!(
            "checkpoint '{name}' is of a run with other settings: delete it, or name another file"
        )));
    }
    let learned_before = from.as_ref().map_or(0, |(_, fit)| fit.rows());
    if fit.rows() <= learned_before {
        return Err(usage(format!(
            "checkpoint '{name}' is older than the model to resume, so that run seems to have finished: \
             delete the checkpoint if these rows are really to be learned"
        )));
    }
    let skip = fit.rows() - learned_before;
    console.note(&format!("going on from checkpoint '{name}' after {skip} rows"));
    Ok(Beginning { from: Some((saved, fit)), learned_before: Some((skip, seen)) })
}

fn same_prior(a: &Option<Lineage>, b: &Option<Lineage>) -> bool {
    a.as_ref().map(|lineage| lineage.prior) == b.as_ref().map(|lineage| lineage.prior)
}

fn read_resumable(path: &Path) -> anyhow::Result<(Provenance, OnlineFit)> {
    let model = read_model(path)?;
    let Some((settings, state)) = model.to_fit() else {
        return Err(usage(format!(
            "'{}' was made by '{}', which cannot go on row by row: resume a model of obmm, odmm or oem",
            path.display(),
            model.algorithm.name()
        )));
    };
    let fit = OnlineFit::restore(settings.clone(), state)?;
    Ok((Provenance { settings, columns: model.column_names(), lineage: model.lineage }, fit))
}

/// A checkpoint goes on with the very shard that it is in the middle of.
fn read_checkpoint(path: &Path) -> anyhow::Result<(Provenance, OnlineFit, Fingerprint)> {
    let model = read_model(path).context("checkpoint")?;
    let (Some((settings, state, lineage)), Some(seen)) = (model.to_interrupted_fit(), model.checkpoint)
    else {
        return Err(usage(format!("'{}' is a model, not a checkpoint: name another file", path.display())));
    };
    let fit = OnlineFit::restore(settings.clone(), state)?;
    Ok((Provenance { settings, columns: model.column_names(), lineage }, fit, seen))
}

fn read_prior(path: &Path) -> anyhow::Result<(Provenance, OnlineFit)> {
    let model = read_model(path)?;
    let (settings, state, lineage) =
        model.begin_shard().with_context(|| format!("'{}' cannot be a prior", path.display()))?;
    let fit = OnlineFit::restore(settings.clone(), state)?;
    Ok((Provenance { settings, columns: model.column_names(), lineage: Some(lineage) }, fit))
}

fn fit_online(args: &Args, console: &Console) -> anyhow::Result<(Model, FitResult)> {
    let Beginning { from, learned_before } = beginning(args, console)?;
    let expected = from.as_ref().map(|(begun, _)| begun.columns.clone().into());
    let seed = from.as_ref().map_or(args.seed, |(begun, _)| begun.settings.seed);
    let rows = args.data.open(seed, expected, console)?;
    let (provenance, fit) = match from {
        Some(begun) => begun,
        None => {
            let columns = ColumnNames { names: rows.columns().to_vec(), named: rows.named };
            let settings = args.settings()?;
            let fit = OnlineFit::new(columns.names.len(), settings.clone())?;
            (Provenance { settings, columns, lineage: None }, fit)
        }
    };
    advice::tell_size(&provenance.settings, fit.dim(), console)?;
    let trace = args.trace.open(&args.data, seed, &provenance.columns, console)?;
    let stops = Stops {
        checkpoint: args.checkpoint.checkpoint.clone().map(|path| (path, args.checkpoint.checkpoint_every)),
        trace_every: trace.as_ref().map(|_| args.trace.trace_every),
    };
    let pass = Pass { fit, provenance: &provenance, stops, trace, learned_before, console };
    let PassEnd { fit, state, mut rows, read_seconds, learn_seconds } = pass.run(rows)?;
    rows.tell_end(console);
    advice::warn_of_columns(&fit.column_faults(), &provenance.columns.names, console);
    advice::warn_of_order(
        &fit.start_shifts(),
        &provenance.columns.names,
        args.data.reading.shuffles(),
        console,
    );
    let candidates = state
        .candidates
        .iter()
        .map(|c| CandidateResult { k: c.learned.k(), score: c.prequential.mean() })
        .collect();
    let model = provenance.model(state);
    let result = FitResult::new(&model, rows.rows_skipped(), candidates, read_seconds, learn_seconds);
    Ok((model, result))
}

pub(super) fn check_enough_rows(ks: &[usize], rows: u64) -> Result<(), LearnError> {
    match ks.iter().copied().max() {
        Some(k) if (k as u64) > rows => Err(LearnError::TooFewRows { k, rows }),
        _ => Ok(()),
    }
}

impl TraceArgs {
    fn open(
        &self,
        data: &DataArgs,
        seed: u64,
        columns: &ColumnNames,
        console: &Console,
    ) -> anyhow::Result<Option<Trace>> {
        let Some(path) = &self.trace else { return Ok(None) };
        let file = create_output(path)?;
        let test = match &self.test {
            None => None,
            Some(test) => {
                let expected = Some(columns.clone().into());
                let whole = data.reading.whole();
                Some(whole.open(std::slice::from_ref(test), seed, expected, console)?.read_all()?)
            }
        };
        Ok(Some(Trace::new(file, test)?))
    }
}

fn describe(result: &FitResult) -> String {
    let mut text = String::new();
    if result.candidates.len() > 1 {
        let what =
            if result.algorithm == "em" { "mean log-likelihood less BIC's price" } else { "prequential" };
        text += &format!("   K   {what}\n");
        for candidate in &result.candidates {
            let mark = if candidate.k == result.k { "  ← kept" } else { "" };
            let score = candidate.score.map_or("–".into(), |score| decimal(score, 4));
            text += &format!("{:>4}   {score}{mark}\n", candidate.k);
        }
    }
    text += &format!(
        "{}: {} components learned from {} rows of {} columns in {:.2} s (reading {:.2} s)\n",
        result.algorithm,
        result.k,
        result.rows,
        result.columns.len(),
        result.learn_seconds,
        result.read_seconds,
    );
    if let Some(score) = result.prequential_log_likelihood {
        text += &format!(
            "prequential log-likelihood {} per row, over {} rows scored before they were learned\n",
            decimal(score, 4),
            result.prequential_rows
        );
    }
    text += &format!("model written to {}\n", result.out.display());
    text
}
