//! One open input, whatever its format, and which of its columns make a row.

use std::io::{Cursor, Read};

use super::bad_row::{BadCell, BadRow, ChosenBy, MissingValue, RowProblem};
use super::binary::{BinaryTable, Format};
use super::block::Block;
use super::circular::Circular;
use super::column_names::ColumnNames;
use super::columns::{Names, choose};
use super::csv::{ColumnSample, TextTable};
use super::error::DataError;
use super::input::OpenInput;
use super::match_columns::choose_expected;
use super::missing::MissingCounts;
use super::notice::Notice;
use super::options::ReadOptions;
use super::row_texts::RowTexts;

/// One open input of any format.
pub(super) trait RowTable: Send {
    /// Appends the next rows that hold numbers alone, at most `most`, and returns their number.
    fn read_plain(&mut self, block: &mut Block, most: usize) -> Result<usize, DataError>;

    /// Reads the next row into `row`: one number per chosen column.
    fn read_row(&mut self, row: &mut [f64]) -> Result<TableStep, DataError>;

    /// The text of the header, if texts are kept, before the first row is read.
    fn header_text(&self) -> Vec<u8>;

    /// The text of the row that [`read_row`](RowTable::read_row) just read, if it is kept.
    fn text(&self) -> &[u8];

    /// An empty list for the texts of this input's rows.
    fn texts(&self) -> RowTexts;

    /// The text of the kept columns in the row that [`read_row`](RowTable::read_row) just read. A cell that the row does not have
    /// is empty.
    fn kept_cells(&self) -> Vec<String>;

    /// From now on [`read_plain`](RowTable::read_plain) also reads rows with missing values.
    fn take_gaps(&mut self);

    /// Whether [`read_plain`](RowTable::read_plain) has read a missing value since the last call.
    fn has_met_gap(&mut self) -> bool;

    /// What a user should know about the rows read.
    fn notice(&self) -> Option<Notice> {
        None
    }

    /// Whether rows that have arrived should be returned now, because the next row would have to be waited for.
    fn would_wait(&self) -> bool;

    /// The file, and the line and the number of the row that [`read_row`](RowTable::read_row) just read.
    fn place(&self) -> (String, Option<u64>, u64);

    /// How many fields that row has, and how many it should have.
    fn fields(&self) -> (usize, usize);

    /// The text of the bad cell in a chosen column of that row, and why it cannot be used.
    fn bad_cell(&self, nth: usize) -> (String, BadCell);
}

pub(super) type OpenTable = Box<dyn RowTable>;

/// What the next row is.
pub(super) enum TableStep {
    /// A row, now in the buffer.
    Row,
    /// A row with missing values, now in the buffer as NaN, and the bad cells among them.
    Gaps(BadCellCount),
    /// A row that cannot be used.
    Bad(Flaw),
    /// The end of the input.
    End,
}

/// Bad cells of a row that are read as missing values.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct BadCellCount {
    pub(super) cells: u64,
    pub(super) first: Option<Flaw>,
}

impl BadCellCount {
    pub(super) fn add(&mut self, flaw: Flaw) {
        self.cells += 1;
        self.first.get_or_insert(flaw);
    }
}

/// What is wrong with a row. [`TableShape::describe`] adds the details.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Flaw {
    /// The number of fields.
    Fields,
    /// The cell of this chosen column.
    Cell(usize),
    /// The value of this circular column.
    OutOfRange(usize, f64),
    /// The weight, in this column.
    Weight(usize, f64),
}

/// Opens the first input: chooses the columns. Also returns what a user should know.
pub(super) fn open_first(
    input: OpenInput,
    options: &ReadOptions,
) -> Result<(OpenTable, TableShape, Vec<Notice>), DataError> {
    Ok(match detect(input)? {
        (None, input) => {
            let (table, shape, notices) = TextTable::first(input, options)?;
            (Box::new(table), shape, notices)
        }
        (Some(format), input) => {
            let (table, shape, notices) = BinaryTable::first(format, input, options)?;
            (Box::new(table), shape, notices)
        }
    })
}

/// Opens a later input, which must have the columns of the first. Also returns a notice if it has no rows.
pub(super) fn open_later(
    input: OpenInput,
    shape: &TableShape,
    options: &ReadOptions,
) -> Result<(OpenTable, Option<Notice>), DataError> {
    Ok(match detect(input)? {
        (None, input) => {
            let (table, notice) = TextTable::later(input, shape, options)?;
            (Box::new(table), notice)
        }
        (Some(format), input) => {
            let (table, notice) = BinaryTable::later(format, input, shape, options)?;
            (Box::new(table), notice)
        }
    })
}

/// The format of an input by its first bytes; `None` for text. It waits for no more bytes than it needs.
pub(super) fn detect(mut input: OpenInput) -> Result<(Option<Format>, OpenInput), DataError> {
    let mut start = Vec::new();
    while Format::may_begin_with(&start) {
        let mut more = [0; Format::MAX_MAGIC];
        let room = Format::MAX_MAGIC - start.len();
        let read = match input.reader.read(&mut more[..room]) {
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(OpenInput::failed(&input.name, input.gzip, 0, error)),
        };
        if read == 0 {
            break;
        }
        start.extend_from_slice(&more[..read]);
    }
    let format = Format::of(&start);
    input.reader = Box::new(Cursor::new(start).chain(input.reader));
    Ok((format, input))
}

/// What the first input determines for all.
pub(super) struct TableShape {
    /// The columns of the data that are read.
    pub(super) of_data: ColumnNames,
    /// The columns of a row, in which a circular one has two.
    pub(super) columns: ColumnNames,
    width: usize,
    pub(super) positions: Vec<usize>,
    /// Whether the last column is the weight of the row.
    pub(super) weighted: bool,
    /// The names of all columns of the first input.
    all: Vec<String>,
    /// The names and positions of the columns whose text is kept.
    pub(super) kept: (Vec<String>, Vec<usize>),
    /// Who chose the columns.
    chosen: ChosenBy,
}

impl TableShape {
    /// Chooses the columns of the first input. Also returns what a user should know about them.
    pub(super) fn choose(
        file: &str,
        names: &Names,
        named: bool,
        samples: &[ColumnSample],
        options: &ReadOptions,
    ) -> Result<(TableShape, Vec<Notice>), DataError> {
        let weight = options.weight.as_ref().map(|column| weight_column(file, names, column)).transpose()?;
        let mut options = options.clone();
        options.drop.extend(weight.map(|_| options.weight.clone().unwrap_or_default()));
        let options = &options;
        let mut choice = match &options.expected {
            Some(expected) => choose_expected(file, names, named, samples, &expected.of_data(), options)?,
            None => choose(file, names, samples, &options.columns, &options.drop, false)?,
        };
        choice.positions.extend(weight);
        let name = |&i: &usize| names.name(i).to_string();
        let read = choice.positions.iter().map(name);
        let of_data = ColumnNames { named, ..ColumnNames::named(read) };
        let columns = of_data.with_circular(circular_of(file, names, &of_data, &choice.positions, options)?);
        let kept = names.select_all(&options.keep)?;
        let kept = (kept.iter().map(name).collect(), kept);
        let (width, positions) = (samples.len(), choice.positions);
        let (weighted, chosen) = (weight.is_some(), chosen_by(options));
        let all = (0..width).map(|i| names.name(i).to_string()).collect();
        Ok((TableShape { of_data, columns, width, positions, weighted, all, kept, chosen }, choice.notices))
    }

    /// Whether the numbers of a record are a row as they are: no column is circular, and there is no weight.
    pub(super) fn takes_plain_rows(&self) -> bool {
        self.columns.circular.is_empty() && !self.weighted
    }

    /// The columns of a row without its weight.
    pub(super) fn columns_without_weight(&self) -> ColumnNames {
        let mut columns = self.columns.clone();
        columns.names.truncate(columns.names.len() - usize::from(self.weighted));
        columns
    }

    /// The name of the column with the weights, if rows have them.
    pub(super) fn weight_column(&self) -> Option<&str> {
        self.of_data.names.last().filter(|_| self.weighted).map(String::as_str)
    }

    /// Whether the first input has a column of this name.
    pub(super) fn has_column(&self, name: &str) -> bool {
        self.all.iter().any(|column| column == name)
    }

    /// What is wrong with the weight of a row, if it has one.
    pub(super) fn bad_weight(&self, row: &[f64]) -> Option<Flaw> {
        let (&weight, nth) = (row.last()?, row.len() - 1);
        (self.weighted && !(0.0..=MAX_WEIGHT).contains(&weight)).then_some(Flaw::Weight(nth, weight))
    }

    /// The first column of the data that is circular and has a value out of its range.
    pub(super) fn out_of_range(&self, row: &[f64]) -> Option<(usize, f64)> {
        let place = |circular: &Circular| self.of_data.names.iter().position(|name| *name == circular.column);
        let out = |circular: &Circular| place(circular).filter(|&nth| !circular.holds(row[nth]));
        self.columns.circular.iter().find_map(out).map(|nth| (nth, row[nth]))
    }

    /// The bad row that was just read from a table.
    pub(super) fn describe(&self, table: &dyn RowTable, flaw: Flaw) -> BadRow {
        let shown =
            |value: f64| if value.is_nan() { "a missing value".to_string() } else { value.to_string() };
        let (nth, (cell, why), chosen) = match flaw {
            Flaw::Fields => {
                let (found, expected) = table.fields();
                return bad_row(table, RowProblem::Fields { found, expected });
            }
            Flaw::Cell(nth) if self.weighted && nth + 1 == self.of_data.len() => {
                let (cell, _) = table.bad_cell(nth);
                (nth, (format!("'{cell}'"), BadCell::Weight), ChosenBy::User)
            }
            Flaw::Cell(nth) => (nth, table.bad_cell(nth), self.chosen),
            Flaw::OutOfRange(nth, value) => (nth, (shown(value), BadCell::OutOfRange), ChosenBy::User),
            Flaw::Weight(nth, value) => (nth, (shown(value), BadCell::Weight), ChosenBy::User),
        };
        let column = self.of_data.names[nth].clone();
        bad_row(table, RowProblem::Cell { column, cell, why, chosen })
    }

    /// The first missing value in `row`, which was just read from a table.
    pub(super) fn describe_gap(&self, table: &dyn RowTable, row: &[f64]) -> MissingValue {
        let nth = row.iter().position(|value| value.is_nan()).unwrap_or_default();
        let ((file, line, row), names) = (table.place(), &self.of_data.names);
        let counts = MissingCounts::new(names);
        MissingValue { file, line, row, column: names[nth].clone(), counts, counted_all: false }
    }

    /// Where these columns, and those whose text is kept, are in a later input.
    pub(super) fn find_in(
        &self,
        file: &str,
        names: &Names,
        named: bool,
        width: usize,
    ) -> Result<(Vec<usize>, Vec<usize>), DataError> {
        let file = || file.to_string();
        match (named, self.of_data.named) {
            (true, false) => Err(DataError::HeaderUnexpected(file())),
            (false, true) => Err(DataError::HeaderMissing(file())),
            (true, true) => {
                let missing =
                    |column: &str| DataError::MissingColumn { file: file(), column: column.to_string() };
                let positions = names.positions(&self.of_data.names).map_err(missing)?;
                Ok((positions, names.positions(&self.kept.0).map_err(missing)?))
            }
            (false, false) if width != self.width => {
                Err(DataError::FieldCount { file: file(), found: width, expected: self.width })
            }
            (false, false) => Ok((self.positions.clone(), self.kept.1.clone())),
        }
    }
}

fn bad_row(table: &dyn RowTable, problem: RowProblem) -> BadRow {
    let (file, line, row) = table.place();
    BadRow { file, line, row, problem }
}

/// The largest weight of a row.
const MAX_WEIGHT: f64 = 1e10;

/// The position of the one column that holds the weight of each row.
fn weight_column(file: &str, names: &Names, column: &str) -> Result<usize, DataError> {
    let found = names.select(column).map_err(|error| error.in_file(file))?;
    match found[..] {
        [position] => Ok(position),
        _ => Err(DataError::SeveralWeights(column.to_string())),
    }
}

/// The circular columns among those that are read: the expected ones, or those asked for.
fn circular_of(
    file: &str,
    names: &Names,
    columns: &ColumnNames,
    positions: &[usize],
    options: &ReadOptions,
) -> Result<Vec<Circular>, DataError> {
    let at = |place: usize, circular: &Circular| Circular {
        column: columns.names[place].clone(),
        ..circular.clone()
    };
    let mut asked = Vec::new();
    for circular in &options.circular {
        for position in names.select(&circular.column).map_err(|error| error.in_file(file))? {
            let place = positions.iter().position(|read| *read == position);
            let place = place.ok_or_else(|| DataError::CircularNotRead(names.name(position).to_string()))?;
            asked.push(at(place, circular));
        }
    }
    let Some(expected) = &options.expected else { return Ok(asked) };
    let of_data = expected.of_data().names;
    let place = |circular: &Circular| of_data.iter().position(|name| *name == circular.column);
    let known: Vec<Circular> =
        expected.circular.iter().filter_map(|circular| Some(at(place(circular)?, circular))).collect();
    let is_known = |asked: &Circular| {
        known
            .iter()
            .any(|known| (&known.column, known.low, known.high) == (&asked.column, asked.low, asked.high))
    };
    match asked.iter().find(|asked| !is_known(asked)) {
        Some(other) => Err(DataError::NotCircularInModel(other.column.clone())),
        None => Ok(known),
    }
}

/// Who chose the columns.
fn chosen_by(options: &ReadOptions) -> ChosenBy {
    match &options.expected {
        _ if !options.columns.is_empty() => ChosenBy::User,
        Some(_) => ChosenBy::Model,
        None => ChosenBy::Content,
    }
}
