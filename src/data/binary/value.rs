//! One value of an array or table with types, as a number and as text.

use super::decimal::{decimal, decimal_text};
use crate::text::iso8601::{Unit, iso};

/// A value, as its type in the file says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    Signed(i64),
    Unsigned(u64),
    Single(f32),
    Double(f64),
    /// An integer, and how many of its digits are after the point.
    Decimal(i128, i32),
    Boolean(bool),
    Moment(i64, Unit),
    /// UTF-8, or bytes that should be.
    Text(&'a [u8]),
}

impl Value<'_> {
    /// The number; infinite if it is none.
    #[inline]
    pub(super) fn number(self) -> f64 {
        match self {
            Value::Signed(value) => value as f64,
            Value::Unsigned(value) => value as f64,
            Value::Single(value) => f64::from(value),
            Value::Double(value) => value,
            Value::Decimal(value, scale) => decimal(value, scale),
            Value::Boolean(_) | Value::Moment(..) | Value::Text(_) => f64::INFINITY,
        }
    }

    /// The value as text, with the fewest digits that give it back; empty if it is NaN.
    pub(super) fn text(self) -> String {
        match self {
            Value::Signed(value) => value.to_string(),
            Value::Unsigned(value) => value.to_string(),
            Value::Single(value) if !value.is_nan() => value.to_string(),
            Value::Double(value) if !value.is_nan() => value.to_string(),
            Value::Single(_) | Value::Double(_) => String::new(),
            Value::Decimal(value, scale) => decimal_text(value, scale),
            Value::Boolean(value) => value.to_string(),
            Value::Moment(value, unit) => iso(value, unit),
            Value::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        }
    }
}
