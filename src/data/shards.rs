//! Dealing files to shards that are read separately: whole files, or ranges cut at row ends.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::binary::rows_in;
use super::error::DataError;
use super::input::{GZIP_MAGIC, Input, RowRange};

/// Files dealt to shards that are read separately. [`ReadOptions::deal`](super::ReadOptions::deal) makes them, and any
/// process can open any of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileShards {
    /// The file that determines the columns.
    first: PathBuf,
    /// The columns that were chosen.
    pub(super) columns: Vec<String>,
    shards: Vec<Vec<Piece>>,
}

/// A file, or a part of one that begins and ends where a row does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Piece {
    file: PathBuf,
    pub(super) range: Range,
    /// Size in bytes.
    bytes: u64,
}

/// A part of a file, from the first to the one after the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Range {
    /// The whole file.
    Whole,
    /// Bytes of a text.
    Bytes(u64, u64),
    /// Rows of an array or a table of columns, counted from 0.
    Rows(u64, u64),
}

impl FileShards {
    pub(super) fn deal(inputs: Vec<Input>, columns: Vec<String>, shards: usize) -> Result<Self, DataError> {
        let files = inputs.into_iter().map(|input| match input {
            Input::File(path) => Ok(path),
            other => Err(DataError::NotDealt(other.name())),
        });
        let files = files.collect::<Result<Vec<_>, _>>()?;
        let shards = deal(&files, shards)?;
        Ok(FileShards { first: files[0].clone(), columns, shards })
    }

    /// The input that determines the columns.
    pub(super) fn first(&self) -> Input {
        Input::File(self.first.clone())
    }

    pub(super) fn pieces(&self, shard: usize) -> &[Piece] {
        &self.shards[shard]
    }

    /// The size of a shard in bytes.
    ///
    /// # Panics
    /// If there is no such shard.
    pub fn bytes_of(&self, shard: usize) -> u64 {
        self.shards[shard].iter().map(|piece| piece.bytes).sum()
    }

    /// The size of all shards in bytes.
    pub fn total_bytes(&self) -> u64 {
        (0..self.shards.len()).map(|shard| self.bytes_of(shard)).sum()
    }
}

/// Deals files to shards.
///
/// If there are at least as many files as shards, whole files are dealt in turns: the first to the first shard, the second
/// to the second, and so on. Otherwise the files, one after the other, are cut into ranges of about equal size in bytes. Each
/// cut is moved to the end of its row.
///
/// # Panics
/// If there are no shards.
fn deal(files: &[PathBuf], shards: usize) -> Result<Vec<Vec<Piece>>, DataError> {
    assert!(shards > 0, "there must be a shard to deal to");
    let sizes = files.iter().map(|file| size_of(file)).collect::<Result<Vec<u64>, _>>()?;
    let mut dealt = vec![Vec::new(); shards];
    if files.is_empty() {
        return Err(DataError::NoInputs);
    }
    if files.len() >= shards {
        for (i, (file, &bytes)) in files.iter().zip(&sizes).enumerate() {
            dealt[i % shards].push(Piece { file: file.clone(), range: Range::Whole, bytes });
        }
        return Ok(dealt);
    }
    for file in files {
        if is_gzip(file)? {
            let (file, files) = (file.display().to_string(), files.len());
            return Err(DataError::CannotCut { file, files, shares: shards });
        }
    }
    let total: u128 = sizes.iter().map(|&size| u128::from(size)).sum();
    let mut begin = 0u128;
    for (file, &size) in files.iter().zip(&sizes) {
        let rows = rows_in(file)?;
        for (shard, pieces) in dealt.iter_mut().enumerate() {
            // Where the shard would begin and end in this file if rows could be cut.
            let place = |shard: usize| {
                (total * shard as u128 / shards as u128).saturating_sub(begin).min(size.into()) as u64
            };
            let (begin, end) = (place(shard), place(shard + 1));
            let (range, bytes) = match rows {
                Some(rows) => {
                    // Rounded to the nearest row, so that files of the same rows are cut in the same places.
                    let row = |place: u64| {
                        let (place, rows, size) = (u128::from(place), u128::from(rows), u128::from(size));
                        ((place * rows + size / 2) / size) as u64
                    };
                    (Range::Rows(row(begin), row(end)), end - begin)
                }
                None => {
                    let (from, to) = (row_end(file, begin, size)?, row_end(file, end, size)?);
                    (Range::Bytes(from, to), to - from)
                }
            };
            if !range.is_empty() {
                pieces.push(Piece { file: file.clone(), range, bytes });
            }
        }
        begin += u128::from(size);
    }
    Ok(dealt)
}

fn size_of(file: &Path) -> Result<u64, DataError> {
    let name = || file.display().to_string();
    match Input::File(file.to_path_buf()).check()? {
        Some(size) => Ok(size),
        None => Err(DataError::NotDealt(name())),
    }
}

fn failed(file: &Path, source: io::Error) -> DataError {
    DataError::Unreadable { file: file.display().to_string(), source }
}

fn is_gzip(file: &Path) -> Result<bool, DataError> {
    let mut magic = Vec::with_capacity(GZIP_MAGIC.len());
    let read = File::open(file).and_then(|file| file.take(GZIP_MAGIC.len() as u64).read_to_end(&mut magic));
    read.map_err(|source| failed(file, source))?;
    Ok(magic == GZIP_MAGIC)
}

/// The first position at or after `place` where a row begins, or the end of the file.
fn row_end(file: &Path, place: u64, size: u64) -> Result<u64, DataError> {
    if place == 0 || place >= size {
        return Ok(place.min(size));
    }
    let find = || {
        let mut bytes = File::open(file)?;
        // A row may begin at `place` itself, if the one before ends there.
        bytes.seek(SeekFrom::Start(place - 1))?;
        Ok(place - 1 + line_length(BufReader::new(bytes))?)
    };
    find().map_err(|source| failed(file, source)).map(|end: u64| end.min(size))
}

/// Bytes up to and including the first line end, which is `\n`, `\r\n` or `\r`.
fn line_length(mut text: impl BufRead) -> io::Result<u64> {
    let mut length = 0;
    loop {
        let held = text.fill_buf()?;
        if held.is_empty() {
            return Ok(length);
        }
        let Some(end) = held.iter().position(|&byte| byte == b'\n' || byte == b'\r') else {
            let passed = held.len();
            length += passed as u64;
            text.consume(passed);
            continue;
        };
        let is_return = held[end] == b'\r';
        length += end as u64 + 1;
        text.consume(end + 1);
        let pair = is_return && text.fill_buf()?.first() == Some(&b'\n');
        return Ok(length + u64::from(pair));
    }
}

impl Range {
    fn is_empty(self) -> bool {
        matches!(self, Range::Bytes(from, to) | Range::Rows(from, to) if from >= to)
    }
}

impl Piece {
    /// The piece as an input, and its rows if it is a part of an array or a table of columns. If a text has a header, a range
    /// that does not begin the file gets a copy of it, so that it reads like a separate file.
    pub(super) fn input(&self, has_header: bool) -> Result<(Input, RowRange), DataError> {
        let (from, to) = match self.range {
            Range::Whole => return Ok((Input::File(self.file.clone()), None)),
            Range::Rows(from, to) => return Ok((Input::File(self.file.clone()), Some((from, to)))),
            Range::Bytes(from, to) => (from, to),
        };
        let open = || {
            let header = if has_header && from > 0 { first_line(&self.file)? } else { Vec::new() };
            let mut file = File::open(&self.file)?;
            file.seek(SeekFrom::Start(from))?;
            Ok(Cursor::new(header).chain(file.take(to - from)))
        };
        let reader = open().map_err(|source| failed(&self.file, source))?;
        Ok((Input::Reader { name: self.name(), reader: Box::new(reader) }, None))
    }

    /// The name in messages.
    fn name(&self) -> String {
        match self.range {
            Range::Bytes(from, _) if from > 0 => format!("{} from byte {from}", self.file.display()),
            _ => self.file.display().to_string(),
        }
    }
}

/// Everything up to the end of the first line that is not blank.
fn first_line(file: &Path) -> io::Result<Vec<u8>> {
    let mut whole = Vec::new();
    let size = fs::metadata(file)?.len();
    let mut line = 0;
    while line < size {
        let mut text = BufReader::new(File::open(file)?);
        text.seek(SeekFrom::Start(line))?;
        let length = line_length(&mut text)?;
        text.seek(SeekFrom::Start(line))?;
        let begun = whole.len();
        text.take(length).read_to_end(&mut whole)?;
        if !whole[begun..].trim_ascii().is_empty() {
            break;
        }
        line += length;
    }
    Ok(whole)
}
