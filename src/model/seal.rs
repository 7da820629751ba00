//! The checksum of a model file, which detects damage and accidental edits.
//!
//! It is the last member of the file: `"checksum": "…"`, the 64-bit FNV-1a sum, in 16 hexadecimal digits, of all bytes
//! before the comma that precedes it. White space outside strings does not count, so a file may be
//! indented in another way or have other line ends. Any other change of a single byte changes the sum.

use std::cell::Cell;
use std::io::{self, Read, Write};

use crate::hash::{FNV_EMPTY, fnv_add};

/// The member without white space: its beginning, its end, and the number of digits.
const BEGINNING: &[u8] = b"\"checksum\":\"";
const END: &[u8] = b"\"}";
const DIGITS: usize = 16;

/// Whether a model file has a checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seal {
    /// It has one, and it is correct.
    Intact,
    /// It has none: an early version wrote it, or the checksum was removed after an edit.
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
        Sum { value: FNV_EMPTY, in_string: false, after_backslash: false }
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
        self.value = fnv_add(self.value, byte);
        true
    }

    pub fn digits(self) -> String {
        format!("{:016x}", self.value)
    }
}

/// Computes the checksum of the bytes that pass through.
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

/// Passes on a model file, and computes the checksum that it should have.
pub(super) struct Checking<R> {
    from: R,
    sum: Sum,
    /// Lists and objects that are open.
    depth: usize,
    /// The sum before the last member of the outermost object, and the bytes of that member that count, up to one more than
    /// a checksum has.
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

    /// The digits that the checksum should have, after the whole file is read. `None` if the last member is not a checksum.
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
