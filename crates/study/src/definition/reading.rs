//! Deserialises values with several forms, without losing the position of an error.

use std::collections::BTreeMap;
use std::fmt;

use numalab_record::study::Setting;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::{BackendSpec, Level, NamedLevel};

/// Visits levels that are bare values.
macro_rules! values {
    ($($visit:ident: $value:ty),*) => {$(
        fn $visit<E: Error>(self, value: $value) -> Result<Level, E> {
            Setting::deserialize(value.into_deserializer()).map(Level::Value)
        }
    )*};
}

struct LevelVisitor;

impl<'de> Visitor<'de> for LevelVisitor {
    type Value = Level;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a value, or a table such as { name = \"on\", set = { thp_enabled = \"always\" } }",
        )
    }

    values!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Level, A::Error> {
        NamedLevel::deserialize(MapAccessDeserializer::new(table)).map(Level::Named)
    }
}

impl<'de> Deserialize<'de> for Level {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LevelVisitor)
    }
}

struct BackendVisitor;

impl<'de> Visitor<'de> for BackendVisitor {
    type Value = BackendSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a backend: a name such as \"host\", or one table such as [backend.linux-guest]",
        )
    }

    fn visit_str<E: Error>(self, kind: &str) -> Result<BackendSpec, E> {
        Ok(BackendSpec { kind: kind.to_owned(), settings: Map::new() })
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<BackendSpec, A::Error> {
        let backends: BTreeMap<String, Map<String, Value>> =
            BTreeMap::deserialize(MapAccessDeserializer::new(table))?;
        let count = backends.len();
        match backends.into_iter().next() {
            Some((kind, settings)) if count == 1 => Ok(BackendSpec { kind, settings }),
            _ => Err(A::Error::invalid_length(count, &self)),
        }
    }
}

impl<'de> Deserialize<'de> for BackendSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BackendVisitor)
    }
}
