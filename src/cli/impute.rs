//! `gmm-bmm impute`: fill missing values.

use std::io::Write;
use std::path::PathBuf;

use ndarray::ArrayViewMut2;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::choice::OneK;
use super::console::Console;
use super::data_args::{MissingResult, ReadingArgs, each_block};
use super::files::{Output, StopFlag, is_dash, refuse_overwriting, refuse_sharing_stdin};
use super::usage;
use crate::data::{Block, RowReader};
use crate::dist::GaussianMixture;
use crate::text::count;

/// Fill missing values from what a model knows about the other columns
///
/// Reads a CSV file and writes it again with every missing value of the model's columns replaced by its mean given the values that the row has. A row without any value gets the mean of the mixture. All other cells keep their text, and all other columns, the header and the order of rows and columns stay. Line ends become '\n', blank lines are dropped, and runs of blanks between cells become one. The rows of other formats are written as CSV.
///
/// Filled-in means are less spread out than the data, because each is the best single guess. Where a later analysis depends on the spread, use --draws: each copy has other plausible values, and the results of the copies differ by what is not known about the missing values.
#[derive(Debug, clap::Args)]
#[command(mut_arg("missing", |arg| arg.hide(true)), mut_arg("shuffle_buffer", |arg| arg.hide(true)))]
#[command(after_long_help = "Examples:
  gmm-bmm fit --data gaps.csv --missing marginal --k 5 --out model.json
  gmm-bmm impute --model model.json --data gaps.csv --out filled.csv
  gmm-bmm impute --model model.json --data gaps.csv --draws 5 --out draws.csv
  zcat gaps.csv.gz | gmm-bmm impute --model model.json --data - --out - | gzip >filled.csv.gz")]
pub(super) struct Args {
    /// The model file ('-' is standard input)
    #[arg(long, short, value_name = "FILE")]
    model: PathBuf,

    #[command(flatten)]
    one_k: OneK,

    /// Where to write the completed rows ('-' is standard output, where nothing else is printed then; a name that ends in .gz is compressed)
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,

    /// Write N copies of each row with random draws of its missing values, instead of one with their means
    ///
    /// The copies of a row follow each other. A last column 'draw' numbers them from 1, so that the rows with one number are one completed data set. A value is drawn from its distribution given the values that the row has.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    draws: Option<u16>,

    /// Seed of the draws; draw number i is the same for every N
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, requires = "draws")]
    seed: u64,

    /// CSV (also .gz), .npy, Parquet or Arrow file to read, '-' for standard input, or the name of a set in the catalogue
    #[arg(long, value_name = "FILE|NAME", help_heading = "Data")]
    data: PathBuf,

    #[command(flatten)]
    reading: ReadingArgs,
}

#[derive(Debug, Serialize)]
struct ImputeResult {
    rows: u64,
    rows_skipped: u64,
    /// What was missing and is filled now, if any value was missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<MissingResult>,
    columns: Vec<String>,
    /// Copies of each row, if values were drawn.
    draws: Option<u16>,
    out: PathBuf,
}

/// The column that numbers the draws.
const DRAW: &str = "draw";

pub(super) fn run(args: &Args, console: &Console) -> anyhow::Result<()> {
    let data = std::slice::from_ref(&args.data);
    refuse_sharing_stdin(&args.model, data)?;
    args.reading.refuse_weights()?;
    if args.reading.shuffles() {
        return Err(usage("the rows are written in the order of the file: leave out --shuffle-buffer"));
    }
    let files = args.reading.files(data)?;
    if files.len() != 1 {
        return Err(usage(format!("'{}' means {} files: give one", args.data.display(), files.len())));
    }
    refuse_overwriting([&args.out].into_iter(), files.iter().chain([&args.model]))?;
    let model = args.one_k.read(&args.model)?;
    let mut rows = args.reading.open_with_text(&args.data, model.column_names(), console)?;
    let stop = StopFlag::new(Some(&args.out));
    let mut out = Output::open_table(&args.out)?;
    out.keep_private()?;
    let mut filler = Filler::new(model.estimate(), args);
    write_header(&rows, args.draws.is_some(), &mut out)?;
    let mut written = 0;
    each_block(&mut rows, stop, console, |block, rows, _| {
        written += block.rows() as u64;
        Ok(out.write_all(filler.fill(rows, block))?)
    })?;
    anyhow::ensure!(written > 0, "there are no rows to complete");
    out.commit()?;
    if is_dash(&args.out) {
        return Ok(());
    }
    let result = ImputeResult {
        rows: written,
        rows_skipped: rows.rows_skipped(),
        missing: MissingResult::of(&rows),
        columns: rows.columns().names.clone(),
        draws: args.draws,
        out: args.out.clone(),
    };
    Ok(console.result(&result, describe)?)
}

fn write_header(rows: &RowReader, draws: bool, out: &mut Output) -> anyhow::Result<()> {
    let Some(header) = rows.header_text() else { return Ok(()) };
    let mut line = header.to_vec();
    if draws {
        let names = String::from_utf8_lossy(header).into_owned();
        let has_name = |name: &str| name.trim_matches([' ', '"']) == DRAW;
        anyhow::ensure!(
            !names.split(char::from(rows.texts().delimiter())).any(has_name),
            "the data have a column '{DRAW}' already, which --draws adds: rename or remove it"
        );
        line.push(rows.texts().delimiter());
        line.extend_from_slice(DRAW.as_bytes());
    }
    line.push(b'\n');
    Ok(out.write_all(&line)?)
}

/// Completes rows and writes them as text.
struct Filler {
    mixture: GaussianMixture,
    /// A generator for each draw; none where means are filled in.
    draws: Vec<ChaCha8Rng>,
    /// The values of a block for each copy.
    copies: Vec<Vec<f64>>,
    text: Vec<u8>,
}

impl Filler {
    fn new(mixture: GaussianMixture, args: &Args) -> Filler {
        // Each draw has a stream of its own, so that it depends neither on the other draws nor on the blocks.
        let generator = |draw: u16| {
            let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
            rng.set_stream(draw.into());
            rng
        };
        let draws: Vec<_> = (0..args.draws.unwrap_or(0)).map(generator).collect();
        let copies = vec![Vec::new(); draws.len().max(1)];
        Filler { mixture, draws, copies, text: Vec::new() }
    }

    /// The completed rows of a block as text.
    fn fill(&mut self, rows: &RowReader, block: &Block) -> &[u8] {
        let Filler { mixture, draws, copies, text } = self;
        for (draw, copy) in copies.iter_mut().enumerate() {
            copy.clear();
            copy.extend_from_slice(block.values());
            let view = ArrayViewMut2::from_shape((block.rows(), block.columns()), copy);
            let view = view.expect("a block holds whole rows");
            match draws.get_mut(draw) {
                Some(rng) => mixture.draw_missing(view, rng),
                None => mixture.impute(view),
            }
        }
        let texts = rows.texts();
        text.clear();
        for (i, row) in block.iter().enumerate() {
            for (draw, copy) in copies.iter().enumerate() {
                let filled = &copy[i * row.len()..(i + 1) * row.len()];
                // A circular column has one cell and two numbers.
                let (row, filled) = (rows.columns().contract(row), rows.columns().contract(filled));
                texts.write_filled(i, &row, &filled, text);
                if !draws.is_empty() {
                    text.push(texts.delimiter());
                    text.extend_from_slice((draw + 1).to_string().as_bytes());
                }
                text.push(b'\n');
            }
        }
        text
    }
}

fn describe(result: &ImputeResult) -> String {
    let values = result.missing.as_ref().map_or(0, |missing| missing.counts.values.iter().sum());
    let copies = match result.draws {
        Some(1) => " with 1 draw each".into(),
        Some(draws) => format!(" with {draws} draws each"),
        None => String::new(),
    };
    let (rows, values) = (count(result.rows, "row"), count(values, "missing value"));
    format!("{values} of {rows} filled{copies}: {}\n", result.out.display())
}
