//! Files of any content: atomic output, and arrays for NumPy.

#[cfg(feature = "cli")]
mod npz;
mod output;

#[cfg(feature = "cli")]
pub(crate) use npz::{NpyValues, NpzWriter};
pub(crate) use output::OutputFile;
#[cfg(feature = "cli")]
pub(crate) use output::{is_output_failure, place_of};
