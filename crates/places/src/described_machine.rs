//! The machine that settings of a backend describe: uniform, with tiers, or like a known one.

use numalab_formats::described::{DescribedError, part_of, uniform};
use numalab_formats::{emulation, size, tiers};
use numalab_study::BackendError;
use numalab_topology::Machine;
use serde::Deserialize;

use crate::common_settings::{MemoryCostSettings, bad};

/// The settings of a machine and its memory.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct MachineSettings {
    /// The nodes, in the form of `--emulate`: `4`, or `1G,1G`.
    emulate: String,
    /// The total number of cpus.
    cpus: u32,
    /// The total memory of all nodes.
    memory: String,
    /// The distances, in the form of `--distances`.
    distances: Option<String>,
    #[serde(flatten)]
    pub(super) costs: MemoryCostSettings,
}

impl MachineSettings {
    /// Returns the machine, for a backend of this kind.
    pub(super) fn machine(&self, kind: &str) -> Result<Machine, BackendError> {
        let bad = |key: &str, found: &str, expected: &dyn std::fmt::Display| {
            bad(kind, key, found, expected)
        };
        if let Some(spec) = self.costs.tiers(kind)? {
            let machine = spec.machine(self.cpus);
            return machine.map_err(|error| bad("emulate-tiers", &tiers::format(&spec), &error));
        }
        let memory = size::parse_bytes(&self.memory);
        let memory = memory.map_err(|error| bad("memory", &self.memory, &error))?;
        let machine = match self.costs.like(kind)? {
            Some(file) => part_of(&file.machine, Some(self.cpus), usize::MAX, memory),
            None => {
                let spec = emulation::parse(&self.emulate, self.distances.as_deref());
                let spec = spec.map_err(|error| bad("emulate", &self.emulate, &error))?;
                uniform(Some(&spec), self.cpus, Some(memory))
            }
        };
        machine.map_err(|error| match error {
            DescribedError::Cpus { cpus, error } => bad("cpus", &cpus.to_string(), &error),
            DescribedError::Nodes(error) => bad("emulate", &self.emulate, &error),
            DescribedError::Uneven { cpus, nodes } => {
                let expected = format!("a multiple of {nodes}, the nodes with cpus");
                bad("cpus", &cpus.to_string(), &expected)
            }
        })
    }
}
