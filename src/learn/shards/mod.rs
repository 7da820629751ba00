//! Shards that are learned apart and merged.

pub(in crate::learn) mod assignment;
pub(in crate::learn) mod lineage;
pub(in crate::learn) mod merge;
pub(in crate::learn) mod odmm;
pub(in crate::learn) mod warm_up;
