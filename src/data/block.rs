use ndarray::{Array2, ArrayView2};

/// Some rows of a data set, row after row in one allocation that is reused from block to block.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    columns: usize,
    values: Vec<f64>,
    /// Where bad rows were skipped: the row before which, and how many so far.
    skipped: Vec<(usize, u64)>,
}

impl Block {
    /// An empty block for rows of `columns` numbers.
    ///
    /// # Panics
    /// If `columns` is zero.
    pub fn new(columns: usize) -> Self {
        Block::from_values(columns, Vec::new())
    }

    /// An empty block with room for `rows` rows of `columns` numbers.
    ///
    /// # Panics
    /// If `columns` is zero.
    pub fn with_capacity(columns: usize, rows: usize) -> Self {
        let mut block = Block::new(columns);
        block.values.reserve_exact(rows * columns);
        block
    }

    /// A block that owns `values`, row after row.
    ///
    /// # Panics
    /// If `columns` is zero, or `values` does not hold a whole number of rows.
    pub fn from_values(columns: usize, values: Vec<f64>) -> Self {
        assert!(columns > 0, "a block needs at least one column");
        assert!(values.len().is_multiple_of(columns), "values must be whole rows");
        Block { columns, values, skipped: Vec::new() }
    }

    /// How many numbers a row has.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// How many rows are in the block.
    pub fn rows(&self) -> usize {
        self.values.len() / self.columns
    }

    /// Whether the block has no rows.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Row `i`.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.columns..(i + 1) * self.columns]
    }

    /// Which of the rows that were read for the block is row `i`, counted from 1. Bad rows that were skipped count too.
    pub fn place(&self, i: usize) -> u64 {
        let before = self.skipped.partition_point(|&(row, _)| row <= i).checked_sub(1);
        i as u64 + 1 + before.map_or(0, |last| self.skipped[last].1)
    }

    /// Notes that a bad row was skipped.
    pub(super) fn skip_one(&mut self) {
        let next = self.rows();
        match self.skipped.last_mut() {
            Some((row, count)) if *row == next => *count += 1,
            last => {
                let count = last.map_or(0, |(_, count)| *count) + 1;
                self.skipped.push((next, count));
            }
        }
    }

    /// The rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.values.chunks_exact(self.columns)
    }

    /// All numbers, row after row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Forgets the rows, keeps the memory.
    pub fn clear(&mut self) {
        self.values.clear();
        self.skipped.clear();
    }

    /// Appends one row.
    ///
    /// # Panics
    /// If `row` has another number of columns.
    pub fn push(&mut self, row: &[f64]) {
        assert_eq!(row.len(), self.columns, "a row must have the block's columns");
        self.values.extend_from_slice(row);
    }

    /// Appends a row of zeros, to be written to.
    pub(super) fn grow(&mut self) -> &mut [f64] {
        let begin = self.values.len();
        self.values.resize(begin + self.columns, 0.0);
        &mut self.values[begin..]
    }

    /// Keeps the first `rows` rows only.
    pub fn truncate(&mut self, rows: usize) {
        self.values.truncate(rows * self.columns);
    }

    /// The rows as an array that takes over their memory.
    pub fn into_array(self) -> Array2<f64> {
        Array2::from_shape_vec((self.rows(), self.columns), self.values).expect("a block holds whole rows")
    }

    /// The rows as a matrix, one row each.
    pub fn view(&self) -> ArrayView2<'_, f64> {
        ArrayView2::from_shape((self.rows(), self.columns), &self.values).expect("a block holds whole rows")
    }
}
