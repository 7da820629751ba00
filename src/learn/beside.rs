//! The prequential scores of several K beside one another.

use serde::{Deserialize, Serialize};

use crate::stats::PairedSums;

/// The prequential scores of several K for the same rows, in portions that end after as many rows wherever the stream is
/// cut, so that a pass that was interrupted goes on to the same sums.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoresBeside {
    /// Rows of a portion.
    portion: u64,
    sums: PairedSums,
    /// Rows of the portion under way.
    open_rows: u64,
    /// The score of each K, summed over all rows before that portion.
    before: Vec<f64>,
}

impl ScoresBeside {
    /// Rows of a stream that are taken together, for neighbours may be alike.
    const PORTION: u64 = 64;

    /// For the rows of a stream, and K that have these scores so far, summed over the rows before.
    pub(super) fn of_stream(totals: Vec<f64>) -> Self {
        let (sums, open_rows) = (PairedSums::new(totals.len()), 0);
        ScoresBeside { portion: Self::PORTION, sums, open_rows, before: totals }
    }

    /// For rows in random order, each a portion of its own, and so many K.
    pub(super) fn of_shuffled(ks: usize) -> Self {
        ScoresBeside { portion: 1, ..Self::of_stream(vec![0.0; ks]) }
    }

    /// Cuts rows of so many numbers where portions end.
    pub(super) fn cut<'a>(&self, values: &'a [f64], dim: usize) -> impl Iterator<Item = &'a [f64]> {
        let (first, rest) = values.split_at(values.len().min(self.rows_wanted() * dim));
        std::iter::once(first).chain(rest.chunks(self.portion as usize * dim))
    }

    /// Rows until the portion under way is full.
    fn rows_wanted(&self) -> usize {
        (self.portion - self.open_rows) as usize
    }

    /// Notes that so many rows more brought the scores to these sums. A portion that is full ends with them, and so does one
    /// that the stream is cut into anyhow.
    pub(super) fn note(&mut self, rows: usize, totals: impl Iterator<Item = f64> + Clone, ends: bool) {
        self.open_rows += rows as u64;
        if ends || self.open_rows == self.portion {
            let gained: Vec<f64> =
                totals.clone().zip(&self.before).map(|(now, before)| now - before).collect();
            self.sums.add(self.open_rows as f64, &gained);
            (self.open_rows, self.before) = (0, totals.collect());
        }
    }

    /// The sums, if they are of no fewer rows than this, but for a portion under way.
    pub fn over(&self, rows: u64) -> Option<&PairedSums> {
        (self.sums.rows() + self.open_rows as f64 >= rows as f64).then_some(&self.sums)
    }

    /// Whether it is of the rows of a stream and so many K, with numbers that a file can hold.
    pub(crate) fn is_sound(&self, ks: usize) -> bool {
        let of_stream = self.portion == Self::PORTION && self.open_rows < self.portion;
        let finite = self.before.iter().all(|total| total.is_finite());
        of_stream && finite && self.before.len() == ks && self.sums.is_sound(ks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portions_do_not_depend_on_where_the_stream_is_cut() {
        let total = |k: usize, rows: usize| -1.5 * rows as f64 - (k as f64 * rows as f64).sin();
        let told = |cuts: &[usize]| {
            let (mut scores, mut seen) = (ScoresBeside::of_stream(vec![total(1, 0), total(2, 0)]), 0);
            for &rows in cuts {
                let parts: Vec<usize> =
                    scores.cut(&vec![0.0; 3 * rows], 3).map(|part| part.len() / 3).collect();
                for part in parts {
                    seen += part;
                    scores.note(part, [1, 2].into_iter().map(|k| total(k, seen)), false);
                }
            }
            scores
        };
        let straight = told(&[1000]);
        assert_eq!(straight, told(&[10, 54, 0, 1, 199, 636, 100]));
        assert!(straight.over(1000).unwrap().standard_error(0, 1).unwrap() > 0.0);
        assert!(straight.over(1001).is_none() && straight.is_sound(2) && !straight.is_sound(3));
        let read: ScoresBeside = serde_json::from_str(&serde_json::to_string(&straight).unwrap()).unwrap();
        assert_eq!(read, straight);
        // A damaged file must not set the size of portions.
        assert!(!ScoresBeside { portion: u64::MAX, ..straight }.is_sound(2));
    }
}
