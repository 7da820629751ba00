//! One pass over a stream: settings, the start, candidates, the closing revision, and the saved state.

pub(in crate::learn) mod blind;
pub(in crate::learn) mod candidate;
pub(in crate::learn) mod cost;
pub(in crate::learn) mod counts;
pub(in crate::learn) mod k_comparison;
pub(in crate::learn) mod learning;
pub(in crate::learn) mod novelty_level;
pub(in crate::learn) mod online_fit;
pub(in crate::learn) mod places;
pub(in crate::learn) mod ranking;
pub(in crate::learn) mod settings;
pub(in crate::learn) mod start;
pub(in crate::learn) mod state;
