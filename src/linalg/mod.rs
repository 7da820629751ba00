//! Small dense linear algebra: the scaled Cholesky factor of a component's matrix, and batch helpers.

mod batch;
pub(crate) mod blocks;
mod component;
mod factor;
pub(crate) mod simd;

pub use batch::{cholesky, lower_inverse};
pub use component::ComponentMatrix;
pub use factor::{Factor, FactorError};
