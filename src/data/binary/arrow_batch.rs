//! One batch of an Arrow file: the buffers of the chosen columns, and their values.

use std::collections::HashMap;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use half::f16;

use super::arrow_schema::{ArrowField, ArrowType, BufferPlace, places};
use super::flatbuffer::Flat;
use super::{Value, damaged};

/// Where the parts of a batch are, as its message says.
pub(super) struct BatchPlan {
    pub(super) rows: usize,
    /// For each buffer, where it begins in the body, and its length.
    buffers: Vec<(u64, u64)>,
    places: Vec<BufferPlace>,
    codec: Option<Codec>,
    body: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Codec {
    Lz4,
    Zstd,
}

impl BatchPlan {
    /// Reads the message of a batch. The error says what is wrong.
    pub(super) fn read(batch: Flat, fields: &[ArrowField], body: u64) -> io::Result<BatchPlan> {
        let plan = || {
            let rows = usize::try_from(batch.long(0)).ok()?;
            let buffers = batch.longs(2, 2)?;
            let pairs = buffers.as_chunks::<2>().0.iter();
            let part = |[begin, length]: &[i64; 2]| {
                let part = (u64::try_from(*begin).ok()?, u64::try_from(*length).ok()?);
                (part.0.checked_add(part.1)? <= body).then_some(part)
            };
            let buffers = pairs.map(part).collect::<Option<Vec<_>>>()?;
            let places = places(fields, &batch.longs(4, 1)?)?;
            Some((rows, buffers, places))
        };
        let (rows, buffers, places) =
            plan().ok_or_else(|| damaged("the description of a batch is damaged"))?;
        let codec = match batch.table(3).map(|compression| compression.byte(0)) {
            None => None,
            Some(0) => Some(Codec::Lz4),
            Some(1) => Some(Codec::Zstd),
            Some(_) => return Err(damaged("a batch is compressed in an unknown way")),
        };
        Ok(BatchPlan { rows, buffers, places, codec, body })
    }

    /// Reads the values of columns, in the order of their places, and leaves the reader after the batch.
    pub(super) fn values(
        &self,
        fields: &[ArrowField],
        columns: &[usize],
        dictionaries: &Dictionaries,
        source: &mut impl Skipping,
    ) -> io::Result<Vec<ArrowArray>> {
        // A column may be chosen twice. Its buffers are read once, in the order of the body.
        let mut wanted = Vec::new();
        for &column in columns {
            let parts = self.parts(column, &fields[column]);
            self.buffers.get(parts.clone()).ok_or_else(|| damaged("a batch has too few parts"))?;
            wanted.extend(parts);
        }
        wanted.sort_unstable_by_key(|&buffer| (self.buffers[buffer], buffer));
        wanted.dedup();
        let mut held: Vec<(usize, Vec<u8>)> = Vec::with_capacity(wanted.len());
        let mut at = 0;
        for buffer in wanted {
            let (begin, length) = self.buffers[buffer];
            if begin < at {
                // Only empty buffers may begin where another one is.
                if length > 0 {
                    return Err(damaged("the parts of a batch overlap"));
                }
                held.push((buffer, Vec::new()));
                continue;
            }
            source.skip(begin - at)?;
            held.push((buffer, self.unpacked(source.bytes(length)?)?));
            at = begin + length;
        }
        source.skip(self.body - at)?;
        held.sort_unstable_by_key(|(buffer, _)| *buffer);
        let bytes = |buffer: usize| {
            let place = held.binary_search_by_key(&buffer, |(buffer, _)| *buffer);
            place.map_or(Vec::new(), |place| held[place].1.clone())
        };
        let values = |&column: &usize| {
            let field = &fields[column];
            let mut parts = self.parts(column, field).map(bytes);
            let mut part = || parts.next().unwrap_or_default();
            let (valid, values, texts) = (part(), part(), parts.collect());
            let (type_, dictionary) = match field.dictionary {
                Some((id, places)) => (places, Some(dictionaries.get(&id).cloned().unwrap_or_default())),
                None => (field.type_, None),
            };
            ArrowArray { type_, rows: self.rows, valid, values, texts, dictionary }.checked()
        };
        columns.iter().map(values).collect()
    }

    /// The buffers of a column.
    fn parts(&self, column: usize, field: &ArrowField) -> Range<usize> {
        let BufferPlace { buffer, further } = self.places[column];
        let texts = match field.type_ {
            _ if field.dictionary.is_some() => 0,
            ArrowType::Text(_) => 1,
            ArrowType::Views => further,
            _ => 0,
        };
        buffer..buffer.saturating_add(2).saturating_add(texts)
    }

    /// Reads past the batch.
    pub(super) fn skip(&self, source: &mut impl Skipping) -> io::Result<()> {
        source.skip(self.body)
    }

    /// A buffer without its compression. Its first bytes are its length.
    fn unpacked(&self, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let Some(codec) = self.codec.filter(|_| !bytes.is_empty()) else { return Ok(bytes) };
        let short = || damaged("a compressed part is too short");
        let (length, packed) = bytes.split_first_chunk().ok_or_else(short)?;
        let length = i64::from_le_bytes(*length);
        if length == -1 {
            return Ok(packed.to_vec());
        }
        let length = u64::try_from(length).map_err(|_| short())?;
        let mut unpacked = Vec::new();
        // The length is not trusted: the bytes must be there.
        match codec {
            Codec::Lz4 => {
                lz4_flex::frame::FrameDecoder::new(packed).take(length).read_to_end(&mut unpacked)?
            }
            Codec::Zstd => zstd::Decoder::new(packed)?.take(length).read_to_end(&mut unpacked)?,
        };
        if unpacked.len() as u64 == length { Ok(unpacked) } else { Err(short()) }
    }
}

/// Bytes of which some are skipped.
pub(super) trait Skipping {
    fn skip(&mut self, bytes: u64) -> io::Result<()>;

    /// The next bytes, all of them.
    fn bytes(&mut self, length: u64) -> io::Result<Vec<u8>>;
}

/// The values of dictionaries, by their numbers. A dictionary may come in several parts.
pub(super) type Dictionaries = HashMap<i64, Vec<Arc<ArrowArray>>>;

/// The values of one column in a batch.
pub(super) struct ArrowArray {
    type_: ArrowType,
    rows: usize,
    /// A bit for each value that is there; empty if all are.
    valid: Vec<u8>,
    values: Vec<u8>,
    texts: Vec<Vec<u8>>,
    /// If the values are places in a dictionary.
    dictionary: Option<Vec<Arc<ArrowArray>>>,
}

impl ArrowArray {
    fn checked(self) -> io::Result<ArrowArray> {
        let ArrowArray { type_, rows, valid, values, .. } = &self;
        let (type_, rows, bits) = (*type_, *rows, rows.div_ceil(8));
        let needed = match type_ {
            ArrowType::Boolean => Some(bits),
            ArrowType::Views => rows.checked_mul(16),
            ArrowType::Text(_) if rows == 0 => Some(0),
            ArrowType::Text(size) => rows.checked_add(1).and_then(|count| count.checked_mul(size)),
            other => other.size().and_then(|size| rows.checked_mul(size)),
        };
        let fits = needed.is_some_and(|needed| needed <= values.len());
        if !fits || !valid.is_empty() && valid.len() < bits {
            return Err(damaged("a column has fewer values than its batch"));
        }
        if self.dictionary.is_some() && (0..rows).any(|row| self.is_there(row) && self.entry(row).is_none()) {
            return Err(damaged("a value is not in its dictionary"));
        }
        Ok(self)
    }

    /// The part of the dictionary and the place in it that a row refers to.
    fn entry(&self, row: usize) -> Option<(&ArrowArray, usize)> {
        let size = self.type_.size().filter(|_| self.is_there(row))?;
        let mut place = usize::try_from(unsigned(&self.values[row * size..(row + 1) * size])).ok()?;
        for part in self.dictionary.iter().flatten() {
            if place < part.rows {
                return Some((part, place));
            }
            place -= part.rows;
        }
        None
    }

    fn is_there(&self, row: usize) -> bool {
        self.valid.is_empty() || bit(&self.valid, row)
    }

    /// The value in a row; `None` if it is missing.
    pub(super) fn value(&self, row: usize) -> Option<Value<'_>> {
        if self.dictionary.is_some() {
            let (values, place) = self.entry(row)?;
            return values.value(place);
        }
        if !self.is_there(row) {
            return None;
        }
        let bytes = |size: usize| &self.values[row * size..(row + 1) * size];
        Some(match self.type_ {
            ArrowType::Signed(size) => Value::Signed(integer(bytes(size)) as i64),
            ArrowType::Unsigned(size) => Value::Unsigned(unsigned(bytes(size))),
            ArrowType::Decimal(size, scale) => Value::Decimal(integer(bytes(size)), scale),
            ArrowType::Half => Value::Double(f16::from_bits(unsigned(bytes(2)) as u16).to_f64()),
            ArrowType::Single => Value::Single(f32::from_bits(unsigned(bytes(4)) as u32)),
            ArrowType::Double => Value::Double(f64::from_bits(unsigned(bytes(8)))),
            ArrowType::Boolean => Value::Boolean(bit(&self.values, row)),
            ArrowType::Moment(size, unit) => Value::Moment(integer(bytes(size)) as i64, unit),
            ArrowType::Views => Value::Text(self.viewed(bytes(16)).unwrap_or_default()),
            ArrowType::Text(size) => {
                let offset = |at: usize| unsigned(&self.values[at * size..(at + 1) * size]) as usize;
                let texts = self.texts.first().map_or(&[][..], Vec::as_slice);
                Value::Text(texts.get(offset(row)..offset(row + 1)).unwrap_or_default())
            }
            ArrowType::Unreadable(_) => return None,
        })
    }

    /// The text of a view: its length, and then the text itself if it is short, or its first bytes, its buffer and its place.
    fn viewed<'a>(&'a self, view: &'a [u8]) -> Option<&'a [u8]> {
        let part = |nth: usize| unsigned(&view[4 * nth..4 * nth + 4]) as usize;
        let length = part(0);
        match length <= 12 {
            true => view.get(4..4 + length),
            false => self.texts.get(part(2))?.get(part(3)..part(3).checked_add(length)?),
        }
    }
}

fn bit(bytes: &[u8], place: usize) -> bool {
    bytes[place / 8] >> (place % 8) & 1 == 1
}

/// The integer in at most 16 bytes, of which the first is the lowest.
fn integer(bytes: &[u8]) -> i128 {
    let is_negative = bytes.last().is_some_and(|byte| *byte >= 0x80);
    let mut wide = [if is_negative { 0xff } else { 0 }; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(wide)
}

fn unsigned(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(wide)
}
