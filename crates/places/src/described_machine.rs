//! The machine that settings of a backend describe: uniform, with tiers, or like a known one.

use numalab_formats::size;
use numalab_study::BackendError;
use numalab_topology::Machine;
use serde::Deserialize;

use crate::common_settings::{MemoryCostSettings, bad};
use crate::machine::MachineRequest;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct MachineSettings {
    /// The nodes, in the form of `--emulate`: `4`, or `1G,1G`.
    emulate: String,
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
        let memory = size::parse_bytes(&self.memory);
        let memory = memory.map_err(|error| bad(kind, "memory", &self.memory, &error))?;
        let request = MachineRequest {
            emulate: Some(self.emulate.clone()),
            distances: self.distances.clone(),
            like: self.costs.emulate_like.clone(),
            tiers: self.costs.emulate_tiers.clone(),
            cpus: Some(self.cpus),
            memory: Some(memory),
            ..MachineRequest::default()
        };
        Ok(request.describe().map_err(|error| self.costs.bad_machine(kind, &error))?.machine)
    }
}
