//! Plain lines that several threads read at once: each reads a part of the text.
//!
//! The parts begin and end where lines do. Their rows are given out in order, and only up to the first line that is not plain:
//! a quoted cell may contain line ends, so what follows is unknown until the csv crate has read that line. Rows, errors and
//! line numbers are therefore those of one thread. The clock only decides how many threads read.

use std::sync::OnceLock;
use std::time::Duration;

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::plain::{PlainLines, Taken};
use crate::data::block::Block;

/// The shortest part. One thread reads it in about the time that it takes to wake another one several times, and more than a
/// pipe gives at once.
pub(in crate::data) const PART_BYTES: usize = 64 * 1024;

/// After a line that is not plain, one thread reads the next text, of the length of this many parts of the smallest size.
const CAUTION: usize = 16;

/// One thread reads at most this many parts of the smallest size before several threads try again where they were slower.
const MOST_PATIENCE: usize = 1024;

/// Rows of plain lines that were read before they are asked for.
pub(super) struct Parts {
    /// The shortest part that a thread reads, in bytes.
    shortest: usize,
    /// The rows of the parts, in order, in memory that is used again.
    parts: Vec<Part>,
    /// The next row that is given out: its part, and its place there.
    next: (usize, usize),
    /// Bytes of plain lines that one thread reads before several threads try again. After a line that is not plain, the parts
    /// behind it are read a second time. This bounds that work by the work of one thread. The same if several threads were
    /// slower than one.
    cautious: usize,
    /// Seconds for each byte that one thread took last.
    pace_of_one: f64,
    /// What `cautious` becomes when several threads are slower than one.
    patience: usize,
}

#[derive(Default)]
struct Part {
    rows: Option<Block>,
    taken: Taken,
}

impl Parts {
    pub(super) fn new(shortest: usize) -> Parts {
        let shortest = shortest.max(1);
        Parts {
            shortest,
            parts: Vec::new(),
            next: (0, 0),
            cautious: 0,
            pace_of_one: f64::INFINITY,
            patience: CAUTION * shortest,
        }
    }

    /// In how many parts a text of whole lines should be read: one for each thread of the current pool, but none too short.
    pub(super) fn count(&self, bytes: usize) -> usize {
        let most = bytes / self.shortest;
        if most < 2 || self.cautious > 0 { 1 } else { most.min(rayon::current_num_threads()) }
    }

    /// Records how many bytes of plain lines were read, and whether a line that is not plain follows.
    pub(super) fn note(&mut self, bytes: usize, stopped: bool) {
        self.cautious = if stopped { CAUTION * self.shortest } else { self.cautious.saturating_sub(bytes) };
    }

    /// Records how long the last lines took, read by several threads or by one. Where the processors are busy, or share a core,
    /// several threads may be slower than one. Then one thread reads on, for longer each time. The rows are the same.
    pub(super) fn note_time(&mut self, bytes: usize, took: Duration, several: bool) {
        // Less is too short to tell.
        if bytes < PART_BYTES {
            return;
        }
        let pace = took.as_secs_f64() / bytes as f64;
        if !several {
            self.pace_of_one = pace;
        } else if pace > self.pace_of_one {
            self.cautious = self.cautious.max(self.patience);
            self.patience = (2 * self.patience).min(MOST_PATIENCE * self.shortest);
        } else {
            self.patience = CAUTION * self.shortest;
        }
    }

    /// Whether no row is left.
    pub(super) fn is_empty(&self) -> bool {
        self.next.0 == self.parts.len()
    }

    /// Reads the first plain lines of a text in parts, into rows of `columns` numbers. Returns their length in bytes.
    ///
    /// May only be called if no row is left. The text must be whole lines.
    pub(super) fn read(&mut self, lines: &PlainLines, text: &[u8], columns: usize, count: usize) -> usize {
        let texts = cut(text, count);
        self.parts.resize_with(texts.len(), Part::default);
        let read = |(part, text): (&mut Part, &[u8])| {
            let block = part.rows.get_or_insert_with(|| Block::new(columns));
            block.clear();
            part.taken = lines.read(text, block, usize::MAX);
        };
        let mut jobs = self.parts.iter_mut().zip(texts.iter().copied());
        match pool() {
            Some(pool) => pool.in_place_scope(|scope| {
                let own = jobs.next();
                jobs.for_each(|job| scope.spawn(move |_| read(job)));
                own.map(read);
            }),
            None => jobs.for_each(read),
        }
        let plain =
            self.parts.iter().zip(&texts).take_while(|(part, text)| part.taken.bytes == text.len()).count();
        // Of the first part that is not plain, the beginning is used.
        self.parts.truncate(plain + 1);
        self.next = (0, 0);
        let bytes = self.parts.iter().map(|part| part.taken.bytes).sum();
        self.note(bytes, bytes < text.len());
        self.skip_empty();
        bytes
    }

    /// Appends the next rows, at most `most`, and returns whether a value is missing in their parts.
    pub(super) fn give(&mut self, block: &mut Block, most: usize) -> bool {
        let mut left = most;
        let mut met_gap = false;
        while left > 0 && !self.is_empty() {
            let (part, begin) = self.next;
            let Part { rows: Some(rows), taken } = &self.parts[part] else { break };
            let end = rows.rows().min(begin + left);
            block.extend_from(rows, begin..end);
            met_gap |= taken.met_gap;
            left -= end - begin;
            self.next.1 = end;
            self.skip_empty();
        }
        met_gap
    }

    /// Moves on to a part with rows.
    fn skip_empty(&mut self) {
        let (part, row) = &mut self.next;
        while self
            .parts
            .get(*part)
            .is_some_and(|part| part.rows.as_ref().is_none_or(|rows| rows.rows() == *row))
        {
            (*part, *row) = (*part + 1, 0);
        }
    }
}

/// Cuts a text of whole lines into at most `count` parts of whole lines and about equal length.
fn cut(mut text: &[u8], count: usize) -> Vec<&[u8]> {
    let mut parts = Vec::with_capacity(count);
    for left in (1..=count).rev() {
        let about = text.len() / left;
        let end = match text[about..].iter().position(|&byte| byte == b'\n') {
            Some(line_end) if left > 1 => about + line_end + 1,
            _ => text.len(),
        };
        let (part, rest) = text.split_at(end);
        if !part.is_empty() {
            parts.push(part);
        }
        text = rest;
    }
    parts
}

/// The threads that read parts, besides the one that asks. They are not those of the current pool: all of these may be waiting
/// for rows. `None` if they cannot be started.
fn pool() -> Option<&'static ThreadPool> {
    static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
    let start = || {
        let threads = rayon::current_num_threads().saturating_sub(1).max(1);
        ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("read-{i}")).build().ok()
    };
    POOL.get_or_init(start).as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_line_ends() {
        let text = b"1\n22\n333\n4444\n";
        for count in 1..20 {
            let parts = cut(text, count);
            assert!(parts.len() <= count && parts.iter().all(|part| part.ends_with(b"\n")), "{parts:?}");
            assert_eq!(parts.concat(), text);
        }
        assert_eq!(cut(text, 2), [&b"1\n22\n333\n"[..], b"4444\n"]);
        assert!(cut(b"", 3).is_empty());
    }

    #[test]
    fn rows_are_given_up_to_the_first_line_that_is_not_plain() {
        let lines = PlainLines::new(b',', 1, &[0]).unwrap();
        let mut parts = Parts::new(1);
        for (text, rows, bytes) in [
            ("1\n2\n3\n4\n5\n6\n", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0][..], 12),
            ("1\n2\n3\nx\n5\n6\n", &[1.0, 2.0, 3.0], 6),
            ("x\n2\n3\n4\n5\n6\n", &[], 0),
            ("1\n2\n\"3\n4\n5\"\n6\n", &[1.0, 2.0], 4),
        ] {
            for count in 2..8 {
                assert_eq!(parts.read(&lines, text.as_bytes(), 1, count), bytes, "{text} in {count}");
                assert_eq!(parts.is_empty(), rows.is_empty());
                let mut block = Block::new(1);
                while !parts.is_empty() {
                    let before = block.rows();
                    assert!(!parts.give(&mut block, 2));
                    assert!((1..=2).contains(&(block.rows() - before)));
                }
                assert_eq!(block.values(), rows, "{text} in {count}");
            }
        }
    }

    #[test]
    fn one_thread_reads_on_after_a_line_that_is_not_plain() {
        let pool = ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        pool.install(|| {
            let mut parts = Parts::new(10);
            assert_eq!([parts.count(19), parts.count(20), parts.count(1000)], [1, 2, 3]);
            parts.note(50, true);
            assert_eq!(parts.count(1000), 1);
            parts.note(150, false);
            assert_eq!(parts.count(1000), 1);
            parts.note(10, false);
            assert_eq!(parts.count(1000), 3);
        });
    }

    #[test]
    fn one_thread_reads_on_where_several_are_slower() {
        let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        pool.install(|| {
            let mut parts = Parts::new(10);
            let milliseconds = Duration::from_millis;
            parts.note_time(PART_BYTES, milliseconds(100), false);
            parts.note_time(PART_BYTES, milliseconds(90), true);
            assert_eq!(parts.count(1000), 2, "faster");
            parts.note_time(PART_BYTES - 1, milliseconds(110), true);
            assert_eq!(parts.count(1000), 2, "too short to tell");
            for patience in [160, 320, 640] {
                parts.note_time(PART_BYTES, milliseconds(110), true);
                parts.note(patience - 1, false);
                assert_eq!(parts.count(1000), 1);
                parts.note(1, false);
                assert_eq!(parts.count(1000), 2);
            }
            parts.note_time(PART_BYTES, milliseconds(90), true);
            parts.note_time(PART_BYTES, milliseconds(110), true);
            parts.note(160, false);
            assert_eq!(parts.count(1000), 2, "patience is short again");
        });
    }
}
