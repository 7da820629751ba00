//! Where rows come from: files of text, arrays and tables, the catalogue of data sets, synthetic rows.
//!
//! [`ReadOptions`] open files, patterns of file names and sets of the [`Catalogue`] as one [`RowReader`], or deal them
//! to shards. [`Prefetch`] reads them on a thread of its own. [`SynthRows`](synth::SynthRows) are drawn from a mixture. Both
//! are a [`RowSource`].
//!
//! Reading needs the feature `csv`; that of Parquet and Arrow files needs the feature `parquet`.

mod bad_row;
#[cfg(feature = "csv")]
mod binary;
mod block;
mod catalogue;
mod circular;
mod column_names;
#[cfg(feature = "csv")]
mod columns;
#[cfg(feature = "csv")]
mod csv;
mod dequantize;
mod did_you_mean;
mod error;
#[cfg(feature = "csv")]
mod followed;
#[cfg(feature = "csv")]
mod input;
#[cfg(feature = "csv")]
mod match_columns;
mod missing;
mod notice;
#[cfg(feature = "csv")]
mod options;
#[cfg(feature = "csv")]
mod prefetch;
mod reservoir;
#[cfg(feature = "csv")]
mod resolve;
#[cfg(feature = "csv")]
mod row_reader;
#[cfg(feature = "csv")]
mod row_texts;
#[cfg(feature = "csv")]
mod shards;
#[cfg(feature = "csv")]
mod shuffle;
mod source;
pub mod synth;
#[cfg(feature = "csv")]
mod table;

pub use bad_row::{BadCell, BadRow, ChosenBy, MissingValue, RowProblem};
pub use block::Block;
#[cfg(feature = "cli")]
pub(crate) use catalogue::TEXT as CATALOGUE_TEXT;
pub use catalogue::{Availability, Catalogue, DataSet, Source};
pub use circular::Circular;
pub use column_names::ColumnNames;
pub use dequantize::{Dequantize, DiscreteColumn, Noise, discrete_column, find_discrete, with_noise};
pub use error::DataError;
pub use missing::MissingCounts;
pub use notice::{ColumnContent, Notice};
pub use reservoir::Reservoir;
pub use source::RowSource;

#[cfg(feature = "csv")]
pub use self::columns::select_columns;
#[cfg(feature = "csv")]
pub use self::{
    input::Input,
    options::{BadCells, BadRows, Missing, ReadOptions},
    prefetch::{Next, Prefetch},
    row_reader::RowReader,
    row_texts::RowTexts,
    shards::FileShards,
};

/// The largest absolute value of a number that is read. Sums of squares of larger ones overflow.
pub const MAX_VALUE: f64 = 1e150;
