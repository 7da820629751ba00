//! The fast path for plain lines: cells without quotes, the right number of them, and numbers in the chosen columns, or missing
//! values where they are accepted. The csv crate reads all other lines, so the fast path never decides differently.

use super::cell::{is_missing, parse_number};
use super::number::any_number;
#[cfg(target_arch = "x86_64")]
use super::simd_number;
use crate::data::block::Block;

/// The position of a field that is not read: outside of every row.
const NOWHERE: usize = usize::MAX;
/// Numbers that a block grows by: to grow by one short row takes as long as to read a number.
const NUMBERS_AT_A_TIME: usize = 512;

/// Reads plain lines of one table.
pub(super) struct PlainLines {
    delimiter: u8,
    fields: Vec<PlainField>,
    /// Whether lines with missing values are plain.
    takes_gaps: bool,
}

/// What [`PlainLines::read`] has read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PlainRead {
    /// The length of the lines in bytes.
    pub(super) bytes: usize,
    /// Whether a value is missing in them.
    pub(super) met_gap: bool,
}

/// A field of each line.
#[derive(Clone, Copy)]
struct PlainField {
    /// The position in the row, or [`NOWHERE`] if the field is not read.
    place: usize,
    /// The byte after it.
    end: u8,
}

/// The number that begins at a place of a text, and its length in bytes, if the byte after it is the last argument. `None` if it
/// has an unusual form.
trait Usual: Fn(&[u8], usize, u8) -> Option<(f64, usize)> {}

impl<F: Fn(&[u8], usize, u8) -> Option<(f64, usize)>> Usual for F {}

impl PlainLines {
    /// Lines of `width` fields, of which those at `positions` make a row; `None` if a position occurs twice.
    pub(super) fn new(delimiter: u8, width: usize, positions: &[usize]) -> Option<PlainLines> {
        let mut fields = vec![PlainField { place: NOWHERE, end: delimiter }; width];
        fields.last_mut()?.end = b'\n';
        for (place, &position) in positions.iter().enumerate() {
            if std::mem::replace(&mut fields.get_mut(position)?.place, place) != NOWHERE {
                return None;
            }
        }
        Some(PlainLines { delimiter, fields, takes_gaps: false })
    }

    /// Reads missing values as NaN from now on. An empty line of one field is no row, so the csv crate still reads those.
    pub(super) fn take_gaps(&mut self) {
        self.takes_gaps = self.fields.len() > 1;
    }

    /// Appends the rows of the first plain lines in `text`, at most `most`.
    ///
    /// The text must be whole lines.
    pub(super) fn read(&self, text: &[u8], block: &mut Block, most: usize) -> PlainRead {
        #[cfg(target_arch = "x86_64")]
        if simd_number::is_available() {
            // SAFETY: the machine has the instructions that the function was compiled for.
            #[allow(unsafe_code)]
            return unsafe { self.read_simd(text, block, most) };
        }
        self.read_portably(text, block, most)
    }

    /// [`read`](PlainLines::read) on any machine.
    fn read_portably(&self, text: &[u8], block: &mut Block, most: usize) -> PlainRead {
        self.read_lines(text, block, most, |text, at, end| any_number(&text[at..], end))
    }

    /// [`read`](PlainLines::read) on machines with vector instructions.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    fn read_simd(&self, text: &[u8], block: &mut Block, most: usize) -> PlainRead {
        self.read_lines(text, block, most, simd_number::simd_number)
    }

    /// [`read`](PlainLines::read), with a function for numbers in the usual forms.
    #[inline(always)]
    fn read_lines(&self, text: &[u8], block: &mut Block, most: usize, usual: impl Usual) -> PlainRead {
        let mut taken = PlainRead::default();
        let at_a_time = (NUMBERS_AT_A_TIME / block.columns()).max(1);
        let end = block.rows().saturating_add(most);
        while block.rows() < end {
            let rows = block.rows();
            for (i, row) in block.grow_by(at_a_time.min(end - rows)).enumerate() {
                match self.read_line(text, taken.bytes, row, &mut taken.met_gap, &usual) {
                    Some(line_end) => taken.bytes = line_end,
                    None => {
                        block.truncate(rows + i);
                        return taken;
                    }
                }
            }
        }
        taken
    }

    /// Reads the line that begins `at` bytes after the beginning of `text` and returns where it ends; `None` if it is not plain.
    #[inline(always)]
    fn read_line(
        &self,
        text: &[u8],
        mut at: usize,
        row: &mut [f64],
        met_gap: &mut bool,
        usual: &impl Usual,
    ) -> Option<usize> {
        let mut gap = false;
        for field in &self.fields {
            at += 1 + match row.get_mut(field.place) {
                None => self.cell(&text[at..], field.end)?.len(),
                Some(number) => {
                    let (value, length) = match usual(text, at, field.end) {
                        Some(usual) => usual,
                        None => self.unusual(&text[at..], field.end, &mut gap)?,
                    };
                    *number = value;
                    length
                }
            };
        }
        *met_gap |= gap;
        Some(at)
    }

    /// The value of the cell that `text` begins with, and its length in bytes, if the byte after it is `end`. The number has
    /// blanks around it or an unusual form, or it is NaN for a missing value that is accepted.
    #[inline(never)]
    fn unusual(&self, text: &[u8], end: u8, met_gap: &mut bool) -> Option<(f64, usize)> {
        if let Some(number) = any_number(text, end) {
            return Some(number);
        }
        let cell = self.cell(text, end)?;
        let number = parse_number(cell).or_else(|| {
            let is_gap = self.takes_gaps && is_missing(cell);
            *met_gap |= is_gap;
            is_gap.then_some(f64::NAN)
        });
        Some((number?, cell.len()))
    }

    /// The cell that `text` begins with; `None` if there is a quote in it or the byte after it is not `end`.
    fn cell<'a>(&self, text: &'a [u8], end: u8) -> Option<&'a [u8]> {
        let length = text.iter().position(|&byte| byte == self.delimiter || byte == b'\n' || byte == b'"')?;
        (text[length] == end).then(|| &text[..length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a text by the instructions of this machine and by those of any machine.
    fn read(text: &str, width: usize, positions: &[usize], most: usize) -> (Vec<f64>, usize) {
        let lines = PlainLines::new(b',', width, positions).unwrap();
        let [mut block, mut portable] = [(); 2].map(|()| Block::new(positions.len()));
        let taken = lines.read(text.as_bytes(), &mut block, most);
        assert_eq!(lines.read_portably(text.as_bytes(), &mut portable, most), taken);
        assert_eq!(block, portable);
        (block.values().to_vec(), taken.bytes)
    }

    #[test]
    fn a_text_of_many_lines_is_read_to_the_last_bit() {
        let number =
            |i: u32| f64::from(i % 7 + 1).sqrt() * 10f64.powi((i % 9) as i32 - 4) * (f64::from(i % 3) - 1.0);
        let rows: Vec<[f64; 3]> = (0..200).map(|i| [number(i), f64::from(i), number(i + 5)]).collect();
        let text: String = rows.iter().map(|[a, b, c]| format!("{a},{b},{c:e}\n")).collect();
        assert_eq!(read(&text, 3, &[0, 1, 2], usize::MAX), (rows.concat(), text.len()));
    }

    #[test]
    fn chosen_cells_become_rows_in_the_order_chosen() {
        assert_eq!(read("M,1.5,x,2\nF, 3 ,,+4\n", 4, &[3, 1], 9), (vec![2.0, 1.5, 4.0, 3.0], 20));
        assert_eq!(read("1\n2\n3\n", 1, &[0], 2), (vec![1.0, 2.0], 4));
        assert_eq!(read("", 1, &[0], 2), (vec![], 0));
    }

    #[test]
    fn missing_values_are_nan_where_they_are_accepted() {
        let mut block = Block::new(2);
        let mut lines = PlainLines::new(b',', 2, &[0, 1]).unwrap();
        lines.take_gaps();
        let text = b"1,2\n";
        assert_eq!(lines.read(text, &mut block, 9), PlainRead { bytes: 4, met_gap: false });
        let text = b",3\n NA ,nan\n4,inf\n";
        assert_eq!(lines.read(text, &mut block, 9), PlainRead { bytes: 12, met_gap: true });
        let bits: Vec<u64> = block.values().iter().map(|value| value.to_bits()).collect();
        assert_eq!(bits, [1.0, 2.0, f64::NAN, 3.0, f64::NAN, f64::NAN].map(f64::to_bits));
        let mut one = PlainLines::new(b',', 1, &[0]).unwrap();
        one.take_gaps();
        assert_eq!(one.read(b"\n1\n", &mut Block::new(1), 9).bytes, 0, "a blank line is no row");
    }

    #[test]
    fn reading_stops_before_a_line_that_is_not_plain() {
        for odd in "\n| \n|1\n|1,2,3\n|1,\n|,1\n|1,x\n|1,nan\n|\"1\",2\n|1,2\"\n|1,1e999\n".split('|') {
            assert_eq!(read(&format!("7,8\n{odd}9,10\n"), 2, &[0, 1], 9), (vec![7.0, 8.0], 4), "{odd:?}");
        }
        assert_eq!(read("7,8\n\"a\nb\",8\n", 2, &[1], 9), (vec![8.0], 4));
    }
}
