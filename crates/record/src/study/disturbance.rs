//! Disturbances of a sample, as facts; the report has the wording.

use serde::{Deserialize, Serialize};

/// A disturbance of a sample, detected without regard to its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Disturbance {
    /// Other load.
    Load {
        /// The machine under load.
        on: LoadedMachine,
        load: Load,
    },
    /// A guest gave no values.
    Guest {
        guest: String,
        /// The failure of the guest or its command; `None` if there was no answer.
        reason: Option<String>,
    },
    /// The memory emulator's report cannot be read.
    EmulatorReport {
        /// The error.
        reason: String,
    },
    /// A sentence, as in journals up to 0.1.0.
    #[serde(untagged)]
    Sentence(String),
}

/// The machine that other load was on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadedMachine {
    /// The machine that the command ran on.
    Own,
    /// The host of the guests that the sample ran in.
    Host,
}

/// The cause that took time from the measurement on the observed cpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Load {
    /// The hypervisor ran other work on the cpus.
    Stolen {
        /// Milliseconds stolen, summed over all watched CPUs.
        stolen_ms: u64,
        /// Milliseconds elapsed, summed over all watched CPUs.
        of_ms: u64,
    },
    /// Other processes ran on the cpus.
    Foreign {
        /// Milliseconds of other processes, summed over all watched CPUs.
        foreign_ms: u64,
        /// Milliseconds elapsed, summed over all watched CPUs.
        of_ms: u64,
    },
    /// One of the cpus was throttled because of heat or power.
    Throttled {
        /// The number of times that a cpu was throttled.
        events: u64,
    },
    /// Processes waited for memory.
    Pressure {
        /// Milliseconds in which at least one process waited.
        waited_ms: u64,
        /// Milliseconds in total.
        wall_ms: u64,
    },
}

impl Disturbance {
    /// Returns true for other load, as opposed to a failed guest.
    pub fn is_load(&self) -> bool {
        match self {
            Self::Load { .. } => true,
            Self::Guest { .. } | Self::EmulatorReport { .. } => false,
            // All sentences about causes other than load began with one of these.
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
