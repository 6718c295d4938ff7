//! A run, as known before the first sample.

use std::collections::BTreeMap;

use numalab_topology::Machine;
use serde::{Deserialize, Serialize};

use crate::cell::Cell;
use crate::fact::{self, Fact, HUGE_PAGES};
use crate::launch::Launch;
use crate::survey::SurveyChoice;

/// Facts about the system that can affect a measurement, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Environment {
    /// Values by name: `kernel`, `cpu_model`, `thp_enabled`.
    #[serde(deserialize_with = "fact::read_all")]
    pub facts: BTreeMap<String, Fact>,
}

/// Facts that change from minute to minute and do not describe the system.
const PASSING: [&str; 3] = ["load_average", "memory_available_kb", "swap_free_kb"];

impl Environment {
    /// Returns one fact.
    pub fn fact(&self, name: &str) -> Option<&Fact> {
        self.facts.get(name)
    }

    /// Returns one fact if it is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.fact(name)?.text()
    }

    /// Returns one fact if it is a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.fact(name)?.number()
    }

    /// Returns the part of a fact that stays the same while nothing is changed; `None` if the whole
    /// fact is transient.
    pub fn lasting(name: &str, fact: &Fact) -> Option<String> {
        let is_pool = name.starts_with(HUGE_PAGES);
        if PASSING.contains(&name) || (is_pool && name.ends_with("_free")) {
            return None;
        }
        let gib = |kib: &u64| format!("{} GiB", kib.saturating_add(1 << 19) >> 20);
        Some(match fact {
            // Earlier versions wrote the number of pages as `8 (3 free)`, and modules as `2 in 4 slots`.
            Fact::Text(text) if is_pool || name == "memory_modules" => {
                text.split(' ').next().unwrap_or(text).to_owned()
            }
            // The kernel reserves a slightly different amount at every boot.
            Fact::Count(kib) if name == "memory_total_kb" => gib(kib),
            fact => fact.to_string(),
        })
    }

    /// Returns the facts whose [lasting](Self::lasting) parts differ, by name, with both values; a
    /// missing one is `None`.
    pub fn differences<'a>(
        &'a self,
        other: &'a Self,
    ) -> Vec<(&'a str, Option<&'a Fact>, Option<&'a Fact>)> {
        let mut names: Vec<&str> =
            self.facts.keys().chain(other.facts.keys()).map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        names
            .into_iter()
            .map(|name| (name, self.fact(name), other.fact(name)))
            .filter(|(name, here, there)| {
                let lasting = |fact: &Option<&Fact>| Self::lasting(name, (*fact)?);
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
