//! Small dense linear algebra: the scaled Cholesky factor of a component's matrix, and batch helpers.

mod batch;
pub(crate) mod blocks;
mod component;
mod factor;
pub(crate) mod lanes;
mod precision;
pub(crate) mod simd;
mod working;

pub use batch::{cholesky, lower_inverse};
pub use component::ComponentMatrix;
pub(crate) use component::Update;
pub use factor::{Factor, FactorError};
#[doc(hidden)]
pub use precision::bare_kernel;
pub use working::{WorkingCopy, WorkingCopyError};
