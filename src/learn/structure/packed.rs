//! Doubles as a list of JSON strings: the base64 of their little-endian bytes, which is exact and compact.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::ser::Serializer;

/// Doubles in a string, whose text has 64 KiB then. So the parser never holds the text of all of them.
const PART: usize = 64 * 1024 / 4 * 3 / 8;

pub(in crate::learn) fn serialize<S: Serializer>(
    values: &Arc<Vec<f64>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.chunks(PART).map(|part| {
        let bytes: Vec<u8> = part.iter().flat_map(|value| value.to_le_bytes()).collect();
        STANDARD.encode(bytes)
    }))
}

pub(in crate::learn) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Arc<Vec<f64>>, D::Error> {
    struct Parts;

    impl<'de> Visitor<'de> for Parts {
        type Value = Arc<Vec<f64>>;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("base64 of little-endian doubles")
        }

        /// Files of version 5 have one string.
        fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
            let mut values = Vec::new();
            unpack(text, &mut values).map_err(E::custom)?;
            Ok(Arc::new(values))
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
            let mut values = Vec::new();
            while let Some(part) = parts.next_element::<String>()? {
                unpack(&part, &mut values).map_err(A::Error::custom)?;
            }
            Ok(Arc::new(values))
        }
    }

    deserializer.deserialize_any(Parts)
}

/// Appends the doubles of a string.
fn unpack(text: &str, values: &mut Vec<f64>) -> Result<(), String> {
    let bytes = STANDARD.decode(text).map_err(|error| error.to_string())?;
    if !bytes.len().is_multiple_of(8) {
        return Err("the doubles are not whole".into());
    }
    let whole = bytes.chunks_exact(8);
    values.extend(whole.map(|b| f64::from_le_bytes(b.try_into().expect("eight bytes"))));
    Ok(())
}
