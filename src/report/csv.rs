//! The figures for programs: `loglik.csv` and `times.csv`, at full precision.

use serde::Serialize;

use super::grid::ratio;
use super::summary::Summary;

#[derive(Serialize)]
struct ScoreRow<'a> {
    data: &'a str,
    contender: &'a str,
    k: usize,
    chosen: bool,
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
}

#[derive(Serialize)]
struct TimeRow<'a> {
    data: &'a str,
    contender: &'a str,
    k: usize,
    start_seconds_mean: f64,
    start_seconds_median: f64,
    learn_seconds_mean: f64,
    learn_seconds_median: f64,
    ratio_to_reference: Option<f64>,
}

/// `loglik.csv`: one line per data set, learner and K. Tests are of the chosen K.
pub(super) fn scores(summary: &Summary) -> String {
    let rows = summary.sets.iter().flat_map(|set| {
        set.entries.iter().flat_map(move |entry| {
            entry.by_k.iter().map(move |score| {
                let chosen = entry.chosen == Some(score.k);
                ScoreRow {
                    data: &set.data.data,
                    contender: entry.contender.profile().word,
                    k: score.k,
                    chosen,
                    folds: score.folds,
                    rows: score.rows,
                    mean: score.mean,
                    standard_error: score.standard_error,
                    validation: score.validation,
                    prequential: score.prequential,
                    p_value: entry.p_value.filter(|_| chosen),
                    p_holm: entry.p_holm.filter(|_| chosen),
                    effect_size: entry.effect_size.filter(|_| chosen),
                    tuned: score.tuned,
                }
            })
        })
    });
    write(rows)
}

/// `times.csv`: one line per data set, learner and K; the ratio is of medians, at the same K.
pub(super) fn times(summary: &Summary) -> String {
    let rows = summary.sets.iter().flat_map(|set| {
        set.entries.iter().flat_map(move |entry| {
            entry.by_k.iter().map(move |score| TimeRow {
                data: &set.data.data,
                contender: entry.contender.profile().word,
                k: score.k,
                start_seconds_mean: score.start_seconds.mean,
                start_seconds_median: score.start_seconds.median,
                learn_seconds_mean: score.learn_seconds.mean,
                learn_seconds_median: score.learn_seconds.median,
                ratio_to_reference: ratio(set, summary, entry.contender, score.k),
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
