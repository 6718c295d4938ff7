//! The inputs of every boot, and facts about it that are known in advance.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::thread;

use numalab_guest::xen::XenBuild;
use numalab_host::{MemoryLimit, Root};
use numalab_image::{Architecture, Cache, KernelChoice};
use numalab_record::study::Treatment;
use numalab_study::{BackendError, StudyPlace};
use numalab_topology::Machine;
use numalab_workload::Workload;

use super::boot_context::BootContext;
use super::errors::bad;
use super::layout::GuestLayout;
use super::outcome::Outcome;
use super::settings::{GuestTreatment, GuestsSettings, HypervisorKind};
use super::{builds, contents, qemu, xen};
use crate::downloads::supplies;
use crate::host;

/// The memory that QEMU takes in addition to its guest's.
const QEMU_BYTES: u64 = 1 << 30;

#[derive(Clone)]
pub(super) struct Inputs {
    pub(super) settings: GuestsSettings,
    pub(super) workloads: Vec<Workload>,
    /// Hypervisors supplied by the user, by file.
    pub(super) builds: BTreeMap<PathBuf, XenBuild>,
}

impl Inputs {
    /// Boots, runs every workload in all guests, and stops early when `ended` returns true.
    pub(super) fn run(
        &self,
        treatment: &Treatment,
        ended: &(dyn Fn() -> bool + Sync),
    ) -> Result<Outcome, BackendError> {
        let wanted = GuestTreatment::of(treatment, &self.settings)?;
        let layout = self.layout(&wanted)?;
        let contents = contents::guest_contents(&self.workloads)?;
        let runs = BootContext {
            settings: &self.settings,
            treatment,
            wanted: &wanted,
            layout: &layout,
            build: builds::build_of(&wanted, &self.builds)?,
            contents,
            workloads: &self.workloads,
            ended,
        };
        match self.settings.hypervisor {
            HypervisorKind::Xen => runs.on_xen(),
            HypervisorKind::Qemu => runs.on_qemu(),
        }
    }

    /// Returns the number of boots that may run at the same time: limited by the cpus, and by
    /// memory for the largest boot; one if boots are measured in this machine's time.
    pub(super) fn side_by_side(&self, wanted: &[GuestTreatment]) -> Result<usize, BackendError> {
        if !self.settings.emulates_memory() {
            return Ok(1);
        }
        let largest = self.largest_machine(wanted)? + QEMU_BYTES;
        let limit = MemoryLimit::read(&Root::live());
        let fitting = limit.map_or(1, |limit| limit.available_bytes / largest);
        let cpus = thread::available_parallelism().map_or(1, NonZero::get);
        Ok(usize::try_from(fitting).unwrap_or(usize::MAX).clamp(1, cpus))
    }

    /// Fetches into the cache, or builds there, everything that boots need.
    pub(super) fn fetch(&self) -> Result<(), BackendError> {
        let contents = contents::guest_contents(&self.workloads)?;
        match self.settings.hypervisor {
            HypervisorKind::Xen => {
                let (_, files) = xen::files(&contents)?;
                xen::check_guest_memory(self.settings.guest_memory_mib, files.domain_bytes)
            }
            HypervisorKind::Qemu => qemu::supplies(&contents).map(drop),
        }
    }

    /// Refuses domains that their image does not fit into, if its parts are in the cache already.
    pub(super) fn check_guest_memory(&self) -> Result<(), BackendError> {
        if self.settings.hypervisor != HypervisorKind::Xen || !self.downloads()?.is_empty() {
            return Ok(());
        }
        let image_bytes = xen::domain_bytes(&contents::guest_contents(&self.workloads)?)?;
        xen::check_guest_memory(self.settings.guest_memory_mib, image_bytes)
    }

    /// Refuses a machine with guests that does not fit into this machine's memory.
    pub(super) fn check_host_memory(&self, wanted: &[GuestTreatment]) -> Result<(), BackendError> {
        if !self.settings.xen_in_qemu() {
            return Ok(());
        }
        // Without a figure of available memory nothing can be refused.
        let Ok(limit) = MemoryLimit::read(&Root::live()) else { return Ok(()) };
        expect_room(self.largest_machine(wanted)? + QEMU_BYTES, limit.available_bytes)
    }

    /// Returns the files that are not in the cache yet.
    pub(super) fn downloads(&self) -> Result<Vec<String>, BackendError> {
        let cache = Cache::open().map_err(|error| BackendError::failed("cache", error))?;
        let mut supplies = supplies(&cache, Architecture::X86_64)?;
        match self.settings.hypervisor {
            HypervisorKind::Xen => supplies.need_xen(),
            HypervisorKind::Qemu => supplies.need_kernel(&KernelChoice::Distribution),
        }
        supplies.need_packages(&contents::guest_contents(&self.workloads)?.packages);
        Ok(supplies.missing())
    }

    /// Returns the memory of all guests that run at the same time, or of the machines created for
    /// them.
    pub(super) fn memory_bytes(&self, wanted: &[GuestTreatment]) -> Result<u64, BackendError> {
        let settings = &self.settings;
        if settings.xen_in_qemu() {
            return Ok(self.side_by_side(wanted)? as u64 * self.largest_machine(wanted)?);
        }
        let most = wanted.iter().map(|one| one.guests).max().unwrap_or(0);
        Ok(u64::from(most) * (settings.guest_memory_mib << 20))
    }

    /// Returns the memory used by the machine with the most guests.
    pub(super) fn largest_machine(&self, wanted: &[GuestTreatment]) -> Result<u64, BackendError> {
        let used = |wanted| Ok(self.layout(wanted)?.used_bytes(&self.settings));
        let used: Result<Vec<u64>, BackendError> = wanted.iter().map(used).collect();
        Ok(used?.into_iter().max().unwrap_or(0))
    }

    pub(super) fn machines(&self, wanted: &[GuestTreatment]) -> Result<Vec<Machine>, BackendError> {
        wanted.iter().map(|wanted| Ok(self.layout(wanted)?.machine)).collect()
    }

    /// Returns the layout of a treatment: the machine is emulated for a Xen in QEMU, and this
    /// machine otherwise.
    pub(super) fn layout(&self, wanted: &GuestTreatment) -> Result<GuestLayout, BackendError> {
        Ok(match (self.settings.hypervisor, self.settings.on_this_dom0) {
            (HypervisorKind::Xen, false) => GuestLayout::of(wanted, &self.settings),
            (HypervisorKind::Xen, true) => GuestLayout::of_host(wanted, xen::host()?),
            (HypervisorKind::Qemu, _) => GuestLayout::of_host(wanted, host::machine()?),
        })
    }

    pub(super) fn check_settings(&self, wanted: &[GuestTreatment]) -> Result<(), BackendError> {
        let settings = &self.settings;
        if settings.on_this_dom0 && wanted.iter().any(|one| one.numa != wanted[0].numa) {
            let found = "a machine that is already running".to_owned();
            return Err(bad(
                StudyPlace::Factor("numa".to_owned()),
                found,
                "a Xen in QEMU: numa= is chosen at boot",
            ));
        }
        if settings.on_this_dom0 && wanted.iter().any(|one| one.pools) {
            // Nothing would merge the pools again afterwards.
            let found = "a machine that others may use".to_owned();
            return Err(bad(
                StudyPlace::Factor("cpupools".to_owned()),
                found,
                "a Xen in QEMU, where pools end with the machine",
            ));
        }
        let real = settings.hypervisor == HypervisorKind::Qemu || settings.on_this_dom0;
        if real && settings.emulates_memory() {
            let found = "emulate-latency on this machine's own memory".to_owned();
            return Err(bad(
                StudyPlace::keys(["backend", "guests"]),
                found,
                "it with a Xen in QEMU only",
            ));
        }
        if settings.hypervisor == HypervisorKind::Qemu && settings.on_this_dom0 {
            let found = "on-this-dom0 with hypervisor qemu".to_owned();
            return Err(bad(StudyPlace::keys(["backend", "guests"]), found, "hypervisor xen"));
        }
        Ok(())
    }
}

/// Refuses a machine with guests that needs more memory than there is.
fn expect_room(needed_bytes: u64, available_bytes: u64) -> Result<(), BackendError> {
    if needed_bytes <= available_bytes {
        return Ok(());
    }
    Err(BackendError::lacking(
        format!(
            "the machine with the most guests takes {} MiB with QEMU, and {} MiB are available",
            needed_bytes >> 20,
            available_bytes >> 20
        ),
        "free memory, or lower guests, guest-memory-mib or dom0-memory-mib with --set",
    ))
}

#[cfg(test)]
mod tests;
