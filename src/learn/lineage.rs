//! Where a shard comes from.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::findings::judge_prior_rows;
use super::{Finding, Fingerprint, MergeReport};

/// Where a shard comes from: which prior it grew from, and which rows it has learned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lineage {
    /// Of the common prior and its columns.
    pub prior: Fingerprint,
    /// Rows that the common prior had seen.
    pub prior_rows: u64,
    /// Of the rows of each shard in this model.
    pub shards: Vec<Fingerprint>,
    /// Keys of some rows of the common prior.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prior_sample: Vec<Fingerprint>,
    /// Those of them that are among the rows of the shards as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prior_repeated: Vec<Fingerprint>,
    /// Their numbers, where they were given some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbered: Option<Numbered>,
    /// How well the shards fitted together, once merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<MergeReport>,
}

/// Which of how many shards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Numbered {
    /// How many there are in all.
    pub of: u32,
    /// Those that are here, counted from 1.
    pub shards: Vec<u32>,
}

impl Lineage {
    /// Whether shards have learned rows of the prior again.
    pub fn repeats(&self) -> Option<Finding> {
        judge_prior_rows(self.prior_repeated.len(), self.prior_sample.len())
    }
}

impl Numbered {
    /// Most shards that there can be: `merge` lists the numbers of those that are missing.
    pub const MOST: u32 = 1_000_000;

    /// What is wrong with these numbers, if they cannot be those of shards.
    pub(crate) fn fault(&self) -> Option<String> {
        let Numbered { of, shards } = self;
        if !(1..=Self::MOST).contains(of) {
            return Some(format!("it is one of {of} shards, and there can be from 1 to {}", Self::MOST));
        }
        if let Some(nth) = shards.iter().find(|nth| !(1..=*of).contains(*nth)) {
            return Some(format!("it is shard {nth} of {of}"));
        }
        let distinct: HashSet<&u32> = shards.iter().collect();
        (distinct.len() != shards.len()).then(|| "it has the number of a shard twice".to_string())
    }

    /// Those that are not here.
    pub fn missing(&self) -> Vec<u32> {
        let here: HashSet<u32> = self.shards.iter().copied().collect();
        (1..=self.of).filter(|nth| !here.contains(nth)).collect()
    }
}

/// A shard that is being learned.
#[derive(Debug, Clone, PartialEq)]
pub struct Shard {
    /// Where it comes from. The shards in it are those learned in earlier passes.
    pub lineage: Lineage,
    /// Of the rows that this pass has seen.
    pub rows: Fingerprint,
}
