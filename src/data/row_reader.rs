use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::bad_row::BadRow;
use super::block::Block;
use super::column_names::ColumnNames;
use super::error::DataError;
use super::input::{Input, RowRange};
use super::missing::{MissingCounts, MissingMarks};
use super::notice::Notice;
use super::options::{BadCells, BadRows, Missing, ReadOptions};
use super::row_texts::RowTexts;
use super::shards::{FileShards, Range};
use super::shuffle::ShuffleBuffer;
use super::source::RowSource;
use super::table::{BadCellCount, Flaw, OpenTable, TableShape, TableStep, open_first, open_later};

/// Numbers that are read at a time where all rows are read: few enough to stay in the processor's cache until they are copied.
const NUMBERS_AT_A_TIME: usize = 1 << 15;

/// Rows of numbers that are read from files, block by block, so that any length needs the memory of a block.
/// [`ReadOptions`](super::ReadOptions) open them.
///
/// ```
/// use gmm_bmm::data::{Block, Input, ReadOptions};
///
/// let text = "Sex,Length,Height\nM,0.455,0.095\nF,0.53,0.135\n";
/// let mut rows = ReadOptions::default().open_inputs(vec![Input::from_bytes("abalone", text)])?;
/// assert_eq!(rows.columns().names, ["Length", "Height"]);
/// assert_eq!(rows.take_notices()[0].to_string(), "column 'Sex' left out: it holds words, not numbers");
///
/// let mut block = Block::new(rows.columns().len());
/// assert!(rows.read_block(&mut block, 1000)?);
/// assert_eq!(block.row(1), [0.53, 0.135]);
/// assert!(!rows.read_block(&mut block, 1000)?);
/// # Ok::<(), gmm_bmm::data::DataError>(())
/// ```
pub struct RowReader {
    options: ReadOptions,
    /// The inputs that are not open yet, with the rows to read of them.
    waiting: VecDeque<(Input, RowRange)>,
    table: Option<OpenTable>,
    /// Whether an input is a part of a text.
    is_cut: bool,
    /// Whether the fast path may read rows.
    takes_plain_rows: bool,
    shape: TableShape,
    /// The columns of a row without its weight.
    columns: ColumnNames,
    /// Rows with their weights, before they are separated.
    with_weights: Block,
    notices: Vec<Notice>,
    /// The marks of missing values.
    marks: MissingMarks,
    /// The columns of the data in the last row, and that row with two columns for each that is circular.
    data_row: Vec<f64>,
    row: Vec<f64>,
    /// The texts of the header and of the rows of the last block, if they are kept.
    header_text: Vec<u8>,
    texts: RowTexts,
    /// Good rows after which the stream ends.
    limit: u64,
    rows_read: u64,
    rows_skipped: u64,
    first_skipped: Option<BadRow>,
    /// Bad cells that were read as missing values.
    bad_cells: u64,
    first_bad_cell: Option<BadRow>,
    missing: MissingCounts,
    /// Rows with missing values that were left out.
    rows_left_out: u64,
    /// The skipped rows of the last block, each with its number among the rows that were read for the block, from 1.
    listed: Vec<(u64, BadRow)>,
    /// The text of the kept columns of every row of the last block, bad rows included.
    kept: Vec<Vec<String>>,
    bytes: Arc<AtomicU64>,
    total_bytes: Option<u64>,
    /// Shuffles the rows, if that is asked for.
    shuffle: Option<ShuffleBuffer>,
}

impl RowReader {
    /// Opens the first of `inputs`, which determines the columns, and checks that the others exist.
    pub(super) fn open(mut inputs: Vec<Input>, options: ReadOptions) -> Result<RowReader, DataError> {
        if options.follow {
            inputs = inputs.into_iter().map(Input::followed).collect::<Result<_, _>>()?;
        }
        if inputs.iter().filter(|input| matches!(input, Input::Stdin)).count() > 1 {
            return Err(DataError::StdinTwice);
        }
        let mut total_bytes = Some(0);
        for input in &inputs {
            let size = input.check()?;
            total_bytes = total_bytes.zip(size).map(|(total, size)| total + size);
        }
        let mut waiting: VecDeque<_> = inputs.into_iter().map(|input| (input, None)).collect();
        let (first, rows) = waiting.pop_front().ok_or(DataError::NoInputs)?;
        let bytes = Arc::new(AtomicU64::new(0));
        let (table, shape, notices) = open_first(first.open(bytes.clone(), rows)?, &options)?;
        let (skip, shuffle) = (options.skip, options.shuffle);
        let data_row = vec![0.0; shape.of_data.len()];
        let missing = MissingCounts::new(&shape.columns.names);
        let marks = MissingMarks::new(&options.missing_marks);
        let header_text = table.header_text();
        let texts = table.texts();
        // Rows that are left out at the beginning are read too.
        let limit = options.limit.map_or(u64::MAX, |limit| limit.saturating_add(options.skip));
        let takes_plain_rows =
            shape.takes_plain_rows() && (options.missing == Missing::Marginal || !marks.has_numbers());
        let mut reader = RowReader {
            options,
            waiting,
            table: Some(table),
            is_cut: false,
            takes_plain_rows,
            columns: shape.columns_without_weight(),
            with_weights: Block::new(shape.columns.len()),
            shape,
            notices,
            marks,
            data_row,
            row: Vec::new(),
            header_text,
            texts,
            limit,
            rows_read: 0,
            rows_skipped: 0,
            first_skipped: None,
            bad_cells: 0,
            first_bad_cell: None,
            missing,
            rows_left_out: 0,
            listed: Vec::new(),
            kept: Vec::new(),
            bytes,
            total_bytes,
            shuffle: None,
        };
        reader.skip_rows(skip)?;
        let columns = reader.shape.columns.len();
        reader.shuffle = shuffle.map(|(slots, seed)| ShuffleBuffer::new(columns, slots, seed));
        Ok(reader)
    }

    /// Opens one shard of files. The first of all files determines the columns. The shard may have no rows.
    pub(super) fn open_shard(
        shards: &FileShards,
        shard: usize,
        options: ReadOptions,
    ) -> Result<RowReader, DataError> {
        let pieces = shards.pieces(shard);
        let mut reader = RowReader::open(vec![shards.first()], options)?;
        reader.table = None;
        reader.bytes = Arc::new(AtomicU64::new(0));
        reader.total_bytes = Some(shards.bytes_of(shard));
        if pieces.iter().any(|piece| matches!(piece.range, Range::Bytes(..))) {
            // The first line of a range is not the first line of its file, so nothing can be detected in it.
            reader.options.has_header = Some(reader.shape.of_data.named);
            reader.is_cut = true;
        }
        reader.waiting =
            pieces.iter().map(|piece| piece.input(reader.shape.of_data.named)).collect::<Result<_, _>>()?;
        Ok(reader)
    }

    /// Reads past the next `rows` good rows.
    fn skip_rows(&mut self, mut rows: u64) -> Result<(), DataError> {
        let mut block = Block::new(self.shape.columns.len());
        while rows > 0 && self.read_in_order(&mut block, rows.min(4096) as usize)? {
            rows -= block.rows() as u64;
        }
        // The counts are those of the rows that a user gets.
        self.missing = MissingCounts::new(&self.shape.columns.names);
        Ok(())
    }

    /// The columns of a row. Their names are those in the header, or `c1`, `c2` and so on by position in the file. A circular
    /// column has two.
    pub fn columns(&self) -> &ColumnNames {
        &self.columns
    }

    /// The name of the column that holds the weights of the rows, if they have any.
    pub fn weight_column(&self) -> Option<&str> {
        self.shape.weight_column()
    }

    /// Whether the first input has a column of this name, read or not.
    pub fn has_column(&self, name: &str) -> bool {
        self.shape.has_column(name)
    }

    /// Replaces the rows in `block` by the next ones, at most `most`. Returns false, and an empty block, at the end.
    ///
    /// After an error the block holds the rows before it, and there are no more rows.
    ///
    /// # Panics
    /// If the block has another number of columns, or `most` is zero.
    pub fn read_block(&mut self, block: &mut Block, most: usize) -> Result<bool, DataError> {
        if !self.shape.weighted {
            return self.read_columns(block, most);
        }
        let none = Block::new(self.shape.columns.len());
        let mut with_weights = std::mem::replace(&mut self.with_weights, none);
        let read = self.read_columns(&mut with_weights, most);
        block.take_weighted(&with_weights);
        self.with_weights = with_weights;
        read
    }

    /// [`read_block`](RowReader::read_block) with the weight as the last column, if rows have one.
    fn read_columns(&mut self, block: &mut Block, most: usize) -> Result<bool, DataError> {
        let Some(mut shuffle) = self.shuffle.take() else { return self.read_in_order(block, most) };
        let read = shuffle.read_block(block, most, |block, most| self.read_in_order(block, most));
        self.shuffle = Some(shuffle);
        read
    }

    /// Reads all rows that are left.
    pub fn read_all(&mut self) -> Result<Block, DataError> {
        let columns = self.columns().len();
        let (mut all, mut block) = (Block::new(columns), Block::new(columns));
        while self.read_block(&mut block, (NUMBERS_AT_A_TIME / columns).max(1))? {
            all.extend_from(&block, 0..block.rows());
        }
        Ok(all)
    }

    /// What a user should know about the data, except what was taken before. Opening a later input may add to it.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Good rows read so far, including those that were left out at the beginning.
    pub fn rows_read(&self) -> u64 {
        self.rows_read
    }

    /// Bad rows skipped so far.
    pub fn rows_skipped(&self) -> u64 {
        self.rows_skipped
    }

    /// The first row that was skipped.
    pub fn first_skipped(&self) -> Option<&BadRow> {
        self.first_skipped.as_ref()
    }

    /// Bad cells read so far as missing values.
    pub fn bad_cells(&self) -> u64 {
        self.bad_cells
    }

    /// The first of these cells.
    pub fn first_bad_cell(&self) -> Option<&BadRow> {
        self.first_bad_cell.as_ref()
    }

    /// How many values are missing in the rows read so far, without those that were left out at the beginning.
    pub fn missing(&self) -> &MissingCounts {
        &self.missing
    }

    /// Rows left out so far because values are missing.
    pub fn rows_left_out(&self) -> u64 {
        self.rows_left_out
    }

    /// The text of the header, if texts are kept and there is a header.
    pub fn header_text(&self) -> Option<&[u8]> {
        Some(self.header_text.as_slice()).filter(|text| !text.is_empty())
    }

    /// The texts of the rows of the last block, if they are kept.
    pub fn texts(&self) -> &RowTexts {
        &self.texts
    }

    /// The skipped rows of the last block, if [`ReadOptions::list_skipped_rows`](super::ReadOptions::list_skipped_rows) asks for them,
    /// each with its number among the rows that were read for the block, from 1. A block may hold only such rows.
    pub fn listed_rows(&self) -> &[(u64, BadRow)] {
        &self.listed
    }

    /// The columns whose text is kept.
    pub fn kept_columns(&self) -> &[String] {
        &self.shape.kept.0
    }

    /// The text of these columns for every row that was read for the last block, bad rows included.
    pub fn kept_cells(&self) -> &[Vec<String>] {
        &self.kept
    }

    /// Bytes read so far, before decompression.
    pub fn bytes_read(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The counter behind [`RowReader::bytes_read`], to watch while another thread reads.
    pub(super) fn byte_counter(&self) -> Arc<AtomicU64> {
        self.bytes.clone()
    }

    /// The size of all inputs, if all are regular files.
    pub fn total_bytes(&self) -> Option<u64> {
        self.total_bytes
    }

    /// [`read_block`](RowReader::read_block) without shuffling.
    fn read_in_order(&mut self, block: &mut Block, most: usize) -> Result<bool, DataError> {
        assert!(most > 0, "a block of no rows would look like the end of the stream");
        assert_eq!(block.columns(), self.shape.columns.len(), "the block must have the stream's columns");
        block.clear();
        self.texts.clear();
        self.listed.clear();
        self.kept.clear();
        let result = self.fill(block, most);
        if result.is_err() {
            self.finish();
        }
        let result = if self.is_cut { result.map_err(DataError::in_part) } else { result };
        result.map(|()| !block.is_empty() || !self.listed.is_empty())
    }

    fn fill(&mut self, block: &mut Block, most: usize) -> Result<(), DataError> {
        while block.rows() + self.listed.len() < most {
            if self.rows_read >= self.limit {
                self.finish();
            }
            let Some(table) = &mut self.table else {
                if self.open_next()? {
                    continue;
                }
                break;
            };
            let before = block.rows();
            if before + self.listed.len() > 0 && table.would_wait() {
                break;
            }
            let room = (self.limit - self.rows_read).min((most - before) as u64);
            let read = if self.takes_plain_rows { table.read_plain(block, room as usize) } else { Ok(0) };
            self.rows_read += (block.rows() - before) as u64;
            let has_mark = self.marks.has_numbers() && self.marks.replace(block.rows_from(before));
            if table.has_met_gap() || has_mark {
                self.missing.add_rows(block.rows_from(before));
            } else {
                self.missing.rows += (block.rows() - before) as u64;
            }
            if read? > 0 {
                continue;
            }
            let step = table.read_row(&mut self.data_row)?;
            let step = self.refine(step);
            let table = self.table.as_ref().expect("a row was just read from it");
            if !matches!(step, TableStep::End) && !self.shape.kept.1.is_empty() {
                self.kept.push(table.kept_cells());
            }
            match step {
                TableStep::Row => {
                    block.push(&self.row);
                    self.texts.push(table.text());
                    self.rows_read += 1;
                    self.missing.rows += 1;
                }
                TableStep::Gaps(bad) => {
                    self.missing.add_rows(&self.row);
                    self.bad_cells += bad.cells;
                    if let Some(flaw) = bad.first {
                        self.first_bad_cell.get_or_insert_with(|| self.shape.describe(&**table, flaw));
                    }
                    match self.options.missing {
                        Missing::Refuse => return Err(self.refuse_gap()),
                        Missing::Skip => {
                            self.rows_left_out += 1;
                            block.skip_one();
                            if self.options.list_skipped_rows {
                                let gap = self.shape.describe_gap(&**table, &self.data_row);
                                self.listed.push((block.place(block.rows()) - 1, gap.into()));
                            }
                        }
                        Missing::Marginal => {
                            block.push(&self.row);
                            self.texts.push(table.text());
                            self.rows_read += 1;
                        }
                    }
                }
                TableStep::Bad(flaw) if self.options.bad_rows == BadRows::Refuse => {
                    return Err(DataError::BadRow(Box::new(self.shape.describe(&**table, flaw))));
                }
                TableStep::Bad(flaw) => {
                    self.rows_skipped += 1;
                    block.skip_one();
                    let describe = || self.shape.describe(&**table, flaw);
                    if self.options.list_skipped_rows {
                        self.listed.push((block.place(block.rows()) - 1, describe()));
                    }
                    self.first_skipped.get_or_insert_with(describe);
                }
                TableStep::End => self.close(),
            }
        }
        Ok(())
    }

    /// Applies the marks of missing values and the ranges of circular columns to a row of the data, and makes the row of it.
    fn refine(&mut self, mut step: TableStep) -> TableStep {
        let mut bad = match step {
            TableStep::Row => BadCellCount::default(),
            TableStep::Gaps(bad) => bad,
            TableStep::Bad(_) | TableStep::End => return step,
        };
        if self.marks.replace(&mut self.data_row) {
            step = TableStep::Gaps(bad);
        }
        if let Some(flaw) = self.shape.bad_weight(&self.data_row) {
            return TableStep::Bad(flaw);
        }
        while let Some((nth, value)) = self.shape.out_of_range(&self.data_row) {
            if self.options.bad_cells == BadCells::Refuse {
                return TableStep::Bad(Flaw::OutOfRange(nth, value));
            }
            bad.add(Flaw::OutOfRange(nth, value));
            self.data_row[nth] = f64::NAN;
            step = TableStep::Gaps(bad);
        }
        self.shape.columns.expand(&self.data_row, &mut self.row);
        step
    }

    /// The error for the row with a missing value that was just read. Counts what is missing in the rows after it, unless
    /// they come from a pipe, which may never end.
    fn refuse_gap(&mut self) -> DataError {
        let table = self.table.as_ref().expect("a row was read from it");
        let mut value = self.shape.describe_gap(&**table, &self.data_row);
        value.counted_all = self.total_bytes.is_some() && self.count_rest();
        value.counts = self.missing.clone();
        DataError::MissingValue(Box::new(value))
    }

    /// Reads all rows that are left and counts their missing values. Returns false if reading fails.
    fn count_rest(&mut self) -> bool {
        let counters = (self.rows_read, self.rows_skipped, self.first_skipped.take());
        // The row that was just read is one of those up to the limit.
        self.rows_read += 1;
        self.options.missing = Missing::Marginal;
        self.takes_plain_rows = self.shape.takes_plain_rows();
        self.options.bad_rows = BadRows::Skip;
        self.table.iter_mut().for_each(|table| table.take_gaps());
        let mut block = Block::new(self.shape.columns.len());
        let counted_all = loop {
            block.clear();
            match self.fill(&mut block, 4096) {
                Ok(()) if block.is_empty() => break true,
                Ok(()) => {}
                Err(_) => break false,
            }
        };
        (self.rows_read, self.rows_skipped, self.first_skipped) = counters;
        counted_all
    }

    fn open_next(&mut self) -> Result<bool, DataError> {
        let Some((input, rows)) = self.waiting.pop_front() else { return Ok(false) };
        let (table, notice) = open_later(input.open(self.bytes.clone(), rows)?, &self.shape, &self.options)?;
        self.notices.extend(notice);
        self.table = Some(table);
        Ok(true)
    }

    /// Closes the current input.
    fn close(&mut self) {
        self.notices.extend(self.table.take().and_then(|table| table.notice()));
    }

    fn finish(&mut self) {
        self.close();
        self.waiting.clear();
    }
}

impl RowSource for RowReader {
    fn columns(&self) -> &ColumnNames {
        self.columns()
    }

    fn read_block(&mut self, block: &mut Block, most: usize) -> Result<bool, DataError> {
        self.read_block(block, most)
    }
}
