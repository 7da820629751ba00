//! When the structure of a mixture is revised.

use serde::{Deserialize, Serialize};

use super::Size;
use super::history::Reason;

/// Rows that are judged together for novelty.
pub(in crate::learn) const BATCH: u64 = 250;
/// Share of a batch that has to have a low density, beyond what is usual.
const NOVEL: f64 = 0.2;
/// How fast the usual share follows the batches.
const FOLLOW: f64 = 0.05;
/// Rows after a novelty revision until the next look at what was new.
const SECOND_LOOK: u64 = 1500;
/// Revisions without a move after which no number of rows makes another due.
const SETTLED: u32 = 3;
/// Revisions without a move after which the closing one does not look for moves.
const STEADY: u32 = 2;

/// When the structure of one candidate is revised: when the number of rows has doubled, less often where revisions
/// change nothing, and when many rows have a density that hardly any row had before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Rows at which the next revision is due; none where no number of rows makes one due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
    /// Rows at the last revision.
    last: u64,
    /// Revisions in a row that made no move.
    unchanged: u32,
    /// Whether novelty leads to revisions.
    watches: bool,
    /// Whether the end of the stream does.
    closes: bool,
    /// The log-density below which a row counts as unlike all rows before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    level: Option<f64>,
    /// Such rows in the present batch.
    low: u64,
    /// The share of such rows in earlier batches.
    usual: f64,
    /// Whether the last batch was novel.
    novel: bool,
    /// Rows before which no further novelty counts.
    quiet_until: u64,
}

impl Schedule {
    /// Of a mixture after a start from `rows` rows, where `most` rows are kept for revisions. Shards are revised when they
    /// are merged.
    pub(in crate::learn) fn of(size: Size, most: usize, shards: bool, rows: u64) -> Self {
        match (size.is_one(), most, shards) {
            (true, ..) | (_, 0, _) => Schedule::never(),
            (_, _, true) => Schedule::at_end_only(),
            _ => Schedule::after_start(rows),
        }
    }

    /// After the start.
    pub(in crate::learn) fn after_start(rows: u64) -> Self {
        Schedule {
            next: Some(rows.saturating_mul(2)),
            last: rows,
            watches: true,
            closes: true,
            ..Schedule::never()
        }
    }

    /// One revision at the end of the stream.
    pub(in crate::learn) fn at_end_only() -> Self {
        Schedule { closes: true, ..Schedule::never() }
    }

    /// No revisions.
    pub(in crate::learn) fn never() -> Self {
        Schedule {
            next: None,
            last: 0,
            unchanged: 0,
            watches: false,
            closes: false,
            level: None,
            low: 0,
            usual: 0.0,
            novel: false,
            quiet_until: 0,
        }
    }

    /// Why a revision is due after `rows` rows, if one is.
    pub(in crate::learn) fn due(&self, rows: u64) -> Option<Reason> {
        if self.novel {
            return Some(Reason::Novelty);
        }
        self.next.filter(|&next| next <= rows).map(|_| Reason::Doubling)
    }

    /// Whether batches of rows are looked at for novelty.
    pub(in crate::learn) fn watches(&self) -> bool {
        self.watches
    }

    /// Rows until one is due by their number.
    pub(in crate::learn) fn rows_until_due(&self, rows: u64) -> u64 {
        self.next.map_or(u64::MAX, |next| next.saturating_sub(rows))
    }

    /// Sets the log-density below which a row counts as unlike all rows before it.
    pub(in crate::learn) fn set_level(&mut self, level: f64) {
        self.level = Some(level).filter(|level| level.is_finite());
    }

    /// That log-density.
    pub(in crate::learn) fn level(&self) -> f64 {
        self.level.unwrap_or(f64::NEG_INFINITY)
    }

    /// Counts rows below the level.
    pub(in crate::learn) fn add_low(&mut self, low: u64) {
        self.low = self.low.saturating_add(low);
    }

    /// Ends a batch, after `rows` rows in all.
    pub(in crate::learn) fn end_batch(&mut self, rows: u64) {
        let share = self.low.min(BATCH) as f64 / BATCH as f64;
        self.low = 0;
        if self.watches && share > NOVEL + 2.0 * self.usual {
            self.novel = rows >= self.quiet_until;
        } else {
            self.usual += FOLLOW * (share - self.usual);
        }
    }

    /// A revision took place after `rows` rows; `moved` says whether it made a move.
    pub(in crate::learn) fn revised(&mut self, rows: u64, reason: Reason, moved: bool) {
        self.last = rows;
        self.novel = false;
        self.unchanged = if moved { 0 } else { self.unchanged + 1 };
        let factor = if moved { 2 } else { 4 };
        self.next = (self.unchanged < SETTLED).then(|| rows.saturating_mul(factor));
        if reason == Reason::Novelty {
            // Few of the new rows have been seen by now.
            let again = rows + SECOND_LOOK;
            self.next = Some(again);
            self.quiet_until = again.max(rows + rows / 50);
        }
    }

    /// No revision could take place: the next is due when the number of rows has doubled again.
    pub(in crate::learn) fn postpone(&mut self, rows: u64) {
        self.novel = false;
        self.next = Some(rows.saturating_mul(2));
    }

    /// Whether the end of the stream asks for a revision: not where less than a tenth of the rows are new, unless it is
    /// cheap.
    pub(in crate::learn) fn wants_closing(&self, rows: u64, cheap: bool) -> bool {
        self.closes && (cheap || (rows - self.last.min(rows)).saturating_mul(10) >= rows)
    }

    /// Whether rows of a new kind have appeared of late, after `rows` rows in all.
    pub(in crate::learn) fn is_novel(&self, rows: u64) -> bool {
        self.novel || rows < self.quiet_until
    }

    /// Whether the closing revision need not look for moves: the latest revisions found none.
    pub(in crate::learn) fn is_steady(&self) -> bool {
        self.unchanged >= STEADY && !self.novel
    }

    /// Whether its numbers are those of a pass over `rows` rows.
    pub(crate) fn is_sound(&self, rows: u64) -> bool {
        self.last <= rows && (0.0..=1.0).contains(&self.usual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_become_rarer_and_settle_until_something_is_novel() {
        let mut schedule = Schedule::after_start(5000);
        assert_eq!((schedule.due(9999), schedule.due(10_000)), (None, Some(Reason::Doubling)));
        schedule.revised(10_000, Reason::Doubling, true);
        assert_eq!(schedule.rows_until_due(10_000), 10_000);
        for rows in [20_000, 80_000, 320_000] {
            assert_eq!(schedule.due(rows), Some(Reason::Doubling));
            schedule.revised(rows, Reason::Doubling, false);
        }
        assert_eq!(schedule.due(u64::MAX), None, "settled");
        for _ in 0..50 {
            schedule.add_low(1);
            schedule.end_batch(400_000);
        }
        assert_eq!(schedule.due(400_000), None, "spikes are usual");
        schedule.add_low(200);
        schedule.end_batch(400_250);
        assert_eq!(schedule.due(400_250), Some(Reason::Novelty));
        schedule.revised(400_250, Reason::Novelty, true);
        assert_eq!(schedule.due(401_750), Some(Reason::Doubling), "a second look");
    }

    #[test]
    fn a_short_continuation_needs_no_closing_revision() {
        let schedule = Schedule::after_start(5000);
        assert!(!schedule.wants_closing(5500, false) && schedule.wants_closing(5600, false));
        assert!(schedule.wants_closing(5500, true) && !Schedule::never().wants_closing(1000, true));
    }
}
