//! What is varied and run, and by which rules.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Shares of memory and of accesses on their own node, as backends with guests count them.
const COUNTED: [&str; 2] = ["local-memory", "local-accesses"];

/// A factor as it is analysed and shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// What its levels are.
    pub kind: FactorKind,
    /// Its levels' names, the baseline first.
    pub levels: Vec<String>,
    /// The levels' numbers, for a factor of kind [`FactorKind::Scale`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<f64>,
}

/// A workload as it is shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Workload {
    /// Its name in the study.
    pub name: String,
    /// The command and its arguments.
    pub command: Vec<String>,
}

/// What the levels of a factor are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FactorKind {
    /// Choices, each compared with the first.
    #[default]
    Choice,
    /// Positive numbers in a growing order; the trend over them is analysed.
    Scale,
}

/// How much is run, and when it ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Rules {
    /// Blocks; in each of them every treatment comes once, in random order.
    pub blocks: usize,
    /// Blocks before them that are run and not judged.
    pub warm_ups: usize,
    /// Whether the baseline comes twice in every block, to see what the machine finds
    /// where there is no difference.
    pub aa: bool,
    /// How often a disturbed sample is taken again.
    pub repeats: usize,
    /// Changes up to this many percent count as none.
    pub margin_percent: f64,
    /// Margins of single metrics in percent, by `workload.metric`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub margins: BTreeMap<String, f64>,
    /// The metric that answers the question, as `workload.metric`: it is tested first, at the
    /// full level, and the others explain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary: Option<String>,
    /// Metrics that are facts, as `workload.metric`: places, counts and proofs that follow from
    /// how a treatment is made. They are shown and not tested.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub facts: BTreeSet<String>,
    /// End when every interval is this many percent wide to either side; never on a
    /// verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision_percent: Option<f64>,
    /// End after so many seconds, when the block is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_s: Option<f64>,
    /// About how long a block takes in seconds; tried out before the start if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about_block_s: Option<f64>,
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
    /// Whether a metric is the one that answers the question.
    #[must_use]
    pub fn is_primary(&self, workload: &str, metric: &str) -> bool {
        self.primary.as_deref().is_some_and(|primary| primary == format!("{workload}.{metric}"))
    }

    /// Whether a metric is shown and not tested: those that the study names, and what backends
    /// count of places, unless the study asks about it.
    #[must_use]
    pub fn is_fact(&self, workload: &str, metric: &str) -> bool {
        self.facts.contains(&format!("{workload}.{metric}"))
            || COUNTED.contains(&metric) && !self.is_primary(workload, metric)
    }

    /// The margin of a metric in percent.
    #[must_use]
    pub fn margin_of(&self, workload: &str, metric: &str) -> f64 {
        let own = self.margins.get(&format!("{workload}.{metric}"));
        own.copied().unwrap_or(self.margin_percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_backends_count_of_places_is_a_fact_unless_it_is_asked_about() {
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
