//! The step of one row: the matrices of components, their updates, and the log-densities before them.
//!
//! # The forms of a component's matrix
//! A learner needs two things of a component's matrix `Ψ` for every row `v`: the quadratic form `vᵀΨ⁻¹v`, and the update
//! `Ψ ← stretch·(Ψ + τ v vᵀ)`. Three forms provide them:
//!
//! | form | holds | used for |
//! |---|---|---|
//! | Cholesky ([`Factor`]) | `c` and `L` of `Ψ = c·LLᵀ` | any conditioning; the only form near the floor of the pivots; distributions, model files |
//! | precision (`Precision`) | `c`, `P` of `Ψ = c·P`, and `M ≈ P⁻¹` | well-conditioned matrices; a few times faster |
//! | interleaved (`Interleaved`) | `P` and `M` of four components, element by element | the precision form with at most 16 columns |
//!
//! `Component` owns the mean and the matrix of one component and decides between the first two forms.
//! `ComponentGroup` owns up to four components, and the interleaved form of those that are in the precision form.
//!
//! | from → to | when | where |
//! |---|---|---|
//! | Cholesky → precision | `updates_left` reaches 0, all pivots are at least four times the floor, and the variance inflation is at most 10⁵ | `Component::try_switch_to_precision` |
//! | precision → Cholesky | a rebuild finds the matrix unfit, a row is far out (`τq` > 1000), or a quadratic form is negative | `Component::switch_to_factor` |
//! | precision → precision | a rebuild computes `M` from `P` again: after 4096 updates, or when the determinant has grown, the scale has drifted or the margin above the floor is used up | `Component::rebuild` |
//! | precision ↔ interleaved | a component needs a step of its own: its lane is stored, the step runs, the lane is loaded again | `ComponentGroup::with_component` |
//! | any → Cholesky, read only | an estimate, a posterior or a model file asks for the matrix | `ComponentGroup::factor` |
//!
//! While a `ComponentGroup` has an `Interleaved`, the means inside its `Component`s are unused, and their matrices in the
//! precision form are stale. `ComponentGroup::flush` refreshes the matrices.
//!
//! The decision depends on the matrix and on [`MatrixState`] alone. A model file holds both, so a resumed pass switches
//! after the same rows and computes the same bits. Without the `MatrixState` it computes the same results up to rounding.

mod benchmark;
mod component;
mod group;
mod interleaved;
mod matrix_state;
mod precision;
pub(in crate::learn) mod step;

#[doc(hidden)]
pub use benchmark::fused_kernel;
pub(in crate::learn) use group::{Changes, CompletedRows, ComponentGroup, complete};
pub use matrix_state::MatrixState;
