//! Words of warning: before work that will take long, and after a pass over rows that were not what they seemed.

use std::collections::HashSet;

use ndarray::{ArrayView1, ArrayView2, s};

use super::console::{Console, listed};
use super::usage;
use crate::data::find_discrete;
use crate::learn::{
    Algorithm, ColumnFault, ColumnShift, FitSettings, Health, Lineage, Prequential, start_minutes,
};
use crate::model::{MOST_BYTES, Model};
use crate::stats::ColumnSummary;
use crate::text::count;

/// Says beforehand what a pass over so many columns will cost, and refuses what no machine has room for.
pub(super) fn tell_size(settings: &FitSettings, dim: usize, console: &Console) -> anyhow::Result<()> {
    let (start_rows, components) = (settings.rows_of_start(dim), settings.components.expected_total());
    let d = dim as f64;
    // The buffered rows with a scaled copy; a prior, a posterior and two scratch matrices for each component.
    let gigabytes = 8e-9 * (2.0 * start_rows as f64 * d + 4.0 * components as f64 * d * d);
    if gigabytes > MOST_GIGABYTES {
        return Err(usage(format!(
            "{dim} columns would take about {gigabytes:.0} GB of memory, since full covariances grow with their square: \
             choose fewer with --columns or --drop"
        )));
    }
    if let Algorithm::Odmm(odmm) = settings.algorithm {
        refuse_many_shards(odmm.shards, components, dim)?;
    }
    refuse_many_kept_rows(settings, dim)?;
    let minutes = start_minutes(start_rows, components, dim);
    if minutes > 1.0 || gigabytes > 2.0 {
        console.note(&format!(
            "{dim} columns are many for full covariances: the start, fitted to the first {start_rows} rows, may take {} \
             and {:.1} GB; --columns chooses fewer, --init-rows shortens the start",
            roughly(minutes),
            gigabytes.max(0.1)
        ));
    }
    Ok(())
}

const MOST_GIGABYTES: f64 = 256.0;

/// Refuses so many shards of so many components each that a model file of them could not be read. In memory they take
/// about as much.
pub(super) fn refuse_many_shards(shards: usize, components: usize, dim: usize) -> anyhow::Result<()> {
    let d = dim as f64;
    // Three triangles, the mean and some scalars for each component, at most 25 bytes a number.
    let bytes = 25.0 * (1.5 * d * (d + 1.0) + 2.0 * d + 20.0) * components as f64 * shards as f64;
    if bytes <= MOST_BYTES as f64 {
        return Ok(());
    }
    Err(usage(format!(
        "{shards} shards of {} over {} would take about {:.0} GB, and a model file of more than 2 GB cannot be read: \
         use fewer --shards",
        count(components as u64, "component"),
        count(dim as u64, "column"),
        bytes / 1e9
    )))
}

/// Refuses to keep so many rows that a model file of them could not be read.
fn refuse_many_kept_rows(settings: &FitSettings, dim: usize) -> anyhow::Result<()> {
    let Some(rows) = settings.keep_rows else { return Ok(()) };
    // Three bytes become four letters.
    let bytes = 4.0 / 3.0 * 8.0 * dim as f64 * rows as f64;
    if bytes <= 0.9 * MOST_BYTES as f64 {
        return Ok(());
    }
    Err(usage(format!(
        "--keep-rows {rows} of {} would take about {:.0} GB in the model file, and one of more than 2 GB cannot be read: \
         keep fewer",
        count(dim as u64, "column"),
        bytes / 1e9
    )))
}

fn roughly(minutes: f64) -> String {
    match minutes {
        m if m < 90.0 => format!("about {:.0} minutes", m.max(1.0)),
        m if m < 2880.0 => format!("about {:.0} hours", m / 60.0),
        m => format!("about {:.0} days", m / 1440.0),
    }
}

/// Columns beyond these are not named one by one.
const MOST_NAMED: usize = 5;

/// Rows in the order of their classes or of time are what a one-pass learner can least cope with. Columns that number the
/// rows move by themselves, and are told of apart.
pub(super) fn warn_of_order(
    shifts: &[ColumnShift],
    numbering: &[usize],
    names: &[String],
    shuffled: bool,
    console: &Console,
) {
    let (numbers, shifts): (Vec<&ColumnShift>, Vec<&ColumnShift>) =
        shifts.iter().partition(|shift| numbering.contains(&shift.column));
    if !numbers.is_empty() {
        let columns: Vec<&str> = numbers.iter().map(|shift| names[shift.column].as_str()).collect();
        console.warn(&format!(
            "{} went on from the first rows' range, as row numbers do: scores and the choice of K are of little use \
             unless it is left out with --drop",
            some_of(&columns)
        ));
    }
    if shifts.is_empty() {
        return;
    }
    let moved = shifts.iter().map(|shift| format!("'{}' by {:.2}", names[shift.column], shift.deviations));
    let remedy = if shuffled { "a larger --shuffle-buffer" } else { "--shuffle-buffer N" };
    console.warn(&format!(
        "the first rows, which the start is made from, are unlike those after them (means moved, in standard \
         deviations: {}). If the file is sorted, by class or by time, shuffle it or use {remedy} \
         (N as large as the memory allows; all rows is best)",
        listed(moved, MOST_NAMED)
    ));
}

pub(super) fn warn_of_columns(faults: &[ColumnFault], names: &[String], console: &Console) {
    if faults.len() > MOST_NAMED {
        console.warn(&format!(
            "{} of {} columns are constant or linear functions of others in the first rows (fewer rows than \
             columns would do that), so no density is bounded there and their spread is held at a floor",
            faults.len(),
            names.len()
        ));
        return;
    }
    for fault in faults {
        match fault {
            ColumnFault::Constant { column } => {
                let name = &names[*column];
                console.warn(&format!(
                    "column '{name}' is constant in the first rows, so no density is bounded there and its \
                     spread is held at a floor; consider --drop '{name}'"
                ));
            }
            ColumnFault::Collinear { column, on } => {
                let name = &names[*column];
                let on: Vec<String> = on.iter().map(|&other| format!("'{}'", names[other])).collect();
                console.warn(&format!(
                    "column '{name}' is a linear function of {} in the first rows, so no density is bounded \
                     there and its spread is held at a floor; consider --drop '{name}'",
                    on.join(" and ")
                ));
            }
        }
    }
}

/// Rows that a common prior has learned and a shard learns again count twice, and more often the more shards there are.
pub(super) fn warn_of_repeats(model: &Model, console: &Console) {
    let Some((found, wanted)) = model.lineage().and_then(Lineage::repeats) else { return };
    console.warn(&format!(
        "of {wanted} rows drawn from those that the common prior has learned, {found} were learned again: unless the same \
         values simply occur often in these data, learn shards from rows that the prior has not learned ('fit --skip N' \
         leaves out the first ones)"
    ));
}

/// Rows that could not be read are told of by the first of them.
pub(super) fn warn_of_skipped(rows: u64, first: Option<&str>, console: &Console) {
    if let Some(first) = first {
        console.warn(&format!("{} skipped; the first: {first}", were(rows, "bad row")));
    }
}

/// Some columns in a sentence: the first of them by name.
fn some_of(names: &[impl AsRef<str>]) -> String {
    listed(names.iter().map(|name| format!("'{}'", name.as_ref())), MOST_NAMED)
}

/// Names the columns that were held at the floor although no fault was found in the first rows: those that are nearly
/// functions of others.
pub(super) fn tell_of_floor(model: &Model, faults: &[ColumnFault], console: &Console) {
    if model.health().pivots_raised == 0 {
        return;
    }
    let is_known = |j: usize| {
        faults.iter().any(|fault| match fault {
            ColumnFault::Constant { column } | ColumnFault::Collinear { column, .. } => *column == j,
        })
    };
    let mixture = model.estimate();
    let lower: Vec<_> = mixture.components().iter().map(|c| c.covariance().lower_matrix()).collect();
    let is_held = |j: usize| lower.iter().any(|l| l[(j, j)].powi(2) < AT_FLOOR * model.columns()[j].floor);
    let held = (0..model.columns().len()).filter(|&j| !is_known(j) && is_held(j));
    let held: Vec<&str> = held.map(|j| model.columns()[j].name.as_str()).collect();
    if !held.is_empty() {
        console.note(&format!(
            "in some components the spread of {}, given the columns before, is held at a floor: there it is nearly constant or a \
             function of them, and the log-likelihood tells of the floor; consider --drop",
            some_of(&held)
        ));
    }
}

/// So many times the floor is still the floor: a point estimate is a little wider than what was held.
const AT_FLOOR: f64 = 2.0;

/// A column that numbers the rows has nothing to say about them. Gives the places of those that go up from row to row.
pub(super) fn tell_of_numbering(first: ArrayView2<f64>, names: &[String], console: &Console) -> Vec<usize> {
    const ENOUGH_TO_RISE: usize = 10;
    const ENOUGH_TO_DIFFER: usize = 500;
    let mut rising = Vec::new();
    for (column, (values, name)) in first.columns().into_iter().zip(names).enumerate() {
        let is_whole = values.iter().all(|value| value.fract() == 0.0);
        let differ =
            || values.iter().map(|value| value.to_bits()).collect::<HashSet<_>>().len() == values.len();
        let what = if is_whole && values.len() >= ENOUGH_TO_RISE && rises_in_steps(values) {
            rising.push(column);
            "goes up evenly from row to row, as a row's number or a time does,"
        } else if is_whole && values.len() >= ENOUGH_TO_DIFFER && differ() {
            "has another whole number in every row, as an id does,"
        } else {
            continue;
        };
        console.note(&format!(
            "column '{name}' {what} and is learned like any other: if it is no measurement, leave it out with --drop '{name}'"
        ));
    }
    rising
}

/// Whether values go up, nearly always by the same step: some rows may be missing. What a file is sorted by goes up unevenly.
fn rises_in_steps(values: ArrayView1<f64>) -> bool {
    let mut steps: Vec<f64> = values.windows(2).into_iter().map(|pair| pair[1] - pair[0]).collect();
    steps.sort_by(f64::total_cmp);
    let usual = steps[steps.len() / 2];
    let even = steps.iter().filter(|&&step| step == usual).count();
    steps[0] > 0.0 && 5 * even >= 4 * steps.len()
}

/// Says so where a resumed run was given the rows that the model had learned before. Models do not name their data, but
/// the columns' summaries stay what they were when the same rows come again.
pub(super) fn tell_of_repeated_rows(before: &[ColumnSummary], after: &[ColumnSummary], console: &Console) {
    const ROUNDING: f64 = 1e-9;
    let is_same = |(before, after): (&ColumnSummary, &ColumnSummary)| {
        let (spread, moved) = (before.standard_deviation(), (after.mean - before.mean).abs());
        moved <= ROUNDING * before.unit() && (after.standard_deviation() - spread).abs() <= ROUNDING * spread
    };
    let varies = before.iter().any(|column| !column.is_constant());
    let (old, all) = (before.first().map_or(0, |c| c.count), after.first().map_or(0, |c| c.count));
    let repeats = all > old && old.is_multiple_of(all - old);
    if varies && repeats && before.iter().zip(after).all(is_same) {
        console.note(&format!(
            "the {} just learned seem to be those that the model had learned already, so they now count twice: to go on, give \
             rows that are new",
            count(all - old, "row")
        ));
    }
}

/// Counts and codes have no density, and a user should know it before reading a log-likelihood. Gives such columns.
pub(super) fn tell_of_discrete(rows: ArrayView2<f64>, names: &[String], console: &Console) -> Vec<String> {
    const ENOUGH: usize = 100;
    const MOST: usize = 1000;
    if rows.nrows() < ENOUGH {
        return Vec::new();
    }
    let found = find_discrete(rows.slice(s![..rows.nrows().min(MOST), ..]));
    let columns: Vec<String> = found.iter().map(|discrete| names[discrete.column].clone()).collect();
    if !columns.is_empty() {
        console.note(&format!(
            "of {} many rows share few values, where no density is bounded: log-likelihoods then say how narrow a \
             component may become; 'compare --dequantize' shows what is left of them",
            some_of(&columns)
        ));
    }
    columns
}

/// Where hardly any rows were scored, the choice is chance.
pub(super) fn warn_of_choice(scores: &[(usize, Prequential)], console: &Console) {
    const ENOUGH: u64 = 300;
    let scored = scores.iter().map(|(_, score)| score.rows).min().unwrap_or(0);
    if scores.len() > 1 && scored < ENOUGH {
        console.warn(&format!(
            "K was chosen by the scores of {} only, and with so few it may be chance: give more rows",
            count(scored, "row")
        ));
    }
}

/// A component of a few rows follows these rows, and nothing else.
pub(super) fn warn_of_few_rows(k: usize, rows: u64, console: &Console) {
    const ENOUGH: u64 = 10;
    if rows < ENOUGH * k as u64 {
        console.warn(&format!(
            "{} from {} are fewer than {ENOUGH} rows for each: they follow single rows, and a smaller K would tell more",
            count(k as u64, "component"),
            count(rows, "row")
        ));
    }
}

/// `1 row was`, `2 rows were`.
fn were(number: u64, thing: &str) -> String {
    format!("{} {}", count(number, thing), if number == 1 { "was" } else { "were" })
}

pub(super) fn warn_of_health(health: &Health, console: &Console) {
    if health.rows_out_of_range > 0 {
        console.warn(&format!(
            "{} so far out that nothing could be learned; look for values beyond 1e150",
            were(health.rows_out_of_range, "row")
        ));
    }
    if health.components_damped > 0 {
        console.warn(&format!(
            "the shards disagree so much on {} that their product was improper and had to be damped: \
             use fewer shards, or a longer --warmup",
            count(health.components_damped, "component")
        ));
    }
    if health.literal_steps_kept > 0 {
        console.note(&format!(
            "the paper's equations had no solution {}; the old value was kept",
            count(health.literal_steps_kept, "time")
        ));
    }
}
