//! The definition of a study: factors, workloads and rules.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The shares of local memory and of local accesses, as backends with guests count them.
const COUNTED: [&str; 2] = ["local-memory", "local-accesses"];

/// A factor as it is analysed and shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Factor {
    /// The factor's name.
    pub name: String,
    /// The kind of its levels.
    pub kind: FactorKind,
    /// The names of its levels, the baseline first.
    pub levels: Vec<String>,
    /// The numeric levels, for a factor of kind [`FactorKind::Scale`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<f64>,
}

/// A workload as it is shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Workload {
    /// The workload's name in the study.
    pub name: String,
    /// The command and its arguments.
    pub command: Vec<String>,
}

/// The kind of a factor's levels.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FactorKind {
    /// Choices, each compared with the first.
    #[default]
    Choice,
    /// Positive numbers in ascending order; the trend over them is analysed.
    Scale,
}

/// The size of a study and its stopping rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Rules {
    /// The number of blocks; each holds every treatment once, in random order.
    pub blocks: usize,
    /// The number of warm-up blocks at the start, which are run but not judged.
    pub warm_ups: usize,
    /// True if the baseline is run twice in every block, to show the differences that the machine
    /// itself produces (A/A).
    pub aa: bool,
    /// The number of times that a disturbed sample is retried.
    pub repeats: usize,
    /// The largest change that counts as no change, in percent.
    pub margin_percent: f64,
    /// The margins of single metrics in percent, by `workload.metric`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub margins: BTreeMap<String, f64>,
    /// The metric that answers the question, as `workload.metric`: it is tested first, at the full
    /// level, and the others explain it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary: Option<String>,
    /// Metrics that are facts, as `workload.metric`: places, counts and proofs that follow from how
    /// a treatment is made. They are shown but not tested.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub facts: BTreeSet<String>,
    /// The half-width in percent at which every interval is narrow enough to end the study;
    /// verdicts never end it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision_percent: Option<f64>,
    /// The time in seconds after which the study ends, once the block is finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_s: Option<f64>,
    /// The approximate time of a block in seconds; measured before the start if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about_block_s: Option<f64>,
    /// The seed of every random order; taken from the clock if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            blocks: 12,
            warm_ups: 1,
            aa: true,
            repeats: 2,
            margin_percent: 2.0,
            margins: BTreeMap::new(),
            primary: None,
            facts: BTreeSet::new(),
            precision_percent: None,
            budget_s: None,
            about_block_s: None,
            seed: None,
        }
    }
}

impl Rules {
    /// Returns true if the metric is the one that answers the question.
    pub fn is_primary(&self, workload: &str, metric: &str) -> bool {
        self.primary.as_deref().is_some_and(|primary| primary == format!("{workload}.{metric}"))
    }

    /// Returns true if a metric is shown but not tested: those that the study names, and the
    /// placement counts of backends, unless the study asks about them.
    pub fn is_fact(&self, workload: &str, metric: &str) -> bool {
        self.facts.contains(&format!("{workload}.{metric}"))
            || COUNTED.contains(&metric) && !self.is_primary(workload, metric)
    }

    /// Returns the margin of a metric, in percent.
    pub fn margin_of(&self, workload: &str, metric: &str) -> f64 {
        let own = self.margins.get(&format!("{workload}.{metric}"));
        own.copied().unwrap_or(self.margin_percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_placement_counts_of_backends_are_facts_unless_they_are_metrics() {
        let mut rules = Rules { facts: ["copy.pages".to_owned()].into(), ..Rules::default() };
        let facts = |rules: &Rules| {
            [("copy", "pages"), ("w", "local-memory"), ("w", "local-accesses"), ("w", "rate")]
                .map(|(workload, metric)| rules.is_fact(workload, metric))
        };
        assert_eq!(facts(&rules), [true, true, true, false]);
        rules.primary = Some("w.local-memory".to_owned());
        assert_eq!(facts(&rules), [true, false, true, false]);
    }
}
