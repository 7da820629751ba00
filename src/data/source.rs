use super::block::Block;
use super::column_names::ColumnNames;
use super::error::DataError;

/// A source of rows, which are read a block at a time.
pub trait RowSource: Send {
    /// The columns of each row.
    fn columns(&self) -> &ColumnNames;

    /// Replaces the rows in `block` by the next ones, at most `most`. Returns false, and an empty block, at the end.
    ///
    /// # Panics
    /// If the block has another number of columns than the source, or `most` is zero.
    fn read_block(&mut self, block: &mut Block, most: usize) -> Result<bool, DataError>;
}
