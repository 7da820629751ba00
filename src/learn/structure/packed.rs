//! Numbers as a list of JSON strings: the base64 of their little-endian bytes, which is exact and compact.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::ser::Serializer;

/// Bytes in a string, whose text has 64 KiB then. So the parser never holds the text of all of them.
const PART: usize = 64 * 1024 / 4 * 3;

/// A number of a fixed size.
pub(super) trait Number: Copy {
    const SIZE: usize;
    fn append(self, bytes: &mut Vec<u8>);
    fn read(bytes: &[u8]) -> Self;
}

impl Number for f64 {
    const SIZE: usize = 8;

    fn append(self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        f64::from_le_bytes(bytes.try_into().expect("eight bytes"))
    }
}

impl Number for f32 {
    const SIZE: usize = 4;

    fn append(self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        f32::from_le_bytes(bytes.try_into().expect("four bytes"))
    }
}

pub(in crate::learn) fn serialize<S: Serializer>(
    values: &Arc<Vec<f64>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serialize_numbers(values, serializer)
}

pub(in crate::learn) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Arc<Vec<f64>>, D::Error> {
    deserialize_numbers(deserializer).map(Arc::new)
}

pub(super) fn serialize_numbers<T: Number, S: Serializer>(
    values: &[T],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.chunks(PART / T::SIZE).map(|part| {
        let mut bytes = Vec::with_capacity(PART);
        part.iter().for_each(|value| value.append(&mut bytes));
        STANDARD.encode(bytes)
    }))
}

pub(super) fn deserialize_numbers<'de, T: Number, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    struct NumbersVisitor<T>(PhantomData<T>);

    impl<'de, T: Number> Visitor<'de> for NumbersVisitor<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("base64 of little-endian numbers")
        }

        /// Files of version 5 have one string.
        fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
            let mut values = Vec::new();
            unpack(text, &mut values).map_err(E::custom)?;
            Ok(values)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
            let mut values = Vec::new();
            while let Some(part) = parts.next_element::<String>()? {
                unpack(&part, &mut values).map_err(A::Error::custom)?;
            }
            Ok(values)
        }
    }

    deserializer.deserialize_any(NumbersVisitor(PhantomData))
}

/// Appends the numbers of a string.
fn unpack<T: Number>(text: &str, values: &mut Vec<T>) -> Result<(), String> {
    let bytes = STANDARD.decode(text).map_err(|error| error.to_string())?;
    if !bytes.len().is_multiple_of(T::SIZE) {
        return Err("the numbers are not whole".into());
    }
    values.extend(bytes.chunks_exact(T::SIZE).map(T::read));
    Ok(())
}
