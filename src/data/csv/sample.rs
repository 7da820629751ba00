//! A sample of the first lines of a text, and whether it is delimited text.

use std::io::{self, Cursor, Read};

use super::cell::parse_number;
use super::feed::MAX_RECORD_BYTES;
use super::lines::Lines;
use crate::data::error::DataError;
use crate::data::input::OpenInput;

const SAMPLE_BYTES: usize = 64 * 1024;
/// This many rows are enough, so that a slow pipe need not fill the sample.
pub(in crate::data) const SAMPLE_LINES: usize = 200;
/// Wide tables need a longer sample: a header and some rows.
const MIN_LINES: usize = 4;

/// The first lines of an input, and a reader of the whole input.
pub(super) struct Sampled {
    pub(super) name: String,
    pub(super) gzip: bool,
    /// Whole lines.
    pub(super) sample: Vec<u8>,
    /// Whether the sample is the whole text.
    pub(super) complete: bool,
    /// The whole text, without a byte-order mark.
    pub(super) text: Box<dyn Read + Send>,
}

/// Takes a sample; an early one ends with the first row. Other formats than delimited text are errors.
pub(super) fn take_sample(input: OpenInput, early: bool) -> Result<Sampled, DataError> {
    let OpenInput { name, gzip, reader, .. } = input;
    let mut rest = Lines::new(reader);
    let mut taken = SampleBytes { early, ..SampleBytes::default() };
    let end = taken.take_from(&mut rest);
    let SampleBytes { mut bytes, enough, .. } = taken;
    let judged = &bytes[..enough.unwrap_or(bytes.len())];
    refuse_other_formats(&name, judged)?;
    let whole_lines = judged.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
    let mark = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let sample = bytes[..whole_lines].get(mark..).unwrap_or_default().to_vec();
    bytes.drain(..mark);
    let complete = matches!(end, Ok(true));
    let failure = match end {
        // Without rows the columns are unknown, so a failure right after the header is an error now.
        Err(error) if line_count(&bytes) < 2 => return Err(OpenInput::failed(&name, gzip, 0, error)),
        Err(error) => Some(error),
        Ok(true) if bytes.trim_ascii().is_empty() => return Err(DataError::Empty(name)),
        Ok(false) if bytes.len() >= MAX_RECORD_BYTES && line_count(&bytes) < 2 => {
            return Err(DataError::TooLarge { file: name, row: 0, what: "a line of more than 32 MiB" });
        }
        Ok(_) => None,
    };
    let text = Box::new(Cursor::new(bytes).chain(Failing { error: failure }).chain(rest));
    Ok(Sampled { name, gzip, sample, complete, text })
}

/// What was read for the sample. The sample depends on the text, not on the pieces in which it arrives.
#[derive(Default)]
struct SampleBytes {
    /// Whether the first row is enough.
    early: bool,
    bytes: Vec<u8>,
    /// Lines that are not blank, and whether the current line is not blank.
    lines: usize,
    filled: bool,
    binary: bool,
    /// The length of the sample, once it is large enough. It ends with a line.
    enough: Option<usize>,
}

impl SampleBytes {
    /// Reads until the sample is large enough. Returns true at the end of the input.
    fn take_from(&mut self, reader: &mut impl Read) -> io::Result<bool> {
        let mut chunk = vec![0; SAMPLE_BYTES];
        while self.enough.is_none() && self.bytes.len() < MAX_RECORD_BYTES && !self.binary {
            let read = reader.read(&mut chunk)?;
            if read == 0 {
                return Ok(true);
            }
            self.add(&chunk[..read]);
        }
        Ok(false)
    }

    fn add(&mut self, chunk: &[u8]) {
        for (at, &byte) in chunk.iter().enumerate() {
            if byte != b'\n' {
                self.filled |= !byte.is_ascii_whitespace();
                continue;
            }
            self.lines += usize::from(std::mem::take(&mut self.filled));
            let length = self.bytes.len() + at + 1;
            // A header may come before the rows.
            let enough = self.lines > SAMPLE_LINES
                || length >= SAMPLE_BYTES && self.lines >= MIN_LINES
                || self.early
                    && (self.lines > 1
                        || self.lines == 1 && has_number(&[&self.bytes, &chunk[..at]].concat()));
            if enough && self.enough.is_none() {
                self.enough = Some(length);
            }
        }
        self.binary |= chunk.contains(&0);
        self.bytes.extend_from_slice(chunk);
    }
}

/// Whether a cell of a text is a number, so that it is more than a header.
pub(in crate::data) fn has_number(text: &[u8]) -> bool {
    text.split(|byte| b",;\t| \n".contains(byte)).any(|cell| parse_number(cell).is_some())
}

fn line_count(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte == b'\n').count()
}

/// Repeats a read error of the sampling after the sample, so that the rows before it are read.
struct Failing {
    error: Option<io::Error>,
}

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.error.take().map_or(Ok(0), Err)
    }
}

fn refuse_other_formats(name: &str, bytes: &[u8]) -> Result<(), DataError> {
    let file = || name.to_string();
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(DataError::Utf16(file()));
    }
    // A name of a column may begin so, but has no zero bytes.
    if bytes.starts_with(b"PARE") && bytes.contains(&0) {
        return Err(DataError::Format {
            file: file(),
            format: "a Parquet file",
            what: "it is encrypted: write it without encryption".into(),
        });
    }
    const KINDS: [(&[u8], &str); 4] = [
        (b"PK\x03\x04", "a zip archive or spreadsheet: unpack or export it first"),
        (b"\x28\xb5\x2f\xfd", "compressed with zstd: unpack it first"),
        (b"BZh91AY&SY", "compressed with bzip2: unpack it first"),
        (b"\xfd7zXZ", "compressed with xz: unpack it first"),
    ];
    if let Some((_, looks)) = KINDS.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Err(DataError::Binary { file: file(), looks });
    }
    if bytes.contains(&0) {
        return Err(DataError::Binary { file: file(), looks: "it holds NUL bytes" });
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if is_model(bytes) {
        return Err(DataError::Model(file()));
    }
    let start: Vec<u8> = bytes.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).take(2).collect();
    if matches!(start.as_slice(), [b'{', b'"' | b'}'] | [b'[', b'{' | b'[']) {
        return Err(DataError::Json(file()));
    }
    let mut lines =
        bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    // ARFF files may open with comments.
    if lines.find(|line| !line.starts_with(b"%")).is_some_and(|line| line.starts_with(b"@")) {
        return Err(DataError::Arff(file()));
    }
    Ok(())
}

/// Whether a text begins as a model file does.
fn is_model(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(200)];
    let format = crate::model::FORMAT.as_bytes();
    start.trim_ascii_start().starts_with(b"{") && start.windows(format.len()).any(|part| part == format)
}

#[cfg(test)]
mod tests {
    use super::super::lines::tests::Pieces;
    use super::*;

    #[test]
    fn a_long_sample_is_cut_to_whole_lines_and_the_text_is_still_whole() {
        let text = "0.123456789,0.123456789\n".repeat(10_000);
        let input = OpenInput::of_reader("x", Box::new(Pieces::new(&text, 1000)));
        let mut sampled = take_sample(input, false).unwrap();
        assert!(!sampled.complete && sampled.sample.len() < text.len() && sampled.sample.ends_with(b"\n"));
        let mut whole = String::new();
        sampled.text.read_to_string(&mut whole).unwrap();
        assert_eq!(whole, text);
    }

    /// Rows after the sample may arrive with it. They must not be part of it.
    #[test]
    fn the_sample_depends_on_the_text_alone() {
        let rows = |count: usize| "\n1,2\n".repeat(count);
        let wide = format!("{}\n", "7,".repeat(20_000)).repeat(6);
        for text in [rows(150) + "\0\n", rows(300) + "\0\n", rows(300) + "x,y\n", wide] {
            let samples = [1, 7, 1000, usize::MAX].map(|piece| {
                let reader = Box::new(Pieces::new(&text, piece));
                let sampled = take_sample(OpenInput::of_reader("x", reader), false);
                sampled.map(|sampled| sampled.sample).map_err(|error| error.to_string())
            });
            assert!(samples.iter().all(|sample| *sample == samples[0]));
            assert_eq!(samples[0].is_err(), text.len() < 1000, "a NUL byte is an error among the first rows");
        }
    }
}
