//! Parquet files: the chosen columns, some rows at a time.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use half::f16;
use parquet::basic::{Compression, ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{AsBytes, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};

use super::decimal::integer;
use super::pages::CheckedPages;
use super::{Chunk, Column, Content, Format, TableSource, Value, damaged};
use crate::data::error::DataError;
use crate::data::input::OpenInput;
use crate::text::iso8601::Unit;

/// The rows of a Parquet file.
pub(super) struct ParquetSource {
    file: String,
    reader: SerializedFileReader<File>,
    columns: Vec<Column>,
    /// For each column, the place of its values in the file, and how they are read.
    values: Vec<Option<(usize, ParquetKind)>>,
    numbers: Vec<usize>,
    texts: Vec<usize>,
    /// The group of rows that is read next, or whose rows are read.
    group: usize,
    /// The readers of the chosen columns in that group: first those of numbers, then those of text.
    open: Vec<(ColumnReader, ParquetKind)>,
    /// Rows left in that group.
    left_in_group: u64,
    /// Rows to leave out at the beginning, and rows left to read.
    skip: u64,
    left: u64,
    /// Bytes are counted by rows.
    count: Arc<AtomicU64>,
    file_bytes: u64,
    file_rows: u64,
}

/// How the values of a column are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ParquetKind {
    type_: ParquetType,
    /// The definition level of a value that is not missing.
    level: i16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParquetType {
    Signed,
    Unsigned,
    Float,
    Half,
    /// Decimals with this many digits after the point.
    Decimal(i32),
    Boolean,
    Text,
    Moment(Unit),
    /// It can be skipped but not read.
    Unreadable(Content),
}

impl ParquetSource {
    pub(super) fn open(input: OpenInput) -> Result<ParquetSource, DataError> {
        let format = Format::Parquet;
        let Some(path) = &input.path else {
            let what = match input.gzip {
                true => "it is compressed as a whole: unpack it first",
                false => "its end is read first, so that it cannot come from a pipe: save it as a file",
            };
            return Err(format.error(&input, what));
        };
        let file =
            File::open(path).map_err(|source| DataError::Unreadable { file: input.name.clone(), source })?;
        let file_bytes = file.metadata().map_or(0, |metadata| metadata.len());
        let opened = guarded(|| {
            let reader = SerializedFileReader::new(file).map_err(|error| {
                let what = words(&error);
                damaged(format!(
                    "{} (if it was cut off or damaged, write or fetch it anew)",
                    what.trim_end_matches('.')
                ))
            })?;
            let (columns, values) = columns_of(&reader);
            let file_rows =
                check_groups(&reader, file_bytes).ok_or_else(|| damaged("its description is damaged"))?;
            Ok((reader, columns, values, file_rows))
        });
        let (reader, columns, values, file_rows) =
            opened.map_err(|error| format.error(&input, error.to_string()))?;
        let (from, to) = input.rows.unwrap_or((0, file_rows));
        let left = to.min(file_rows).saturating_sub(from);
        Ok(ParquetSource {
            file: input.name,
            reader,
            columns,
            values,
            numbers: Vec::new(),
            texts: Vec::new(),
            group: 0,
            open: Vec::new(),
            left_in_group: 0,
            skip: from,
            left,
            count: input.bytes,
            file_bytes,
            file_rows,
        })
    }

    /// Makes sure that there are rows left in the group, if any are left.
    fn next_group(&mut self) -> io::Result<()> {
        while self.left_in_group == 0 && self.left > 0 {
            let groups = self.reader.metadata().row_groups();
            let Some(group) = groups.get(self.group) else {
                return Err(damaged("there are fewer rows than the file says"));
            };
            let rows = u64::try_from(group.num_rows()).unwrap_or_default();
            let skipped = self.skip.min(rows);
            self.skip -= skipped;
            if skipped < rows {
                self.open = guarded(|| self.open_columns(skipped))?;
                self.left_in_group = rows - skipped;
            }
            self.group += 1;
        }
        Ok(())
    }

    /// The readers of the chosen columns in the group, after some rows.
    fn open_columns(&self, skipped: u64) -> io::Result<Vec<(ColumnReader, ParquetKind)>> {
        let failed = |error: ParquetError| damaged(words(&error));
        let group = self.reader.get_row_group(self.group).map_err(failed)?;
        let open = |&column: &usize| {
            let (leaf, kind) = self.values[column].ok_or_else(|| damaged("a column has no values"))?;
            let pages = group.get_column_page_reader(leaf).map_err(failed)?;
            let descriptor = group.metadata().schema_descr().column(leaf);
            let mut reader = get_column_reader(descriptor, Box::new(CheckedPages::new(pages)));
            if skip(&mut reader, skipped as usize).map_err(failed)? as u64 != skipped {
                return Err(damaged(format!("column '{}' ends early", self.columns[column].name)));
            }
            Ok((reader, kind))
        };
        self.numbers.iter().chain(&self.texts).map(open).collect()
    }
}

impl TableSource for ParquetSource {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn is_named(&self) -> bool {
        true
    }

    fn count_rows(&mut self) -> io::Result<u64> {
        Ok(self.left)
    }

    fn select(&mut self, numbers: &[usize], texts: &[usize]) -> Result<(), DataError> {
        (self.numbers, self.texts) = (numbers.to_vec(), texts.to_vec());
        let groups = self.reader.metadata().row_groups();
        for &(leaf, _) in numbers.iter().chain(texts).filter_map(|&column| self.values[column].as_ref()) {
            let codecs = groups.iter().filter_map(|group| group.columns().get(leaf)).map(|c| c.compression());
            let unknown =
                codecs.into_iter().find(|codec| matches!(codec, Compression::BROTLI(_) | Compression::LZO));
            if let Some(codec) = unknown {
                let codec = format!("{codec:?}");
                let codec = codec.split('(').next().unwrap_or_default().to_lowercase();
                let what = format!("it is compressed with {codec}: write it with snappy, lz4, zstd or gzip");
                let (file, format) = (self.file.clone(), Format::Parquet.name());
                return Err(DataError::Format { file, format, what });
            }
        }
        Ok(())
    }

    fn read(&mut self, most: usize, chunk: &mut Chunk) -> io::Result<()> {
        self.next_group()?;
        let rows = self.left_in_group.min(self.left).min(most as u64) as usize;
        if rows == 0 {
            return Ok(());
        }
        let width = self.numbers.len();
        let mut numbers = vec![f64::NAN; rows * width];
        let mut texts = Vec::with_capacity(self.texts.len());
        for (nth, (reader, kind)) in self.open.iter_mut().enumerate() {
            let column = self.numbers.iter().chain(&self.texts).nth(nth).map(|&i| &self.columns[i].name);
            let failed = |error: io::Error| {
                let name = column.map_or("", String::as_str);
                // Without its key, an encrypted column cannot be told from a damaged one.
                damaged(format!("column '{name}' is damaged or encrypted: {error}"))
            };
            if nth < width {
                let mut places = numbers[nth..].iter_mut().step_by(width);
                let take = |value: Option<Value>| {
                    if let Some(place) = places.next() {
                        *place = value.map_or(f64::NAN, Value::number);
                    }
                };
                guarded(|| read_column(reader, *kind, rows, take)).map_err(failed)?;
            } else {
                let mut column = Vec::with_capacity(rows);
                let take = |value: Option<Value>| column.push(value.map_or(String::new(), Value::text));
                guarded(|| read_column(reader, *kind, rows, take)).map_err(failed)?;
                texts.push(column);
            }
        }
        // Nothing is appended if one of the columns fails.
        chunk.numbers.extend_from_slice(&numbers);
        chunk.texts.iter_mut().zip(texts).for_each(|(column, text)| column.extend(text));
        chunk.rows += rows;
        self.left_in_group -= rows as u64;
        self.left -= rows as u64;
        let share = u128::from(self.file_bytes) * rows as u128 / u128::from(self.file_rows.max(1));
        self.count.fetch_add(share as u64, Ordering::Relaxed);
        Ok(())
    }
}

/// Calls the parquet crate, which may panic on damaged bytes.
fn guarded<T>(read: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
    read.unwrap_or_else(|_| Err(damaged("its bytes are damaged")))
}

/// The rows of all groups, if the columns of each are inside the file.
fn check_groups(reader: &SerializedFileReader<File>, file_bytes: u64) -> Option<u64> {
    let mut rows = 0u64;
    for group in reader.metadata().row_groups() {
        rows = rows.checked_add(u64::try_from(group.num_rows()).ok()?)?;
        for column in group.columns() {
            let first = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            let (first, length) = (u64::try_from(first).ok()?, u64::try_from(column.compressed_size()).ok()?);
            (first.checked_add(length)? <= file_bytes).then_some(())?;
        }
        (group.columns().len() == group.schema_descr().num_columns()).then_some(())?;
    }
    Some(rows)
}

/// What an error of the crate says.
fn words(error: &ParquetError) -> String {
    match error {
        ParquetError::General(what) | ParquetError::EOF(what) | ParquetError::NYI(what) => what.clone(),
        other => other.to_string(),
    }
}

/// The columns of a file, with the place of their values and how they are read. Lists and records have no such place.
fn columns_of(reader: &SerializedFileReader<File>) -> (Vec<Column>, Vec<Option<(usize, ParquetKind)>>) {
    let schema = reader.metadata().file_metadata().schema_descr();
    let fields = schema.root_schema().get_fields();
    let mut values = vec![None; fields.len()];
    for leaf in 0..schema.num_columns() {
        let (root, descriptor) = (schema.get_column_root_idx(leaf), schema.column(leaf));
        if fields[root].is_primitive() && descriptor.max_rep_level() == 0 {
            let kind = ParquetKind { type_: type_of(&descriptor), level: descriptor.max_def_level() };
            values[root] = Some((leaf, kind));
        }
    }
    let column = |(i, value): (usize, &Option<(usize, ParquetKind)>)| {
        let content = value.map_or(Content::Other, |(_, kind)| kind.type_.content());
        let has_text = value.is_some_and(|(_, kind)| !matches!(kind.type_, ParquetType::Unreadable(_)));
        Column { name: fields[i].name().to_string(), content, has_text }
    };
    (values.iter().enumerate().map(column).collect(), values)
}

fn type_of(column: &ColumnDescPtr) -> ParquetType {
    use ConvertedType as Old;
    let old = column.converted_type();
    if let Some(scale) = decimal_scale(column) {
        return ParquetType::Decimal(scale);
    }
    match (column.physical_type(), column.logical_type_ref()) {
        (Physical::BOOLEAN, _) => ParquetType::Boolean,
        (Physical::FLOAT | Physical::DOUBLE, _) => ParquetType::Float,
        (Physical::INT96, _) => ParquetType::Unreadable(Content::Dates),
        (Physical::INT32 | Physical::INT64, Some(LogicalType::Integer(int))) => match int.is_signed {
            true => ParquetType::Signed,
            false => ParquetType::Unsigned,
        },
        (Physical::INT32 | Physical::INT64, None) => match old {
            Old::UINT_8 | Old::UINT_16 | Old::UINT_32 | Old::UINT_64 => ParquetType::Unsigned,
            Old::NONE | Old::INT_8 | Old::INT_16 | Old::INT_32 | Old::INT_64 => ParquetType::Signed,
            Old::DATE => ParquetType::Moment(Unit::Days),
            Old::TIMESTAMP_MILLIS => ParquetType::Moment(Unit::Parts { digits: 3, utc: true }),
            Old::TIMESTAMP_MICROS => ParquetType::Moment(Unit::Parts { digits: 6, utc: true }),
            _ => ParquetType::Unreadable(Content::Dates),
        },
        (Physical::INT32, Some(LogicalType::Date)) => ParquetType::Moment(Unit::Days),
        (Physical::INT64, Some(LogicalType::Timestamp(time))) => {
            let digits = match time.unit {
                TimeUnit::MILLIS => 3,
                TimeUnit::MICROS => 6,
                TimeUnit::NANOS => 9,
            };
            ParquetType::Moment(Unit::Parts { digits, utc: time.is_adjusted_to_u_t_c })
        }
        (_, Some(LogicalType::Unknown)) => ParquetType::Unreadable(Content::Nothing),
        (Physical::INT32 | Physical::INT64, Some(_)) => ParquetType::Unreadable(Content::Dates),
        (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Float16)) => ParquetType::Half,
        (Physical::BYTE_ARRAY, Some(LogicalType::String | LogicalType::Enum | LogicalType::Json)) => {
            ParquetType::Text
        }
        (Physical::BYTE_ARRAY, None) if matches!(old, Old::UTF8 | Old::ENUM | Old::JSON) => ParquetType::Text,
        (Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY, _) => ParquetType::Unreadable(Content::Words),
    }
}

/// The digits after the point, if the column holds decimals of at most 128 bits.
fn decimal_scale(column: &ColumnDescriptor) -> Option<i32> {
    let scale = match column.logical_type_ref() {
        Some(LogicalType::Decimal(decimal)) => decimal.scale,
        None if column.converted_type() == ConvertedType::DECIMAL => column.type_scale(),
        _ => return None,
    };
    let fits = column.physical_type() != Physical::FIXED_LEN_BYTE_ARRAY || column.type_length() <= 16;
    fits.then_some(scale)
}

impl ParquetType {
    fn content(self) -> Content {
        match self {
            ParquetType::Signed
            | ParquetType::Unsigned
            | ParquetType::Float
            | ParquetType::Half
            | ParquetType::Decimal(_) => Content::Numbers,
            ParquetType::Boolean => Content::Booleans,
            ParquetType::Text => Content::Words,
            ParquetType::Moment(_) => Content::Dates,
            ParquetType::Unreadable(content) => content,
        }
    }
}

fn skip(reader: &mut ColumnReader, rows: usize) -> Result<usize, ParquetError> {
    use ColumnReader::*;
    match reader {
        BoolColumnReader(reader) => reader.skip_records(rows),
        Int32ColumnReader(reader) => reader.skip_records(rows),
        Int64ColumnReader(reader) => reader.skip_records(rows),
        Int96ColumnReader(reader) => reader.skip_records(rows),
        FloatColumnReader(reader) => reader.skip_records(rows),
        DoubleColumnReader(reader) => reader.skip_records(rows),
        ByteArrayColumnReader(reader) => reader.skip_records(rows),
        FixedLenByteArrayColumnReader(reader) => reader.skip_records(rows),
    }
}

/// Passes `rows` values of a column to `take`, `None` where they are missing.
fn read_values<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    level: i16,
    rows: usize,
    value: impl for<'v> Fn(&'v T::T) -> Value<'v>,
    mut take: impl FnMut(Option<Value>),
) -> io::Result<()> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let mut read = 0;
    while read < rows {
        let wanted = if level > 0 { Some(&mut levels) } else { None };
        let found = reader.read_records(rows - read, wanted, None, &mut values);
        let (records, _, _) = found.map_err(|error| damaged(words(&error)))?;
        if records == 0 {
            return Err(damaged("it ends early"));
        }
        read += records;
    }
    if level == 0 {
        values.iter().for_each(|own| take(Some(value(own))));
        return if values.len() == rows { Ok(()) } else { Err(damaged("values are missing")) };
    }
    let mut values = values.iter();
    for found in levels {
        match found == level {
            true => take(Some(value(values.next().ok_or_else(|| damaged("values are missing"))?))),
            false => take(None),
        }
    }
    Ok(())
}

/// Passes `rows` values of a column of any type to `take`, `None` where they are missing.
fn read_column(
    reader: &mut ColumnReader,
    ParquetKind { type_, level }: ParquetKind,
    rows: usize,
    take: impl FnMut(Option<Value>),
) -> io::Result<()> {
    use ColumnReader::*;
    let is_unsigned = type_ == ParquetType::Unsigned;
    let integer = |value: i64| match type_ {
        ParquetType::Decimal(scale) => Value::Decimal(value.into(), scale),
        ParquetType::Moment(unit) => Value::Moment(value, unit),
        _ if is_unsigned => Value::Unsigned(value as u64),
        _ => Value::Signed(value),
    };
    match reader {
        BoolColumnReader(reader) => read_values(reader, level, rows, |value| Value::Boolean(*value), take),
        FloatColumnReader(reader) => read_values(reader, level, rows, |value| Value::Single(*value), take),
        DoubleColumnReader(reader) => read_values(reader, level, rows, |value| Value::Double(*value), take),
        Int32ColumnReader(reader) => {
            let wide = |value: i32| if is_unsigned { i64::from(value as u32) } else { i64::from(value) };
            read_values(reader, level, rows, |value| integer(wide(*value)), take)
        }
        Int64ColumnReader(reader) => read_values(reader, level, rows, |value| integer(*value), take),
        ByteArrayColumnReader(reader) => {
            read_values(reader, level, rows, |value| of_bytes(value.as_bytes(), type_), take)
        }
        FixedLenByteArrayColumnReader(reader) => {
            read_values(reader, level, rows, |value| of_bytes(value.as_bytes(), type_), take)
        }
        Int96ColumnReader(_) => Err(damaged("its dates are of a form that is not read")),
    }
}

fn of_bytes(bytes: &[u8], type_: ParquetType) -> Value<'_> {
    match (type_, bytes.first_chunk(), integer(bytes)) {
        (ParquetType::Half, Some(half), _) => Value::Double(f16::from_le_bytes(*half).to_f64()),
        (ParquetType::Half, None, _) => Value::Double(f64::NAN),
        (ParquetType::Decimal(scale), _, Some(value)) => Value::Decimal(value, scale),
        _ => Value::Text(bytes),
    }
}
