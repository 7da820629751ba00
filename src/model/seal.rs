//! The checksum of a model file, so that a digit changed by a failing disk or a slip of the hand does not pass for a
//! learned one.
//!
//! It is the last member of the file: `"checksum": "…"`, the 64-bit FNV-1a sum, in 16 hexadecimal digits, of all bytes
//! before the comma that precedes it. Blanks, tabs and line ends outside strings do not count, so a file that was
//! indented anew or has other line ends is still sound. Any other change of a single byte changes the sum.

use std::cell::Cell;
use std::io::{self, Read, Write};

use crate::fnv;

/// How the member begins and ends without blanks, and how many digits are between.
const BEGINNING: &[u8] = b"\"checksum\":\"";
const END: &[u8] = b"\"}";
const DIGITS: usize = 16;

/// Whether a model file could be checked as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seal {
    /// It has a checksum, and it is right.
    Intact,
    /// It has none: written by an early version, or the line was removed after a change by hand.
    Missing,
}

/// The sum of the bytes so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sum {
    value: u64,
    in_string: bool,
    after_backslash: bool,
}

impl Sum {
    pub const fn new() -> Self {
        Sum { value: fnv::EMPTY, in_string: false, after_backslash: false }
    }

    /// Adds a byte. Returns whether it counts.
    fn add(&mut self, byte: u8) -> bool {
        if !self.in_string && matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            return false;
        }
        if byte == b'"' && !self.after_backslash {
            self.in_string = !self.in_string;
        }
        self.after_backslash = byte == b'\\' && !self.after_backslash;
        self.value = fnv::add(self.value, byte);
        true
    }

    pub fn digits(self) -> String {
        format!("{:016x}", self.value)
    }
}

/// Sums up what passes.
pub(super) struct Summing<'a, W> {
    pub to: W,
    pub sum: &'a Cell<Sum>,
}

impl<W: Write> Write for Summing<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        let mut sum = self.sum.get();
        for &byte in &bytes[..written] {
            sum.add(byte);
        }
        self.sum.set(sum);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Passes on a model file that is read, and computes the digits that belong at its end.
pub(super) struct Checking<R> {
    from: R,
    sum: Sum,
    /// Lists and objects that are open.
    depth: usize,
    /// The sum before the last member of the outermost object, and the bytes of that member that count, no more than those
    /// of a checksum and one.
    before_last: Sum,
    last: Vec<u8>,
    bytes: u64,
}

impl<R: Read> Checking<R> {
    pub fn new(from: R) -> Self {
        Checking { from, sum: Sum::new(), depth: 0, before_last: Sum::new(), last: Vec::new(), bytes: 0 }
    }

    /// Bytes read so far.
    pub fn size(&self) -> u64 {
        self.bytes
    }

    /// Once all is read: the digits that the checksum should have; `None` if the last member is not the checksum, as where
    /// members were put in another order.
    pub fn expected_digits(&self) -> Option<String> {
        let digits = self.last.strip_prefix(BEGINNING)?.strip_suffix(END)?;
        (digits.len() == DIGITS).then(|| self.before_last.digits())
    }

    fn add(&mut self, byte: u8) {
        if !self.sum.in_string && self.depth == 1 && byte == b',' {
            self.before_last = self.sum;
            self.last.clear();
            self.sum.add(byte);
            return;
        }
        if self.sum.add(byte) && self.last.len() <= BEGINNING.len() + DIGITS + END.len() {
            self.last.push(byte);
        }
        if !self.sum.in_string {
            match byte {
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }
}

impl<R: Read> Read for Checking<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(to)?;
        self.bytes += count as u64;
        to[..count].iter().for_each(|&byte| self.add(byte));
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(text: &str) -> String {
        let mut sum = Sum::new();
        for byte in text.bytes() {
            sum.add(byte);
        }
        sum.digits()
    }

    #[test]
    fn the_sum_is_fnv_1a() {
        assert_eq!(sum(""), "cbf29ce484222325");
        assert_eq!(sum("a"), "af63dc4c8601ec8c");
        assert_eq!(sum("foobar"), "85944171f73967e8");
    }

    #[test]
    fn blanks_count_in_strings_only() {
        let same = |a: &str, b: &str| sum(a) == sum(b);
        assert!(same("{\"a\": [1, 2]}", "{\r\n\"a\":\t[1,2]}"));
        assert!(!same("{\"a b\": 1}", "{\"ab\": 1}"));
        assert!(!same(r#"{"a\" b": 1}"#, r#"{"a\"b": 1}"#));
        assert!(!same("[1, 2]", "[1, 3]"));
    }

    #[test]
    fn only_the_last_member_is_the_checksum() {
        let digits = |text: &str| {
            let mut checking = Checking::new(text.as_bytes());
            io::copy(&mut checking, &mut io::sink()).unwrap();
            assert_eq!(checking.size(), text.len() as u64);
            checking.expected_digits()
        };
        let sound = r#"{"names": ["checksum", ",{["], "checksum": "0123456789abcdef" }"#;
        assert_eq!(digits(sound), Some(sum(r#"{"names":["checksum",",{["]"#)));
        assert_eq!(digits(r#"{"checksum": "0123456789abcdef", "a": 1}"#), None);
        assert_eq!(digits(r#"{"a": 1, "checksum": "0123456789abcdef0"}"#), None);
        assert_eq!(digits(r#"{"b": {"a": 1, "checksum": "0123456789abcdef"}}"#), None);
        assert_eq!(digits(r#"{"a": 1}"#), None);
    }
}
