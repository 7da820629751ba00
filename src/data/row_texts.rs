use std::io::Write;
use std::ops::Range;

/// The texts of rows, to write the rows again with their missing values filled in. All other cells keep their text, with quotes
/// and blanks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowTexts {
    delimiter: u8,
    /// The cells that make a row of numbers.
    positions: Vec<usize>,
    /// The rows, one after the other.
    bytes: Vec<u8>,
    /// Where each row ends.
    ends: Vec<usize>,
}

impl RowTexts {
    pub(super) fn new(delimiter: u8, positions: Vec<usize>) -> RowTexts {
        RowTexts { delimiter, positions, bytes: Vec::new(), ends: Vec::new() }
    }

    /// Adds a row, unless its text is not kept.
    pub(super) fn push(&mut self, text: &[u8]) {
        if !text.is_empty() {
            self.bytes.extend_from_slice(text);
            self.ends.push(self.bytes.len());
        }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// How many texts there are.
    pub fn rows(&self) -> usize {
        self.ends.len()
    }

    /// The byte between cells.
    pub fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// Row `i` as it was read, without a line end.
    pub fn row(&self, i: usize) -> &[u8] {
        let begin = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.bytes[begin..self.ends[i]]
    }

    /// Appends row `i` to `out`, without a line end. The cells that are NaN in `read` are written with the values in
    /// `filled`, with the fewest digits that give them back exactly.
    pub fn write_filled(&self, i: usize, read: &[f64], filled: &[f64], out: &mut Vec<u8>) {
        let text = self.row(i);
        if read.iter().all(|value| !value.is_nan()) {
            out.extend_from_slice(text);
            return;
        }
        for (position, cell) in cells(text, self.delimiter).into_iter().enumerate() {
            if position > 0 {
                out.push(self.delimiter);
            }
            let place = self.positions.iter().position(|&chosen| chosen == position);
            match place.filter(|&place| read[place].is_nan()) {
                Some(place) => write!(out, "{}", filled[place]).expect("writing to memory does not fail"),
                None => out.extend_from_slice(&text[cell]),
            }
        }
    }
}

/// The cells of a record, with their quotes, as the csv crate splits it.
fn cells(record: &[u8], delimiter: u8) -> Vec<Range<usize>> {
    enum CellState {
        Begin,
        Plain,
        Quoted,
        /// After a quote inside quotes: it ends them unless another quote follows.
        AfterQuote,
    }
    use CellState::*;
    let (mut cells, mut begin, mut state) = (Vec::new(), 0, Begin);
    for (at, &byte) in record.iter().enumerate() {
        state = match (state, byte) {
            (Begin, b'"') => Quoted,
            (Quoted, b'"') => AfterQuote,
            (Quoted, _) | (AfterQuote, b'"') => Quoted,
            (_, byte) if byte == delimiter => {
                cells.push(begin..at);
                begin = at + 1;
                Begin
            }
            _ => Plain,
        };
    }
    cells.push(begin..record.len());
    cells
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    proptest! {
        #[test]
        fn records_are_split_as_the_csv_crate_does(text in vec(select(b"a1\",\" \t".to_vec()), 1..40)) {
            let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_slice());
            let mut record = csv::ByteRecord::new();
            prop_assume!(reader.read_byte_record(&mut record).unwrap());
            let found = cells(&text, b',');
            prop_assert_eq!(found.len(), record.len());
            for (range, cell) in found.into_iter().zip(record.iter()) {
                let quotes = text[range.clone()].iter().filter(|&&byte| byte == b'"').count();
                if quotes == 0 {
                    prop_assert_eq!(&text[range], cell);
                } else {
                    let without = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte != b'"').copied().collect::<Vec<_>>();
                    prop_assert_eq!(without(&text[range]), without(cell));
                }
            }
        }
    }
}
