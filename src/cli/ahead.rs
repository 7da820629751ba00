//! Reading on a thread of its own, a few blocks ahead of the learner, so that parsing costs nothing where learning
//! takes longer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::rows::Rows;
use crate::data::{Block, DataError};

/// Rows in a block: enough that shards learned in parallel seldom wait for each other.
const BLOCK_ROWS: usize = 4096;
/// Numbers in a block, unless a row alone has more, so that the memory of a fit is bounded: 1 MiB.
const BLOCK_NUMBERS: usize = 1 << 17;
/// Numbers of narrow tables that are read before the learner asks for them: a good part of the rows, so that reading goes
/// on while the start is fitted. Of wide tables, which take longer to learn than to read, two blocks are enough.
const NUMBERS_AHEAD: usize = 1 << 19;

/// Rows that are being read.
pub(super) struct Ahead {
    blocks: Receiver<Result<Block, DataError>>,
    spare: Sender<Block>,
    reader: JoinHandle<(Rows, Duration)>,
    bytes: Arc<AtomicU64>,
}

/// What comes next.
pub(super) enum Next {
    Rows(Block),
    /// No more rows.
    End,
    /// The flag was raised while there was nothing to do but wait.
    Interrupted,
}

impl Ahead {
    /// Begins to read, `most` rows at a time or fewer: where something is due every so many rows, a slow stream must
    /// not keep them waiting in a block.
    pub fn start(mut rows: Rows, most: u64) -> Self {
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
                // Nobody listens any more if the learner has stopped.
                if full.send(message).is_err() || last {
                    break;
                }
            }
            (rows, reading)
        });
        Ahead { blocks, spare, reader, bytes }
    }

    /// The next block, waiting for it if need be.
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

    /// Gives a block back, so that its memory is used again.
    pub fn give_back(&self, block: Block) {
        // The reader may have ended already.
        let _ = self.spare.send(block);
    }

    /// Bytes read so far, before decompression.
    pub fn bytes_read(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Once there are no more rows: what was read from, and the time it took.
    pub fn finish(self) -> (Rows, Duration) {
        self.reader.join().expect("the reader does not panic")
    }
}
