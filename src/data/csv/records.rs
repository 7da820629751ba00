//! The records of a text, one after the other in one allocation of bounded size.

use std::io::{self, Read};

use csv::{ByteRecord, Reader, ReaderBuilder};

use super::detect::Delimiter;
use super::fast_lines::PlainLines;
use super::feed::{BUFFER, END_MARK, Feed, RecordTooLong};
use super::lines::Squeezed;
use crate::data::block::Block;

const MAX_FIELD_BYTES: usize = 1024 * 1024;
const MAX_FIELDS: usize = 1_000_000;

/// Why there is no next record.
#[derive(Debug)]
pub(super) enum RecordError {
    Io(io::Error),
    TooLarge(&'static str),
    /// The text ends inside a quotation, which opens in the record that begins on this line.
    OpenQuotation {
        line: u64,
        /// The lines from there to the end.
        lines: u64,
    },
}

/// The records of one text, without blank lines.
pub(super) struct Records {
    reader: Reader<Feed>,
    record: ByteRecord,
    /// Whether the fast path has read a missing value.
    met_gap: bool,
    /// Lines that the fast path took.
    plain_lines: u64,
    /// Whether the csv crate has seen the beginning of the text.
    begun: bool,
    /// The byte between cells.
    delimiter: u8,
    /// Whether each line is a record of its own, so that an open quote does not wait for the next lines.
    by_line: bool,
    /// Whether the last record is such a line.
    is_line: bool,
}

impl Records {
    /// The text must end with a line end, if it is not empty.
    pub(super) fn new(text: Box<dyn Read + Send>, delimiter: Delimiter) -> Records {
        let (byte, text): (u8, Box<dyn Read + Send>) = match delimiter {
            Delimiter::Byte(byte) => (byte, text),
            Delimiter::Blanks => (b' ', Box::new(Squeezed::new(text))),
        };
        let reader = reader_of(byte).buffer_capacity(BUFFER).from_reader(Feed::new(text));
        Records {
            reader,
            record: ByteRecord::new(),
            met_gap: false,
            plain_lines: 0,
            begun: false,
            delimiter: byte,
            by_line: false,
            is_line: false,
        }
    }

    /// Moves to the next record that is not a blank line. Returns false at the end.
    pub(super) fn advance(&mut self) -> Result<bool, RecordError> {
        loop {
            if !self.read_line()? {
                self.begun = true;
                self.reader.get_mut().begin_record();
                if !self.reader.read_byte_record(&mut self.record).map_err(RecordError::from)? {
                    return Ok(false);
                }
                if self.reader.get_ref().ended {
                    return self.end();
                }
            }
            let blank = self.record.len() == 1 && self.record[0].trim_ascii().is_empty();
            if blank {
                continue;
            }
            if self.record.len() > MAX_FIELDS {
                return Err(RecordError::TooLarge("more than 1,000,000 fields"));
            }
            if self.record.as_slice().len() > MAX_FIELD_BYTES
                && self.record.iter().any(|field| field.len() > MAX_FIELD_BYTES)
            {
                return Err(RecordError::TooLarge("a field of more than 1 MiB"));
            }
            return Ok(true);
        }
    }

    /// The end of the text, which [`END_MARK`] has to follow as a record of its own.
    fn end(&mut self) -> Result<bool, RecordError> {
        let is_mark = self.record.len() == 1 && &self.record[0] == END_MARK;
        if is_mark {
            return Ok(false);
        }
        // The last line end, which is in the quotation, begins no line.
        let lines = self.lines() - 1;
        let line = (self.plain_lines + self.reader.position().line()).saturating_sub(lines).max(1);
        Err(RecordError::OpenQuotation { line, lines })
    }

    /// Moves to the next line as a record of its own. Returns false if lines are not records, and at the end.
    fn read_line(&mut self) -> Result<bool, RecordError> {
        self.is_line = false;
        if !self.by_line || !self.begun {
            return Ok(false);
        }
        let feed = self.reader.get_mut();
        let lines = feed.whole_lines().map_err(RecordError::Io)?;
        let Some(end) = lines.iter().position(|&byte| byte == b'\n') else { return Ok(false) };
        let mut line = reader_of(self.delimiter).from_reader(&lines[..end]);
        if !line.read_byte_record(&mut self.record).map_err(RecordError::from)? {
            // A blank line.
            self.record = ByteRecord::from(vec![""]);
        }
        feed.consume(end + 1);
        self.plain_lines += 1;
        self.is_line = true;
        Ok(true)
    }

    /// Makes each line after the first record a record of its own.
    pub(super) fn read_by_line(&mut self) {
        self.by_line = true;
    }

    /// Whether a whole line has arrived.
    pub(super) fn holds_line(&self) -> bool {
        self.reader.get_ref().holds_line()
    }

    /// Appends the rows of the next plain lines, at most `most`, and returns their number. If `prompt`, it does not wait for
    /// more once the block has a row.
    ///
    /// May only be called between records, when the csv crate's own buffer is empty.
    pub(super) fn take_plain(
        &mut self,
        plain: &PlainLines,
        block: &mut Block,
        most: usize,
        prompt: bool,
    ) -> Result<usize, RecordError> {
        // The csv crate looks for a byte-order mark in the first bytes it sees, so it must see the first line.
        if !self.begun {
            return Ok(0);
        }
        let feed = self.reader.get_mut();
        let before = block.rows();
        loop {
            let left = most - (block.rows() - before);
            if left == 0 || prompt && !block.is_empty() && !feed.holds_line() {
                break;
            }
            let lines = feed.whole_lines().map_err(RecordError::Io)?;
            let whole = lines.len();
            let taken = plain.read(lines, block, left);
            self.met_gap |= taken.met_gap;
            feed.consume(taken.bytes);
            if taken.bytes < whole || whole == 0 {
                break;
            }
        }
        let rows = block.rows() - before;
        self.plain_lines += rows as u64;
        Ok(rows)
    }

    /// Whether the fast path has read a missing value since the last call.
    pub(super) fn has_met_gap(&mut self) -> bool {
        std::mem::take(&mut self.met_gap)
    }

    /// Makes the csv crate read every record.
    pub(super) fn disable_fast_path(&mut self) {
        self.reader.get_mut().several_lines = true;
    }

    /// Keeps the text of each record from now on.
    pub(super) fn keep_text(&mut self) {
        self.reader.get_mut().given = Some(Vec::new());
    }

    /// The text of the record, if it is kept, without the line end.
    pub(super) fn text(&self) -> &[u8] {
        let text = self.reader.get_ref().given.as_deref().unwrap_or_default();
        // Blank lines come with the record after them.
        let begin = text.iter().take_while(|&&byte| byte == b'\n').count();
        let record = &text[begin..];
        record.strip_suffix(b"\n").unwrap_or(record)
    }

    /// The record that [`advance`](Records::advance) moved to.
    pub(super) fn record(&self) -> &ByteRecord {
        &self.record
    }

    /// The line on which that record begins.
    pub(super) fn line(&self) -> u64 {
        // The csv crate's position of a record is that of the blank lines before it, so count back from its end: every
        // record ends in one '\n', and its quoted cells may contain more.
        if self.is_line {
            return (self.plain_lines + self.reader.position().line()).saturating_sub(1).max(1);
        }
        (self.plain_lines + self.reader.position().line()).saturating_sub(self.lines()).max(1)
    }

    /// The lines of that record, which are several if a quoted cell has line ends.
    pub(super) fn lines(&self) -> u64 {
        1 + line_ends(self.record.as_slice()) as u64
    }
}

/// The line ends in a text.
pub(super) fn line_ends(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| byte == b'\n').count()
}

fn reader_of(delimiter: u8) -> ReaderBuilder {
    let mut builder = ReaderBuilder::new();
    builder.delimiter(delimiter).has_headers(false).flexible(true);
    builder
}

impl From<csv::Error> for RecordError {
    fn from(error: csv::Error) -> RecordError {
        match error.into_kind() {
            csv::ErrorKind::Io(error) if error.get_ref().is_some_and(|inner| inner.is::<RecordTooLong>()) => {
                RecordError::TooLarge("more than 32 MiB")
            }
            csv::ErrorKind::Io(error) => RecordError::Io(error),
            other => RecordError::Io(io::Error::new(io::ErrorKind::InvalidData, format!("{other:?}"))),
        }
    }
}

/// The first records of a sample, up to one that is too large or not closed. That is an error if there is no row before it, or
/// if the sample is the whole text and ends inside a quotation.
pub(super) fn sample_records(
    sample: &[u8],
    delimiter: Delimiter,
    most: usize,
    complete: bool,
) -> Result<Vec<ByteRecord>, RecordError> {
    let mut records = Records::new(Box::new(io::Cursor::new(sample.to_vec())), delimiter);
    let mut found = Vec::new();
    while found.len() < most {
        match records.advance() {
            Ok(true) => found.push(records.record().clone()),
            // The first record may be a header.
            Err(error @ RecordError::OpenQuotation { .. }) if complete || found.len() < 2 => {
                return Err(error);
            }
            Err(error) if found.is_empty() => return Err(error),
            Ok(false) | Err(_) => break,
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(text: &str) -> Records {
        Records::new(Box::new(io::Cursor::new(text.as_bytes().to_vec())), Delimiter::Byte(b','))
    }

    #[test]
    fn blank_lines_are_skipped_and_line_numbers_are_those_of_the_file() {
        let mut records = records("a,b\n\n  \n1,2\n\"x\ny\",3\n\n4,5\n");
        let mut lines = Vec::new();
        while records.advance().unwrap() {
            lines.push((records.line(), records.record().len()));
        }
        assert_eq!(lines, [(1, 2), (4, 2), (5, 2), (8, 2)]);
    }

    #[test]
    fn a_text_that_ends_inside_a_quotation_is_told_from_one_that_ends_after_it() {
        for closed in [
            "1,\"a\"\n",
            "\"a\n\"\n",
            "1,\"\n\n\"\n",
            "\"\n\"\"\"\n",
            "1,a\"b\n",
            ".\n",
            "1\n.\n",
            "1,\"a\n\",\n",
        ] {
            let mut records = records(closed);
            while records.advance().unwrap() {}
            assert!(!records.advance().unwrap(), "{closed:?}");
        }
        for (open, line, lines) in [
            ("\"\n", 1, 1),
            ("1\n\"\n", 2, 1),
            ("1\n\n\n2,\"a\nb\nc\n", 4, 3),
            ("1\n\"a\"\"\n", 2, 1),
            ("\"a\n\"\"\n", 1, 2),
            ("\"a\n\"\n\"\n", 3, 1),
        ] {
            let mut records = records(open);
            let error = loop {
                match records.advance() {
                    Ok(more) => assert!(more, "{open:?}"),
                    Err(error) => break error,
                }
            };
            let RecordError::OpenQuotation { line: at, lines: over } = error else { panic!("{error:?}") };
            assert_eq!((at, over), (line, lines), "{open:?}");
            assert!(!records.advance().unwrap(), "{open:?}");
        }
    }

    #[test]
    fn an_endless_record_is_refused_before_it_fills_the_memory() {
        let text = io::Cursor::new(b"\"".to_vec()).chain(io::repeat(b'x'));
        let mut records = Records::new(Box::new(text), Delimiter::Byte(b','));
        assert!(matches!(records.advance(), Err(RecordError::TooLarge("more than 32 MiB"))));
    }

    #[test]
    fn a_huge_field_and_too_many_fields_are_refused() {
        let long = "x".repeat(MAX_FIELD_BYTES + 1) + ",1\n";
        assert!(matches!(records(&long).advance(), Err(RecordError::TooLarge("a field of more than 1 MiB"))));
        let wide = ",".repeat(MAX_FIELDS) + "\n";
        assert!(matches!(records(&wide).advance(), Err(RecordError::TooLarge("more than 1,000,000 fields"))));
    }
}
