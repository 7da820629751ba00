//! What the first lines of a table show: the delimiter, the header, and which columns hold numbers.

use std::collections::HashSet;

use csv::ByteRecord;

use super::cell::{
    Comma, comma, is_date, is_missing, is_not_finite, is_number_with_sign, parse_number, shown,
};
use super::records::{RecordError, sample_records};
use super::sample::{SAMPLE_LINES, Sampled};
use crate::data::error::DataError;
use crate::data::notice::ColumnContent as Content;

/// What separates the cells of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delimiter {
    /// One byte.
    Byte(u8),
    /// A run of blanks and tabs.
    Blanks,
}

/// In order of preference when several split the sample equally well.
const CANDIDATES: [Delimiter; 5] = [
    Delimiter::Byte(b','),
    Delimiter::Byte(b';'),
    Delimiter::Byte(b'\t'),
    Delimiter::Byte(b'|'),
    Delimiter::Blanks,
];

impl Delimiter {
    /// The delimiter a user asked for.
    pub(super) fn forced(byte: u8) -> Result<Delimiter, DataError> {
        match byte {
            b' ' => Ok(Delimiter::Blanks),
            b'"' | b'\n' | b'\r' | b'.' | b'+' | b'-' | 0 | 0x80.. => {
                Err(DataError::BadDelimiter(byte.into()))
            }
            byte if byte.is_ascii_alphanumeric() => Err(DataError::BadDelimiter(byte.into())),
            byte => Ok(Delimiter::Byte(byte)),
        }
    }

    /// The delimiter that splits a sample into records of equal width with the most numbers. If none splits it, the text has
    /// one column, and the choice does not matter.
    pub(super) fn detect(sample: &[u8]) -> Delimiter {
        let mut best = (0.0, CANDIDATES[0]);
        for candidate in CANDIDATES {
            let records = sample_records(sample, candidate, SAMPLE_LINES, false).unwrap_or_default();
            let score = split_quality(&records);
            if score > best.0 {
                best = (score, candidate);
            }
        }
        best.1
    }
}

/// How well a delimiter splits: the fraction of records of the usual width, times the fraction of numbers among their cells
/// that are not empty, without the first record. Zero if most records have one field.
fn split_quality(records: &[ByteRecord]) -> f64 {
    let Some(width) = usual_width(records).filter(|&width| width > 1) else { return 0.0 };
    let usual = records.iter().filter(|record| record.len() == width);
    let usual_fraction = usual.clone().count() as f64 / records.len() as f64;
    if usual_fraction < 0.5 {
        return 0.0;
    }
    let below = if records.len() > 1 { &records[1..] } else { records };
    let (mut filled, mut numbers) = (0usize, 0usize);
    for cell in below.iter().filter(|record| record.len() == width).flat_map(|record| record.iter()) {
        // If empty cells counted, runs of blanks would win over tabs in tables with empty cells.
        filled += usize::from(!cell.trim_ascii().is_empty());
        numbers += usize::from(parse_number(cell).is_some() || comma(cell).is_some());
    }
    // Without any number, the width alone decides.
    usual_fraction * (0.05 + numbers as f64 / filled.max(1) as f64)
}

/// The most frequent number of fields; of equally frequent ones the first seen.
fn usual_width(records: &[ByteRecord]) -> Option<usize> {
    let count = |width| records.iter().filter(|record| record.len() == width).count();
    let mut best: Option<(usize, usize)> = None;
    let mut seen = Vec::new();
    for record in records {
        let width = record.len();
        if !seen.contains(&width) {
            seen.push(width);
            let times = count(width);
            if best.is_none_or(|(most, _)| times > most) {
                best = Some((times, width));
            }
        }
    }
    best.map(|(_, width)| width)
}

/// The shape of a table.
pub(super) struct TextLayout {
    pub(super) delimiter: Delimiter,
    /// The header, if there is one.
    pub(super) header: Option<ByteRecord>,
    /// How many fields each record has to have.
    pub(super) width: usize,
    /// The sample rows of that width, below the header.
    pub(super) rows: Vec<ByteRecord>,
}

impl TextLayout {
    /// Finds the shape of a sampled text. What is `Some` is not detected. A first line that contains all `known` names is a
    /// header.
    pub(super) fn detect(
        sampled: &Sampled,
        delimiter: Option<u8>,
        has_header: Option<bool>,
        known: &[String],
    ) -> Result<TextLayout, DataError> {
        let delimiter = match delimiter {
            Some(byte) => Delimiter::forced(byte)?,
            None => Delimiter::detect(&sampled.sample),
        };
        let file = || sampled.name.clone();
        let mut rows = match sample_records(&sampled.sample, delimiter, SAMPLE_LINES + 1, sampled.complete) {
            Ok(rows) => rows,
            Err(RecordError::OpenQuotation { line, lines }) => {
                return Err(DataError::Quotation { file: file(), line, lines, open: sampled.complete });
            }
            Err(RecordError::TooLarge(what)) => {
                return Err(DataError::TooLarge { file: file(), row: 0, what });
            }
            Err(RecordError::Io(source)) => return Err(DataError::Read { file: file(), row: 0, source }),
        };
        if rows.is_empty() && sampled.complete {
            return Err(DataError::Empty(file()));
        }
        let is_known = |first: &ByteRecord| {
            let cells: HashSet<&[u8]> = first.iter().map(<[u8]>::trim_ascii).collect();
            !known.is_empty() && known.iter().all(|name| cells.contains(name.as_bytes()))
        };
        let has_header =
            has_header.unwrap_or_else(|| rows.first().is_some_and(is_known) || looks_like_header(&rows));
        let header = (has_header && !rows.is_empty()).then(|| rows.remove(0));
        let usual = usual_width(&rows);
        let width = match (&header, usual) {
            (Some(header), Some(rows)) if header.len() != rows => {
                return Err(DataError::HeaderWidth { file: file(), header: header.len(), rows });
            }
            (Some(header), _) => header.len(),
            (None, usual) => usual.unwrap_or(1),
        };
        rows.retain(|row| row.len() == width);
        Ok(TextLayout { delimiter, header, width, rows })
    }

    /// Whether the header could also be a row: some of its cells are numbers.
    pub(super) fn header_holds_numbers(&self) -> bool {
        self.header.as_ref().is_some_and(|header| header.iter().any(|cell| parse_number(cell).is_some()))
    }

    /// What the sample holds in each column.
    pub(super) fn column_samples(&self) -> Vec<ColumnSample> {
        let mut columns = vec![ColumnSample::default(); self.width];
        for row in &self.rows {
            for (column, cell) in columns.iter_mut().zip(row.iter()) {
                column.add(cell);
            }
        }
        columns
    }
}

/// Whether a cell holds no number and says nothing about what its column holds.
fn has_no_value(cell: &[u8]) -> bool {
    is_missing(cell) || is_not_finite(cell)
}

/// Whether the first record names the columns.
fn looks_like_header(records: &[ByteRecord]) -> bool {
    let Some((first, below)) = records.split_first() else { return false };
    let is_word = |cell: &[u8]| !has_no_value(cell) && parse_number(cell).is_none() && comma(cell).is_none();
    let holds_numbers =
        |i: usize| below.iter().any(|row| row.get(i).is_some_and(|cell| parse_number(cell).is_some()));
    let words: Vec<(usize, &[u8])> = first.iter().enumerate().filter(|(_, cell)| is_word(cell)).collect();
    let any_number = first.iter().any(|cell| parse_number(cell).is_some());
    if words.is_empty() {
        return false;
    }
    if any_number {
        // 'id,1990,1991' is a header, and '5.1,3x,2' a row with a bad cell: names do not begin with a digit or a sign.
        let is_name = |cell: &[u8]| {
            cell.trim_ascii().first().is_some_and(|byte| !byte.is_ascii_digit() && !b"+-.".contains(byte))
        };
        return words.iter().any(|&(i, cell)| is_name(cell) && holds_numbers(i));
    }
    if words.iter().any(|&(i, _)| holds_numbers(i)) || below.is_empty() {
        return true;
    }
    // Words above words: a header if no word occurs again, neither in the line nor in its column.
    words.iter().enumerate().all(|(nth, &(i, cell))| {
        words[..nth].iter().all(|&(_, other)| other != cell)
            && below.iter().all(|row| row.get(i) != Some(cell))
    })
}

/// What the sample cells of one column are.
#[derive(Debug, Clone, Default)]
pub(in crate::data) struct ColumnSample {
    /// What the column holds, where that is known and no sample.
    known: Option<Content>,
    numbers: usize,
    with_point: usize,
    with_comma: usize,
    dates: usize,
    with_sign: usize,
    words: usize,
    comma_example: Option<(String, Comma)>,
}

impl ColumnSample {
    /// A column whose content is known.
    pub(in crate::data) fn known(content: Content) -> ColumnSample {
        ColumnSample { known: Some(content), ..ColumnSample::default() }
    }

    fn add(&mut self, cell: &[u8]) {
        if parse_number(cell).is_some() {
            self.numbers += 1;
            self.with_point += usize::from(cell.contains(&b'.'));
        } else if let Some(comma) = comma(cell) {
            self.with_comma += 1;
            // '1,234' in a column with '1,5' has a decimal comma too.
            if self.comma_example.as_ref().is_none_or(|(_, known)| *known != comma && comma == Comma::Decimal)
            {
                self.comma_example = Some((shown(cell), comma));
            }
        } else if is_date(cell) {
            self.dates += 1;
        } else if is_number_with_sign(cell) {
            self.with_sign += 1;
        } else if !has_no_value(cell) {
            self.words += 1;
        }
    }

    /// What the column holds. One number makes it a column of numbers.
    pub(in crate::data) fn content(&self) -> Content {
        match self {
            ColumnSample { known: Some(content), .. } => *content,
            _ if self.numbers > 0 => Content::Numbers,
            _ if self.dates > self.words => Content::Dates,
            _ if self.with_sign > self.words => Content::WithSign,
            _ if self.words > 0 || self.with_comma > 0 => Content::Words,
            _ => Content::Nothing,
        }
    }

    /// If the column's numbers are written with commas: an example, and what the commas are.
    pub(in crate::data) fn commas(&self) -> Option<(&str, Comma)> {
        // A single '1,5' or '1,234' in a column of numbers with points is a bad cell.
        let (example, comma) = self.comma_example.as_ref()?;
        let usual = self.with_comma > self.with_point && self.with_comma > self.words;
        usual.then_some((example.as_str(), *comma))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delimiter(sample: &str) -> Delimiter {
        Delimiter::detect(sample.as_bytes())
    }

    fn header(text: &str) -> bool {
        looks_like_header(&sample_records(text.as_bytes(), Delimiter::Byte(b','), 200, false).unwrap())
    }

    #[test]
    fn each_delimiter_is_found() {
        assert_eq!(delimiter("a,b\n1,2\n"), Delimiter::Byte(b','));
        assert_eq!(delimiter("a;b\n1;2\n"), Delimiter::Byte(b';'));
        assert_eq!(delimiter("a\tb\n1\t2\n"), Delimiter::Byte(b'\t'));
        assert_eq!(delimiter("a|b\n1|2\n"), Delimiter::Byte(b'|'));
        assert_eq!(delimiter("800   0  0.3048\n1000\t0  71.3 \n"), Delimiter::Blanks);
    }

    #[test]
    fn the_delimiter_that_leaves_numbers_wins() {
        assert_eq!(delimiter("a, b, c\n1, 2, 3\n"), Delimiter::Byte(b','));
        assert_eq!(
            delimiter("when,x\n2020-01-01 10:00:00,1\n2020-01-02 10:00:00,2\n"),
            Delimiter::Byte(b',')
        );
        assert_eq!(delimiter("3,14;2,71\n1,5;2,5\n"), Delimiter::Byte(b';'));
        assert_eq!(delimiter("New York\t1\t2\nLos Angeles\t3\t4\n"), Delimiter::Byte(b'\t'));
        assert_eq!(delimiter("1\t\t3\n4\t\t6\n"), Delimiter::Byte(b'\t'));
        assert_eq!(delimiter("\"a;b;c\",1\n\"d;e;f\",2\n"), Delimiter::Byte(b','));
        assert_eq!(delimiter("1,2,3\n1,2\n4,5,6\n"), Delimiter::Byte(b','));
    }

    #[test]
    fn a_single_column_has_no_delimiter() {
        assert_eq!(delimiter("my height\n1.5\n2.5\n"), Delimiter::Byte(b','));
    }

    #[test]
    fn a_delimiter_that_numbers_hold_is_refused() {
        for byte in *b"\"\n\r.-+5e\0" {
            assert!(Delimiter::forced(byte).is_err(), "{byte}");
        }
        assert_eq!(Delimiter::forced(b' ').unwrap(), Delimiter::Blanks);
        assert_eq!(Delimiter::forced(b':').unwrap(), Delimiter::Byte(b':'));
    }

    #[test]
    fn names_above_numbers_are_a_header() {
        assert!(header("x,y\n1,2\n"));
        assert!(header("x,Sex\n1,M\n"));
        assert!(header("id,1990,1991\n1,2,3\n"));
        assert!(header(",x\n1,2\n"));
        assert!(header("1stFlr,2ndFlr\n1,2\n"));
        assert!(header("x,y\n"));
        assert!(header("RI,Na,Mg\n1,2,3\n"));
        assert!(header(",name\n1,foo\n2,bar\n"));
    }

    #[test]
    fn numbers_and_data_rows_are_no_header() {
        assert!(!header("1,2\n3,4\n"));
        assert!(!header("1,2\n"));
        assert!(!header("M,0.455\nF,0.5\n"));
        assert!(!header("NA,2\n1,2\n"));
        assert!(!header("?,?\n1,2\n"));
        assert!(!header("5.1,3x,2\n4.9,3,1\n"));
        assert!(!header("a,b\na,c\n"));
        assert!(!header(""));
    }

    #[test]
    fn the_usual_width_is_the_most_frequent_and_then_the_first() {
        let records =
            |text: &str| sample_records(text.as_bytes(), Delimiter::Byte(b','), 200, false).unwrap();
        assert_eq!(usual_width(&records("1\n1,2\n1,2\n")), Some(2));
        assert_eq!(usual_width(&records("1,2,3\n1,2\n")), Some(3));
        assert_eq!(usual_width(&[]), None);
    }
}
