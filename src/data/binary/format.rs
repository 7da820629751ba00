use super::TableSource;
use super::npy::NpySource;
use crate::data::error::DataError;
use crate::data::input::OpenInput;

/// A format that is known by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::data) enum Format {
    Npy,
    Parquet,
    ArrowFile,
    ArrowStream,
}

impl Format {
    const MAGIC: [(&'static [u8], Format); 4] = [
        (b"\x93NUMPY", Format::Npy),
        (b"PAR1", Format::Parquet),
        (b"ARROW1", Format::ArrowFile),
        (b"\xff\xff\xff\xff", Format::ArrowStream),
    ];

    /// The length of the longest first bytes.
    pub(in crate::data) const MAX_MAGIC: usize = 6;

    /// The format of bytes that begin with `start`.
    pub(in crate::data) fn of(start: &[u8]) -> Option<Format> {
        Format::MAGIC.iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, format)| *format)
    }

    /// Whether more bytes are needed to know the format.
    pub(in crate::data) fn may_begin_with(start: &[u8]) -> bool {
        Format::MAGIC.iter().any(|(magic, _)| start.len() < magic.len() && magic.starts_with(start))
    }

    /// The name in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Format::Npy => "a .npy array",
            Format::Parquet => "a Parquet file",
            Format::ArrowFile => "an Arrow file",
            Format::ArrowStream => "an Arrow stream",
        }
    }

    /// An error of this format.
    #[cfg(feature = "parquet")]
    pub(super) fn error(self, input: &OpenInput, what: impl Into<String>) -> DataError {
        DataError::Format { file: input.name.clone(), format: self.name(), what: what.into() }
    }

    /// Opens an input of this format.
    pub(super) fn open(self, input: OpenInput) -> Result<Box<dyn TableSource>, DataError> {
        match self {
            Format::Npy => Ok(Box::new(NpySource::open(input)?)),
            #[cfg(feature = "parquet")]
            Format::Parquet => Ok(Box::new(super::parquet::ParquetSource::open(input)?)),
            #[cfg(feature = "parquet")]
            Format::ArrowFile | Format::ArrowStream => {
                Ok(Box::new(super::arrow::ArrowSource::open(self, input)?))
            }
            #[cfg(not(feature = "parquet"))]
            _ => Err(DataError::NeedsFeature { file: input.name, format: self.name(), feature: "parquet" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_bytes_are_waited_for_than_the_format_needs() {
        assert!(
            Format::may_begin_with(b"") && Format::may_begin_with(b"PA") && Format::may_begin_with(b"ARROW")
        );
        for start in [&b"1"[..], b"P,Q\n", b"PAR1", b"\x93NUMPY", b"\xff\xfe", b"ARROW1"] {
            assert!(!Format::may_begin_with(start), "{start:?}");
        }
        assert_eq!(Format::of(b"PAR1\x15"), Some(Format::Parquet));
        assert_eq!(Format::of(b"PARITY,x\n"), None);
        assert!(Format::MAGIC.iter().all(|(magic, _)| magic.len() <= Format::MAX_MAGIC));
    }
}
