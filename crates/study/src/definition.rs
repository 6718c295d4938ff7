//! The question, as its author wrote it and with defaults filled in.

mod reading;

use std::collections::BTreeMap;

use numalab_record::study::{FactorKind, Rules, Setting};
use numalab_workload::{SpecError, Workload, WorkloadSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A study as it is written in TOML.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Study {
    /// Its name: letters, digits and dashes.
    pub name: String,
    /// What it answers, as a sentence.
    pub question: String,
    /// What a reader must know to judge the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Where its samples are taken.
    #[serde(default)]
    pub backend: BackendSpec,
    /// How much is run, and when it ends.
    #[serde(default)]
    pub rules: Rules,
    /// What is varied; every combination of levels is a treatment.
    #[serde(rename = "factor")]
    pub factors: Vec<Factor>,
    /// What is run under every treatment. `{name}` in a command or an argument stands
    /// for the setting of that name.
    #[serde(rename = "workload")]
    pub workloads: Vec<WorkloadSpec>,
}

impl Study {
    /// The workloads, ready to be run.
    ///
    /// # Errors
    /// [`SpecError`] of the first that cannot be; none of a study that was [parsed](crate::parse).
    pub fn resolved(&self) -> Result<Vec<Workload>, SpecError> {
        self.workloads.iter().map(WorkloadSpec::resolve).collect()
    }

    /// The study in TOML with all defaults filled in.
    ///
    /// # Errors
    /// What the writer says; none of a study that was [parsed](crate::parse).
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string_pretty(self)
    }
}

/// The kind of place in which samples are taken, and its own settings.
///
/// In TOML a name, `backend = "host"`, or a table, `[backend.linux-guest]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "BTreeMap<String, Map<String, Value>>")]
pub struct BackendSpec {
    /// Its kind: `host`, `linux-guest`.
    pub kind: String,
    /// Settings that only this kind knows.
    pub settings: Map<String, Value>,
}

/// Something that is varied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// What its levels are.
    #[serde(default)]
    pub kind: FactorKind,
    /// Its levels, the baseline first.
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
    /// How reports name it.
    pub name: String,
    /// What is set, by name; the study's backend says which names there are.
    #[serde(default)]
    pub set: BTreeMap<String, Setting>,
}

impl Level {
    /// How reports name it.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Value(value) => value.to_string(),
            Self::Named(named) => named.name.clone(),
        }
    }

    /// Its number, for a factor of kind [`FactorKind::Scale`].
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Value(Setting::Integer(number)) => Some(*number as f64),
            Self::Value(Setting::Number(number)) => Some(*number),
            Self::Value(_) => None,
            Self::Named(named) => named.name.parse().ok(),
        }
    }

    /// What it sets, by name.
    #[must_use]
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
