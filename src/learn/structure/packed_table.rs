//! A table of kept rows in a model file: exact rows as [`packed`] doubles, and others with centre and unit of each column.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer, StrDeserializer};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::packed;
use crate::linalg::Table;

/// Rows in single precision.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Single<'a> {
    #[serde(with = "packed")]
    centres: Arc<Vec<f64>>,
    #[serde(with = "packed")]
    units: Arc<Vec<f64>>,
    #[serde(serialize_with = "serialize_deviations", deserialize_with = "deserialize_deviations")]
    deviations: Cow<'a, [f32]>,
}

fn serialize_deviations<S: Serializer>(values: &[f32], serializer: S) -> Result<S::Ok, S::Error> {
    packed::serialize_numbers(values, serializer)
}

fn deserialize_deviations<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Cow<'static, [f32]>, D::Error> {
    packed::deserialize_numbers(deserializer).map(Cow::Owned)
}

pub(in crate::learn) fn serialize<S: Serializer>(table: &Table, serializer: S) -> Result<S::Ok, S::Error> {
    match table {
        Table::Exact(values) => packed::serialize_numbers(values, serializer),
        Table::Single { units, values } => {
            let of = |value: fn(&(f64, f64)) -> f64| Arc::new(units.iter().map(value).collect());
            let (centres, units) = (of(|unit| unit.0), of(|unit| unit.1));
            Single { centres, units, deviations: Cow::Borrowed(values) }.serialize(serializer)
        }
    }
}

pub(in crate::learn) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Arc<Table>, D::Error> {
    struct Kept;

    impl<'de> Visitor<'de> for Kept {
        type Value = Table;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("base64 of kept rows")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Table, E> {
            packed::deserialize_numbers(StrDeserializer::new(text)).map(Table::Exact)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, parts: A) -> Result<Table, A::Error> {
            packed::deserialize_numbers(SeqAccessDeserializer::new(parts)).map(Table::Exact)
        }

        fn visit_map<A: MapAccess<'de>>(self, parts: A) -> Result<Table, A::Error> {
            let Single { centres, units, deviations } =
                Single::deserialize(MapAccessDeserializer::new(parts))?;
            if centres.len() != units.len() {
                return Err(A::Error::custom("there is not one unit for each column"));
            }
            let units = centres.iter().copied().zip(units.iter().copied()).collect();
            Ok(Table::Single { units, values: deviations.into_owned() })
        }
    }

    deserializer.deserialize_any(Kept).map(Arc::new)
}
