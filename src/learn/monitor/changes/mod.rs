//! Detects that the data change while they are learned.
//!
//! Statistics of the rows in a fixed [`Frame`] are compared with those of earlier rows in [`Windows`]. What the mixture learns
//! meanwhile has no effect.

mod frame;
mod windows;

use serde::{Deserialize, Serialize};

pub use frame::ChangeKind;
use frame::Frame;
use windows::Windows;

use crate::dist::GaussianMixture;
use crate::hash::mix_bits;
use crate::learn::pass::places::Places;
use crate::learn::structure::BATCH;
use crate::learn::{Finding, Rows};

/// A change of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataChange {
    /// The row near which it is.
    pub row: u64,
    /// Its kind.
    pub kind: ChangeKind,
}

/// Changes of the data that were found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataChanges {
    /// The row near which the first one is.
    pub first: u64,
    /// The row near which the latest one is.
    pub latest: u64,
    /// How many there are.
    pub times: u64,
    /// The first and the latest ones, in order. Files of earlier versions have none.
    #[serde(default)]
    pub list: Vec<DataChange>,
}

impl DataChanges {
    /// What to tell of them. `forgets` says that the pass has a half-life.
    pub(crate) fn finding(&self, forgets: bool) -> Finding {
        let DataChanges { first, latest, times, .. } = *self;
        let kinds = |change: &DataChange| change.kind;
        let kind = self.list.first().map(kinds);
        Finding::DataChange {
            row: first,
            kind,
            latest,
            latest_kind: self.list.last().map(kinds),
            times,
            forgets,
        }
    }
}

fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

/// The length of the list of changes.
const MAX_LISTED: usize = 100;
/// Of so many rows one is looked at, on average.
const STRIDE: u64 = 2;
/// Batches after a change before there is a new frame, and batches that adjust a frame, twice.
const WAIT: u64 = 5;
const ADJUST: u64 = 4;

/// Watches the rows of one candidate for changes. Its size grows with the logarithm of the number of rows, up to a bound.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ChangeWatch {
    frame: Option<Frame>,
    /// Rows seen.
    seen: u64,
    /// Batches since the frame was made, or since the change before it.
    age: u64,
    /// The sums of the current batch, or those that adjust the frame.
    sums: Vec<f64>,
    /// The sum of `w² − w` over the weights `w` of the rows in `sums`.
    #[serde(skip_serializing_if = "is_zero")]
    weight_spread: f64,
    windows: Windows,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<DataChanges>,
}

impl ChangeWatch {
    /// A watch that begins with a mixture.
    pub(in crate::learn) fn new(mixture: &GaussianMixture) -> Self {
        let mut watch = ChangeWatch::default();
        watch.begin(mixture);
        watch
    }

    /// A watch that never begins.
    pub(in crate::learn) fn never() -> Self {
        ChangeWatch { age: WAIT, ..ChangeWatch::default() }
    }

    /// A saved watch, which begins with a mixture if it has none, as those of earlier versions do.
    pub(in crate::learn) fn resumed(mut self, mixture: &GaussianMixture) -> Self {
        if self.frame.is_none() && self.age == 0 {
            self.begin(mixture);
        }
        self
    }

    /// The changes found so far.
    pub fn changes(&self) -> Option<&DataChanges> {
        self.changes.as_ref()
    }

    fn begin(&mut self, mixture: &GaussianMixture) {
        let frame = Frame::of(mixture);
        (self.age, self.sums) = (0, vec![0.0; frame.adjusting_len()]);
        (self.frame, self.windows) = (Some(frame), Windows::default());
    }

    /// Adds rows of the current batch.
    #[inline(never)]
    pub(in crate::learn) fn add(&mut self, rows: Rows) {
        let Some(frame) = &mut self.frame else { return };
        let (seen, spread) = (&mut self.seen, &mut self.weight_spread);
        let some = rows.iter().filter(|(_, weight)| {
            *seen += 1;
            // By a hash, because rows of a period would meet a fixed stride.
            let is_seen = mix_bits(*seen).is_multiple_of(STRIDE);
            *spread += if is_seen { weight * weight - weight } else { 0.0 };
            is_seen
        });
        let sums = &mut self.sums;
        if self.age < 2 * ADJUST {
            some.for_each(|(row, weight)| frame.add_to_adjust(row, weight, sums));
        } else {
            frame.add(some, sums);
        }
    }

    /// Ends a batch after `rows` rows in total. `places` says where in the stream rows are.
    pub(in crate::learn) fn end_batch(
        &mut self,
        rows: u64,
        places: &Places,
        mixture: impl Fn() -> GaussianMixture,
    ) {
        self.age += 1;
        let Some(frame) = &mut self.frame else {
            if self.age == WAIT {
                self.begin(&mixture());
            }
            return;
        };
        let spread = self.weight_spread;
        if spread != 0.0 && (self.age > 2 * ADJUST || self.age.is_multiple_of(ADJUST)) {
            // Weighted rows say as much as fewer rows of equal weight.
            let weight = if self.age > 2 * ADJUST { self.sums[0] } else { frame.adjusting_rows(&self.sums) };
            let factor = weight / (weight + spread).max(f64::MIN_POSITIVE);
            self.sums.iter_mut().for_each(|sum| *sum *= factor);
            self.weight_spread = 0.0;
        }
        if self.age <= 2 * ADJUST {
            if self.age.is_multiple_of(ADJUST) {
                frame.adjust(&self.sums);
                let len = if self.age < 2 * ADJUST { frame.adjusting_len() } else { frame.len() };
                self.sums = vec![0.0; len];
            }
            return;
        }
        let change = self.windows.add(frame, &self.sums);
        self.sums.fill(0.0);
        if let Some((kind, batches)) = change {
            self.record(DataChange { row: places.of(rows.saturating_sub(batches * BATCH)), kind });
            // An age of 0 without a frame is that of a file of an earlier version.
            (self.frame, self.age, self.windows) = (None, 1, Windows::default());
        }
    }

    fn record(&mut self, change: DataChange) {
        let row = change.row;
        let none = DataChanges { first: row, latest: row, times: 0, list: Vec::new() };
        let known = self.changes.get_or_insert(none);
        (known.latest, known.times) = (row, known.times + 1);
        if known.list.len() == MAX_LISTED {
            // The first one stays.
            known.list.remove(1);
        }
        known.list.push(change);
    }

    /// Whether this is valid for rows of `dim` columns.
    pub(crate) fn is_sound(&self, dim: usize) -> bool {
        let Some(frame) = &self.frame else { return true };
        if !frame.is_sound(dim) {
            return false;
        }
        let len = if self.age < 2 * ADJUST { frame.adjusting_len() } else { frame.len() };
        self.sums.len() == len
            && self.sums.iter().chain([&self.weight_spread]).all(|sum| sum.is_finite())
            && self.windows.is_sound(frame.len())
    }
}
