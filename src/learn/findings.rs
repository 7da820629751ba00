//! What a pass finds out about its data that a user should know: facts, and what can be done about them.

use std::collections::HashSet;
use std::fmt;

use ndarray::{ArrayView1, ArrayView2, s};
use serde::Serialize;

use super::columns::ColumnFault;
use super::order::ColumnShift;
use super::recognise::are_repeated;
use super::{Health, Prequential};
use crate::data::find_discrete;
use crate::dist::GaussianMixture;
use crate::remedy::Remedy;
use crate::stats::ColumnSummary;
use crate::text::{count, listed, quoted};

/// Something about the data, or about what was learned from them, that a user should know. Its text states the fact;
/// [`Finding::remedies`] says what can be done.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finding {
    /// A column rises by even steps from row to row, as row numbers and times do.
    RowNumbers {
        /// Its name.
        column: String,
    },
    /// A column has a different whole number in every row, as identifiers do.
    Identifiers {
        /// Its name.
        column: String,
    },
    /// Columns that number the rows have left the range that the start was fitted to.
    RowNumbersContinue {
        /// Their names.
        columns: Vec<String>,
    },
    /// Many rows share few values of these columns.
    DiscreteColumns {
        /// Their names.
        columns: Vec<String>,
    },
    /// A column has one value in all of the first rows.
    ConstantColumn {
        /// Its name.
        column: String,
    },
    /// A column is a linear function of others in the first rows.
    CollinearColumn {
        /// Its name.
        column: String,
        /// The columns that determine it.
        on: Vec<String>,
    },
    /// In some components the variance of these columns, given the columns before them, is held at its floor.
    ColumnsAtFloor {
        /// Their names.
        columns: Vec<String>,
    },
    /// The rows that the start was fitted to differ from the later ones.
    SortedRows {
        /// The columns that differ, the largest shift first.
        shifts: Vec<NamedShift>,
    },
    /// The rows of a resumed pass are those that it had learned before.
    RepeatedRows {
        /// How many rows.
        rows: u64,
    },
    /// Shards have learned rows again that their common prior has learned.
    PriorRowsRepeated {
        /// Rows found again.
        found: usize,
        /// Rows of the prior that were looked for.
        sampled: usize,
    },
    /// There are few rows for each component.
    FewRowsPerComponent {
        /// Components.
        k: usize,
        /// Rows learned.
        rows: u64,
    },
    /// One K of several was chosen by the scores of few rows.
    FewRowsScored {
        /// Rows scored.
        rows: u64,
    },
    /// Rows so far from every component that nothing was learned from them.
    RowsOutOfRange {
        /// How many rows.
        rows: u64,
    },
    /// The product of the shards' posteriors was improper and was damped.
    DampedComponents {
        /// How many components.
        components: u64,
    },
    /// The paper's equations had no solution, and a value was left as it was.
    LiteralStepsKept {
        /// How often.
        times: u64,
    },
    /// Some shards had no rows.
    EmptyShards {
        /// How many.
        empty: usize,
        /// Of how many.
        shards: usize,
    },
    /// The start takes long or much memory.
    LargeStart {
        /// Columns of the data.
        columns: usize,
        /// Rows that the start is fitted to.
        rows: usize,
        /// Minutes, roughly.
        minutes: f64,
        /// Gigabytes, roughly.
        gigabytes: f64,
    },
}

/// How far the mean of a column moved between the first rows and the later ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NamedShift {
    /// The name of the column.
    pub column: String,
    /// How far, in standard deviations of the column.
    pub deviations: f64,
}

/// Columns beyond these are counted, not named.
const MOST_NAMED: usize = 5;

/// Rows that a component should have, or it follows single rows.
const ENOUGH_PER_COMPONENT: u64 = 10;

impl Finding {
    /// What can be done about it.
    pub fn remedies(&self) -> Vec<Remedy> {
        let drop = |column: &String| vec![Remedy::DropColumns(vec![column.clone()])];
        match self {
            Finding::RowNumbers { column }
            | Finding::Identifiers { column }
            | Finding::ConstantColumn { column }
            | Finding::CollinearColumn { column, .. } => drop(column),
            Finding::RowNumbersContinue { columns } | Finding::ColumnsAtFloor { columns } => {
                vec![Remedy::DropColumns(columns.clone())]
            }
            Finding::DiscreteColumns { .. } => vec![Remedy::Dequantize],
            Finding::SortedRows { .. } => vec![Remedy::ShuffleRows],
            Finding::RepeatedRows { .. } => vec![Remedy::GiveNewRows],
            Finding::PriorRowsRepeated { .. } => vec![Remedy::SkipPriorRows],
            Finding::FewRowsPerComponent { .. } => vec![Remedy::FewerComponents],
            Finding::FewRowsScored { .. } => vec![Remedy::GiveMoreRows],
            Finding::RowsOutOfRange { .. } => vec![Remedy::CorrectData],
            Finding::DampedComponents { .. } => vec![Remedy::FewerShards, Remedy::LongerWarmUp],
            Finding::EmptyShards { .. } => vec![Remedy::FewerShards],
            Finding::LargeStart { .. } => vec![Remedy::ChooseColumns, Remedy::FewerStartRows],
            Finding::LiteralStepsKept { .. } => Vec::new(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MISLEADS: &str = "and misleads the fit unless it is a measurement";
        const UNBOUNDED: &str =
            "in the first rows, so its density is unbounded and its variance is held at a floor";
        match self {
            Finding::RowNumbers { column } => {
                write!(f, "column '{column}' rises by even steps, as row numbers and times do, {MISLEADS}")
            }
            Finding::Identifiers { column } => {
                write!(
                    f,
                    "column '{column}' has a different whole number in every row, as identifiers do, {MISLEADS}"
                )
            }
            Finding::RowNumbersContinue { columns } => write!(
                f,
                "later rows leave the range that {} had in the first rows, as row numbers do, so scores and the choice of \
                 K mean little",
                quoted(columns, MOST_NAMED)
            ),
            Finding::DiscreteColumns { columns } => {
                let (has, its) = if columns.len() == 1 { ("has", "its") } else { ("have", "their") };
                write!(
                    f,
                    "{} {has} few distinct values, so {its} density is unbounded and log-likelihoods are not comparable",
                    quoted(columns, MOST_NAMED)
                )
            }
            Finding::ConstantColumn { column } => write!(f, "column '{column}' is constant {UNBOUNDED}"),
            Finding::CollinearColumn { column, on } => {
                let on: Vec<String> = on.iter().map(|name| format!("'{name}'")).collect();
                write!(f, "column '{column}' is a linear function of {} {UNBOUNDED}", on.join(" and "))
            }
            Finding::ColumnsAtFloor { columns } => write!(
                f,
                "in some components the variance of {}, given the columns before, is held at a floor, since it is nearly \
                 constant there or a function of them; the log-likelihood depends on the floor",
                quoted(columns, MOST_NAMED)
            ),
            Finding::SortedRows { shifts } => {
                let moved =
                    shifts.iter().map(|shift| format!("'{}' by {:.2}", shift.column, shift.deviations));
                write!(
                    f,
                    "the first rows, which the start is fitted to, differ from the later ones (means moved, in standard \
                     deviations: {})",
                    listed(moved, MOST_NAMED)
                )
            }
            Finding::RepeatedRows { rows } => write!(
                f,
                "the {} just learned seem to be rows that the model had learned already, so they now count twice",
                count(*rows, "row")
            ),
            Finding::PriorRowsRepeated { found, sampled } => write!(
                f,
                "of {sampled} rows drawn from those that the common prior has learned, {found} were learned again, so \
                 they count twice, unless the same values occur often in these data"
            ),
            Finding::FewRowsPerComponent { k, rows } => write!(
                f,
                "{} were learned from {}, fewer than {ENOUGH_PER_COMPONENT} rows for each, so they follow single rows",
                count(*k as u64, "component"),
                count(*rows, "row")
            ),
            Finding::FewRowsScored { rows } => {
                write!(
                    f,
                    "K was chosen by the scores of {}, so few that it may be chance",
                    count(*rows, "row")
                )
            }
            Finding::RowsOutOfRange { rows } => write!(
                f,
                "{} {} so far from every component, as values beyond 1e150 are, that nothing was learned from {}",
                count(*rows, "row"),
                if *rows == 1 { "was" } else { "were" },
                if *rows == 1 { "it" } else { "them" }
            ),
            Finding::DampedComponents { components } => write!(
                f,
                "the shards disagree so much on {} that their product was improper and was damped",
                count(*components, "component")
            ),
            Finding::LiteralStepsKept { times } => {
                write!(
                    f,
                    "the paper's equations had no solution {}; the old value was kept",
                    count(*times, "time")
                )
            }
            Finding::EmptyShards { empty, shards } => write!(f, "{empty} of {shards} shards had no rows"),
            Finding::LargeStart { columns, rows, minutes, gigabytes } => write!(
                f,
                "{columns} columns are many for full covariances, and the start, fitted to the first {rows} rows, may take \
                 {} and {:.1} GB",
                roughly(*minutes),
                gigabytes.max(0.1)
            ),
        }
    }
}

fn roughly(minutes: f64) -> String {
    match minutes {
        m if m < 90.0 => format!("about {:.0} minutes", m.max(1.0)),
        m if m < 2880.0 => format!("about {:.0} hours", m / 60.0),
        m => format!("about {:.0} days", m / 1440.0),
    }
}

/// Columns that number the rows, judged by the first rows.
pub fn find_numbering(first: ArrayView2<f64>, names: &[String]) -> Vec<Finding> {
    const ENOUGH_TO_RISE: usize = 10;
    const ENOUGH_TO_DIFFER: usize = 500;
    let judge = |(values, name): (ArrayView1<f64>, &String)| {
        let differ =
            || values.iter().map(|value| value.to_bits()).collect::<HashSet<_>>().len() == values.len();
        let column = || name.clone();
        match values.iter().all(|value| value.fract() == 0.0) {
            true if values.len() >= ENOUGH_TO_RISE && rises_in_steps(values) => {
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
fn rises_in_steps(values: ArrayView1<f64>) -> bool {
    let mut steps: Vec<f64> = values.windows(2).into_iter().map(|pair| pair[1] - pair[0]).collect();
    steps.sort_by(f64::total_cmp);
    let usual = steps[steps.len() / 2];
    let even = steps.iter().filter(|&&step| step == usual).count();
    steps[0] > 0.0 && 5 * even >= 4 * steps.len()
}

/// Discrete columns, judged by the first rows.
pub fn find_discrete_columns(first: ArrayView2<f64>, names: &[String]) -> Option<Finding> {
    const ENOUGH: usize = 100;
    const MOST: usize = 1000;
    if first.nrows() < ENOUGH {
        return None;
    }
    let found = find_discrete(first.slice(s![..first.nrows().min(MOST), ..]));
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
pub(super) fn judge_order(
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
/// summaries stay what they were when the same rows come again.
pub(super) fn find_repeated_rows(before: &[ColumnSummary], after: &[ColumnSummary]) -> Option<Finding> {
    const ROUNDING: f64 = 1e-9;
    let is_same = |(before, after): (&ColumnSummary, &ColumnSummary)| {
        let (spread, moved) = (before.standard_deviation(), (after.mean - before.mean).abs());
        moved <= ROUNDING * before.unit() && (after.standard_deviation() - spread).abs() <= ROUNDING * spread
    };
    let varies = before.iter().any(|column| !column.is_constant());
    let (old, all) = (before.first().map_or(0, |c| c.count), after.first().map_or(0, |c| c.count));
    let repeats = all > old && old.is_multiple_of(all - old);
    (varies && repeats && before.iter().zip(after).all(is_same))
        .then_some(Finding::RepeatedRows { rows: all - old })
}

/// Whether shards have learned rows of their prior again, judged by how many rows of a sample were found among theirs.
pub(super) fn judge_prior_rows(found: usize, sampled: usize) -> Option<Finding> {
    are_repeated(found, sampled).then_some(Finding::PriorRowsRepeated { found, sampled })
}

/// Columns held at their floor although the first rows show no fault: those that are nearly functions of others.
pub(super) fn find_columns_at_floor(
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
    let lower: Vec<_> = mixture.components().iter().map(|c| c.covariance().lower_matrix()).collect();
    let is_held = |j: usize| lower.iter().any(|l| l[(j, j)].powi(2) < AT_FLOOR * floor[j]);
    let held = (0..floor.len()).filter(|&j| !is_known(j) && is_held(j));
    let columns: Vec<String> = held.map(|j| names[j].clone()).collect();
    (!columns.is_empty()).then_some(Finding::ColumnsAtFloor { columns })
}

/// Whether K was chosen by so few rows that it may be chance.
pub(super) fn judge_choice(scores: &[(usize, Prequential)]) -> Option<Finding> {
    const ENOUGH: u64 = 300;
    let rows = scores.iter().map(|(_, score)| score.rows).min().unwrap_or(0);
    (scores.len() > 1 && rows < ENOUGH).then_some(Finding::FewRowsScored { rows })
}

/// Whether there are too few rows for `k` components.
pub fn judge_row_count(k: usize, rows: u64) -> Option<Finding> {
    (rows < ENOUGH_PER_COMPONENT * k as u64).then_some(Finding::FewRowsPerComponent { k, rows })
}

/// The safeguards that a user should know of.
pub(super) fn judge_health(health: &Health) -> Vec<Finding> {
    let counted = [
        (health.rows_out_of_range, Finding::RowsOutOfRange { rows: health.rows_out_of_range }),
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
    fn rows_learned_twice_are_noticed_and_others_are_not() {
        let summary = |rows: &mut dyn Iterator<Item = i32>| -> Vec<ColumnSummary> {
            vec![rows.map(|i| f64::from(i * i % 89)).collect()]
        };
        let once = summary(&mut (0..100));
        let twice = summary(&mut (0..100).chain(0..100));
        assert_eq!(find_repeated_rows(&once, &twice), Some(Finding::RepeatedRows { rows: 100 }));
        assert_eq!(find_repeated_rows(&once, &summary(&mut (0..200))), None);
        assert_eq!(find_repeated_rows(&once, &once), None);
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

    #[test]
    fn a_text_is_a_fact_and_names_few_columns() {
        let columns = (0..7).map(|i| format!("x{i}")).collect();
        let text = Finding::DiscreteColumns { columns }.to_string();
        assert!(
            text.starts_with("'x0', 'x1', 'x2', 'x3', 'x4' and 2 more have few distinct values"),
            "{text}"
        );
        let text = judge_row_count(5, 49).map(|finding| finding.to_string()).unwrap_or_default();
        assert!(text.starts_with("5 components were learned from 49 rows"), "{text}");
        assert_eq!(judge_row_count(5, 50), None);
    }
}
