//! Which columns to read: by name, by number, by range of numbers, or all that hold numbers.

use std::collections::{HashMap, HashSet};

use csv::ByteRecord;

use super::cell::Comma;
use super::column_names::ColumnNames;
use super::detect::{ColumnSample, Content};
use super::error::DataError;
use super::nearest::nearest;
use crate::text::listed;

/// The names of a table's columns.
pub(super) struct Names {
    /// As the header has them.
    given: Vec<String>,
    /// The same, later ones of equal names told apart by a number.
    unique: Vec<String>,
}

impl Names {
    /// The names in a header; a column without a name is called by its position.
    pub(super) fn from_header(header: &ByteRecord) -> Names {
        let name = |(i, cell): (usize, &[u8])| {
            let text = String::from_utf8_lossy(cell).trim().to_string();
            if text.is_empty() { ColumnNames::by_position(i) } else { text }
        };
        let given: Vec<String> = header.iter().enumerate().map(name).collect();
        let unique = told_apart(&given);
        Names { given, unique }
    }

    /// The names of `width` columns without a header: `c1`, `c2` and so on.
    pub(super) fn by_position(width: usize) -> Names {
        let given = ColumnNames::unnamed(width).names;
        Names { unique: given.clone(), given }
    }

    /// Column `i` (from 0), by a name that no other column has.
    pub(super) fn name(&self, i: usize) -> &str {
        &self.unique[i]
    }

    /// The positions of columns by their unique names; the first name that is not there is the error.
    pub(super) fn positions<'a>(&self, wanted: &'a [String]) -> Result<Vec<usize>, &'a str> {
        let places: HashMap<&str, usize> =
            self.unique.iter().enumerate().map(|(i, name)| (name.as_str(), i)).collect();
        wanted.iter().map(|name| places.get(name.as_str()).copied().ok_or(name.as_str())).collect()
    }

    /// The columns among `chosen` that share their given name with an earlier column.
    pub(super) fn renamed(&self, chosen: &[usize]) -> Vec<&str> {
        chosen.iter().filter(|&&i| self.given[i] != self.unique[i]).map(|&i| self.name(i)).collect()
    }

    /// The positions that a user's selector stands for: an exact name, a number, or a range of numbers.
    pub(super) fn select(&self, selector: &str) -> Result<Vec<usize>, DataError> {
        let wanted = selector.trim();
        let given: Vec<usize> = (0..self.given.len()).filter(|&i| self.given[i] == wanted).collect();
        match given.as_slice() {
            [_] => return Ok(given),
            [] => {}
            _ => {
                let numbers: Vec<String> = given.iter().map(|i| (i + 1).to_string()).collect();
                return Err(DataError::AmbiguousColumn {
                    wanted: wanted.into(),
                    numbers: numbers.join(", "),
                });
            }
        }
        if let Some(i) = self.unique.iter().position(|name| name == wanted) {
            return Ok(vec![i]);
        }
        match number_range(wanted) {
            Some((low, high)) if 1 <= low && low <= high && high <= self.given.len() => {
                Ok((low - 1..high).collect())
            }
            Some(_) => Err(DataError::ColumnNumber { wanted: wanted.into(), count: self.given.len() }),
            None => Err(DataError::UnknownColumn { wanted: wanted.into(), hint: self.hint(wanted) }),
        }
    }

    fn select_all(&self, selectors: &[String]) -> Result<Vec<usize>, DataError> {
        let mut seen = HashSet::new();
        let mut positions = Vec::new();
        for selector in selectors {
            positions.extend(self.select(selector)?.into_iter().filter(|&i| seen.insert(i)));
        }
        Ok(positions)
    }

    fn hint(&self, wanted: &str) -> String {
        const MOST: usize = 20;
        let nearest = nearest(wanted, self.unique.iter().map(String::as_str));
        let hint = nearest.map_or(String::new(), |name| format!(": did you mean '{name}'?"));
        let separator = if hint.is_empty() { ": the" } else { " The" };
        hint + &format!("{separator} columns are {}", listed(self.unique.iter().cloned(), MOST))
    }
}

/// Where the columns are, among those of these names, that selectors such as `Length`, `3` or `5-8` stand for.
pub fn select_columns(names: &[String], selectors: &[String]) -> Result<Vec<usize>, DataError> {
    Names { given: names.to_vec(), unique: names.to_vec() }.select_all(selectors)
}

fn told_apart(given: &[String]) -> Vec<String> {
    let mut taken: HashSet<String> = given.iter().cloned().collect();
    let mut times: HashMap<&str, usize> = HashMap::new();
    let mut unique = Vec::with_capacity(given.len());
    for name in given {
        let nth = times.entry(name).or_insert(0);
        *nth += 1;
        if *nth == 1 {
            unique.push(name.clone());
            continue;
        }
        while !taken.insert(format!("{name}.{nth}")) {
            *nth += 1;
        }
        unique.push(format!("{name}.{nth}"));
    }
    unique
}

/// `3` as (3, 3) and `2-5` as (2, 5).
fn number_range(text: &str) -> Option<(usize, usize)> {
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().unwrap_or(usize::MAX))
    };
    match text.split_once('-') {
        Some((low, high)) => Some((number(low.trim())?, number(high.trim())?)),
        None => number(text).map(|n| (n, n)),
    }
}

/// The columns to read, and what the user should know about them.
#[derive(Debug)]
pub(super) struct Choice {
    /// Positions in the file, in the order of the result.
    pub(super) positions: Vec<usize>,
    /// Sentences for the user.
    pub(super) notices: Vec<String>,
}

/// Chooses `columns`, or all that hold numbers if that is empty, without those in `drop`.
pub(super) fn choose(
    file: &str,
    names: &Names,
    samples: &[ColumnSample],
    columns: &[String],
    drop: &[String],
) -> Result<Choice, DataError> {
    let no_columns = |why: String| DataError::NoColumns { file: file.to_string(), why };
    let dropped: HashSet<usize> = names.select_all(drop)?.into_iter().collect();
    let wanted = if columns.is_empty() { (0..samples.len()).collect() } else { names.select_all(columns)? };
    let kept: Vec<usize> = wanted.into_iter().filter(|i| !dropped.contains(i)).collect();
    if kept.is_empty() {
        return Err(no_columns("--drop names them all, so drop fewer".into()));
    }
    // Left to itself the reader would take such columns for words and quietly leave them out.
    for &i in &kept {
        if let Some((cell, comma)) = samples[i].commas() {
            let (file, column, cell) = (file.to_string(), names.name(i).to_string(), cell.to_string());
            return Err(match comma {
                Comma::Decimal => DataError::DecimalComma { file, column, cell },
                Comma::Thousands => DataError::ThousandsComma { file, column, cell },
            });
        }
    }
    let (positions, left_out): (Vec<usize>, Vec<usize>) =
        kept.into_iter().partition(|&i| !columns.is_empty() || samples[i].content() == Content::Numbers);
    let mut notices = Vec::new();
    let named = |positions: &[usize]| positions.iter().map(|&i| names.name(i)).collect::<Vec<_>>();
    for (content, it_holds, they_hold) in LEFT_OUT {
        let alike: Vec<usize> =
            left_out.iter().copied().filter(|&i| samples[i].content() == content).collect();
        notices.extend(about(&named(&alike), it_holds, they_hold));
    }
    if positions.is_empty() {
        return Err(no_columns(format!(
            "none holds numbers in the first rows ({}); check --delimiter and --columns",
            notices.join("; ")
        )));
    }
    let (one, many) = (
        "so called because an earlier one has the same name",
        "so called because earlier ones have the same name",
    );
    notices.extend(about(&names.renamed(&positions), one, many));
    Ok(Choice { positions, notices })
}

/// What is said of columns without numbers, by what they hold instead.
const LEFT_OUT: [(Content, &str, &str); 4] = [
    (Content::Words, "left out: it holds words, not numbers", "left out: they hold words, not numbers"),
    (
        Content::Dates,
        "left out: it holds dates or times, not numbers; to learn from them, write them as numbers, such as days",
        "left out: they hold dates or times, not numbers; to learn from them, write them as numbers, such as days",
    ),
    (
        Content::WithSign,
        "left out: it holds numbers with a sign such as % or $; to learn from them, write them without it",
        "left out: they hold numbers with a sign such as % or $; to learn from them, write them without it",
    ),
    (
        Content::Nothing,
        "left out: it is empty in the first rows",
        "left out: they are empty in the first rows",
    ),
];

/// A sentence about some columns, or none about none.
fn about(names: &[&str], one: &str, many: &str) -> Option<String> {
    const MOST: usize = 20;
    let quoted: Vec<String> = names.iter().take(MOST).map(|name| format!("'{name}'")).collect();
    match quoted.as_slice() {
        [] => None,
        [name] => Some(format!("column {name} {one}")),
        _ if names.len() > MOST => {
            Some(format!("columns {} and {} more {many}", quoted.join(", "), names.len() - MOST))
        }
        [first @ .., last] => Some(format!("columns {} and {last} {many}", first.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(header: &[&str]) -> Names {
        Names::from_header(&ByteRecord::from(header.to_vec()))
    }

    fn select(names: &Names, selectors: &[&str]) -> Result<Vec<usize>, String> {
        let selectors: Vec<String> = selectors.iter().map(|s| s.to_string()).collect();
        names.select_all(&selectors).map_err(|error| error.to_string())
    }

    #[test]
    fn names_win_over_numbers_and_numbers_over_nothing() {
        let names = names(&["a", "3", "b", "1-2"]);
        assert_eq!(select(&names, &["3"]), Ok(vec![1]));
        assert_eq!(select(&names, &["1-2"]), Ok(vec![3]));
        assert_eq!(select(&names, &["4", "1", "2-3"]), Ok(vec![3, 0, 1, 2]));
        assert_eq!(select(&names, &["b", "b", "1"]), Ok(vec![2, 0]));
    }

    #[test]
    fn numbers_that_no_column_has_are_refused() {
        let names = names(&["a", "b"]);
        for wanted in ["0", "3", "1-3", "2-1", "99999999999999999999999"] {
            assert!(select(&names, &[wanted]).unwrap_err().contains("numbered 1 to 2"), "{wanted}");
        }
    }

    #[test]
    fn an_unknown_name_gets_the_nearest_and_the_list() {
        let names = names(&["Length", "Height"]);
        let error = select(&names, &["hieght"]).unwrap_err();
        assert_eq!(
            error,
            "there is no column 'hieght': did you mean 'Height'? The columns are Length, Height"
        );
        let error = select(&names, &["colour"]).unwrap_err();
        assert_eq!(error, "there is no column 'colour': the columns are Length, Height");
    }

    #[test]
    fn only_the_first_twenty_names_are_listed() {
        let error = select(&Names::by_position(25), &["zzzzz"]).unwrap_err();
        assert!(error.ends_with("c19, c20 and 5 more"), "{error}");
    }

    #[test]
    fn equal_names_are_told_apart_and_are_ambiguous_to_choose() {
        let names = names(&["x", "x.2", "x", "", "x"]);
        let unique: Vec<&str> = (0..5).map(|i| names.name(i)).collect();
        assert_eq!(unique, ["x", "x.2", "x.3", "c4", "x.4"]);
        assert!(select(&names, &["x"]).unwrap_err().contains("columns 1, 3, 5"));
        assert_eq!(select(&names, &["x.3", "c4", "1"]), Ok(vec![2, 3, 0]));
    }

    #[test]
    fn columns_left_out_share_a_sentence() {
        assert_eq!(about(&[], "is", "are"), None);
        assert_eq!(about(&["a"], "is", "are").unwrap(), "column 'a' is");
        assert_eq!(about(&["a", "b", "c"], "is", "are").unwrap(), "columns 'a', 'b' and 'c' are");
        assert!(about(&["a"; 23], "is", "are").unwrap().ends_with("'a' and 3 more are"));
    }
}
