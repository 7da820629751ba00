//! `predict --target`: columns predicted from the others.

use std::io::Write;

use ndarray::{Array2, s};
use serde::Serialize;

use super::{Args, cells, in_order, kept};
use crate::cli::console::Console;
use crate::cli::data_args::{MissingResult, each_block};
use crate::cli::files::{Output, StopFlag};
use crate::cli::{usage, usage_error};
use crate::data::{Block, RowReader, select_columns};
use crate::dist::GaussianMixture;
use crate::model::Model;
use crate::text::{count, csv_cell};

#[derive(Debug, Serialize)]
struct PredictResult {
    rows: u64,
    rows_skipped: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<MissingResult>,
    columns: Vec<String>,
    targets: Vec<String>,
    interval: Option<f64>,
    k: usize,
}

/// Predicts the target columns of each row and writes them to the scores.
pub(super) fn run(args: &Args, model: &Model, console: &Console) -> anyhow::Result<()> {
    args.data.reading.refuse_weights()?;
    let all = model.column_names();
    let targets = select_columns(&all.names, &args.target).map_err(usage_error)?;
    let given: Vec<usize> = (0..all.len()).filter(|i| !targets.contains(i)).collect();
    if given.is_empty() {
        return Err(usage("--target has all columns of the model, and none is left to predict them from"));
    }
    let names = |places: &[usize]| places.iter().map(|&i| all.names[i].clone()).collect::<Vec<_>>();
    let Some(expected) = all.subset(&given) else {
        return Err(usage("--target names one of the two columns of a circular column: name both"));
    };
    let mut rows =
        args.data.open_with(model.seed(), Some(expected), console, |options| args.adapt(options))?;
    let levels = args.interval.map_or(Vec::new(), |share| vec![0.5 - 0.5 * share, 0.5 + 0.5 * share]);
    let stop = StopFlag::new(args.scores.as_deref());
    let path = args.scores.as_deref().ok_or_else(|| usage("--target needs --scores"))?;
    let target_names = names(&targets);
    let out = Output::open_table(path)?;
    let mut writer = Writer { mixture: model.estimate(), given, targets, target_names, levels, out };
    writer.write_header(args, &rows)?;
    let mut written = 0;
    each_block(&mut rows, stop, console, |block, rows, before| {
        written += block.rows() as u64;
        writer.write_block(block, rows, before)?;
        if args.prints_scores() {
            writer.out.flush()?;
        }
        Ok(())
    })?;
    anyhow::ensure!(written > 0 || args.follow, "there are no rows to predict columns of");
    let Writer { given, target_names, out, mixture, .. } = writer;
    out.commit()?;
    if args.prints_scores() {
        return Ok(());
    }
    let result = PredictResult {
        rows: written,
        rows_skipped: rows.rows_skipped(),
        missing: MissingResult::of(&rows),
        columns: names(&given),
        targets: target_names,
        interval: args.interval,
        k: mixture.k(),
    };
    Ok(console.result(&result, describe)?)
}

/// Writes the predictions.
struct Writer {
    mixture: GaussianMixture,
    given: Vec<usize>,
    targets: Vec<usize>,
    target_names: Vec<String>,
    levels: Vec<f64>,
    out: Output,
}

impl Writer {
    fn write_header(&mut self, args: &Args, rows: &RowReader) -> anyhow::Result<()> {
        if !args.keep.is_empty() {
            self.out.keep_private()?;
        }
        let fields: &[&str] =
            if self.levels.is_empty() { &["mean", "std"] } else { &["mean", "std", "low", "high"] };
        write!(self.out, "row")?;
        for name in &self.target_names {
            for field in fields {
                write!(self.out, ",{}", csv_cell(&format!("{name}_{field}")))?;
            }
        }
        writeln!(self.out, ",not_scored{}", cells(rows.kept_columns()))?;
        Ok(self.out.flush()?)
    }

    /// Writes the lines of a block of rows that follow `before` others.
    fn write_block(&mut self, block: &Block, rows: &RowReader, before: u64) -> anyhow::Result<()> {
        let mut whole = Array2::from_elem((block.rows(), self.mixture.dim()), f64::NAN);
        for (n, &column) in self.given.iter().enumerate() {
            whole.column_mut(column).assign(&block.view().column(n));
        }
        let found = self.mixture.predict_columns(whole.view(), &self.targets, &self.levels);
        for (place, row) in in_order(block, rows) {
            write!(self.out, "{}", before + place)?;
            match row {
                Ok(i) => {
                    for n in 0..self.targets.len() {
                        write!(self.out, ",{},{}", found.means[(i, n)], found.standard_deviations[(i, n)])?;
                        for bound in found.quantiles.slice(s![i, n, ..]) {
                            write!(self.out, ",{bound}")?;
                        }
                    }
                    writeln!(self.out, ",{}", kept(rows, place))?;
                }
                Err(bad) => {
                    let empty = ",".repeat(self.targets.len() * (2 + self.levels.len()));
                    let reason = bad.problem.to_string();
                    writeln!(self.out, "{empty},{}{}", csv_cell(&reason), kept(rows, place))?;
                }
            }
        }
        Ok(())
    }
}

fn describe(result: &PredictResult) -> String {
    format!(
        "{} of {} predicted from {} under {}\n",
        result.targets.join(", "),
        count(result.rows, "row"),
        count(result.columns.len() as u64, "column"),
        count(result.k as u64, "component")
    )
}
