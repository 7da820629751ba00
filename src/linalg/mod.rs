//! Dense linear algebra: factors, kernels over blocks of rows, and whole-matrix steps. Nothing here knows mixtures.

mod batch;
pub(crate) mod blocks;
mod conditional;
mod covariance_type;
mod eigen;
mod factor;
pub(crate) mod gapped_rows;
mod gram;
pub(crate) mod nearest;
mod panels;
mod row_blocks;
pub(crate) mod simd;
pub(crate) mod special;
mod table;
// Vector loads, stores and instructions. Each block of unsafe code says what makes it sound.
#[allow(unsafe_code)]
pub(crate) mod vector;

pub use batch::cholesky;
pub(crate) use conditional::{Conditional, has_gaps};
pub use covariance_type::CovarianceType;
pub use eigen::symmetric_eigenvalues;
pub use factor::{Factor, FactorError};
pub use panels::lower_inverse;
pub use simd::kernels;
pub(crate) use table::{MAX_EXACT, Table};
