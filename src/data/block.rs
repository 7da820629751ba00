use ndarray::{Array2, ArrayView2};

/// Consecutive rows of a data set, in one allocation that is reused for the next rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    columns: usize,
    values: Vec<f64>,
    /// Where rows were skipped: the row that follows them, and how many were skipped up to there.
    skipped: Vec<(usize, u64)>,
    /// The weight of each row; empty if rows have none.
    weights: Vec<f64>,
}

impl Block {
    /// An empty block for rows of `columns` numbers.
    ///
    /// # Panics
    /// If `columns` is zero.
    pub fn new(columns: usize) -> Self {
        assert!(columns > 0, "a block needs at least one column");
        Block { columns, values: Vec::new(), skipped: Vec::new(), weights: Vec::new() }
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

    /// The number of row `i` among all rows that were read for the block, counted from 1 and including skipped ones.
    pub fn place(&self, i: usize) -> u64 {
        let before = self.skipped.partition_point(|&(row, _)| row <= i).checked_sub(1);
        i as u64 + 1 + before.map_or(0, |last| self.skipped[last].1)
    }

    /// Counts a row that was skipped before the next row.
    #[cfg(feature = "csv")]
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

    /// Removes all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.values.clear();
        self.skipped.clear();
        self.weights.clear();
    }

    /// Appends one row.
    ///
    /// # Panics
    /// If `row` has another number of columns.
    pub fn push(&mut self, row: &[f64]) {
        assert_eq!(row.len(), self.columns, "a row must have the block's columns");
        self.values.extend_from_slice(row);
    }

    /// Appends a row of zeros and returns it.
    #[cfg(feature = "csv")]
    pub(super) fn grow(&mut self) -> &mut [f64] {
        let begin = self.values.len();
        self.values.resize(begin + self.columns, 0.0);
        &mut self.values[begin..]
    }

    /// All numbers, row after row.
    #[cfg(feature = "cli")]
    pub(crate) fn values_mut(&mut self) -> &mut [f64] {
        &mut self.values
    }

    /// The numbers of the rows from `row` on.
    #[cfg(feature = "csv")]
    pub(super) fn rows_from(&mut self, row: usize) -> &mut [f64] {
        &mut self.values[row * self.columns..]
    }

    /// Appends rows of zeros and returns them.
    #[cfg(feature = "csv")]
    pub(super) fn grow_by(&mut self, rows: usize) -> std::slice::ChunksExactMut<'_, f64> {
        let begin = self.values.len();
        self.values.resize(begin + rows * self.columns, 0.0);
        self.values[begin..].chunks_exact_mut(self.columns)
    }

    /// Appends rows of a block with the same columns.
    #[cfg(feature = "csv")]
    pub(super) fn extend_from(&mut self, other: &Block, rows: std::ops::Range<usize>) {
        self.values.extend_from_slice(&other.values[rows.start * self.columns..rows.end * self.columns]);
        self.weights.extend_from_slice(other.weights_of(rows).unwrap_or_default());
    }

    /// The weight of each row, if rows have weights.
    pub fn weights(&self) -> Option<&[f64]> {
        Some(self.weights.as_slice()).filter(|weights| !weights.is_empty())
    }

    /// The weights of some rows, if rows have weights.
    pub fn weights_of(&self, rows: std::ops::Range<usize>) -> Option<&[f64]> {
        self.weights().map(|weights| &weights[rows])
    }

    /// Replaces the rows by those of a block whose last column is the weight.
    #[cfg(feature = "csv")]
    pub(super) fn take_weighted(&mut self, rows: &Block) {
        self.clear();
        self.skipped.extend_from_slice(&rows.skipped);
        for row in rows.iter() {
            let (weight, row) = row.split_last().expect("a block has columns");
            self.push(row);
            self.weights.push(*weight);
        }
    }

    /// Keeps the first `rows` rows only.
    pub fn truncate(&mut self, rows: usize) {
        self.values.truncate(rows * self.columns);
        self.weights.truncate(rows);
    }

    /// The rows as an array that takes over their memory.
    pub fn into_array(self) -> Array2<f64> {
        Array2::from_shape_vec((self.rows(), self.columns), self.values).expect("a block holds whole rows")
    }

    /// The rows as a matrix.
    pub fn view(&self) -> ArrayView2<'_, f64> {
        ArrayView2::from_shape((self.rows(), self.columns), &self.values).expect("a block holds whole rows")
    }
}
