//! The library, as a program meets it that links to it.

#[cfg(feature = "cli")]
mod browser;
#[path = "../common/mod.rs"]
mod common;
mod covariance;
mod data;
mod dist;
mod elbow;
mod gaps;
mod learners;
mod levels;
#[cfg(feature = "cli")]
mod page;
mod prior;
mod reference_values;
#[cfg(feature = "cli")]
mod report;
mod shards;
mod sound;
mod streams;
mod stress;
mod weights;
mod wilcoxon;
