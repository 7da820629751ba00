//! The schedule of revisions.

use serde::{Deserialize, Serialize};

use super::Size;
use super::history::Reason;
use super::misfit::MisfitWatch;
use crate::learn::Surprise;

/// Rows in a batch that is checked for novelty.
pub(in crate::learn) const BATCH: u64 = 250;
/// A batch is novel at once if its fraction of rows of low density exceeds this plus twice the usual fraction.
const NOVEL_SHARE: f64 = 0.2;
/// Rows are also novel if this many more of them than usual have a low density. Each batch may have one, and three times as many
/// as usual.
const NOVEL_ROWS: f64 = 10.0;
/// The weight of a batch in the usual fraction, an exponential average.
const FOLLOW: f64 = 0.05;
/// Rows between a revision because of novelty or misfit and the next one. The interval doubles while nothing moves.
const FIRST_LOOK: u64 = 1500;
const MAX_LOOK: u64 = 12_000;
/// Revisions in vain double the time without novelty or misfit at most this many times.
const MAX_VAIN: u32 = 6;
/// After this many revisions without a move, the number of rows triggers no further revision.
const SETTLED: u32 = 3;
/// With a half-life, revisions without a move double the interval between revisions at most this many times.
const MAX_DOUBLINGS: u32 = 3;

/// When the structure of one candidate is revised: whenever the number of rows has doubled, less often if revisions change
/// nothing, and when many rows have a lower density than nearly all earlier rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// The number of rows at the next revision; `None` if the number of rows triggers none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
    /// The number of rows at the last revision.
    last: u64,
    /// The number of consecutive revisions without a move.
    unchanged: u32,
    /// Whether novelty triggers revisions.
    watches: bool,
    /// Whether the end of the stream triggers a revision.
    closes: bool,
    /// The log-density below which a row counts as novel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    level: Option<f64>,
    /// The number of novel rows in the current batch.
    low: u64,
    /// The usual fraction of novel rows in a batch.
    usual: f64,
    /// The number of novel rows beyond those that batches may have.
    #[serde(default)]
    excess: f64,
    /// Whether the last batch was novel.
    novel: bool,
    /// The distances of rows from their components.
    #[serde(default)]
    distances: MisfitWatch,
    /// Whether the last batches do not fit.
    #[serde(default)]
    misfit: bool,
    /// The interval to the next look after novelty or misfit; 0 without.
    #[serde(default)]
    look: u64,
    /// The number of times that novelty or misfit was followed by no move.
    #[serde(default)]
    vain: u32,
    /// Novelty and misfit are ignored before this number of rows.
    quiet_until: u64,
    /// Before this number of rows, only a batch that is clearly novel counts.
    #[serde(default)]
    vain_until: u64,
    /// The number of rows after which a row has half its weight, if rows lose weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    half_life: Option<u64>,
}

impl Schedule {
    /// The schedule after a start from `rows` rows, with a reservoir of `most` rows. Shards are revised when they are merged.
    pub(in crate::learn) fn of(size: Size, most: usize, shards: bool, rows: u64) -> Self {
        match (size.is_one(), most, shards) {
            (true, ..) | (_, 0, _) => Schedule::never(),
            (_, _, true) => Schedule::at_end_only(),
            _ => Schedule::after_start(rows),
        }
    }

    /// All revisions, after a start from `rows` rows.
    pub(in crate::learn) fn after_start(rows: u64) -> Self {
        Schedule {
            next: Some(rows.saturating_mul(2)),
            last: rows,
            watches: true,
            closes: true,
            ..Schedule::never()
        }
    }

    /// A revision at the end of the stream only.
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
            excess: 0.0,
            novel: false,
            distances: MisfitWatch::default(),
            misfit: false,
            look: 0,
            vain: 0,
            quiet_until: 0,
            vain_until: 0,
            half_life: None,
        }
    }

    /// Changes the half-life. Revisions never cease while there is one, because the data may drift.
    pub(in crate::learn) fn set_half_life(&mut self, half_life: Option<u64>, rows: u64) {
        self.half_life = half_life;
        if self.watches {
            self.next = self.soon_enough(rows, 0);
        }
    }

    /// The same with a half-life, if there is one.
    pub(in crate::learn) fn with_half_life(mut self, half_life: Option<u64>, rows: u64) -> Self {
        self.set_half_life(half_life, rows);
        self
    }

    /// The next revision after one at `rows` rows. With a half-life it comes when half of the weight is that of new rows, as
    /// it is when the number of rows has doubled, and later after revisions without a move.
    fn soon_enough(&self, rows: u64, unchanged: u32) -> Option<u64> {
        let Some(half_life) = self.half_life else { return self.next };
        let interval = half_life.saturating_mul(1 << unchanged.min(MAX_DOUBLINGS));
        let latest = rows.saturating_add(interval.max(BATCH));
        Some(self.next.map_or(latest, |next| next.min(latest)))
    }

    /// The number of rows that count after `rows` rows.
    fn horizon(&self, rows: u64) -> u64 {
        self.half_life.map_or(rows, |half_life| rows.min(half_life))
    }

    /// The reason of a revision that is due after `rows` rows; `None` if none is due.
    pub(in crate::learn) fn due(&self, rows: u64) -> Option<Reason> {
        if self.novel {
            return Some(Reason::Novelty);
        }
        if self.misfit {
            return Some(Reason::Misfit);
        }
        self.next.filter(|&next| next <= rows).map(|_| Reason::Doubling)
    }

    /// Whether batches are checked for novelty.
    pub(in crate::learn) fn watches(&self) -> bool {
        self.watches
    }

    /// Rows until the number of rows triggers a revision.
    pub(in crate::learn) fn rows_until_due(&self, rows: u64) -> u64 {
        self.next.map_or(u64::MAX, |next| next.saturating_sub(rows))
    }

    /// Sets the log-density below which a row counts as novel.
    pub(in crate::learn) fn set_level(&mut self, level: f64) {
        self.level = Some(level).filter(|level| level.is_finite());
    }

    /// The log-density below which a row counts as novel.
    pub(in crate::learn) fn level(&self) -> f64 {
        self.level.unwrap_or(f64::NEG_INFINITY)
    }

    /// Counts rows below that log-density.
    pub(in crate::learn) fn add_low(&mut self, low: u64) {
        self.low = self.low.saturating_add(low);
    }

    /// Adds the distances of rows of the current batch.
    pub(in crate::learn) fn add_distances(&mut self, rows: Surprise) {
        self.distances.add(rows);
    }

    /// Ends a batch after `rows` rows of `columns` columns in total.
    pub(in crate::learn) fn end_batch(&mut self, rows: u64, columns: usize) {
        let low = self.low.min(BATCH) as f64;
        self.low = 0;
        let misfit = self.distances.end_batch(columns);
        if !self.watches {
            return;
        }
        let allowed = 1.0 + 3.0 * self.usual * BATCH as f64;
        self.excess = (self.excess + low - allowed).max(0.0);
        let share = low / BATCH as f64;
        let is_clear = share > NOVEL_SHARE + 2.0 * self.usual;
        let is_novel = is_clear || self.excess >= NOVEL_ROWS;
        if !is_novel {
            self.usual += FOLLOW * (share - self.usual);
        }
        let (looks, is_vain) = (rows >= self.quiet_until, rows < self.vain_until);
        self.novel = looks && (is_clear || is_novel && !is_vain);
        self.misfit = misfit && looks && !is_vain;
    }

    /// Records a revision after `rows` rows. `moved` says whether it made a move, `kept` whether the mixture changed.
    pub(in crate::learn) fn revised(&mut self, rows: u64, reason: Reason, moved: bool, kept: bool) {
        self.last = rows;
        (self.novel, self.misfit, self.excess) = (false, false, 0.0);
        self.unchanged = if moved { 0 } else { self.unchanged + 1 };
        let factor = if moved { 2 } else { 4 };
        self.next = (self.unchanged < SETTLED).then(|| rows.saturating_mul(factor));
        self.next = self.soon_enough(rows, self.unchanged);
        let triggered = matches!(reason, Reason::Novelty | Reason::Misfit);
        if kept || triggered {
            self.distances.reset();
        }
        // Few rows of the new kind have arrived at first, so there are further looks while nothing moves.
        self.look = match (triggered, self.look) {
            (true, _) => FIRST_LOOK,
            (false, look) if moved || look == MAX_LOOK => 0,
            (false, look) => 2 * look,
        };
        if self.look > 0 {
            self.next = Some(rows + self.look);
        }
        if triggered {
            let quiet = (self.horizon(rows) / 50).max(FIRST_LOOK);
            self.quiet_until = rows.saturating_add(quiet);
            self.vain_until = rows.saturating_add(quiet << self.vain.min(MAX_VAIN));
            self.vain += 1;
        }
        if moved {
            self.vain = 0;
        }
    }

    /// Postpones a revision that is not possible yet: until the number of rows has doubled again, or for a half-life.
    pub(in crate::learn) fn postpone(&mut self, rows: u64) {
        (self.novel, self.misfit) = (false, false);
        self.next = Some(rows.saturating_mul(2));
        self.next = self.soon_enough(rows, 0);
    }

    /// Whether the end of the stream triggers a revision: if it is cheap, or if at least a tenth of the rows that count are new.
    /// Without a half-life, the last `memory` rows count.
    pub(in crate::learn) fn wants_closing(&self, rows: u64, memory: u64, cheap: bool) -> bool {
        let count = self.half_life.map_or(memory, |_| self.horizon(rows));
        self.closes && (cheap || (rows - self.last.min(rows)).saturating_mul(10) >= count)
    }

    /// Whether there was novelty recently, after `rows` rows in total.
    pub(in crate::learn) fn is_novel(&self, rows: u64) -> bool {
        self.novel || rows < self.quiet_until
    }

    /// Whether there was novelty or misfit that revisions still look after. Few of the kept rows may be of the new kind.
    pub(in crate::learn) fn is_alert(&self, rows: u64) -> bool {
        self.is_novel(rows) || self.misfit || self.look > 0
    }

    /// Whether this is valid for a pass over `rows` rows.
    pub(crate) fn is_sound(&self, rows: u64) -> bool {
        self.last <= rows
            && (0.0..=1.0).contains(&self.usual)
            && self.excess >= 0.0
            && self.distances.is_sound()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_become_rarer_and_settle_until_something_is_novel() {
        let mut schedule = Schedule::after_start(5000);
        assert_eq!((schedule.due(9999), schedule.due(10_000)), (None, Some(Reason::Doubling)));
        schedule.revised(10_000, Reason::Doubling, true, true);
        assert_eq!(schedule.rows_until_due(10_000), 10_000);
        for rows in [20_000, 80_000, 320_000] {
            assert_eq!(schedule.due(rows), Some(Reason::Doubling));
            schedule.revised(rows, Reason::Doubling, false, false);
        }
        assert_eq!(schedule.due(u64::MAX), None, "settled");
        for _ in 0..50 {
            schedule.add_low(1);
            schedule.end_batch(400_000, 2);
        }
        assert_eq!(schedule.due(400_000), None, "spikes are usual");
        schedule.add_low(200);
        schedule.end_batch(400_250, 2);
        assert_eq!(schedule.due(400_250), Some(Reason::Novelty));
        schedule.revised(400_250, Reason::Novelty, true, true);
        assert_eq!(schedule.due(401_750), Some(Reason::Doubling), "a second look");
    }

    #[test]
    fn with_a_half_life_revisions_never_cease() {
        let mut schedule = Schedule::after_start(5000).with_half_life(Some(2000), 5000);
        assert_eq!(schedule.rows_until_due(5000), 2000);
        let mut rows = 7000;
        for interval in [4000, 8000, 16_000, 16_000] {
            schedule.revised(rows, Reason::Doubling, false, false);
            assert_eq!(schedule.rows_until_due(rows), interval.min(3 * rows));
            rows += interval;
        }
        schedule.revised(rows, Reason::Doubling, true, true);
        assert_eq!(schedule.rows_until_due(rows), 2000);
        assert!(
            schedule.wants_closing(rows + 200, rows, false)
                && !schedule.wants_closing(rows + 199, rows, false)
        );
    }

    #[test]
    fn a_postponed_revision_comes_within_a_half_life() {
        let mut schedule = Schedule::after_start(5000);
        schedule.postpone(1_000_000);
        assert_eq!(schedule.rows_until_due(1_000_000), 1_000_000);
        let mut schedule = schedule.with_half_life(Some(2000), 1_000_000);
        schedule.postpone(1_002_000);
        assert_eq!(schedule.rows_until_due(1_002_000), 2000);
    }

    #[test]
    fn a_short_continuation_needs_no_closing_revision() {
        let schedule = Schedule::after_start(5000);
        assert!(!schedule.wants_closing(5500, 5500, false) && schedule.wants_closing(5600, 5600, false));
        assert!(
            schedule.wants_closing(5500, 5500, true) && !Schedule::never().wants_closing(1000, 1000, true)
        );
    }

    #[test]
    fn a_learner_that_forgets_needs_a_closing_revision_sooner() {
        let schedule = Schedule::after_start(5000);
        assert!(schedule.wants_closing(5200, 2000, false) && !schedule.wants_closing(5199, 2000, false));
    }
}
