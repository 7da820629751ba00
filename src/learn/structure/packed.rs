//! Doubles as a JSON string: the base64 of their little-endian bytes, which is exact and compact.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;

/// Characters that are decoded together: a multiple of the 32 characters of three doubles.
pub(crate) const PART: usize = 4 * 8 * 1024;

pub(in crate::learn) fn serialize<S: Serializer>(
    values: &Arc<Vec<f64>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Packed(values))
}

pub(in crate::learn) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Arc<Vec<f64>>, D::Error> {
    struct Unpacked;

    impl Visitor<'_> for Unpacked {
        type Value = Arc<Vec<f64>>;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("base64 of little-endian doubles")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
            let mut values = Vec::with_capacity(text.len() / 4 * 3 / 8);
            let mut parts = text.as_bytes().chunks(PART);
            parts.try_for_each(|part| unpack(part, &mut values)).map_err(E::custom)?;
            Ok(Arc::new(values))
        }
    }

    deserializer.deserialize_str(Unpacked)
}

/// Formats doubles part by part, so that the whole text is never in memory.
pub(crate) struct Packed<'a>(pub &'a [f64]);

impl fmt::Display for Packed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (mut bytes, mut text) = (Vec::new(), String::new());
        for part in self.0.chunks(PART / 4 * 3 / 8) {
            bytes.clear();
            text.clear();
            part.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
            STANDARD.encode_string(&bytes, &mut text);
            f.write_str(&text)?;
        }
        Ok(())
    }
}

/// Appends the doubles of a part of a text. All parts except the last have [`PART`] characters.
pub(crate) fn unpack(part: &[u8], values: &mut Vec<f64>) -> Result<(), String> {
    let bytes = STANDARD.decode(part).map_err(|error| error.to_string())?;
    if !bytes.len().is_multiple_of(8) {
        return Err("the doubles are not whole".into());
    }
    let whole = bytes.chunks_exact(8);
    values.extend(whole.map(|b| f64::from_le_bytes(b.try_into().expect("eight bytes"))));
    Ok(())
}
