//! The checksum of a model file, so that a digit changed by a failing disk or a slip of the hand does not pass for a
//! learned one.
//!
//! It is the last member of the file: `"checksum": "…"`, the 64-bit FNV-1a sum, in 16 hexadecimal digits, of all bytes
//! before the comma that precedes it. Blanks, tabs and line ends outside strings do not count, so a file that was
//! indented anew or has other line ends is still sound. Any other change of a single byte changes the sum.

use std::cell::Cell;
use std::io::{self, Write};

/// What the member is called.
const NAME: &[u8] = b"\"checksum\"";

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
        Sum { value: 0xcbf2_9ce4_8422_2325, in_string: false, after_backslash: false }
    }

    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if !self.in_string && matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                continue;
            }
            if byte == b'"' && !self.after_backslash {
                self.in_string = !self.in_string;
            }
            self.after_backslash = byte == b'\\' && !self.after_backslash;
            self.value = (self.value ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    pub fn of(bytes: &[u8]) -> Self {
        let mut sum = Sum::new();
        sum.add(bytes);
        sum
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
        sum.add(&bytes[..written]);
        self.sum.set(sum);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// The digits that belong at the end of `text`, a whole model file with a checksum; `None` if what stands there is
/// not the checksum, as where members were put in another order.
pub(super) fn expected_digits(text: &[u8]) -> Option<String> {
    let name = text.windows(NAME.len()).rposition(|window| window == NAME)?;
    let before = text[..name].trim_ascii_end().strip_suffix(b",")?;
    let after = text[name + NAME.len()..].trim_ascii().strip_prefix(b":")?;
    let value = after.strip_suffix(b"}")?.trim_ascii();
    let is_last = value.len() == 18 && value.starts_with(b"\"") && value.ends_with(b"\"");
    is_last.then(|| Sum::of(before).digits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_fnv_1a() {
        assert_eq!(Sum::of(b"").digits(), "cbf29ce484222325");
        assert_eq!(Sum::of(b"a").digits(), "af63dc4c8601ec8c");
        assert_eq!(Sum::of(b"foobar").digits(), "85944171f73967e8");
    }

    #[test]
    fn blanks_count_in_strings_only() {
        let same = |a: &str, b: &str| Sum::of(a.as_bytes()).digits() == Sum::of(b.as_bytes()).digits();
        assert!(same("{\"a\": [1, 2]}", "{\r\n\"a\":\t[1,2]}"));
        assert!(!same("{\"a b\": 1}", "{\"ab\": 1}"));
        assert!(!same(r#"{"a\" b": 1}"#, r#"{"a\"b": 1}"#));
        assert!(!same("[1, 2]", "[1, 3]"));
    }

    #[test]
    fn only_the_last_member_is_the_checksum() {
        let digits = |text: &str| expected_digits(text.as_bytes());
        let sound = r#"{"names": ["checksum"], "checksum": "0123456789abcdef"}"#;
        assert_eq!(digits(sound), Some(Sum::of(br#"{"names":["checksum"]"#).digits()));
        assert_eq!(digits(r#"{"checksum": "0123456789abcdef", "a": 1}"#), None);
        assert_eq!(digits(r#"{"a": 1}"#), None);
    }
}
