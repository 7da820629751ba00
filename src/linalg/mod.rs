//! Small dense linear algebra: the scaled Cholesky factor of a component's matrix, and batch helpers.

mod batch;
mod benchmark;
pub(crate) mod blocks;
mod component;
mod component_group;
mod factor;
mod interleaved;
// Vector loads, stores and instructions; each block of unsafe code says what makes it sound.
mod matrix_state;
mod precision;
mod row_blocks;
pub(crate) mod simd;
#[allow(unsafe_code)]
pub(crate) mod vector;

pub use batch::{cholesky, lower_inverse};
#[doc(hidden)]
pub use benchmark::fused_kernel;
pub(crate) use component_group::{Changes, ComponentGroup};
pub use factor::{Factor, FactorError};
pub use matrix_state::{MatrixState, MatrixStateError};
pub use simd::kernels;
