//! Where rows come from: streaming CSV, the catalogue of data sets, synthetic draws.

mod block;

pub use block::Block;
