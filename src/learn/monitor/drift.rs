//! Detects that the data change while they are learned.
//!
//! The prequential log-density of a row is standardised by its component: of a Gaussian component it is a constant minus half
//! the squared distance `q` of the row from the mean, and `q` has the same distribution in every component. So rows that
//! alternate between known modes do not look like a change, however different the densities of the modes are. `q` is clipped,
//! so single outliers have little effect.
//!
//! The test is the CUSUM test for a change of the mean at an unknown row, on means of consecutive cells of equal length. Its
//! scale is the long-run standard deviation, estimated from differences of neighbouring groups of cells. That covers rows
//! that depend on the rows before them, as long as the dependence is short compared with the stream. Only a lower density
//! counts: it rises while the mixture improves.

use serde::{Deserialize, Serialize};

use crate::learn::structure::BATCH;

/// Sums of squared distances of rows from their components, weighted by responsibility. Whole numbers, so that they do not
/// depend on how rows are divided into batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Surprise {
    /// The number of rows.
    rows: u64,
    /// The sum, in units of `1/UNIT`.
    squares: u64,
}

const UNIT: f64 = 4096.0;

impl Surprise {
    /// The largest squared distance that counts: about one row in a billion of a Gaussian component is beyond.
    pub(in crate::learn) fn farthest(dim: usize) -> f64 {
        dim as f64 + 8.0 * (2.0 * dim as f64).sqrt() + 20.0
    }

    /// Adds a row. A distance that is not a number counts as the farthest.
    #[inline(always)]
    pub(in crate::learn) fn add(&mut self, distance: f64, farthest: f64) {
        let clipped = if distance < farthest { distance } else { farthest };
        self.rows += 1;
        self.squares += (clipped * UNIT) as u64;
    }

    pub(in crate::learn) fn plus(self, other: Surprise) -> Self {
        Surprise {
            rows: self.rows.saturating_add(other.rows),
            squares: self.squares.saturating_add(other.squares),
        }
    }

    pub(in crate::learn) fn since(self, before: Surprise) -> Self {
        Surprise { rows: self.rows - before.rows, squares: self.squares - before.squares }
    }

    /// The mean loss of log-density by the distance from the component.
    pub(in crate::learn) fn mean(&self) -> f64 {
        0.5 * self.squares as f64 / (UNIT * self.rows.max(1) as f64)
    }
}

/// Changes of the data that were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataChanges {
    /// The row near which the first one is.
    pub first: u64,
    /// The row near which the latest one is.
    pub latest: u64,
    /// How many there are.
    pub times: u64,
}

/// The largest number of cells. Then each pair becomes one cell.
const MAX_CELLS: usize = 128;
/// The least number of cells for a test.
const MIN_CELLS: usize = 64;
/// The least number of cells before and after a change.
const MIN_PART: usize = 16;
/// The number of batches in a cell at first.
const FIRST_SIZE: u64 = 2;
/// The cells after a change are divided into this many parts. Each of them has at least a third of the fall, or the change
/// does not last.
const PARTS: usize = 4;
/// The number of cells between two tests.
const EVERY: usize = 4;
/// Numbers of cells in a group. The largest of the estimated standard deviations is used.
const GROUPS: [usize; 4] = [1, 2, 4, 8];
/// The largest value of the test statistic that counts as chance. In 200 simulated streams of 500,000 rows it was at most 2.3
/// if batches are independent or correlated by 0.5, at most 4.4 if they are correlated by 0.9, and above 5 in one stream in a
/// hundred of modes of very different levels that last 2,000 to 6,000 rows.
const CHANCE: f64 = 5.0;
/// The least fall of the mean log-density that is worth telling.
const MIN_FALL: f64 = 0.1;

/// Watches the rows of one candidate for changes. Its size does not depend on the number of rows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriftWatch {
    /// The number of rows before the first cell.
    begun: u64,
    /// The number of batches in a cell.
    size: u64,
    cells: Vec<Surprise>,
    /// The cell that is not complete yet, and the number of its batches.
    open: Surprise,
    batches: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changes: Option<DataChanges>,
}

impl DriftWatch {
    /// The changes found so far.
    pub fn changes(&self) -> Option<DataChanges> {
        self.changes
    }

    /// Adds rows of the current batch.
    pub(in crate::learn) fn add(&mut self, rows: Surprise) {
        self.open = self.open.plus(rows);
    }

    /// Ends a batch after `rows` rows in total.
    pub(in crate::learn) fn end_batch(&mut self, rows: u64) {
        if self.cells.is_empty() && self.batches == 0 {
            (self.begun, self.size) = (rows.saturating_sub(BATCH), FIRST_SIZE);
        }
        self.batches += 1;
        if self.batches < self.size {
            return;
        }
        self.cells.push(std::mem::take(&mut self.open));
        self.batches = 0;
        if let Some(cells) = find_fall(&self.cells) {
            self.record(self.begun + cells as u64 * self.size * BATCH);
            self.cells.clear();
        } else if self.cells.len() == MAX_CELLS {
            self.cells = self.cells.chunks(2).map(|pair| pair[0].plus(pair[1])).collect();
            self.size *= 2;
        }
    }

    /// Begins anew after a revision that has changed the mixture, because the data changed at a row if there is one.
    pub(in crate::learn) fn revised(&mut self, change: Option<u64>) {
        *self = DriftWatch { changes: self.changes, ..DriftWatch::default() };
        if let Some(row) = change {
            self.record(row);
        }
    }

    fn record(&mut self, row: u64) {
        let known = self.changes.unwrap_or(DataChanges { first: row, latest: row, times: 0 });
        self.changes = Some(DataChanges { latest: row, times: known.times + 1, ..known });
    }

    /// Whether this is valid for a pass over `rows` rows.
    pub(crate) fn is_sound(&self, rows: u64) -> bool {
        self.cells.len() < MAX_CELLS && self.begun <= rows && self.size <= rows && self.batches <= self.size
    }
}

/// The number of cells before the mean log-density falls, if it falls by more than chance explains.
fn find_fall(cells: &[Surprise]) -> Option<usize> {
    if cells.len() < MIN_CELLS || !cells.len().is_multiple_of(EVERY) {
        return None;
    }
    let losses: Vec<f64> = cells.iter().map(Surprise::mean).collect();
    let count = losses.len() as f64;
    let mean = losses.iter().sum::<f64>() / count;
    let (mut sum, mut least, mut place) = (0.0, 0.0, 0);
    for (i, loss) in losses[..losses.len() - 1].iter().enumerate() {
        sum += loss - mean;
        if sum < least {
            (least, place) = (sum, i + 1);
        }
    }
    let after = losses.len() - place;
    if place.min(after) < MIN_PART {
        return None;
    }
    // The means before and after the place differ by the fall.
    let fall = -least * count / (place as f64 * after as f64);
    let before = mean + least / place as f64;
    let lasts = losses[place..].chunks(after.div_ceil(PARTS)).all(|part| {
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        mean - before > fall / 3.0
    });
    let scale = (long_run_variance(&losses, place) * count).sqrt();
    (fall > MIN_FALL && lasts && -least > CHANCE * scale).then_some(place)
}

/// The variance of a sum of values, per value, where neighbouring values may be correlated. A change of the mean after `place`
/// values does not count.
fn long_run_variance(values: &[f64], place: usize) -> f64 {
    let mut sums = vec![0.0];
    sums.extend(values.iter().scan(0.0, |sum, value| {
        *sum += value;
        Some(*sum)
    }));
    let by_groups = |size: usize| {
        let one_side = |i: &usize| place <= *i || i + 2 * size <= place;
        let places: Vec<usize> = (0..=values.len() - 2 * size).filter(one_side).collect();
        let squares = places.iter().map(|&i| (sums[i + 2 * size] - 2.0 * sums[i + size] + sums[i]).powi(2));
        squares.sum::<f64>() / (2.0 * (size * places.len().max(1)) as f64)
    };
    GROUPS.into_iter().map(by_groups).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    const DIM: usize = 4;

    /// Watches `batches` batches whose rows have squared distances of about `level(batch)` on average.
    fn watch(seed: u64, batches: u64, level: impl Fn(u64) -> f64) -> DriftWatch {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (mut watch, farthest) = (DriftWatch::default(), Surprise::farthest(DIM));
        for batch in 1..=batches {
            let mut rows = Surprise::default();
            for _ in 0..BATCH {
                // Of two degrees of freedom, times two.
                let square: f64 = -4.0 * (1.0 - rng.random::<f64>()).ln();
                rows.add(square * level(batch - 1) / DIM as f64, farthest);
            }
            watch.add(rows);
            watch.end_batch(batch * BATCH);
        }
        watch
    }

    #[test]
    fn rows_of_one_kind_do_not_change() {
        for seed in 0..20 {
            assert_eq!(watch(seed, 1000, |_| 4.0).changes(), None);
        }
    }

    #[test]
    fn improvement_and_single_outliers_are_no_change() {
        assert_eq!(watch(1, 400, |batch| 4.0 + 40.0 / (batch + 1) as f64).changes(), None);
        let mut farther = Surprise::default();
        for distance in [2e6, f64::NAN, f64::INFINITY] {
            farther.add(distance, 10.0);
        }
        assert_eq!(farther, Surprise { rows: 3, squares: (3.0 * 10.0 * UNIT) as u64 });
    }

    #[test]
    fn a_sudden_change_has_its_row_and_a_slow_one_is_found() {
        for seed in 0..5 {
            let found = watch(seed, 400, |batch| if batch < 200 { 4.0 } else { 5.0 }).changes().unwrap();
            assert_eq!(found.times, 1);
            assert!(found.first.abs_diff(50_000) <= 2500, "{found:?}");
            let slow = watch(seed, 400, |batch| 4.0 + batch as f64 / 100.0).changes();
            assert!(slow.is_some_and(|found| found.first < 60_000), "{slow:?}");
            // What the mixture has learned of the new rows makes them less surprising.
            let learned =
                |batch: u64| 4.0 + if batch < 200 { 0.0 } else { 3.0 * (200.0 / batch as f64).powi(2) };
            let found = watch(seed, 400, learned).changes().unwrap();
            assert!(found.first.abs_diff(50_000) <= 2500 && found.times == 1, "{found:?}");
        }
    }

    #[test]
    fn batches_that_depend_on_each_other_are_no_change() {
        // Runs of ten batches at one of two levels, in an irregular order.
        for seed in 0..40_u64 {
            let high = |batch: u64| crate::hash::mix_bits(seed.wrapping_mul(1000) + batch / 10) % 2;
            let found = watch(seed, 1000, |batch| 4.0 + 0.4 * high(batch) as f64).changes();
            assert_eq!(found, None, "seed {seed}");
        }
    }

    #[test]
    fn the_state_is_bounded() {
        let watch = watch(3, 5000, |_| 4.0);
        assert!(watch.cells.len() < MAX_CELLS && watch.size == 64 && watch.is_sound(5000 * BATCH));
        let text = serde_json::to_string(&watch).unwrap();
        assert_eq!(serde_json::from_str::<DriftWatch>(&text).unwrap(), watch);
    }
}
