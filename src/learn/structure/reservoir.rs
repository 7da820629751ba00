//! Rows of a stream that are kept: the reservoir for revisions, and validation rows that revisions are compared on.

mod half_life;
mod merging;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use half_life::most_validation;

use super::fading::{Fading, OwnWeights, SampleWeights, admission};
use crate::hash::mix_bits;
use crate::learn::Rows;
use crate::learn::rows::RowBuffer;
use crate::learn::rules::forgetting::Forgetting;
use crate::linalg::Table;

/// The default limit of the reservoir in bytes.
const MAX_BYTES: usize = 64 << 20;
/// The default limit of the reservoir in rows, where there are few components and columns.
const MAX_ROWS: usize = 80_000;
/// One row in this many is drawn for validation.
const VALIDATION_SHARE: u64 = 20;
/// The largest number of validation rows.
const MAX_VALIDATION: usize = 4000;

/// The default capacity of the reservoir for `k` components of rows of `dim` numbers: two rows for each free number of the
/// components where that is more than [`MAX_ROWS`].
pub fn default_kept_rows(k: usize, dim: usize) -> usize {
    (MAX_BYTES / (4 * dim.max(1))).min(MAX_ROWS.max(k * dim * dim))
}

/// The least number of validation rows in a pass with a half-life.
const MIN_VALIDATION: usize = 100;
/// A reservoir of this many times the largest total weight has nearly all rows that matter.
const AMPLE: f64 = 4.0;

/// Rows of a stream that are kept.
///
/// The reservoir is a uniform sample of all learned rows; it holds all of them until it is full. The validation rows are a
/// uniform sample of all rows, and they are not learned. A row that another one replaces among them is learned then, so each
/// row is learned at most once. All random choices depend only on the seed and the number of rows.
///
/// In a pass with a half-life, both samples prefer recent rows and have weights (`fading`). A row that is replaced
/// among the validation rows is learned with a probability equal to its weight.
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
    #[serde(with = "super::packed_table")]
    reservoir: Arc<Table>,
    #[serde(with = "super::packed")]
    validation: Arc<Vec<f64>>,
    /// The weights of the rows, if the pass has a half-life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fading: Option<Fading>,
    /// The rows' own weights, once a row has another weight than 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    own_weights: Option<OwnWeights>,
}

/// What to learn when a row is drawn for validation.
enum Drawn {
    /// The row itself.
    Learn,
    /// Nothing: the row is kept for validation.
    HeldBack,
    /// The validation row that it replaces, which [`KeptRows::take_drawn`] appends to its `out`.
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
            fading: None,
            own_weights: None,
        }
    }

    /// The same for a pass with a half-life, if there is one.
    pub(in crate::learn) fn with_half_life(mut self, half_life: Option<u64>, dim: usize) -> Self {
        self.set_half_life(half_life, dim);
        self
    }

    /// The weight of each row of the reservoir, if rows have weights: that of its age times its own.
    pub(in crate::learn) fn reservoir_weights(&self) -> Option<Vec<f64>> {
        product(self.reservoir_ages(), self.own_weights_of_reservoir())
    }

    /// The weight of each validation row, if rows have weights.
    pub(in crate::learn) fn validation_weights(&self) -> Option<Vec<f64>> {
        product(self.validation_ages(), self.own_weights_of_validation())
    }

    /// The weight that each row of the reservoir has because of its age, if the pass has a half-life.
    pub(in crate::learn) fn reservoir_ages(&self) -> Option<Vec<f64>> {
        let with_own = self.has_own_weights();
        let weights =
            |fading: &Fading| fading.of_reservoir.weights(self.reservoir_admission(fading), with_own);
        self.fading.as_ref().map(weights)
    }

    fn validation_ages(&self) -> Option<Vec<f64>> {
        let with_own = self.has_own_weights();
        let weights =
            |fading: &Fading| fading.of_validation.weights(self.validation_admission(fading), with_own);
        self.fading.as_ref().map(weights)
    }

    /// Whether rows have weights of their own.
    pub(in crate::learn) fn has_own_weights(&self) -> bool {
        self.own_weights.is_some()
    }

    /// The rows' own weights.
    pub(in crate::learn) fn own_weights_of_reservoir(&self) -> Option<&[f64]> {
        self.own_weights.as_ref().map(|own| own.of_reservoir.as_slice())
    }

    /// The validation rows' own weights.
    pub(in crate::learn) fn own_weights_of_validation(&self) -> Option<&[f64]> {
        self.own_weights.as_ref().map(|own| own.of_validation.as_slice())
    }

    /// The total weight of the rows that the reservoir is a sample of, without their ages.
    pub(in crate::learn) fn learned_weight(&self) -> f64 {
        self.own_weights.as_ref().map_or(self.learned as f64, |own| own.learned)
    }

    /// The mean weight of a row.
    fn mean_weight(&self) -> f64 {
        if self.own_weights.is_none() { 1.0 } else { self.learned_weight() / self.learned.max(1) as f64 }
    }

    /// The probability that the reservoir takes the next row.
    fn reservoir_admission(&self, fading: &Fading) -> f64 {
        admission(self.most.max(1), self.learned, fading.forgetting().rate() * self.mean_weight())
    }

    /// The probability that a row drawn for validation is taken.
    fn validation_admission(&self, fading: &Fading) -> f64 {
        let rate = VALIDATION_SHARE as f64 * fading.forgetting().rate() * self.mean_weight();
        admission(most_validation(fading), self.drawn, rate)
    }

    /// The validation rows with their own weights.
    pub(in crate::learn) fn validation_rows(&self, dim: usize) -> Rows<'_> {
        Rows::new(&self.validation, dim).with_weights(self.own_weights_of_validation())
    }

    /// Notes that a row has this weight. Until one has another weight than 1, none is kept.
    fn note_weight(&mut self, weight: f64, dim: usize) {
        if weight != 1.0 && self.own_weights.is_none() {
            let held = [self.held(dim), self.validation.len() / dim];
            self.own_weights = Some(OwnWeights::ones(self.learned, held[0], held[1]));
        }
    }

    /// How rows lose weight, if they do.
    pub(in crate::learn) fn forgetting(&self) -> Option<Forgetting> {
        self.fading.as_ref().map(Fading::forgetting)
    }

    /// The same after `rows` rows that were not kept.
    pub(in crate::learn) fn after_unknown(self, rows: u64) -> Self {
        KeptRows { unknown: rows, ..self }
    }

    /// Takes rows of the stream, and keeps some. Appends the rows to learn now to `to`, in the order of learning.
    pub(in crate::learn) fn route(&mut self, rows: Rows, to: &mut RowBuffer) {
        // The first row that is not routed yet.
        let mut first = 0;
        for (i, (row, weight)) in rows.iter().enumerate() {
            if !self.draws_next(weight) {
                continue;
            }
            self.learn_and_keep(rows.slice(first, i), to);
            first = i + 1;
            self.note_weight(weight, rows.dim());
            let from = to.rows(rows.dim()).count();
            match self.take_drawn(row, weight, to) {
                Drawn::Learn => to.push(row, weight),
                Drawn::Exchanged => {}
                Drawn::HeldBack => continue,
            }
            self.keep(to.rows(rows.dim()).slice(from, from + 1));
        }
        self.learn_and_keep(rows.slice(first, rows.count()), to);
    }

    fn learn_and_keep(&mut self, rows: Rows, to: &mut RowBuffer) {
        to.extend(rows);
        self.keep(rows);
    }

    /// Counts the next row of the stream. Returns whether it is drawn for validation.
    fn draws_next(&mut self, weight: f64) -> bool {
        let index = self.seen;
        self.seen += 1;
        if let Some(fading) = &mut self.fading {
            fading.of_validation.age(fading.forgetting().rate() * weight);
        }
        self.holds_back && random(self.seed, index, VALIDATION).is_multiple_of(VALIDATION_SHARE)
    }

    /// Takes the last counted row, which is drawn for validation. If another row is to be learned instead, appends it to `out`.
    fn take_drawn(&mut self, row: &[f64], weight: f64, out: &mut RowBuffer) -> Drawn {
        let index = self.seen - 1;
        self.drawn += 1;
        if self.fading.is_some() {
            return self.take_drawn_fading(row, weight, index, out);
        }
        let validation = Arc::make_mut(&mut self.validation);
        if validation.len() < MAX_VALIDATION * row.len() {
            validation.extend_from_slice(row);
            self.hold_weight(weight, None);
            return Drawn::HeldBack;
        }
        let place = below(random(self.seed, index, PLACE), self.drawn) as usize;
        if place >= MAX_VALIDATION {
            return Drawn::Learn;
        }
        self.exchange(row, weight, place, Some(out));
        Drawn::Exchanged
    }

    /// Replaces a validation row. Appends the one that was held to `out`.
    fn exchange(&mut self, row: &[f64], weight: f64, place: usize, out: Option<&mut RowBuffer>) {
        let held_weight = self.hold_weight(weight, Some(place));
        let held = &mut Arc::make_mut(&mut self.validation)[place * row.len()..][..row.len()];
        if let Some(out) = out {
            out.push(held, held_weight);
        }
        held.copy_from_slice(row);
    }

    /// Appends the weight of a validation row, or sets the one at `place`. Returns the weight before.
    fn hold_weight(&mut self, weight: f64, place: Option<usize>) -> f64 {
        let Some(own) = &mut self.own_weights else { return 1.0 };
        let weights = Arc::make_mut(&mut own.of_validation);
        match place {
            Some(place) => std::mem::replace(&mut weights[place], weight),
            None => {
                weights.push(weight);
                weight
            }
        }
    }

    /// Offers learned rows to the reservoir.
    fn keep(&mut self, rows: Rows) {
        let dim = rows.dim();
        if self.most > 0 && self.fading.is_some() {
            return rows.iter().for_each(|(row, weight)| self.keep_fading(row, weight));
        }
        rows.weights().unwrap_or_default().iter().for_each(|&weight| self.note_weight(weight, dim));
        let index = self.learned;
        self.learned += rows.count() as u64;
        if let Some(own) = &mut self.own_weights {
            rows.iter().for_each(|(_, weight)| own.learned += weight);
        }
        if self.most == 0 {
            return;
        }
        let (fitting, others) = rows.split_at(self.most - self.held(dim));
        if !fitting.is_empty() {
            let reservoir = Arc::make_mut(&mut self.reservoir);
            fitting.iter().for_each(|(row, _)| reservoir.push(row));
            if let Some(own) = &mut self.own_weights {
                Arc::make_mut(&mut own.of_reservoir).extend(fitting.iter().map(|(_, weight)| weight));
            }
        }
        let index = index + fitting.count() as u64;
        for (index, (row, weight)) in (index..).zip(others.iter()) {
            let place = below(random(self.seed, index, RESERVOIR), index + 1) as usize;
            if place < self.most {
                Arc::make_mut(&mut self.reservoir).set(place, row);
                if let Some(own) = &mut self.own_weights {
                    Arc::make_mut(&mut own.of_reservoir)[place] = weight;
                }
            }
        }
    }

    /// The rows of the reservoir, one after the other.
    pub fn reservoir(&self, dim: usize) -> Cow<'_, [f64]> {
        self.reservoir_rows(0..self.held(dim), dim)
    }

    /// Some rows of the reservoir, one after the other.
    fn reservoir_rows(&self, rows: Range<usize>, dim: usize) -> Cow<'_, [f64]> {
        match self.reservoir.exact() {
            Some(values) => Cow::Borrowed(&values[rows.start * dim..rows.end * dim]),
            None => Cow::Owned(self.copied(rows, dim)),
        }
    }

    /// The rows of the reservoir, a few at a time, so that many are never in memory as doubles.
    pub(in crate::learn) fn reservoir_parts(&self, dim: usize) -> impl Iterator<Item = Cow<'_, [f64]>> {
        const PART: usize = 8192;
        let held = self.held(dim);
        (0..held).step_by(PART).map(move |from| self.reservoir_rows(from..held.min(from + PART), dim))
    }

    /// Every `step`-th row of the reservoir, one after the other.
    pub(in crate::learn) fn every_row(&self, step: usize, dim: usize) -> Vec<f64> {
        self.copied((0..self.held(dim)).step_by(step), dim)
    }

    /// The rows of the reservoir with these indices.
    pub(in crate::learn) fn copied(&self, rows: impl Iterator<Item = usize>, dim: usize) -> Vec<f64> {
        let mut values = Vec::new();
        rows.for_each(|i| self.reservoir.copy_row(i, dim, &mut values));
        values
    }

    /// How many numbers the reservoir has.
    pub(crate) fn reservoir_len(&self) -> usize {
        self.reservoir.len()
    }

    /// How many rows the reservoir has.
    pub(in crate::learn) fn held(&self, dim: usize) -> usize {
        self.reservoir.len() / dim
    }

    /// A shared reference to the reservoir. While it is held, a change of the reservoir copies all rows.
    pub(in crate::learn) fn shared_reservoir(&self) -> Arc<Table> {
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

    /// How many learned rows a row of the reservoir represents.
    pub(in crate::learn) fn rows_per_kept_row(&self, dim: usize) -> f64 {
        let held = self.held(dim).max(1) as f64;
        self.learned.saturating_add(self.unknown) as f64 / held
    }

    /// Whether the reservoir holds every learned row, or nearly all of the weight if rows lose weight.
    pub(in crate::learn) fn is_complete(&self) -> bool {
        let most_rows = |forgetting: Forgetting| AMPLE * forgetting.most_rows() / self.mean_weight();
        let ample = self.forgetting().map_or(f64::INFINITY, most_rows);
        (self.unknown == 0 || self.learned as f64 >= ample)
            && (self.learned <= self.most as u64 || self.most as f64 >= ample)
    }

    /// Whether the reservoir covers enough of the stream for a revision.
    pub(in crate::learn) fn may_revise(&self) -> bool {
        let most = self.forgetting().map_or(u64::MAX, |forgetting| forgetting.most_rows() as u64);
        self.most > 0 && self.learned > 0 && self.learned >= self.unknown.min(most)
    }

    /// The same without rows. A pass that resumes from it makes no revision until it has learned as many new rows.
    pub(crate) fn without_rows(&self) -> Self {
        let unknown = self.learned.saturating_add(self.unknown);
        let fading = self.fading.as_ref().map(|fading| Fading {
            of_reservoir: SampleWeights::default(),
            of_validation: SampleWeights::default(),
            ..*fading
        });
        KeptRows { fading, ..KeptRows::new(self.seed, self.most, self.holds_back).after_unknown(unknown) }
    }

    /// Whether this is valid: its counts agree, and it holds whole rows of `dim` numbers, none of them infinite.
    pub(crate) fn is_sound(&self, dim: usize) -> bool {
        let whole = |values: &[f64]| {
            values.len().is_multiple_of(dim) && values.iter().all(|value| !value.is_infinite())
        };
        let held = self.held(dim) as u64;
        let validation = (self.validation.len() / dim) as u64;
        let weighted = self.fading.as_ref().is_none_or(|fading| {
            fading.half_life > 0
                && fading.of_reservoir.is_sound(held as usize)
                && fading.of_validation.is_sound(validation as usize)
        });
        let own = self.own_weights.as_ref();
        weighted
            && own.is_none_or(|own| own.is_sound(held as usize, validation as usize))
            && self.reservoir.is_sound(dim)
            && whole(&self.validation)
            && held <= self.learned.min(self.most as u64)
            && validation <= (MAX_VALIDATION as u64).min(self.drawn)
            && self.drawn <= self.seen
            && self.learned.max(self.unknown).max(self.seen) <= 1 << 53
    }
}

/// The product of two weights of each row, if there are any.
fn product(ages: Option<Vec<f64>>, own: Option<&[f64]>) -> Option<Vec<f64>> {
    match (ages, own) {
        (None, own) => own.map(<[f64]>::to_vec),
        (ages, None) => ages,
        (Some(ages), Some(own)) => Some(ages.iter().zip(own).map(|(age, own)| age * own).collect()),
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

/// A number from 0 to below 1.
pub(super) fn uniform(random: u64) -> f64 {
    (random >> 11) as f64 * (-53f64).exp2()
}

/// A number below `n`, uniform to within 2⁻⁶⁴.
fn below(random: u64, n: u64) -> u64 {
    ((u128::from(random) * u128::from(n)) >> 64) as u64
}
