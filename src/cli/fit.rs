//! `gmm-bmm fit`: learn a mixture from a stream in one pass and write a model file.

mod args;
mod batch;
mod beginning;
mod learner_args;
mod parts;
#[cfg(feature = "mpi")]
mod ranks;

use std::path::PathBuf;

use serde::Serialize;

pub(super) use args::Args;
use args::TraceArgs;
use beginning::{Beginning, beginning};
use learner_args::Algo;
pub(super) use learner_args::MAX_SHARDS;

use super::choice::{describe_choice, describe_ks};
use super::console::Console;
use super::data_args::{MissingResult, tell_end};
use super::files::{Output, is_dash, refuse_overwriting};
use super::launch::launch;
use super::pass::{Pass, PassEnd};
use super::plot::PlotOutput;
use super::structure::StructureResult;
use super::trace::CurvePoints;
use super::{usage, usage_error, wording};
use crate::data::Reservoir;
use crate::files::place_of;
use crate::learn::{DataChanges, Health, KComparison, OnlineFit, Today};
use crate::model::Model;
use crate::text::count;
use crate::text::number::decimal;

/// The result of a fit.
#[derive(Debug, Serialize)]
struct FitResult {
    algorithm: &'static str,
    rows: u64,
    rows_skipped: u64,
    /// What is missing, if any value is.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<MissingResult>,
    columns: Vec<String>,
    k: usize,
    seed: u64,
    read_seconds: f64,
    learn_seconds: f64,
    prequential_log_likelihood: Option<f64>,
    prequential_rows: u64,
    /// Each K learned, with its score.
    #[serde(flatten)]
    choice: KComparison,
    health: Health,
    /// The number of further rows after which a row has half its weight, if rows lose weight.
    #[serde(skip_serializing_if = "Option::is_none")]
    half_life: Option<u64>,
    /// Where the data change, if they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    data_changes: Option<DataChanges>,
    /// How the rows of this run compare with those learned before, if the run was resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    today: Option<Today>,
    /// The shards, where each reads its own part.
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<parts::PartsResult>,
    #[serde(flatten)]
    structure: StructureResult,
    out: PathBuf,
    /// The file of the picture, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    plot: Option<PathBuf>,
    /// The file of the learning curve's picture, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    plot_curve: Option<PathBuf>,
}

impl FitResult {
    fn new(
        model: &Model,
        rows_skipped: u64,
        choice: KComparison,
        read_seconds: f64,
        learn_seconds: f64,
    ) -> Self {
        FitResult {
            algorithm: model.recipe().name(),
            rows: model.rows(),
            rows_skipped,
            missing: None,
            columns: model.column_names().names,
            k: model.estimate().k(),
            seed: model.seed(),
            read_seconds,
            learn_seconds,
            prequential_log_likelihood: model.prequential().mean(),
            prequential_rows: model.prequential().rows,
            choice,
            health: model.health(),
            half_life: model.half_life(),
            data_changes: model.data_changes().cloned(),
            today: None,
            parts: None,
            structure: StructureResult::of(model),
            out: PathBuf::new(),
            plot: None,
            plot_curve: None,
        }
    }
}

/// A fit that has yet to be written.
struct Fitted {
    model: Model,
    result: FitResult,
    /// A sample of its rows, if there is to be a picture.
    sample: Option<Reservoir>,
    /// The points of its learning curve, for a picture.
    curve: Option<CurvePoints>,
}

/// The files that it is written to.
struct Outputs {
    model: Output,
    plot: Option<PlotOutput>,
    plot_curve: Option<PlotOutput>,
}

pub(super) fn run(args: &Args, console: &Console) -> anyhow::Result<()> {
    args.refuse_foreign_options()?;
    // A process that learns a numbered shard writes its own file, also if a launcher started it.
    if let Some(launch) = launch().filter(|_| args.shard.is_none()) {
        // A single process may also hold several shards.
        #[cfg(feature = "mpi")]
        if args.is_odmm() && (launch.size > 1 || args.odmm.shards.is_none()) {
            return ranks::run(args, launch, console);
        }
        if launch.size > 1 {
            return Err(refuse_ranks(args, launch.size));
        }
    }
    let out = open_outputs(args)?;
    let fitted = match args.algo {
        Algo::Em => batch::fit_batch(args, console)?,
        _ if parts::is_asked_for(args) => parts::fit_parts(args, console)?,
        _ => fit_online(args, console)?,
    };
    write_and_tell(args, out, fitted, console)
}

/// Refuses several processes that would each learn all the data and write the same file.
fn refuse_ranks(args: &Args, size: u32) -> anyhow::Error {
    if cfg!(feature = "mpi") && !args.is_odmm() {
        return usage(format!(
            "{size} ranks can learn together only with --algo odmm; otherwise each would learn the same data and write the \
             same file: use --algo odmm, or let each learn one shard with --prior and --shard"
        ));
    }
    usage(format!(
        "this is one of {size} processes that a launcher such as mpirun has started, but this gmm-bmm was built without \
         MPI, so each would learn all the data and write the same file: build it with 'cargo install --locked --path . \
         --features mpi', or learn each shard with --prior and --shard and combine them with 'gmm-bmm merge'"
    ))
}

/// Opens the files of model and pictures. An error where one would replace an input.
fn open_outputs(args: &Args) -> anyhow::Result<Outputs> {
    let TraceArgs { trace, plot_curve, .. } = &args.trace;
    let others = [trace, plot_curve, &args.checkpoint.checkpoint, &args.plot.plot];
    let others: Vec<&PathBuf> = others.into_iter().flatten().collect();
    let (data, test) = (args.data.files()?, args.data.reading.files(args.trace.test.as_slice())?);
    let outputs = [&args.out].into_iter().chain(others.iter().copied());
    refuse_overwriting(outputs, data.iter().chain(&test).chain(&args.prior))?;
    // Only the resumed model itself may replace its file.
    refuse_overwriting(others.into_iter(), args.resume.iter())?;
    args.checkpoint.check()?;
    if args.clusters.is_given() && args.plot.plot.is_none() {
        return Err(usage(
            "--clusters and --overlap give a picture its colours: add --plot FILE, or give them to 'show' or 'predict'",
        ));
    }
    let plot = args.plot.open()?;
    let plot_curve = plot_curve.as_deref().map(PlotOutput::open).transpose()?;
    Ok(Outputs { model: Output::open(&args.out)?, plot, plot_curve })
}

fn write_and_tell(args: &Args, out: Outputs, fitted: Fitted, console: &Console) -> anyhow::Result<()> {
    let Fitted { mut model, mut result, sample, curve } = fitted;
    if args.revisions.no_rows {
        model = model.without_rows();
    }
    out.model.write_model(&model)?;
    if let Some(checkpoint) = &args.checkpoint.checkpoint {
        // The model is written, so the checkpoint is no longer needed. A link to it stays.
        let _ = std::fs::remove_file(place_of(checkpoint));
    }
    if let Some(plot) = out.plot {
        args.plot.write(plot, &model, &args.clusters.labels(&model)?, sample.as_ref())?;
    }
    if let (Some(to), Some(points)) = (out.plot_curve, curve) {
        let drawn = to.write_curve(&points.curve(&model))?;
        result.plot_curve = args.trace.plot_curve.clone().filter(|_| drawn);
        if !drawn {
            console.warn(&format!(
                "there is no learning curve to draw: the start took all {}",
                count(model.rows(), "row")
            ));
        }
    }
    result.structure = StructureResult::of(&model);
    result.out = args.out.clone();
    result.plot = args.plot.plot.clone();
    if !is_dash(&args.out) {
        return console.result(&result, describe).map_err(Into::into);
    }
    if result.structure.has_rows() {
        console.note(&format!("the model {}", result.structure.describe_rows()));
    }
    Ok(())
}

fn fit_online(args: &Args, console: &Console) -> anyhow::Result<Fitted> {
    let Beginning { from, learned_before, curve } = beginning(args, console)?;
    let expected = from.as_ref().map(|begun| begun.columns().clone());
    let seed = from.as_ref().map_or(args.seed, |begun| begun.settings().seed);
    let rows = args.data.open(seed, expected, console)?;
    let mut fit = match from {
        Some(begun) => begun,
        None => OnlineFit::new(rows.columns().clone(), args.settings()?)?,
    };
    args.data.reading.check_weights(fit.settings().weights.as_ref(), &rows, console)?;
    fit.set_weight_column(rows.weight_column().map(str::to_string));
    fit.allow_gaps(args.data.reading.takes_gaps());
    console.tell(fit.settings().check_size(fit.dim()).map_err(usage_error)?);
    let trace = args.trace.open(&args.data, &fit, curve, console)?;
    let checkpoint = args.checkpoint.checkpoint.clone().map(|path| (path, args.checkpoint.checkpoint_every));
    let sample = args.plot.sample(&fit.columns().names, seed)?;
    let pass = Pass { fit, checkpoint, trace, learned_before, sample, told: Vec::new(), console };
    let PassEnd { fit, curve, sample, told, mut rows, read_seconds, learn_seconds } = pass.run(rows)?;
    tell_end(&mut rows, console);
    if fit.empty_rows() > 0 {
        console.note(&wording::empty_rows(fit.empty_rows()));
    }
    console.tell(fit.findings().into_iter().filter(|finding| !told.contains(finding)));
    let choice = fit.choice();
    let model = fit.to_model()?;
    let mut result = FitResult::new(&model, rows.rows_skipped(), choice, read_seconds, learn_seconds);
    result.missing = MissingResult::of(&rows);
    result.today = fit.today();
    Ok(Fitted { model, result, sample, curve })
}

fn describe(result: &FitResult) -> String {
    let (scores, reading) = match result.algorithm {
        "em" => ("log-lik. − BIC penalty", format!(", {:.2} s reading", result.read_seconds)),
        _ => ("prequential", " (reading ran in parallel)".to_string()),
    };
    let mut text = String::new();
    if result.choice.candidates.len() > 1 {
        text += &describe_choice(&result.choice, result.k, scores);
    }
    text += &format!(
        "{}: {} learned from {} of {}; {:.2} s learning{reading}\n",
        result.algorithm,
        count(result.k as u64, "component"),
        count(result.rows, "row"),
        count(result.columns.len() as u64, "column"),
        result.learn_seconds,
    );
    if let Some(score) = result.prequential_log_likelihood {
        text += &format!(
            "prequential log-likelihood {} per row, over {} scored before being learned\n",
            decimal(score, 4),
            count(result.prequential_rows, "row")
        );
    }
    if let Some(today) = &result.today {
        text += &wording::today(today);
    }
    if let Some(revisions) = result.structure.describe_revisions() {
        text += &format!("{revisions}\n");
    }
    if result.structure.used_all_rows() {
        text += &format!("all {} were used\n", count(result.rows, "row"));
    }
    text += &format!("model written to {}; it {}\n", result.out.display(), result.structure.describe_rows());
    text += &describe_ks(&result.choice, result.k, result.algorithm != "em");
    if let Some(plot) = &result.plot {
        text += &format!("picture written to {}\n", plot.display());
    }
    if let Some(plot) = &result.plot_curve {
        text += &format!("learning curve written to {}\n", plot.display());
    }
    text
}
