//! Arrow IPC, as a file (also called Feather) or as a stream. A file is a stream with a table of contents, which is not
//! needed to read it in order.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::arrow_batch::{BatchPlan, Skipping, Values};
use super::arrow_schema::{Field, columns_of};
use super::flat::Flat;
use super::{Chunk, Column, Format, Source, damaged};
use crate::data::error::DataError;
use crate::data::input::{Counted, OpenInput};

/// The first bytes of a file, with padding.
const FILE_START: u64 = 8;
/// Before the length of each message.
const MARK: [u8; 4] = [0xff; 4];

/// The kinds of messages, as the format numbers them.
const SCHEMA: u8 = 1;
const BATCH: u8 = 3;

/// The rows of an Arrow file or stream.
pub(super) struct ArrowSource {
    messages: Messages,
    columns: Vec<Column>,
    fields: Vec<Field>,
    numbers: usize,
    /// The columns that are read: numbers, then texts.
    chosen: Vec<usize>,
    /// The values of these in the current batch, its rows, and the next one of them.
    batch: Vec<Values>,
    rows: usize,
    row: usize,
    /// Rows to leave out at the beginning, and rows left to read.
    skip: u64,
    left: u64,
}

impl ArrowSource {
    pub(super) fn open(format: Format, input: OpenInput) -> Result<ArrowSource, DataError> {
        let (from, to) = input.rows.unwrap_or((0, u64::MAX));
        let name = input.name.clone();
        let error = |what: String| DataError::Format { file: name.clone(), format: format.name(), what };
        let mut messages = Messages::open(format, input).map_err(|problem| error(problem.to_string()))?;
        let first = messages.next().map_err(|problem| error(problem.to_string()))?;
        let message = first.as_ref().and_then(|message| Message::read(message));
        let schema = message.filter(|message| message.kind == SCHEMA);
        let schema = schema.ok_or_else(|| error("its columns are not described at its beginning".into()))?;
        let (columns, fields) = columns_of(schema.header).map_err(error)?;
        messages.skip(schema.body).map_err(|problem| error(problem.to_string()))?;
        Ok(ArrowSource {
            messages,
            columns,
            fields,
            numbers: 0,
            chosen: Vec::new(),
            batch: Vec::new(),
            rows: 0,
            row: 0,
            skip: from,
            left: to.saturating_sub(from),
        })
    }

    /// The next batch. Its values follow. Dictionaries are left out.
    fn next_plan(&mut self) -> io::Result<Option<BatchPlan>> {
        loop {
            let Some(bytes) = self.messages.next()? else { return Ok(None) };
            let message = Message::read(&bytes).ok_or_else(|| damaged("a message is damaged"))?;
            if message.kind == BATCH {
                return BatchPlan::read(message.header, &self.fields, message.body).map(Some);
            }
            self.messages.skip(message.body)?;
        }
    }

    /// Makes sure that there are rows left in the batch, if any are left.
    fn next_batch(&mut self) -> io::Result<()> {
        while self.row == self.rows && self.left > 0 {
            let Some(plan) = self.next_plan()? else {
                self.left = 0;
                return Ok(());
            };
            let skipped = self.skip.min(plan.rows as u64);
            self.skip -= skipped;
            if skipped == plan.rows as u64 {
                plan.skip(&mut self.messages)?;
                continue;
            }
            self.batch = plan.values(&self.fields, &self.chosen, &mut self.messages)?;
            (self.rows, self.row) = (plan.rows, skipped as usize);
        }
        Ok(())
    }
}

impl Source for ArrowSource {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn is_named(&self) -> bool {
        true
    }

    fn count_rows(&mut self) -> io::Result<u64> {
        let mut rows = 0u64;
        while let Some(plan) = self.next_plan()? {
            rows = rows.saturating_add(plan.rows as u64);
            plan.skip(&mut self.messages)?;
        }
        Ok(rows)
    }

    fn select(&mut self, numbers: &[usize], texts: &[usize]) -> Result<(), DataError> {
        self.numbers = numbers.len();
        self.chosen = numbers.iter().chain(texts).copied().collect();
        Ok(())
    }

    fn read(&mut self, most: usize, chunk: &mut Chunk) -> io::Result<()> {
        self.next_batch()?;
        let rows = ((self.rows - self.row) as u64).min(self.left).min(most as u64) as usize;
        let (numbers, texts) = self.batch.split_at(self.numbers.min(self.batch.len()));
        for row in self.row..self.row + rows {
            chunk.numbers.extend(numbers.iter().map(|values| values.number(row)));
        }
        for (text, values) in chunk.texts.iter_mut().zip(texts) {
            text.extend((self.row..self.row + rows).map(|row| values.text(row)));
        }
        chunk.rows += rows;
        self.row += rows;
        self.left -= rows as u64;
        Ok(())
    }

    fn holds_row(&self) -> bool {
        self.row < self.rows || self.messages.is_file()
    }
}

/// A message: what it is, and how many bytes follow it.
struct Message<'a> {
    kind: u8,
    header: Flat<'a>,
    body: u64,
}

impl<'a> Message<'a> {
    fn read(bytes: &'a [u8]) -> Option<Message<'a>> {
        let message = Flat::root(bytes)?;
        let body = u64::try_from(message.long(3)).ok()?;
        Some(Message { kind: message.byte(1), header: message.table(2)?, body })
    }
}

/// The messages of a file or a stream, one after the other.
enum Messages {
    /// Parts that are not needed are not read.
    File { file: BufReader<Counted<File>>, size: u64, at: u64 },
    Stream(Box<dyn Read + Send>),
}

impl Messages {
    fn open(format: Format, input: OpenInput) -> io::Result<Messages> {
        let mut messages = match &input.path {
            Some(path) => {
                let file = File::open(path)?;
                let size = file.metadata()?.len();
                let bytes: Arc<AtomicU64> = input.bytes;
                Messages::File { file: BufReader::new(Counted { inner: file, bytes }), size, at: 0 }
            }
            None => Messages::Stream(input.reader),
        };
        if format == Format::ArrowFile {
            messages.skip(FILE_START)?;
        }
        Ok(messages)
    }

    fn is_file(&self) -> bool {
        matches!(self, Messages::File { .. })
    }

    /// The next message, without its body. `None` at the end.
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mark = self.some_bytes(4)?;
        if mark.is_empty() {
            return Ok(None);
        }
        if mark != MARK {
            return Err(damaged("a message does not begin where one should (files of Arrow before 0.15 have none)"));
        }
        let length = self.bytes(4)?;
        let length = length.first_chunk().map_or(0, |length| i32::from_le_bytes(*length));
        match u64::try_from(length) {
            Ok(0) => Ok(None),
            Ok(length) => self.bytes(length).map(Some),
            Err(_) => Err(damaged("a message has fewer than no bytes")),
        }
    }

    /// The next bytes; fewer at the end.
    fn some_bytes(&mut self, length: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match self {
            Messages::File { file, at, .. } => {
                file.take(length).read_to_end(&mut bytes)?;
                *at += bytes.len() as u64;
            }
            Messages::Stream(reader) => {
                reader.take(length).read_to_end(&mut bytes)?;
            }
        }
        Ok(bytes)
    }
}

impl Skipping for Messages {
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        match self {
            Messages::File { file, size, at } => {
                *at = at.checked_add(bytes).filter(|at| *at <= *size).ok_or_else(ends_early)?;
                file.seek_relative(bytes as i64)
            }
            Messages::Stream(reader) => {
                let skipped = io::copy(&mut reader.take(bytes), &mut io::sink())?;
                if skipped == bytes { Ok(()) } else { Err(ends_early()) }
            }
        }
    }

    fn bytes(&mut self, length: u64) -> io::Result<Vec<u8>> {
        let bytes = self.some_bytes(length)?;
        if bytes.len() as u64 == length { Ok(bytes) } else { Err(ends_early()) }
    }
}

fn ends_early() -> io::Error {
    damaged("it ends in the middle of a batch")
}

impl Seek for Counted<File> {
    /// Bytes that are passed over count as read.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let before = self.inner.stream_position()?;
        let after = self.inner.seek(to)?;
        self.bytes.fetch_add(after.saturating_sub(before), std::sync::atomic::Ordering::Relaxed);
        Ok(after)
    }
}
