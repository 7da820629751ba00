//! Means of statistics over windows of equal length, at several lengths, each twice the one before.
//!
//! The last window of each length is compared with all earlier ones. How much windows differ by chance follows from the differences
//! of neighbouring windows of this length and of longer ones, of which the largest counts. So rows that depend on the rows
//! before them, cycles, and modes that alternate do not look like a change once they have been seen.

use std::cell::OnceCell;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::frame::{ChangeKind, Frame, Statistic};
use crate::learn::structure::packed;

/// The largest number of lengths: the longest window has a million rows.
const MAX_LENGTHS: usize = 13;
/// Earlier windows that the last one is compared with, at least.
const MIN_WINDOWS: u64 = 16;
/// Windows whose differences count, at least.
const MIN_DIFFERENCES: u64 = 4;
/// The variance of a window follows from this many lengths, its own and longer ones.
const LONGER: usize = 3;
/// A statistic has changed if it differs by this many standard deviations of a window. After few windows, and where rows depend
/// on the rows before them, it has to differ more.
const MIN_DEVIATIONS: f64 = 6.0;
const FEW_WINDOWS: f64 = 12.0;
const DEPENDENCE: f64 = 0.15;
/// Each half of a window has at least this fraction of the change, or it does not last.
const LASTS: f64 = 0.4;
/// As many extreme rows in a window are no change.
const EXTREME_ROWS: f64 = 3.0;
/// The share of a cluster is watched if this fraction of the windows has rows of it.
const PRESENT: f64 = 0.8;
/// If this fraction of the rows is far from all earlier ones, it is the level that has changed.
const MAJORITY: f64 = 0.5;

/// The windows of one length.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Length {
    windows: u64,
    /// Windows that begin in the middle of the others.
    #[serde(default)]
    shifted_windows: u64,
    /// The sums of the last window, and of the last shifted one.
    #[serde(with = "packed")]
    last: Arc<Vec<f64>>,
    #[serde(default, with = "packed")]
    last_shifted: Arc<Vec<f64>>,
    /// The mean of each statistic over all windows.
    #[serde(with = "packed")]
    means: Arc<Vec<f64>>,
    /// The sum of the squared differences of neighbouring windows, halved. Shifted windows count too: modes that alternate may
    /// differ in these alone.
    #[serde(with = "packed")]
    squares: Arc<Vec<f64>>,
    /// Windows in which a statistic was positive.
    #[serde(with = "packed")]
    positive: Arc<Vec<f64>>,
}

impl Length {
    fn add(&mut self, sums: &[f64]) {
        if self.windows == 0 {
            let none = || Arc::new(vec![0.0; sums.len()]);
            *self = Length {
                windows: 0,
                shifted_windows: 0,
                last: none(),
                last_shifted: Arc::default(),
                means: none(),
                squares: none(),
                positive: none(),
            };
        }
        self.windows += 1;
        let count = self.windows as f64;
        let (means, squares) = (Arc::make_mut(&mut self.means), Arc::make_mut(&mut self.squares));
        let positive = Arc::make_mut(&mut self.positive);
        for (i, (new, before)) in Frame::means(sums).zip(Frame::means(&self.last)).enumerate() {
            if self.windows > 1 {
                squares[i] += 0.5 * (new - before).powi(2);
            }
            positive[i] += f64::from(u8::from(new > 0.0));
            means[i] += (new - means[i]) / count;
        }
        *Arc::make_mut(&mut self.last) = sums.to_vec();
    }

    /// Adds a window that begins in the middle of another.
    fn add_shifted(&mut self, sums: &[f64]) {
        if self.windows == 0 {
            return;
        }
        if self.shifted_windows > 0 {
            let squares = Arc::make_mut(&mut self.squares).iter_mut();
            let pairs = Frame::means(sums).zip(Frame::means(&self.last_shifted));
            squares.zip(pairs).for_each(|(to, (new, before))| *to += 0.5 * (new - before).powi(2));
        }
        self.shifted_windows += 1;
        *Arc::make_mut(&mut self.last_shifted) = sums.to_vec();
    }

    /// The variance of one window.
    fn variance(&self, i: usize) -> f64 {
        self.squares[i] / (self.windows - 1 + self.shifted_windows.saturating_sub(1)) as f64
    }

    fn is_sound(&self, len: usize) -> bool {
        let all = [&self.last, &self.means, &self.squares, &self.positive];
        let shifted = &self.last_shifted;
        self.windows > 0
            && shifted.len() == if self.shifted_windows > 0 { len } else { 0 }
            && shifted.iter().all(|value| value.is_finite())
            && all.iter().all(|values| values.len() == len && values.iter().all(|value| value.is_finite()))
    }
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Windows {
    lengths: Vec<Length>,
}

impl Windows {
    /// Adds the sums of a batch. If the statistics have changed, returns in which way, and how many batches ago the window began.
    pub fn add(&mut self, frame: &Frame, batch: &[f64]) -> Option<(ChangeKind, u64)> {
        let mut window = batch.to_vec();
        let mut found = None;
        for length in 0..MAX_LENGTHS {
            if length == self.lengths.len() {
                self.lengths.push(Length::default());
            }
            let own = &mut self.lengths[length];
            let before = Arc::clone(&own.last);
            own.add(&window);
            if own.windows < 2 {
                break;
            }
            let is_whole = own.windows.is_multiple_of(2);
            window.iter_mut().zip(before.iter()).for_each(|(sum, before)| *sum += before);
            // A window of twice the length ends with each window, so that a change soon fills one.
            if found.is_none() && length + 1 < self.lengths.len() {
                found = self.change(frame, length + 1, &before, &window).map(|kind| (kind, 2 << length));
            }
            if !is_whole {
                if let Some(longer) = self.lengths.get_mut(length + 1) {
                    longer.add_shifted(&window);
                }
                break;
            }
        }
        found
    }

    /// How a window differs from the earlier ones, if it does.
    fn change(&self, frame: &Frame, length: usize, first_half: &[f64], sums: &[f64]) -> Option<ChangeKind> {
        let own = &self.lengths[length];
        if own.windows < MIN_WINDOWS {
            return None;
        }
        let second_half: Vec<f64> = sums.iter().zip(first_half).map(|(sum, first)| sum - first).collect();
        let halves = Frame::means(first_half).zip(Frame::means(&second_half));
        let dependence = OnceCell::new();
        let enough = MIN_DEVIATIONS * (1.0 + FEW_WINDOWS / own.windows as f64);
        let mut changed = Vec::new();
        for (i, (mean, (first, second))) in Frame::means(sums).zip(halves).enumerate().skip(1) {
            let apart = mean - own.means[i];
            // Chance explains at least this much, whatever longer windows say.
            if apart * apart <= MIN_DEVIATIONS * MIN_DEVIATIONS * own.variance(i) {
                continue;
            }
            let statistic = frame.statistic(i);
            let lasts = (first - own.means[i]).min(second - own.means[i]) > LASTS * apart && apart > 0.0
                || (first - own.means[i]).max(second - own.means[i]) < LASTS * apart && apart < 0.0;
            let present =
                statistic.kind != ChangeKind::Weights || own.positive[i] >= PRESENT * own.windows as f64;
            let dependence = *dependence.get_or_init(|| self.dependence(frame, length, sums[0]));
            let deviations = apart.abs() / self.chance(statistic, length, i, sums[0], dependence);
            if lasts && present && deviations > enough {
                changed.push(statistic.kind);
            }
        }
        let far = Frame::means(sums).nth(1).unwrap_or(0.0) - own.means[1];
        let kind = kind_of(&changed)?;
        // The other statistics are those of few rows then.
        Some(if far > MAJORITY { ChangeKind::Level } else { kind })
    }

    /// The variance of a statistic in a window of this length.
    fn variance(&self, length: usize, i: usize) -> f64 {
        // Much longer windows differ by a steady drift, which would hide itself.
        let longer = self.lengths[length..].iter().take(LONGER);
        let longer = longer.filter(|longer| longer.windows >= MIN_DIFFERENCES);
        longer.map(|longer| longer.variance(i)).fold(0.0, f64::max)
    }

    /// How many rows say as much as one independent row, by the levels, spreads and products.
    fn dependence(&self, frame: &Frame, length: usize, rows: f64) -> f64 {
        let of_rows = (1..frame.len()).map(|i| (i, frame.statistic(i))).filter(|(_, own)| !own.is_share);
        let ratios = of_rows.map(|(i, own)| self.variance(length, i) * rows / own.variance);
        // The largest of several estimates is above one by chance.
        (0.5 * ratios.fold(0.0, f64::max)).max(1.0)
    }

    /// By how much a window of `rows` rows differs by chance.
    fn chance(&self, statistic: Statistic, length: usize, i: usize, rows: f64, dependence: f64) -> f64 {
        let few = EXTREME_ROWS * (statistic.most / rows).powi(2);
        let of_row = if statistic.is_share {
            let share = self.lengths[length].means[i].clamp(0.0, 1.0);
            share * (1.0 - share)
        } else {
            statistic.variance
        };
        // A share is at least as uncertain as the other statistics let expect: far rows may be rare, and come together.
        let least = if statistic.is_share { dependence * (few + of_row / rows) } else { few };
        let variance = self.variance(length, i).max(least);
        // Means of dependent rows are far from Gaussian.
        let dependence = variance * rows / of_row.max(EXTREME_ROWS / rows);
        variance.sqrt() * (1.0 + DEPENDENCE * dependence.max(1.0).ln())
    }

    pub fn is_sound(&self, len: usize) -> bool {
        self.lengths.len() <= MAX_LENGTHS && self.lengths.iter().all(|length| length.is_sound(len))
    }
}

/// The kind that explains the changed statistics: a changed level changes spreads, and both change products. Far rows alone are a
/// new kind of rows.
fn kind_of(changed: &[ChangeKind]) -> Option<ChangeKind> {
    let order = [
        ChangeKind::Level,
        ChangeKind::Spread,
        ChangeKind::Correlation,
        ChangeKind::Weights,
        ChangeKind::NewComponent,
    ];
    order.into_iter().find(|kind| changed.contains(kind))
}
