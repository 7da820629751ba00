use std::collections::HashSet;
use std::io;

use super::{Chunk, Column, Format, TableSource};
use crate::data::MAX_VALUE;
use crate::data::bad_row::BadCell;
use crate::data::block::Block;
use crate::data::columns::Names;
use crate::data::csv::{ColumnSample, SAMPLE_LINES};
use crate::data::error::DataError;
use crate::data::input::OpenInput;
use crate::data::notice::{ColumnContent as Content, Notice};
use crate::data::options::{BadCells, Missing, ReadOptions};
use crate::data::row_texts::RowTexts;
use crate::data::table::{BadCellCount, Flaw, RowTable, TableShape, TableStep};
use crate::text::csv_cell;

/// Numbers that are read at a time, unless a row alone has more: 4 MiB.
const CHUNK_NUMBERS: usize = 1 << 19;
/// Rows that are read at a time.
const CHUNK_ROWS: usize = 4096;

/// One open array or table of columns with types.
pub(in crate::data) struct BinaryTable {
    file: String,
    gzip: bool,
    source: Box<dyn TableSource>,
    /// The rows that were read and not yet given out, from row `at` on.
    chunk: Chunk,
    at: usize,
    /// The rows to read at a time.
    most: usize,
    /// Why no more rows can be read, once those in the chunk are given out.
    failed: Option<io::Error>,
    /// The columns in the file that make a row.
    positions: Vec<usize>,
    /// The place of each of these among the columns that are read.
    picks: Vec<usize>,
    /// The number of columns that are read.
    width: usize,
    /// Where the columns whose text is kept are among those that are read as text.
    kept: Vec<usize>,
    /// The names of the columns, if the text of whole rows is kept.
    header: Option<Vec<String>>,
    /// The text of the last row, if it is kept.
    text: Vec<u8>,
    prompt: bool,
    takes_gaps: bool,
    has_met_gap: bool,
    /// Whether a bad cell is a missing value.
    takes_bad_cells: bool,
    /// Rows given out, and those before the part that is read.
    rows: u64,
    /// The last row, if it is bad.
    bad_row: Vec<f64>,
}

impl BinaryTable {
    /// Opens the first input and chooses the columns. Also returns what a user should know.
    pub(in crate::data) fn first(
        format: Format,
        input: OpenInput,
        options: &ReadOptions,
    ) -> Result<(BinaryTable, TableShape, Vec<Notice>), DataError> {
        if options.delimiter.is_some() || options.has_header.is_some() {
            return Err(DataError::NotText { file: input.name, format: format.name() });
        }
        let mut table = BinaryTable::open(format, input, options)?;
        let (names, named) = (table.names(), table.source.is_named());
        let columns = table.source.columns();
        let mut samples: Vec<ColumnSample> =
            columns.iter().map(|column| ColumnSample::known(column.content)).collect();
        let by_name = named && options.expected.as_ref().is_some_and(|expected| expected.named);
        let (shape, notices) = if options.columns.is_empty() && !by_name {
            let dropped = options.drop.iter().flat_map(|word| names.select(word).unwrap_or_default());
            let dropped: HashSet<usize> = dropped.collect();
            let is_read = |i: &usize| columns[*i].content == Content::Numbers && !dropped.contains(i);
            let numbers: Vec<usize> = (0..columns.len()).filter(is_read).collect();
            table.start(&names, &numbers, &names.select_all(&options.keep)?, options)?;
            for place in table.without_numbers() {
                samples[numbers[place]] = ColumnSample::known(Content::Nothing);
            }
            let chosen = TableShape::choose(&table.file, &names, named, &samples, options);
            let (shape, notices) = chosen.map_err(DataError::not_in_text)?;
            table.pick(&shape.positions, &numbers);
            (shape, notices)
        } else {
            let (shape, notices) = TableShape::choose(&table.file, &names, named, &samples, options)?;
            table.start(&names, &shape.positions, &shape.kept.1, options)?;
            (shape, notices)
        };
        if !table.refill()? {
            return Err(DataError::Empty(table.file));
        }
        Ok((table, shape, notices))
    }

    /// Opens a later input, which must have the columns of the first. Also returns a notice if it has no rows.
    pub(in crate::data) fn later(
        format: Format,
        input: OpenInput,
        shape: &TableShape,
        options: &ReadOptions,
    ) -> Result<(BinaryTable, Option<Notice>), DataError> {
        let mut table = BinaryTable::open(format, input, options)?;
        let (names, named) = (table.names(), table.source.is_named());
        let width = table.source.columns().len();
        let (positions, kept) = shape.find_in(&table.file, &names, named, width)?;
        table.start(&names, &positions, &kept, options)?;
        let is_empty = table.chunk.rows == 0 && table.failed.is_none();
        let notice = is_empty.then(|| Notice::HeaderOnly(table.file.clone()));
        Ok((table, notice))
    }

    fn open(format: Format, input: OpenInput, options: &ReadOptions) -> Result<BinaryTable, DataError> {
        let (file, gzip) = (input.name.clone(), input.gzip);
        if options.follow {
            return Err(DataError::NotFollowed { file, format: format.name() });
        }
        let rows = input.rows.map_or(0, |(from, _)| from);
        let source = format.open(input)?;
        if source.columns().is_empty() {
            return Err(DataError::Empty(file));
        }
        Ok(BinaryTable {
            file,
            gzip,
            source,
            chunk: Chunk::default(),
            at: 0,
            most: 1,
            failed: None,
            positions: Vec::new(),
            picks: Vec::new(),
            width: 0,
            kept: Vec::new(),
            header: None,
            text: Vec::new(),
            prompt: options.prompt,
            takes_gaps: options.missing == Missing::Marginal,
            has_met_gap: false,
            takes_bad_cells: options.bad_cells == BadCells::Missing,
            rows,
            bad_row: Vec::new(),
        })
    }

    fn names(&self) -> Names {
        let columns = self.source.columns();
        match self.source.is_named() {
            true => Names::from_header(columns.iter().map(|column| column.name.as_bytes())),
            false => Names::by_position(columns.len()),
        }
    }

    /// Selects the columns to read, and reads the first rows.
    fn start(
        &mut self,
        names: &Names,
        numbers: &[usize],
        kept: &[usize],
        options: &ReadOptions,
    ) -> Result<(), DataError> {
        let columns = self.source.columns();
        let cell = |i: usize| (self.file.clone(), names.name(i).to_string(), words_for(columns[i].content));
        if let Some(&i) = numbers.iter().find(|&&i| columns[i].content != Content::Numbers) {
            let (file, column, content) = cell(i);
            return Err(DataError::NotNumbers { file, column, content });
        }
        let texts: Vec<usize> = if options.keep_text { (0..columns.len()).collect() } else { kept.to_vec() };
        let without = texts.iter().filter(|&&i| !columns[i].has_text);
        let without: Vec<String> = without.map(|&i| names.name(i).to_string()).collect();
        if !without.is_empty() {
            return Err(DataError::NoText { file: self.file.clone(), columns: without });
        }
        if options.keep_text {
            let name = |(i, _): (usize, &Column)| names.name(i).to_string();
            self.header = Some(match self.source.is_named() {
                true => columns.iter().enumerate().map(name).collect(),
                false => Vec::new(),
            });
        }
        let place = |i: &usize| texts.iter().position(|text| text == i).unwrap_or_default();
        self.kept = kept.iter().map(place).collect();
        self.source.select(numbers, &texts)?;
        self.chunk.texts = vec![Vec::new(); texts.len()];
        self.pick(numbers, numbers);
        self.width = numbers.len();
        self.most = (CHUNK_NUMBERS / numbers.len().max(1)).clamp(1, CHUNK_ROWS);
        while self.chunk.rows < SAMPLE_LINES && self.failed.is_none() {
            let before = self.chunk.rows;
            self.failed = self.source.read(self.most, &mut self.chunk).err();
            if self.chunk.rows == before {
                break;
            }
        }
        Ok(())
    }

    /// Sets the columns that make a row, of those that are read.
    fn pick(&mut self, positions: &[usize], read: &[usize]) {
        let place = |i: &usize| read.iter().position(|read| read == i).expect("chosen columns are read");
        self.picks = positions.iter().map(place).collect();
        self.positions = positions.to_vec();
    }

    /// The columns among those that are read that have no number in the first rows.
    fn without_numbers(&self) -> Vec<usize> {
        let rows = self.chunk.rows.min(SAMPLE_LINES);
        let sample = &self.chunk.numbers[..rows * self.width];
        let is_empty = |place: &usize| {
            rows > 0 && sample[*place..].iter().step_by(self.width).all(|value| !(value.abs() <= MAX_VALUE))
        };
        (0..self.width).filter(is_empty).collect()
    }

    /// Makes sure that there is a row in the chunk. Returns false at the end.
    fn refill(&mut self) -> Result<bool, DataError> {
        if self.at < self.chunk.rows {
            return Ok(true);
        }
        self.at = 0;
        self.chunk.clear();
        let read = match self.failed.take() {
            Some(error) => Err(error),
            None => self.source.read(self.most, &mut self.chunk),
        };
        match read {
            Err(error) if self.chunk.rows == 0 => {
                Err(OpenInput::failed(&self.file, self.gzip, self.rows, error))
            }
            read => {
                self.failed = read.err();
                Ok(self.chunk.rows > 0)
            }
        }
    }
}

impl RowTable for BinaryTable {
    fn read_plain(&mut self, block: &mut Block, most: usize) -> Result<usize, DataError> {
        let before = block.rows();
        while block.rows() - before < most && self.chunk.texts.is_empty() {
            if self.at == self.chunk.rows && self.prompt && !block.is_empty() && !self.source.holds_row() {
                break;
            }
            if !self.refill()? {
                break;
            }
            let read = &self.chunk.numbers[self.at * self.width..(self.at + 1) * self.width];
            let row = block.grow();
            let (mut gaps, mut bad) = (false, false);
            for (value, &place) in row.iter_mut().zip(&self.picks) {
                *value = read[place];
                // One NaN for all.
                if !(value.abs() <= MAX_VALUE) {
                    bad |= !value.is_nan();
                    gaps = true;
                    *value = if value.is_nan() { f64::NAN } else { *value };
                }
            }
            if bad || gaps && !self.takes_gaps {
                block.truncate(block.rows() - 1);
                break;
            }
            self.has_met_gap |= gaps;
            self.at += 1;
            self.rows += 1;
        }
        Ok(block.rows() - before)
    }

    fn read_row(&mut self, row: &mut [f64]) -> Result<TableStep, DataError> {
        if !self.refill()? {
            return Ok(TableStep::End);
        }
        let read = &self.chunk.numbers[self.at * self.width..(self.at + 1) * self.width];
        for (value, &place) in row.iter_mut().zip(&self.picks) {
            *value = if read[place].is_nan() { f64::NAN } else { read[place] };
        }
        self.at += 1;
        self.rows += 1;
        if self.header.is_some() {
            let cells = self.chunk.texts.iter().map(|column| column[self.at - 1].as_str());
            self.text.clear();
            write_cells(cells, &mut self.text);
        }
        let mut bad = BadCellCount::default();
        if let Some(nth) = row.iter().position(|value| value.abs() > MAX_VALUE) {
            self.bad_row.clear();
            self.bad_row.extend_from_slice(row);
            if !self.takes_bad_cells {
                return Ok(TableStep::Bad(Flaw::Cell(nth)));
            }
            for (nth, value) in row.iter_mut().enumerate().filter(|(_, value)| value.abs() > MAX_VALUE) {
                bad.add(Flaw::Cell(nth));
                *value = f64::NAN;
            }
        }
        Ok(if row.iter().any(|value| value.is_nan()) { TableStep::Gaps(bad) } else { TableStep::Row })
    }

    fn header_text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        if let Some(names) = self.header.as_ref().filter(|names| !names.is_empty()) {
            write_cells(names.iter().map(String::as_str), &mut text);
        }
        text
    }

    fn text(&self) -> &[u8] {
        &self.text
    }

    fn texts(&self) -> RowTexts {
        RowTexts::new(b',', self.positions.clone())
    }

    fn kept_cells(&self) -> Vec<String> {
        self.kept.iter().map(|&place| self.chunk.texts[place][self.at - 1].clone()).collect()
    }

    fn take_gaps(&mut self) {
        self.takes_gaps = true;
    }

    fn has_met_gap(&mut self) -> bool {
        std::mem::take(&mut self.has_met_gap)
    }

    fn would_wait(&self) -> bool {
        self.prompt && self.at == self.chunk.rows && !self.source.holds_row()
    }

    fn place(&self) -> (String, Option<u64>, u64) {
        (self.file.clone(), None, self.rows)
    }

    fn fields(&self) -> (usize, usize) {
        (self.positions.len(), self.positions.len())
    }

    fn bad_cell(&self, nth: usize) -> (String, BadCell) {
        (format!("{:?}", self.bad_row[nth]), BadCell::NotFinite)
    }
}

fn words_for(content: Content) -> &'static str {
    match content {
        Content::Numbers => "numbers",
        Content::Words => "words",
        Content::Dates => "dates or times",
        Content::WithSign => "numbers with a sign",
        Content::Booleans => "true and false",
        Content::Other => "lists or other values",
        Content::Nothing => "nothing",
    }
}

/// Writes cells as a line of CSV, without a line end.
fn write_cells<'a>(cells: impl ExactSizeIterator<Item = &'a str>, out: &mut Vec<u8>) {
    let alone = cells.len() == 1;
    for (i, cell) in cells.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        match alone && cell.is_empty() {
            // An empty line would be no row.
            true => out.extend_from_slice(b"\"\""),
            false => out.extend_from_slice(csv_cell(cell).as_bytes()),
        }
    }
}
