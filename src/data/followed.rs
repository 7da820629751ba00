//! A file that other programs append to, and that they may rotate.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek};
use std::path::PathBuf;
use std::time::Duration;

use super::csv::has_number;

/// Time between two looks at the end of a file.
const WAIT: Duration = Duration::from_millis(200);
/// A longer first line is no header.
const MAX_HEADER: usize = 1 << 20;

/// A file that other programs append to. It has no end. A truncated file is read from its beginning, and a new file under the
/// same name is read once the old one has no more bytes, as `tail -F` does.
pub(super) struct Followed {
    path: PathBuf,
    file: File,
    position: u64,
    /// Whether the last line so far is without its end.
    in_line: bool,
    /// Whether another file has the name now. The old one is read to its end first.
    replaced: bool,
    header: Header,
    /// Bytes that were read and are not given out yet.
    held: Vec<u8>,
}

/// The first line of the first file. A later file may begin with it again, which is no row.
enum Header {
    /// Its beginning, while it is read.
    Begun(Vec<u8>),
    /// The whole line; empty if it is no header.
    Whole(Vec<u8>),
    /// The same, while the first line of a later file is compared with it.
    Expected(Vec<u8>),
}

impl Followed {
    pub(super) fn new(path: PathBuf, file: File) -> Followed {
        let header = Header::Begun(Vec::new());
        Followed { path, file, position: 0, in_line: false, replaced: false, header, held: Vec::new() }
    }

    /// Remembers the header of the first file, and holds back what may be the header of a later one. Returns whether the bytes
    /// can be given out.
    fn passes(&mut self, read: &[u8]) -> bool {
        match &mut self.header {
            Header::Begun(line) => {
                let end = read.iter().position(|&byte| byte == b'\n');
                line.extend_from_slice(&read[..end.map_or(read.len(), |end| end + 1)]);
                if end.is_some() || line.len() > MAX_HEADER {
                    let is_header = end.is_some() && !has_number(line);
                    let line = std::mem::take(line);
                    self.header = Header::Whole(if is_header { line } else { Vec::new() });
                }
                true
            }
            Header::Whole(_) => true,
            Header::Expected(header) => {
                self.held.extend_from_slice(read);
                if self.held.starts_with(header) {
                    self.held.drain(..header.len());
                } else if header.starts_with(&self.held) {
                    return false;
                }
                self.header = Header::Whole(std::mem::take(header));
                false
            }
        }
    }

    /// Starts again at the beginning if the file was truncated, or switches to the file that has its name now. Returns whether it did.
    fn begin_anew(&mut self) -> io::Result<bool> {
        let own = self.file.metadata()?;
        let cut_off = own.len() < self.position;
        if cut_off {
            self.file.rewind()?;
        } else {
            // While there is no file of the name, or none that can be read, the old one may still grow.
            let Ok(named) = fs::metadata(&self.path) else { return Ok(false) };
            if is_same(&own, &named) {
                return Ok(false);
            }
            if !std::mem::replace(&mut self.replaced, true) {
                return Ok(true);
            }
            let Ok(file) = File::open(&self.path) else { return Ok(false) };
            self.file = file;
        }
        (self.position, self.replaced) = (0, false);
        // A header that was never finished is no row.
        self.held.clear();
        let (Header::Begun(line) | Header::Whole(line) | Header::Expected(line)) = &mut self.header;
        self.header = Header::Expected(std::mem::take(line));
        if std::mem::take(&mut self.in_line) {
            self.held.push(b'\n');
        }
        Ok(true)
    }

    /// Whether what is held may be given out.
    fn has_bytes(&self) -> bool {
        let may_be_header = |header: &Vec<u8>| header.starts_with(&self.held);
        !self.held.is_empty() && !matches!(&self.header, Header::Expected(header) if may_be_header(header))
    }
}

#[cfg(unix)]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Files have no number here, so a new file is not noticed.
#[cfg(not(unix))]
fn is_same(_: &Metadata, _: &Metadata) -> bool {
    true
}

impl Read for Followed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !buffer.is_empty() {
            if self.has_bytes() {
                let given = buffer.len().min(self.held.len());
                buffer[..given].copy_from_slice(&self.held[..given]);
                self.held.drain(..given);
                self.in_line = buffer[given - 1] != b'\n';
                return Ok(given);
            }
            let read = self.file.read(buffer)?;
            self.position += read as u64;
            if read > 0 {
                if self.passes(&buffer[..read]) {
                    self.in_line = buffer[read - 1] != b'\n';
                    return Ok(read);
                }
            } else if !self.begin_anew()? {
                std::thread::sleep(WAIT);
            }
        }
        Ok(0)
    }
}
