//! What is known before the first sample.

use std::collections::BTreeMap;

use numalab_topology::Machine;
use serde::{Deserialize, Serialize};

use crate::cell::Cell;
use crate::launch::Launch;
use crate::survey::SurveyChoice;

/// Facts about the system that a measurement may depend on, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Environment {
    /// Value by name: `kernel`, `cpu_model`, `thp_enabled`.
    pub facts: BTreeMap<String, String>,
}

/// Facts that change from minute to minute and say nothing about the system.
const PASSING: [&str; 3] = ["load_average", "memory_available_kb", "swap_free_kb"];

impl Environment {
    /// One fact.
    #[must_use]
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.facts.get(name).map(String::as_str)
    }

    /// The part of a fact that stays while nothing is changed; `None` if all of it passes.
    #[must_use]
    pub fn lasting(name: &str, value: &str) -> Option<String> {
        if PASSING.contains(&name) {
            return None;
        }
        let gib = |kib: u64| format!("{} GiB", kib.saturating_add(1 << 19) >> 20);
        Some(match name {
            // Of `8 (3 free)`, how many pages there are.
            _ if name.starts_with("huge_pages_") => {
                value.split(" (").next().unwrap_or(value).into()
            }
            // The kernel takes a little more or less for itself at every boot.
            "memory_total_kb" => value.parse().map_or_else(|_| value.to_owned(), gib),
            _ => value.to_owned(),
        })
    }

    /// The facts whose [lasting](Self::lasting) parts differ, by name, with both values; an
    /// absent one is `None`.
    #[must_use]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// That of [`Kind::Run`](crate::Kind::Run).
    pub schema: String,
    /// What kind of run: `measure`, `latency`.
    pub name: String,
    /// The user's label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Version of numalab.
    pub version: String,
    /// The command line as given.
    pub command: Vec<String>,
    /// Start in milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// The seed of everything random in the run.
    pub seed: u64,
    /// Relative half width of an interval at which a cell ends: 0.01 is 1 %.
    pub precision: f64,
    /// Time allowed for all cells in nanoseconds.
    pub budget_ns: u64,
    /// Facts about the system.
    pub environment: Environment,
    /// The machine.
    pub machine: Machine,
    /// What `numalab measure` was asked for; absent in other runs, and in those of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub survey: Option<SurveyChoice>,
    /// The ranks that took it; absent in a run without ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
    /// What is to be measured, in order.
    pub plan: Vec<Cell>,
}
