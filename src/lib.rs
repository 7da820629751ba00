//! Full-covariance Gaussian mixtures learned **online** (one pass, bounded memory) and **distributed** (shards
//! merged exactly), by Bayesian Moment Matching.
//!
//! After each row the exact posterior of a mixture is a mixture of posteriors with K times as many terms. Bayesian
//! Moment Matching projects it back on one `Dirichlet · ∏ Normal-Wishart` with the same moments, so that a pass over
//! any number of rows needs the memory of one model. The method is that of Jaini & Poupart, *Online and Distributed
//! learning of Gaussian Mixture Models by Bayesian Moment Matching* (2016); what differs from the paper's equations,
//! and why, is written where it is done: [`learn::projection`].
//!
//! # A first mixture
//! A user of ndarray has rows in an [`ArrayView2`](ndarray::ArrayView2). [`fit`] learns from all of them; what comes back
//! is a [`GaussianMixture`], which scores, assigns and draws rows:
//!
//! ```
//! use gmm_bmm::{FitSettings, fit};
//! use ndarray::{Array2, array};
//!
//! // Two groups of rows on a line.
//! let rows = Array2::from_shape_fn((3000, 1), |(i, _)| (i % 2 * 10) as f64 + ((i * 37) % 101) as f64 / 50.0);
//!
//! // One component and two, learned side by side; the better one is kept.
//! let mixture = fit(rows.view(), FitSettings::obmm(1..=2))?;
//! assert_eq!(mixture.k(), 2);
//! assert!((mixture.weights()[0] - 0.5).abs() < 0.01);
//!
//! let new = array![[1.0], [11.0], [300.0]];
//! let log_densities = mixture.score_samples(new.view());
//! assert!(log_densities[0] > -3.0 && log_densities[2] < -100.0); // 300 is an outlier
//! let component = mixture.predict(new.view());
//! assert_ne!(component[0], component[1]);
//!
//! use rand::SeedableRng;
//! let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
//! let (drawn, _) = mixture.sample(100, &mut rng);
//! assert_eq!(drawn.dim(), (100, 1));
//! # Ok::<(), gmm_bmm::LearnError>(())
//! ```
//!
//! The feature `cli`, which is on by default, adds the command, its tables and its pictures. The feature `csv`, which `cli`
//! implies, adds reading of CSV files ([`data`]). A program that only learns and scores sets `default-features = false` and
//! compiles half of the packages.
//!
//! The arrays are those of `ndarray` 0.17, which is here as `gmm_bmm::ndarray`, and random numbers come from any generator
//! of `rand` 0.10 (above, `rand_chacha` 0.10): depend on these versions beside this crate.
//!
//! # A stream
//! Rows that do not fit in memory, or have not happened yet, go into an [`OnlineFit`] in portions, as into the
//! `partial_fit` of other libraries. The first 5000 or so are buffered for the start; a bounded sample of the rows is kept to revise it.
//! How a portion is cut makes no difference to any bit of the result.
//!
//! ```
//! # use gmm_bmm::{FitSettings, OnlineFit};
//! # use ndarray::{Array2, Axis};
//! # let rows = Array2::from_shape_fn((3000, 1), |(i, _)| (i % 2 * 10) as f64 + ((i * 37) % 101) as f64 / 50.0);
//! let mut pass = OnlineFit::new(1, FitSettings::obmm([2]))?;
//! for portion in rows.axis_chunks_iter(Axis(0), 100) {
//!     pass.observe(portion)?;
//! }
//! assert_eq!(pass.rows(), 3000);
//! let mixture = pass.mixture()?; // now, and again whenever it is wanted
//! # assert_eq!(mixture.k(), 2);
//! # Ok::<(), gmm_bmm::LearnError>(())
//! ```
//!
//! A [`Model`] is what a pass knows, with the names of the columns, for a file: written, read and gone on with, it gives
//! the bits of a pass that never stopped. `examples/stream.rs` does that.
//!
//! # Several machines
//! A [`Model`] also serves as the common prior of shards that are learned apart and merged:
//! [`Model::begin_shard`], [`model::merge_models`], and `examples/distributed.rs`. With one component the merged posterior
//! is exactly that of all rows; with more it is very nearly.
//!
//! # What may change
//! Versions follow semantic versioning for what this page names at the crate's root ([`fit`], [`FitSettings`], [`OnlineFit`],
//! [`Algorithm`], [`GaussianMixture`], [`LearnError`], [`Model`]), for their methods, and for model files: a newer version
//! reads the files of every older one. The other items of the modules are public so that experiments can be built on
//! them; they may change with any 0.x version.
//!
//! # The house
//! A row enters in [`data`], meets a learner in [`learn`], and ends as numbers in a [`model`]; an [`experiment`] repeats
//! that over folds, K and learners and writes records, and a [`report`] turns records into tables and pictures. Below
//! them are the distributions ([`dist`]), the matrices ([`linalg`]), [`stats`] and [`special`] functions; on top the
//! command line ([`cli`]).
#![warn(missing_docs)]
// Unsafe code is for the vector kernels and OpenBLAS's switch alone; their modules allow it and say why it is sound.
#![deny(unsafe_code)]

#[cfg(feature = "cli")]
pub mod cli;
pub mod data;
pub mod dist;
pub mod experiment;
mod fnv;
pub mod learn;
pub mod linalg;
pub mod model;
mod remedy;
#[cfg(feature = "cli")]
pub mod report;
pub mod special;
pub mod stats;
mod text;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use data::ColumnNames;
pub use dist::GaussianMixture;
pub use learn::{Algorithm, Components, Finding, FitSettings, LearnError, OnlineFit, fit};
pub use model::Model;
pub use ndarray;
pub use remedy::Remedy;
