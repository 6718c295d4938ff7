//! The machine that the kernel boots on, as a study describes it.

use std::path::PathBuf;

use numalab_formats::memory_emulator::{EmulatedMachine, LatencyModel, MemoryCosts};
use numalab_record::study::EmulatedCosts;
use numalab_study::{BackendError, BackendKind, BackendSpec, SettingSpec};
use numalab_topology::Machine;
use serde::Deserialize;

use crate::common_settings::{
    CPUS, DISTANCES, EMULATE, EMULATE_BANDWIDTH, EMULATE_CACHE, EMULATE_LATENCY, EMULATE_LIKE,
    EMULATE_STAGES, MEMORY, settings,
};
use crate::described_machine::MachineSettings;

/// The setting that is not a kernel argument: the host nodes of its memory.
pub(super) const BACKENDS: &str = "backends";

/// The setting that names a kernel supplied by the user.
pub(super) const FILE: &str = "file";

/// Settings of the backend `kernel`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Shape {
    /// A kernel supplied by the user instead of numalab's.
    pub file: Option<PathBuf>,
    /// The console line that ends a sample successfully.
    pub expect: Option<String>,
    /// The console line that ends a sample with a failure.
    pub fail: Option<String>,
    /// The machine, with the costs of its memory under the emulator.
    #[serde(flatten)]
    machine: MachineSettings,
    /// The place where the kernel boots.
    #[serde(rename = "where")]
    pub place: RequestedPlace,
}

/// The requested place for the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RequestedPlace {
    /// On real nodes under KVM if there are any, else with the emulator, else under plain TCG.
    #[default]
    Auto,
    /// On real nodes under KVM.
    Real,
    /// Under TCG with the emulator.
    Emulator,
    /// Under TCG without the emulator.
    Plain,
}

settings! {
    USERS_FILE = FILE, Text("a file that a PC boots"), "",
        "your kernel, in a form that `guest run --raw` boots; its console is the output";
    EXPECT = "expect", Text("a regular expression"), "",
        "console line that ends a sample of `file` successfully; if not set, the guest must end by \
         itself";
    FAIL = "fail", Text("a regular expression"), "",
        "console line that ends a sample of `file` with a failure";
    WHERE = "where", OneOf(&["auto", "real", "emulator", "plain"]), "auto",
        "real nodes under KVM, the memory emulator, plain TCG, or the best available";
    HOST_NODES = BACKENDS, OneOf(&["own", "node-0"]), "own",
        "each node's memory on a separate host node, or all on the first";
}

pub(crate) const KIND: BackendKind = BackendKind {
    name: "kernel",
    about: "numalab's kernel, or yours, booted for each sample: factors are arguments on its \
            command line",
    settings: &[
        USERS_FILE,
        EXPECT,
        FAIL,
        SettingSpec { default: "2", ..EMULATE },
        CPUS,
        MEMORY,
        DISTANCES,
        SettingSpec {
            about: "a known machine to emulate, as --emulate-like takes it, with `cpus` and \
                    `memory` for its size; replaces emulate, distances and all costs",
            ..EMULATE_LIKE
        },
        SettingSpec { default: "100", ..EMULATE_LATENCY },
        EMULATE_BANDWIDTH,
        EMULATE_CACHE,
        EMULATE_STAGES,
        WHERE,
    ],
    built_file: Some(FILE),
    // Other places, and an automatic choice, use this machine's time.
    is_virtual: |spec| Shape::of(spec).is_ok_and(|shape| shape.place == RequestedPlace::Emulator),
    levels: &[HOST_NODES],
    ..BackendKind::PLAIN
};

impl Shape {
    pub fn of(spec: &BackendSpec) -> Result<Self, BackendError> {
        KIND.read(spec)
    }

    pub fn machine(&self) -> Result<Machine, BackendError> {
        self.machine.machine(KIND.name)
    }

    /// Describes the memory of this machine for the emulator, with the source of its costs.
    pub fn described(
        &self,
        machine: &Machine,
    ) -> Result<(EmulatedMachine, EmulatedCosts), BackendError> {
        let costs = &self.machine.costs;
        let source = match costs.costs(KIND.name)?.latency {
            _ if costs.are_like_a_machine() => EmulatedCosts::MachineFile,
            LatencyModel::Distance { .. } => EmulatedCosts::Distances,
            LatencyModel::Firmware => EmulatedCosts::Hmat,
            LatencyModel::Flat { .. } => EmulatedCosts::Flat,
        };
        Ok((costs.described(KIND.name, machine, MemoryCosts::of_guest)?, source))
    }
}

#[cfg(test)]
mod tests;
