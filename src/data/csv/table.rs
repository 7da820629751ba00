//! One open input: its records, and which of their cells make a row.

use csv::ByteRecord;

use super::cell::{is_missing, parse_number, shown, why_bad};
use super::detect::{Delimiter, TextLayout};
use super::fast_lines::PlainLines;
use super::records::{RecordError, Records, line_ends};
use super::sample::{Sampled, take_sample};
use crate::data::bad_row::BadCell;
use crate::data::block::Block;
use crate::data::columns::Names;
use crate::data::error::DataError;
use crate::data::input::OpenInput;
use crate::data::missing::MissingMarks;
use crate::data::notice::Notice;
use crate::data::options::{BadCells, BadRows, Missing, ReadOptions};
use crate::data::row_texts::RowTexts;
use crate::data::table::{BadCellCount, Flaw, RowTable, TableShape, TableStep};

/// One open input.
pub(in crate::data) struct TextTable {
    file: String,
    gzip: bool,
    records: Records,
    /// The fast path for plain lines, unless it is disabled.
    plain: Option<PlainLines>,
    /// The fields of a record that make a row.
    positions: Vec<usize>,
    /// The fields of a record whose text is kept.
    kept: Vec<usize>,
    /// Whether rows are returned as soon as they arrive.
    prompt: bool,
    /// How many fields a record must have.
    width: usize,
    /// The byte between fields.
    delimiter: u8,
    /// Whether bad rows are skipped.
    skips_bad_rows: bool,
    rules: CellRules,
    /// Good and bad rows read from this input.
    rows: u64,
    /// The names of all fields.
    names: Names,
    /// The cell with the most lines so far that may hold rows.
    longest: Option<LongCell>,
}

/// A quoted cell of at least this many lines may hold rows that a stray quote has swallowed.
const MANY_LINES: u64 = 10;

/// A quoted cell of several lines.
#[derive(Debug, Clone, Copy)]
struct LongCell {
    line: u64,
    row: u64,
    field: usize,
    lines: u64,
}

impl TextTable {
    /// Opens the first input: detects its layout and chooses the columns. Also returns what a user should know.
    pub(in crate::data) fn first(
        input: OpenInput,
        options: &ReadOptions,
    ) -> Result<(TextTable, TableShape, Vec<Notice>), DataError> {
        let sampled = take_sample(input, options.follow)?;
        let known = match &options.expected {
            // A few lines may not show what is a header.
            Some(expected) if options.follow && expected.named => expected.of_data().names,
            _ => Vec::new(),
        };
        let layout = TextLayout::detect(&sampled, options.delimiter, options.has_header, &known)?;
        if layout.header.is_some() && layout.rows.is_empty() && sampled.complete {
            return Err(DataError::HeaderOnly(sampled.name));
        }
        let names = names_of(&layout);
        let samples = layout.column_samples();
        let has_header = layout.header.is_some();
        let (shape, mut notices) = TableShape::choose(&sampled.name, &names, has_header, &samples, options)?;
        if options.has_header.is_none() && layout.header_holds_numbers() {
            notices.push(Notice::HeaderWithNumbers(sampled.name.clone()));
        }
        let (positions, kept) = (shape.positions.clone(), shape.kept.1.clone());
        Ok((TextTable::start(sampled, &layout, positions, kept, options)?, shape, notices))
    }

    /// Opens a later input, which must have the columns of the first. Also returns a notice if it has no rows.
    pub(in crate::data) fn later(
        input: OpenInput,
        shape: &TableShape,
        options: &ReadOptions,
    ) -> Result<(TextTable, Option<Notice>), DataError> {
        let sampled = take_sample(input, options.follow)?;
        let known: &[String] = if shape.of_data.named { &shape.of_data.names } else { &[] };
        let layout = TextLayout::detect(&sampled, options.delimiter, options.has_header, known)?;
        let (positions, kept) =
            shape.find_in(&sampled.name, &names_of(&layout), layout.header.is_some(), layout.width)?;
        let is_empty = layout.rows.is_empty() && sampled.complete;
        let notice = is_empty.then(|| Notice::HeaderOnly(sampled.name.clone()));
        Ok((TextTable::start(sampled, &layout, positions, kept, options)?, notice))
    }

    fn start(
        sampled: Sampled,
        layout: &TextLayout,
        positions: Vec<usize>,
        kept: Vec<usize>,
        options: &ReadOptions,
    ) -> Result<TextTable, DataError> {
        let mut records = Records::new(sampled.text, layout.delimiter);
        let (file, gzip) = (sampled.name, sampled.gzip);
        let delimiter = match layout.delimiter {
            Delimiter::Byte(byte) => byte,
            Delimiter::Blanks => b' ',
        };
        let width = layout.width;
        let plain = if options.keep_text {
            records.keep_text();
            None
        } else if options.csv_crate_only {
            records.disable_fast_path();
            None
        } else if !kept.is_empty() {
            None
        } else {
            PlainLines::new(delimiter, width, &positions)
        };
        if options.follow {
            records.read_by_line();
        }
        let prompt = options.prompt;
        let mut table = TextTable {
            file,
            gzip,
            records,
            plain,
            positions,
            kept,
            prompt,
            width,
            delimiter,
            skips_bad_rows: options.bad_rows == BadRows::Skip,
            rules: CellRules {
                marks: MissingMarks::new(&options.missing_marks),
                takes_bad_cells: options.bad_cells == BadCells::Missing,
            },
            rows: 0,
            names: names_of(layout),
            longest: None,
        };
        if options.missing == Missing::Marginal {
            table.take_gaps();
        }
        if layout.header.is_some() {
            table.advance()?;
        }
        Ok(table)
    }

    /// Remembers the quoted cell of the current record if it may hold rows and has more lines than those before it.
    fn note_long_cell(&mut self) {
        let record = self.records.record();
        if self.records.lines() <= self.longest.map_or(1, |cell| cell.lines) {
            return;
        }
        let Some((field, cell)) = record.iter().enumerate().max_by_key(|(_, cell)| line_ends(cell)) else {
            return;
        };
        let lines = 1 + line_ends(cell) as u64;
        let delimiters = |line: &[u8]| line.iter().filter(|&&byte| byte == self.delimiter).count();
        let holds_row = || cell.split(|&byte| byte == b'\n').any(|line| delimiters(line) + 1 >= self.width);
        if lines >= MANY_LINES || holds_row() {
            self.longest = Some(LongCell { line: self.records.line(), row: self.rows, field, lines });
        }
    }

    /// Whether line ends in a quoted cell make the current record a bad one: it has another number of cells, or the bad cell has
    /// several lines.
    fn is_of_quotation(&self, flaw: &Flaw) -> bool {
        match flaw {
            Flaw::Fields => true,
            Flaw::OutOfRange(..) | Flaw::Weight(..) => false,
            Flaw::Cell(nth) => {
                self.records.record().get(self.positions[*nth]).is_some_and(|cell| cell.contains(&b'\n'))
            }
        }
    }

    fn advance(&mut self) -> Result<bool, DataError> {
        self.records.advance().map_err(|error| self.failed(error))
    }

    fn failed(&self, error: RecordError) -> DataError {
        match error {
            RecordError::Io(source) => OpenInput::failed(&self.file, self.gzip, self.rows, source),
            RecordError::TooLarge(what) => {
                DataError::TooLarge { file: self.file.clone(), row: self.rows, what }
            }
            RecordError::OpenQuotation { line, lines } => {
                DataError::Quotation { file: self.file.clone(), line, lines, open: true }
            }
        }
    }
}

impl RowTable for TextTable {
    fn read_plain(&mut self, block: &mut Block, most: usize) -> Result<usize, DataError> {
        let Some(plain) = &self.plain else { return Ok(0) };
        let before = block.rows();
        let read = self.records.take_plain(plain, block, most, self.prompt);
        self.rows += (block.rows() - before) as u64;
        read.map_err(|error| self.failed(error))
    }

    fn read_row(&mut self, row: &mut [f64]) -> Result<TableStep, DataError> {
        if !self.advance()? {
            return Ok(TableStep::End);
        }
        self.rows += 1;
        let cells = self.rules.numbers(self.records.record(), self.width, &self.positions, row);
        if cells.is_ok() {
            self.note_long_cell();
        }
        match cells {
            Ok(Cells::Numbers) => Ok(TableStep::Row),
            Ok(Cells::Gaps(bad)) => Ok(TableStep::Gaps(bad)),
            // A stray quote takes good rows with it, so the record must not be skipped as one bad row.
            Err(flaw) if self.records.lines() > 1 && (self.skips_bad_rows || self.is_of_quotation(&flaw)) => {
                let (line, lines) = (self.records.line(), self.records.lines());
                Err(DataError::Quotation { file: self.file.clone(), line, lines, open: false })
            }
            Err(flaw) => Ok(TableStep::Bad(flaw)),
        }
    }

    fn text(&self) -> &[u8] {
        self.records.text()
    }

    fn texts(&self) -> RowTexts {
        RowTexts::new(self.delimiter, self.positions.clone())
    }

    fn kept_cells(&self) -> Vec<String> {
        let text =
            |&i: &usize| self.records.record().get(i).map(|cell| String::from_utf8_lossy(cell).into_owned());
        self.kept.iter().map(|i| text(i).unwrap_or_default()).collect()
    }

    fn take_gaps(&mut self) {
        self.plain.iter_mut().for_each(PlainLines::take_gaps);
    }

    fn has_met_gap(&mut self) -> bool {
        self.records.has_met_gap()
    }

    fn notice(&self) -> Option<Notice> {
        self.longest.map(|LongCell { line, row, field, lines }| {
            let column = self.names.name(field).to_string();
            Notice::LongCell { file: self.file.clone(), line, row, column, lines }
        })
    }

    fn would_wait(&self) -> bool {
        self.prompt && !self.records.holds_line()
    }

    fn place(&self) -> (String, Option<u64>, u64) {
        (self.file.clone(), Some(self.records.line()), self.rows)
    }

    fn fields(&self) -> (usize, usize) {
        (self.records.record().len(), self.width)
    }

    fn bad_cell(&self, nth: usize) -> (String, BadCell) {
        let cell = self.records.record().get(self.positions[nth]).unwrap_or_default();
        (shown(cell), why_bad(cell))
    }

    fn header_text(&self) -> Vec<u8> {
        self.text().to_vec()
    }
}

fn names_of(layout: &TextLayout) -> Names {
    match &layout.header {
        Some(header) => Names::from_header(header),
        None => Names::by_position(layout.width),
    }
}

/// What the chosen cells of a record are.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cells {
    Numbers,
    /// Some are missing.
    Gaps(BadCellCount),
}

/// Which cells are missing values.
#[derive(Default)]
struct CellRules {
    marks: MissingMarks,
    /// Whether a bad cell is a missing value.
    takes_bad_cells: bool,
}

impl CellRules {
    /// Turns one record into one row: the numbers at `positions`, with NaN for missing values.
    ///
    /// This is the reference for the fast path for plain lines, which must give the same bits.
    fn numbers(
        &self,
        record: &ByteRecord,
        width: usize,
        positions: &[usize],
        row: &mut [f64],
    ) -> Result<Cells, Flaw> {
        if record.len() != width {
            return Err(Flaw::Fields);
        }
        let (mut gaps, mut bad) = (false, BadCellCount::default());
        for (nth, (&position, number)) in positions.iter().zip(row).enumerate() {
            let cell = record.get(position).ok_or(Flaw::Fields)?;
            *number = match parse_number(cell) {
                Some(number) => number,
                None => {
                    gaps = true;
                    if !is_missing(cell) && !self.marks.is_word(cell) {
                        // A cell of several lines may hold rows that a stray quote has swallowed.
                        if !self.takes_bad_cells || cell.contains(&b'\n') {
                            return Err(Flaw::Cell(nth));
                        }
                        bad.add(Flaw::Cell(nth));
                    }
                    f64::NAN
                }
            };
        }
        Ok(if gaps { Cells::Gaps(bad) } else { Cells::Numbers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(
        record: &ByteRecord,
        width: usize,
        positions: &[usize],
        row: &mut [f64],
    ) -> Result<Cells, Flaw> {
        CellRules::default().numbers(record, width, positions, row)
    }

    #[test]
    fn a_record_becomes_a_row_of_the_chosen_cells() {
        let mut row = [0.0; 2];
        let record = ByteRecord::from(vec!["M", " 1.5", "x", "+2"]);
        assert_eq!(numbers(&record, 4, &[3, 1], &mut row), Ok(Cells::Numbers));
        assert_eq!(row, [2.0, 1.5]);
        assert_eq!(numbers(&record, 4, &[1, 2], &mut row), Err(Flaw::Cell(1)));
        assert_eq!(numbers(&record, 3, &[1, 3], &mut row), Err(Flaw::Fields));
        let record = ByteRecord::from(vec![" NA ", "1.5", "", "x"]);
        assert_eq!(numbers(&record, 4, &[0, 1], &mut row), Ok(Cells::Gaps(BadCellCount::default())));
        assert_eq!(row.map(f64::to_bits), [f64::NAN, 1.5].map(f64::to_bits));
        assert_eq!(numbers(&record, 4, &[2, 3], &mut row), Err(Flaw::Cell(1)), "a bad cell counts more");
        let rules = CellRules { takes_bad_cells: true, ..CellRules::default() };
        let bad = BadCellCount { cells: 1, first: Some(Flaw::Cell(1)) };
        assert_eq!(rules.numbers(&record, 4, &[2, 3], &mut row), Ok(Cells::Gaps(bad)));
        let rules = CellRules { marks: MissingMarks::new(&["X".into()]), ..CellRules::default() };
        assert_eq!(rules.numbers(&record, 4, &[1, 3], &mut row), Ok(Cells::Gaps(BadCellCount::default())));
        assert!(row[0] == 1.5 && row[1].is_nan());
    }
}
