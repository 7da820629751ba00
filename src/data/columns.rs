//! Which columns to read: by name, number or range of numbers, or all that hold numbers.

use std::collections::{HashMap, HashSet};

use super::column_names::ColumnNames;
use super::csv::{ColumnSample, Comma};
use super::did_you_mean::did_you_mean;
use super::error::DataError;
use super::notice::{ColumnContent as Content, Notice};

/// The names of a table's columns.
pub(super) struct Names {
    /// As in the header.
    given: Vec<String>,
    /// The same, where repeated names got a number.
    unique: Vec<String>,
}

impl Names {
    /// The names in a header. A column without a name is named by its position.
    pub(super) fn from_header<'a>(header: impl IntoIterator<Item = &'a [u8]>) -> Names {
        let name = |(i, cell): (usize, &[u8])| {
            let text = String::from_utf8_lossy(cell).trim().to_string();
            if text.is_empty() { ColumnNames::by_position(i) } else { text }
        };
        let given: Vec<String> = header.into_iter().enumerate().map(name).collect();
        let unique = made_unique(&given);
        Names { given, unique }
    }

    /// The names of `width` columns without a header: `c1`, `c2` and so on.
    pub(super) fn by_position(width: usize) -> Names {
        let given = ColumnNames::unnamed(width).names;
        Names { unique: given.clone(), given }
    }

    /// The unique name of column `i` (from 0).
    pub(super) fn name(&self, i: usize) -> &str {
        &self.unique[i]
    }

    /// The positions of columns by their unique names. The error is the first name that does not exist.
    pub(super) fn positions<'a>(&self, wanted: &'a [String]) -> Result<Vec<usize>, &'a str> {
        let places: HashMap<&str, usize> =
            self.unique.iter().enumerate().map(|(i, name)| (name.as_str(), i)).collect();
        wanted.iter().map(|name| places.get(name.as_str()).copied().ok_or(name.as_str())).collect()
    }

    /// The columns among `chosen` whose name in the header is that of an earlier column.
    pub(super) fn renamed(&self, chosen: &[usize]) -> Vec<String> {
        let renamed = chosen.iter().filter(|&&i| self.given[i] != self.unique[i]);
        renamed.map(|&i| self.name(i).to_string()).collect()
    }

    /// The positions that a selector means: an exact name, a number, or a range of numbers.
    pub(super) fn select(&self, selector: &str) -> Result<Vec<usize>, DataError> {
        let wanted = selector.trim();
        let given: Vec<usize> = (0..self.given.len()).filter(|&i| self.given[i] == wanted).collect();
        match given.as_slice() {
            [_] => return Ok(given),
            [] => {}
            _ => {
                let numbers = given.iter().map(|i| i + 1).collect();
                return Err(DataError::AmbiguousColumn { wanted: wanted.into(), numbers });
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
            None => Err(DataError::UnknownColumn {
                file: None,
                wanted: wanted.into(),
                nearest: did_you_mean(wanted, self.unique.iter().map(String::as_str)).map(String::from),
                columns: self.unique.clone(),
            }),
        }
    }

    pub(super) fn select_all(&self, selectors: &[String]) -> Result<Vec<usize>, DataError> {
        let mut seen = HashSet::new();
        let mut positions = Vec::new();
        for selector in selectors {
            positions.extend(self.select(selector)?.into_iter().filter(|&i| seen.insert(i)));
        }
        Ok(positions)
    }
}

/// The positions, among `names`, of the columns that selectors such as `Length`, `3` or `5-8` mean.
pub fn select_columns(names: &[String], selectors: &[String]) -> Result<Vec<usize>, DataError> {
    Names { given: names.to_vec(), unique: names.to_vec() }.select_all(selectors)
}

fn made_unique(given: &[String]) -> Vec<String> {
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

/// The columns to read, and what a user should know about them.
#[derive(Debug)]
pub(super) struct ColumnChoice {
    /// Positions in the file, in the order of the result.
    pub(super) positions: Vec<usize>,
    pub(super) notices: Vec<Notice>,
}

/// Chooses `columns`, or all that hold numbers if that is empty, without those in `drop`. If `take_empty`, a column that is
/// empty in the sample counts as one of numbers.
pub(super) fn choose(
    file: &str,
    names: &Names,
    samples: &[ColumnSample],
    columns: &[String],
    drop: &[String],
    take_empty: bool,
) -> Result<ColumnChoice, DataError> {
    let select = |selectors| names.select_all(selectors).map_err(|error| error.in_file(file));
    let dropped: HashSet<usize> = select(drop)?.into_iter().collect();
    let wanted = if columns.is_empty() { (0..samples.len()).collect() } else { select(columns)? };
    let kept: Vec<usize> = wanted.into_iter().filter(|i| !dropped.contains(i)).collect();
    if kept.is_empty() {
        return Err(DataError::AllColumnsDropped(file.to_string()));
    }
    // Otherwise such columns would count as words and be left out.
    for &i in &kept {
        if let Some((cell, comma)) = samples[i].commas() {
            let (file, column, cell) = (file.to_string(), names.name(i).to_string(), cell.to_string());
            return Err(match comma {
                Comma::Decimal => DataError::DecimalComma { file, column, cell },
                Comma::Thousands => DataError::ThousandsComma { file, column, cell },
            });
        }
    }
    let is_read = |&i: &usize| match samples[i].content() {
        _ if !columns.is_empty() => true,
        Content::Numbers => true,
        Content::Nothing => take_empty,
        _ => false,
    };
    let (positions, left_out): (Vec<usize>, Vec<usize>) = kept.into_iter().partition(is_read);
    let mut notices = Vec::new();
    for content in Content::LEFT_OUT {
        let alike = left_out.iter().filter(|&&i| samples[i].content() == content);
        let columns: Vec<String> = alike.map(|&i| names.name(i).to_string()).collect();
        if !columns.is_empty() {
            notices.push(Notice::LeftOut { columns, content });
        }
    }
    if positions.is_empty() {
        return Err(DataError::NoNumbers { file: file.to_string(), left_out: notices, is_text: true });
    }
    let renamed = names.renamed(&positions);
    if !renamed.is_empty() {
        notices.push(Notice::Renamed(renamed));
    }
    Ok(ColumnChoice { positions, notices })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(header: &[&str]) -> Names {
        Names::from_header(header.iter().map(|name| name.as_bytes()))
    }

    fn select(names: &Names, selectors: &[&str]) -> Result<Vec<usize>, String> {
        let selectors: Vec<String> = selectors.iter().map(|s| s.to_string()).collect();
        names.select_all(&selectors).map_err(|error| error.to_string())
    }

    #[test]
    fn names_take_precedence_over_numbers() {
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
        let names = Names { given: vec!["x,y".into()], unique: vec!["x,y".into()] };
        let error = names.select("x").unwrap_err().in_file("a.csv").to_string();
        assert_eq!(
            error,
            "'a.csv': there is no column 'x': if 'x,y' is meant, choose it by its number, 1, because its name has a comma"
        );
    }

    #[test]
    fn only_the_first_twenty_names_are_listed() {
        let error = select(&Names::by_position(25), &["zzzzz"]).unwrap_err();
        assert!(error.ends_with("c19, c20 and 5 more"), "{error}");
    }

    #[test]
    fn equal_names_are_made_unique_and_are_ambiguous_to_choose() {
        let names = names(&["x", "x.2", "x", "", "x"]);
        let unique: Vec<&str> = (0..5).map(|i| names.name(i)).collect();
        assert_eq!(unique, ["x", "x.2", "x.3", "c4", "x.4"]);
        assert!(select(&names, &["x"]).unwrap_err().contains("columns 1, 3, 5"));
        assert_eq!(select(&names, &["x.3", "c4", "1"]), Ok(vec![2, 3, 0]));
    }
}
