//! `gmm-bmm eval`: score data under a model.

mod scorer;
mod selection;
mod target;

use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;

use super::choice::OneK;
use super::clusters::{ClusterArgs, parse_probability};
use super::console::Console;
use super::data_args::{DataArgs, MissingResult, each_block};
use super::files::{Output, StopFlag, is_dash, refuse_overwriting, refuse_sharing_stdin};
use super::usage;
use crate::data::{BadRow, BadRows, Block, Missing, ReadOptions, RowReader};
use crate::experiment::Units;
use crate::learn::{Prequential, ScoreSink};
use crate::stats::BatchSums;
use crate::text::number::decimal;
use crate::text::{count, csv_cell};
use scorer::{COLUMNS, Scorer, WatchedModel};
use selection::Selection;

/// Score data under a model
///
/// Prints the mean log-likelihood per row (natural logarithm) with its standard error. --scores writes the score and the labels of each row. The standard error is taken over batches of consecutive rows, because neighbouring rows may be alike; it is large for a file that is sorted by class, unless --shuffle-buffer mixes the rows. Columns are matched by name where both the model and the data have names, and by position otherwise. --columns can name other columns in the order of the model's; a note then says which column takes the place of which.
///
/// The model may be a checkpoint of a fit that is still running ('fit --checkpoint').
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  gmm-bmm eval --model model.json --data test.csv
  gmm-bmm eval --model model.json --data test.csv --k 6
  gmm-bmm predict --model model.json --data test.csv --scores labels.csv
  gmm-bmm predict --model model.json --data - --scores - <test.csv | cut -d, -f5
  gmm-bmm predict --model model.json --data today.csv --scores ranks.csv --explain --keep timestamp,id
  gmm-bmm predict --model model.json --data today.csv --scores - --explain --top 20
  gmm-bmm predict --model model.json --data today.csv --scores anomalies.csv --contamination 0.01
  sensors | gmm-bmm predict --model model.json --data - --scores - --follow --max-rank 0.001
  gmm-bmm predict --model model.json --data new.csv --target power --interval 0.9 --scores power.csv
  sensors | gmm-bmm predict --model model.json --data - --scores - --follow
  gmm-bmm eval --model model.json --data abalone --units zscore --json")]
pub(super) struct Args {
    /// The model file ('-' is standard input)
    #[arg(long, short, value_name = "FILE")]
    model: PathBuf,

    #[command(flatten)]
    one_k: OneK,

    /// Write the score and the labels of each row to this CSV file ('-' is standard output, where nothing else is printed then)
    ///
    /// The columns are: 'row', the number of the row in the data; 'log_likelihood'; 'component', the identifier of the most probable component; 'probability', the probability of that component given the row; 'cluster', the name of that component's cluster; 'outlier', 1 if it is an outlier component, whose 'cluster' is 0; 'rank', the fraction of the rows that the model was learned from with a lower log-density (empty for a file of an earlier version), so that an anomaly has a rank near 0 (a row with missing values has the rank of a whole row that is as rare, and outlier components do not count, so that their rows have a rank near 0 too); 'not_scored', why a row has no score, and empty otherwise. Components, clusters and identifiers are those of 'gmm-bmm show', whose help explains them.
    ///
    /// With --bad-rows skip, a row that cannot be scored is listed with empty fields and the reason, so that the scores have a line for every row of the data.
    #[arg(long, value_name = "FILE")]
    scores: Option<PathBuf>,

    /// Add a column 'explanation' that names the columns responsible for a low score
    ///
    /// It has up to three columns that are improbable given the other columns of the row, the most improbable first, such as 'temp:+6.1 flow:-3.2'. The number is the deviation, in standard deviations of the column, at which a normal distribution has the density that the mixture gives the value. Columns that deviate by less than 2 are left out, except the first.
    #[arg(long, requires = "scores")]
    explain: bool,

    /// Copy these columns of the data to the scores, by name, number or range ('timestamp,id'); they may hold text
    #[arg(long, value_delimiter = ',', value_name = "LIST", requires = "scores")]
    keep: Vec<String>,

    /// Write only rows with a rank of at most R, such as 0.001
    ///
    /// Rows that have no score are not written either; they are counted as without this option.
    #[arg(long, value_name = "R", requires = "scores", value_parser = parse_probability, allow_negative_numbers = true)]
    max_rank: Option<f64>,

    /// Write only the N most unusual rows, the most unusual first
    #[arg(long, value_name = "N", requires = "scores", value_parser = clap::value_parser!(u32).range(1..))]
    top: Option<u32>,

    /// Add columns 'anomaly', 1 for an anomaly, and 'anomaly_score', which is the lower the more unusual the row is
    ///
    /// SHARE is the share of anomalies among the rows that the model was learned from, at most 0.5, such as 0.01. A row is an anomaly if its score is lower than that of this share of them. 'auto' does not know the share: a row is an anomaly if it is more unusual than 99 of 100 rows that the mixture generates. The score counts neither components that are lighter than the share ('auto': 0.1) nor small distances within narrow components, and it counts how far a row is from all others. With --top, it decides on the order.
    #[arg(long, value_name = "SHARE", requires = "scores", value_parser = Contamination::parse)]
    contamination: Option<Contamination>,

    /// Predict these columns from the others, by name, number or range; needs --scores
    ///
    /// The file of --scores then has 'NAME_mean' and 'NAME_std' for each target: the mean and the standard deviation of its distribution given the other columns of the model. Values of the targets in the data are not used and need not be there; --keep copies them to the scores. With --missing marginal, other values may be missing too.
    #[arg(long, value_delimiter = ',', value_name = "LIST", requires = "scores", conflicts_with_all = ["contamination", "explain", "follow", "max_rank", "predictive", "top", "units"])]
    target: Vec<String>,

    /// Add bounds 'NAME_low' and 'NAME_high' between which the target lies with this probability
    #[arg(long, value_name = "SHARE", requires = "target", value_parser = parse_share)]
    interval: Option<f64>,

    /// Score rows as they arrive, and read --model again when the file changes; needs --scores -
    ///
    /// A score is written as soon as its line is complete. Standard input and pipes are read to their end; a regular file is followed, as 'tail -F' does, until Ctrl-C: a new file that takes its name, as when a log is rotated, is read after it, without its header. A row that cannot be scored is listed and does not end the run. Each line is one row, so a quoted cell cannot have several lines. A new model file takes effect with the next row, if it is intact and has the same columns; otherwise the model so far stays in use.
    #[arg(long, requires = "scores")]
    follow: bool,

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

/// The share of anomalies, if it is known.
#[derive(Debug, Clone, Copy)]
struct Contamination(Option<f64>);

impl Contamination {
    fn parse(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "auto" => Ok(Contamination(None)),
            Ok(share) if 0.0 < share && share <= 0.5 => Ok(Contamination(Some(share))),
            _ => Err("give 'auto' or a number above 0 and at most 0.5, such as 0.01".into()),
        }
    }
}

#[derive(Debug, Serialize)]
struct EvalResult {
    rows: u64,
    /// Their total weight, if they have weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<f64>,
    rows_skipped: u64,
    /// Rows in the scores, if they were selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows_written: Option<u64>,
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
    if args.follow && !args.prints_scores() {
        return Err(usage(
            "--follow writes scores as rows arrive: use --scores -, and redirect standard output to a file",
        ));
    }
    if args.follow && args.top.is_some() {
        return Err(usage("--follow has no last row, which --top needs: use --max-rank"));
    }
    let files = args.data.files()?;
    if args.follow && files.len() > 1 {
        return Err(usage("--follow reads one file or standard input: name one"));
    }
    refuse_overwriting(args.scores.iter(), files.iter().chain([&args.model]))?;
    let model = args.one_k.read(&args.model)?;
    if !args.target.is_empty() {
        return target::run(args, &model, console);
    }
    let watched = args.follow.then(|| WatchedModel::new(&args.model));
    let scorer = Scorer::new(args, &model)?;
    let rows = args.data.open_with(scorer.seed, Some(scorer.columns.clone()), console, |o| args.adapt(o))?;
    args.data.reading.note_weights(model.weights(), &rows, console);
    let result = Evaluation::new(args, scorer, watched, &rows)?.run(rows, console)?;
    // If the scores go to standard output, nothing else does.
    if !args.prints_scores() {
        console.result(&result, describe)?;
    }
    Ok(())
}

fn parse_share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if 0.0 < share && share < 1.0 => Ok(share),
        _ => Err("give a number between 0 and 1, such as 0.9".into()),
    }
}

impl Args {
    fn prints_scores(&self) -> bool {
        self.scores.as_deref().is_some_and(is_dash)
    }

    /// Whether rows that cannot be scored are listed.
    fn lists_bad_rows(&self) -> bool {
        self.follow || self.scores.is_some() && self.data.reading.skips_bad_rows()
    }

    fn adapt(&self, options: ReadOptions) -> ReadOptions {
        let mut options = options.keep(&self.keep);
        if self.scores.is_some() {
            options = options.list_skipped_rows();
        }
        if self.follow {
            // Nothing but the user ends the run.
            let gaps = if self.data.reading.takes_gaps() { Missing::Marginal } else { Missing::Skip };
            options.bad_rows(BadRows::Skip).missing(gaps).follow()
        } else if self.prints_scores() {
            options.prompt()
        } else {
            options
        }
    }
}

const NO_DENSITY: &str = "so far from every component that its density is zero in double precision: look for a wrong unit \
                          or a stray value";

/// The scores so far.
struct Evaluation<'a> {
    args: &'a Args,
    scorer: Scorer,
    watched: Option<WatchedModel>,
    stop: StopFlag<'a>,
    scores: Option<Output>,
    selection: Selection,
    scored: Prequential,
    batches: BatchSums,
    /// Rows of density zero.
    without_density: u64,
    /// Rows of which all values are missing.
    without_values: u64,
}

impl<'a> Evaluation<'a> {
    fn new(
        args: &'a Args,
        scorer: Scorer,
        watched: Option<WatchedModel>,
        rows: &RowReader,
    ) -> anyhow::Result<Self> {
        let stop = StopFlag::new(args.scores.as_deref());
        let mut scores = args.scores.as_deref().map(Output::open_table).transpose()?;
        if let Some(file) = &mut scores {
            if !args.keep.is_empty() {
                file.keep_private()?;
            }
            let explanation = if args.explain { ",explanation" } else { "" };
            let anomaly = if args.contamination.is_some() { ",anomaly,anomaly_score" } else { "" };
            writeln!(file, "{COLUMNS}{explanation}{anomaly}{}", cells(rows.kept_columns()))?;
            file.flush()?;
        }
        let (scored, batches) = (Prequential::default(), BatchSums::new(vec![0.0]));
        Ok(Evaluation {
            args,
            scorer,
            watched,
            stop,
            scores,
            selection: Selection::new(args.max_rank, args.top),
            scored,
            batches,
            without_density: 0,
            without_values: 0,
        })
    }

    fn run(mut self, mut rows: RowReader, console: &Console) -> anyhow::Result<EvalResult> {
        each_block(&mut rows, self.stop, console, |block, rows, before| {
            if let Some(watched) = &mut self.watched {
                watched.update(&mut self.scorer, self.args, console);
            }
            if let Some(noise) = &self.scorer.noise {
                let first = rows.rows_read() - block.rows() as u64;
                noise.add_to(block.values_mut(), self.scorer.columns.len(), first);
            }
            self.score(block, rows, before)?;
            if let Some(file) = self.scores.as_mut().filter(|_| self.args.prints_scores()) {
                file.flush()?;
            }
            Ok(())
        })?;
        if self.without_density > 0 {
            let are = if self.without_density == 1 { "is" } else { "are" };
            console.warn(&format!("{} {are} {NO_DENSITY}", count(self.without_density, "row")));
        }
        if self.without_values > 0 {
            console
                .warn(&format!("{} without any value cannot be scored", count(self.without_values, "row")));
        }
        anyhow::ensure!(self.scored.rows > 0 || self.args.follow, "there are no rows to score");
        let rows_written = self.selection.rows_written();
        if let Some(mut file) = self.scores {
            file.write_all(self.selection.top().concat().as_bytes())?;
            file.commit()?;
        }
        Ok(EvalResult {
            rows: self.scored.rows,
            weight: self.scored.weight,
            rows_skipped: rows.rows_skipped() + self.without_density + self.without_values,
            rows_written,
            missing: MissingResult::of(&rows),
            k: self.scorer.k(),
            columns: self.scorer.columns.names,
            mean_log_likelihood: self.scored.mean().unwrap_or(0.0),
            standard_error: self.batches.standard_error(0),
            predictive: self.args.predictive,
            units: self.args.units,
        })
    }

    /// Scores a block of rows that follow `before` others.
    fn score(&mut self, block: &Block, rows: &RowReader, before: u64) -> anyhow::Result<()> {
        let (log_densities, responsibilities) = self.scorer.score(block.view());
        let of_missing = self.scores.as_ref().and_then(|_| self.scorer.log_density_of_missing(block.view()));
        let anomalies = self.scores.as_ref().and_then(|_| self.scorer.anomaly_scores(block.view()));
        for (place, row) in in_order(block, rows) {
            let i = match row {
                Ok(i) => i,
                Err(bad) => {
                    self.write_unscored(before, place, &bad.problem.to_string(), rows)?;
                    continue;
                }
            };
            let log_density = log_densities[i];
            if !log_density.is_finite() {
                anyhow::ensure!(
                    self.args.lists_bad_rows(),
                    "row {} of those read is {NO_DENSITY}",
                    self.scored.rows + 1
                );
                self.without_density += 1;
                self.write_unscored(before, place, "the density is zero in double precision", rows)?;
                continue;
            }
            if block.row(i).iter().all(|value| value.is_nan()) {
                self.without_values += 1;
                self.write_unscored(before, place, "the row has no value", rows)?;
                continue;
            }
            let score = log_density + self.scorer.shift(block.row(i));
            let weight = block.weights().map(|weights| weights[i]);
            if weight != Some(0.0) {
                self.scored.add(&[score], weight.as_ref().map(std::slice::from_ref));
                let weight = weight.as_ref().map(std::slice::from_ref);
                self.batches.record_weighted(1, weight, &[self.scored.log_likelihood]);
            }
            if let Some(file) = &mut self.scores {
                let own = responsibilities.row(i).to_vec();
                let of_missing = of_missing.as_ref().map_or(0.0, |all| all[i]);
                let usualness = self.scorer.usualness(log_density, of_missing, &own);
                let rank = self.scorer.rank(usualness);
                let anomaly = anomalies.as_ref().map(|scores| scores[i]);
                let usualness = anomaly.unwrap_or(usualness);
                if self.selection.takes(usualness, rank) {
                    let fields = self.scorer.fields(block.row(i), log_density, rank, &own, anomaly);
                    let line = line(before, place, &fields, rows);
                    self.selection.keep_or(usualness, line, |line| file.write_all(line.as_bytes()))?;
                }
            }
        }
        Ok(())
    }

    /// Writes the line of a row without a score, unless rows are selected.
    fn write_unscored(
        &mut self,
        before: u64,
        place: u64,
        reason: &str,
        rows: &RowReader,
    ) -> anyhow::Result<()> {
        let Some(file) = self.scores.as_mut().filter(|_| self.selection.takes_all()) else { return Ok(()) };
        let fields = self.scorer.empty_fields(reason);
        Ok(file.write_all(line(before, place, &fields, rows).as_bytes())?)
    }
}

/// The places of the rows that were read for a block, each with its row in the block, or with a row that was skipped.
fn in_order<'a>(block: &Block, rows: &'a RowReader) -> Vec<(u64, Result<usize, &'a BadRow>)> {
    let bad = rows.listed_rows().iter().map(|(place, bad)| (*place, Err(bad)));
    let mut all: Vec<_> = bad.chain((0..block.rows()).map(|i| (block.place(i), Ok(i)))).collect();
    all.sort_by_key(|(place, _)| *place);
    all
}

/// The line of a row, with its number in the block, from 1.
fn line(before: u64, place: u64, fields: &str, rows: &RowReader) -> String {
    format!("{},{fields}{}\n", before + place, kept(rows, place))
}

/// The kept cells of a row, with its number in the block, as the rest of its line.
fn kept(rows: &RowReader, place: u64) -> String {
    rows.kept_cells().get(place as usize - 1).map_or(String::new(), |kept| cells(kept))
}

/// Texts as the rest of a line.
fn cells(texts: &[String]) -> String {
    texts.iter().map(|text| format!(",{}", csv_cell(text))).collect()
}

fn describe(result: &EvalResult) -> String {
    let error = result.standard_error.map_or(String::new(), |error| format!(" ± {}", decimal(error, 4)));
    let written =
        result.rows_written.map_or(String::new(), |rows| format!("; {} written", count(rows, "row")));
    format!(
        "mean log-likelihood {}{error} per row, over {} of {} under {}{written}\n",
        decimal(result.mean_log_likelihood, 4),
        count(result.rows, "row"),
        count(result.columns.len() as u64, "column"),
        count(result.k as u64, "component")
    )
}
