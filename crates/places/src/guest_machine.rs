//! The guest of a study: settings of `[backend.linux-guest]`.

use std::time::Duration;

use numalab_formats::memory_emulator::MemoryCosts;
use numalab_guest::{AcceleratorChoice, EmulatorMode, Guest, GuestError, Limits, MemoryEmulator};
use numalab_image::Architecture;
use numalab_study::BackendError;
use numalab_topology::Machine;
use serde::Deserialize;

use super::common_settings::{self, COSTS_OF_MACHINE, LINUX_GUEST};
use super::described_machine::MachineSettings;
use super::live_guest::failed;

/// The time limit of a boot in which every access is charged, which is slow.
const EMULATED_BOOT: Duration = Duration::from_secs(900);

/// Settings of a guest; `counters`, `count-migrations` and `watch-pages` are for the backend inside
/// it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct GuestSettings {
    #[serde(flatten)]
    pub(super) described: MachineSettings,
    /// The processor architecture; this machine's if absent.
    pub(super) arch: Option<Architecture>,
    pub(super) accel: AcceleratorChoice,
    /// The kernel that the guest boots unless a treatment names another.
    pub(super) kernel: String,
    /// True if a fresh guest is booted for each treatment of each block.
    pub(super) fresh: bool,
    /// Additional programs and files that the guest's commands need.
    #[serde(default)]
    pub(super) with: Vec<String>,
    #[serde(default)]
    pub(super) kernel_arguments: Vec<String>,
    #[serde(default)]
    pub(super) counters: Vec<String>,
    pub(super) count_migrations: bool,
    pub(super) watch_pages: bool,
    pub(super) watch_output: bool,
}

impl GuestSettings {
    /// Returns true if the guest's memory has emulated costs.
    pub(super) fn emulates_memory(&self) -> bool {
        self.described.costs.are_emulated()
    }

    pub(super) fn machine(&self) -> Result<Machine, BackendError> {
        self.described.machine(LINUX_GUEST)
    }

    pub(super) fn architecture(&self) -> Architecture {
        self.arch.unwrap_or_else(Architecture::of_host)
    }

    /// Returns the guest for this machine, without the settings in which treatments differ.
    pub(super) fn guest(&self, machine: &Machine) -> Result<Guest, BackendError> {
        let architecture = self.architecture();
        let guest = Guest {
            architecture,
            machine: machine.clone(),
            kernel_arguments: self.kernel_arguments.clone(),
            ..Guest::default()
        };
        // Checked first, so that the error is not about a plugin that would not help.
        self.expect_possible(&guest)?;
        let Some(emulator) = self.emulator(machine, architecture)? else { return Ok(guest) };
        let limits = Limits { boot: EMULATED_BOOT, ..Limits::default() };
        let guest = Guest { memory_emulator: Some(emulator), limits, ..guest };
        self.expect_possible(&guest)?;
        Ok(guest)
    }

    fn expect_possible(&self, guest: &Guest) -> Result<(), BackendError> {
        let is_kvm = self.accelerator() == AcceleratorChoice::Kvm;
        let name = guest.architecture.name();
        let possible = guest.expect_possible(is_kvm);
        possible.map_err(|error| bad("arch", name, &format!("x86_64: {error}")))
    }

    /// Returns the accelerator, if there is a choice: emulated memory requires TCG.
    pub(super) fn accelerator(&self) -> AcceleratorChoice {
        if self.emulates_memory() { AcceleratorChoice::Auto } else { self.accel }
    }

    /// Returns the memory emulator, if the guest has one.
    fn emulator(
        &self,
        machine: &Machine,
        architecture: Architecture,
    ) -> Result<Option<MemoryEmulator>, BackendError> {
        if !self.emulates_memory() {
            return Ok(None);
        }
        let machine =
            self.described.costs.described(LINUX_GUEST, machine, MemoryCosts::of_guest)?;
        match MemoryEmulator::find(EmulatorMode::Virtual, architecture, machine) {
            Ok(emulator) => Ok(Some(emulator)),
            Err(GuestError::Machine(error)) => {
                Err(bad("emulate-latency", &error.to_string(), &COSTS_OF_MACHINE))
            }
            Err(error) => Err(failed(&error)),
        }
    }

    /// Returns the settings of the backend inside the guest, in JSON.
    pub(super) fn inner(&self) -> String {
        serde_json::json!({
            "counters": self.counters,
            "count-migrations": self.count_migrations,
            "watch-pages": self.watch_pages,
            "watch-output": self.watch_output,
        })
        .to_string()
    }
}

fn bad(key: &str, found: &str, expected: &dyn std::fmt::Display) -> BackendError {
    common_settings::bad(LINUX_GUEST, key, found, expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(cpus: u32, like: &str) -> GuestSettings {
        let json = serde_json::json!({
            "emulate": "1", "cpus": cpus, "memory": "1G", "accel": "auto",
            "kernel": "linux", "fresh": false,
            "count-migrations": false, "watch-pages": false, "watch-output": false,
            "emulate-like": like,
        });
        serde_json::from_value(json).expect("settings")
    }

    #[test]
    fn a_guest_can_imitate_a_bundled_machine() {
        let machine = settings(8, "x460").machine().expect("a machine");
        assert_eq!((machine.nodes.len(), machine.cpus.len()), (4, 8));
        assert_eq!(machine.memory_bytes(), 1 << 30);
        let error = settings(6, "x460").machine().expect_err("six on four nodes").to_string();
        assert!(error.contains("a multiple of 4"), "{error}");
        let error = settings(8, "cray-1").machine().expect_err("no such machine").to_string();
        assert!(
            error.contains("cray-1") && error.contains("expected a file, or one of"),
            "{error}"
        );
    }
}
