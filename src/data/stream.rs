use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::block::Block;
use super::column_names::ColumnNames;
use super::error::DataError;
use super::input::Input;
use super::notice::Notice;
use super::share::Piece;
use super::source::RowSource;
use super::table::{Shape, Step, Table};

/// How to read delimited text. The default detects all it can and refuses bad rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CsvOptions {
    /// The byte between cells; a blank stands for any run of blanks and tabs. Detected in each input if `None`.
    pub delimiter: Option<u8>,
    /// Whether the first line names the columns. Detected if `None`.
    pub has_header: Option<bool>,
    /// The columns to read, in that order: names, numbers from 1 (`3`) or ranges of numbers (`2-5`). A name
    /// wins over a number. All columns that hold numbers if empty. Where `expected` has the same names, its order counts.
    pub columns: Vec<String>,
    /// Columns not to read, in the same terms.
    pub drop: Vec<String>,
    /// What to do about rows that cannot be used.
    pub bad_rows: BadRows,
    /// Stop after that many good rows.
    pub limit: Option<u64>,
    /// The columns that the data must have, such as those that a model was learned from. They are found by name where both
    /// sides have names, and by position otherwise. A notice lists chosen columns that have other names than these.
    pub expected: Option<ColumnNames>,
}

/// What to do about a row with a cell that is no finite number, or with too few or too many fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BadRows {
    /// Stop with an error that says where it is.
    #[default]
    Refuse,
    /// Leave it out and count it.
    Skip,
}

/// Rows of numbers from one or more inputs of delimited text, read one after the other as one stream.
///
/// Only a block of rows is in memory at a time.
///
/// ```
/// use gmm_bmm::data::{Block, CsvOptions, CsvStream, Input};
///
/// let text = "Sex,Length,Height\nM,0.455,0.095\nF,0.53,0.135\n";
/// let mut stream = CsvStream::open(vec![Input::from_bytes("abalone", text)], CsvOptions::default())?;
/// assert_eq!(stream.columns().names, ["Length", "Height"]);
/// assert_eq!(stream.notices()[0].to_string(), "column 'Sex' left out: it holds words, not numbers");
///
/// let mut block = Block::new(stream.columns().len());
/// assert!(stream.read_block(&mut block, 1000)?);
/// assert_eq!(block.row(1), [0.53, 0.135]);
/// assert!(!stream.read_block(&mut block, 1000)?);
/// # Ok::<(), gmm_bmm::data::DataError>(())
/// ```
pub struct CsvStream {
    options: CsvOptions,
    waiting: VecDeque<Input>,
    table: Option<Table>,
    shape: Shape,
    notices: Vec<Notice>,
    row: Vec<f64>,
    csv_crate_only: bool,
    rows_read: u64,
    rows_skipped: u64,
    first_skipped: Option<String>,
    bytes: Arc<AtomicU64>,
    total_bytes: Option<u64>,
}

impl CsvStream {
    /// Opens the first of `inputs` and settles the columns by it; checks that the others are there.
    pub fn open(inputs: Vec<Input>, options: CsvOptions) -> Result<CsvStream, DataError> {
        if inputs.iter().filter(|input| matches!(input, Input::Stdin)).count() > 1 {
            return Err(DataError::StdinTwice);
        }
        let mut total_bytes = Some(0);
        for input in &inputs {
            let size = input.check()?;
            total_bytes = total_bytes.zip(size).map(|(total, size)| total + size);
        }
        let mut waiting = VecDeque::from(inputs);
        let first = waiting.pop_front().ok_or(DataError::NoInputs)?;
        let bytes = Arc::new(AtomicU64::new(0));
        let (table, shape, notices) = Table::first(first.open(bytes.clone())?, &options)?;
        let row = vec![0.0; shape.columns.len()];
        Ok(CsvStream {
            options,
            waiting,
            table: Some(table),
            shape,
            notices,
            row,
            csv_crate_only: false,
            rows_read: 0,
            rows_skipped: 0,
            first_skipped: None,
            bytes,
            total_bytes,
        })
    }

    /// Has the csv crate read every row from here on, without the fast way through plain lines.
    ///
    /// The rows and the errors are the same. This is what tests and benchmarks hold the fast way against.
    pub fn with_csv_crate_only(mut self) -> CsvStream {
        self.csv_crate_only = true;
        self.table.iter_mut().for_each(Table::leave_out_the_fast_way);
        self
    }

    /// Reads one share of some files that are dealt: the columns are settled by `first`, the first of all files, and the
    /// rows are those of `pieces`, of which there may be none.
    pub fn open_share(first: Input, pieces: &[Piece], options: CsvOptions) -> Result<CsvStream, DataError> {
        let mut stream = CsvStream::open(vec![first], options)?;
        stream.table = None;
        stream.bytes = Arc::new(AtomicU64::new(0));
        stream.total_bytes = Some(pieces.iter().map(|piece| piece.bytes).sum());
        if pieces.iter().any(|piece| piece.range.is_some()) {
            // A range begins anywhere, so there is nothing to detect in its first line.
            stream.options.has_header = Some(stream.shape.columns.named);
        }
        stream.waiting =
            pieces.iter().map(|piece| piece.input(stream.shape.columns.named)).collect::<Result<_, _>>()?;
        Ok(stream)
    }

    /// The columns read: their names are those in the header, or `c1`, `c2` and so on by position in the file.
    pub fn columns(&self) -> &ColumnNames {
        &self.shape.columns
    }

    /// What the user should know, such as which columns were left out and why. Later inputs may add to it.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Good rows read so far.
    pub fn rows_read(&self) -> u64 {
        self.rows_read
    }

    /// Bad rows skipped so far.
    pub fn rows_skipped(&self) -> u64 {
        self.rows_skipped
    }

    /// Where the first skipped row is and what is wrong with it.
    pub fn first_skipped(&self) -> Option<&str> {
        self.first_skipped.as_deref()
    }

    /// Bytes taken from the inputs so far, before decompression.
    pub fn bytes_read(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The counter behind [`bytes_read`](CsvStream::bytes_read), to watch while another thread reads.
    pub fn byte_counter(&self) -> Arc<AtomicU64> {
        self.bytes.clone()
    }

    /// The size of all inputs, if all are regular files.
    pub fn total_bytes(&self) -> Option<u64> {
        self.total_bytes
    }

    /// Replaces the rows in `block` by the next ones, `most` at most; false, and an empty block, at the end.
    ///
    /// After an error the block holds the rows before it, and the stream is at its end.
    ///
    /// # Panics
    /// If the block has another number of columns than the stream, or `most` is zero.
    pub fn read_block(&mut self, block: &mut Block, most: usize) -> Result<bool, DataError> {
        assert!(most > 0, "a block of no rows would look like the end of the stream");
        assert_eq!(block.columns(), self.shape.columns.len(), "the block must have the stream's columns");
        block.clear();
        let result = self.fill(block, most);
        if result.is_err() {
            self.finish();
        }
        result.map(|()| !block.is_empty())
    }

    fn fill(&mut self, block: &mut Block, most: usize) -> Result<(), DataError> {
        let limit = self.options.limit.unwrap_or(u64::MAX);
        while block.rows() < most {
            if self.rows_read >= limit {
                self.finish();
            }
            let Some(table) = &mut self.table else {
                if self.open_next()? {
                    continue;
                }
                break;
            };
            let before = block.rows();
            let room = (limit - self.rows_read).min((most - before) as u64);
            let read = table.read_plain(block, room as usize);
            self.rows_read += (block.rows() - before) as u64;
            if read? > 0 {
                continue;
            }
            match table.read_row(&mut self.row)? {
                Step::Row => {
                    block.push(&self.row);
                    self.rows_read += 1;
                }
                Step::Bad(flaw) if self.options.bad_rows == BadRows::Refuse => {
                    return Err(DataError::BadRow(Box::new(table.describe(flaw, &self.shape.columns.names))));
                }
                Step::Bad(flaw) => {
                    self.rows_skipped += 1;
                    block.skip_one();
                    let columns = &self.shape.columns.names;
                    self.first_skipped.get_or_insert_with(|| table.describe(flaw, columns).to_string());
                }
                Step::End => self.table = None,
            }
        }
        Ok(())
    }

    fn open_next(&mut self) -> Result<bool, DataError> {
        let Some(input) = self.waiting.pop_front() else { return Ok(false) };
        let (mut table, notices) = Table::later(input.open(self.bytes.clone())?, &self.shape, &self.options)?;
        if self.csv_crate_only {
            table.leave_out_the_fast_way();
        }
        self.notices.extend(notices);
        self.table = Some(table);
        Ok(true)
    }

    fn finish(&mut self) {
        self.table = None;
        self.waiting.clear();
    }
}

impl RowSource for CsvStream {
    fn columns(&self) -> &ColumnNames {
        self.columns()
    }

    fn read_block(&mut self, block: &mut Block, most: usize) -> Result<bool, DataError> {
        self.read_block(block, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(text: &str, options: CsvOptions) -> CsvStream {
        CsvStream::open(vec![Input::from_bytes("data", text)], options).unwrap()
    }

    #[test]
    fn a_stream_can_be_sent_to_another_thread() {
        fn is_send<T: Send>(_: &T) {}
        is_send(&stream("1\n", CsvOptions::default()));
    }

    #[test]
    fn after_an_error_the_stream_is_at_its_end() {
        let mut stream = stream("1\n2\nx\n3\n", CsvOptions::default());
        let mut block = Block::new(1);
        assert!(stream.read_block(&mut block, 100).is_err());
        assert_eq!(block.values(), [1.0, 2.0]);
        assert!(!stream.read_block(&mut block, 100).unwrap());
    }

    #[test]
    fn rows_know_their_place_among_those_that_were_skipped() {
        let text = "x\nx\n1\n2\nx\n3\nx\nx\n4\n5\nx\n";
        let mut stream =
            stream(&format!("a\n{text}"), CsvOptions { bad_rows: BadRows::Skip, ..CsvOptions::default() });
        let mut block = Block::new(1);
        let mut places = Vec::new();
        loop {
            let before = stream.rows_read() + stream.rows_skipped();
            if !stream.read_block(&mut block, 3).unwrap() {
                break;
            }
            places.extend((0..block.rows()).map(|i| before + block.place(i)));
        }
        assert_eq!(places, [3, 4, 6, 9, 10]);
    }

    #[test]
    fn a_limit_of_no_rows_gives_none() {
        let mut stream = stream("1\n2\n", CsvOptions { limit: Some(0), ..CsvOptions::default() });
        assert!(!stream.read_block(&mut Block::new(1), 10).unwrap());
    }
}
