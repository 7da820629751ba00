use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::bad_row::BadRow;
use super::block::Block;
use super::column_names::ColumnNames;
use super::error::DataError;
use super::input::{Input, RowRange};
use super::missing::MissingCounts;
use super::notice::Notice;
use super::options::{BadRows, Missing, ReadOptions};
use super::row_texts::RowTexts;
use super::shards::{FileShards, Range};
use super::source::RowSource;
use super::table::{Shape, Step, Table};

/// Rows of numbers from one or more inputs, which are read one after the other.
pub(super) struct RowStream {
    options: ReadOptions,
    /// The inputs that are not open yet, with the rows to read of them.
    waiting: VecDeque<(Input, RowRange)>,
    table: Option<Table>,
    /// Whether several threads may read text.
    parallel: bool,
    /// Whether an input is a part of a text.
    is_cut: bool,
    shape: Shape,
    notices: Vec<Notice>,
    row: Vec<f64>,
    /// The texts of the header and of the rows of the last block, if they are kept.
    header_text: Vec<u8>,
    texts: RowTexts,
    /// Good rows after which the stream ends.
    limit: u64,
    rows_read: u64,
    rows_skipped: u64,
    first_skipped: Option<BadRow>,
    missing: MissingCounts,
    /// Rows with missing values that were left out.
    rows_left_out: u64,
    /// The skipped rows of the last block, each with its number among the rows that were read for the block, from 1.
    listed: Vec<(u64, BadRow)>,
    /// The text of the kept columns of every row of the last block, bad rows included.
    kept: Vec<Vec<String>>,
    bytes: Arc<AtomicU64>,
    total_bytes: Option<u64>,
}

impl RowStream {
    /// Opens the first of `inputs`, which determines the columns, and checks that the others exist.
    pub fn open(mut inputs: Vec<Input>, options: ReadOptions) -> Result<RowStream, DataError> {
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
        let (table, shape, notices) = Table::first(first.open(bytes.clone(), rows)?, &options)?;
        let row = vec![0.0; shape.columns.len()];
        let missing = MissingCounts::new(&shape.columns.names);
        let header_text = table.header_text();
        let texts = table.texts();
        // Rows that are left out at the beginning are read too.
        let limit = options.limit.map_or(u64::MAX, |limit| limit.saturating_add(options.skip));
        Ok(RowStream {
            options,
            waiting,
            table: Some(table),
            parallel: true,
            is_cut: false,
            shape,
            notices,
            row,
            header_text,
            texts,
            limit,
            rows_read: 0,
            rows_skipped: 0,
            first_skipped: None,
            missing,
            rows_left_out: 0,
            listed: Vec::new(),
            kept: Vec::new(),
            bytes,
            total_bytes,
        })
    }

    /// Opens one shard of files. The first of all files determines the columns. The shard may have no rows.
    pub fn open_shard(
        shards: &FileShards,
        shard: usize,
        options: ReadOptions,
    ) -> Result<RowStream, DataError> {
        let pieces = shards.pieces(shard);
        let mut stream = RowStream::open(vec![shards.first()], options)?;
        stream.table = None;
        stream.bytes = Arc::new(AtomicU64::new(0));
        stream.total_bytes = Some(shards.bytes_of(shard));
        if pieces.iter().any(|piece| matches!(piece.range, Range::Bytes(..))) {
            // The first line of a range is not the first line of its file, so nothing can be detected in it.
            stream.options.has_header = Some(stream.shape.columns.named);
            stream.is_cut = true;
        }
        stream.waiting =
            pieces.iter().map(|piece| piece.input(stream.shape.columns.named)).collect::<Result<_, _>>()?;
        Ok(stream)
    }

    /// Reads past the next `rows` good rows.
    pub fn skip_rows(&mut self, mut rows: u64) -> Result<(), DataError> {
        let mut block = Block::new(self.shape.columns.len());
        while rows > 0 && self.read_block(&mut block, rows.min(4096) as usize)? {
            rows -= block.rows() as u64;
        }
        // The counts are those of the rows that a user gets.
        self.missing = MissingCounts::new(&self.shape.columns.names);
        Ok(())
    }

    /// Sets whether several threads may read text.
    pub fn read_in_parallel(&mut self, parallel: bool) {
        self.parallel = parallel;
    }

    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    pub fn rows_read(&self) -> u64 {
        self.rows_read
    }

    pub fn rows_skipped(&self) -> u64 {
        self.rows_skipped
    }

    pub fn first_skipped(&self) -> Option<&BadRow> {
        self.first_skipped.as_ref()
    }

    pub fn missing(&self) -> &MissingCounts {
        &self.missing
    }

    pub fn rows_left_out(&self) -> u64 {
        self.rows_left_out
    }

    pub fn header_text(&self) -> &[u8] {
        &self.header_text
    }

    pub fn texts(&self) -> &RowTexts {
        &self.texts
    }

    pub fn listed_rows(&self) -> &[(u64, BadRow)] {
        &self.listed
    }

    pub fn kept_columns(&self) -> &[String] {
        &self.shape.kept.0
    }

    pub fn kept_cells(&self) -> &[Vec<String>] {
        &self.kept
    }

    pub fn bytes_read(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn byte_counter(&self) -> Arc<AtomicU64> {
        self.bytes.clone()
    }

    pub fn total_bytes(&self) -> Option<u64> {
        self.total_bytes
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
            let read = table.read_plain(block, room as usize, self.parallel);
            self.rows_read += (block.rows() - before) as u64;
            let width = self.row.len();
            if table.has_met_gap() {
                self.missing.add_rows(&block.values()[before * width..]);
            } else {
                self.missing.rows += (block.rows() - before) as u64;
            }
            if read? > 0 {
                continue;
            }
            let step = table.read_row(&mut self.row)?;
            if !matches!(step, Step::End) && !self.shape.kept.1.is_empty() {
                self.kept.push(table.kept_cells());
            }
            match step {
                Step::Row => {
                    block.push(&self.row);
                    self.texts.push(table.text());
                    self.rows_read += 1;
                    self.missing.rows += 1;
                }
                Step::Gaps => {
                    self.missing.add_rows(&self.row);
                    match self.options.missing {
                        Missing::Refuse => return Err(self.refuse_gap()),
                        Missing::Skip => {
                            self.rows_left_out += 1;
                            block.skip_one();
                            if self.options.list_skipped_rows {
                                let gap = table.describe_gap(&self.row, &self.shape.columns.names);
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
                Step::Bad(flaw) if self.options.bad_rows == BadRows::Refuse => {
                    return Err(DataError::BadRow(Box::new(table.describe(flaw, &self.shape.columns.names))));
                }
                Step::Bad(flaw) => {
                    self.rows_skipped += 1;
                    block.skip_one();
                    let columns = &self.shape.columns.names;
                    if self.options.list_skipped_rows {
                        let place = block.place(block.rows()) - 1;
                        self.listed.push((place, table.describe(flaw, columns)));
                    }
                    self.first_skipped.get_or_insert_with(|| table.describe(flaw, columns));
                }
                Step::End => self.close(),
            }
        }
        Ok(())
    }

    /// The error for the row with a missing value that was just read. Counts what is missing in the rows after it, unless
    /// they come from a pipe, which may never end.
    fn refuse_gap(&mut self) -> DataError {
        let table = self.table.as_ref().expect("a row was read from it");
        let mut value = table.describe_gap(&self.row, &self.shape.columns.names);
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
        self.options.bad_rows = BadRows::Skip;
        self.table.iter_mut().for_each(Table::take_gaps);
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
        let (table, notice) =
            Table::later(input.open(self.bytes.clone(), rows)?, &self.shape, &self.options)?;
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

impl RowSource for RowStream {
    fn columns(&self) -> &ColumnNames {
        &self.shape.columns
    }

    fn read_block(&mut self, block: &mut Block, most: usize) -> Result<bool, DataError> {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(text: &str, options: ReadOptions) -> RowStream {
        RowStream::open(vec![Input::from_bytes("data", text)], options).unwrap()
    }

    #[test]
    fn a_stream_can_be_sent_to_another_thread() {
        fn is_send<T: Send>(_: &T) {}
        is_send(&stream("1\n", ReadOptions::default()));
    }

    #[test]
    fn after_an_error_the_stream_is_at_its_end() {
        let mut stream = stream("1\n2\nx\n3\n", ReadOptions::default());
        let mut block = Block::new(1);
        assert!(stream.read_block(&mut block, 100).is_err());
        assert_eq!(block.values(), [1.0, 2.0]);
        assert!(!stream.read_block(&mut block, 100).unwrap());
    }

    #[test]
    fn rows_know_their_place_among_those_that_were_skipped() {
        let text = "x\nx\n1\n2\nx\n3\nx\nx\n4\n5\nx\n";
        let mut stream = stream(&format!("a\n{text}"), ReadOptions::default().bad_rows(BadRows::Skip));
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
    fn rows_with_gaps_that_are_left_out_have_a_place_too() {
        let options = ReadOptions::default().bad_rows(BadRows::Skip).missing(Missing::Skip);
        let mut stream = stream("a,b\n,1\n1,2\nx,3\nNA,\n4,5\n", options);
        let mut block = Block::new(2);
        assert!(stream.read_block(&mut block, 100).unwrap());
        assert_eq!(block.values(), [1.0, 2.0, 4.0, 5.0]);
        assert_eq!([block.place(0), block.place(1)], [2, 5]);
        assert_eq!((stream.rows_read(), stream.rows_skipped(), stream.rows_left_out()), (2, 1, 2));
        assert_eq!((stream.missing().rows, &stream.missing().values[..]), (4, &[2, 1][..]));
    }

    #[test]
    fn a_limit_of_no_rows_gives_none() {
        let mut stream = stream("1\n2\n", ReadOptions::default().limit(0));
        assert!(!stream.read_block(&mut Block::new(1), 10).unwrap());
    }
}
