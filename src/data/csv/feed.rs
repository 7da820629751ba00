//! Text on its way to the csv crate, in a buffer from which whole lines can be taken before it sees them.

use std::error::Error;
use std::fmt;
use std::io::{self, Read};

/// An unclosed quote must not swallow a file of any size into memory.
pub(super) const MAX_RECORD_BYTES: usize = 32 * 1024 * 1024;
pub(super) const BUFFER: usize = 128 * 1024;

/// Gives out a text line by line, so that what reads it holds nothing back at the end of a record, and no more
/// than a ration of bytes for each record.
pub(super) struct Feed {
    text: Box<dyn Read + Send>,
    buffer: Box<[u8]>,
    /// Where in the buffer the bytes are that have not been given out.
    begin: usize,
    end: usize,
    /// How much of the ration is left.
    left: usize,
    /// Gives out all it has at a time instead, which is faster if nothing is to be taken from it.
    pub(super) unbroken: bool,
}

impl Feed {
    pub(super) fn new(text: Box<dyn Read + Send>) -> Feed {
        let buffer = vec![0; BUFFER].into_boxed_slice();
        Feed { text, buffer, begin: 0, end: 0, left: MAX_RECORD_BYTES, unbroken: false }
    }

    /// Begins a new record with a new ration.
    pub(super) fn renew_ration(&mut self) {
        self.left = MAX_RECORD_BYTES;
    }

    /// The whole lines that are next, waiting for one if need be; none at the end, or where a line is too long.
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

    /// Takes bytes that [`whole_lines`](Feed::whole_lines) showed.
    pub(super) fn consume(&mut self, bytes: usize) {
        self.begin += bytes;
    }

    /// Adds to the buffer what one read gives; 0 at the end of the text, or if there is no room.
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
            return Err(io::Error::other(RationSpent));
        }
        if self.begin == self.end && self.fill()? == 0 {
            return Ok(0);
        }
        let most = buffer.len().min(self.left).min(self.end - self.begin);
        let next = &self.buffer[self.begin..self.begin + most];
        let line_end = if self.unbroken { None } else { next.iter().position(|&byte| byte == b'\n') };
        let given = line_end.map_or(most, |last| last + 1);
        buffer[..given].copy_from_slice(&next[..given]);
        self.begin += given;
        self.left -= given;
        Ok(given)
    }
}

/// The record is longer than its ration.
#[derive(Debug)]
pub(super) struct RationSpent;

impl fmt::Display for RationSpent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the record is too long")
    }
}

impl Error for RationSpent {}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(text: impl Read + Send + 'static) -> Feed {
        Feed::new(Box::new(text))
    }

    #[test]
    fn whole_lines_are_shown_and_the_rest_goes_out_line_by_line() {
        let mut feed = feed(&b"1\n2\n3\n4"[..]);
        assert_eq!(feed.whole_lines().unwrap(), b"1\n2\n3\n");
        feed.consume(2);
        let mut out = [0; 100];
        assert_eq!(feed.read(&mut out).unwrap(), 2);
        assert_eq!(&out[..2], b"2\n");
        assert_eq!(feed.whole_lines().unwrap(), b"3\n");
        feed.unbroken = true;
        assert_eq!(feed.read(&mut out).unwrap(), 3);
        assert_eq!(feed.read(&mut out).unwrap(), 0);
        assert_eq!(feed.whole_lines().unwrap(), b"");
    }

    #[test]
    fn a_line_is_put_together_from_pieces() {
        let mut feed = feed((&b"12"[..]).chain(&b"34"[..]).chain(&b"5\n6"[..]));
        assert_eq!(feed.whole_lines().unwrap(), b"12345\n");
    }

    #[test]
    fn a_line_longer_than_the_buffer_is_not_shown_whole() {
        let mut feed = feed(io::repeat(b'9').take(3 * BUFFER as u64).chain(&b"\n1\n"[..]));
        assert_eq!(feed.whole_lines().unwrap(), b"");
        let mut whole = Vec::new();
        feed.read_to_end(&mut whole).unwrap();
        assert_eq!(whole.len(), 3 * BUFFER + 3);
    }
}
