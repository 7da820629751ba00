//! Where a shard comes from.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::hash::Fingerprint;
use crate::learn::monitor::findings::judge_prior_rows;
use crate::learn::{Finding, MergeReport};

/// Where a shard comes from: its common prior, and the rows that it has learned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lineage {
    /// Fingerprint of the common prior and its columns.
    pub prior: Fingerprint,
    /// Rows of the common prior.
    pub prior_rows: u64,
    /// Fingerprint of the rows of each shard in this model.
    pub shards: Vec<Fingerprint>,
    /// Keys of some rows of the common prior.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prior_sample: Vec<Fingerprint>,
    /// Those of them that the shards have learned again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prior_repeated: Vec<Fingerprint>,
    /// The numbers of the shards, if they were numbered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbered: Option<Numbered>,
    /// How well the shards agree, once merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<MergeReport>,
}

/// The numbers of shards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Numbered {
    /// The number of all shards.
    pub of: u32,
    /// Those in this model, from 1.
    pub shards: Vec<u32>,
}

impl Lineage {
    /// Whether shards have learned rows of the prior again.
    pub fn repeats(&self) -> Option<Finding> {
        judge_prior_rows(self.prior_repeated.len(), self.prior_sample.len())
    }
}

impl Numbered {
    /// The largest number of shards: a merge lists the missing ones.
    pub const MAX: u32 = 1_000_000;

    /// Why these cannot be the numbers of shards, if they cannot.
    pub(crate) fn fault(&self) -> Option<String> {
        let Numbered { of, shards } = self;
        if !(1..=Self::MAX).contains(of) {
            return Some(format!("it is one of {of} shards, and there can be from 1 to {}", Self::MAX));
        }
        if let Some(nth) = shards.iter().find(|nth| !(1..=*of).contains(*nth)) {
            return Some(format!("it is shard {nth} of {of}"));
        }
        let distinct: HashSet<&u32> = shards.iter().collect();
        (distinct.len() != shards.len()).then(|| "it has the number of a shard twice".to_string())
    }

    /// The shards that are not in this model.
    pub fn missing(&self) -> Vec<u32> {
        let here: HashSet<u32> = self.shards.iter().copied().collect();
        (1..=self.of).filter(|nth| !here.contains(nth)).collect()
    }
}

/// A shard that is being learned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Lineage", into = "Lineage")]
pub struct Shard {
    /// Where it comes from. Its shards are those of earlier passes.
    pub lineage: Lineage,
    /// Fingerprint of the rows of this pass.
    pub rows: Fingerprint,
}

/// In a file, all rows are those of earlier passes.
impl From<Lineage> for Shard {
    fn from(lineage: Lineage) -> Self {
        Shard { lineage, rows: Fingerprint::default() }
    }
}

impl From<Shard> for Lineage {
    fn from(shard: Shard) -> Self {
        shard.lineage
    }
}
