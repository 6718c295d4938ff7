//! A run, as known before the first sample.

use std::collections::BTreeMap;

use numalab_topology::Machine;
use serde::{Deserialize, Serialize};

use crate::cell::Cell;
use crate::launch::Launch;
use crate::survey::SurveyChoice;

/// Facts about the system that can affect a measurement, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Environment {
    /// Values by name: `kernel`, `cpu_model`, `thp_enabled`.
    pub facts: BTreeMap<String, String>,
}

/// Facts that change from minute to minute and do not describe the system.
const PASSING: [&str; 3] = ["load_average", "memory_available_kb", "swap_free_kb"];

impl Environment {
    /// Returns the value of one fact.
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.facts.get(name).map(String::as_str)
    }

    /// Returns the part of a fact that stays the same while nothing is changed; `None` if the whole
    /// fact is transient.
    pub fn lasting(name: &str, value: &str) -> Option<String> {
        if PASSING.contains(&name) {
            return None;
        }
        let gib = |kib: u64| format!("{} GiB", kib.saturating_add(1 << 19) >> 20);
        Some(match name {
            // The number of pages, from a value such as `8 (3 free)`.
            _ if name.starts_with("huge_pages_") => {
                value.split(" (").next().unwrap_or(value).into()
            }
            // The kernel reserves a slightly different amount at every boot.
            "memory_total_kb" => value.parse().map_or_else(|_| value.to_owned(), gib),
            _ => value.to_owned(),
        })
    }

    /// Returns the facts whose [lasting](Self::lasting) parts differ, by name, with both values; a
    /// missing one is `None`.
    pub fn differences<'a>(
        &'a self,
        other: &'a Self,
    ) -> Vec<(&'a str, Option<&'a str>, Option<&'a str>)> {
        let mut names: Vec<&str> =
            self.facts.keys().chain(other.facts.keys()).map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        let value = |facts: &'a BTreeMap<String, String>, name| facts.get(name).map(String::as_str);
        names
            .into_iter()
            .map(|name| (name, value(&self.facts, name), value(&other.facts, name)))
            .filter(|(name, here, there)| {
                let lasting = |value: &Option<&str>| Self::lasting(name, (*value)?);
                lasting(here) != lasting(there)
            })
            .collect()
    }
}

/// A run: everything that is known before its first sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Run {
    /// The schema of [`Kind::Run`](crate::Kind::Run).
    pub schema: String,
    /// The kind of run: `measure`, `latency`.
    pub name: String,
    /// The user's label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The version of numalab.
    pub version: String,
    /// The command line as given.
    pub command: Vec<String>,
    /// Start in milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// The seed of all randomness in the run.
    pub seed: u64,
    /// The relative half-width of the interval at which a cell ends: 0.01 is 1 %.
    pub precision: f64,
    /// The time allowed for all cells, in nanoseconds.
    pub budget_ns: u64,
    /// Facts about the system.
    pub environment: Environment,
    pub machine: Machine,
    /// The options of `numalab measure`; absent in other runs and in those of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub survey: Option<SurveyChoice>,
    /// The launch that took the run; absent in a run without ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
    /// The planned cells, in order.
    pub plan: Vec<Cell>,
}
