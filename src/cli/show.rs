//! `gmm-bmm show`: print a model file.

use std::io::Write;
use std::path::PathBuf;

use ndarray::ArrayView2;
use serde::{Serialize, Serializer};

use super::choice::{OneK, describe_elbow, describe_ks};
use super::clusters::{ClusterArgs, ClustersResult};
use super::console::Console;
use super::data_args::{ReadingArgs, each_block};
use super::files::{StopFlag, create_page, read_sealed_model, refuse_overwriting, refuse_sharing_stdin};
use super::plot::PlotArgs;
use super::structure::StructureResult;
use super::{usage, wording};
use crate::PageOptions;
use crate::data::Reservoir;
use crate::dist::Uniting;
use crate::files::OutputFile;
use crate::learn::{Algorithm, DataChanges, EmSettings, Health, KComparison, Lineage};
use crate::learn::{MergeReport, RowWeights};
use crate::linalg::{CovarianceType, Factor};
use crate::model::{Labels, Model, Recipe, Seal};
use crate::text::count;
use crate::text::number::{NONE, condition, decimal, mean_and_spread};

/// Print a model file: its clusters and components, and how it was learned
///
/// A component is one Gaussian; a cluster is a group of rows. A cluster that is skewed, curved or heavy-tailed takes several components, so there are often more components than clusters. 'show' unites components that rows cannot tell apart (--overlap) and lists the clusters with their weights.
///
/// A component keeps its identifier through --resume, through 'merge', and through revisions that do not change it. The parts of a split and the result of a join get new identifiers (--history). A cluster is named after the smallest identifier among its components and their ancestors by splits and joins that no other cluster has, so its name stays while its components change. An outlier component holds less than 0.1 % of the rows, far from all others or spread over more room than all others together. It belongs to no cluster.
///
/// The table lists the components, the heaviest first: the identifier; the cluster; the weight, which is the fraction of rows that it explains; κ, the number of rows that its mean is based on (Bayesian learners only), which a discount reduces; the condition number of its correlation matrix, which does not depend on units (1 is uncorrelated, a large value means that columns are nearly functions of each other); and for each column of the data the mean ± the standard deviation; between them, the rows between which it was active: some row most probably belonged to it. --all lists what does not fit on a screen. The last line counts the numerical safeguards that were triggered. With --plot and --quiet only the picture is written.
///
/// The model may be a checkpoint of a fit that is still running ('fit --checkpoint').
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  gmm-bmm show model.json
  gmm-bmm show model.json --k 6
  gmm-bmm show model.json --history
  gmm-bmm show model.json --json
  gmm-bmm show model.json --plot model.svg
  gmm-bmm show model.json --html model.html
  gmm-bmm show model.json --plot model.png --plot-axes Length,Rings --data abalone")]
pub(super) struct Args {
    /// The model file ('-' is standard input)
    #[arg(value_name = "MODEL")]
    model: PathBuf,

    #[command(flatten)]
    one_k: OneK,

    /// List all components, columns and clusters, not only the first ones
    #[arg(long)]
    all: bool,

    /// List the revisions of the structure instead of the components
    ///
    /// For each revision the table has: the rows seen by then; the reason; whether the revised mixture was kept; its gain per row on validation rows, which decides whether it is kept; and the moves, which split one component in two and join two others. The reasons are 'number of rows' (it has doubled since the last revision; the intervals grow where revisions change nothing, and are shorter after a new kind of rows), 'new kind of rows' (many rows had a density lower than nearly all rows before), 'end of the stream' and 'merge of shards'. Of several K learned in one pass, the history is that of the K shown. --json always contains it.
    #[arg(long)]
    history: bool,

    #[command(flatten)]
    clusters: ClusterArgs,

    #[command(flatten)]
    plot: PlotArgs,

    /// Write a page to look at: one HTML file that needs neither a network nor other files
    ///
    /// It shows the clusters with their weights, a profile of each against all rows, a plot of two columns that are chosen by a click, the course of the prequential score with revisions and changes of the data, the score against K, and findings. It contains a few hundred of the rows that the model file keeps, or of those of --data. With --quiet only the page is written.
    #[arg(long, value_name = "FILE", help_heading = "Picture")]
    html: Option<PathBuf>,

    /// Rows to show in the picture or on the page: CSV files, '-' for standard input, or a set of the catalogue
    #[arg(long, value_name = "FILE|NAME", help_heading = "Data")]
    data: Vec<PathBuf>,

    #[command(flatten)]
    reading: ReadingArgs,
}

/// What is listed without --all, so that it fits on a screen.
const MAX_CLUSTERS: usize = 8;
const MAX_COMPONENTS: usize = 5;
const MAX_COLUMNS: usize = 10;

#[derive(Debug, Serialize)]
struct Shown {
    tool: String,
    algorithm: ShownAlgorithm,
    #[serde(skip)]
    made_by: String,
    seed: u64,
    rows: u64,
    /// The weights of these rows, if a row had another than 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    weights: Option<RowWeights>,
    /// The number of further rows after which a row has half its weight, if rows lose weight.
    half_life: Option<u64>,
    /// Where the data change, if they do.
    data_changes: Option<DataChanges>,
    columns: Vec<String>,
    k: usize,
    prequential_log_likelihood: Option<f64>,
    prequential_rows: u64,
    /// The K that is used unless another is asked for.
    best_k: usize,
    /// Each K in the file, with its score.
    #[serde(flatten)]
    choice: KComparison,
    #[serde(flatten)]
    structure: StructureResult,
    /// Whether the start was fitted to all rows. A resumed run fits it again, with the rows in the file.
    waiting_for_rows: bool,
    /// Where it comes from, if it is a shard or merged from shards.
    lineage: Option<Lineage>,
    /// How well the shards agree.
    merged: Option<MergeReport>,
    #[serde(flatten)]
    clusters: ClustersResult,
    #[serde(skip)]
    all: bool,
    components: Vec<ShownComponent>,
    health: Health,
    /// Where the picture is, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    plot: Option<PathBuf>,
    /// Where the page is, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    html: Option<PathBuf>,
}

/// What made the model, with its own settings.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum ShownAlgorithm {
    Em(EmSettings),
    Truth,
    #[serde(untagged)]
    Online(Algorithm),
}

impl ShownAlgorithm {
    fn of(recipe: &Recipe) -> Self {
        match recipe {
            Recipe::Em { settings, .. } => ShownAlgorithm::Em(*settings),
            Recipe::Truth { .. } => ShownAlgorithm::Truth,
            Recipe::Online(settings) => ShownAlgorithm::Online(settings.algorithm),
        }
    }
}

#[derive(Debug, Serialize)]
struct ShownComponent {
    /// Its lasting identifier.
    identifier: u64,
    /// The name of its cluster; none of an outlier component.
    cluster: Option<u64>,
    outlier: bool,
    weight: f64,
    /// The first and the last row at which it was active, if that is known.
    first_row: Option<u64>,
    last_row: Option<u64>,
    /// Rows that its mean is based on (`κ`), where the model is Bayesian.
    worth_rows: Option<f64>,
    mean: Vec<f64>,
    standard_deviation: Vec<f64>,
    /// Row after row, or the variances alone where columns have no correlations.
    #[serde(serialize_with = "matrix_or_variances")]
    covariance: Factor,
    /// Lower bound of the condition number of its correlation matrix.
    condition: f64,
}

pub(super) fn run(args: &Args, console: &Console) -> anyhow::Result<()> {
    refuse_sharing_stdin(&args.model, &args.data)?;
    args.reading.refuse_weights()?;
    let data = args.reading.files(&args.data)?;
    let outputs = [&args.plot.plot, &args.html];
    if !data.is_empty() && outputs.iter().all(|output| output.is_none()) {
        return Err(usage("--data gives rows to a picture or a page: add --plot FILE or --html FILE"));
    }
    refuse_overwriting(outputs.into_iter().flatten(), data.iter().chain([&args.model]))?;
    let plot = args.plot.open()?;
    let html = args.html.as_deref().map(create_page).transpose()?;
    let (model, seal) = read_sealed_model(&args.model)?;
    if seal == Seal::Missing {
        console.note("the file has no checksum, so changes to it cannot be noticed");
    }
    let (best_k, choice, whole) = (model.k(), model.choice(), html.as_ref().map(|_| model.clone()));
    let model = args.one_k.of(model, &args.model)?;
    let labels = args.clusters.labels(&model)?;
    let sample = sample(args, &model, console)?;
    if let Some(plot) = plot {
        args.plot.write(plot, &model, &labels, sample.as_ref())?;
    }
    if let Some((html, whole)) = html.zip(whole) {
        write_page(args, html, &whole, sample.as_ref())?;
    }
    if outputs.iter().any(|output| output.is_some()) && !console.tells_of_files() {
        return Ok(());
    }
    let shown = shown(&model, &labels, args.clusters.uniting());
    let (plot, html) = (args.plot.plot.clone(), args.html.clone());
    let shown = Shown { best_k, choice, all: args.all, plot, html, ..shown };
    console.result(&shown, if args.history { describe_history } else { describe })?;
    Ok(())
}

/// Writes the page of a model. It has rows of the data, so a new file is for its owner alone.
fn write_page(
    args: &Args,
    mut to: OutputFile,
    whole: &Model,
    sample: Option<&Reservoir>,
) -> anyhow::Result<()> {
    let dim = whole.summaries().len();
    let values: Option<Vec<f64>> = sample.map(|sample| sample.rows().flatten().copied().collect());
    let rows = values.as_deref().map(|values| ArrayView2::from_shape((values.len() / dim, dim), values));
    let options = PageOptions {
        k: args.one_k.k,
        clusters: args.clusters.uniting(),
        rows: rows.transpose().expect("rows are whole"),
        findings: whole.findings().iter().map(wording::finding).collect(),
    };
    let page = whole.to_html(&options).expect("the K was found before");
    to.keep_private()?;
    to.write_all(page.as_bytes())?;
    Ok(to.commit()?)
}

/// A sample of the rows for the picture and the page; `None` where no data are given.
fn sample(args: &Args, model: &Model, console: &Console) -> anyhow::Result<Option<Reservoir>> {
    let names = model.column_names();
    args.plot.check(&names.names)?;
    if args.data.is_empty() {
        return Ok(None);
    }
    let mut sample = PlotArgs::empty_sample(names.names.len(), model.seed());
    let mut rows = args.reading.open(&args.data, model.seed(), Some(names), console)?;
    each_block(&mut rows, StopFlag::new(None), console, |block, _, _| {
        block.iter().for_each(|row| sample.offer(row));
        Ok(())
    })?;
    anyhow::ensure!(sample.seen() > 0, "there are no rows to show");
    Ok(Some(sample))
}

fn shown(model: &Model, labels: &Labels, uniting: Uniting) -> Shown {
    let mixture = model.estimate();
    let kappas: Vec<Option<f64>> = match model.posterior() {
        Some(posterior) => posterior.components().iter().map(|component| Some(component.kappa())).collect(),
        None => vec![None; mixture.k()],
    };
    let active = model.active_rows();
    let describe = |j: usize| {
        let gaussian = &mixture.components()[j];
        ShownComponent {
            identifier: labels.identifiers()[j],
            cluster: labels.clusters().of(j).map(|cluster| labels.cluster_name(cluster)),
            outlier: labels.clusters().of(j).is_none(),
            weight: mixture.weights()[j],
            first_row: active[j].map(|rows| rows.first),
            last_row: active[j].map(|rows| rows.last),
            worth_rows: kappas[j],
            mean: gaussian.mean().to_vec(),
            standard_deviation: gaussian.covariance().diagonal().iter().map(|v| v.sqrt()).collect(),
            covariance: gaussian.covariance().clone(),
            condition: gaussian.covariance().condition_estimate(),
        }
    };
    let components = mixture.heaviest_first().into_iter().map(describe).collect();
    Shown {
        tool: model.tool().to_string(),
        algorithm: ShownAlgorithm::of(model.recipe()),
        made_by: model.recipe().describe(),
        seed: model.seed(),
        rows: model.rows(),
        weights: model.weights().cloned(),
        half_life: model.half_life(),
        data_changes: model.data_changes().cloned(),
        columns: model.column_names().names,
        k: mixture.k(),
        prequential_log_likelihood: model.prequential().mean(),
        prequential_rows: model.prequential().rows,
        best_k: model.k(),
        choice: model.choice(),
        structure: StructureResult::of(model),
        waiting_for_rows: model.waits_for_rows(),
        lineage: model.lineage().cloned(),
        merged: model.merge_report().cloned(),
        clusters: ClustersResult::of(model, labels, uniting),
        all: false,
        components,
        health: model.health(),
        plot: None,
        html: None,
    }
}

fn matrix_or_variances<S: Serializer>(covariance: &Factor, serializer: S) -> Result<S::Ok, S::Error> {
    match covariance.kind() {
        CovarianceType::Diag | CovarianceType::Spherical => serializer.collect_seq(covariance.diagonal()),
        _ => serializer.collect_seq(covariance.matrix().rows().into_iter().map(|row| row.to_vec())),
    }
}

/// The first line: what was learned from what.
fn heading(shown: &Shown) -> String {
    let weights = match &shown.weights {
        None => String::new(),
        Some(RowWeights { column: Some(column), .. }) => format!(" with the weights of column '{column}'"),
        Some(_) => " with weights".into(),
    };
    format!(
        "{} over {}, learned from {}{weights} by {}, seed {}, gmm-bmm {}\n",
        count(shown.k as u64, "component"),
        count(shown.columns.len() as u64, "column"),
        count(shown.rows, "row"),
        shown.made_by,
        shown.seed,
        shown.tool
    )
}

fn describe_history(shown: &Shown) -> String {
    let mut text = heading(shown);
    text += &match shown.structure.describe_revisions() {
        Some(revisions) => format!("{revisions}\n"),
        None => "no revisions: this model has nothing to revise\n".into(),
    };
    let history = shown.structure.history();
    if !history.is_empty() {
        text += &format!("\n{history}");
    }
    text + &describe_plot(shown)
}

fn describe_plot(shown: &Shown) -> String {
    let written = |what: &str, file: &Option<PathBuf>| {
        file.as_ref().map_or(String::new(), |file| format!("{what} written to {}\n", file.display()))
    };
    written("picture", &shown.plot) + &written("page", &shown.html)
}

fn describe(shown: &Shown) -> String {
    let mut text = heading(shown);
    if let Some(score) = shown.prequential_log_likelihood {
        text += &format!(
            "prequential log-likelihood {} per row, over {}\n",
            decimal(score, 4),
            count(shown.prequential_rows, "row")
        );
    }
    if let Some(rows) = shown.half_life {
        text += &format!("half-life: {}\n", count(rows, "row"));
    }
    if let Some(changes) = &shown.data_changes {
        text += &format!("{}\n", changes.finding(shown.half_life.is_some()));
    }
    text += &describe_several(shown);
    if let Some(lineage) = &shown.lineage {
        let shards = match lineage.shards.len() {
            1 => "one shard".to_string(),
            several => format!("{several} shards merged"),
        };
        let rows = count(lineage.prior_rows, "row");
        text += &format!("{shards}, from common prior {} of {rows}\n", lineage.prior);
    }
    if let Some(report) = &shown.merged {
        let most = report.disagreement.iter().copied().fold(0.0, f64::max);
        text += &format!(
            "shards differ from the merged model by {most:.4} at most (Bhattacharyya distance, mean over shards)\n"
        );
    }
    text += &describe_structure(shown);
    text += &shown.clusters.describe(if shown.all { usize::MAX } else { MAX_CLUSTERS });
    text += &component_table(shown);
    text += &describe_safeguards(&shown.health);
    text + &describe_plot(shown)
}

/// The other K in the file. Empty where there are none.
fn describe_several(shown: &Shown) -> String {
    let candidates = &shown.choice.candidates;
    let others = candidates.iter().filter(|candidate| candidate.k != shown.k);
    let scores: Vec<String> =
        others.filter_map(|other| Some(format!("K={} {}", other.k, decimal(other.score?, 4)))).collect();
    let mut text =
        describe_ks(&shown.choice, shown.best_k, matches!(shown.algorithm, ShownAlgorithm::Online(_)));
    if !scores.is_empty() {
        text += &format!("other K: {}\n", scores.join(", "));
        text += &describe_elbow(&shown.choice, shown.best_k);
    }
    text
}

fn describe_structure(shown: &Shown) -> String {
    let mut text = String::new();
    if let Some(revisions) = shown.structure.describe_revisions() {
        text += &format!("{revisions}\n");
    }
    if shown.structure.is_blind() {
        text += "start: blind, with components drawn around the mean and covariance of the first few rows\n";
    }
    if let Some(effort) = shown.structure.effort() {
        text += &format!("effort: {effort}\n");
    }
    if let Some(prior) = shown.structure.describe_prior() {
        text += &format!("{prior}\n");
    }
    text += &format!("the file {}\n", shown.structure.describe_rows());
    if shown.structure.used_all_rows() {
        text += &format!("all {} were used\n", count(shown.rows, "row"));
    } else if shown.waiting_for_rows {
        text += "the mixture is provisional: the start waits for more rows, or was interrupted\n";
    }
    text
}

/// The properties of each component, and below a blank line, since a column may have any name, mean ± standard deviation
/// for each column of the data.
fn component_table(shown: &Shown) -> String {
    const PER_TABLE: usize = 5;
    let most = |limit: usize, all: usize| if shown.all { all } else { limit.min(all) };
    let (columns, components) =
        (most(MAX_COLUMNS, shown.columns.len()), most(MAX_COMPONENTS, shown.components.len()));
    let width =
        shown.columns.iter().map(|name| name.chars().count()).max().unwrap_or(0).clamp("component".len(), 30);
    let mut text = String::new();
    for group in shown.components[..components].chunks(PER_TABLE) {
        let line = |head: &str, cells: Vec<String>| {
            let cells: String = cells.iter().map(|cell| format!("  {cell:>23}")).collect();
            format!("{head:<width$}{cells}\n")
        };
        text += "\n";
        text += &line("component", group.iter().map(|c| c.identifier.to_string()).collect());
        let cluster = |c: &ShownComponent| c.cluster.map_or("outliers".into(), |cluster| cluster.to_string());
        text += &line("cluster", group.iter().map(cluster).collect());
        text += &line("weight", group.iter().map(|c| format!("{:.4}", c.weight)).collect());
        if group.iter().any(|c| c.first_row.is_some()) {
            let active = |c: &ShownComponent| match (c.first_row, c.last_row) {
                (Some(first), Some(last)) => format!("{first}–{last}"),
                _ => NONE.to_string(),
            };
            text += &line("active rows", group.iter().map(active).collect());
        }
        if group[0].worth_rows.is_some() {
            let worth = |c: &ShownComponent| format!("{:.1}", c.worth_rows.unwrap_or(0.0));
            text += &line("κ", group.iter().map(worth).collect());
        }
        text += &line("condition", group.iter().map(|c| condition(c.condition)).collect());
        text += "\n";
        for (j, name) in shown.columns[..columns].iter().enumerate() {
            let short: String = name.chars().take(30).collect();
            let cell = |c: &ShownComponent| mean_and_spread(c.mean[j], c.standard_deviation[j]);
            text += &line(&short, group.iter().map(cell).collect());
        }
    }
    text += &describe_rest(shown, components, columns);
    text + "\nweight: fraction of the rows; κ: rows that the mean is based on; condition: of the correlations, 1 is none; below: mean ± \
     standard deviation\n"
}

/// What the table leaves out.
fn describe_rest(shown: &Shown, components: usize, columns: usize) -> String {
    let rest = |all: usize, listed: usize, what: &str| {
        (listed < all).then(|| count((all - listed) as u64, &format!("more {what}")))
    };
    let rest: Vec<String> =
        [rest(shown.components.len(), components, "component"), rest(shown.columns.len(), columns, "column")]
            .into_iter()
            .flatten()
            .collect();
    if rest.is_empty() {
        String::new()
    } else {
        format!("\n… and {} (--all lists them)\n", rest.join(" and "))
    }
}

fn describe_safeguards(health: &Health) -> String {
    let counts = [
        (health.rows_out_of_range, "row", "too far from every component to be learned"),
        (health.pivots_raised, "time", "a column's variance was held at its floor"),
        (health.nu_floored, "time", "a projection was held at the fewest degrees of freedom"),
        (health.literal_steps_kept, "time", "the paper's equations had no solution"),
        (health.rows_set_aside, "validation row", "far from every component at the end, and not learned"),
        (health.components_damped, "component", "had a product over the shards that was damped"),
    ];
    let triggered = counts.into_iter().filter(|(number, ..)| *number > 0);
    let triggered: Vec<String> =
        triggered.map(|(number, thing, what)| format!("{} {what}", count(number, thing))).collect();
    match triggered.is_empty() {
        true => "numerical safeguards: none triggered (this says nothing about the fit)\n".into(),
        false => format!("numerical safeguards: {}\n", triggered.join("; ")),
    }
}
