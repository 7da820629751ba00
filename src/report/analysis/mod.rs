//! What the records say: the choice of K, scores over folds and seeds, and tests between learners. Nothing here formats.

mod below_start;
mod paired;
mod repeats;
mod scores;
mod select;
mod summary;

pub use paired::Arrow;
pub use scores::{KScore, Score};
pub use select::{Pairs, SIGNIFICANCE, SelectRule};
pub use summary::{Entry, SetSummary, Summary};
