//! Noticing rows that were learned before, wherever in the past.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::learn::Finding;
use crate::learn::monitor::recognise::RowKeys;

/// Rows of which the keys are kept.
pub(crate) const MAX_KEYS: usize = 4096;
/// Entries that are collected before they are added to the others. Adding takes time in proportion to all entries.
const RECENT: usize = 512;
/// Distances between repeated rows that are counted at the same time.
const MAX_DISTANCES: usize = 16;
/// Rows that come again after fewer others are the values of sensors that hold them for some rows.
const MIN_DISTANCE: u64 = 100;
/// Rows are reported as repeated if chance explains their number in fewer than this fraction of streams.
const CHANCE: f64 = 1e-4;

/// Keys of a sample of all distinct rows of a stream, and where each row was first: those with the lowest keys.
///
/// A row has the same key whenever it comes, so the second time that a file is learned, those of its rows that are in the
/// sample are found there. Rows that come again in the same order are all found at the same distance, which single rows that
/// are equal by chance are not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SeenRows {
    /// Each key and the position of its row, from 0. Sorted by key.
    entries: Vec<(u64, u64)>,
}

impl SeenRows {
    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether it can be a sample of `rows` rows.
    pub(crate) fn is_sound(&self, rows: u64) -> bool {
        self.entries.len() <= MAX_KEYS
            && self.entries.is_sorted_by(|a, b| a.0 < b.0)
            && self.entries.iter().all(|(_, place)| *place < rows)
    }

    /// The sample of streams that follow each other, given each with its number of rows.
    pub(crate) fn merged<'a>(parts: impl IntoIterator<Item = (&'a SeenRows, u64)>) -> Self {
        let (mut entries, mut before) = (Vec::new(), 0);
        for (part, rows) in parts {
            entries.extend(part.entries.iter().map(|&(key, place)| (key, before + place)));
            before += rows;
        }
        let mut merged = SeenRows::default();
        merged.add(&entries);
        merged
    }

    /// Adds entries. Of equal keys the one with the first position stays.
    fn add(&mut self, more: &[(u64, u64)]) {
        self.entries.extend_from_slice(more);
        // Sorting finds the two sorted runs, so it is a merge.
        self.entries.sort();
        self.entries.dedup_by_key(|entry| entry.0);
        self.entries.truncate(MAX_KEYS);
    }
}

impl From<SeenRows> for String {
    fn from(seen: SeenRows) -> String {
        let bytes = |(key, place): &(u64, u64)| [key.to_le_bytes(), place.to_le_bytes()].concat();
        STANDARD.encode(seen.entries.iter().flat_map(bytes).collect::<Vec<u8>>())
    }
}

impl TryFrom<String> for SeenRows {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let bytes = STANDARD.decode(text).map_err(|error| error.to_string())?;
        if !bytes.len().is_multiple_of(16) {
            return Err("the keys of its rows are not whole".into());
        }
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let entries = bytes.chunks_exact(16).map(|entry| (number(&entry[..8]), number(&entry[8..])));
        Ok(SeenRows { entries: entries.collect() })
    }
}

/// Keeps a [`SeenRows`] while rows arrive, and counts those that were there before.
#[derive(Debug, Clone)]
pub(in crate::learn) struct SeenWatch {
    seen: SeenRows,
    /// Entries that are not among the others yet, sorted by key. Inserting them there one by one would move many others.
    recent: Vec<(u64, u64)>,
    keys: RowKeys,
    /// The key of the last row. A sensor that holds its value gives equal rows, of which only the first counts.
    last: u64,
    /// Rows of this run that were found.
    found: u64,
    /// The distances at which rows of this run were found, the latest last.
    distances: Vec<Distance>,
}

/// Rows that were found at one distance from where they first were.
#[derive(Debug, Clone)]
struct Distance {
    rows: u64,
    found: u32,
    first: u64,
    last: u64,
}

impl SeenWatch {
    /// Continues a sample of rows with `dim` columns, which may be empty.
    pub fn new(seen: SeenRows, dim: usize) -> Self {
        SeenWatch {
            seen,
            recent: Vec::new(),
            keys: RowKeys::new(dim),
            last: 0,
            found: 0,
            distances: Vec::new(),
        }
    }

    /// The sample of the rows so far.
    pub fn seen(&self) -> SeenRows {
        let mut whole = self.seen.clone();
        whole.add(&self.recent);
        whole
    }

    /// Records rows that follow `before` others.
    pub fn observe<'a>(&mut self, before: u64, rows: impl Iterator<Item = &'a [f64]>) {
        for (place, row) in (before..).zip(rows) {
            let key = self.keys.of(row).bits();
            if key <= self.limit() && key != self.last {
                self.record(key, place);
            }
            self.last = key;
        }
    }

    /// Rows with a higher key are not in the sample.
    fn limit(&self) -> u64 {
        let last = self.seen.entries.last().filter(|_| self.seen.entries.len() >= MAX_KEYS);
        last.map_or(u64::MAX, |(key, _)| *key)
    }

    fn record(&mut self, key: u64, place: u64) {
        let find = |entries: &[(u64, u64)]| entries.binary_search_by_key(&key, |entry| entry.0);
        if let Ok(at) = find(&self.seen.entries) {
            return self.count(place - self.seen.entries[at].1, place);
        }
        match find(&self.recent) {
            Ok(at) => return self.count(place - self.recent[at].1, place),
            Err(at) => self.recent.insert(at, (key, place)),
        }
        if self.recent.len() == RECENT {
            self.seen.add(&self.recent);
            self.recent.clear();
        }
    }

    fn count(&mut self, rows: u64, place: u64) {
        if rows < MIN_DISTANCE {
            return;
        }
        self.found += 1;
        // Rows that come again in one run span at most their distance. Rows at a short distance over a long span are values that
        // a sensor holds for several rows.
        let is_same_run = |distance: &Distance| distance.rows == rows && place - distance.first < rows;
        let known = self.distances.iter().position(is_same_run);
        let mut distance = match known {
            Some(at) => self.distances.remove(at),
            None => Distance { rows, found: 0, first: place, last: place },
        };
        distance.found += 1;
        distance.last = place;
        if self.distances.len() == MAX_DISTANCES {
            // The oldest one that shows nothing yet.
            let oldest = self.distances.iter().position(|distance| !self.shows_repetition(distance));
            self.distances.remove(oldest.unwrap_or(0));
        }
        self.distances.push(distance);
    }

    /// Whether more rows were found at a distance than can be chance. The rows in the sample are at as many places, so
    /// another row is at the same distance with a probability of about one in the size of the sample.
    fn shows_repetition(&self, distance: &Distance) -> bool {
        let places = (self.seen.entries.len() + self.recent.len()) as f64;
        self.found as f64 * places.powi(1 - distance.found as i32) < CHANCE
    }

    /// The rows of this run that were learned before: a finding for each run of earlier rows, however often it came again.
    pub fn findings(&self) -> Vec<Finding> {
        let mut repeated: Vec<&Distance> =
            self.distances.iter().filter(|distance| self.shows_repetition(distance)).collect();
        repeated.sort_by_key(|distance| distance.first);
        let mut runs: Vec<(Distance, u64)> = Vec::new();
        for new in repeated {
            match runs.iter_mut().find(|(run, _)| run.has_rows_of(new)) {
                Some((_, rows)) => *rows += new.span(),
                None => runs.push((new.clone(), new.span())),
            }
        }
        let finding = |(run, rows): (Distance, u64)| Finding::RowsLearnedBefore {
            rows,
            from: run.first + 1,
            before: run.first - run.rows + 1,
        };
        runs.into_iter().map(finding).collect()
    }
}

impl Distance {
    /// Rows from the first to the last one found.
    fn span(&self) -> u64 {
        self.last - self.first + 1
    }

    /// Whether both found some of the same earlier rows.
    fn has_rows_of(&self, other: &Distance) -> bool {
        let earlier = |own: &Distance| own.first - own.rows..=own.last - own.rows;
        let (own, other) = (earlier(self), earlier(other));
        own.start() <= other.end() && other.start() <= own.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(i: u64) -> [f64; 2] {
        [(i as f64 * 0.7).sin(), i as f64]
    }

    fn watch(watch: &mut SeenWatch, before: u64, rows: impl Iterator<Item = u64>) {
        let rows: Vec<[f64; 2]> = rows.map(row).collect();
        watch.observe(before, rows.iter().map(|row| row.as_slice()));
    }

    fn resumed(watch: &SeenWatch) -> SeenWatch {
        let text = serde_json::to_string(&watch.seen()).unwrap();
        SeenWatch::new(serde_json::from_str(&text).unwrap(), 2)
    }

    #[test]
    fn a_day_is_recognised_after_hundreds_of_others_wherever_it_was() {
        const DAY: u64 = 1000;
        let mut all = SeenWatch::new(SeenRows::default(), 2);
        watch(&mut all, 0, 0..300 * DAY);
        assert!(all.findings().is_empty() && all.seen().is_sound(300 * DAY));
        for day in [0, 7, 150, 298, 299] {
            let mut again = resumed(&all);
            watch(&mut again, 300 * DAY, day * DAY..(day + 1) * DAY);
            let found = again.findings();
            let [Finding::RowsLearnedBefore { rows, from, before }] = found.as_slice() else {
                panic!("day {day}: {found:?}")
            };
            assert!(*rows > DAY / 3 && *rows <= DAY, "{found:?}");
            assert_eq!(from - before, (300 - day) * DAY);
        }
        let mut new = resumed(&all);
        watch(&mut new, 300 * DAY, 300 * DAY..310 * DAY);
        assert!(new.findings().is_empty());
    }

    #[test]
    fn a_file_is_found_in_the_middle_of_a_longer_run_and_in_merged_parts() {
        let mut run = SeenWatch::new(SeenRows::default(), 2);
        watch(&mut run, 0, (0..5000).chain(1000..1500).chain(5000..6000));
        let finding = |rows, from, before| Finding::RowsLearnedBefore { rows, from, before };
        let found = run.findings();
        let [Finding::RowsLearnedBefore { rows, from, before }] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert!(*rows > 450 && *rows <= 500 && from - before == 4000, "{found:?}");
        let part = |from: u64, to: u64| {
            let mut part = SeenWatch::new(SeenRows::default(), 2);
            watch(&mut part, 0, from..to);
            part.seen()
        };
        let merged = SeenRows::merged([(&part(0, 1000), 1000), (&part(1000, 1800), 800)]);
        let mut after = SeenWatch::new(merged, 2);
        watch(&mut after, 1800, 1200..1700);
        assert_eq!(after.findings(), [finding(500, 1801, 1201)]);
    }

    #[test]
    fn rows_that_are_equal_by_chance_are_not_a_file_that_is_learned_again() {
        // Few values, in no order: nearly every row was there before.
        for values in [1, 2, 10, 100, 3000] {
            let mut watch = SeenWatch::new(SeenRows::default(), 1);
            let value = |i: u64| [(crate::hash::mix_bits(i) % values) as f64];
            let rows: Vec<[f64; 1]> = (0..100_000).map(value).collect();
            watch.observe(0, rows.iter().map(|row| row.as_slice()));
            assert!(watch.findings().is_empty(), "{values} values: {:?}", watch.findings());
        }
        // A sensor that hangs.
        let mut watch = SeenWatch::new(SeenRows::default(), 1);
        let rows: Vec<[f64; 1]> = (0..5000u32).map(|i| [f64::from(i.min(4000))]).collect();
        watch.observe(0, rows.iter().map(|row| row.as_slice()));
        assert!(watch.findings().is_empty());
        // Sensors that hold each value for some rows: one, and two in turns.
        for (hold, sensors) in [(10, 1), (2, 1), (100, 1), (10, 2), (7, 5)] {
            let mut watch = SeenWatch::new(SeenRows::default(), 2);
            let held = |i: u64| row(i / (hold * sensors) * sensors + i % sensors);
            let rows: Vec<[f64; 2]> = (0..50_000).map(held).collect();
            watch.observe(0, rows.iter().map(|row| row.as_slice()));
            assert!(watch.findings().is_empty(), "{hold} rows, {sensors} sensors: {:?}", watch.findings());
            // The file is still recognised.
            let mut again = resumed(&watch);
            again.observe(50_000, rows.iter().map(|row| row.as_slice()));
            let found = again.findings();
            assert!(
                matches!(found.as_slice(), [Finding::RowsLearnedBefore { before: ..200, .. }]),
                "{found:?}"
            );
        }
    }

    #[test]
    fn a_cycle_that_is_repeated_exactly_gives_one_finding() {
        let mut run = SeenWatch::new(SeenRows::default(), 2);
        watch(&mut run, 0, (0..40).flat_map(|_| 0..1440));
        assert_eq!(run.findings().len(), 1, "{:?}", run.findings());
    }

    #[test]
    fn a_broken_sample_is_refused() {
        assert!(SeenRows::try_from("AAAA".to_string()).is_err());
        assert!(SeenRows::try_from("!".to_string()).is_err());
        let unsorted = SeenRows { entries: vec![(2, 0), (1, 1)] };
        let beyond = SeenRows { entries: vec![(1, 5)] };
        assert!(!unsorted.is_sound(10) && !beyond.is_sound(5) && beyond.is_sound(6));
    }
}
