//! Detection: from rows, summaries and counts to findings.

use std::collections::HashSet;

use ndarray::{ArrayView1, ArrayView2, s};

use super::{ENOUGH_PER_COMPONENT, Finding, NamedShift};
use crate::data::find_discrete;
use crate::dist::GaussianMixture;
use crate::learn::monitor::column_faults::ColumnFault;
use crate::learn::monitor::recognise::are_repeated;
use crate::learn::monitor::start_shift::ColumnShift;
use crate::learn::{Components, Health, Prequential};
use crate::stats::ColumnSummary;

/// Columns that number the rows, judged by the values that the first rows have.
pub fn find_numbering(first: ArrayView2<f64>, names: &[String]) -> Vec<Finding> {
    const ENOUGH_TO_RISE: usize = 10;
    const ENOUGH_TO_DIFFER: usize = 500;
    let judge = |(column, name): (ArrayView1<f64>, &String)| {
        let values: Vec<f64> = column.iter().copied().filter(|value| !value.is_nan()).collect();
        let differ =
            || values.iter().map(|value| value.to_bits()).collect::<HashSet<_>>().len() == values.len();
        let column = || name.clone();
        match values.iter().all(|value| value.fract() == 0.0) {
            true if values.len() >= ENOUGH_TO_RISE && rises_in_steps(&values) => {
                Some(Finding::RowNumbers { column: column() })
            }
            true if values.len() >= ENOUGH_TO_DIFFER && differ() => {
                Some(Finding::Identifiers { column: column() })
            }
            _ => None,
        }
    };
    first.columns().into_iter().zip(names).filter_map(judge).collect()
}

/// Whether values rise, nearly always by the same step: some rows may be missing. The column that a file is sorted by
/// rises unevenly.
fn rises_in_steps(values: &[f64]) -> bool {
    let mut steps: Vec<f64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
    steps.sort_by(f64::total_cmp);
    let usual = steps[steps.len() / 2];
    let even = steps.iter().filter(|&&step| step == usual).count();
    steps[0] > 0.0 && 5 * even >= 4 * steps.len()
}

/// Discrete columns, judged by the first rows.
pub fn find_discrete_columns(first: ArrayView2<f64>, names: &[String]) -> Option<Finding> {
    const ENOUGH: usize = 100;
    const MAX: usize = 1000;
    if first.nrows() < ENOUGH {
        return None;
    }
    let found = find_discrete(first.slice(s![..first.nrows().min(MAX), ..]));
    let columns: Vec<String> = found.iter().map(|discrete| names[discrete.column].clone()).collect();
    (!columns.is_empty()).then_some(Finding::DiscreteColumns { columns })
}

/// Constant and collinear columns by name.
pub fn name_column_faults(faults: &[ColumnFault], names: &[String]) -> Vec<Finding> {
    let named = |fault: &ColumnFault| match fault {
        ColumnFault::Constant { column } => Finding::ConstantColumn { column: names[*column].clone() },
        ColumnFault::Collinear { column, on } => Finding::CollinearColumn {
            column: names[*column].clone(),
            on: on.iter().map(|&other| names[other].clone()).collect(),
        },
    };
    faults.iter().map(named).collect()
}

/// Columns that moved after the start. Those that number the rows, according to `known`, move by themselves and get a
/// finding of their own. Revisions correct for rows in the order of time or of classes, so where `revises` is set only
/// these are of interest.
pub(in crate::learn) fn judge_order(
    shifts: &[ColumnShift],
    names: &[String],
    known: &[Finding],
    revises: bool,
) -> Vec<Finding> {
    let is_number = |shift: &&ColumnShift| {
        let name = &names[shift.column];
        known.iter().any(|finding| matches!(finding, Finding::RowNumbers { column } if column == name))
    };
    let (numbers, others): (Vec<&ColumnShift>, Vec<&ColumnShift>) = shifts.iter().partition(is_number);
    let columns: Vec<String> = numbers.iter().map(|shift| names[shift.column].clone()).collect();
    let named = |shift: &ColumnShift| NamedShift {
        column: names[shift.column].clone(),
        deviations: shift.deviations,
    };
    let numbering = (!columns.is_empty()).then_some(Finding::RowNumbersContinue { columns });
    let sorted = (!others.is_empty() && !revises)
        .then(|| Finding::SortedRows { shifts: others.into_iter().map(named).collect() });
    numbering.into_iter().chain(sorted).collect()
}

/// Whether a resumed pass was given the rows that it had learned before, judged by the columns before and after. The
/// summaries stay what they were when the same rows come again. The columns count the values that they have, so of rows with
/// gaps the count is that of the most complete column.
pub(in crate::learn) fn find_repeated_rows(
    before: &[ColumnSummary],
    after: &[ColumnSummary],
) -> Option<Finding> {
    const ROUNDING: f64 = 1e-9;
    let is_same = |(before, after): (&ColumnSummary, &ColumnSummary)| {
        let (spread, moved) = (before.standard_deviation(), (after.mean - before.mean).abs());
        moved <= ROUNDING * before.unit() && (after.standard_deviation() - spread).abs() <= ROUNDING * spread
    };
    let repeats = |(before, after): (&ColumnSummary, &ColumnSummary)| {
        let new = after.count.saturating_sub(before.count);
        if new == 0 { before.count == 0 } else { before.count.is_multiple_of(new) }
    };
    let columns = || before.iter().zip(after);
    let rows = columns().map(|(before, after)| after.count.saturating_sub(before.count)).max().unwrap_or(0);
    let varies = before.iter().any(|column| !column.is_constant());
    (varies && rows > 0 && columns().all(repeats) && columns().all(is_same))
        .then_some(Finding::RepeatedRows { rows })
}

/// Whether shards have learned rows of their prior again, judged by how many rows of a sample were found among theirs.
pub(in crate::learn) fn judge_prior_rows(found: usize, sampled: usize) -> Option<Finding> {
    are_repeated(found, sampled).then_some(Finding::PriorRowsRepeated { found, sampled })
}

/// Columns held at their floor although the first rows show no fault: those that are nearly functions of others.
pub(in crate::learn) fn find_columns_at_floor(
    mixture: &GaussianMixture,
    floor: &[f64],
    faults: &[ColumnFault],
    names: &[String],
) -> Option<Finding> {
    // A point estimate is a little wider than the variance that was held.
    const AT_FLOOR: f64 = 2.0;
    let is_known = |j: usize| {
        faults.iter().any(|fault| match fault {
            ColumnFault::Constant { column } | ColumnFault::Collinear { column, .. } => *column == j,
        })
    };
    let pivots: Vec<Vec<f64>> =
        mixture.components().iter().map(|c| c.covariance().pivots().collect()).collect();
    let is_held = |j: usize| pivots.iter().any(|own| own[j] < AT_FLOOR * floor[j]);
    let held = (0..floor.len()).filter(|&j| !is_known(j) && is_held(j));
    let columns: Vec<String> = held.map(|j| names[j].clone()).collect();
    (!columns.is_empty()).then_some(Finding::ColumnsAtFloor { columns })
}

/// Whether K was chosen by so few rows that it may be chance.
pub(in crate::learn) fn judge_choice(scores: &[(usize, Prequential)]) -> Option<Finding> {
    const ENOUGH: u64 = 300;
    let rows = scores.iter().map(|(_, score)| score.rows).min().unwrap_or(0);
    (scores.len() > 1 && rows < ENOUGH).then_some(Finding::FewRowsScored { rows })
}

/// Whether there are too few rows for `k` components.
pub fn judge_row_count(k: usize, rows: u64) -> Option<Finding> {
    (rows < ENOUGH_PER_COMPONENT * k as u64).then_some(Finding::FewRowsPerComponent { k, rows })
}

/// Whether a learned K is the largest one that was allowed, with a choice.
pub(in crate::learn) fn judge_learned_k(components: &Components, k: usize) -> Option<Finding> {
    match components {
        Components::Learned { least, most } if k == *most && least < most => Some(Finding::LargestK { k }),
        _ => None,
    }
}

/// The safeguards that a user should know of.
pub(in crate::learn) fn judge_health(health: &Health) -> Vec<Finding> {
    let counted = [
        (health.rows_out_of_range, Finding::RowsOutOfRange { rows: health.rows_out_of_range }),
        (health.rows_set_aside, Finding::RowsSetAside { rows: health.rows_set_aside }),
        (health.components_damped, Finding::DampedComponents { components: health.components_damped }),
        (health.literal_steps_kept, Finding::LiteralStepsKept { times: health.literal_steps_kept }),
    ];
    counted.into_iter().filter(|(count, _)| *count > 0).map(|(_, finding)| finding).collect()
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split(' ').map(String::from).collect()
    }

    #[test]
    fn columns_that_number_the_rows_are_found() {
        let rows = Array2::from_shape_fn((600, 4), |(i, j)| match j {
            0 => (2 * i) as f64,
            1 => ((i * 7919) % 100_003) as f64,
            2 => (i / 3) as f64,
            _ => (i as f64).sin(),
        });
        let of = |rows: ArrayView2<f64>| find_numbering(rows, &names("number id sorted wave"));
        let number = Finding::RowNumbers { column: "number".into() };
        assert_eq!(of(rows.view()), [number.clone(), Finding::Identifiers { column: "id".into() }]);
        assert_eq!(of(rows.slice(s![..20, ..])), [number]);
        assert_eq!(of(rows.slice(s![..9, ..])), []);
    }

    #[test]
    fn columns_with_gaps_are_judged_by_the_values_they_have() {
        let rows = Array2::from_shape_fn((700, 3), |(i, j)| match (i * 7 + j) % 9 {
            0 => f64::NAN,
            _ if j == 0 => i as f64,
            _ if j == 1 => (i % 5) as f64,
            _ => (i as f64).sin(),
        });
        let names = names("number discrete wave");
        assert_eq!(find_numbering(rows.view(), &names), [Finding::RowNumbers { column: "number".into() }]);
        let discrete = Finding::DiscreteColumns { columns: vec!["discrete".into()] };
        assert_eq!(find_discrete_columns(rows.view(), &names), Some(discrete));
        let nothing = Array2::from_elem((700, 1), f64::NAN);
        assert_eq!(find_numbering(nothing.view(), &names), []);
        assert_eq!(find_discrete_columns(nothing.view(), &names), None);
    }

    #[test]
    fn rows_learned_twice_are_noticed_and_others_are_not() {
        let summary = |rows: &mut dyn Iterator<Item = i32>| -> Vec<ColumnSummary> {
            vec![rows.map(|i| f64::from(i * i % 89)).collect()]
        };
        let once = summary(&mut (0..100));
        let twice = summary(&mut (0..100).chain(0..100));
        assert_eq!(find_repeated_rows(&once, &twice), Some(Finding::RepeatedRows { rows: 100 }));
        assert_eq!(find_repeated_rows(&once, &summary(&mut (0..200))), None);
        assert_eq!(find_repeated_rows(&once, &once), None);
        // A second column with gaps, and a third without any value.
        let gaps = |summary: &[ColumnSummary], times: i32| {
            let half = (0..times).flat_map(|_| (0..50).map(|i| f64::from(i * 3 % 17))).collect();
            vec![summary[0], half, ColumnSummary::default()]
        };
        let repeated = Some(Finding::RepeatedRows { rows: 100 });
        assert_eq!(find_repeated_rows(&gaps(&once, 1), &gaps(&twice, 2)), repeated);
        assert_eq!(find_repeated_rows(&gaps(&once, 1), &gaps(&twice, 1)), None);
    }

    #[test]
    fn numbered_rows_are_told_apart_from_sorted_ones() {
        let shifts = [ColumnShift { column: 1, deviations: 2.5 }, ColumnShift { column: 0, deviations: 0.5 }];
        let known = [Finding::RowNumbers { column: "id".into() }];
        let judged = |revises| judge_order(&shifts, &names("x id"), &known, revises);
        let continues = Finding::RowNumbersContinue { columns: names("id") };
        let sorted = NamedShift { column: "x".into(), deviations: 0.5 };
        assert_eq!(judged(false), [continues.clone(), Finding::SortedRows { shifts: vec![sorted] }]);
        assert_eq!(judged(true), [continues]);
    }
}
