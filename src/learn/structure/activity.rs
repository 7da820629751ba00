//! When each component was active.

use serde::{Deserialize, Serialize};

use super::history::Move;
use super::schedule::BATCH;

/// The rows between which a component was active: some row most probably belonged to it. Exact to a batch of 250 rows. The parts
/// of a split and the result of a merge take over the rows of what they come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActiveRows {
    /// The identifier of the component.
    pub identifier: u64,
    /// The first row, from 1.
    pub first: u64,
    /// The last row.
    pub last: u64,
}

/// The active rows of all components.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Activity {
    /// For each component, the rows of the current batch that belong to it.
    open: Vec<u64>,
    known: Vec<ActiveRows>,
}

impl Activity {
    /// Adds rows to the current batch, given the number of rows of each component now and at the last call.
    pub fn add(&mut self, now: &[f64], before: &[f64]) {
        self.open.resize(now.len().max(self.open.len()), 0);
        for (i, (open, now)) in self.open.iter_mut().zip(now).enumerate() {
            // Counts, so the difference is exact.
            *open += (now - before.get(i).copied().unwrap_or(0.0)) as u64;
        }
    }

    /// Ends a batch after `rows` rows in total.
    pub fn end_batch(&mut self, rows: u64, identifiers: &[u64]) {
        let is_first = self.known.is_empty();
        for (&identifier, open) in identifiers.iter().zip(&self.open) {
            if *open == 0 {
                continue;
            }
            let first = if is_first { 1 } else { rows.saturating_sub(BATCH) + 1 };
            match self.known.iter_mut().find(|known| known.identifier == identifier) {
                Some(known) => known.last = rows,
                None => self.known.push(ActiveRows { identifier, first, last: rows }),
            }
        }
        self.open.fill(0);
    }

    /// Follows a revision that has led to these identifiers.
    pub fn follow(&mut self, moves: &[Move], identifiers: &[u64]) {
        for made in moves {
            if let Some(split) = &made.split {
                split.into.iter().for_each(|&part| self.inherit(part, &[split.component]));
            }
            if let Some(merged) = &made.merged {
                self.inherit(merged.into, &merged.components);
            }
        }
        self.known.retain(|known| identifiers.contains(&known.identifier));
        self.open.clear();
    }

    fn inherit(&mut self, identifier: u64, from: &[u64]) {
        let parents = self.known.iter().filter(|known| from.contains(&known.identifier)).copied();
        let united =
            parents.reduce(|a, b| ActiveRows { first: a.first.min(b.first), last: a.last.max(b.last), ..a });
        self.known.extend(united.map(|rows| ActiveRows { identifier, ..rows }));
    }

    /// The active rows of a component, if they are known.
    pub fn of(&self, identifier: u64) -> Option<ActiveRows> {
        self.known.iter().find(|known| known.identifier == identifier).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::{MergeMove, SplitMove};

    #[test]
    fn components_have_their_first_and_last_row_and_pass_them_on() {
        let mut activity = Activity::default();
        activity.add(&[200.0, 50.0, 0.0, 0.0], &[]);
        activity.end_batch(5250, &[1, 2, 3]);
        // Component 1 falls silent, and component 3 wakes.
        activity.add(&[200.0, 250.0, 50.0, 0.0], &[200.0, 50.0, 0.0, 0.0]);
        activity.end_batch(5500, &[1, 2, 3]);
        let rows =
            |activity: &Activity, identifier| activity.of(identifier).map(|rows| (rows.first, rows.last));
        assert_eq!(
            [1, 2, 3].map(|identifier| rows(&activity, identifier)),
            [Some((1, 5250)), Some((1, 5500)), Some((5251, 5500))]
        );
        let split = Some(SplitMove { component: 2, into: [4, 5] });
        let merged = Some(MergeMove { components: [1, 3], into: 6 });
        activity.follow(&[Move { split, merged, added: None, gain: 0.1 }], &[4, 5, 6]);
        assert_eq!(
            [4, 5, 6, 1].map(|identifier| rows(&activity, identifier)),
            [Some((1, 5500)), Some((1, 5500)), Some((1, 5500)), None]
        );
    }
}
