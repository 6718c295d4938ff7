//! One fact about a system, with its type.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Deserializer, Serialize};

/// A fact about a system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Fact {
    Flag(bool),
    Count(u64),
    Number(f64),
    Text(String),
}

/// Facts that are true or false.
const FLAGS: [&str; 2] = ["clock_invariant", "cpu_prefetches_code"];

/// Facts that are numbers, apart from the pools of huge pages.
const NUMBERS: [&str; 18] = [
    "boost",
    "clock_khz",
    "cpu_family",
    "cpu_model_number",
    "cpu_quota",
    "cpus",
    "memory_available_kb",
    "memory_modules",
    "memory_peak_mb_s",
    "memory_slots",
    "memory_total_kb",
    "nodes",
    "numa_balancing",
    "overcommit_memory",
    "swap_free_kb",
    "swap_total_kb",
    "swappiness",
    "zone_reclaim_mode",
];

/// The start of the name of a pool of huge pages.
pub(crate) const HUGE_PAGES: &str = "huge_pages_";

impl Fact {
    /// Returns the fact of this name from the system's text, or from that of an earlier version,
    /// which wrote only texts. A text that is not of the fact's type stays a text.
    pub fn read(name: &str, text: &str) -> Self {
        let flag = match text {
            "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        };
        let typed = if FLAGS.contains(&name) {
            flag.map(Self::Flag)
        } else if NUMBERS.contains(&name) || name.starts_with(HUGE_PAGES) {
            number(text)
        } else {
            None
        };
        typed.unwrap_or_else(|| Self::Text(text.to_owned()))
    }

    /// Returns the text of a fact that is a text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Flag(_) | Self::Count(_) | Self::Number(_) => None,
        }
    }

    /// Returns the number of a fact that is a number.
    pub fn number(&self) -> Option<f64> {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "facts are far below 2^53")]
            Self::Count(count) => Some(*count as f64),
            Self::Number(number) => Some(*number),
            Self::Flag(_) | Self::Text(_) => None,
        }
    }
}

fn number(text: &str) -> Option<Fact> {
    let decimal = || text.parse().ok().filter(|number: &f64| number.is_finite()).map(Fact::Number);
    text.parse().ok().map(Fact::Count).or_else(decimal)
}

impl Display for Fact {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(true) => f.pad("yes"),
            Self::Flag(false) => f.pad("no"),
            Self::Count(count) => count.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.pad(text),
        }
    }
}

impl From<&str> for Fact {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Fact {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Fact {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<u64> for Fact {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

/// Reads facts; texts of earlier versions become what the facts are.
pub(crate) fn read_all<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, Fact>, D::Error> {
    let mut facts: BTreeMap<String, Fact> = BTreeMap::deserialize(from)?;
    for (name, fact) in &mut facts {
        if let Fact::Text(text) = fact {
            *fact = Fact::read(name, text);
        }
    }
    Ok(facts)
}
