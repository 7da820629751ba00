//! Stable identifiers of components, and the history of revisions.

use serde::{Deserialize, Serialize};

/// One identifier for each component. A component keeps its identifier while it is learned. The parts of a split and the
/// result of a merge get new ones.
///
/// A new identifier is the next number that no component of the pass has had. The closing revision works on a copy, so that a
/// resumed pass equals a straight one: it may give a number that the closing revision gave to a component that it did not make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identifiers {
    of: Vec<u64>,
    next: u64,
}

impl Identifiers {
    /// The identifiers 1 to `k`.
    pub fn new(k: usize) -> Self {
        let next = k as u64 + 1;
        Identifiers { of: (1..next).collect(), next }
    }

    /// The identifier of each component, in the order of the components.
    pub fn all(&self) -> &[u64] {
        &self.of
    }

    /// Whether there are `k` different identifiers, all smaller than the next one.
    pub(crate) fn is_sound(&self, k: usize) -> bool {
        let mut sorted = self.of.clone();
        sorted.sort_unstable();
        sorted.dedup();
        sorted.len() == k && self.of.len() == k && sorted.last().is_none_or(|&last| last < self.next)
    }

    fn new_one(&mut self) -> u64 {
        let new = self.next;
        self.next = self.next.saturating_add(1);
        new
    }

    /// Splits component `j`. The first part replaces it, the second is appended.
    pub(super) fn split(&mut self, j: usize) -> SplitMove {
        let into = [self.new_one(), self.new_one()];
        let component = std::mem::replace(&mut self.of[j], into[0]);
        self.of.push(into[1]);
        SplitMove { component, into }
    }

    /// Merges two components. The result replaces the first, and the last component replaces the second.
    pub(super) fn merge(&mut self, [i, j]: [usize; 2]) -> MergeMove {
        let components = [self.of[i], self.of[j]];
        let into = self.new_one();
        self.of[i] = into;
        self.of.swap_remove(j);
        MergeMove { components, into }
    }

    /// Switches to a new mixture. Components with a counterpart in the old one keep its identifier.
    pub(in crate::learn) fn follow(&mut self, counterparts: &[Option<usize>]) {
        let before = std::mem::take(&mut self.of);
        self.of =
            counterparts.iter().map(|old| old.map_or_else(|| self.new_one(), |old| before[old])).collect();
    }

    /// Appends a component.
    pub(super) fn add(&mut self) -> u64 {
        let new = self.new_one();
        self.of.push(new);
        new
    }
}

/// One change of the structure by a revision: a split, a merge, both (a swap), or a new component with a merge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// The split, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<SplitMove>,
    /// The merge, if any.
    #[serde(rename = "joined", default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<MergeMove>,
    /// The new component for rows that belonged to none, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<u64>,
    /// The gain of the mean log-likelihood of the kept rows. It may be negative if K decreased.
    pub gain: f64,
}

/// A component is split into two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitMove {
    /// The component.
    pub component: u64,
    /// Its parts.
    pub into: [u64; 2],
}

/// Two components are merged into one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MergeMove {
    /// The two components.
    pub components: [u64; 2],
    /// The result.
    pub into: u64,
}

/// The reason of a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// The rows of the start are complete.
    Start,
    /// The number of rows has doubled.
    Doubling,
    /// Many rows have a much lower density than earlier rows.
    Novelty,
    /// The rows are farther from their components, or closer to them, than earlier rows.
    Misfit,
    /// The stream has ended.
    End,
    /// Shards are merged.
    Merge,
}

/// One revision of the structure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevisionRecord {
    /// The number of rows seen.
    pub rows: u64,
    /// The reason.
    pub reason: Reason,
    /// Whether the revised mixture replaced the old one.
    pub kept: bool,
    /// The gain of the mean log-density of the validation rows, if there was a mixture to compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_gain: Option<f64>,
    /// The changes, in order.
    pub moves: Vec<Move>,
    /// Whether a new mixture, found from all rows, replaced the result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anew: bool,
}
