//! Arrow IPC, as a file (also called Feather) or as a stream. A file is a stream with a table of contents at its end, which is
//! used unless the file comes from a pipe.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::arrow_batch::{ArrowArray, BatchPlan, Dictionaries, Skipping};
use super::arrow_schema::{ArrowField, columns_of};
use super::flatbuffer::Flat;
use super::{Chunk, Column, Format, TableSource, Value, damaged};
use crate::data::error::DataError;
use crate::data::input::{Counted, OpenInput};

/// The first bytes of a file, with padding.
const FILE_START: u64 = 8;
/// What ends a file: the length of its table of contents, and this.
const FILE_END: &[u8] = b"ARROW1";
/// Before the length of each message, since version 0.15 of Arrow.
const MARK: [u8; 4] = [0xff; 4];

/// The kinds of messages, as the format numbers them.
const SCHEMA: u8 = 1;
const DICTIONARY: u8 = 2;
const BATCH: u8 = 3;

/// The rows of an Arrow file or stream.
pub(super) struct ArrowSource {
    messages: Messages,
    columns: Vec<Column>,
    fields: Vec<ArrowField>,
    numbers: usize,
    /// The columns that are read: numbers, then texts.
    chosen: Vec<usize>,
    /// The dictionaries of these that were read so far.
    dictionaries: Dictionaries,
    /// The values of these in the current batch, its rows, and the next one of them.
    batch: Vec<ArrowArray>,
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
        let mut messages = Messages::open(input).map_err(|problem| error(problem.to_string()))?;
        let (columns, fields) = messages.columns(format).map_err(|problem| error(problem.to_string()))?;
        Ok(ArrowSource {
            messages,
            columns,
            fields,
            numbers: 0,
            chosen: Vec::new(),
            dictionaries: Dictionaries::new(),
            batch: Vec::new(),
            rows: 0,
            row: 0,
            skip: from,
            left: to.saturating_sub(from),
        })
    }

    /// The next batch. Its values follow.
    fn next_plan(&mut self) -> io::Result<Option<BatchPlan>> {
        loop {
            let Some(bytes) = self.messages.next()? else { return Ok(None) };
            let message = ArrowMessage::read(&bytes).ok_or_else(|| damaged("a message is damaged"))?;
            match message.kind {
                BATCH => return BatchPlan::read(message.header, &self.fields, message.body).map(Some),
                DICTIONARY => self.read_dictionary(message.header, message.body)?,
                _ => self.messages.skip(message.body)?,
            }
        }
    }

    /// Reads a dictionary, or a part that is added to it, if a chosen column has it.
    fn read_dictionary(&mut self, header: Flat, body: u64) -> io::Result<()> {
        let (id, is_addition) = (header.long(0), header.byte(2) != 0);
        let mut chosen = self.chosen.iter().map(|&column| &self.fields[column]);
        let Some(field) = chosen.find(|field| field.dictionary.is_some_and(|(own, _)| own == id)) else {
            return self.messages.skip(body);
        };
        let fields = [field.entries()];
        let batch = header.table(1).ok_or_else(|| damaged("a dictionary is damaged"))?;
        let plan = BatchPlan::read(batch, &fields, body)?;
        let entries = plan.values(&fields, &[0], &Dictionaries::new(), &mut self.messages)?;
        let dictionary = self.dictionaries.entry(id).or_default();
        if !is_addition {
            dictionary.clear();
        }
        dictionary.extend(entries.into_iter().map(Arc::new));
        Ok(())
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
            self.batch = plan.values(&self.fields, &self.chosen, &self.dictionaries, &mut self.messages)?;
            (self.rows, self.row) = (plan.rows, skipped as usize);
        }
        Ok(())
    }
}

impl TableSource for ArrowSource {
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
            let number = |values: &ArrowArray| values.value(row).map_or(f64::NAN, Value::number);
            chunk.numbers.extend(numbers.iter().map(number));
        }
        for (text, values) in chunk.texts.iter_mut().zip(texts) {
            let of_row = |row: usize| values.value(row).map_or(String::new(), Value::text);
            text.extend((self.row..self.row + rows).map(of_row));
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
struct ArrowMessage<'a> {
    kind: u8,
    header: Flat<'a>,
    body: u64,
}

impl<'a> ArrowMessage<'a> {
    fn read(bytes: &'a [u8]) -> Option<ArrowMessage<'a>> {
        let message = Flat::root(bytes)?;
        let body = u64::try_from(message.long(3)).ok()?;
        Some(ArrowMessage { kind: message.byte(1), header: message.table(2)?, body })
    }
}

/// The messages of a file or a stream, one after the other.
enum Messages {
    /// Parts that are not needed are not read. `batches` are the places of the batches, if they are known.
    File {
        file: BufReader<Counted<File>>,
        size: u64,
        at: u64,
        batches: Option<VecDeque<u64>>,
    },
    Stream(Box<dyn Read + Send>),
}

impl Messages {
    fn open(input: OpenInput) -> io::Result<Messages> {
        Ok(match &input.path {
            Some(path) => {
                let file = File::open(path)?;
                let size = file.metadata()?.len();
                let bytes: Arc<AtomicU64> = input.bytes;
                let file = BufReader::new(Counted { inner: file, bytes });
                Messages::File { file, size, at: 0, batches: None }
            }
            None => Messages::Stream(input.reader),
        })
    }

    /// The columns, from the table of contents or the first message.
    fn columns(&mut self, format: Format) -> io::Result<(Vec<Column>, Vec<ArrowField>)> {
        if let (Format::ArrowFile, Messages::File { file, size, batches, .. }) = (format, &mut *self) {
            let contents = read_contents(&mut file.get_mut().inner, *size)?;
            let parts = Flat::root(&contents).and_then(parts_of);
            let (schema, places) = parts.ok_or_else(|| damaged("its table of contents is damaged"))?;
            *batches = Some(places);
            return columns_of(schema).map_err(damaged);
        }
        if format == Format::ArrowFile {
            self.skip(FILE_START)?;
        }
        let first = self.next()?;
        let message = first.as_ref().and_then(|message| ArrowMessage::read(message));
        let schema = message.filter(|message| message.kind == SCHEMA);
        let schema = schema.ok_or_else(|| {
            damaged("its columns are not described at its beginning (a file that comes from a pipe may need to be saved)")
        })?;
        let columns = columns_of(schema.header).map_err(damaged)?;
        self.skip(schema.body)?;
        Ok(columns)
    }

    fn is_file(&self) -> bool {
        matches!(self, Messages::File { .. })
    }

    /// The next message, without its body. `None` at the end.
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        if let Messages::File { file, size, at, batches: Some(batches) } = self {
            let Some(place) = batches.pop_front() else { return Ok(None) };
            if place > *size {
                return Err(ends_early());
            }
            file.seek_relative(place as i64 - *at as i64)?;
            *at = place;
        }
        let mut length = self.some_bytes(4)?;
        if length.is_empty() {
            return Ok(None);
        }
        if length == MARK {
            length = self.bytes(4)?;
        }
        let length = length.first_chunk().map_or(0, |length| i32::from_le_bytes(*length));
        match u64::try_from(length) {
            Ok(0) => Ok(None),
            Ok(length) => self.bytes(length).map(Some),
            Err(_) => Err(damaged("a message has a negative length")),
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
            Messages::File { file, size, at, .. } => {
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

/// The table of contents at the end of a file, which is left at its beginning.
fn read_contents(file: &mut File, size: u64) -> io::Result<Vec<u8>> {
    let tail = 4 + FILE_END.len() as u64;
    let cut =
        || damaged("it has no table of contents at its end: it was cut off, or not closed by its writer");
    let mut end = Vec::new();
    file.seek(SeekFrom::Start(size.checked_sub(tail).ok_or_else(cut)?))?;
    file.take(tail).read_to_end(&mut end)?;
    let (length, mark) = end.split_first_chunk().ok_or_else(cut)?;
    let length = u64::try_from(i32::from_le_bytes(*length)).map_err(|_| cut())?;
    let begin = (size - tail).checked_sub(length).filter(|_| mark == FILE_END).ok_or_else(cut)?;
    file.seek(SeekFrom::Start(begin))?;
    let mut contents = Vec::new();
    file.take(length).read_to_end(&mut contents)?;
    file.rewind()?;
    Ok(contents)
}

/// The description of the columns and the places of the dictionaries and batches in a table of contents.
fn parts_of(contents: Flat<'_>) -> Option<(Flat<'_>, VecDeque<u64>)> {
    // Each dictionary and each batch has its place, the length of its message, and that of its body.
    let messages = [contents.longs(2, 3)?, contents.longs(3, 3)?].concat();
    let places = messages.as_chunks::<3>().0.iter().map(|[place, ..]| u64::try_from(*place).ok());
    Some((contents.table(1)?, places.collect::<Option<_>>()?))
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
