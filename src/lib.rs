//! Full-covariance Gaussian mixtures, learned **online** (one pass, bounded memory) and **distributed** (shards that are
//! merged), by Bayesian Moment Matching.
//!
//! After each row, the exact posterior of a mixture is a mixture of posteriors with K times as many terms. Bayesian Moment
//! Matching projects it onto one `Dirichlet · ∏ Normal-Wishart` with the same moments, so a pass over any number of rows
//! needs the memory of one model. The method is that of Jaini & Poupart, *Online and Distributed Learning of Gaussian
//! Mixture Models by Bayesian Moment Matching* (2016).
//!
//! # Rows in memory
//! [`fit`] learns a [`GaussianMixture`] from the rows of an ndarray. The mixture scores, assigns and draws rows:
//!
//! ```
//! use gmm_bmm::{FitSettings, fit};
//! use ndarray::{Array2, array};
//!
//! // Two groups of rows on a line.
//! let rows = Array2::from_shape_fn((3000, 1), |(i, _)| (i % 2 * 10) as f64 + ((i * 37) % 101) as f64 / 50.0);
//!
//! // One and two components, learned in parallel. The better one is kept.
//! let mixture = fit(rows.view(), FitSettings::obmm(1..=2))?.mixture;
//! assert_eq!(mixture.k(), 2);
//! assert!((mixture.weights()[0] - 0.5).abs() < 0.01);
//!
//! let new = array![[1.0], [11.0], [300.0]];
//! let log_densities = mixture.score_samples(new.view())?;
//! assert!(log_densities[0] > -3.0 && log_densities[2] < -100.0); // 300 is an outlier
//! let component = mixture.predict(new.view())?;
//! assert_ne!(component[0], component[1]);
//!
//! use rand::SeedableRng;
//! let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
//! let (drawn, _) = mixture.sample(100, &mut rng);
//! assert_eq!(drawn.dim(), (100, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The arrays are those of `ndarray` 0.17, which this crate exports as `gmm_bmm::ndarray`. Random numbers come from any
//! generator of `rand` 0.10, such as those of `rand_chacha` 0.10.
//!
//! # A stream
//! An [`OnlineFit`] learns rows that arrive in batches, as `partial_fit` of other libraries does. It buffers the first 5000
//! rows for the start and keeps a bounded sample of the rows for revisions. How the rows are divided into batches changes no
//! bit of the result.
//!
//! ```
//! # use gmm_bmm::{FitSettings, OnlineFit};
//! # use ndarray::{Array2, Axis};
//! # let rows = Array2::from_shape_fn((3000, 1), |(i, _)| (i % 2 * 10) as f64 + ((i * 37) % 101) as f64 / 50.0);
//! let mut pass = OnlineFit::new(1, FitSettings::obmm(2))?;
//! for batch in rows.axis_chunks_iter(Axis(0), 100) {
//!     pass.observe(batch)?;
//! }
//! assert_eq!(pass.rows(), 3000);
//! let mixture = pass.mixture()?; // at any time
//! # assert_eq!(mixture.k(), 2);
//! # Ok::<(), gmm_bmm::LearnError>(())
//! ```
//!
//! A [`Model`] is a pass that can be written to a file ([`OnlineFit::to_model`]). A pass that resumes from it
//! ([`Model::resume`]) gives the same bits as one that never stopped. See `examples/stream.rs`.
//!
//! # Several machines
//! A [`Model`] can be the common prior of shards that are learned apart ([`Model::begin_shard`]) and merged
//! ([`merge_models`]). With one component, the merged posterior is exactly that of all rows; with more components it is an
//! approximation. See `examples/distributed.rs`.
//!
//! # Features
//! The feature `cli`, on by default, adds the command, its tables and its pictures. The feature `csv`, which `cli` implies,
//! adds reading of CSV and `.npy` files ([`data`]), and `parquet`, on by default, that of Parquet and Arrow files. A program
//! that only learns and scores sets `default-features = false` and compiles half of the packages.
//!
//! # Versions
//! Semantic versioning covers the items of this page, except the modules [`data`] and [`dist`], which may change with any 0.x
//! version. A newer version reads model files from version 4 of their format on.
#![warn(missing_docs)]
// Unsafe code is for the vector kernels and OpenBLAS's switch alone; their modules allow it and say why it is sound.
#![deny(unsafe_code)]

#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
pub mod data;
pub mod dist;
#[cfg(feature = "cli")]
mod experiment;
mod files;
mod hash;
mod learn;
mod linalg;
pub mod model;
mod page;
mod remedy;
#[cfg(feature = "cli")]
mod report;
mod stats;
mod text;

/// What the command, the tests, benchmarks and fuzz targets of this package use of the private modules. It is not part of
/// the API.
#[doc(hidden)]
pub mod internals {
    #[cfg(feature = "cli")]
    pub mod experiment {
        pub use crate::experiment::{
            CellRecord, CellSettings, Contender, CurveRecord, DataRecord, Failure, RECORDS_FILE, Record,
            RecordIndex, RunRecord, Units, paper_figures, read_records,
        };
    }
    pub mod learn {
        pub use crate::learn::rules::projection::{Scalars, project_dirichlet_literally};
        pub use crate::learn::{
            CandidateState, CommonPrior, FitState, LearnedShard, LearnerState, Rows, WarmUp,
            check_enough_rows, check_shards, default_start_rows,
        };
    }
    pub mod linalg {
        pub use crate::learn::kernel::{MatrixState, fused_kernel};
        pub use crate::linalg::{Factor, FactorError, cholesky, kernels, symmetric_eigenvalues};
    }
    #[cfg(feature = "cli")]
    pub mod report {
        pub use crate::report::{
            Arrow, Pairs, ReportError, ReportOptions, SelectRule, Summary, figure1, pack, write_report,
        };
    }
    pub mod special {
        pub use crate::linalg::special::{log_gamma_ratio, log_sum_exp};
    }
    pub mod stats {
        pub use crate::stats::{BatchSums, ScoredK, holm, signed_rank};
    }
}

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use data::ColumnNames;
pub use dist::GaussianMixture;
pub use learn::{FitSettings, Fitted, LearnError, OnlineFit, Progress, fit};
pub use model::{MergeError, MergeOptions, Model, ModelError, merge_models};
pub use ndarray;
pub use page::PageOptions;
pub use remedy::Remedy;

pub mod settings {
    //! The settings of a pass: algorithms, numbers of components, effort.

    pub use crate::learn::{
        Algorithm, Components, Effort, Moments, ObmmSettings, OdmmSettings, OemSettings, PriorStrength,
        RowWeights, StartKind,
    };
    pub use crate::linalg::CovarianceType;
}

pub mod batch {
    //! Batch EM over rows in memory.

    pub use crate::learn::{
        EmFit, EmSettings, WeightedRows, expectation_maximisation, fit_em, fit_em_from_kmeans,
        fit_em_learning_k,
    };
}

pub mod findings {
    //! What a pass finds out about the data and its own numerics.

    pub use crate::learn::{
        ChangeKind, ColumnFault, ColumnShift, DataChange, DataChanges, Finding, Health, NamedShift,
        find_column_faults, find_discrete_columns, find_numbering, judge_row_count, name_column_faults,
    };
}

pub mod scores {
    //! Scores of rows and of numbers of components.

    pub use crate::learn::{KComparison, Prequential, RankTable, RatedK, ScoreRanks, Today, TryNext};
    pub use crate::stats::{Beyond, ColumnSummary, Elbow};
}

pub mod revisions {
    //! The record of the revisions of a mixture.

    pub use crate::learn::{ActiveRows, MergeMove, Move, Reason, RevisionRecord, SplitMove};
}
