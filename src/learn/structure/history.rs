//! Identifiers of components that last, and the log of what revisions did to them.

use serde::{Deserialize, Serialize};

/// One identifier for each component. A component keeps its identifier while it is learned; the parts of a split and
/// the outcome of a join get new ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identifiers {
    of: Vec<u32>,
    next: u32,
}

impl Identifiers {
    /// 1 to `k`.
    pub fn new(k: usize) -> Self {
        let next = k as u32 + 1;
        Identifiers { of: (1..next).collect(), next }
    }

    /// Of each component, in the components' order.
    pub fn all(&self) -> &[u32] {
        &self.of
    }

    /// Whether there are `k` different ones, all below the next.
    pub(crate) fn is_sound(&self, k: usize) -> bool {
        let mut sorted = self.of.clone();
        sorted.sort_unstable();
        sorted.dedup();
        sorted.len() == k && self.of.len() == k && sorted.last().is_none_or(|&last| last < self.next)
    }

    fn new_one(&mut self) -> u32 {
        let new = self.next;
        self.next = self.next.saturating_add(1);
        new
    }

    /// Component `split` becomes two, of which the second takes the place of the second of `joined`; the first of
    /// `joined` becomes both. Returns what to log.
    pub(super) fn swap(&mut self, split: usize, joined: [usize; 2], gain: f64) -> Move {
        let (was, were) = (self.of[split], joined.map(|j| self.of[j]));
        let (parts, whole) = ([self.new_one(), self.new_one()], self.new_one());
        (self.of[split], self.of[joined[1]], self.of[joined[0]]) = (parts[0], parts[1], whole);
        Move {
            split: Some(SplitMove { component: was, into: parts }),
            joined: Some(JoinMove { components: were, into: whole }),
            gain,
        }
    }
}

/// One change of the structure that a revision made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// The component that was split, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<SplitMove>,
    /// The components that were joined, if any were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<JoinMove>,
    /// What the mean log-likelihood of the kept rows gained.
    pub gain: f64,
}

/// A component became two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitMove {
    /// Which.
    pub component: u32,
    /// Its parts.
    pub into: [u32; 2],
}

/// Two components became one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinMove {
    /// Which.
    pub components: [u32; 2],
    /// What they became.
    pub into: u32,
}

/// Why a revision took place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The first rows were complete.
    Start,
    /// The number of rows had doubled.
    Doubling,
    /// Many rows were unlike anything learned before.
    Novelty,
    /// The stream had ended.
    End,
    /// Shards were merged.
    Merge,
}

/// One revision of the structure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevisionRecord {
    /// Rows seen by then.
    pub rows: u64,
    /// Why it took place.
    pub reason: Reason,
    /// Whether the revised mixture replaced the one before it.
    pub kept: bool,
    /// What the mean log-density of the validation rows gained, where there was something to compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_gain: Option<f64>,
    /// What changed.
    pub moves: Vec<Move>,
}
