//! `gmm-bmm eval`: score data under a model.

use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;

use super::choice::OneK;
use super::clusters::ClusterArgs;
use super::console::{Console, decimal};
use super::data_args::{DataArgs, MissingResult, tell_end};
use super::files::{Output, is_dash, refuse_overwriting, refuse_sharing_stdin};
use super::usage;
use crate::data::{Block, Units};
use crate::dist::{Density, Mixture, most_probable};
use crate::model::{Labels, Model};
use crate::stats::{BatchSums, ColumnSummary};
use crate::text::count;

/// Score data under a model
///
/// Prints the mean log-likelihood per row (natural logarithm) with its standard error. --scores writes the score and the labels of each row. The standard error is taken over batches of consecutive rows, because neighbouring rows may be alike; it is large for a file that is sorted by class, unless --shuffle-buffer mixes the rows. Columns are matched by name where both the model and the data have names, and by position otherwise. --columns can name other columns in the order of the model's; a note then says which column takes the place of which.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  gmm-bmm eval --model model.json --data test.csv
  gmm-bmm eval --model model.json --data test.csv --k 6
  gmm-bmm predict --model model.json --data test.csv --scores labels.csv
  gmm-bmm predict --model model.json --data - --scores - <test.csv | cut -d, -f5
  gmm-bmm eval --model model.json --data abalone --units zscore --json")]
pub(super) struct Args {
    /// The model file ('-' is standard input)
    #[arg(long, short, value_name = "FILE")]
    model: PathBuf,

    #[command(flatten)]
    one_k: OneK,

    /// Write the score and the labels of each row to this CSV file ('-' is standard output, where nothing else is printed then)
    ///
    /// The columns are: 'row', the number of the row in the data; 'log_likelihood'; 'component', the identifier of the most probable component; 'probability', the probability of that component given the row; 'cluster', the name of that component's cluster; 'outlier', 1 if it is an outlier component, whose 'cluster' is 0. Components, clusters and identifiers are those of 'gmm-bmm show', whose help explains them.
    #[arg(long, value_name = "FILE")]
    scores: Option<PathBuf>,

    /// Score under the posterior predictive (a mixture of Student-t) instead of the point estimate
    #[arg(long)]
    predictive: bool,

    /// Units of the score: those of the data, or standard deviations of the training data
    #[arg(long, value_enum, default_value_t = Units::Raw)]
    units: Units,

    #[command(flatten)]
    clusters: ClusterArgs,

    #[command(flatten)]
    data: DataArgs,
}

#[derive(Debug, Serialize)]
struct EvalResult {
    rows: u64,
    rows_skipped: u64,
    /// What is missing, if any value is.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<MissingResult>,
    columns: Vec<String>,
    k: usize,
    mean_log_likelihood: f64,
    standard_error: Option<f64>,
    predictive: bool,
    units: Units,
}

pub(super) fn run(args: &Args, console: &Console) -> anyhow::Result<()> {
    refuse_sharing_stdin(&args.model, &args.data.data)?;
    if args.scores.is_some() && args.data.reading.shuffles() {
        return Err(usage(
            "--scores numbers the rows as the file has them, which is lost when they are shuffled: leave out \
             --shuffle-buffer",
        ));
    }
    refuse_overwriting(args.scores.iter(), args.data.files()?.iter().chain([&args.model]))?;
    let model = args.one_k.read(&args.model)?;
    let result = if args.predictive {
        let predictive = model.predictive().ok_or_else(|| {
            let algorithm = model.algorithm().name();
            usage(format!("a model made by '{algorithm}' has no posterior, so no posterior predictive"))
        })?;
        score(args, &model, &predictive, console)?
    } else {
        score(args, &model, &model.estimate(), console)?
    };
    // If the scores go to standard output, nothing else does.
    if !args.scores.as_deref().is_some_and(is_dash) {
        console.result(&result, describe)?;
    }
    Ok(())
}

/// Rows read and scored at a time.
const ROWS_AT_A_TIME: usize = 4096;

fn score<C: Density>(
    args: &Args,
    model: &Model,
    mixture: &Mixture<C>,
    console: &Console,
) -> anyhow::Result<EvalResult> {
    let names = model.column_names();
    let mut rows = args.data.open(model.seed(), Some(names.clone()), console)?;
    let mut scores = args.scores.as_deref().map(Output::open).transpose()?;
    let mut labels = Vec::new();
    if let Some(file) = &mut scores {
        writeln!(file, "row,log_likelihood,component,probability,cluster,outlier")?;
        labels = fields(&model.labels(args.clusters.overlap));
    }
    let shift = if args.units == Units::Zscore { model.zscore_jacobian() } else { 0.0 };
    let mut summary = ColumnSummary::default();
    let (mut batches, mut total) = (BatchSums::new(vec![0.0]), 0.0);
    let bar = console.progress(rows.total_bytes());
    let mut block = Block::new(mixture.dim());
    loop {
        let left_out = rows.rows_skipped() + rows.rows_left_out();
        let before = args.data.reading.skip + summary.count + left_out;
        if !rows.read_block(&mut block, ROWS_AT_A_TIME)? {
            break;
        }
        let (log_densities, responsibilities) = mixture.responsibilities(block.view());
        let scored = log_densities.iter().zip(responsibilities.outer_iter());
        for (i, (log_density, responsibilities)) in scored.enumerate() {
            anyhow::ensure!(
                log_density.is_finite(),
                "row {} of those read is so far from every component that its density is zero in double precision: look for a \
                 wrong unit or a stray value",
                summary.count + 1
            );
            summary.push(log_density + shift);
            total += log_density + shift;
            batches.record(1, &[total]);
            if let Some(file) = &mut scores {
                let (best, probability) = most_probable(responsibilities.iter().copied());
                let row = before + block.place(i);
                let (component, cluster) = &labels[best];
                writeln!(file, "{row},{},{component},{probability},{cluster}", log_density + shift)?;
            }
        }
        bar.set_position(rows.bytes_read());
        bar.set_message(format!("{} rows", summary.count));
    }
    bar.finish_and_clear();
    tell_end(&mut rows, console);
    anyhow::ensure!(summary.count > 0, "there are no rows to score");
    if let Some(file) = scores {
        file.commit()?;
    }
    Ok(EvalResult {
        rows: summary.count,
        rows_skipped: rows.rows_skipped(),
        missing: MissingResult::of(&rows),
        columns: names.names,
        k: mixture.k(),
        mean_log_likelihood: summary.mean,
        standard_error: batches.standard_error(0),
        predictive: args.predictive,
        units: args.units,
    })
}

/// For each component: its identifier, and the fields of cluster and outlier.
fn fields(labels: &Labels) -> Vec<(u64, String)> {
    let of_component = |(component, &identifier): (usize, &u64)| {
        let cluster = labels.clusters().of(component).map(|cluster| labels.cluster_name(cluster));
        (identifier, cluster.map_or("0,1".into(), |cluster| format!("{cluster},0")))
    };
    labels.identifiers().iter().enumerate().map(of_component).collect()
}

fn describe(result: &EvalResult) -> String {
    let error = result.standard_error.map_or(String::new(), |error| format!(" ± {}", decimal(error, 4)));
    format!(
        "mean log-likelihood {}{error} per row, over {} of {} under {}\n",
        decimal(result.mean_log_likelihood, 4),
        count(result.rows, "row"),
        count(result.columns.len() as u64, "column"),
        count(result.k as u64, "component")
    )
}
