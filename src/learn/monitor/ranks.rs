//! The distribution of a pass's log-densities in bounded memory, from which new rows get a rank.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::learn::pass::state::as_whole_number;
use crate::learn::structure::packed;

/// A centroid has at most this fraction of the rows below it, so that low ranks have a small relative error. The lowest 50
/// values are kept one by one.
const RELATIVE: f64 = 0.04;
/// A centroid has at most this fraction of all rows.
const ABSOLUTE: f64 = 0.005;
/// Values that are collected before they are added to the centroids.
const BUFFER: usize = 512;
/// With a half-life of the pass, a value has half its weight after this many of them. While data drift evenly, rows have the same
/// distribution of scores for long, and the more rows count, the more exact it is.
const HALF_LIVES: u64 = 4;
/// With a half-life, values are added after this part of it, so that those added together have nearly the same weight.
const PART_OF_HALF_LIFE: u64 = 16;
/// With a half-life, a centroid that counts for fewer rows is left out.
pub(in crate::learn) const NEGLIGIBLE_ROWS: f64 = 1e-3;
/// More rows than any stream has.
const MAX_ROWS: f64 = 1e30;
/// More centroids than any stream makes: a file with more is damaged.
const MAX_CENTROIDS: usize = 1 << 16;

/// The distribution of the log-densities of rows: a quantile sketch of a few kilobytes.
///
/// Sorted values are united into centroids, each a mean and a number of rows. The fewer rows are below a centroid, the fewer
/// rows it unites, so that the rank of an anomaly is more exact than that of a usual row. A value follows from the values
/// before it alone, and there are no random choices, so batching and resuming change no bit.
///
/// ```
/// use gmm_bmm::scores::ScoreRanks;
/// let mut ranks = ScoreRanks::default();
/// (0..1000).for_each(|i| ranks.push(f64::from(i * 7919 % 1000)));
/// let rank = |value: f64| ranks.table().rank(value).unwrap();
/// assert_eq!((rank(-1.0), rank(5.0), rank(1e9)), (0.0, 0.005, 1.0));
/// assert!((rank(500.0) - 0.5).abs() < 0.01);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RanksRecord", into = "RanksRecord")]
pub struct ScoreRanks {
    /// Sorted by their means.
    centroids: Vec<Centroid>,
    /// Values that are in no centroid yet, as integers of the same order, which are faster to sort.
    buffer: Vec<i64>,
    /// The same of rows with another weight than 1.
    weighted: Vec<Centroid>,
    /// The number of further rows after which a row has half its weight, if rows lose weight.
    half_life: Option<u64>,
    /// Rows without a value since values were last added to the centroids.
    others: f64,
    /// Empty between two calls; kept for its memory.
    merged: Vec<Centroid>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Centroid {
    mean: f64,
    rows: f64,
}

/// How a sketch is written: means and numbers of rows in turn.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RanksRecord {
    #[serde(with = "packed")]
    centroids: Arc<Vec<f64>>,
    #[serde(with = "packed")]
    buffer: Arc<Vec<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    half_life: Option<u64>,
    #[serde(default, skip_serializing_if = "is_zero", serialize_with = "as_whole_number")]
    others: f64,
    /// Values and weights in turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    weighted: Vec<f64>,
}

fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

fn numbers(centroids: &[Centroid]) -> impl Iterator<Item = f64> {
    centroids.iter().flat_map(|centroid| [centroid.mean, centroid.rows])
}

fn centroids(numbers: &[f64]) -> Vec<Centroid> {
    numbers.chunks_exact(2).map(|pair| Centroid { mean: pair[0], rows: pair[1] }).collect()
}

impl From<ScoreRanks> for RanksRecord {
    fn from(ranks: ScoreRanks) -> Self {
        RanksRecord {
            centroids: Arc::new(numbers(&ranks.centroids).collect()),
            weighted: numbers(&ranks.weighted).collect(),
            buffer: Arc::new(ranks.buffer.into_iter().map(value).collect()),
            half_life: ranks.half_life,
            others: ranks.others,
        }
    }
}

impl TryFrom<RanksRecord> for ScoreRanks {
    type Error = String;

    fn try_from(record: RanksRecord) -> Result<Self, String> {
        let (centroids, weighted) = (centroids(&record.centroids), centroids(&record.weighted));
        let is_counted = |c: &Centroid| c.mean.is_finite() && c.rows > 0.0 && c.rows <= MAX_ROWS;
        let buffer: Vec<i64> = record.buffer.iter().map(|&value| ordered(value)).collect();
        let is_sound = record.centroids.len().is_multiple_of(2)
            && record.weighted.len().is_multiple_of(2)
            && centroids.len() <= MAX_CENTROIDS
            && buffer.len() + weighted.len() < BUFFER
            && centroids.is_sorted_by(|a, b| a.mean <= b.mean)
            && centroids.iter().chain(&weighted).all(is_counted)
            && record.others >= 0.0
            && record.others <= MAX_ROWS
            && record.buffer.iter().all(|value| value.is_finite());
        if !is_sound {
            return Err("the distribution of its log-densities is broken".into());
        }
        let RanksRecord { half_life, others, .. } = record;
        Ok(ScoreRanks { centroids, buffer, weighted, half_life, others, merged: Vec::new() })
    }
}

impl ScoreRanks {
    /// Adds the log-density of a row. A value that is not finite is left out.
    pub fn push(&mut self, log_density: f64) {
        if !log_density.is_finite() {
            return;
        }
        if self.buffer.capacity() < BUFFER {
            self.buffer.reserve_exact(BUFFER - self.buffer.len());
        }
        self.buffer.push(ordered(log_density));
        self.unite_if_full();
    }

    /// [`ScoreRanks::push`] for a row that counts as `weight` rows.
    pub(crate) fn push_weighted(&mut self, log_density: f64, weight: f64) {
        if weight == 1.0 {
            self.push(log_density);
        } else if log_density.is_finite() {
            self.weighted.push(Centroid { mean: log_density, rows: weight });
            self.unite_if_full();
        }
    }

    fn unite_if_full(&mut self) {
        if self.buffer.len() + self.weighted.len() >= self.most_buffered() {
            self.unite(&[]);
        }
    }

    fn most_buffered(&self) -> usize {
        self.half_life
            .map_or(BUFFER, |half_life| (half_life / PART_OF_HALF_LIFE).clamp(1, BUFFER as u64) as usize)
    }

    /// The half-life, if rows lose weight.
    pub(crate) fn half_life(&self) -> Option<u64> {
        self.half_life
    }

    /// Counts rows whose log-density is not added.
    pub(crate) fn skip(&mut self, rows: f64) {
        self.others += rows;
    }

    /// Sets the half-life of the pass, of which this one is [`HALF_LIVES`]. The rows so far count as those of an endless stream, if they
    /// are more.
    pub(crate) fn set_half_life(&mut self, half_life: Option<u64>) {
        self.unite(&[]);
        let half_life = half_life.map(|rows| rows.saturating_mul(HALF_LIVES));
        self.half_life = half_life;
        let Some(half_life) = half_life else { return };
        let factor = half_life as f64 / std::f64::consts::LN_2 / self.rows();
        if factor < 1.0 {
            self.fade(factor);
        }
    }

    /// Adds a number to all log-densities.
    pub(crate) fn shift(&mut self, by: f64) {
        self.unite(&[]);
        self.centroids.iter_mut().for_each(|centroid| centroid.mean += by);
    }

    /// Reduces the weight of the rows in centroids.
    fn fade(&mut self, factor: f64) {
        self.centroids.iter_mut().for_each(|centroid| centroid.rows *= factor);
        self.centroids.retain(|centroid| centroid.rows >= NEGLIGIBLE_ROWS);
    }

    /// Adds log-densities that count as `rows` rows each.
    pub(crate) fn extend(&mut self, log_densities: impl IntoIterator<Item = f64>, rows: f64) {
        self.extend_weighted(log_densities.into_iter().map(|value| (value, rows.max(1.0))));
    }

    /// Adds log-densities, each with the number of rows that it counts for.
    pub(crate) fn extend_weighted(&mut self, log_densities: impl IntoIterator<Item = (f64, f64)>) {
        let counts = |(value, rows): &(f64, f64)| value.is_finite() && *rows > 0.0;
        let counted = log_densities.into_iter().filter(counts);
        let mut added: Vec<Centroid> = counted.map(|(mean, rows)| Centroid { mean, rows }).collect();
        added.sort_unstable_by(|a, b| a.mean.total_cmp(&b.mean));
        self.unite(&added);
    }

    /// Adds the rows of another sketch.
    pub(crate) fn merge(&mut self, other: &ScoreRanks) {
        self.unite(&other.centroids);
        other.weighted.iter().for_each(|own| self.push_weighted(own.mean, own.rows));
        other.buffer.iter().for_each(|&single| self.push(value(single)));
    }

    /// The sketch of all parts; `None` if one has none.
    pub(crate) fn merged<'a>(parts: impl Iterator<Item = Option<&'a ScoreRanks>>) -> Option<Self> {
        let mut all = ScoreRanks::default();
        for part in parts {
            all.merge(part?);
        }
        Some(all)
    }

    /// How many rows there are.
    pub fn rows(&self) -> f64 {
        let weighted: f64 = self.weighted.iter().map(|own| own.rows).sum();
        self.centroids.iter().map(|centroid| centroid.rows).sum::<f64>() + weighted + self.buffer.len() as f64
    }

    /// The mean and the standard deviation of the log-densities; `None` without rows.
    pub(crate) fn mean_and_deviation(&self) -> Option<(f64, f64)> {
        let singles = self.buffer.iter().map(|&single| Centroid { mean: value(single), rows: 1.0 });
        let all = || self.centroids.iter().chain(&self.weighted).copied().chain(singles.clone());
        let (rows, mut mean) = (self.rows(), 0.0);
        if rows <= 0.0 {
            return None;
        }
        all().for_each(|own| mean += own.mean * (own.rows / rows));
        let variance: f64 = all().map(|own| (own.mean - mean).powi(2) * (own.rows / rows)).sum();
        Some((mean, variance.sqrt()))
    }

    /// The table that ranks are looked up in.
    pub fn table(&self) -> RankTable {
        let mut whole = self.clone();
        whole.unite(&[]);
        let mut below = 0.0;
        let before = whole.centroids.iter().map(|centroid| {
            let before = below;
            below += centroid.rows;
            before
        });
        let before = before.collect();
        RankTable { centroids: whole.centroids, before, rows: below }
    }

    /// Unites the centroids with the buffer and with others, which are sorted.
    fn unite(&mut self, others: &[Centroid]) {
        if !self.weighted.is_empty() {
            let mut weighted = std::mem::take(&mut self.weighted);
            if self.half_life.is_some() {
                self.others += weighted.iter().map(|own| own.rows).sum::<f64>();
            }
            weighted.extend_from_slice(others);
            weighted.sort_by(|a, b| a.mean.total_cmp(&b.mean));
            self.unite(&weighted);
            weighted.clear();
            self.weighted = weighted;
            return;
        }
        if let Some(half_life) = self.half_life {
            let rows = self.others + self.buffer.len() as f64;
            self.fade((-rows / half_life as f64).exp2());
            self.others = 0.0;
        }
        self.buffer.sort_unstable();
        let total = self.rows() + others.iter().map(|centroid| centroid.rows).sum::<f64>();
        let ScoreRanks { centroids, buffer, merged, .. } = self;
        merged.clear();
        let mut united = United { centroids: merged, below: 0.0, most: ABSOLUTE * total };
        let (mut own, mut others) = (centroids.iter().peekable(), others.iter().peekable());
        for single in buffer.iter().map(|&single| Centroid { mean: value(single), rows: 1.0 }) {
            united.add_up_to(single.mean, &mut own, &mut others);
            united.add(single);
        }
        united.add_up_to(f64::INFINITY, &mut own, &mut others);
        buffer.clear();
        std::mem::swap(centroids, merged);
        merged.clear();
    }
}

/// Centroids while they are united, in the order of their means.
struct United<'a> {
    centroids: &'a mut Vec<Centroid>,
    /// Rows below the last one.
    below: f64,
    /// The most rows of a centroid.
    most: f64,
}

type Sorted<'a> = std::iter::Peekable<std::slice::Iter<'a, Centroid>>;

impl United<'_> {
    fn add(&mut self, next: Centroid) {
        match self.centroids.last_mut() {
            Some(last) if last.rows + next.rows <= (RELATIVE * self.below).min(self.most) => {
                last.rows += next.rows;
                // The mean stays between both, also with rounding.
                last.mean = (last.mean + (next.mean - last.mean) * (next.rows / last.rows)).min(next.mean);
            }
            last => {
                self.below += last.map_or(0.0, |last| last.rows);
                self.centroids.push(next);
            }
        }
    }

    /// Adds the centroids of two sorted lists with means up to `most`.
    fn add_up_to(&mut self, most: f64, a: &mut Sorted, b: &mut Sorted) {
        loop {
            let head = |centroids: &mut Sorted| centroids.peek().map_or(f64::INFINITY, |next| next.mean);
            let (of_a, of_b) = (head(a), head(b));
            if of_a.min(of_b) > most {
                return;
            }
            let next = if of_a <= of_b { a.next() } else { b.next() };
            let Some(next) = next else { return };
            self.add(*next);
        }
    }
}

/// An integer for each finite number, in the same order.
fn ordered(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// The number of an integer that [`ordered`] made.
fn value(ordered: i64) -> f64 {
    f64::from_bits((ordered ^ (((ordered >> 63) as u64) >> 1) as i64) as u64)
}

/// Ranks of log-densities among those of a [`ScoreRanks`].
#[derive(Debug, Clone)]
pub struct RankTable {
    centroids: Vec<Centroid>,
    /// Rows before each centroid.
    before: Vec<f64>,
    rows: f64,
}

impl RankTable {
    /// The distribution itself: log-densities in ascending order, and how many rows each stands for.
    pub fn centroids(&self) -> impl Iterator<Item = (f64, f64)> {
        self.centroids.iter().map(|centroid| (centroid.mean, centroid.rows))
    }

    /// The log-density below which this fraction of the rows is; `None` if there are no rows.
    pub fn value_at(&self, share: f64) -> Option<f64> {
        let place = self.before.partition_point(|&before| before <= share * self.rows).checked_sub(1)?;
        Some(self.centroids[place].mean)
    }

    /// The fraction of the rows with a lower log-density; `None` if there are no rows.
    pub fn rank(&self, log_density: f64) -> Option<f64> {
        if self.rows == 0.0 || log_density.is_nan() {
            return None;
        }
        let place = self.centroids.partition_point(|centroid| centroid.mean < log_density);
        let Some(last) = place.checked_sub(1) else { return Some(0.0) };
        // Half of the rows of a centroid are above its mean, unless it is a single row.
        let half = |i: usize| if self.centroids[i].rows <= 1.0 { 0.0 } else { 0.5 * self.centroids[i].rows };
        let rows = match self.centroids.get(place) {
            None => self.rows,
            Some(next) => {
                let own = self.centroids[last];
                let part = (log_density - own.mean) / (next.mean - own.mean);
                self.before[place] - half(last) + part * (half(last) + half(place))
            }
        };
        Some(rows / self.rows)
    }
}

#[cfg(test)]
mod tests;
