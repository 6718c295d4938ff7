//! What disturbed a sample, as facts; its words are the report's.

use serde::{Deserialize, Serialize};

/// What disturbed a sample, found without a look at its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Disturbance {
    /// Other load.
    Load {
        /// The machine that was loaded.
        on: LoadedMachine,
        /// The load.
        load: Load,
    },
    /// A guest gave no values.
    Guest {
        /// The guest.
        guest: String,
        /// What befell it or its command; `None` where no answer came.
        reason: Option<String>,
    },
    /// The memory emulator's report cannot be read.
    EmulatorReport {
        /// What is wrong with it.
        reason: String,
    },
    /// A sentence, as journals up to 0.1.0 had it.
    #[serde(untagged)]
    Sentence(String),
}

/// Which machine other load was on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LoadedMachine {
    /// The one that the command ran on.
    Own,
    /// The host of the guests that it ran in.
    Host,
}

/// What kept watched CPUs from what was measured on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Load {
    /// The hypervisor ran something else on them.
    Stolen {
        /// Milliseconds stolen, of all watched CPUs together.
        stolen_ms: u64,
        /// Milliseconds of all watched CPUs together.
        of_ms: u64,
    },
    /// Other processes ran on them.
    Foreign {
        /// Milliseconds of others, of all watched CPUs together.
        foreign_ms: u64,
        /// Milliseconds of all watched CPUs together.
        of_ms: u64,
    },
    /// One of them lowered its frequency because of heat or power.
    Throttled {
        /// How often.
        events: u64,
    },
    /// Processes waited for memory.
    Pressure {
        /// Milliseconds in which at least one process waited.
        waited_ms: u64,
        /// Milliseconds in all.
        wall_ms: u64,
    },
}

impl Disturbance {
    /// Whether it was other load, as against a guest that failed.
    #[must_use]
    pub fn is_load(&self) -> bool {
        match self {
            Self::Load { .. } => true,
            Self::Guest { .. } | Self::EmulatorReport { .. } => false,
            // All sentences that were not of load began with one of these.
            Self::Sentence(text) => {
                !["guest ", "the emulator"].iter().any(|own| text.starts_with(own))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Disturbance {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_disturbance_is_written_with_its_figures_and_read_back() {
        let load = Load::Foreign { foreign_ms: 87, of_ms: 110 };
        let disturbance = Disturbance::Load { on: LoadedMachine::Host, load };
        let json = serde_json::to_string(&disturbance).unwrap();
        let expected =
            r#"{"kind":"load","on":"host","load":{"kind":"foreign","foreign_ms":87,"of_ms":110}}"#;
        assert_eq!(json, expected);
        assert_eq!(read(&json), disturbance);
    }

    #[test]
    fn sentences_of_earlier_journals_are_load_unless_they_are_of_a_guest_or_the_emulator() {
        let is_load = |text: &str| {
            let read = read(&format!("{text:?}"));
            assert_eq!(read, Disturbance::Sentence(text.to_owned()));
            read.is_load()
        };
        assert!(is_load("foreign 87 of 110 ms"));
        assert!(is_load("host: stolen 7 of 11 ms"));
        assert!(!is_load("guest g02: the domain crashed"));
        assert!(!is_load("the emulator's report: it has no phase 2"));
    }
}
