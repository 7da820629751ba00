//! Rows as a command reads them, and what there is to tell of them.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::console::Console;
use super::wording;
use crate::data::{Block, ColumnNames, CsvStream, DataError, RowSource, ShuffleBuffer};

/// An opened stream, with what there is to tell about it.
pub(super) struct Rows {
    source: Source,
    told: usize,
}

enum Source {
    Straight(Box<CsvStream>),
    Shuffled(Box<ShuffleBuffer<CsvStream>>),
}

impl Rows {
    /// The rows of a stream, shuffled within a buffer of so many by a seed if that is asked for.
    pub fn new(stream: CsvStream, shuffle: Option<(usize, u64)>, console: &Console) -> Self {
        let source = match shuffle {
            Some((slots, seed)) => Source::Shuffled(Box::new(ShuffleBuffer::new(stream, slots, seed))),
            None => Source::Straight(Box::new(stream)),
        };
        let mut rows = Rows { source, told: 0 };
        rows.tell_notices(console);
        rows
    }

    fn stream(&self) -> &CsvStream {
        match &self.source {
            Source::Straight(stream) => stream,
            Source::Shuffled(shuffled) => shuffled.source(),
        }
    }

    pub fn columns(&self) -> &ColumnNames {
        self.stream().columns()
    }

    pub fn read_block(&mut self, block: &mut Block, most: usize) -> Result<bool, DataError> {
        match &mut self.source {
            Source::Straight(stream) => stream.read_block(block, most),
            Source::Shuffled(shuffled) => shuffled.read_block(block, most),
        }
    }

    /// All rows at once.
    pub fn read_all(&mut self) -> Result<Block, DataError> {
        let mut all = Block::new(self.columns().len());
        let mut block = Block::new(self.columns().len());
        while self.read_block(&mut block, 4096)? {
            block.iter().for_each(|row| all.push(row));
        }
        Ok(all)
    }

    pub fn bytes_read(&self) -> u64 {
        self.stream().bytes_read()
    }

    /// The counter behind [`Rows::bytes_read`], to watch while another thread reads.
    pub fn byte_counter(&self) -> Arc<AtomicU64> {
        self.stream().byte_counter()
    }

    pub fn total_bytes(&self) -> Option<u64> {
        self.stream().total_bytes()
    }

    pub fn rows_skipped(&self) -> u64 {
        self.stream().rows_skipped()
    }

    /// Where the first skipped row is and what is wrong with it.
    pub fn first_skipped(&self) -> Option<String> {
        self.stream().first_skipped().map(String::from)
    }

    /// Tells what there is to tell once all rows are read.
    pub fn tell_end(&mut self, console: &Console) {
        self.tell_notices(console);
        if let Some(first) = self.stream().first_skipped() {
            console.warn(&wording::skipped_rows(self.rows_skipped(), first));
        }
    }

    fn tell_notices(&mut self, console: &Console) {
        let notices = self.stream().notices()[self.told..].to_vec();
        self.told += notices.len();
        notices.iter().for_each(|notice| console.note(&wording::notice(notice)));
    }
}
