//! Arrays in NumPy's `.npz` format: an uncompressed zip archive of `.npy` members.
//!
//! It is written by hand because the archive needs two kinds of records and a checksum only, which is less than a crate for
//! zip archives would add. `numpy.load` reads it.

use std::io::{self, Write};

use flate2::Crc;

/// The values of an array, in C order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NpyValues<'a> {
    /// Doubles.
    F64(&'a [f64]),
    /// Signed integers.
    I64(&'a [i64]),
    /// Unsigned integers.
    U64(&'a [u64]),
    /// Texts.
    Text(&'a [String]),
}

impl NpyValues<'_> {
    fn len(&self) -> usize {
        match self {
            NpyValues::F64(values) => values.len(),
            NpyValues::I64(values) => values.len(),
            NpyValues::U64(values) => values.len(),
            NpyValues::Text(texts) => texts.len(),
        }
    }

    /// NumPy's name of the type, and the bytes of the values.
    fn encoded(&self) -> (String, Vec<u8>) {
        match self {
            NpyValues::F64(values) => ("<f8".into(), values.iter().flat_map(|v| v.to_le_bytes()).collect()),
            NpyValues::I64(values) => ("<i8".into(), values.iter().flat_map(|v| v.to_le_bytes()).collect()),
            NpyValues::U64(values) => ("<u8".into(), values.iter().flat_map(|v| v.to_le_bytes()).collect()),
            NpyValues::Text(texts) => {
                // Every text has the length of the longest, filled with zeros.
                let longest = texts.iter().map(|text| text.chars().count()).max().unwrap_or(0).max(1);
                let fill = |text: &String| {
                    let letters: Vec<u32> = text.chars().map(u32::from).collect();
                    (0..longest).map(move |i| letters.get(i).copied().unwrap_or(0))
                };
                let letters = texts.iter().flat_map(fill);
                (format!("<U{longest}"), letters.flat_map(|letter| letter.to_le_bytes()).collect())
            }
        }
    }
}

/// Writes named arrays to one file.
pub(crate) struct NpzWriter<W> {
    to: W,
    written: u32,
    directory: Vec<u8>,
    members: u16,
}

const LOCAL_FILE: u32 = 0x0403_4b50;
const CENTRAL_FILE: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
/// Version 2.0 of the format, which has no compression here.
const ZIP_VERSION: u16 = 20;
/// 1 January 1980, the first date that the format has, so that the bytes do not depend on the clock.
const DATE: u16 = 0x0021;

impl<W: Write> NpzWriter<W> {
    /// Begins an archive.
    pub fn new(to: W) -> Self {
        NpzWriter { to, written: 0, directory: Vec::new(), members: 0 }
    }

    /// Adds an array.
    ///
    /// # Errors
    /// Also if the archive grows beyond the 4 GB that the format allows.
    ///
    /// # Panics
    /// If the shape does not have as many elements as there are values.
    pub fn add(&mut self, name: &str, shape: &[usize], values: NpyValues) -> io::Result<()> {
        assert_eq!(shape.iter().product::<usize>(), values.len(), "the shape must be that of the values");
        let content = npy(shape, &values);
        let size = u32::try_from(content.len()).map_err(|_| too_large())?;
        let name = format!("{name}.npy");
        let mut sum = Crc::new();
        sum.update(&content);
        // What the record before the content and the one in the directory have in common.
        let mut common = Vec::new();
        for word in [ZIP_VERSION, 0, 0, 0, DATE] {
            common.extend_from_slice(&word.to_le_bytes());
        }
        for word in [sum.sum(), size, size] {
            common.extend_from_slice(&word.to_le_bytes());
        }
        common.extend_from_slice(&(name.len() as u16).to_le_bytes());
        common.extend_from_slice(&0u16.to_le_bytes());
        self.directory.extend_from_slice(&CENTRAL_FILE.to_le_bytes());
        self.directory.extend_from_slice(&ZIP_VERSION.to_le_bytes());
        self.directory.extend_from_slice(&common);
        // Comment, disk and attributes: none.
        self.directory.extend_from_slice(&[0; 10]);
        self.directory.extend_from_slice(&self.written.to_le_bytes());
        self.directory.extend_from_slice(name.as_bytes());
        self.members += 1;
        for part in [&LOCAL_FILE.to_le_bytes()[..], &common, name.as_bytes(), &content] {
            self.to.write_all(part)?;
            self.written = self.written.checked_add(part.len() as u32).ok_or_else(too_large)?;
        }
        Ok(())
    }

    /// Ends the archive and returns what it was written to.
    pub fn finish(mut self) -> io::Result<W> {
        self.to.write_all(&self.directory)?;
        self.to.write_all(&END.to_le_bytes())?;
        // Numbers of disks, members here and in all.
        for word in [0, 0, self.members, self.members] {
            self.to.write_all(&word.to_le_bytes())?;
        }
        self.to.write_all(&(self.directory.len() as u32).to_le_bytes())?;
        self.to.write_all(&self.written.to_le_bytes())?;
        self.to.write_all(&0u16.to_le_bytes())?;
        Ok(self.to)
    }
}

fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, "an .npz file has at most 4 GB")
}

/// The bytes of one `.npy` member, version 1.0.
fn npy(shape: &[usize], values: &NpyValues) -> Vec<u8> {
    const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
    const ALIGNMENT: usize = 64;
    let (kind, bytes) = values.encoded();
    let sizes: String = shape.iter().map(|size| format!("{size}, ")).collect();
    let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({sizes}), }}");
    let length = (MAGIC.len() + 2 + header.len() + 1).next_multiple_of(ALIGNMENT) - MAGIC.len() - 2;
    header += &" ".repeat(length - header.len() - 1);
    header.push('\n');
    let mut content = MAGIC.to_vec();
    content.extend_from_slice(&(length as u16).to_le_bytes());
    content.extend_from_slice(header.as_bytes());
    content.extend_from_slice(&bytes);
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_has_an_aligned_header_and_its_bytes() {
        let bytes = npy(&[2, 1], &NpyValues::F64(&[1.5, -2.0]));
        let header = u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
        assert!((10 + header).is_multiple_of(64) && bytes[10 + header - 1] == b'\n');
        let text = std::str::from_utf8(&bytes[10..10 + header]).unwrap();
        assert!(text.starts_with("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1, ), }"), "{text}");
        assert_eq!(&bytes[10 + header..18 + header], 1.5f64.to_le_bytes());
        let names = ["x".to_string(), "weiß".to_string()];
        let (kind, letters) = NpyValues::Text(&names).encoded();
        assert_eq!((kind.as_str(), letters.len()), ("<U4", 2 * 4 * 4));
        assert_eq!(&letters[28..32], [0xdf, 0, 0, 0]);
    }

    #[test]
    fn the_directory_points_to_the_members() {
        let mut archive = NpzWriter::new(Vec::new());
        archive.add("a", &[3], NpyValues::I64(&[1, 2, -3])).unwrap();
        archive.add("bc", &[0], NpyValues::U64(&[])).unwrap();
        let bytes = archive.finish().unwrap();
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let end = bytes.len() - 22;
        assert_eq!((number(end), bytes[end + 8], bytes[end + 10]), (END as usize, 2, 2));
        let mut at = number(end + 16);
        assert_eq!(at + number(end + 12), end);
        for name in ["a.npy", "bc.npy"] {
            assert_eq!((number(at), bytes[at + 28] as usize), (CENTRAL_FILE as usize, name.len()));
            assert_eq!(&bytes[at + 46..at + 46 + name.len()], name.as_bytes());
            let member = number(at + 42);
            assert_eq!(number(member), LOCAL_FILE as usize);
            let (size, content) = (number(member + 18), member + 30 + name.len());
            let mut sum = Crc::new();
            sum.update(&bytes[content..content + size]);
            assert_eq!(sum.sum() as usize, number(member + 14));
            at += 46 + name.len();
        }
        assert_eq!(at, end);
    }
}
