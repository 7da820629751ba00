//! Columns of a file and those that a model was learned from.

use gmm_bmm::data::{ColumnNames, Missing, ReadOptions};

use super::{inputs, notices};

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
    let rows = options.open_inputs(inputs(&[text]));
    let mut rows = rows.map_err(|error| error.to_string())?;
    Ok((rows.columns().names.join(" "), notices(&mut rows).join("; ")))
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
    assert_eq!((columns.as_str(), notice.ends_with("'z' for 'u', 'x' for 'w'")), ("z x", true), "{notice}");
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
        let rows = options.open_inputs(inputs(&[text]));
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
        assert!(chosen("x y z", "y", "", drop).unwrap_err().contains("learned from column 'y'"), "{drop}");
    }
    for drop in ["x", "3", "elsewhere"] {
        assert_eq!(chosen("x y z", "y", "", drop), quietly("y"), "{drop}");
    }
}
