//! Where rows come from: streaming CSV, the catalogue of data sets, synthetic draws.
//!
//! [`CsvStream`] reads delimited text block by block, [`MemoryRows`] serves rows that are in memory, and
//! [`ShuffleBuffer`] mixes the order of either. All are a [`RowSource`].

mod block;
mod catalogue;
mod cell;
mod columns;
mod dequantize;
mod detect;
mod error;
mod feed;
mod input;
mod nearest;
mod number;
mod plain;
mod records;
mod sample;
mod share;
mod shuffle;
mod source;
mod stream;
pub mod synth;
mod table;
mod text;

pub use block::Block;
pub use catalogue::{Catalogue, DataSet, PaperFigures, PaperPair, PaperTriple, Source, Units};
pub use columns::select_columns;
pub use dequantize::{DiscreteColumn, add_noise, discrete_column, find_discrete, with_noise};
pub use error::{BadCell, BadRow, DataError, RowProblem};
pub use input::Input;
pub use sample::Reservoir;
pub use share::{Piece, deal};
pub use shuffle::ShuffleBuffer;
pub use source::{MemoryRows, RowSource};
pub use stream::{BadRows, CsvOptions, CsvStream, ExpectedColumns};
