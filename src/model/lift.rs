//! Decodes the kept rows of a model file before the parser, which would hold their whole text in memory.

use std::io::{self, Read, Write};

use crate::learn::PACKED_FIELDS;
use crate::learn::packed::{PART, Packed, unpack};

/// The rows of each of [`PACKED_FIELDS`], if they were decoded.
pub(super) type LiftedRows = [Option<Vec<f64>>; PACKED_FIELDS.len()];

/// Passes on a model file. Decodes the kept rows, and passes on an empty string instead of them.
pub(super) struct Lifting<R> {
    from: R,
    buffer: Vec<u8>,
    /// Text to pass on, and how much of it has been passed on.
    text: Vec<u8>,
    passed: usize,
    state: State,
    /// The beginning of the last string, which may be the name of a field.
    name: Vec<u8>,
    /// Characters of kept rows that are not decoded yet.
    waiting: Vec<u8>,
    rows: LiftedRows,
}

#[derive(Clone, Copy)]
enum State {
    Outside,
    /// In a string; whether a backslash precedes.
    String {
        escaped: bool,
    },
    /// After a string, where a colon may follow.
    AfterString,
    /// After the name of this field and its colon.
    AfterName(usize),
    /// In the string of this field.
    Rows(usize),
}

impl<R: Read> Lifting<R> {
    pub fn new(from: R) -> Self {
        Lifting {
            from,
            buffer: vec![0; 1 << 16],
            text: Vec::new(),
            passed: 0,
            state: State::Outside,
            name: Vec::new(),
            waiting: Vec::new(),
            rows: LiftedRows::default(),
        }
    }

    /// The decoded rows.
    pub fn into_rows(self) -> LiftedRows {
        self.rows
    }

    fn add(&mut self, byte: u8) -> io::Result<()> {
        if let State::Rows(field) = self.state {
            return self.add_to_rows(field, byte);
        }
        self.text.push(byte);
        self.state = match (self.state, byte) {
            (State::String { escaped: false }, b'"') => State::AfterString,
            (State::String { escaped }, _) => {
                if self.name.len() < 16 {
                    self.name.push(byte);
                }
                State::String { escaped: byte == b'\\' && !escaped }
            }
            (state, b' ' | b'\t' | b'\n' | b'\r') => state,
            (State::AfterName(field), b'"') => {
                self.rows[field] = Some(Vec::new());
                State::Rows(field)
            }
            (_, b'"') => {
                self.name.clear();
                State::String { escaped: false }
            }
            (State::AfterString, b':') => {
                let field = PACKED_FIELDS.iter().position(|name| name.as_bytes() == self.name);
                field.map_or(State::Outside, State::AfterName)
            }
            _ => State::Outside,
        };
        Ok(())
    }

    fn add_to_rows(&mut self, field: usize, byte: u8) -> io::Result<()> {
        match byte {
            b'"' => {
                if !self.decode(field) {
                    self.give_up(field)?;
                }
                self.text.push(byte);
                self.state = State::Outside;
            }
            b'\\' => {
                self.give_up(field)?;
                self.text.push(byte);
                self.state = State::String { escaped: true };
            }
            _ => {
                self.waiting.push(byte);
                if self.waiting.len() == PART && !self.decode(field) {
                    self.give_up(field)?;
                    self.state = State::String { escaped: false };
                }
            }
        }
        Ok(())
    }

    /// Decodes the waiting characters. Returns `false` if that is not possible.
    fn decode(&mut self, field: usize) -> bool {
        let values = self.rows[field].get_or_insert_default();
        let decoded = unpack(&self.waiting, values).is_ok();
        if decoded {
            self.waiting.clear();
        }
        decoded
    }

    /// Passes on a string that cannot be decoded here, for the parser to handle.
    fn give_up(&mut self, field: usize) -> io::Result<()> {
        let values = self.rows[field].take().unwrap_or_default();
        write!(self.text, "{}", Packed(&values))?;
        self.text.append(&mut self.waiting);
        Ok(())
    }
}

impl<R: Read> Read for Lifting<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.passed == self.text.len() {
            self.text.clear();
            self.passed = 0;
            let mut buffer = std::mem::take(&mut self.buffer);
            let count = self.from.read(&mut buffer);
            let added = count.and_then(|count| {
                buffer[..count].iter().try_for_each(|&byte| self.add(byte))?;
                Ok(count)
            });
            self.buffer = buffer;
            if added? == 0 {
                return Ok(0);
            }
        }
        let count = (&self.text[self.passed..]).read(to)?;
        self.passed += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a few bytes at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let most = to.len().min(7);
            self.0.read(&mut to[..most])
        }
    }

    fn lift(text: &str) -> (String, LiftedRows) {
        let mut lifting = Lifting::new(Slow(text.as_bytes()));
        let mut passed = String::new();
        lifting.read_to_string(&mut passed).unwrap();
        (passed, lifting.into_rows())
    }

    #[test]
    fn rows_are_set_aside_and_all_else_is_passed_on() {
        let values: Vec<f64> = (0..10_000).map(|i| f64::from(i).sqrt()).collect();
        let packed = Packed(&values).to_string();
        let file = |rows: &str| {
            format!(
                "{{\"name\": \"reservoir\", \"a\\\"\": [1], \"reservoir\" :\n \"{rows}\", \"validation\":\"\"}}"
            )
        };
        assert_eq!(lift(&file(&packed)), (file(""), [Some(values), Some(Vec::new())]));
    }

    #[test]
    fn rows_that_cannot_be_decoded_are_passed_on_as_they_are() {
        let values = vec![0.1; 20_000];
        let packed = Packed(&values).to_string();
        let early = format!("!{packed}");
        let late = format!("{}!", packed);
        let escaped = format!("{}\\/{}", &packed[..100_000], &packed[100_001..]);
        for rows in [early, late, escaped, "AAAA".into(), "\\\"".into()] {
            let file = format!("{{\"reservoir\": \"{rows}\", \"validation\": 1}}");
            assert_eq!(lift(&file), (file, LiftedRows::default()));
        }
    }
}
