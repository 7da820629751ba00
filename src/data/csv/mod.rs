//! Delimited text: what the first lines say about it, which columns are read, and its records as rows of numbers.
//!
//! A [`CsvStream`] reads [`Table`](table::Table)s one after the other. A table takes plain lines by a fast path and leaves
//! every other line to the csv crate.

mod cell;
mod columns;
mod detect;
mod expected;
mod feed;
mod lines;
mod number;
mod plain;
mod records;
mod sample;
mod stream;
mod table;

pub use columns::select_columns;
pub(super) use stream::CsvStream;
