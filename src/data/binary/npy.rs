//! Arrays of NumPy in `.npy` files: rows from any reader, columns from a file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::npy_header::NpyHeader;
use super::{Chunk, Column, Content, Format, TableSource, damaged};
use crate::data::error::DataError;
use crate::data::input::{Counted, OpenInput};

/// Bytes that are read at a time, unless a row has more.
const BUFFER: usize = 128 * 1024;

/// The rows of a `.npy` array.
pub(super) struct NpySource {
    header: NpyHeader,
    columns: Vec<Column>,
    /// The next row, and the one after the last.
    row: u64,
    end: u64,
    numbers: Vec<usize>,
    texts: Vec<usize>,
    bytes: Bytes,
}

enum Bytes {
    /// Row after row.
    Rows(RowBytes),
    /// Column after column, of which parts are read.
    Columns { file: File, count: Arc<AtomicU64>, part: Vec<u8> },
}

impl NpySource {
    pub(super) fn open(mut input: OpenInput) -> Result<NpySource, DataError> {
        let error =
            |what: String| DataError::Format { file: input.name.clone(), format: Format::Npy.name(), what };
        let header = NpyHeader::read(&mut input.reader).map_err(error)?;
        if let Some(path) = &input.path {
            check_size(&header, path).map_err(error)?;
        }
        let (row, end) = input.rows.unwrap_or((0, header.rows));
        let end = end.min(header.rows);
        let row = row.min(end);
        let open = |path: &Path, at: u64| {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(at))?;
            Ok(file)
        };
        let unreadable = |source| DataError::Unreadable { file: input.name.clone(), source };
        let bytes = match &input.path {
            Some(path) if header.by_column => {
                let file = open(path, header.begin).map_err(unreadable)?;
                Bytes::Columns { file, count: input.bytes, part: Vec::new() }
            }
            None if header.by_column => {
                return Err(error(format!(
                    "its columns follow each other (Fortran order), so that rows cannot be read from {}: {}",
                    if input.gzip { "a compressed file" } else { "a pipe" },
                    if input.gzip { "unpack it first" } else { "save it as a file, or in C order" }
                )));
            }
            Some(path) if input.rows.is_some() => {
                let at = header.begin + row * header.row_bytes() as u64;
                let file = open(path, at).map_err(unreadable)?;
                Bytes::Rows(RowBytes::new(Box::new(Counted { inner: file, bytes: input.bytes })))
            }
            _ => Bytes::Rows(RowBytes::new(input.reader)),
        };
        let column = || Column { name: String::new(), content: Content::Numbers, has_text: true };
        let columns = (0..header.columns).map(|_| column()).collect();
        Ok(NpySource { header, columns, row, end, numbers: Vec::new(), texts: Vec::new(), bytes })
    }

    /// Appends the rows in `bytes`.
    fn take_rows(
        header: &NpyHeader,
        bytes: &[u8],
        (numbers, texts): (&[usize], &[usize]),
        chunk: &mut Chunk,
    ) {
        let NpyHeader { kind, .. } = header;
        for row in bytes.chunks_exact(header.row_bytes()) {
            chunk.numbers.extend(numbers.iter().map(|i| kind.value(&row[i * kind.size..]).number()));
            for (text, i) in chunk.texts.iter_mut().zip(texts) {
                text.push(kind.value(&row[i * kind.size..]).text());
            }
            chunk.rows += 1;
        }
    }
}

/// Refuses a file that is shorter or longer than its header says.
fn check_size(header: &NpyHeader, path: &Path) -> Result<(), String> {
    let size = path.metadata().map_err(|error| error.to_string())?.len();
    let wanted = u128::from(header.begin) + header.bytes();
    match u128::from(size) {
        size if size == wanted => Ok(()),
        size => {
            let NpyHeader { rows, columns, .. } = header;
            let why = if size < wanted { "it was cut off" } else { "something was appended to it" };
            Err(format!(
                "it has {size} bytes, but the {rows} rows of {columns} columns in its header need {wanted}: {why}"
            ))
        }
    }
}

impl TableSource for NpySource {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn is_named(&self) -> bool {
        false
    }

    fn count_rows(&mut self) -> io::Result<u64> {
        Ok(self.end - self.row)
    }

    fn select(&mut self, numbers: &[usize], texts: &[usize]) -> Result<(), DataError> {
        (self.numbers, self.texts) = (numbers.to_vec(), texts.to_vec());
        Ok(())
    }

    fn read(&mut self, most: usize, chunk: &mut Chunk) -> io::Result<()> {
        let most = (self.end - self.row).min(most as u64) as usize;
        let before = chunk.rows;
        match &mut self.bytes {
            Bytes::Rows(bytes) if most == 0 => {
                if self.end == self.header.rows && !bytes.is_at_end()? {
                    let rows = self.header.rows;
                    return Err(damaged(format!("bytes follow the {rows} rows of its header")));
                }
            }
            Bytes::Rows(bytes) => {
                let held = bytes.next_rows(self.header.row_bytes(), most)?;
                if held.is_empty() {
                    let (row, rows) = (self.row, self.header.rows);
                    return Err(damaged(format!("the array ends after {row} of {rows} rows")));
                }
                NpySource::take_rows(&self.header, held, (&self.numbers, &self.texts), chunk);
            }
            Bytes::Columns { .. } if most == 0 => {}
            Bytes::Columns { file, count, part } => {
                let place = RowsByColumn { header: &self.header, row: self.row, rows: most };
                place.take(file, part, (&self.numbers, &self.texts), chunk)?;
                // The columns that are not chosen count as read too.
                count.fetch_add((most * self.header.row_bytes()) as u64, Ordering::Relaxed);
            }
        }
        self.row += (chunk.rows - before) as u64;
        Ok(())
    }

    fn holds_row(&self) -> bool {
        match &self.bytes {
            Bytes::Rows(bytes) => bytes.held() >= self.header.row_bytes(),
            Bytes::Columns { .. } => true,
        }
    }
}

/// Some rows of an array whose columns follow each other.
struct RowsByColumn<'a> {
    header: &'a NpyHeader,
    row: u64,
    rows: usize,
}

impl RowsByColumn<'_> {
    fn take(
        &self,
        file: &mut File,
        part: &mut Vec<u8>,
        (numbers, texts): (&[usize], &[usize]),
        chunk: &mut Chunk,
    ) -> io::Result<()> {
        let (kind, begin) = (self.header.kind, chunk.numbers.len());
        chunk.numbers.resize(begin + self.rows * numbers.len(), 0.0);
        for (nth, &column) in numbers.iter().enumerate() {
            let values = self.column(file, part, column)?.chunks_exact(kind.size);
            let places = chunk.numbers[begin + nth..].iter_mut().step_by(numbers.len());
            places.zip(values).for_each(|(place, value)| *place = kind.value(value).number());
        }
        for (text, &column) in chunk.texts.iter_mut().zip(texts) {
            let values = self.column(file, part, column)?.chunks_exact(kind.size);
            text.extend(values.map(|value| kind.value(value).text()));
        }
        chunk.rows += self.rows;
        Ok(())
    }

    /// The bytes of the rows of one column.
    fn column<'a>(&self, file: &mut File, part: &'a mut Vec<u8>, column: usize) -> io::Result<&'a [u8]> {
        let size = self.header.kind.size;
        let first = column as u64 * self.header.rows + self.row;
        part.resize(self.rows * size, 0);
        file.seek(SeekFrom::Start(self.header.begin + first * size as u64))?;
        file.read_exact(part)?;
        Ok(part)
    }
}

/// Bytes of which whole rows are taken.
struct RowBytes {
    reader: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// The part of the buffer that was not taken.
    begin: usize,
    end: usize,
}

impl RowBytes {
    fn new(reader: Box<dyn Read + Send>) -> RowBytes {
        RowBytes { reader, buffer: Vec::new(), begin: 0, end: 0 }
    }

    /// Bytes that have arrived.
    fn held(&self) -> usize {
        self.end - self.begin
    }

    /// The next whole rows, at most `most`. None if the input ends before one is whole.
    fn next_rows(&mut self, row_bytes: usize, most: usize) -> io::Result<&[u8]> {
        while self.held() < row_bytes {
            self.buffer.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.held());
            self.buffer.resize(BUFFER.max(row_bytes), 0);
            if self.fill()? == 0 {
                return Ok(&[]);
            }
        }
        let taken = (self.held() / row_bytes).min(most) * row_bytes;
        self.begin += taken;
        Ok(&self.buffer[self.begin - taken..self.begin])
    }

    fn fill(&mut self) -> io::Result<usize> {
        loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(read) => {
                    self.end += read;
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether nothing is left.
    fn is_at_end(&mut self) -> io::Result<bool> {
        if self.held() > 0 {
            return Ok(false);
        }
        self.buffer.resize(BUFFER, 0);
        (self.begin, self.end) = (0, 0);
        Ok(self.fill()? == 0)
    }
}
