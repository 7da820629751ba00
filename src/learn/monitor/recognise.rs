//! Recognising rows that were learned before, by a sample of them.

use serde::{Deserialize, Serialize};

use crate::hash::Fingerprint;
use crate::hash::mix_bits;
use crate::learn::{Algorithm, Shard};

/// Keys of a uniform sample of a stream's rows, by which another pass recognises the rows.
///
/// The sample depends on the positions of the rows alone, so dividing the stream into runs does not change it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowSample {
    /// Positions of the rows in the stream, from 0.
    places: Vec<u64>,
    /// Their keys.
    keys: Vec<Fingerprint>,
}

impl RowSample {
    /// The size of a sample.
    pub const MAX: usize = 64;

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The keys of the rows.
    pub fn keys(&self) -> &[Fingerprint] {
        &self.keys
    }

    /// Whether every position has its key, and there are at most [`RowSample::MAX`].
    pub(crate) fn is_sound(&self) -> bool {
        self.places.len() == self.keys.len() && self.places.len() <= Self::MAX
    }
}

/// Draws a [`RowSample`]: the rows whose positions have the lowest hashes.
#[derive(Debug, Clone)]
pub struct RowSampler {
    sample: RowSample,
    keys: RowKeys,
    /// Rows with this hash or a higher one are not kept.
    limit: u64,
}

impl RowSampler {
    /// Continues a sample of rows with `dim` columns, which may be empty.
    pub fn new(sample: RowSample, dim: usize) -> Self {
        let mut sampler = RowSampler { sample, keys: RowKeys::new(dim), limit: u64::MAX };
        sampler.update_limit();
        sampler
    }

    /// Offers the row at a position of the stream, from 0.
    pub fn offer(&mut self, place: u64, row: &[f64]) {
        if mix_bits(place) >= self.limit {
            return;
        }
        let RowSample { places, keys } = &mut self.sample;
        if places.len() >= RowSample::MAX
            && let Some(last) = (0..places.len()).max_by_key(|&i| mix_bits(places[i]))
        {
            places.remove(last);
            keys.remove(last);
        }
        places.push(place);
        keys.push(self.keys.of(row));
        self.update_limit();
    }

    fn update_limit(&mut self) {
        let places = &self.sample.places;
        let highest = places.iter().map(|&place| mix_bits(place)).max();
        self.limit = highest.filter(|_| places.len() >= RowSample::MAX).unwrap_or(u64::MAX);
    }

    /// The sample so far.
    pub fn sample(&self) -> &RowSample {
        &self.sample
    }
}

/// Finds the rows of a sample in a stream.
#[derive(Debug, Clone)]
pub struct RowWatch {
    /// The keys of the sample, sorted.
    wanted: Vec<Fingerprint>,
    /// The keys found so far, sorted.
    found: Vec<Fingerprint>,
    keys: RowKeys,
    /// A bit for the leading bits of each key, which rules out most rows at once.
    filter: Box<[u64; 64]>,
}

impl RowWatch {
    /// Looks for the keys of a sample in rows with `dim` columns. Some may have been found before.
    pub fn new(wanted: &[Fingerprint], found: &[Fingerprint], dim: usize) -> Self {
        let sorted = |keys: &[Fingerprint]| {
            let mut keys = keys.to_vec();
            keys.sort_unstable();
            keys.dedup();
            keys
        };
        let mut filter = Box::new([0; 64]);
        for key in wanted {
            let (word, bit) = place_in_filter(*key);
            filter[word] |= bit;
        }
        RowWatch { wanted: sorted(wanted), found: sorted(found), keys: RowKeys::new(dim), filter }
    }

    /// Checks a row.
    pub fn observe(&mut self, row: &[f64]) {
        let key = self.keys.of(row);
        let (word, bit) = place_in_filter(key);
        if self.filter[word] & bit != 0
            && self.wanted.binary_search(&key).is_ok()
            && let Err(place) = self.found.binary_search(&key)
        {
            self.found.insert(place, key);
        }
    }

    /// The keys found so far.
    pub fn found(&self) -> &[Fingerprint] {
        &self.found
    }
}

/// What a pass records about its rows, so that they are recognised later.
#[derive(Debug, Clone)]
pub(in crate::learn) enum Recognition {
    /// The model can be a common prior, so it keeps the keys of some rows.
    Prior(RowSampler),
    /// A shard looks for the rows of its prior, and has a fingerprint of its own rows.
    Shard(Box<Shard>, RowWatch),
    /// Nothing.
    Off,
}

impl Recognition {
    /// For a pass over rows with `dim` columns. `sample` is that of the rows learned in earlier runs.
    pub fn new(algorithm: &Algorithm, shard: Option<Shard>, sample: RowSample, dim: usize) -> Self {
        match (shard, algorithm) {
            (Some(shard), _) => {
                let watch = RowWatch::new(&shard.lineage.prior_sample, &shard.lineage.prior_repeated, dim);
                Recognition::Shard(Box::new(shard), watch)
            }
            (None, Algorithm::Obmm(_)) => Recognition::Prior(RowSampler::new(sample, dim)),
            (None, _) => Recognition::Off,
        }
    }

    /// Records rows that follow `before` others.
    pub fn observe<'a>(&mut self, before: u64, rows: impl Iterator<Item = &'a [f64]>) {
        match self {
            Recognition::Prior(sampler) => (before..).zip(rows).for_each(|(i, row)| sampler.offer(i, row)),
            Recognition::Shard(shard, watch) => rows.for_each(|row| {
                shard.rows.add_row(row);
                watch.observe(row);
            }),
            Recognition::Off => {}
        }
    }

    /// The shard so far, if the pass learns one.
    pub fn shard(&self) -> Option<Shard> {
        let Recognition::Shard(shard, watch) = self else { return None };
        let mut shard = Shard::clone(shard);
        shard.lineage.prior_repeated = watch.found().to_vec();
        Some(shard)
    }

    /// The sample of the rows so far.
    pub fn sample(&self) -> RowSample {
        match self {
            Recognition::Prior(sampler) => sampler.sample().clone(),
            Recognition::Shard(..) | Recognition::Off => RowSample::default(),
        }
    }
}

fn place_in_filter(key: Fingerprint) -> (usize, u64) {
    let bits = key.bits();
    ((bits >> 58) as usize, 1 << ((bits >> 52) & 63))
}

/// Whether finding `found` of `wanted` sampled rows shows that rows were learned twice: at least a quarter of them. A few
/// can be equal by chance.
pub fn are_repeated(found: usize, wanted: usize) -> bool {
    found > 0 && 4 * found >= wanted
}

/// Computes the keys of rows: the sum of the values' bits, each times an odd number of its column. This is faster than a
/// [`Fingerprint`] of the row.
#[derive(Debug, Clone)]
pub(in crate::learn) struct RowKeys {
    times: Vec<u64>,
}

impl RowKeys {
    pub fn new(dim: usize) -> Self {
        RowKeys { times: (0..dim as u64).map(|column| mix_bits(column) | 1).collect() }
    }

    pub fn of(&self, row: &[f64]) -> Fingerprint {
        let add = |sum: u64, (value, times): (&f64, &u64)| {
            let bits = value.to_bits();
            // The last bits of round numbers are zeros.
            sum.wrapping_add((bits ^ (bits >> 32)).wrapping_mul(*times))
        };
        Fingerprint::of_bits(mix_bits(row.iter().zip(&self.times).fold(0, add)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(i: u64) -> [f64; 3] {
        [i as f64, (i as f64 * 0.37).sin(), 0.25 * (i % 8) as f64]
    }

    fn sample_of(from: u64, to: u64) -> RowSample {
        let mut sampler = RowSampler::new(RowSample::default(), 3);
        (from..to).for_each(|i| sampler.offer(i - from, &row(i)));
        sampler.sample().clone()
    }

    #[test]
    fn a_sample_is_spread_over_all_rows_wherever_the_stream_is_cut() {
        let whole = sample_of(0, 10_000);
        assert!(whole.is_sound() && whole.places.len() == RowSample::MAX);
        let late = whole.places.iter().filter(|&&place| place >= 5000).count();
        assert!((20..=44).contains(&late), "{late} of 64 in the second half");
        let first = sample_of(0, 3333);
        let mut sampler = RowSampler::new(first, 3);
        (3333..10_000).for_each(|i| sampler.offer(i, &row(i)));
        assert_eq!(sampler.sample(), &whole);
        assert_eq!(sample_of(0, 10).places.len(), 10);
    }

    #[test]
    fn rows_of_the_sample_are_found_in_any_order_and_others_are_not() {
        let sample = sample_of(0, 10_000);
        let found = |rows: &mut dyn Iterator<Item = u64>| {
            let mut watch = RowWatch::new(sample.keys(), &[], 3);
            rows.for_each(|i| watch.observe(&row(i)));
            watch.found().len()
        };
        assert_eq!(found(&mut (0..10_000).rev()), RowSample::MAX);
        assert_eq!(found(&mut (10_000..200_000)), 0);
        let half = found(&mut (0..5000));
        assert!((20..=44).contains(&half) && are_repeated(half, 64), "{half}");
        // Two streams with a part each find as much as one with all.
        let mut first = RowWatch::new(sample.keys(), &[], 3);
        (0..5000).for_each(|i| first.observe(&row(i)));
        let mut second = RowWatch::new(sample.keys(), first.found(), 3);
        (0..10_000).for_each(|i| second.observe(&row(i)));
        assert_eq!(second.found().len(), RowSample::MAX);
    }

    #[test]
    fn a_quarter_is_a_sign() {
        assert!(are_repeated(16, 64) && !are_repeated(15, 64) && !are_repeated(0, 0) && are_repeated(1, 1));
    }
}
