//! Gaussian mixtures learned online and distributed, by Bayesian Moment Matching.
#![warn(missing_docs)]

pub mod cli;
pub mod data;
pub mod dist;
pub mod learn;
pub mod linalg;
pub mod model;
pub mod special;
