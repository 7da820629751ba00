//! Reading on a thread of its own, a few blocks ahead of the learner: parsing takes no time where learning takes longer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::block::Block;
use super::error::DataError;
use super::row_reader::RowReader;

/// Rows in a block: enough that shards learned in parallel seldom wait for each other.
const BLOCK_ROWS: usize = 4096;
/// Numbers in a block, unless a row alone has more, so that the memory of a fit is bounded: 1 MiB.
const BLOCK_NUMBERS: usize = 1 << 17;
/// Numbers of narrow tables that are read before the learner asks for them: a good part of the rows, so that reading
/// continues while the start is fitted. Of wide tables, which take longer to learn than to read, two blocks are enough.
const NUMBERS_AHEAD: usize = 1 << 19;

/// Rows that a thread of its own reads a few blocks ahead.
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use gmm_bmm::data::{Input, Next, Prefetch, ReadOptions};
///
/// let rows = ReadOptions::default().open_inputs(vec![Input::from_bytes("text", "1,2\n3,4\n")])?;
/// let prefetch = Prefetch::start(rows, u64::MAX);
/// let interrupted = AtomicBool::new(false);
/// let mut rows_read = 0;
/// while let Next::Rows(block) = prefetch.next(&interrupted)? {
///     rows_read += block.rows();
///     prefetch.give_back(block);
/// }
/// let (rows, _reading_time) = prefetch.finish();
/// assert_eq!((rows_read, rows.rows_skipped()), (2, 0));
/// # Ok::<(), gmm_bmm::data::DataError>(())
/// ```
pub struct Prefetch {
    blocks: Receiver<Result<Block, DataError>>,
    spare: Sender<Block>,
    reader: JoinHandle<(RowReader, Duration)>,
    bytes: Arc<AtomicU64>,
}

/// What a [`Prefetch`] gives next.
pub enum Next {
    /// A block of rows.
    Rows(Block),
    /// No more rows.
    End,
    /// The flag was raised while no rows were ready.
    Interrupted,
}

impl Prefetch {
    /// Starts to read, at most `most` rows at a time. If something is due after a number of rows, `most` should be no more:
    /// rows of a slow stream would wait until their block is full.
    pub fn start(mut rows: RowReader, most: u64) -> Self {
        let columns = rows.columns().len();
        let largest = (BLOCK_NUMBERS / columns).clamp(1, BLOCK_ROWS);
        let most = most.clamp(1, largest as u64) as usize;
        let bytes = rows.byte_counter();
        let is_wide = largest < BLOCK_ROWS;
        let ahead = if is_wide { 2 } else { NUMBERS_AHEAD / (largest * columns) };
        let (full, blocks) = sync_channel(ahead);
        let (spare, empty) = channel();
        let reader = std::thread::spawn(move || {
            let mut reading = Duration::ZERO;
            loop {
                let mut block = empty.try_recv().unwrap_or_else(|_| Block::with_capacity(columns, most));
                let started = Instant::now();
                let read = rows.read_block(&mut block, most);
                reading += started.elapsed();
                let (message, last) = match read {
                    Ok(true) => (Ok(block), false),
                    Ok(false) => break,
                    Err(error) => (Err(error), true),
                };
                // Sending fails if the learner has stopped.
                if full.send(message).is_err() || last {
                    break;
                }
            }
            (rows, reading)
        });
        Prefetch { blocks, spare, reader, bytes }
    }

    /// Waits for the next block.
    pub fn next(&self, interrupted: &AtomicBool) -> Result<Next, DataError> {
        loop {
            match self.blocks.recv_timeout(Duration::from_millis(100)) {
                Ok(block) => return block.map(Next::Rows),
                Err(RecvTimeoutError::Disconnected) => return Ok(Next::End),
                Err(RecvTimeoutError::Timeout) if interrupted.load(Ordering::Relaxed) => {
                    return Ok(Next::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Returns a block, so that its memory is used again.
    pub fn give_back(&self, block: Block) {
        // The reader may have ended already.
        let _ = self.spare.send(block);
    }

    /// Bytes read so far, before decompression.
    pub fn bytes_read(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Waits until the reader ends, which it does after the last row. Returns what was read from, and the time that reading
    /// took.
    pub fn finish(self) -> (RowReader, Duration) {
        // Otherwise a reader that waits for room would never end.
        drop(self.blocks);
        self.reader.join().expect("the reader does not panic")
    }
}
