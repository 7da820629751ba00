//! Delimited text: what the first lines say about it, and its records as rows of numbers.
//!
//! A [`TextTable`] takes plain lines by a fast path and leaves every other line to the csv crate.

mod cell;
mod detect;
mod fast_lines;
mod feed;
mod lines;
mod number;
mod records;
mod sample;
mod table;
// Vector instructions. Each block of unsafe code says what makes it sound.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod simd_number;

pub(super) use cell::Comma;
pub(super) use detect::ColumnSample;
pub(super) use sample::{SAMPLE_LINES, has_number};
pub(super) use table::TextTable;
