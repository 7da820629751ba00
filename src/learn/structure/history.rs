//! Identifiers of components that last, and the log of what revisions did to them.

use serde::{Deserialize, Serialize};

/// One identifier for each component. A component keeps its identifier while it is learned; the parts of a split and
/// the outcome of a join get new ones.
///
/// New identifiers are larger than the number of rows seen. So identifiers that a closing revision gave, which the
/// resumed pass knows nothing of, are not given again to other components.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identifiers {
    of: Vec<u64>,
    next: u64,
}

impl Identifiers {
    /// 1 to `k`.
    pub fn new(k: usize) -> Self {
        let next = k as u64 + 1;
        Identifiers { of: (1..next).collect(), next }
    }

    /// Of each component, in the components' order.
    pub fn all(&self) -> &[u64] {
        &self.of
    }

    /// Whether there are `k` different ones, all below the next.
    pub(crate) fn is_sound(&self, k: usize) -> bool {
        let mut sorted = self.of.clone();
        sorted.sort_unstable();
        sorted.dedup();
        sorted.len() == k && self.of.len() == k && sorted.last().is_none_or(|&last| last < self.next)
    }

    /// New identifiers come after the number of rows seen.
    pub(in crate::learn) fn seen(&mut self, rows: u64) {
        self.next = self.next.max(rows.saturating_add(1));
    }

    fn new_one(&mut self) -> u64 {
        let new = self.next;
        self.next = self.next.saturating_add(1);
        new
    }

    /// Component `j` becomes two: the first part takes its place, the second is the last component.
    pub(super) fn split(&mut self, j: usize) -> SplitMove {
        let into = [self.new_one(), self.new_one()];
        let component = std::mem::replace(&mut self.of[j], into[0]);
        self.of.push(into[1]);
        SplitMove { component, into }
    }

    /// Two components become one: it takes the place of the first, and the last component that of the second.
    pub(super) fn merge(&mut self, [i, j]: [usize; 2]) -> MergeMove {
        let components = [self.of[i], self.of[j]];
        let into = self.new_one();
        self.of[i] = into;
        self.of.swap_remove(j);
        MergeMove { components, into }
    }

    /// Of a mixture that was found anew: where a component has a counterpart in the one before, it has its identifier.
    pub(in crate::learn) fn follow(&mut self, counterparts: &[Option<usize>]) {
        let before = std::mem::take(&mut self.of);
        self.of =
            counterparts.iter().map(|old| old.map_or_else(|| self.new_one(), |old| before[old])).collect();
    }

    /// A component is added, the last one.
    pub(super) fn add(&mut self) -> u64 {
        let new = self.new_one();
        self.of.push(new);
        new
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
    #[serde(rename = "joined", default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<MergeMove>,
    /// The component that was made for rows which no component explained, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<u64>,
    /// What the mean log-likelihood of the kept rows gained; it may be negative where K fell.
    pub gain: f64,
}

/// A component became two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitMove {
    /// Which.
    pub component: u64,
    /// Its parts.
    pub into: [u64; 2],
}

/// Two components became one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MergeMove {
    /// Which.
    pub components: [u64; 2],
    /// What they became.
    pub into: u64,
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
    /// Whether the mixture was then found anew from all rows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anew: bool,
}
