//! Which columns of a file are the expected ones, such as those that a model was learned from.

use super::column_names::ColumnNames;
use super::columns::{ColumnChoice, Names, choose};
use super::csv::ColumnSample;
use super::error::DataError;
use super::notice::Notice;
use super::options::{Missing, ReadOptions};

/// The columns of a file, in the order of the expected ones.
///
/// If both have a header, columns are found by name, whatever the order of the chosen columns. If neither has one and no
/// columns are chosen, they are found by number if the numbers are the same. Otherwise they are matched by order. A notice
/// lists the pairs if names could be compared or columns were chosen.
pub(super) fn choose_expected(
    file: &str,
    names: &Names,
    has_header: bool,
    samples: &[ColumnSample],
    expected: &ColumnNames,
    options: &ReadOptions,
) -> Result<ColumnChoice, DataError> {
    let (both_named, neither_named) = (expected.named && has_header, !expected.named && !has_header);
    let is_chosen = !options.columns.is_empty();
    if both_named && !is_chosen {
        return all_by_name(file, names, expected, &options.drop);
    }
    let choose = |take_empty| choose(file, names, samples, &options.columns, &options.drop, take_empty);
    let fits = |choice: &ColumnChoice| choice.positions.len() == expected.len();
    let mut choice = choose(false);
    if options.missing == Missing::Marginal && !choice.as_ref().is_ok_and(fits) {
        // A column of the model may be empty here.
        choice = choose(true).ok().filter(fits).map_or(choice, Ok);
    }
    let mut choice = choice?;
    if choice.positions.len() != expected.len() {
        let (found, expected) = (choice.positions.len(), expected.len());
        return Err(DataError::ColumnCount { file: file.to_string(), found, expected });
    }
    let found = choice.positions.iter().map(|&i| names.name(i));
    let pairs: Vec<(&str, &str)> = found.zip(expected.names.iter().map(String::as_str)).collect();
    if (both_named || neither_named && !is_chosen) && is_permutation(&pairs) {
        choice.positions = names.positions(&expected.names).map_err(|column| missing(file, column))?;
        return Ok(choice);
    }
    let differing: Vec<(&str, &str)> = pairs.into_iter().filter(|(found, wanted)| found != wanted).collect();
    let has = |name: &str| expected.names.iter().any(|own| own == name);
    if let Some((found, wanted)) = differing.iter().find(|(found, _)| both_named && has(found)) {
        let (file, column, place) = (file.to_string(), found.to_string(), wanted.to_string());
        return Err(DataError::MisplacedColumn { file, column, place });
    }
    if is_chosen || neither_named {
        choice.notices.extend(matched_by_order(&differing));
    }
    Ok(choice)
}

/// All expected columns, by name.
fn all_by_name(
    file: &str,
    names: &Names,
    expected: &ColumnNames,
    drop: &[String],
) -> Result<ColumnChoice, DataError> {
    let positions = names.positions(&expected.names).map_err(|column| missing(file, column))?;
    for word in drop {
        // Columns to leave out need not exist in this file.
        let dropped = names.select(word).unwrap_or_default();
        let needed = positions.iter().find(|i| dropped.contains(i)).map(|&i| names.name(i));
        if let Some(column) = needed.or(expected.names.iter().find(|name| *name == word).map(String::as_str))
        {
            return Err(DataError::NeededColumn(column.to_string()));
        }
    }
    Ok(ColumnChoice { positions, notices: Vec::new() })
}

fn missing(file: &str, column: &str) -> DataError {
    DataError::ExpectedColumn { file: file.to_string(), column: column.to_string() }
}

/// Whether both sides have the same names, in any order.
fn is_permutation(pairs: &[(&str, &str)]) -> bool {
    let (mut found, mut wanted): (Vec<&str>, Vec<&str>) = pairs.iter().copied().unzip();
    found.sort_unstable();
    wanted.sort_unstable();
    found == wanted
}

/// The notice of columns that are matched with columns of other names; `None` if there are none.
fn matched_by_order(pairs: &[(&str, &str)]) -> Option<Notice> {
    let owned = |&(found, expected): &(&str, &str)| (found.to_string(), expected.to_string());
    let pairs: Vec<_> = pairs.iter().map(owned).collect();
    (!pairs.is_empty()).then_some(Notice::MatchedByOrder(pairs))
}
