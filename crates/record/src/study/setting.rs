//! Values of settings.

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A value of a setting.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Setting {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Number(f64),
    /// A string.
    Text(String),
    /// A list of strings.
    List(Vec<String>),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => f.pad(if *value { "true" } else { "false" }),
            Self::Integer(value) => f.pad(&value.to_string()),
            Self::Number(value) => f.pad(&value.to_string()),
            Self::Text(value) => f.pad(value),
            Self::List(values) => f.pad(&values.join(",")),
        }
    }
}

struct SettingVisitor;

impl<'de> Visitor<'de> for SettingVisitor {
    type Value = Setting;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a string, true, false or a list of strings")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Setting, E> {
        Ok(Setting::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Setting, E> {
        Ok(Setting::Integer(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Setting, E> {
        i64::try_from(value)
            .map(Setting::Integer)
            .map_err(|_| E::custom(format!("{value} is too large for a setting")))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Setting, E> {
        if value.is_finite() {
            Ok(Setting::Number(value))
        } else {
            Err(E::custom(format!("{value} is not a number: expected a finite one")))
        }
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Setting, E> {
        Ok(Setting::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Setting, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<String>()? {
            list.push(item);
        }
        Ok(Setting::List(list))
    }
}

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SettingVisitor)
    }
}
