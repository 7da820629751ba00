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
            return Err(DataError::NeededColumn { column: column.to_string() });
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
    (!pairs.is_empty()).then_some(Notice::MatchedByOrder { pairs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::input::Input;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(String::from).collect()
    }

    /// The columns chosen from a file of three for a model, and what is said of them. Names such as `c1` are those of
    /// files without a header.
    fn chosen(header: &str, model: &str, columns: &str, drop: &str) -> Result<(String, String), String> {
        let is_unnamed = |names: &str| names.starts_with('c');
        let header = if is_unnamed(header) { String::new() } else { header.replace(' ', ",") + "\n" };
        let text = format!("{header}1,2,3\n4,5,6\n");
        let expected = ColumnNames { named: !is_unnamed(model), ..ColumnNames::named(words(model)) };
        let options = ReadOptions::default().columns(words(columns)).drop(words(drop)).expected(expected);
        let rows = options.open_inputs(vec![Input::from_bytes("data", text)]);
        let mut rows = rows.map_err(|error| error.to_string())?;
        let notices: Vec<String> = rows.take_notices().iter().map(Notice::to_string).collect();
        Ok((rows.columns().names.join(" "), notices.join("; ")))
    }

    fn quietly(columns: &str) -> Result<(String, String), String> {
        Ok((columns.to_string(), String::new()))
    }

    #[test]
    fn names_are_matched_whatever_the_order_of_the_chosen_columns() {
        for columns in ["", "x y", "y x", "2 1", "y 1"] {
            assert_eq!(chosen("x y z", "x y", columns, ""), quietly("x y"), "{columns}");
            assert_eq!(chosen("x y z", "y x", columns, ""), quietly("y x"), "{columns}");
        }
        assert_eq!(chosen("x y z", "z x", "1-3", "2"), quietly("z x"));
    }

    #[test]
    fn other_names_are_matched_by_order_with_a_notice() {
        let (columns, notice) = chosen("x y z", "x w", "x z", "").unwrap();
        assert_eq!(columns, "x z");
        assert_eq!(notice, "columns are matched with the model's by their order: 'z' for 'w'");
        let (columns, notice) = chosen("x y z", "u w", "z x", "").unwrap();
        assert_eq!(
            (columns.as_str(), notice.ends_with("'z' for 'u', 'x' for 'w'")),
            ("z x", true),
            "{notice}"
        );
    }

    #[test]
    fn a_name_of_the_model_cannot_stand_for_another_column() {
        for columns in ["y z", "z x", "2 3"] {
            let error = chosen("x y z", "x y", columns, "").unwrap_err();
            assert!(error.contains("in the place of the model's"), "{error}");
        }
        assert!(chosen("x y z", "x y", "x", "").unwrap_err().contains("1 column"));
    }

    #[test]
    fn columns_without_names_go_by_number_or_by_the_order_that_is_asked_for() {
        // The model's numbers are known, unless the user says otherwise.
        assert_eq!(chosen("c", "c3 c1 c2", "", ""), quietly("c3 c1 c2"));
        assert_eq!(chosen("c", "c3 c1", "3 1", ""), quietly("c3 c1"));
        let (columns, notice) = chosen("c", "c1 c2", "2 1", "").unwrap();
        assert_eq!((columns.as_str(), notice.ends_with("'c2' for 'c1', 'c1' for 'c2'")), ("c2 c1", true));
        // As after the first column was left out of one file but is in the other.
        let (columns, notice) = chosen("c", "c2 c3", "", "3").unwrap();
        assert_eq!((columns.as_str(), notice.ends_with("'c1' for 'c2', 'c2' for 'c3'")), ("c1 c2", true));
    }

    #[test]
    fn where_one_side_has_names_the_order_counts() {
        assert_eq!(chosen("c", "x y z", "", ""), quietly("c1 c2 c3"));
        assert_eq!(chosen("x y z", "c1 c2 c3", "", ""), quietly("x y z"));
        let (columns, notice) = chosen("x y z", "c1 c2", "z y", "").unwrap();
        assert_eq!((columns.as_str(), notice.ends_with("'z' for 'c1', 'y' for 'c2'")), ("z y", true));
    }

    #[test]
    fn an_empty_column_can_be_one_of_the_model_s_where_gaps_are_accepted() {
        let columns = |text: &str, missing: Missing| {
            let expected = ColumnNames::unnamed(3);
            let options = ReadOptions::default().expected(expected).missing(missing);
            let rows = options.open_inputs(vec![Input::from_bytes("data", text)]);
            rows.map(|rows| rows.columns().names.join(" ")).map_err(|error| error.to_string())
        };
        assert_eq!(columns("1,,3\n4,,6\n", Missing::Marginal).unwrap(), "c1 c2 c3");
        assert_eq!(columns(",,\n,,\n", Missing::Marginal).unwrap(), "c1 c2 c3");
        // An empty column that is none of the model's is left out.
        assert_eq!(columns("1,2,3,\n4,5,6,\n", Missing::Marginal).unwrap(), "c1 c2 c3");
        assert!(columns("1,,3\n4,,6\n", Missing::Skip).unwrap_err().contains("2 columns"));
        assert!(columns("1,,,3\n4,,,6\n", Missing::Marginal).unwrap_err().contains("2 columns"));
    }

    #[test]
    fn what_the_model_needs_cannot_be_dropped_by_name_or_number() {
        for drop in ["y", "2", "1-3"] {
            assert!(
                chosen("x y z", "y", "", drop).unwrap_err().contains("learned from column 'y'"),
                "{drop}"
            );
        }
        for drop in ["x", "3", "elsewhere"] {
            assert_eq!(chosen("x y z", "y", "", drop), quietly("y"), "{drop}");
        }
    }
}
