//! Where in the stream a learned row was, if rows without weight or values were ignored.

/// Finds the place of a learned row in the stream. Its size is bounded, so that with many ignored rows places are rounded.
#[derive(Debug, Clone, Default)]
pub(in crate::learn) struct Places {
    /// How many rows were learned and ignored when a row was ignored, in order.
    ignored: Vec<(u64, u64)>,
    /// Rows between two entries, at least.
    distance: u64,
}

/// The largest number of entries.
const MOST: usize = 4096;

impl Places {
    /// Notes that `ignored` rows were ignored before the row that follows `learned` others.
    pub fn note(&mut self, learned: u64, ignored: u64) {
        match self.ignored.last() {
            None if ignored == 0 => return,
            Some((_, before)) if *before == ignored => return,
            Some((at, _)) if learned - at < self.distance => return,
            _ => self.ignored.push((learned, ignored)),
        }
        if self.ignored.len() > MOST {
            self.distance = (2 * self.distance).max(2);
            let mut place = 0;
            self.ignored.retain(|_| {
                place += 1;
                place % 2 == 1
            });
        }
    }

    /// The place of the row that follows `learned` others, from 0.
    pub fn of(&self, learned: u64) -> u64 {
        let after = self.ignored.partition_point(|(at, _)| *at <= learned);
        learned + after.checked_sub(1).map_or(0, |last| self.ignored[last].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_rows_count() {
        let mut places = Places::default();
        assert_eq!(places.of(7), 7);
        for (learned, ignored) in [(0, 0), (10, 3), (10, 4), (20, 4), (25, 9)] {
            places.note(learned, ignored);
        }
        assert_eq!([0, 9, 10, 24, 25, 40].map(|learned| places.of(learned)), [0, 9, 14, 28, 34, 49]);
    }

    #[test]
    fn many_ignored_rows_take_little_memory() {
        let mut places = Places::default();
        (0..1_000_000).for_each(|learned| places.note(learned, learned + 1));
        assert!(places.ignored.len() <= MOST + 1);
        assert!(
            (0..1_000_000).step_by(997).all(|learned| places.of(learned).abs_diff(2 * learned + 1) < 2000)
        );
    }
}
