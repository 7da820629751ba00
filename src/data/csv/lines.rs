//! Lines of text in one form: equal line ends, and single blanks between cells.
//!
//! Every line end becomes one `\n`, and the last line gets one too. So the number of `\n` read, which the csv crate counts,
//! gives the line number of a record for all kinds of line ends.

use std::io::{self, Read};

/// Turns `\r\n` and lone `\r` into `\n` and ends the last line.
pub(super) struct Lines<R> {
    inner: R,
    after_return: bool,
    line_open: bool,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(inner: R) -> Self {
        Lines { inner, after_return: false, line_open: false }
    }
}

impl<R: Read> Read for Lines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let read = match self.inner.read(buffer) {
                Ok(read) => read,
                // The csv crate treats an interrupted read as the end of the data.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if read == 0 {
                if !self.line_open {
                    return Ok(0);
                }
                self.line_open = false;
                buffer[0] = b'\n';
                return Ok(1);
            }
            let kept = self.unify(&mut buffer[..read]);
            if kept > 0 {
                self.line_open = buffer[kept - 1] != b'\n';
                return Ok(kept);
            }
        }
    }
}

impl<R> Lines<R> {
    /// Unifies line ends in place and returns how many bytes are left.
    fn unify(&mut self, bytes: &mut [u8]) -> usize {
        // A loop without an early end is compiled to vector instructions.
        let has_return = bytes.iter().fold(false, |found, &byte| found | (byte == b'\r'));
        if !self.after_return && !has_return {
            return bytes.len();
        }
        let mut kept = 0;
        for i in 0..bytes.len() {
            let byte = bytes[i];
            let second_half = byte == b'\n' && self.after_return;
            self.after_return = byte == b'\r';
            if !second_half {
                bytes[kept] = if byte == b'\r' { b'\n' } else { byte };
                kept += 1;
            }
        }
        kept
    }
}

/// Bytes that are processed at a time.
const SQUEEZED_AT_A_TIME: usize = 64 * 1024;

/// Replaces every run of blanks outside quotes by one blank and removes those at both ends of a line, because the csv crate
/// splits at single blanks only.
pub(super) struct Squeezed<R> {
    inner: R,
    squeezer: Squeezer,
    input: Vec<u8>,
    output: Vec<u8>,
    taken: usize,
}

impl<R: Read> Squeezed<R> {
    pub(super) fn new(inner: R) -> Self {
        let input = vec![0; SQUEEZED_AT_A_TIME];
        Squeezed { inner, squeezer: Squeezer::LineStart, input, output: Vec::new(), taken: 0 }
    }
}

impl<R: Read> Read for Squeezed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.output.len() {
            let read = self.inner.read(&mut self.input)?;
            if read == 0 {
                return Ok(0);
            }
            self.output.clear();
            self.taken = 0;
            self.squeezer.squeeze(&self.input[..read], &mut self.output);
        }
        let count = buffer.len().min(self.output.len() - self.taken);
        buffer[..count].copy_from_slice(&self.output[self.taken..self.taken + count]);
        self.taken += count;
        Ok(count)
    }
}

/// The position in a line of blank-separated cells.
#[derive(Clone, Copy)]
enum Squeezer {
    LineStart,
    Between,
    Plain,
    Quoted,
    /// After a quote inside quotes: it ends the cell unless another quote follows.
    AfterQuote,
}

impl Squeezer {
    fn squeeze(&mut self, input: &[u8], output: &mut Vec<u8>) {
        use Squeezer::*;
        for &byte in input {
            *self = match (*self, byte) {
                (Quoted, b'"') => AfterQuote,
                (Quoted, _) | (AfterQuote, b'"') => Quoted,
                (_, b'\n') => LineStart,
                (LineStart, b' ' | b'\t') => LineStart,
                (_, b' ' | b'\t') => {
                    *self = Between;
                    continue;
                }
                (state @ (LineStart | Between), byte) => {
                    if matches!(state, Between) {
                        output.push(b' ');
                    }
                    if byte == b'"' { Quoted } else { Plain }
                }
                (Plain | AfterQuote, _) => Plain,
            };
            if !(matches!(self, LineStart) && byte != b'\n') {
                output.push(byte);
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Cursor;

    use super::*;

    /// Gives its bytes a few at a time, as a pipe may.
    pub struct Pieces {
        bytes: Cursor<Vec<u8>>,
        most: usize,
    }

    impl Pieces {
        pub fn new(text: &str, most: usize) -> Self {
            Pieces { bytes: Cursor::new(text.as_bytes().to_vec()), most }
        }
    }

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = buffer.len().min(self.most);
            self.bytes.read(&mut buffer[..most])
        }
    }

    fn lines(text: &str, piece: usize) -> String {
        let mut out = String::new();
        Lines::new(Pieces::new(text, piece)).read_to_string(&mut out).unwrap();
        out
    }

    fn squeezed(text: &str, piece: usize) -> String {
        let mut out = String::new();
        Squeezed::new(Pieces::new(text, piece)).read_to_string(&mut out).unwrap();
        out
    }

    #[test]
    fn all_line_ends_become_one_and_the_last_line_gets_one() {
        for piece in [1, 2, 3, 100] {
            assert_eq!(lines("a\r\nb\rc\n\r\n\r\rd", piece), "a\nb\nc\n\n\n\nd\n", "pieces of {piece}");
            assert_eq!(lines("a\r\n", piece), "a\n");
            assert_eq!(lines("a\n", piece), "a\n");
            assert_eq!(lines("", piece), "");
        }
    }

    #[test]
    fn runs_of_blanks_become_one_except_in_quotes() {
        for piece in [1, 2, 3, 100] {
            assert_eq!(squeezed("  1   2\t 3  \n   \n4 5\n", piece), "1 2 3\n\n4 5\n", "pieces of {piece}");
            assert_eq!(squeezed("\"a  b\"  2\n", piece), "\"a  b\" 2\n");
            assert_eq!(squeezed("\"a \"\"  b\"   c\"d  e\n", piece), "\"a \"\"  b\" c\"d e\n");
        }
    }
}
