use super::block::Block;
use super::error::DataError;

/// Where rows come from, a block at a time.
pub trait RowSource: Send {
    /// The names of the columns.
    fn columns(&self) -> &[String];

    /// Replaces the rows in `block` by the next ones, `most` at most; false, and an empty block, at the end.
    ///
    /// # Panics
    /// If the block has another number of columns than the source, or `most` is zero.
    fn read_block(&mut self, block: &mut Block, most: usize) -> Result<bool, DataError>;
}

impl<S: RowSource + ?Sized> RowSource for Box<S> {
    fn columns(&self) -> &[String] {
        (**self).columns()
    }

    fn read_block(&mut self, block: &mut Block, most: usize) -> Result<bool, DataError> {
        (**self).read_block(block, most)
    }
}

/// Rows that are in memory already.
#[derive(Debug, Clone)]
pub struct MemoryRows {
    columns: Vec<String>,
    rows: Block,
    next: usize,
}

impl MemoryRows {
    /// The rows of a block, with a name for each column.
    ///
    /// # Panics
    /// If the block has another number of columns.
    pub fn new(columns: Vec<String>, rows: Block) -> MemoryRows {
        assert_eq!(columns.len(), rows.columns(), "every column needs a name");
        MemoryRows { columns, rows, next: 0 }
    }

    /// The rows of a block, its columns named `c1`, `c2` and so on.
    pub fn unnamed(rows: Block) -> MemoryRows {
        let columns = (1..=rows.columns()).map(|position| format!("c{position}")).collect();
        MemoryRows::new(columns, rows)
    }
}

impl RowSource for MemoryRows {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn read_block(&mut self, block: &mut Block, most: usize) -> Result<bool, DataError> {
        assert!(most > 0, "a block of no rows would look like the end of the source");
        block.clear();
        let end = self.rows.rows().min(self.next.saturating_add(most));
        for i in self.next..end {
            block.push(self.rows.row(i));
        }
        self.next = end;
        Ok(!block.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_in_memory_come_in_blocks_and_end() {
        let mut source: Box<dyn RowSource> =
            Box::new(MemoryRows::unnamed(Block::from_values(2, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])));
        assert_eq!(source.columns(), ["c1", "c2"]);
        let mut block = Block::new(2);
        assert!(source.read_block(&mut block, 2).unwrap());
        assert_eq!(block.values(), [1.0, 2.0, 3.0, 4.0]);
        assert!(source.read_block(&mut block, 2).unwrap());
        assert_eq!(block.values(), [5.0, 6.0]);
        assert!(!source.read_block(&mut block, 2).unwrap());
        assert!(block.is_empty());
    }
}
