//! The header of a `.npy` file: the type, the order and the shape of its array.

use std::io::{ErrorKind, Read};

use half::f16;

use super::Value;

/// A longer header is no header of an array of numbers.
const MAX_HEADER_BYTES: u64 = 1 << 20;
/// As many as delimited text may have.
const MAX_COLUMNS: u64 = 1_000_000;

/// What the header of a `.npy` file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NpyHeader {
    pub(super) kind: NpyKind,
    pub(super) rows: u64,
    pub(super) columns: usize,
    /// Whether column follows column, and not row follows row.
    pub(super) by_column: bool,
    /// Where the numbers begin in the file.
    pub(super) begin: u64,
}

/// The type of the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NpyKind {
    letter: Letter,
    /// Bytes of a number.
    pub(super) size: usize,
    is_big_endian: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Letter {
    Float,
    Signed,
    Unsigned,
}

impl NpyHeader {
    /// Reads the header, and no byte after it. The error says what is wrong.
    pub(super) fn read(mut reader: impl Read) -> Result<NpyHeader, String> {
        const ENDS_EARLY: &str = "the header ends early: the file was cut off, so write or fetch it anew";
        let cut = |error: std::io::Error| match error.kind() {
            ErrorKind::UnexpectedEof => ENDS_EARLY.into(),
            _ => format!("the header cannot be read ({error})"),
        };
        let mut start = [0; 8];
        reader.read_exact(&mut start).map_err(cut)?;
        let mut length = [0; 4];
        let length_bytes = match start[6] {
            1 => 2,
            2..=3 => 4,
            version => return Err(format!("its version {version} is not known")),
        };
        reader.read_exact(&mut length[..length_bytes]).map_err(cut)?;
        let length = u64::from(u32::from_le_bytes(length));
        if length > MAX_HEADER_BYTES {
            return Err(format!("the header has {length} bytes, which is too long"));
        }
        let mut text = Vec::new();
        reader.take(length).read_to_end(&mut text).map_err(cut)?;
        if text.len() as u64 != length {
            return Err(ENDS_EARLY.into());
        }
        let text = String::from_utf8(text).map_err(|_| "the header is not text".to_string())?;
        let begin = 8 + length_bytes as u64 + length;
        Entries::read(&text).ok_or_else(|| malformed(&text))?.header(begin)
    }

    /// Bytes of a row.
    pub(super) fn row_bytes(&self) -> usize {
        self.columns * self.kind.size
    }

    /// Bytes of the whole array.
    pub(super) fn bytes(&self) -> u128 {
        u128::from(self.rows) * self.row_bytes() as u128
    }
}

fn malformed(text: &str) -> String {
    let shown: String = text.chars().filter(|c| !c.is_control()).take(80).collect();
    format!("the header is malformed ('{}')", shown.trim())
}

/// The entries of the header.
struct Entries {
    kind: String,
    by_column: bool,
    shape: Vec<u64>,
}

impl Entries {
    /// Reads a Python dictionary such as `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }`.
    fn read(text: &str) -> Option<Entries> {
        let mut rest = text.trim().strip_prefix('{')?;
        let (mut kind, mut by_column, mut shape) = (None, None, None);
        loop {
            rest = rest.trim_start();
            if let Some(end) = rest.strip_prefix('}') {
                let is_whole = end.trim().is_empty();
                let entries = Entries { kind: kind?, by_column: by_column?, shape: shape? };
                return is_whole.then_some(entries);
            }
            let (key, value) = quoted(rest)?;
            let value = value.trim_start().strip_prefix(':')?.trim_start();
            rest = match key {
                "descr" if value.starts_with('[') => {
                    // A record of several fields.
                    kind = Some(value.split_inclusive(']').next()?.to_string());
                    &value[value.rfind(']')? + 1..]
                }
                "descr" => {
                    let (word, rest) = quoted(value)?;
                    kind = Some(word.to_string());
                    rest
                }
                "fortran_order" => {
                    by_column = Some(value.starts_with("True"));
                    value.strip_prefix("True").or(value.strip_prefix("False"))?
                }
                "shape" => {
                    let (inside, rest) = value.strip_prefix('(')?.split_once(')')?;
                    shape = Some(sizes(inside)?);
                    rest
                }
                _ => return None,
            };
            rest = rest.trim_start();
            rest = match rest.strip_prefix(',') {
                Some(rest) => rest,
                None if rest.starts_with('}') => rest,
                None => return None,
            };
        }
    }

    fn header(self, begin: u64) -> Result<NpyHeader, String> {
        let kind = NpyKind::of(&self.kind).ok_or_else(|| {
            let kind: String = self.kind.chars().take(40).collect();
            format!(
                "its values have the type '{kind}', not float or integer: convert it first, for instance with \
                 a.astype(float)"
            )
        })?;
        let (rows, columns) = match self.shape.as_slice() {
            [rows] => (*rows, 1),
            [rows, columns] => (*rows, *columns),
            shape => {
                return Err(format!(
                    "it has {} dimensions, where rows and columns are needed: reshape it first",
                    shape.len()
                ));
            }
        };
        if columns > MAX_COLUMNS {
            return Err(format!("it has {columns} columns, more than 1,000,000"));
        }
        // One column or one row is the same in both orders.
        let by_column = self.by_column && columns > 1 && rows > 1;
        Ok(NpyHeader { kind, rows, columns: columns as usize, by_column, begin })
    }
}

/// A text in quotes and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text[1..].split_once(quote)
}

/// Numbers between commas, of which the last may be followed by nothing. Python 2 wrote `3L`.
fn sizes(text: &str) -> Option<Vec<u64>> {
    let text = text.trim();
    if text.is_empty() {
        return Some(Vec::new());
    }
    let items = text.strip_suffix(',').unwrap_or(text).split(',');
    let size = |item: &str| {
        let digits = item.trim();
        let digits = digits.strip_suffix('L').unwrap_or(digits);
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
    };
    items.map(size).collect()
}

impl NpyKind {
    /// The type that a word such as `<f8` means.
    fn of(word: &str) -> Option<NpyKind> {
        let (order, rest) = word.split_at_checked(1)?;
        let is_big_endian = match order {
            "<" | "|" => false,
            "=" => cfg!(target_endian = "big"),
            ">" => true,
            _ => return None,
        };
        let (letter, size) = match rest {
            "f2" | "f4" | "f8" => (Letter::Float, &rest[1..]),
            "i1" | "i2" | "i4" | "i8" => (Letter::Signed, &rest[1..]),
            "u1" | "u2" | "u4" | "u8" => (Letter::Unsigned, &rest[1..]),
            _ => return None,
        };
        Some(NpyKind { letter, size: size.parse().ok()?, is_big_endian })
    }

    /// The bits of a number, with its sign extended if `is_signed`.
    fn bits(self, bytes: &[u8], is_signed: bool) -> u64 {
        let mut wide = [if is_signed { 0xff } else { 0 }; 8];
        let bytes = &bytes[..self.size];
        if self.is_big_endian {
            wide.iter_mut().zip(bytes.iter().rev()).for_each(|(to, byte)| *to = *byte);
        } else {
            wide[..self.size].copy_from_slice(bytes);
        }
        u64::from_le_bytes(wide)
    }

    /// Whether the number is an integer below zero.
    fn is_negative(self, bytes: &[u8]) -> bool {
        let highest = if self.is_big_endian { bytes[0] } else { bytes[self.size - 1] };
        self.letter == Letter::Signed && highest >= 0x80
    }

    /// The value in the first `size` of `bytes`.
    pub(super) fn value(self, bytes: &[u8]) -> Value<'static> {
        let bits = self.bits(bytes, self.is_negative(bytes));
        match (self.letter, self.size) {
            (Letter::Float, 8) => Value::Double(f64::from_bits(bits)),
            (Letter::Float, 4) => Value::Single(f32::from_bits(bits as u32)),
            (Letter::Float, _) => Value::Double(f16::from_bits(bits as u16).to_f64()),
            (Letter::Signed, _) => Value::Signed(bits as i64),
            (Letter::Unsigned, _) => Value::Unsigned(bits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &str) -> Result<NpyHeader, String> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        NpyHeader::read(bytes.as_slice())
    }

    #[test]
    fn headers_of_several_writers_are_read() {
        let found = header("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }      \n").unwrap();
        assert_eq!((found.rows, found.columns, found.by_column, found.row_bytes()), (3, 2, false, 16));
        let found = header("{\"shape\":(3L,2L),\"fortran_order\":True,\"descr\":\">i4\"}").unwrap();
        assert_eq!((found.rows, found.columns, found.by_column, found.kind.size), (3, 2, true, 4));
        assert_eq!(header("{'descr':'|u1','fortran_order':True,'shape':(5,)}").unwrap().columns, 1);
    }

    #[test]
    fn what_is_no_table_of_numbers_is_refused_in_words() {
        let said = |descr: &str, shape: &str| {
            header(&format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}")).unwrap_err()
        };
        assert!(said("'<c16'", "(3, 2)").contains("'<c16'"));
        assert!(said("'|b1'", "(3, 2)").contains("'|b1'"));
        assert!(said("[('a', '<f8'), ('b', '<f8')]", "(3,)").contains("[('a', '<f8')"));
        assert!(said("'<f8'", "()").contains("0 dimensions"));
        assert!(said("'<f8'", "(1, 2, 3)").contains("3 dimensions"));
        assert!(said("'<f8'", "(1, 99999999999)").contains("99999999999 columns"));
        for shape in ["(-1, 2)", "(1 2)", "(99999999999999999999, 2)", "3", "(3, 2"] {
            assert!(said("'<f8'", shape).contains("malformed"), "{shape}");
        }
        assert!(header("not a dictionary").unwrap_err().contains("malformed"));
    }

    #[test]
    fn every_type_of_number_is_read() {
        let number = |word: &str, bytes: &[u8]| NpyKind::of(word).unwrap().value(bytes).number();
        assert_eq!(number("<f8", &0.1f64.to_le_bytes()), 0.1);
        assert_eq!(number(">f8", &0.1f64.to_be_bytes()), 0.1);
        assert_eq!(number("<f4", &0.1f32.to_le_bytes()), f64::from(0.1f32));
        assert_eq!(number("<i2", &(-300i16).to_le_bytes()), -300.0);
        assert_eq!(number(">i8", &(-5i64).to_be_bytes()), -5.0);
        assert_eq!(number("|i1", &[0x80]), -128.0);
        assert_eq!(number("|u1", &[0xff]), 255.0);
        assert_eq!(number(">u4", &4_000_000_000u32.to_be_bytes()), 4e9);
        assert_eq!(number("<u8", &u64::MAX.to_le_bytes()), 18446744073709551615.0);
        let text = |word: &str, bytes: &[u8]| NpyKind::of(word).unwrap().value(bytes).text();
        assert_eq!(text("<f4", &0.1f32.to_le_bytes()), "0.1");
        assert_eq!(text("<i8", &i64::MIN.to_le_bytes()), "-9223372036854775808");
    }
}
