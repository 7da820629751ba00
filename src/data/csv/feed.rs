//! A buffer in front of the csv crate, from which whole lines can be taken before the crate sees them.

use std::error::Error;
use std::fmt;
use std::io::{self, Read};

/// An unclosed quote must not swallow a file of any size into memory.
pub(super) const MAX_RECORD_BYTES: usize = 32 * 1024 * 1024;
pub(super) const BUFFER: usize = 128 * 1024;

/// A line that is added after the text. It is a record of its own unless the text ends inside a quotation, which the csv crate
/// does not report.
pub(super) const END_MARK: &[u8] = b".";

/// Gives out a text line by line, so that the csv crate buffers nothing past the end of a record, and gives out at most
/// [`MAX_RECORD_BYTES`] for each record.
pub(super) struct Feed {
    text: Box<dyn Read + Send>,
    buffer: Box<[u8]>,
    /// The range of the buffer that has not been given out.
    begin: usize,
    end: usize,
    /// Bytes that the record may still have.
    left: usize,
    /// Whether several lines are given out at once, which is faster if no lines are taken from the buffer.
    pub(super) several_lines: bool,
    /// The text of the record, if it is kept.
    pub(super) given: Option<Vec<u8>>,
    /// Whether [`END_MARK`] has been given out.
    pub(super) ended: bool,
}

impl Feed {
    pub(super) fn new(text: Box<dyn Read + Send>) -> Feed {
        let buffer = vec![0; BUFFER].into_boxed_slice();
        Feed {
            text,
            buffer,
            begin: 0,
            end: 0,
            left: MAX_RECORD_BYTES,
            several_lines: false,
            given: None,
            ended: false,
        }
    }

    /// Begins a new record, which may have [`MAX_RECORD_BYTES`] again.
    pub(super) fn begin_record(&mut self) {
        self.left = MAX_RECORD_BYTES;
        self.given.iter_mut().for_each(Vec::clear);
    }

    /// The next whole lines; waits for one. None at the end, or if a line is longer than the buffer.
    pub(super) fn whole_lines(&mut self) -> io::Result<&[u8]> {
        let mut searched = self.begin;
        let length = loop {
            if let Some(last) = self.buffer[searched..self.end].iter().rposition(|&byte| byte == b'\n') {
                break searched + last + 1 - self.begin;
            }
            let held = self.end - self.begin;
            if self.fill()? == 0 {
                break 0;
            }
            searched = self.begin + held;
        };
        Ok(&self.buffer[self.begin..self.begin + length])
    }

    /// Whether a whole line has arrived.
    pub(super) fn holds_line(&self) -> bool {
        self.buffer[self.begin..self.end].contains(&b'\n')
    }

    /// Removes bytes that [`whole_lines`](Feed::whole_lines) returned.
    pub(super) fn consume(&mut self, bytes: usize) {
        self.begin += bytes;
    }

    /// Adds the bytes of one read to the buffer and returns their number: 0 at the end of the text, or if there is no room.
    fn fill(&mut self) -> io::Result<usize> {
        self.buffer.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        let read = self.text.read(&mut self.buffer[self.end..])?;
        self.end += read;
        Ok(read)
    }
}

impl Read for Feed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::other(RecordTooLong));
        }
        if self.begin == self.end && self.fill()? == 0 {
            if self.ended {
                return Ok(0);
            }
            self.ended = true;
            buffer[..END_MARK.len()].copy_from_slice(END_MARK);
            return Ok(END_MARK.len());
        }
        let most = buffer.len().min(self.left).min(self.end - self.begin);
        let next = &self.buffer[self.begin..self.begin + most];
        let line_end = if self.several_lines { None } else { next.iter().position(|&byte| byte == b'\n') };
        let given = line_end.map_or(most, |last| last + 1);
        buffer[..given].copy_from_slice(&next[..given]);
        self.given.iter_mut().for_each(|text| text.extend_from_slice(&next[..given]));
        self.begin += given;
        self.left -= given;
        Ok(given)
    }
}

/// The record is longer than [`MAX_RECORD_BYTES`].
#[derive(Debug)]
pub(super) struct RecordTooLong;

impl fmt::Display for RecordTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the record is too long")
    }
}

impl Error for RecordTooLong {}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(text: impl Read + Send + 'static) -> Feed {
        Feed::new(Box::new(text))
    }

    #[test]
    fn whole_lines_are_returned_and_the_rest_is_read_line_by_line() {
        let mut feed = feed(&b"1\n2\n3\n4"[..]);
        assert_eq!(feed.whole_lines().unwrap(), b"1\n2\n3\n");
        feed.consume(2);
        let mut out = [0; 100];
        assert_eq!(feed.read(&mut out).unwrap(), 2);
        assert_eq!(&out[..2], b"2\n");
        assert_eq!(feed.whole_lines().unwrap(), b"3\n");
        feed.several_lines = true;
        assert_eq!(feed.read(&mut out).unwrap(), 3);
        assert_eq!((feed.read(&mut out).unwrap(), &out[..1]), (1, END_MARK));
        assert_eq!(feed.read(&mut out).unwrap(), 0);
        assert_eq!(feed.whole_lines().unwrap(), b"");
    }

    #[test]
    fn a_line_is_assembled_from_pieces() {
        let mut feed = feed((&b"12"[..]).chain(&b"34"[..]).chain(&b"5\n6"[..]));
        assert_eq!(feed.whole_lines().unwrap(), b"12345\n");
    }

    #[test]
    fn a_line_longer_than_the_buffer_is_not_a_whole_line() {
        let mut feed = feed(io::repeat(b'9').take(3 * BUFFER as u64).chain(&b"\n1\n"[..]));
        assert_eq!(feed.whole_lines().unwrap(), b"");
        let mut whole = Vec::new();
        feed.read_to_end(&mut whole).unwrap();
        assert_eq!(whole.len(), 3 * BUFFER + 3 + END_MARK.len());
    }
}
