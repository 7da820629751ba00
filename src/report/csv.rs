//! The results as CSV at full precision: `loglik.csv`, `table.csv` and `times.csv`.

use serde::Serialize;

use super::analysis::{Entry, Summary};
use super::analysis::{KScore, Score};
use super::format::units;
use super::tables::ratio;

/// One cell: a line of `loglik.csv`.
#[derive(Serialize)]
struct CellRow<'a> {
    data: &'a str,
    learner: &'a str,
    /// Empty if a command chose K and did not say it.
    k: Option<usize>,
    seed: u64,
    fold: usize,
    units: &'a str,
    /// Whether the tables use this K in this fold.
    chosen: bool,
    rows: usize,
    mean: Option<f64>,
    validation: Option<f64>,
    prequential: Option<f64>,
    tuned: Option<f64>,
    start_seconds: Option<f64>,
    learn_seconds: Option<f64>,
    cpu_seconds: Option<f64>,
    peak_memory: Option<u64>,
    /// Empty if there are scores.
    failure: String,
}

#[derive(Serialize)]
struct ScoreRow<'a> {
    data: &'a str,
    learner: &'a str,
    /// Empty in the line of the chosen K, which can differ between folds.
    k: Option<usize>,
    chosen: bool,
    /// Folds that chose this K.
    chosen_folds: usize,
    folds: usize,
    rows: usize,
    mean: f64,
    standard_error: Option<f64>,
    validation: Option<f64>,
    prequential: Option<f64>,
    p_value: Option<f64>,
    p_holm: Option<f64>,
    effect_size: Option<f64>,
    tuned: Option<f64>,
    seeds: usize,
    /// Standard error of the mean over the seeds.
    seed_error: Option<f64>,
    /// Mean of the paired differences to the reference.
    difference: Option<f64>,
    difference_error: Option<f64>,
}

#[derive(Serialize)]
struct TimeRow<'a> {
    data: &'a str,
    learner: &'a str,
    k: usize,
    start_seconds_mean: f64,
    start_seconds_median: f64,
    learn_seconds_mean: f64,
    learn_seconds_median: f64,
    ratio_to_reference: Option<f64>,
    /// Of oDMM: with each shard on a machine of its own.
    machine_seconds_median: Option<f64>,
}

/// `loglik.csv` in tidy form: one line per cell, one variable per column.
pub(super) fn cells(summary: &Summary) -> String {
    let rows = summary.sets.iter().flat_map(|set| {
        set.entries.iter().flat_map(move |entry| {
            entry.cells.iter().map(move |cell| CellRow {
                data: &set.data.data,
                learner: entry.contender.id(),
                k: Some(cell.k).filter(|k| *k > 0),
                seed: cell.seed,
                fold: cell.fold_in_seed,
                units: units(set.units),
                chosen: entry.chosen.get(&cell.fold) == Some(&cell.k),
                rows: cell.rows,
                mean: cell.mean,
                validation: cell.validation,
                prequential: cell.prequential,
                tuned: cell.tuned,
                start_seconds: cell.start_seconds,
                learn_seconds: cell.learn_seconds,
                cpu_seconds: cell.cpu_seconds,
                peak_memory: cell.peak_memory,
                failure: cell.failure.clone().unwrap_or_default(),
            })
        })
    });
    write(rows)
}

/// `table.csv`: for each data set and learner one line per K, and one with the K chosen in each fold and the tests.
pub(super) fn scores(summary: &Summary) -> String {
    let rows = summary.sets.iter().flat_map(|set| {
        set.entries.iter().flat_map(move |entry| {
            let data = set.data.data.as_str();
            let of_k = entry.by_k.iter().map(move |at_k| {
                let chosen_folds = entry.folds_with(at_k.k);
                ScoreRow { k: Some(at_k.k), chosen_folds, ..ScoreRow::new(data, entry, &at_k.score) }
            });
            let chosen = entry.score.as_ref().map(|score| ScoreRow {
                chosen: true,
                chosen_folds: entry.chosen.len(),
                p_value: entry.p_value,
                p_holm: entry.p_holm,
                effect_size: entry.effect_size,
                difference: entry.difference,
                difference_error: entry.difference_error,
                ..ScoreRow::new(data, entry, score)
            });
            of_k.chain(chosen)
        })
    });
    write(rows)
}

impl<'a> ScoreRow<'a> {
    /// A line without K, choice and tests.
    fn new(data: &'a str, entry: &'a Entry, score: &Score) -> Self {
        ScoreRow {
            data,
            learner: entry.contender.id(),
            k: None,
            chosen: false,
            chosen_folds: 0,
            folds: score.folds,
            rows: score.rows,
            mean: score.mean,
            standard_error: score.standard_error,
            validation: score.validation,
            prequential: score.prequential,
            p_value: None,
            p_holm: None,
            effect_size: None,
            tuned: score.tuned,
            seeds: score.seeds.unwrap_or(1),
            seed_error: score.seed_error,
            difference: None,
            difference_error: None,
        }
    }
}

/// `times.csv`: one line per data set, learner and K. The ratio compares medians at the same K.
pub(super) fn times(summary: &Summary) -> String {
    let rows = summary.sets.iter().flat_map(|set| {
        set.entries.iter().flat_map(move |entry| {
            entry.by_k.iter().map(move |KScore { k, score }| TimeRow {
                data: &set.data.data,
                learner: entry.contender.id(),
                k: *k,
                start_seconds_mean: score.start_seconds.mean,
                start_seconds_median: score.start_seconds.median,
                learn_seconds_mean: score.learn_seconds.mean,
                learn_seconds_median: score.learn_seconds.median,
                ratio_to_reference: ratio(set, summary, &entry.contender, *k),
                machine_seconds_median: score.machine_seconds,
            })
        })
    });
    write(rows)
}

fn write(rows: impl Iterator<Item = impl Serialize>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.serialize(row).expect("flat structs are written to memory");
    }
    let bytes = writer.into_inner().expect("memory takes every byte");
    String::from_utf8(bytes).expect("text in is text out")
}
