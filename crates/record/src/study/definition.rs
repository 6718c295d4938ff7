//! The question, as its author wrote it and with defaults filled in.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// A study as it is written in TOML.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    pub world: WorldSpec,
    /// What is varied; every combination of levels is a treatment.
    pub factors: Vec<Factor>,
    /// What is run under every treatment.
    pub workloads: Vec<Workload>,
    /// How much is run, and when it ends.
    #[serde(default)]
    pub rules: Rules,
}

/// The kind of place in which samples are taken, and its own settings.
///
/// In TOML a name, `world = "host"`, or a table, `[world.linux-guest]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "BTreeMap<String, Map<String, Value>>")]
pub struct WorldSpec {
    /// Its kind: `host`, `linux-guest`.
    pub kind: String,
    /// Settings that only this kind knows.
    pub settings: Map<String, Value>,
}

/// Something that is varied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// What its levels are.
    #[serde(default)]
    pub kind: FactorKind,
    /// Its levels, the baseline first.
    pub levels: Vec<Level>,
}

/// What the levels of a factor are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FactorKind {
    /// Choices, each compared with the first.
    #[default]
    Choice,
    /// Positive numbers in a growing order; the trend over them is analysed.
    Scale,
}

/// A level of a factor.
///
/// In TOML a bare value, which is the setting of the factor's name, or a table
/// `{ name = "2m", set = { thp_enabled = "never", huge_2m_pages = 512 } }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Level {
    /// A value of the setting that has the factor's name.
    Value(Setting),
    /// Several settings under a name.
    Named(NamedLevel),
}

/// Several settings under a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedLevel {
    /// How reports name it.
    pub name: String,
    /// What is set, by name; the study's world says which names there are.
    #[serde(default)]
    pub set: BTreeMap<String, Setting>,
}

/// A value of a setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Number(f64),
    /// A text.
    Text(String),
    /// A list of texts.
    List(Vec<String>),
}

/// Something that is run, and what is read from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Its name in this study.
    pub name: String,
    /// The bundled workload that it is; else `command` says what is run.
    #[serde(default, rename = "use", skip_serializing_if = "Option::is_none")]
    pub bundled: Option<String>,
    /// Parameters of the bundled workload.
    #[serde(default, rename = "with", skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Setting>,
    /// The command and its arguments. `{name}` stands for the setting of that name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// It has failed if it takes longer, in seconds.
    #[serde(default = "ten_minutes", rename = "timeout_s")]
    pub timeout_s: f64,
    /// What is read from it; a bundled workload knows its metrics.
    #[serde(default)]
    pub metrics: Vec<MetricRule>,
}

/// A metric of a workload, and by what it is judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricRule {
    /// Its name: `latency`, `throughput`.
    pub name: String,
    /// Its unit as reports print it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Which way is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
    /// Changes up to this many percent count as none.
    #[serde(default = "two_percent")]
    pub margin_percent: f64,
    /// Where its value stands in the output of a `command`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Read>,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Times, latencies.
    Lower,
    /// Bandwidths, operations per second.
    Higher,
}

/// Where a value stands in what a command prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Read {
    /// The number in the place of the `{...}`: `Time elapsed: {seconds} s`.
    Pattern(String),
    /// A JSON pointer (RFC 6901): `/results/0/mean`.
    Pointer(String),
    /// The seconds that it ran.
    Seconds,
}

/// How much is run, and when it ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rules {
    /// Blocks; in each of them every treatment comes once, in random order.
    pub blocks: usize,
    /// Blocks before them that are run and not judged.
    pub warm_ups: usize,
    /// Whether the baseline comes twice in every block, to see what the machine finds
    /// where there is no difference.
    pub aa: bool,
    /// End when every interval is this many percent wide to either side; never on a
    /// verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision_percent: Option<f64>,
    /// End after so many seconds, when the block is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_s: Option<f64>,
    /// How often a disturbed sample is taken again.
    pub repeats: usize,
    /// The seed of every order; one from the clock if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            blocks: 12,
            warm_ups: 1,
            aa: true,
            precision_percent: None,
            budget_s: None,
            repeats: 2,
            seed: None,
        }
    }
}

fn ten_minutes() -> f64 {
    600.0
}

fn two_percent() -> f64 {
    2.0
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

impl Default for WorldSpec {
    fn default() -> Self {
        Self { kind: "host".to_owned(), settings: Map::new() }
    }
}

impl From<WorldSpec> for BTreeMap<String, Map<String, Value>> {
    fn from(spec: WorldSpec) -> Self {
        Self::from([(spec.kind, spec.settings)])
    }
}

impl<'de> Deserialize<'de> for WorldSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Name(String),
            Table(BTreeMap<String, Map<String, Value>>),
        }
        const EXPECTED: &str =
            "expected a world: a name such as \"host\", or one table such as [world.linux-guest]";
        match Form::deserialize(deserializer).map_err(|_| D::Error::custom(EXPECTED))? {
            Form::Name(kind) => Ok(Self { kind, settings: Map::new() }),
            Form::Table(table) => {
                let mut worlds = table.into_iter();
                match (worlds.next(), worlds.next()) {
                    (Some((kind, settings)), None) => Ok(Self { kind, settings }),
                    _ => Err(D::Error::custom(EXPECTED)),
                }
            }
        }
    }
}
