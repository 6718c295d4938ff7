//! A study as its author wrote it, with defaults filled in.

mod commands;
mod reading;

use std::collections::BTreeMap;

use numalab_record::study::{FactorKind, Published, Rules, Setting};
use numalab_workload::WorkloadSpec;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A study as written in TOML.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Study {
    /// Name of the study: letters, digits and dashes.
    pub name: String,
    /// The question that the study answers, as a sentence.
    pub question: String,
    /// Background that a reader needs to judge the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The backend that takes the study's samples.
    #[serde(default)]
    pub backend: BackendSpec,
    /// The amount of work, and the rules that end it.
    #[serde(default)]
    pub rules: Rules,
    /// The factors; every combination of their levels is a treatment.
    #[serde(rename = "factor")]
    pub factors: Vec<Factor>,
    /// The workloads, each run under every treatment. `{name}` in a command or an argument is
    /// replaced by the setting of that name.
    #[serde(rename = "workload")]
    pub workloads: Vec<WorkloadSpec>,
    /// Published figures that the study repeats, on another machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
}

impl Study {
    /// Writes the study in TOML with all defaults filled in.
    ///
    /// # Errors
    /// The serialiser's error; never for a [parsed](crate::parse) study.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string_pretty(self)
    }
}

/// The kind of backend, and its own settings.
///
/// In TOML a name, `backend = "host"`, or a table, `[backend.linux-guest]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "BTreeMap<String, Map<String, Value>>")]
pub struct BackendSpec {
    /// Kind of place: `host`, `linux-guest`.
    pub kind: String,
    pub settings: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Factor {
    pub name: String,
    #[serde(default)]
    pub kind: FactorKind,
    /// Levels, the baseline first.
    pub levels: Vec<Level>,
}

/// A level of a factor.
///
/// In TOML a bare value, which is the setting of the factor's name, or a table
/// `{ name = "2m", set = { thp_enabled = "never", huge_2m_pages = 512 } }`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Level {
    /// A value of the setting that has the factor's name.
    Value(Setting),
    /// Several settings under a name.
    Named(NamedLevel),
}

/// Several settings under a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NamedLevel {
    pub name: String,
    /// Values by setting; the study's backend defines the settings.
    #[serde(default)]
    pub set: BTreeMap<String, Setting>,
}

impl Level {
    pub fn name(&self) -> String {
        match self {
            Self::Value(value) => value.to_string(),
            Self::Named(named) => named.name.clone(),
        }
    }

    /// Returns the level's number, for a factor of kind [`FactorKind::Scale`].
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Value(Setting::Integer(number)) => Some(*number as f64),
            Self::Value(Setting::Number(number)) => Some(*number),
            Self::Value(_) => None,
            Self::Named(named) => named.name.parse().ok(),
        }
    }

    /// Returns the values of the level's settings.
    pub fn settings(&self, factor: &str) -> BTreeMap<String, Setting> {
        match self {
            Self::Value(value) => BTreeMap::from([(factor.to_owned(), value.clone())]),
            Self::Named(named) => named.set.clone(),
        }
    }
}

impl Default for BackendSpec {
    fn default() -> Self {
        Self { kind: "host".to_owned(), settings: Map::new() }
    }
}

impl From<BackendSpec> for BTreeMap<String, Map<String, Value>> {
    fn from(spec: BackendSpec) -> Self {
        Self::from([(spec.kind, spec.settings)])
    }
}

#[cfg(test)]
mod tests;
