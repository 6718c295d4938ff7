//! The description of a guest, and the plan for its start.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use numalab_host::Root;
use numalab_record::study::AcceleratorReason;
use numalab_topology::{Finding, Machine};

use super::failure::GuestError;
use super::host_memory::{self, HostMemory};
use super::machine_arguments::{arguments_with_tables, machine_arguments};
use crate::board::{Board, BoardError};
use crate::emulator::{MemoryEmulator, OLDEST_PROVEN};
use crate::qemu::{
    Accelerator, AcceleratorChoice, AcceleratorKind, Qemu, QemuHazard, QemuNeeds, Version,
};
use crate::qmp::PinPlan;
use numalab_image::{Architecture, BootFiles, DiskFormat};

/// First QEMU with CXL devices of volatile memory (`volatile-memdev`).
const VOLATILE_CXL: Version = Version::new(8, 1, 0);

#[derive(Clone, Debug, Default)]
pub struct Guest {
    pub architecture: Architecture,
    /// Cpus, nodes, memory and distances.
    pub machine: Machine,
    pub memory: HostMemory,
    /// ACPI tables (`-acpitable`) that replace QEMU's own; if there are any, only cpus and the sum
    /// of memory are taken from the machine.
    pub tables: Vec<PathBuf>,
    /// The host cpus of the guest's vCPUs.
    pub pins: Option<Pins>,
    /// Words added to the kernel's command line.
    pub kernel_arguments: Vec<String>,
    /// The hypervisor that boots first, with the kernel and the initramfs as its modules.
    pub hypervisor: Option<Hypervisor>,
    /// Disks of a guest run by [`Launch::run_raw`]; writes to them are lost.
    pub disks: Vec<Disk>,
    /// The cost of the guest's memory, if it is emulated.
    pub memory_emulator: Option<MemoryEmulator>,
    /// True if the guest boots numalab's own kernel, which unlike Linux runs in virtual time with
    /// several cpus on every QEMU that has plugins.
    pub own_kernel: bool,
    pub limits: Limits,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    pub file: PathBuf,
    pub format: DiskFormat,
}

/// A hypervisor below the guest's kernel, which QEMU loads by the multiboot protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hypervisor {
    /// The hypervisor, an ELF file.
    pub program: PathBuf,
    /// Words of the hypervisor's command line.
    pub arguments: Vec<String>,
    /// The processor model that the hypervisor sees (`-cpu`): hypervisors support fewer models than
    /// kernels.
    pub cpu_model: String,
}

/// The host cpus for a guest's threads.
#[derive(Clone, Debug)]
pub struct Pins {
    /// The host cpus of the vCPUs.
    pub plan: PinPlan,
    /// The host, for [`PinPlan::Automatic`].
    pub host: Machine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the start of QEMU to the first message of process 1.
    pub boot: Duration,
    /// The limit from there to the end of the command; `None` for no limit.
    pub run: Option<Duration>,
}

/// A guest that has been checked and can be started.
#[derive(Clone, Debug)]
pub struct Launch {
    pub(super) guest: Guest,
    pub(super) qemu: Qemu,
    pub(super) accelerator: Accelerator,
    pub(super) files: BootFiles,
    pub(super) machine_words: Vec<String>,
    losses: Vec<Finding>,
}

impl Default for Limits {
    /// Allows three minutes to boot, which a loaded machine under TCG needs, and any time to run.
    fn default() -> Self {
        Self { boot: Duration::from_secs(180), run: None }
    }
}

impl Guest {
    /// Returns the tables in a directory that replace QEMU's own. QEMU always generates a MADT, and
    /// these only for a machine with nodes.
    ///
    /// # Errors
    /// [`GuestError::NoTables`] without an SRAT.
    pub fn tables_in(directory: &Path) -> Result<Vec<PathBuf>, GuestError> {
        let files = ["SRAT.bin", "SLIT.bin", "HMAT.bin"].map(|name| directory.join(name));
        match files[0].is_file() {
            true => Ok(files.into_iter().filter(|file| file.is_file()).collect()),
            false => Err(GuestError::NoTables { directory: directory.to_owned() }),
        }
    }

    /// Returns the guest's requirements on QEMU.
    pub fn qemu_needs(&self) -> QemuNeeds {
        let architecture = self.architecture;
        let cpus = self.machine.online_cpus().len();
        let emulator = self.memory_emulator.as_ref();
        let plain = QemuNeeds { architecture, ..QemuNeeds::default() };
        let mut needs = match emulator {
            None => plain,
            Some(emulator) if self.own_kernel => {
                QemuNeeds { plugins: true, least_version: emulator.least_for_pages(), ..plain }
            }
            Some(emulator) => emulator.needs(architecture, cpus),
        };
        if self.machine.has_cxl() {
            needs.least_version = needs.least_version.max(Some(VOLATILE_CXL));
        }
        match Board::of(architecture).needs_firmware(&self.machine) {
            true => QemuNeeds { firmware: true, least_version: Some(OLDEST_PROVEN), ..needs },
            false => needs,
        }
    }

    /// Returns the accelerator as far as known without booting a guest; `None` if KVM must be
    /// tried.
    pub fn known_accelerator(&self, choice: AcceleratorChoice) -> Option<Accelerator> {
        match choice {
            // Tried even without a device: the user asked for KVM, and must get the reason why it
            // fails.
            AcceleratorChoice::Kvm => None,
            AcceleratorChoice::Tcg => Some(Accelerator::tcg()),
            AcceleratorChoice::Auto if self.memory_emulator.is_some() => {
                Some(Accelerator::tcg_for(AcceleratorReason::MemoryEmulator))
            }
            // KVM cannot run guests of another architecture.
            AcceleratorChoice::Auto if self.architecture != Architecture::of_host() => {
                Some(Accelerator::tcg_for(AcceleratorReason::OtherArchitecture))
            }
            // Where KVM has not been tried, it is never chosen automatically.
            AcceleratorChoice::Auto if !Board::of(self.architecture).is_pc => {
                Some(Accelerator::tcg_for(AcceleratorReason::NotTried))
            }
            AcceleratorChoice::Auto => Accelerator::without_device(),
        }
    }

    /// Checks that QEMU's machine for the guest's processor has the features used.
    ///
    /// # Errors
    /// [`BoardError`] for the first feature that it lacks.
    pub fn expect_possible(&self, is_kvm: bool) -> Result<(), BoardError> {
        let architecture = self.architecture;
        if Board::of(architecture).is_pc {
            return Ok(());
        }
        let machine = &self.machine;
        let what = [
            (is_kvm, "KVM"),
            (self.hypervisor.is_some(), "hypervisors"),
            (!self.tables.is_empty(), "custom ACPI tables: QEMU supports them only for PCs"),
            (machine.has_cxl(), "CXL memory"),
        ];
        match what.into_iter().find(|(is_asked, _)| *is_asked) {
            Some((_, what)) => Err(BoardError::Unable { architecture, what }),
            None => Ok(()),
        }
    }
}

impl Launch {
    /// Checks that this QEMU on this host can run the guest. Starts nothing.
    ///
    /// # Errors
    /// [`GuestError::Machine`] and [`GuestError::HostMemory`]; [`GuestError::EmulatorNeedsTcg`].
    pub fn plan(
        guest: Guest,
        qemu: Qemu,
        accelerator: Accelerator,
        files: &BootFiles,
    ) -> Result<Self, GuestError> {
        if guest.hypervisor.is_some() {
            check_module_paths(files)?;
        }
        if guest.memory_emulator.is_some() && accelerator.kind != AcceleratorKind::Tcg {
            return Err(GuestError::EmulatorNeedsTcg { found: accelerator.kind.name() });
        }
        guest.expect_possible(accelerator.kind == AcceleratorKind::Kvm)?;
        guest.memory.check(&guest.machine, qemu.abilities, &Root::live())?;
        if files.initramfs.is_some() {
            host_memory::check_linux(&guest.machine)?;
        }
        // Custom tables replace QEMU's nodes completely; giving both would produce two SRATs.
        let written = match guest.tables[..] {
            [] => machine_arguments(
                &guest.machine,
                &guest.memory,
                guest.architecture,
                qemu.abilities,
            )?,
            _ => arguments_with_tables(&guest.machine, &guest.tables)?,
        };
        Ok(Self {
            machine_words: written.words,
            losses: written.losses,
            files: files.clone(),
            guest,
            qemu,
            accelerator,
        })
    }

    /// Returns the parts of the machine that QEMU cannot show to the guest.
    pub fn losses(&self) -> &[Finding] {
        &self.losses
    }

    /// Returns a warning for the user before the start; for guests that run Linux.
    pub fn hazard(&self) -> Option<QemuHazard> {
        self.accelerator.kind.hazard(&self.qemu, self.guest.machine.online_cpus().len())
    }

    /// Returns true if all memory costs the same: under plain TCG, without emulated memory.
    pub fn has_equal_costs(&self) -> bool {
        self.accelerator.kind == AcceleratorKind::Tcg && self.guest.memory_emulator.is_none()
    }

    /// Returns the QEMU that runs it.
    pub fn qemu(&self) -> &Qemu {
        &self.qemu
    }

    /// Returns the accelerator, and the reason for it.
    pub fn accelerator(&self) -> &Accelerator {
        &self.accelerator
    }

    /// Reports whether the accesses of process 1's command are charged; under a hypervisor, those
    /// of its domains are charged instead.
    pub(super) fn charges_commands(&self) -> bool {
        self.guest.memory_emulator.is_some() && self.guest.hypervisor.is_none()
    }
}

/// Rejects paths of modules with spaces: QEMU ends a module's file name at the first space
/// (`hw/i386/multiboot.c`).
fn check_module_paths(files: &BootFiles) -> Result<(), GuestError> {
    let paths = std::iter::once(&files.kernel).chain(&files.initramfs);
    for path in paths {
        if path.to_string_lossy().contains(' ') {
            let text = format!(
                "{}: QEMU cannot boot a hypervisor's module with a space in its path; set NUMALAB_CACHE to a \
                 directory without one",
                path.display()
            );
            return Err(GuestError::Start(io::Error::new(io::ErrorKind::InvalidInput, text)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_topology::{AccessAttributes, Node};

    #[test]
    fn a_path_that_qemu_would_cut_is_refused() {
        let files = BootFiles { kernel: "/my cache/vmlinux".into(), initramfs: None };
        let error = check_module_paths(&files).unwrap_err().to_string();
        assert!(error.contains("/my cache/vmlinux"), "{error}");
    }

    #[test]
    fn a_guest_for_another_processor_runs_under_tcg_and_needs_its_own_qemu() {
        let known = |architecture, choice| {
            Guest { architecture, ..Guest::default() }.known_accelerator(choice)
        };
        let arm = Architecture::Aarch64;
        let found = known(arm, AcceleratorChoice::Auto).expect("known");
        assert_eq!(found.kind, AcceleratorKind::Tcg);
        assert_ne!(found.reason, AcceleratorReason::Requested);
        assert_eq!(known(arm, AcceleratorChoice::Tcg), Some(Accelerator::tcg()));
        assert_eq!(known(arm, AcceleratorChoice::Kvm), None);
        let needs = Guest { architecture: arm, ..Guest::default() }.qemu_needs();
        assert_eq!((needs.architecture, needs.plugins), (arm, false));
    }

    #[test]
    fn features_missing_on_aarch64_are_refused_by_name() {
        let arm =
            |machine| Guest { machine, architecture: Architecture::Aarch64, ..Guest::default() };
        let refused =
            |guest: &Guest| guest.expect_possible(false).expect_err("refused").to_string();
        let node = |memory_bytes| Node { online: true, memory_bytes, ..Node::default() };
        let plain = Machine { nodes: vec![node(1 << 30)], ..Machine::default() };
        assert_eq!(arm(plain.clone()).expect_possible(false), Ok(()));
        let tables = Guest { tables: vec!["SRAT.bin".into()], ..arm(plain.clone()) };
        assert!(refused(&tables).contains("--arch aarch64 does not support custom ACPI tables"));
        let pc = Guest { machine: plain.clone(), ..Guest::default() };
        assert_eq!(pc.expect_possible(true), Ok(()));
        assert!(arm(plain).expect_possible(true).is_err());
    }

    #[test]
    fn facts_missing_in_a_device_tree_need_firmware_on_aarch64_only() {
        let node = |memory_bytes| Node { online: true, memory_bytes, ..Node::default() };
        let plain = Machine { nodes: vec![node(1 << 30)], ..Machine::default() };
        let empty = Machine { nodes: vec![node(1 << 30), node(0)], ..plain.clone() };
        let access = Machine { access: vec![AccessAttributes::default()], ..plain.clone() };
        let needs = |architecture, machine: &Machine| {
            let machine = machine.clone();
            Guest { architecture, machine, ..Guest::default() }.qemu_needs()
        };
        for machine in [&empty, &access] {
            let on_arm = needs(Architecture::Aarch64, machine);
            assert_eq!((on_arm.firmware, on_arm.least_version), (true, Some(OLDEST_PROVEN)));
            assert!(!needs(Architecture::X86_64, machine).firmware);
        }
        assert!(!needs(Architecture::Aarch64, &plain).firmware);
    }

    #[test]
    fn a_guest_with_cxl_memory_needs_a_qemu_that_has_such_devices() {
        let memory = |cxl| Node { online: true, memory_bytes: 1 << 30, cxl, ..Node::default() };
        let machine = Machine { nodes: vec![memory(false), memory(true)], ..Machine::default() };
        let mut guest = Guest { machine, ..Guest::default() };
        assert_eq!(guest.qemu_needs().least_version, Some(VOLATILE_CXL));
        guest.machine.nodes[1].cxl = false;
        assert_eq!(guest.qemu_needs().least_version, None);
    }
}
