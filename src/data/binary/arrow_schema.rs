//! What an Arrow file says about its columns, and where their values are in a batch.

use super::flatbuffer::Flat;
use super::{Column, Content};
use crate::text::iso8601::Unit;

/// Deeper lists and records are refused.
const MAX_DEPTH: usize = 64;
/// A column of more parts is refused: a small file can claim any number.
const MAX_PARTS: usize = 10_000;

/// The type of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArrowType {
    Signed(usize),
    Unsigned(usize),
    Half,
    Single,
    Double,
    /// Bytes of the integer, and digits after the point.
    Decimal(usize, i32),
    Boolean,
    /// Bytes of an offset.
    Text(usize),
    /// Texts, each in its own place.
    Views,
    /// Bytes of the integer, and what it counts.
    Moment(usize, Unit),
    /// It can be skipped but not read.
    Unreadable(Content),
}

impl ArrowType {
    fn content(self) -> Content {
        match self {
            ArrowType::Boolean => Content::Booleans,
            ArrowType::Text(_) | ArrowType::Views => Content::Words,
            ArrowType::Moment(..) => Content::Dates,
            ArrowType::Unreadable(content) => content,
            _ => Content::Numbers,
        }
    }

    /// Bytes of a value, if all have the same.
    pub(super) fn size(self) -> Option<usize> {
        match self {
            ArrowType::Signed(size) | ArrowType::Unsigned(size) | ArrowType::Decimal(size, _) => Some(size),
            ArrowType::Moment(size, _) => Some(size),
            ArrowType::Half => Some(2),
            ArrowType::Single => Some(4),
            ArrowType::Double => Some(8),
            ArrowType::Boolean | ArrowType::Text(_) | ArrowType::Views | ArrowType::Unreadable(_) => None,
        }
    }
}

/// A column and its parts in a batch.
pub(super) struct ArrowField {
    pub(super) type_: ArrowType,
    /// If the column holds places in a dictionary: which one, and the type of the places.
    pub(super) dictionary: Option<(i64, ArrowType)>,
    layout: BufferCounts,
}

impl ArrowField {
    /// The values of the column's dictionary, as a column of their own.
    pub(super) fn entries(&self) -> ArrowField {
        let views = usize::from(self.type_ == ArrowType::Views);
        ArrowField {
            type_: self.type_,
            dictionary: None,
            layout: BufferCounts { nodes: 1, buffers: 2, views },
        }
    }
}

/// How much of a batch a column takes.
#[derive(Default)]
struct BufferCounts {
    nodes: usize,
    buffers: usize,
    /// Columns of texts that have a number of further buffers of their own.
    views: usize,
}

/// Where a column begins in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BufferPlace {
    pub(super) buffer: usize,
    /// How many further buffers of texts it has.
    pub(super) further: usize,
}

/// The columns of a file. The error says what is wrong.
pub(super) fn columns_of(schema: Flat) -> Result<(Vec<Column>, Vec<ArrowField>), String> {
    if schema.short(0).unwrap_or(0) != 0 {
        return Err("its numbers are big-endian: write it with little-endian numbers".into());
    }
    let fields = schema.tables(1).ok_or("the description of its columns is damaged")?;
    let (mut columns, mut read) = (Vec::new(), Vec::new());
    for field in fields {
        let type_ = type_of(field).ok_or("the description of a column is damaged")?;
        let dictionary = match field.table(4) {
            Some(encoding) => Some(dictionary_of(encoding).ok_or("the description of a column is damaged")?),
            None => None,
        };
        let mut layout = BufferCounts::default();
        layout.add(field, 0).ok_or("the description of a column is damaged")?;
        let name = field.text(0).unwrap_or_default().to_string();
        let has_text = !matches!(type_, ArrowType::Unreadable(_));
        columns.push(Column { name, content: type_.content(), has_text });
        read.push(ArrowField { type_, dictionary, layout });
    }
    Ok((columns, read))
}

/// Where the columns begin in a batch, of which texts may have further buffers.
pub(super) fn places(fields: &[ArrowField], further: &[i64]) -> Option<Vec<BufferPlace>> {
    let (mut buffer, mut views) = (0usize, 0);
    let mut places = Vec::with_capacity(fields.len());
    for ArrowField { layout, .. } in fields {
        let mut place = BufferPlace { buffer, further: 0 };
        for count in further.get(views..views + layout.views)? {
            place.further = place.further.checked_add(usize::try_from(*count).ok()?)?;
        }
        places.push(place);
        buffer = buffer.checked_add(layout.buffers)?.checked_add(place.further)?;
        views += layout.views;
    }
    Some(places)
}

/// The kinds of types, as the format numbers them.
mod kind {
    pub(super) const NULL: u8 = 1;
    pub(super) const INT: u8 = 2;
    pub(super) const FLOAT: u8 = 3;
    pub(super) const BINARY: u8 = 4;
    pub(super) const UTF8: u8 = 5;
    pub(super) const BOOL: u8 = 6;
    pub(super) const DECIMAL: u8 = 7;
    pub(super) const DATE: u8 = 8;
    pub(super) const TIME: u8 = 9;
    pub(super) const TIMESTAMP: u8 = 10;
    pub(super) const INTERVAL: u8 = 11;
    pub(super) const LIST: u8 = 12;
    pub(super) const STRUCT: u8 = 13;
    pub(super) const UNION: u8 = 14;
    pub(super) const FIXED_SIZE_BINARY: u8 = 15;
    pub(super) const FIXED_SIZE_LIST: u8 = 16;
    pub(super) const MAP: u8 = 17;
    pub(super) const DURATION: u8 = 18;
    pub(super) const LARGE_BINARY: u8 = 19;
    pub(super) const LARGE_UTF8: u8 = 20;
    pub(super) const LARGE_LIST: u8 = 21;
    pub(super) const RUN_END_ENCODED: u8 = 22;
    pub(super) const BINARY_VIEW: u8 = 23;
    pub(super) const UTF8_VIEW: u8 = 24;
    pub(super) const LIST_VIEW: u8 = 25;
    pub(super) const LARGE_LIST_VIEW: u8 = 26;
}

fn type_of(field: Flat) -> Option<ArrowType> {
    let details = || field.table(3);
    Some(match field.byte(2) {
        kind::NULL => ArrowType::Unreadable(Content::Nothing),
        // Integers of other sizes can still be left out.
        kind::INT => integers(details()?).unwrap_or(ArrowType::Unreadable(Content::Other)),
        kind::FLOAT => match details()?.short(0).unwrap_or(0) {
            0 => ArrowType::Half,
            1 => ArrowType::Single,
            2 => ArrowType::Double,
            _ => return None,
        },
        kind::DECIMAL => match details()?.int(2).unwrap_or(128) {
            bits @ (32 | 64 | 128) => ArrowType::Decimal(bits as usize / 8, details()?.int(1).unwrap_or(0)),
            _ => ArrowType::Unreadable(Content::Other),
        },
        kind::BOOL => ArrowType::Boolean,
        kind::UTF8 => ArrowType::Text(4),
        kind::LARGE_UTF8 => ArrowType::Text(8),
        kind::UTF8_VIEW => ArrowType::Views,
        kind::DATE => match details()?.short(0) {
            Some(0) => ArrowType::Moment(4, Unit::Days),
            _ => ArrowType::Moment(8, Unit::DayMillis),
        },
        kind::TIMESTAMP => {
            let (unit, utc) = (details()?.short(0).unwrap_or(0), details()?.text(1).is_some());
            ArrowType::Moment(
                8,
                Unit::Parts { digits: 3 * u32::try_from(unit).ok().filter(|unit| *unit < 4)?, utc },
            )
        }
        kind::DURATION => ArrowType::Signed(8),
        kind::TIME | kind::INTERVAL => ArrowType::Unreadable(Content::Dates),
        kind::BINARY | kind::LARGE_BINARY | kind::FIXED_SIZE_BINARY | kind::BINARY_VIEW => {
            ArrowType::Unreadable(Content::Words)
        }
        _ => ArrowType::Unreadable(Content::Other),
    })
}

fn integers(details: Flat) -> Option<ArrowType> {
    let (bits, is_signed) = (details.int(0)?, details.byte(1) != 0);
    let size = matches!(bits, 8 | 16 | 32 | 64).then_some(bits as usize / 8)?;
    Some(if is_signed { ArrowType::Signed(size) } else { ArrowType::Unsigned(size) })
}

/// Which dictionary a column has, and the type of its places.
fn dictionary_of(encoding: Flat) -> Option<(i64, ArrowType)> {
    Some((encoding.long(0), encoding.table(1).map_or(Some(ArrowType::Signed(4)), integers)?))
}

impl BufferCounts {
    fn add(&mut self, field: Flat, depth: usize) -> Option<()> {
        self.nodes += 1;
        if field.table(4).is_some() {
            self.buffers += 2;
            return Some(());
        }
        self.buffers += match field.byte(2) {
            kind::NULL | kind::RUN_END_ENCODED => 0,
            kind::STRUCT | kind::FIXED_SIZE_LIST => 1,
            // Of places in other columns, a dense union has one more buffer.
            kind::UNION => 1 + usize::from(field.table(3)?.short(0) == Some(1)),
            kind::BINARY | kind::UTF8 | kind::LARGE_BINARY | kind::LARGE_UTF8 => 3,
            kind::LIST_VIEW | kind::LARGE_LIST_VIEW => 3,
            kind::BINARY_VIEW | kind::UTF8_VIEW => {
                self.views += 1;
                2
            }
            kind::INT | kind::FLOAT | kind::BOOL | kind::DECIMAL..=kind::INTERVAL => 2,
            kind::FIXED_SIZE_BINARY | kind::DURATION | kind::LIST | kind::MAP | kind::LARGE_LIST => 2,
            _ => return None,
        };
        let children = field.tables(5)?;
        if self.nodes > MAX_PARTS || depth == MAX_DEPTH && !children.is_empty() {
            return None;
        }
        children.into_iter().try_for_each(|child| self.add(child, depth + 1))
    }
}
