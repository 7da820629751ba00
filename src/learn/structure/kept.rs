//! Rows of a stream that are kept: the reservoir for revisions, and validation rows that revisions are compared on.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::learn::fingerprint::mix_bits;

/// The default limit of the reservoir in bytes.
const MOST_BYTES: usize = 16 << 20;
/// The default limit of the reservoir in rows.
const MOST_ROWS: usize = 80_000;
/// One row in this many is drawn for validation.
const VALIDATION_SHARE: u64 = 20;
/// The largest number of validation rows.
const MOST_VALIDATION: usize = 4000;

/// The default capacity of the reservoir for rows of `dim` numbers.
pub fn default_kept_rows(dim: usize) -> usize {
    (MOST_BYTES / (8 * dim.max(1))).min(MOST_ROWS)
}

/// Rows of a stream that are kept.
///
/// The reservoir is a uniform sample of all learned rows; it holds all of them until it is full. The validation rows are a
/// uniform sample of all rows, and they are not learned. A row that another one replaces among them is learned then, so each
/// row is learned at most once. All random choices depend only on the seed and the number of rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptRows {
    seed: u64,
    /// The capacity of the reservoir in rows.
    most: usize,
    /// The number of rows that the reservoir is a sample of.
    learned: u64,
    /// The number of rows of an earlier pass that did not keep them.
    #[serde(default)]
    unknown: u64,
    /// The number of rows seen.
    seen: u64,
    /// The number of rows drawn for validation.
    drawn: u64,
    /// Whether rows are held back for validation.
    holds_back: bool,
    #[serde(with = "super::packed")]
    reservoir: Arc<Vec<f64>>,
    #[serde(with = "super::packed")]
    validation: Arc<Vec<f64>>,
}

/// The fields of [`KeptRows`] that hold rows, by their names in a model file.
pub(crate) const PACKED_FIELDS: [&str; 2] = ["reservoir", "validation"];

/// What to learn when a row arrives.
pub(in crate::learn) enum Arrival {
    /// The row itself.
    Learn,
    /// Nothing: the row is kept for validation.
    HeldBack,
    /// The validation row that it replaces, which [`KeptRows::arrive`] appends to its `out`.
    Exchanged,
}

impl KeptRows {
    /// No rows yet, with a reservoir of `most` rows.
    pub(in crate::learn) fn new(seed: u64, most: usize, holds_back: bool) -> Self {
        KeptRows {
            seed,
            most,
            learned: 0,
            unknown: 0,
            seen: 0,
            drawn: 0,
            holds_back,
            reservoir: Arc::default(),
            validation: Arc::default(),
        }
    }

    /// Sets the rows of [`PACKED_FIELDS`] that are given.
    pub(crate) fn set_rows(&mut self, given: [Option<Vec<f64>>; PACKED_FIELDS.len()]) {
        for (to, rows) in [&mut self.reservoir, &mut self.validation].into_iter().zip(given) {
            if let Some(rows) = rows {
                *to = Arc::new(rows);
            }
        }
    }

    /// The same after `rows` rows that were not kept.
    pub(in crate::learn) fn after_unknown(self, rows: u64) -> Self {
        KeptRows { unknown: rows, ..self }
    }

    /// Takes a row of the stream. If another row is to be learned instead, appends it to `out`.
    pub(in crate::learn) fn arrive(&mut self, row: &[f64], out: &mut Vec<f64>) -> Arrival {
        let index = self.seen;
        self.seen += 1;
        if !self.holds_back || !random(self.seed, index, VALIDATION).is_multiple_of(VALIDATION_SHARE) {
            return Arrival::Learn;
        }
        self.drawn += 1;
        let validation = Arc::make_mut(&mut self.validation);
        if validation.len() < MOST_VALIDATION * row.len() {
            validation.extend_from_slice(row);
            return Arrival::HeldBack;
        }
        let place = below(random(self.seed, index, PLACE), self.drawn) as usize;
        if place >= MOST_VALIDATION {
            return Arrival::Learn;
        }
        let held = &mut validation[place * row.len()..][..row.len()];
        out.extend_from_slice(held);
        held.copy_from_slice(row);
        Arrival::Exchanged
    }

    /// Offers a learned row to the reservoir.
    pub(in crate::learn) fn keep(&mut self, row: &[f64]) {
        let index = self.learned;
        self.learned += 1;
        if self.most == 0 {
            return;
        }
        if self.reservoir.len() < self.most.saturating_mul(row.len()) {
            Arc::make_mut(&mut self.reservoir).extend_from_slice(row);
            return;
        }
        let place = below(random(self.seed, index, RESERVOIR), self.learned) as usize;
        if place < self.most {
            Arc::make_mut(&mut self.reservoir)[place * row.len()..][..row.len()].copy_from_slice(row);
        }
    }

    /// The rows of the reservoir, one after the other.
    pub fn reservoir(&self) -> &[f64] {
        &self.reservoir
    }

    /// A shared reference to the reservoir. While it is held, a change of the reservoir copies all rows.
    pub(in crate::learn) fn shared_reservoir(&self) -> Arc<Vec<f64>> {
        Arc::clone(&self.reservoir)
    }

    /// The validation rows, one after the other.
    pub fn validation(&self) -> &[f64] {
        &self.validation
    }

    /// The capacity of the reservoir in rows.
    pub fn most(&self) -> usize {
        self.most
    }

    /// The number of rows that the reservoir is a sample of.
    pub fn learned(&self) -> u64 {
        self.learned
    }

    /// Whether the reservoir holds every learned row.
    pub(in crate::learn) fn is_complete(&self) -> bool {
        self.unknown == 0 && self.learned <= self.most as u64
    }

    /// Whether the reservoir covers enough of the stream for a revision.
    pub(in crate::learn) fn may_revise(&self) -> bool {
        self.most > 0 && self.learned > 0 && self.learned >= self.unknown
    }

    /// The same without rows. A pass that resumes from it makes no revision until it has learned as many new rows.
    pub(crate) fn without_rows(&self) -> Self {
        let unknown = self.learned.saturating_add(self.unknown);
        KeptRows::new(self.seed, self.most, self.holds_back).after_unknown(unknown)
    }

    /// Merges the reservoirs of several passes. Each contributes rows in proportion to the rows that it learned.
    pub(crate) fn merged(parts: &[&KeptRows], dim: usize) -> Option<Self> {
        let first = parts.first()?;
        let total: u64 = parts.iter().map(|part| part.learned).fold(0, u64::saturating_add);
        let most = parts.iter().map(|part| part.most).max().unwrap_or(0);
        let fraction = (most as f64 / total.max(1) as f64).min(1.0);
        let mut merged = KeptRows::new(first.seed, most, false);
        merged.learned = total;
        merged.unknown = parts.iter().map(|part| part.unknown).fold(0, u64::saturating_add);
        let rows = Arc::make_mut(&mut merged.reservoir);
        for part in parts {
            let held = part.reservoir.len() / dim;
            let wanted = ((fraction * part.learned as f64).round() as usize).min(held);
            // Before a reservoir is full, its rows are in the order of the stream, so the rows are taken at equal distances.
            (0..wanted).map(|i| i * held / wanted).for_each(|i| {
                rows.extend_from_slice(&part.reservoir[i * dim..(i + 1) * dim]);
            });
        }
        rows.truncate(most.saturating_mul(dim));
        Some(merged)
    }

    /// Whether this is valid: its counts agree, and it holds whole rows of `dim` numbers, none of them infinite.
    pub(crate) fn is_sound(&self, dim: usize) -> bool {
        let whole = |values: &[f64]| {
            values.len().is_multiple_of(dim) && values.iter().all(|value| !value.is_infinite())
        };
        let held = (self.reservoir.len() / dim) as u64;
        let validation = (self.validation.len() / dim) as u64;
        whole(&self.reservoir)
            && whole(&self.validation)
            && held <= self.learned.min(self.most as u64)
            && validation <= (MOST_VALIDATION as u64).min(self.drawn)
            && self.drawn <= self.seen
            && self.learned.max(self.unknown).max(self.seen) <= 1 << 53
    }
}

/// The purposes of random numbers.
const VALIDATION: u64 = 1;
const PLACE: u64 = 2;
const RESERVOIR: u64 = 3;

/// 64 random bits for one purpose and one row.
fn random(seed: u64, row: u64, purpose: u64) -> u64 {
    mix_bits(mix_bits(seed.wrapping_mul(4).wrapping_add(purpose)) ^ row)
}

/// A number below `n`, uniform to within 2⁻⁶⁴.
fn below(random: u64, n: u64) -> u64 {
    ((u128::from(random) * u128::from(n)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(rows: u64, seed: u64, most: usize) -> (KeptRows, Vec<f64>) {
        let mut kept = KeptRows::new(seed, most, true);
        let (mut learned, mut out) = (Vec::new(), Vec::new());
        for i in 0..rows {
            let row = [i as f64];
            out.clear();
            let row = match kept.arrive(&row, &mut out) {
                Arrival::Learn => row[0],
                Arrival::Exchanged => out[0],
                Arrival::HeldBack => continue,
            };
            kept.keep(&[row]);
            learned.push(row);
        }
        (kept, learned)
    }

    #[test]
    fn every_row_is_learned_once_or_held_back() {
        let (kept, learned) = stream(120_000, 3, 500);
        let mut all = [learned, kept.validation().to_vec()].concat();
        all.sort_by(f64::total_cmp);
        assert!(all.iter().enumerate().all(|(i, row)| *row == i as f64) && all.len() == 120_000);
        assert_eq!(kept.validation().len(), MOST_VALIDATION);
        assert_eq!(kept.reservoir().len(), 500);
        assert!(kept.is_sound(1) && !kept.is_complete() && !kept.is_sound(3));
    }

    #[test]
    fn both_samples_are_uniform() {
        let mut halves = [0; 4];
        for seed in 0..200 {
            let (kept, _) = stream(1000, seed, 50);
            kept.reservoir().iter().for_each(|row| halves[usize::from(*row >= 500.0)] += 1);
            kept.validation().iter().for_each(|row| halves[2 + usize::from(*row >= 500.0)] += 1);
        }
        assert!(halves.iter().all(|half| (4700..5300).contains(half)), "{halves:?}");
    }

    #[test]
    fn rows_survive_a_file_to_the_bit() {
        let (kept, _) = stream(300, 1, 100);
        let text = serde_json::to_string(&kept).unwrap();
        assert_eq!(serde_json::from_str::<KeptRows>(&text).unwrap(), kept);
        assert!(
            serde_json::from_str::<KeptRows>(&text.replace("\"reservoir\":\"AA", "\"reservoir\":\"!A"))
                .is_err()
        );
    }

    #[test]
    fn merged_reservoirs_are_in_proportion_to_the_rows() {
        let (small, _) = stream(200, 1, 100);
        let (large, _) = stream(2000, 2, 100);
        let merged = KeptRows::merged(&[&small, &large], 1).unwrap();
        assert_eq!(merged.learned(), small.learned() + large.learned());
        assert!((95..=100).contains(&merged.reservoir().len()));
        let of_small = merged.reservoir().iter().take(12).filter(|row| **row < 200.0).count();
        assert!(of_small >= 9);
    }
}
