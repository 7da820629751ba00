//! Words of warning: before work that will take long, and after a pass over rows that were not what they seemed.

use ndarray::s;

use super::console::{Console, count};
use super::data_args::usage;
use crate::data::{Block, find_discrete};
use crate::learn::{ColumnFault, ColumnShift, FitSettings, FitState, Health, start_minutes};
use crate::model::Model;

/// Says beforehand what a pass over so many columns will cost, and refuses what no machine has room for.
pub(super) fn tell_size(settings: &FitSettings, dim: usize, console: &Console) -> anyhow::Result<()> {
    let (start_rows, components) = (settings.init_rows(dim), settings.ks.iter().sum::<usize>());
    let d = dim as f64;
    // The buffered rows with a scaled copy; a prior, a posterior and two scratch matrices for each component.
    let gigabytes = 8e-9 * (2.0 * start_rows as f64 * d + 4.0 * components as f64 * d * d);
    if gigabytes > MOST_GIGABYTES {
        return Err(usage(format!(
            "{dim} columns would take about {gigabytes:.0} GB of memory, since full covariances grow with their square: \
             choose fewer with --columns or --drop"
        )));
    }
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

fn roughly(minutes: f64) -> String {
    match minutes {
        m if m < 90.0 => format!("about {:.0} minutes", m.max(1.0)),
        m if m < 2880.0 => format!("about {:.0} hours", m / 60.0),
        m => format!("about {:.0} days", m / 1440.0),
    }
}

/// Rows in the order of their classes or of time are what a one-pass learner can least cope with.
pub(super) fn warn_of_order(shifts: &[ColumnShift], names: &[String], shuffled: bool, console: &Console) {
    let Some(most) = shifts.first() else { return };
    let others = match shifts.len() - 1 {
        0 => String::new(),
        1 => " and one more column".into(),
        more => format!(" and {more} more columns"),
    };
    let remedy = if shuffled { "a larger --shuffle-buffer" } else { "--shuffle-buffer N" };
    console.warn(&format!(
        "the first rows, which the start is made from, are unlike those after them: the mean of column '{}' moved by {:.2} \
         standard deviations{others}. If the file is sorted, by class or by time, shuffle it or use {remedy} \
         (N as large as the memory allows; all rows is best)",
        names[most.column], most.deviations
    ));
}

pub(super) fn warn_of_columns(faults: &[ColumnFault], names: &[String], console: &Console) {
    const MOST: usize = 5;
    if faults.len() > MOST {
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

/// Counts and codes have no density, and a user should know it before reading a log-likelihood.
pub(super) fn tell_of_discrete(first: &Block, names: &[String], console: &Console) {
    const ENOUGH: usize = 100;
    const MOST: usize = 1000;
    const MOST_NAMES: usize = 5;
    if first.rows() < ENOUGH {
        return;
    }
    let rows = first.view();
    let found = find_discrete(rows.slice(s![..first.rows().min(MOST), ..]));
    let mut shown: Vec<String> =
        found.iter().take(MOST_NAMES).map(|discrete| format!("'{}'", names[discrete.column])).collect();
    if found.len() > MOST_NAMES {
        shown.push(format!("{} more", found.len() - MOST_NAMES));
    }
    if !found.is_empty() {
        console.note(&format!(
            "of {} many rows share few values, where no density is bounded: log-likelihoods then say how narrow a \
             component may become; 'compare --dequantize' shows what is left of them",
            shown.join(", ")
        ));
    }
}

/// Where hardly any rows came after those of the start, the scores of the K are chance.
pub(super) fn warn_of_choice(state: &FitState, console: &Console) {
    const ENOUGH: u64 = 300;
    let scored = state.candidates.iter().map(|candidate| candidate.prequential.rows).min().unwrap_or(0);
    if state.candidates.len() > 1 && scored < ENOUGH {
        console.warn(&format!(
            "K was chosen by the scores of {} only, those that came after the start: give more rows, or start from fewer with \
             --init-rows",
            count(scored, "row")
        ));
    }
}

/// Who shares a model file may not mean to share rows.
pub(super) fn tell_of_kept_rows(model: &Model, console: &Console) {
    if model.pending.is_some() {
        console.note(&format!(
            "there are fewer rows than the start wants, so the model file keeps all {} of them, to begin anew when more come; \
             for a file without rows, start from fewer with --init-rows",
            model.rows
        ));
    }
}

pub(super) fn warn_of_health(health: &Health, console: &Console) {
    if health.rows_out_of_range > 0 {
        console.warn(&format!(
            "{} rows were so far out that nothing could be learned from them; look for values beyond 1e150",
            health.rows_out_of_range
        ));
    }
    if health.components_damped > 0 {
        console.warn(&format!(
            "the shards disagree so much on {} components that their product was improper and had to be damped: \
             use fewer shards, or a longer --warmup",
            health.components_damped
        ));
    }
    if health.literal_steps_kept > 0 {
        console.note(&format!(
            "the paper's equations had no solution {} times; the old value was kept",
            health.literal_steps_kept
        ));
    }
}
