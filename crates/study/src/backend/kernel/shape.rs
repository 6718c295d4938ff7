//! The machine that the kernel boots on, as a study describes it.

use numalab_formats::memory_emulator::{LatencyModel, parse_latency};
use numalab_formats::{emulation, size};
use numalab_topology::{Machine, UniformMachine};
use serde::Deserialize;

use crate::backend::BackendError;
use crate::definition::BackendSpec;

/// Settings of the backend `kernel`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Shape {
    /// The nodes, as `--emulate` takes them.
    emulate: String,
    /// Cpus of all nodes.
    cpus: u32,
    /// Memory of all nodes.
    memory: String,
    /// Distances; 10 and 20 if absent.
    distances: Option<String>,
    /// What memory costs under the emulator, as `--emulate-latency` takes it.
    latency: String,
    /// Where it boots.
    #[serde(rename = "where")]
    pub place: Wanted,
}

/// Where the kernel is to boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Wanted {
    /// On real nodes under KVM if there are any, else with the emulator, else plainly.
    #[default]
    Auto,
    /// On real nodes under KVM.
    Real,
    /// Under TCG with the emulator.
    Emulator,
    /// Under TCG without.
    Plain,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            emulate: "2".to_owned(),
            cpus: 2,
            memory: "2G".to_owned(),
            distances: None,
            latency: "100".to_owned(),
            place: Wanted::Auto,
        }
    }
}

impl Shape {
    pub fn of(spec: &BackendSpec) -> Result<Self, BackendError> {
        let value = serde_json::Value::Object(spec.settings.clone());
        serde_json::from_value(value).map_err(|error| BackendError::BadInput {
            place: "backend.kernel".to_owned(),
            found: error.to_string(),
            expected: "emulate, cpus, memory, distances, latency and where".to_owned(),
        })
    }

    /// The machine.
    pub fn machine(&self) -> Result<Machine, BackendError> {
        let bad = |key: &str, found: &str, expected: String| BackendError::BadInput {
            place: format!("backend.kernel.{key}"),
            found: found.to_owned(),
            expected,
        };
        let memory_bytes = size::parse_bytes(&self.memory)
            .map_err(|error| bad("memory", &self.memory, error.to_string()))?;
        let uniform = UniformMachine {
            cpus: self.cpus,
            threads_per_core: 1,
            packages: 1,
            l3_groups: 1,
            memory_bytes,
        };
        let base = uniform
            .build()
            .map_err(|error| bad("cpus", &self.cpus.to_string(), error.to_string()))?;
        let spec = emulation::parse(&self.emulate, self.distances.as_deref())
            .map_err(|error| bad("emulate", &self.emulate, error.to_string()))?;
        spec.emulate(&base).map_err(|error| bad("emulate", &self.emulate, error.to_string()))
    }

    /// What memory costs under the emulator.
    pub fn latency(&self) -> Result<LatencyModel, BackendError> {
        parse_latency(&self.latency).map_err(|error| BackendError::BadInput {
            place: "backend.kernel.latency".to_owned(),
            found: self.latency.clone(),
            expected: error.to_string(),
        })
    }
}
