//! Packed records: what tables and pictures need, small enough to be published with them.

use super::analysis::Summary;
use super::{ReportError, ReportOptions};
use crate::dist::Marginal;
use crate::experiment::{CellRecord, Contender, Record, RecordIndex, SetIndex, TestSummary};
use crate::stats::ColumnSummary;

/// Decimals of the scores of single rows. The error of a mean of n rows is below 0.0003/√n.
const ROW_DECIMALS: i32 = 3;
/// The most rows of a set, over all folds, whose single scores are kept. With more, tests use evenly spaced ones.
const MAX_ROWS: usize = 20_000;
/// Digits of other figures.
const DIGITS: usize = 8;

/// The same records in a fixed order, without what no table or picture shows: scores of single rows are kept in the cells of the
/// chosen K, and rounded; components are kept for the picture of the reference.
///
/// Records with several seeds, gaps or weights keep the rows of all cells.
pub fn pack(index: &RecordIndex, options: &ReportOptions) -> Result<Vec<Record>, ReportError> {
    // K is chosen by the rounded scores, because those are the ones that the packed records have.
    let index: RecordIndex = index.records().map(rounded).collect();
    let summary = Summary::new(&index, options)?;
    let several_seeds = index.runs().iter().any(|run| run.seeds > 1);
    let pack_cell = |cell: &CellRecord| {
        let set = index.set(&cell.data)?;
        let figures = summary.sets.iter().find(|figures| figures.data.data == cell.data);
        let entry = figures.and_then(|figures| figures.entry(&cell.contender));
        let is_chosen = entry.is_some_and(|entry| entry.chosen.get(&cell.fold) == Some(&cell.k));
        let keeps_rows = is_chosen || several_seeds || cell.gap_jacobians.is_some() || cell.weights.is_some();
        let is_drawn = is_chosen && summary.reference.as_ref() == Some(&cell.contender);
        let step = if keeps_rows { rows_per_kept(cell, set, several_seeds) } else { usize::MAX };
        Some(packed_cell(cell, set, step, is_drawn))
    };
    let packed = |record: Record| match record {
        Record::Cell(cell) if cell.failure.is_none() => Record::Cell(pack_cell(&cell).map_or(cell, Box::new)),
        other => other,
    };
    Ok(index.records().map(packed).collect())
}

/// One in this number of rows is kept.
fn rows_per_kept(cell: &CellRecord, set: &SetIndex, several_seeds: bool) -> usize {
    match set.data().map(|data| data.rows) {
        Some(rows) if !several_seeds && cell.gap_jacobians.is_none() && cell.weights.is_none() => {
            rows.div_ceil(MAX_ROWS).max(1)
        }
        _ => 1,
    }
}

fn packed_cell(cell: &CellRecord, set: &SetIndex, step: usize, is_drawn: bool) -> CellRecord {
    let start = set.cell(&Contender::Start, cell.k, cell.fold);
    let start = start.filter(|start| start.test.len() == cell.test.len());
    let to_start = |start: &CellRecord| {
        cell.test.iter().zip(&start.test).map(|(own, start)| f64::from(*own) - f64::from(*start)).collect()
    };
    let summary = TestSummary {
        rows: short_summary(cell.test.iter().map(|score| f64::from(*score)).collect()),
        to_start: start.filter(|_| cell.contender.is_online()).map(to_start).map(short_summary),
    };
    let scale = 10.0_f64.powi(ROW_DECIMALS);
    let row = |score: &f32| ((f64::from(*score) * scale).round() / scale) as f32;
    CellRecord {
        test: if step < usize::MAX { cell.test.iter().step_by(step).map(row).collect() } else { Vec::new() },
        summary: cell.summary.or(Some(summary).filter(|_| cell.weights.is_none())),
        marginals: cell.marginals.clone().filter(|_| is_drawn),
        ..cell.clone()
    }
}

/// The record with fewer digits.
fn rounded(mut record: Record) -> Record {
    let shorten = |value: &mut f64| *value = short(*value);
    match &mut record {
        Record::Run(_) => {}
        Record::Data(data) => data.sample.iter_mut().flatten().flatten().for_each(shorten),
        Record::Cell(cell) => {
            cell.validation.iter_mut().chain(&mut cell.prequential).for_each(shorten);
            [&mut cell.start_seconds, &mut cell.learn_seconds].into_iter().for_each(shorten);
            for Marginal { weight, mean, covariance } in cell.marginals.iter_mut().flatten() {
                shorten(weight);
                mean.iter_mut().chain(covariance.iter_mut().flatten()).for_each(shorten);
            }
        }
        Record::Curve(curve) => curve.points.iter_mut().for_each(|(_, score)| shorten(score)),
    }
    record
}

fn short_summary(summary: ColumnSummary) -> ColumnSummary {
    ColumnSummary { mean: short(summary.mean), squares: short(summary.squares), ..summary }
}

/// The number with [`DIGITS`] digits.
fn short(value: f64) -> f64 {
    let digits = DIGITS - 1;
    format!("{value:.digits$e}").parse().unwrap_or(value)
}
