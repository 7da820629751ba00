use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::block::Block;
use super::error::DataError;

/// Rows read from the source at a time. The order of the rows does not depend on it.
const INTAKE: usize = 1024;

/// Replaces the rows in a block by the next ones, at most as many as asked for. Returns false at the end.
pub(super) trait ReadBlock: FnMut(&mut Block, usize) -> Result<bool, DataError> {}

impl<F: FnMut(&mut Block, usize) -> Result<bool, DataError>> ReadBlock for F {}

/// Shuffles a stream in bounded memory.
///
/// The first rows fill the buffer. Each further row replaces a random one, which is given out. At the end the rest is given
/// out in random order. A buffer that holds all rows gives a full shuffle. The order depends on the seed, not on
/// the sizes of blocks.
pub(super) struct ShuffleBuffer {
    slots: usize,
    rng: ChaCha8Rng,
    held: Vec<f64>,
    intake: Block,
    taken: usize,
    source_ended: bool,
}

impl ShuffleBuffer {
    /// A buffer of `slots` rows of `columns` numbers. One slot leaves the order as it is.
    ///
    /// # Panics
    /// If there are no slots.
    pub(super) fn new(columns: usize, slots: usize, seed: u64) -> Self {
        assert!(slots > 0, "a shuffle buffer needs at least one slot");
        let intake = Block::new(columns);
        let rng = ChaCha8Rng::seed_from_u64(seed);
        ShuffleBuffer { slots, rng, held: Vec::new(), intake, taken: 0, source_ended: false }
    }

    fn rows_held(&self) -> usize {
        self.held.len() / self.intake.columns()
    }

    /// Makes sure that there is a row to take, unless the source is at its end.
    fn refill(&mut self, read: &mut impl ReadBlock) -> Result<(), DataError> {
        if self.taken == self.intake.rows() && !self.source_ended {
            self.taken = 0;
            // Also the end if this fails: rows after a gap are not the data.
            self.source_ended = true;
            self.source_ended = !read(&mut self.intake, INTAKE)?;
        }
        Ok(())
    }

    /// Replaces the rows in `block` by the next ones in the shuffled order, at most `most`. `read` reads rows in their order.
    /// Returns false, and an empty block, at the end.
    pub(super) fn read_block(
        &mut self,
        block: &mut Block,
        most: usize,
        mut read: impl ReadBlock,
    ) -> Result<bool, DataError> {
        assert!(most > 0, "a block of no rows would look like the end of the source");
        block.clear();
        let width = self.intake.columns();
        while block.rows() < most {
            self.refill(&mut read)?;
            let held = self.rows_held();
            if self.taken < self.intake.rows() {
                let incoming = self.intake.row(self.taken);
                self.taken += 1;
                if held < self.slots {
                    self.held.extend_from_slice(incoming);
                } else {
                    let slot = self.rng.random_range(0..held) * width;
                    let place = &mut self.held[slot..slot + width];
                    block.push(place);
                    place.copy_from_slice(incoming);
                }
            } else if held > 0 {
                let slot = self.rng.random_range(0..held) * width;
                block.push(&self.held[slot..slot + width]);
                let last = self.held.len() - width;
                self.held.copy_within(last.., slot);
                self.held.truncate(last);
            } else {
                break;
            }
        }
        Ok(!block.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of a number, counted up from 0, and its negative. Returns the numbers.
    fn shuffled(rows: usize, slots: usize, seed: u64, block_rows: usize) -> Vec<f64> {
        let mut numbers = 0..rows;
        let mut read = |block: &mut Block, most: usize| {
            block.clear();
            numbers.by_ref().take(most).for_each(|i| block.push(&[i as f64, -(i as f64)]));
            Ok(!block.is_empty())
        };
        let mut buffer = ShuffleBuffer::new(2, slots, seed);
        let mut block = Block::new(2);
        let mut firsts = Vec::new();
        while buffer.read_block(&mut block, block_rows, &mut read).unwrap() {
            assert!(block.rows() <= block_rows);
            for row in block.iter() {
                assert_eq!(row[1], -row[0], "rows stay whole");
                firsts.push(row[0]);
            }
        }
        firsts
    }

    fn in_order(rows: usize) -> Vec<f64> {
        (0..rows).map(|i| i as f64).collect()
    }

    #[test]
    fn every_row_comes_out_once_whatever_the_sizes() {
        for (rows, slots) in [(0, 5), (1, 5), (5, 5), (6, 5), (3000, 1), (3000, 100), (3000, 10_000)] {
            let mut out = shuffled(rows, slots, 1, 64);
            out.sort_by(f64::total_cmp);
            assert_eq!(out, in_order(rows), "{rows} rows, {slots} slots");
        }
    }

    #[test]
    fn the_order_depends_on_the_seed_and_not_on_the_block_size() {
        let reference = shuffled(3000, 200, 7, 1);
        for block_rows in [2, 7, 1000, 100_000] {
            assert_eq!(shuffled(3000, 200, 7, block_rows), reference, "blocks of {block_rows}");
        }
        assert_ne!(shuffled(3000, 200, 8, 7), reference);
        assert_ne!(reference, in_order(3000));
    }

    #[test]
    fn one_slot_leaves_the_order_as_it_is() {
        assert_eq!(shuffled(50, 1, 3, 7), in_order(50));
    }

    #[test]
    fn a_full_shuffle_puts_every_row_first_equally_often() {
        let mut first = [0u32; 6];
        for seed in 0..6000 {
            first[shuffled(6, 6, seed, 6)[0] as usize] += 1;
        }
        assert!(first.iter().all(|&times| (850..1150).contains(&times)), "{first:?}");
    }
}
