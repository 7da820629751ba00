//! Full-covariance Gaussian mixtures learned **online** (one pass, bounded memory) and **distributed** (shards
//! merged exactly), by Bayesian Moment Matching.
//!
//! After each row the exact posterior of a mixture is a mixture of posteriors with K times as many terms. Bayesian
//! Moment Matching projects it back on one `Dirichlet · ∏ Normal-Wishart` with the same moments, so that a pass over
//! any number of rows needs the memory of one model. The method is that of Jaini & Poupart, *Online and Distributed
//! learning of Gaussian Mixture Models by Bayesian Moment Matching* (2016); what differs from the paper's equations,
//! and why, is written where it is done: [`learn::projection`].
//!
//! ```
//! use gmm_bmm::learn::{Algorithm, FitSettings, ObmmSettings, OnlineFit};
//! use ndarray::Array2;
//!
//! // Two groups of rows on a line, in whatever portions they come.
//! let rows = Array2::from_shape_fn((3000, 1), |(i, _)| (i % 2 * 10) as f64 + ((i * 37) % 101) as f64 / 50.0);
//!
//! let settings = FitSettings {
//!     algorithm: Algorithm::Obmm(ObmmSettings::default()),
//!     ks: vec![1, 2], // learned side by side
//!     seed: 1,
//!     init_rows: None,
//! };
//! let mut fit = OnlineFit::new(1, settings)?;
//! for portion in rows.axis_chunks_iter(ndarray::Axis(0), 100) {
//!     fit.observe(portion)?;
//! }
//!
//! let state = fit.state()?;
//! let best = &state.candidates[state.best()]; // by the density that rows got before they were learned
//! let mixture = best.learned.estimate();
//! assert_eq!(mixture.k(), 2);
//! assert!((mixture.weights()[0] - 0.5).abs() < 0.01);
//! let (log_densities, shares) = mixture.responsibilities(ndarray::array![[10.5]].view());
//! assert!(log_densities[0] > -2.0 && shares.row(0).iter().any(|share| *share > 0.999));
//! # Ok::<(), gmm_bmm::learn::LearnError>(())
//! ```
//!
//! # The house
//! A row enters in [`data`], meets a learner in [`learn`], and ends as numbers in a [`model`]; an [`experiment`] repeats
//! that over folds, K and learners and writes records, and a [`report`] turns records into tables and pictures. Below
//! them are the distributions ([`dist`]), the matrices ([`linalg`]), [`stats`] and [`special`] functions; on top the
//! command line ([`cli`]).
#![warn(missing_docs)]
// Unsafe code is for the vector kernels and OpenBLAS's switch alone; their modules allow it and say why it is sound.
#![deny(unsafe_code)]

pub mod cli;
pub mod data;
pub mod dist;
pub mod experiment;
pub mod learn;
pub mod linalg;
pub mod model;
pub mod report;
pub mod special;
pub mod stats;
