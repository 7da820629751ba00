//! Opening inputs: files, standard input or any reader, compressed or not.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::GzDecoder;

use super::error::DataError;
use super::followed::Followed;

pub(super) const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const GZIP_BUFFER: usize = 128 * 1024;

/// Where bytes come from. Gzip is recognised in all of them.
pub enum Input {
    /// Standard input.
    Stdin,
    /// A file.
    File(PathBuf),
    /// Any reader, with a name for messages.
    Reader {
        /// The name in messages.
        name: String,
        /// The bytes.
        reader: Box<dyn Read + Send>,
    },
}

impl Input {
    /// An input that reads `bytes`.
    pub fn from_bytes(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Input {
        Input::Reader { name: name.into(), reader: Box::new(Cursor::new(bytes.into())) }
    }

    /// The name in messages.
    pub fn name(&self) -> String {
        match self {
            Input::Stdin => "standard input".to_string(),
            Input::File(path) => path.display().to_string(),
            Input::Reader { name, .. } => name.clone(),
        }
    }

    /// The same input, which waits at the end of a regular file for what is appended, and continues with a file that replaces
    /// it. Other inputs end as usual.
    pub(super) fn followed(self) -> Result<Input, DataError> {
        let name = self.name();
        match self {
            Input::File(path) if fs::metadata(&path).is_ok_and(|metadata| metadata.is_file()) => {
                let file = File::open(&path).map_err(|source| cannot_open(name.clone(), source))?;
                Ok(Input::Reader { name, reader: Box::new(Followed::new(path, file)) })
            }
            other => Ok(other),
        }
    }

    /// Checks that the input exists, without reading from it. Returns its size if it is a regular file.
    pub(super) fn check(&self) -> Result<Option<u64>, DataError> {
        let Input::File(path) = self else { return Ok(None) };
        let file = || self.name();
        let metadata = fs::metadata(path).map_err(|source| cannot_open(file(), source))?;
        if metadata.is_dir() {
            return Err(DataError::Directory(file()));
        }
        // A named pipe must not be opened twice: its writer would see the first reader go away.
        if !metadata.is_file() {
            return Ok(None);
        }
        File::open(path).map_err(|source| cannot_open(file(), source))?;
        if metadata.len() == 0 {
            return Err(DataError::Empty(file()));
        }
        Ok(Some(metadata.len()))
    }

    /// Opens the input and adds what is read from it, before decompression, to `bytes`. `rows` are those to read of an array
    /// or a table of columns.
    pub(super) fn open(self, bytes: Arc<AtomicU64>, rows: RowRange) -> Result<OpenInput, DataError> {
        let name = self.name();
        let path = match &self {
            Input::File(path) if fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) => {
                Some(path.clone())
            }
            _ => None,
        };
        let raw: Box<dyn Read + Send> = match self {
            Input::Stdin => Box::new(io::stdin()),
            Input::File(path) => {
                Box::new(File::open(path).map_err(|source| cannot_open(name.clone(), source))?)
            }
            Input::Reader { reader, .. } => reader,
        };
        let mut raw = Counted { inner: raw, bytes: bytes.clone() };
        let mut magic = Vec::with_capacity(GZIP_MAGIC.len());
        let taken = raw.by_ref().take(GZIP_MAGIC.len() as u64).read_to_end(&mut magic);
        taken.map_err(|source| DataError::Read { file: name.clone(), row: 0, source })?;
        let gzip = magic == GZIP_MAGIC;
        let whole = Cursor::new(magic).chain(raw);
        let reader: Box<dyn Read + Send> = if gzip {
            Box::new(Members::new(BufReader::with_capacity(GZIP_BUFFER, whole)))
        } else {
            Box::new(whole)
        };
        let path = path.filter(|_| !gzip);
        Ok(OpenInput { name, gzip, reader, path, rows, bytes })
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Input({})", self.name())
    }
}

fn cannot_open(file: String, source: io::Error) -> DataError {
    match source.kind() {
        io::ErrorKind::NotFound => DataError::Missing(file),
        _ => DataError::Unreadable { file, source },
    }
}

/// An input whose decompressed bytes can be read.
pub(super) struct OpenInput {
    pub(super) name: String,
    pub(super) gzip: bool,
    pub(super) reader: Box<dyn Read + Send>,
    /// The path, if it is a regular file that is not compressed, so that parts of it can be read in any order.
    pub(super) path: Option<PathBuf>,
    /// The rows to read of an array or a table of columns.
    pub(super) rows: RowRange,
    /// The counter of bytes, for those that are not read from `reader`.
    pub(super) bytes: Arc<AtomicU64>,
}

/// The first row and the one after the last, counted from 0; all if `None`.
pub(super) type RowRange = Option<(u64, u64)>;

impl OpenInput {
    /// An input that is read from `reader` alone.
    #[cfg(test)]
    pub(super) fn of_reader(name: &str, reader: Box<dyn Read + Send>) -> OpenInput {
        let name = name.to_string();
        OpenInput { name, gzip: false, reader, path: None, rows: None, bytes: Arc::default() }
    }

    /// The error for a read that failed after `row` whole rows.
    pub(super) fn failed(file: &str, gzip: bool, row: u64, source: io::Error) -> DataError {
        let file = file.to_string();
        if gzip { DataError::Gzip { file, row, source } } else { DataError::Read { file, row, source } }
    }
}

/// The members of a gzip input, one after the other. Zeros after a member are padding, which tapes and some block devices
/// add; anything else must be a member.
struct Members<R> {
    /// `None` at the end.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Members<R> {
    fn new(input: R) -> Self {
        Members { member: Some(GzDecoder::new(input)) }
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = self.member.as_mut().filter(|_| !buffer.is_empty()) {
            let read = member.read(buffer)?;
            if read > 0 {
                return Ok(read);
            }
            let mut rest = self.member.take().expect("it was just read from").into_inner();
            if !skip_zeros(&mut rest)? {
                self.member = Some(GzDecoder::new(rest));
            }
        }
        Ok(0)
    }
}

/// Skips zeros. Returns whether the input ends after them.
fn skip_zeros(input: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let held = input.fill_buf()?;
        let (zeros, all) = (held.iter().take_while(|byte| **byte == 0).count(), held.len());
        input.consume(zeros);
        if all == 0 || zeros < all {
            return Ok(all == 0);
        }
    }
}

/// Counts the bytes that are read.
pub(super) struct Counted<R> {
    pub(super) inner: R,
    pub(super) bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn read_all(input: Input) -> (String, bool, u64) {
        let bytes = Arc::new(AtomicU64::new(0));
        let mut open = input.open(bytes.clone(), None).unwrap();
        let mut text = String::new();
        open.reader.read_to_string(&mut text).unwrap();
        (text, open.gzip, bytes.load(Ordering::Relaxed))
    }

    #[test]
    fn plain_bytes_pass_and_are_counted() {
        assert_eq!(read_all(Input::from_bytes("x", "1,2\n")), ("1,2\n".to_string(), false, 4));
        assert_eq!(read_all(Input::from_bytes("x", "1")), ("1".to_string(), false, 1));
        assert_eq!(read_all(Input::from_bytes("x", "")), (String::new(), false, 0));
    }

    #[test]
    fn every_member_of_a_gzip_input_is_read_and_its_compressed_bytes_are_counted() {
        let mut bytes = gzip("1,2\n");
        bytes.extend(gzip("3,4\n"));
        let size = bytes.len() as u64;
        assert_eq!(read_all(Input::from_bytes("x", bytes)), ("1,2\n3,4\n".to_string(), true, size));
    }

    #[test]
    fn zeros_after_a_member_of_a_gzip_input_are_padding() {
        let padded = |parts: &[&[u8]]| Input::from_bytes("x", parts.concat());
        let (one, two, zeros) = (gzip("1,2\n"), gzip("3,4\n"), vec![0; 3 * GZIP_BUFFER + 7]);
        assert_eq!(read_all(padded(&[&one, &zeros])).0, "1,2\n");
        assert_eq!(read_all(padded(&[&one, &[0]])).0, "1,2\n");
        assert_eq!(read_all(padded(&[&one, &zeros, &two, &zeros])).0, "1,2\n3,4\n");
        let read = |parts: &[&[u8]]| {
            let mut open = padded(parts).open(Arc::default(), None).unwrap();
            let mut text = String::new();
            open.reader.read_to_string(&mut text).map_err(|error| error.kind())
        };
        assert_eq!(read(&[&one, b"rubbish, and more of it"]), Err(io::ErrorKind::InvalidInput));
        assert_eq!(read(&[&one, &zeros, b"rubbish, and more of it"]), Err(io::ErrorKind::InvalidInput));
        assert_eq!(read(&[&one, &zeros, &two[..two.len() - 1]]), Err(io::ErrorKind::UnexpectedEof));
    }
}
