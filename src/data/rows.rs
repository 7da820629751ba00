use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::bad_row::BadRow;
use super::block::Block;
use super::column_names::ColumnNames;
use super::error::DataError;
use super::missing::MissingCounts;
use super::notice::Notice;
use super::row_texts::RowTexts;
use super::shuffle::ShuffleBuffer;
use super::source::RowSource;
use super::stream::RowStream;

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
pub struct Rows {
    source: Source,
}

enum Source {
    InOrder(Box<RowStream>),
    Shuffled(Box<ShuffleBuffer<RowStream>>),
}

impl Rows {
    /// The rows of a stream; shuffled, if there is a number of slots and a seed.
    pub(super) fn new(stream: RowStream, shuffle: Option<(usize, u64)>) -> Self {
        let source = match shuffle {
            Some((slots, seed)) => Source::Shuffled(Box::new(ShuffleBuffer::new(stream, slots, seed))),
            None => Source::InOrder(Box::new(stream)),
        };
        Rows { source }
    }

    fn stream(&self) -> &RowStream {
        match &self.source {
            Source::InOrder(stream) => stream,
            Source::Shuffled(shuffled) => shuffled.source(),
        }
    }

    /// The columns read. Their names are those in the header, or `c1`, `c2` and so on by position in the file.
    pub fn columns(&self) -> &ColumnNames {
        self.stream().columns()
    }

    /// Replaces the rows in `block` by the next ones, at most `most`. Returns false, and an empty block, at the end.
    ///
    /// After an error the block holds the rows before it, and there are no more rows.
    ///
    /// # Panics
    /// If the block has another number of columns, or `most` is zero.
    pub fn read_block(&mut self, block: &mut Block, most: usize) -> Result<bool, DataError> {
        match &mut self.source {
            Source::InOrder(stream) => stream.read_block(block, most),
            Source::Shuffled(shuffled) => shuffled.read_block(block, most),
        }
    }

    /// Sets whether several threads may read text, which they may without it.
    pub(super) fn read_in_parallel(&mut self, parallel: bool) {
        match &mut self.source {
            Source::InOrder(stream) => stream.read_in_parallel(parallel),
            Source::Shuffled(shuffled) => shuffled.source_mut().read_in_parallel(parallel),
        }
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
        match &mut self.source {
            Source::InOrder(stream) => stream.take_notices(),
            Source::Shuffled(shuffled) => shuffled.source_mut().take_notices(),
        }
    }

    /// Good rows read so far, including those that were left out at the beginning.
    pub fn rows_read(&self) -> u64 {
        self.stream().rows_read()
    }

    /// Bad rows skipped so far.
    pub fn rows_skipped(&self) -> u64 {
        self.stream().rows_skipped()
    }

    /// The first row that was skipped.
    pub fn first_skipped(&self) -> Option<&BadRow> {
        self.stream().first_skipped()
    }

    /// How many values are missing in the rows read so far, without those that were left out at the beginning.
    pub fn missing(&self) -> &MissingCounts {
        self.stream().missing()
    }

    /// Rows left out so far because values are missing.
    pub fn rows_left_out(&self) -> u64 {
        self.stream().rows_left_out()
    }

    /// The text of the header, if texts are kept and there is a header.
    pub fn header_text(&self) -> Option<&[u8]> {
        Some(self.stream().header_text()).filter(|text| !text.is_empty())
    }

    /// The texts of the rows of the last block, if they are kept.
    pub fn texts(&self) -> &RowTexts {
        self.stream().texts()
    }

    /// The skipped rows of the last block, if [`ReadOptions::list_skipped_rows`](super::ReadOptions::list_skipped_rows) asks for them,
    /// each with its number among the rows that were read for the block, from 1. A block may hold only such rows.
    pub fn listed_rows(&self) -> &[(u64, BadRow)] {
        self.stream().listed_rows()
    }

    /// The columns whose text is kept.
    pub fn kept_columns(&self) -> &[String] {
        self.stream().kept_columns()
    }

    /// The text of these columns for every row that was read for the last block, bad rows included.
    pub fn kept_cells(&self) -> &[Vec<String>] {
        self.stream().kept_cells()
    }

    /// Bytes read so far, before decompression.
    pub fn bytes_read(&self) -> u64 {
        self.stream().bytes_read()
    }

    /// The counter behind [`Rows::bytes_read`], to watch while another thread reads.
    pub(super) fn byte_counter(&self) -> Arc<AtomicU64> {
        self.stream().byte_counter()
    }

    /// The size of all inputs, if all are regular files.
    pub fn total_bytes(&self) -> Option<u64> {
        self.stream().total_bytes()
    }
}

impl RowSource for Rows {
    fn columns(&self) -> &ColumnNames {
        self.columns()
    }

    fn read_block(&mut self, block: &mut Block, most: usize) -> Result<bool, DataError> {
        self.read_block(block, most)
    }
}
