//! What a pass finds out about its data, printed for the user.

use ndarray::ArrayView2;

use super::console::Console;
use super::{usage, wording};
use crate::learn::{
    ColumnFault, ColumnShift, Finding, FitSettings, FitState, Health, check_shards, find_columns_at_floor,
    find_discrete_columns, find_numbering, find_repeated_rows, judge_choice, judge_health, judge_order,
    judge_row_count, name_column_faults,
};
use crate::model::{Lineage, Model};
use crate::stats::ColumnSummary;

/// Says beforehand what a pass takes, and refuses what cannot fit.
pub(super) fn tell_size(settings: &FitSettings, dim: usize, console: &Console) -> anyhow::Result<()> {
    let found = settings.check_size(dim).map_err(|error| usage(wording::error(&error)))?;
    console.tell(found);
    Ok(())
}

pub(super) fn refuse_many_shards(shards: usize, components: usize, dim: usize) -> anyhow::Result<()> {
    check_shards(shards, components, dim).map_err(|error| usage(wording::error(&error)))
}

pub(super) fn warn_of_order(
    shifts: &[ColumnShift],
    numbering: &[Finding],
    names: &[String],
    revises: bool,
    console: &Console,
) {
    console.tell(judge_order(shifts, names, numbering, revises));
}

pub(super) fn warn_of_columns(faults: &[ColumnFault], names: &[String], console: &Console) {
    console.tell(name_column_faults(faults, names));
}

pub(super) fn warn_of_repeats(model: &Model, console: &Console) {
    console.tell(model.lineage.as_ref().and_then(Lineage::repeats));
}

pub(super) fn tell_of_floor(model: &Model, faults: &[ColumnFault], console: &Console) {
    if model.total_health().pivots_raised > 0 {
        let floor: Vec<f64> = model.columns.iter().map(|column| column.floor).collect();
        let names = model.column_names().names;
        console.tell(find_columns_at_floor(&model.estimate(), &floor, faults, &names));
    }
}

/// Gives the findings back, for what is judged by them later.
pub(super) fn tell_of_numbering(first: ArrayView2<f64>, names: &[String], console: &Console) -> Vec<Finding> {
    let found = find_numbering(first, names);
    console.tell(found.clone());
    found
}

pub(super) fn tell_of_repeated_rows(before: &[ColumnSummary], after: &[ColumnSummary], console: &Console) {
    console.tell(find_repeated_rows(before, after));
}

/// Gives the names of the discrete columns.
pub(super) fn tell_of_discrete(rows: ArrayView2<f64>, names: &[String], console: &Console) -> Vec<String> {
    let Some(found) = find_discrete_columns(rows, names) else { return Vec::new() };
    console.tell([found.clone()]);
    match found {
        Finding::DiscreteColumns { columns } => columns,
        _ => Vec::new(),
    }
}

pub(super) fn warn_of_choice(state: &FitState, console: &Console) {
    console.tell(judge_choice(state));
}

pub(super) fn warn_of_few_rows(k: usize, rows: u64, console: &Console) {
    console.tell(judge_row_count(k, rows));
}

pub(super) fn warn_of_health(health: &Health, console: &Console) {
    console.tell(judge_health(health));
}
