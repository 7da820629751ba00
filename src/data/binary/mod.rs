//! Arrays and tables of columns with types: `.npy`, Parquet and Arrow IPC.
//!
//! Each format is a [`TableSource`], which reads the chosen columns as numbers. A [`BinaryTable`] makes rows of them.

#[cfg(feature = "parquet")]
mod arrow;
#[cfg(feature = "parquet")]
mod arrow_batch;
#[cfg(feature = "parquet")]
mod arrow_schema;
#[cfg_attr(not(feature = "parquet"), allow(dead_code))]
mod decimal;
#[cfg(feature = "parquet")]
mod flatbuffer;
mod format;
mod npy;
mod npy_header;
#[cfg(feature = "parquet")]
mod pages;
#[cfg(feature = "parquet")]
mod parquet;
mod table;
// Arrays hold numbers alone.
#[cfg_attr(not(feature = "parquet"), allow(dead_code))]
mod value;

use std::io;
use std::path::Path;
use std::sync::Arc;

pub(super) use format::Format;
pub(super) use table::BinaryTable;
use value::Value;

use super::error::DataError;
use super::input::Input;
use super::notice::ColumnContent as Content;
use super::table::detect;

/// A table of columns with types.
trait TableSource: Send {
    /// What the columns hold.
    fn columns(&self) -> &[Column];

    /// Whether the columns have names of their own.
    fn is_named(&self) -> bool;

    /// How many rows there are. Nothing may be read after this.
    fn count_rows(&mut self) -> io::Result<u64>;

    /// Sets the columns that are read as numbers, and those that are read as text. Called once, before the first row is read.
    fn select(&mut self, numbers: &[usize], texts: &[usize]) -> Result<(), DataError>;

    /// Appends the next rows to `chunk`, at least one and at most `most`. Appends none at the end.
    fn read(&mut self, most: usize, chunk: &mut Chunk) -> io::Result<()>;

    /// Whether the next row can be read without waiting for it.
    fn holds_row(&self) -> bool {
        true
    }
}

/// What a column is called and what it holds.
struct Column {
    /// Empty if columns have no names.
    name: String,
    content: Content,
    /// Whether its values can be written as text.
    has_text: bool,
}

/// Rows as they were read.
#[derive(Default)]
struct Chunk {
    rows: usize,
    /// The columns of numbers, row after row. A missing value is a NaN of any kind.
    numbers: Vec<f64>,
    /// The columns of text, one after the other.
    texts: Vec<Vec<String>>,
}

impl Chunk {
    fn clear(&mut self) {
        self.rows = 0;
        self.numbers.clear();
        self.texts.iter_mut().for_each(Vec::clear);
    }
}

/// How many rows a file has, if it is an array or a table of columns.
pub(super) fn rows_in(path: &Path) -> Result<Option<u64>, DataError> {
    let input = Input::File(path.to_path_buf()).open(Arc::default(), None)?;
    let (Some(format), input) = detect(input)? else { return Ok(None) };
    let rows = format.open(input)?.count_rows();
    rows.map(Some).map_err(|source| DataError::Unreadable { file: path.display().to_string(), source })
}

/// An error in the bytes of a file.
fn damaged(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}
