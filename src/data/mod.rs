//! Where rows come from: streaming CSV, the catalogue of data sets, synthetic draws.
//!
//! [`CsvStream`] reads delimited text block by block, [`SynthRows`](synth::SynthRows) are drawn, and [`ShuffleBuffer`] mixes
//! the order of either. All are a [`RowSource`].

mod block;
mod catalogue;
mod cell;
mod column_names;
mod columns;
mod dequantize;
mod detect;
mod error;
mod expected;
mod feed;
mod input;
mod lines;
mod nearest;
mod notice;
mod number;
mod plain;
mod records;
mod reservoir;
mod sample;
mod share;
mod shuffle;
mod source;
mod stream;
pub mod synth;
mod table;

pub use block::Block;
pub use catalogue::{Availability, Catalogue, DataSet, PaperFigures, PaperPair, PaperTriple, Source, Units};
pub use column_names::ColumnNames;
pub use columns::select_columns;
pub use dequantize::{DiscreteColumn, discrete_column, find_discrete, with_noise};
pub use detect::Content;
pub use error::{BadCell, BadRow, ChosenBy, DataError, RowProblem};
pub use input::Input;
pub use notice::Notice;
pub use reservoir::Reservoir;
pub use share::{Piece, deal};
pub use shuffle::ShuffleBuffer;
pub use source::RowSource;
pub use stream::{BadRows, CsvOptions, CsvStream};
