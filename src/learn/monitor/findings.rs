//! What a pass finds out about its data that a user should know: facts, and what can be done about them.

mod detect;
mod odd_values;

use std::fmt;

use serde::Serialize;

pub(in crate::learn) use detect::{
    find_columns_at_floor, find_repeated_rows, judge_choice, judge_health, judge_learned_k, judge_order,
    judge_prior_rows,
};
pub use detect::{find_discrete_columns, find_numbering, judge_row_count, name_column_faults};
pub use odd_values::find_odd_values;

use crate::learn::ChangeKind;
use crate::remedy::Remedy;
use crate::text::number::rounded;
use crate::text::{count, listed, quoted};

/// Something about the data, or about what was learned from them, that a user should know. Its text states the fact;
/// [`Finding::remedies`] says what can be done.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finding {
    /// A column increases by a constant step from row to row, like row numbers and times.
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
    /// A value occurs several times, far from all others of its columns, as a mark of missing values does.
    Sentinel {
        /// The value.
        value: f64,
        /// How often it occurs in the first rows.
        times: u64,
        /// The columns.
        columns: Vec<String>,
    },
    /// Columns that vary so little, compared with the others, that they decide the log-likelihood.
    NarrowColumns {
        /// Their names.
        columns: Vec<String>,
        /// What they add to the log-likelihood of a row, roughly, compared with as many usual columns.
        nats: f64,
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
    /// Later rows are unlike earlier ones, so the data change over time.
    DataChange {
        /// The row near which they change first.
        row: u64,
        /// In which way; files of earlier versions do not say.
        kind: Option<ChangeKind>,
        /// The row near which they change last.
        latest: u64,
        /// In which way.
        latest_kind: Option<ChangeKind>,
        /// How often a change was found.
        times: u64,
        /// Whether the pass has a half-life.
        forgets: bool,
    },
    /// The rows of a resumed pass are those that it had learned before.
    RepeatedRows {
        /// How many rows.
        rows: u64,
    },
    /// Rows were learned in the same order long before.
    RowsLearnedBefore {
        /// How many rows at least.
        rows: u64,
        /// The number of the first of them in the stream, from 1.
        from: u64,
        /// The number that it had before.
        before: u64,
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
    /// The learned K is the largest one that was allowed.
    LargestK {
        /// The K.
        k: usize,
    },
    /// The weights are so uneven that the rows say as much as much fewer rows of equal weight.
    UnevenWeights {
        /// Rows learned.
        rows: u64,
        /// Rows of equal weight that say as much.
        effective: u64,
    },
    /// The weights are so small that the rows count as much fewer rows.
    SmallWeights {
        /// Rows learned.
        rows: u64,
        /// Their total weight.
        total: f64,
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
    /// Rows held back for validation that are far from every component at the end of the stream, and were not learned.
    RowsSetAside {
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
const MAX_NAMED: usize = 5;

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
            Finding::NarrowColumns { columns, .. } => vec![Remedy::DropColumns(columns.clone())],
            Finding::Sentinel { value, .. } => vec![Remedy::ReadAsMissing(vec![value.to_string()])],
            Finding::DiscreteColumns { .. } => vec![Remedy::Dequantize],
            Finding::SortedRows { .. } => vec![Remedy::ShuffleRows],
            Finding::DataChange { forgets: false, .. } => vec![Remedy::SetHalfLife],
            Finding::DataChange { forgets: true, .. } => vec![Remedy::ShorterHalfLife],
            Finding::RepeatedRows { .. } | Finding::RowsLearnedBefore { .. } => vec![Remedy::GiveNewRows],
            Finding::PriorRowsRepeated { .. } => vec![Remedy::SkipPriorRows],
            Finding::FewRowsPerComponent { k: 1, .. } => vec![Remedy::GiveMoreRows],
            Finding::FewRowsPerComponent { .. } => vec![Remedy::FewerComponents],
            Finding::LargestK { .. } => vec![Remedy::MoreComponents],
            Finding::FewRowsScored { .. } => vec![Remedy::GiveMoreRows],
            Finding::RowsOutOfRange { .. } | Finding::RowsSetAside { .. } => vec![Remedy::CorrectData],
            Finding::DampedComponents { .. } => vec![Remedy::FewerShards, Remedy::LongerWarmUp],
            Finding::EmptyShards { .. } => vec![Remedy::FewerShards],
            Finding::LargeStart { .. } => vec![Remedy::ChooseColumns, Remedy::FewerStartRows],
            Finding::SmallWeights { .. } => vec![Remedy::ScaleWeights],
            Finding::UnevenWeights { .. } | Finding::LiteralStepsKept { .. } => Vec::new(),
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
                write!(f, "column '{column}' increases by a constant step, like a row number, {MISLEADS}")
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
                quoted(columns, MAX_NAMED)
            ),
            Finding::DiscreteColumns { columns } => {
                let (has, its) = if columns.len() == 1 { ("has", "its") } else { ("have", "their") };
                write!(
                    f,
                    "{} {has} few distinct values, so {its} density is unbounded and log-likelihoods are not comparable",
                    quoted(columns, MAX_NAMED)
                )
            }
            Finding::Sentinel { value, times, columns } => write!(
                f,
                "{value} occurs {} in the first rows of {}, far from all other values",
                count(*times, "time"),
                quoted(columns, MAX_NAMED)
            ),
            Finding::NarrowColumns { columns, nats } => write!(
                f,
                "the standard deviation of {} is less than a billionth of the usual one, which adds about {nats:.0} nats to the \
                 log-likelihood of a row, whatever the other columns are",
                quoted(columns, MAX_NAMED)
            ),
            Finding::ConstantColumn { column } => write!(f, "column '{column}' is constant {UNBOUNDED}"),
            Finding::CollinearColumn { column, on } => {
                let on: Vec<String> = on.iter().map(|name| format!("'{name}'")).collect();
                write!(f, "column '{column}' is a linear function of {} {UNBOUNDED}", on.join(" and "))
            }
            Finding::ColumnsAtFloor { columns } => write!(
                f,
                "in some components the variance of {}, given the columns before, is held at a floor, since it is nearly \
                 constant there or a function of them; the log-likelihood depends on the floor",
                quoted(columns, MAX_NAMED)
            ),
            Finding::SortedRows { shifts } => {
                let moved =
                    shifts.iter().map(|shift| format!("'{}' by {:.2}", shift.column, shift.deviations));
                write!(
                    f,
                    "the first rows, which the start is fitted to, differ from the later ones (means moved, in standard \
                     deviations: {})",
                    listed(moved, MAX_NAMED)
                )
            }
            Finding::DataChange { row, kind, latest, latest_kind, times, .. } => {
                write!(f, "the data change about row {}{}", rounded(*row), of_kind(*kind))?;
                match times {
                    1 => Ok(()),
                    2 => {
                        write!(f, " and again about row {}{}", rounded(*latest), of_kind(*latest_kind))
                    }
                    _ => write!(
                        f,
                        ", and {} more times, the last time about row {}{}",
                        times - 1,
                        rounded(*latest),
                        of_kind(*latest_kind)
                    ),
                }
            }
            Finding::RepeatedRows { rows } => write!(
                f,
                "the {} just learned seem to be rows that the model had learned already, so they now count twice",
                count(*rows, "row")
            ),
            Finding::RowsLearnedBefore { rows, from, before } => write!(
                f,
                "at least {}, from about row {from} of the stream, were learned before, from about row {before}, so they \
                 count twice",
                count(*rows, "row")
            ),
            Finding::PriorRowsRepeated { found, sampled } => write!(
                f,
                "of {sampled} rows drawn from those that the common prior has learned, {found} were learned again, so \
                 they count twice, unless the same values occur often in these data"
            ),
            Finding::FewRowsPerComponent { k, rows } => write!(
                f,
                "K = {k} has fewer than {ENOUGH_PER_COMPONENT} rows per component ({} in all), so components follow single \
                 rows",
                count(*rows, "row")
            ),
            Finding::LargestK { k } => {
                write!(
                    f,
                    "K = {k} is the largest that was allowed, so a larger K may describe the data better"
                )
            }
            Finding::UnevenWeights { rows, effective } => write!(
                f,
                "the weights are so uneven that the {} say only as much as about {effective} of equal weight",
                count(*rows, "row")
            ),
            Finding::SmallWeights { rows, total } => write!(
                f,
                "the weights of the {} sum up to {total:.2}, so they count as few rows, and the model knows little",
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
            Finding::RowsSetAside { rows } => write!(
                f,
                "{} held back for validation {} far from every component at the end of the stream, and nothing was learned from {}",
                count(*rows, "row"),
                if *rows == 1 { "is" } else { "are" },
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
                "{columns} columns are many, and the start, fitted to the first {rows} rows, may take \
                 {} and {:.1} GB",
                roughly(*minutes),
                gigabytes.max(0.1)
            ),
        }
    }
}

/// What changed, in words that follow the row.
fn of_kind(kind: Option<ChangeKind>) -> &'static str {
    match kind {
        Some(ChangeKind::Level) => " (the level of columns)",
        Some(ChangeKind::Spread) => " (the spread of columns)",
        Some(ChangeKind::Correlation) => " (the correlation of columns)",
        Some(ChangeKind::Weights) => " (the weights of clusters)",
        Some(ChangeKind::NewComponent) => " (a new kind of rows)",
        None => "",
    }
}

fn roughly(minutes: f64) -> String {
    match minutes {
        m if m < 90.0 => format!("about {:.0} minutes", m.max(1.0)),
        m if m < 2880.0 => format!("about {:.0} hours", m / 60.0),
        m => format!("about {:.0} days", m / 1440.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_a_fact_and_names_few_columns() {
        let columns = (0..7).map(|i| format!("x{i}")).collect();
        let text = Finding::DiscreteColumns { columns }.to_string();
        assert!(
            text.starts_with("'x0', 'x1', 'x2', 'x3', 'x4' and 2 more have few distinct values"),
            "{text}"
        );
        let text = judge_row_count(5, 49).map(|finding| finding.to_string()).unwrap_or_default();
        assert!(text.starts_with("K = 5 has fewer than 10 rows per component (49 rows in all)"), "{text}");
        assert_eq!(judge_row_count(5, 50), None);
    }

    #[test]
    fn a_change_has_a_row_and_a_remedy() {
        let change = |times, forgets| Finding::DataChange {
            row: 41_249,
            kind: Some(ChangeKind::Level),
            latest: 1_285_000,
            latest_kind: Some(ChangeKind::NewComponent),
            times,
            forgets,
        };
        let once = "the data change about row 41,200 (the level of columns)";
        assert_eq!(change(1, false).to_string(), once);
        let again = " and again about row 1,290,000 (a new kind of rows)";
        assert_eq!(change(2, false).to_string(), format!("{once}{again}"));
        let often = ", and 3 more times, the last time about row 1,290,000 (a new kind of rows)";
        assert_eq!(change(4, true).to_string(), format!("{once}{often}"));
        assert_eq!(change(1, false).remedies(), [Remedy::SetHalfLife]);
        assert_eq!(change(1, true).remedies(), [Remedy::ShorterHalfLife]);
    }
}
