//! Folds and seeds: which cells repeat the same rows.

use std::collections::BTreeMap;

use crate::experiment::{RecordIndex, SetIndex, fold_rows, name_without_noise};

/// How the cells of one data set repeat over folds and seeds. Fold `f` of the records is fold `f % folds` of seed number
/// `f / folds`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeats {
    /// Folds of each seed.
    folds: usize,
    seeds: usize,
    /// The test rows of each fold, if there are several seeds and folds.
    test_rows: BTreeMap<usize, Vec<usize>>,
}

impl Default for Repeats {
    /// One seed, with any number of folds.
    fn default() -> Self {
        Repeats { folds: usize::MAX, seeds: 1, test_rows: BTreeMap::new() }
    }
}

impl Repeats {
    /// Those of one data set of the records.
    pub fn new(index: &RecordIndex, set: &SetIndex) -> Self {
        let seeds = index.runs().iter().map(|run| run.seeds).max().unwrap_or(1);
        let Some(run) = index.runs().last().filter(|run| seeds > 1 && run.folds > 0) else {
            return Repeats::default();
        };
        let folds = run.folds;
        let rows = set.data().map_or(0, |data| data.rows);
        let of_fold = |fold: usize| {
            let seed = run.seed.wrapping_add((fold / folds) as u64);
            fold_rows(seed, name_without_noise(set.name()), rows, folds, fold % folds)
        };
        let tested: BTreeMap<usize, usize> = set.cells().map(|cell| (cell.fold, cell.test.len())).collect();
        // With a test file all seeds have the same test rows. A set cannot have more rows than were tested with all seeds,
        // unless the records are damaged or incomplete.
        let is_known = folds > 1 && rows <= tested.values().sum();
        let test_rows = match is_known {
            true => tested.into_keys().map(|fold| (fold, of_fold(fold))).collect(),
            false => BTreeMap::new(),
        };
        Repeats { folds, seeds, test_rows }
    }

    /// Whether there are several seeds.
    pub fn has_several_seeds(&self) -> bool {
        self.seeds > 1
    }

    /// The number of the seed of a fold, from 0.
    pub fn seed_number(&self, fold: usize) -> usize {
        fold / self.folds
    }

    /// The fold within its seed.
    pub fn fold_in_seed(&self, fold: usize) -> usize {
        fold % self.folds
    }

    /// The row of the data set, or of the test file, that is at this place of a fold's test rows. Where the rows of a fold
    /// are not known, its number takes part, so that different rows are not averaged.
    fn row(&self, fold: usize, place: usize) -> (usize, usize) {
        match self.test_rows.get(&fold).and_then(|rows| rows.get(place)) {
            Some(row) => (0, *row),
            None if self.folds == 1 => (0, place),
            None => (fold + 1, place),
        }
    }

    /// Averages values of test rows over the seeds: one value for each row. With one seed, these are the values.
    pub fn average_rows(&self, values: Vec<(usize, Vec<f64>)>) -> Vec<f64> {
        if !self.has_several_seeds() {
            return values.into_iter().flat_map(|(_, values)| values).collect();
        }
        let of_fold = |(fold, values): (usize, Vec<f64>)| {
            values.into_iter().enumerate().map(move |(place, value)| (self.row(fold, place), value))
        };
        means_by(values.into_iter().flat_map(of_fold))
    }

    /// Averages values of folds over the seeds: one value for each fold of a seed.
    pub fn average_folds(&self, values: impl Iterator<Item = (usize, f64)>) -> Vec<f64> {
        means_by(values.map(|(fold, value)| (self.fold_in_seed(fold), value)))
    }
}

/// The mean of the values with each key, in the order of the keys.
fn means_by<T: Ord>(values: impl Iterator<Item = (T, f64)>) -> Vec<f64> {
    let mut sums: BTreeMap<T, (f64, f64)> = BTreeMap::new();
    for (key, value) in values {
        let (sum, count) = sums.entry(key).or_default();
        (*sum, *count) = (*sum + value, *count + 1.0);
    }
    sums.into_values().map(|(sum, count)| sum / count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_one_row_or_fold_are_averaged_over_the_seeds() {
        let test_rows = [vec![0, 2], vec![1, 3], vec![0, 1], vec![2, 3]].into_iter().enumerate().collect();
        let repeats = Repeats { folds: 2, seeds: 2, test_rows };
        let values = vec![(0, vec![1.0, 3.0]), (1, vec![2.0, 4.0]), (2, vec![5.0, 6.0]), (3, vec![7.0, 8.0])];
        assert_eq!(repeats.average_rows(values.clone()), [3.0, 4.0, 5.0, 6.0]);
        assert_eq!(Repeats::default().average_rows(values), [1.0, 3.0, 2.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        let folds = [(0, 1.0), (1, 2.0), (2, 3.0), (3, 5.0)];
        assert_eq!(repeats.average_folds(folds.into_iter()), [2.0, 3.5]);
        assert_eq!(Repeats::default().average_folds(folds.into_iter()), [1.0, 2.0, 3.0, 5.0]);
        assert_eq!((repeats.seed_number(3), repeats.fold_in_seed(3)), (1, 1));
    }
}
