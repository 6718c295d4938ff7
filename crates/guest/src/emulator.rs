//! An emulated memory system for a guest: QEMU with the plugin `libnumalab_emulator.so`, which
//! counts every access by vCPU and node and charges its cost in the machine's topology.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use numalab_formats::memory_emulator::{EmulatedMachine, on_virt};
use numalab_image::{Architecture, Companion};

use crate::board::Board;
use crate::launch::GuestError;
use crate::qemu::{QemuNeeds, Version};

pub static PLUGIN: Companion = Companion {
    what: "the memory emulator",
    file: "libnumalab_emulator.so",
    variable: "NUMALAB_EMULATOR",
    built: None,
    build: "`cargo build --release -p numalab-emulator`",
};

pub(crate) const MACHINE: &str = "memory.json";
const REPORT: &str = "memory-report.json";
const COUNTERS: &str = "memory-counters";
/// Maximum size of the plugin's counters; `ivshmem-plain` requires a power of two.
const COUNTER_BYTES: u64 = 64 << 10;
/// Oldest version known to work: on QEMU 7.2, Linux with several cpus hangs under `-icount` at
/// "Booting SMP".
pub(crate) const OLDEST_PROVEN: Version = Version::new(10, 0, 0);
/// First version that gives plugins guest-physical addresses. Older versions report offsets in
/// memory blocks, which make the emulator take all huge pages for small ones.
const PHYSICAL_ADDRESSES: Version = Version::new(8, 2, 0);

/// Mode in which the cost of accesses is charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmulatorMode {
    /// Accesses are only counted.
    Count,
    /// In guest time, which counts instructions: identical in every run.
    #[default]
    Virtual,
    /// In host time: the guest's cpus sleep.
    Sleep,
}

/// The moment from which accesses are counted and charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmulatorStart {
    /// At a marker in the guest (`numalab_marks::mark`).
    #[default]
    Marker,
    /// At power-on, for guests without markers.
    PowerOn,
}

/// An emulated memory system for a guest.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryEmulator {
    pub plugin: PathBuf,
    /// Mode in which accesses are charged.
    pub mode: EmulatorMode,
    /// The placement of memory and the cost of accesses
    /// ([`numalab_formats::memory_emulator::describe`]).
    pub machine: EmulatedMachine,
}

impl MemoryEmulator {
    /// Creates the memory system for a guest with this processor, with the installed plugin.
    ///
    /// # Errors
    /// [`GuestError::Plugin`] without a plugin; [`GuestError::Machine`] if the processor's machine
    /// has no addresses for the memory.
    pub fn find(
        mode: EmulatorMode,
        architecture: Architecture,
        machine: EmulatedMachine,
    ) -> Result<Self, GuestError> {
        let is_pc = Board::of(architecture).is_pc;
        let machine = if is_pc { machine } else { on_virt(machine)? };
        Ok(Self { plugin: PLUGIN.find()?, mode, machine })
    }

    /// Returns the requirements on QEMU for a Linux guest with this number of cpus of this
    /// processor.
    pub fn needs(&self, architecture: Architecture, cpus: usize) -> QemuNeeds {
        let needs = self.mode.needs(architecture, cpus);
        QemuNeeds { least_version: needs.least_version.max(self.least_for_pages()), ..needs }
    }

    /// Returns the oldest version of QEMU with which the emulator can tell huge pages from small
    /// ones, if it translates addresses.
    pub fn least_for_pages(&self) -> Option<Version> {
        self.machine.tlb.as_ref().map(|_| PHYSICAL_ADDRESSES)
    }
}

impl EmulatorMode {
    /// Returns the value of the plugin's `mode=`.
    fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Virtual => "virtual",
            Self::Sleep => "sleep",
        }
    }

    /// Returns the requirements on QEMU for a Linux guest with this number of cpus of this
    /// processor.
    pub fn needs(self, architecture: Architecture, cpus: usize) -> QemuNeeds {
        // Before 8.2 QEMU gives plugins guest-physical addresses that can be decoded only for a PC.
        let is_proven_only = !Board::of(architecture).is_pc;
        // A single vCPU boots under icount with any supported QEMU; only several hang
        // (OLDEST_PROVEN).
        let virtual_time = self == Self::Virtual && cpus > 1;
        let least_version = (is_proven_only || virtual_time).then_some(OLDEST_PROVEN);
        QemuNeeds { architecture, least_version, plugins: true, firmware: false }
    }

    /// Returns the kernel arguments without which Linux does not trust its clock.
    pub fn kernel_arguments(self, architecture: Architecture) -> &'static [&'static str] {
        if self == Self::Virtual { Board::of(architecture).virtual_clock_words } else { &[] }
    }
}

impl EmulatorStart {
    /// Returns the value of the plugin's `start=`.
    fn name(self) -> &'static str {
        match self {
            Self::Marker => "marker",
            Self::PowerOn => "on",
        }
    }
}

impl MemoryEmulator {
    /// Returns QEMU's arguments to follow `-accel tcg`. The files made by
    /// [`MemoryEmulator::prepare`] are in `directory`.
    pub fn arguments(&self, directory: &Path, start: EmulatorStart) -> Vec<String> {
        let in_directory = |name: &str| escaped(&directory.join(name));
        let mut words = Vec::new();
        if self.mode == EmulatorMode::Virtual {
            // One instruction is one nanosecond, and idle time is skipped rather than slept, so
            // that the guest's time does not depend on the host's.
            words.extend(["-icount".to_owned(), "shift=0,sleep=off".to_owned()]);
        }
        let plugin = format!(
            "{},machine={},mode={},start={},report={},pmu={}@0",
            escaped(&self.plugin),
            in_directory(MACHINE),
            self.mode.name(),
            start.name(),
            in_directory(REPORT),
            in_directory(COUNTERS),
        );
        words.extend(["-plugin".to_owned(), plugin]);
        // share=on: a private mapping need not show the plugin's writes to the guest.
        let counters = format!(
            "memory-backend-file,id=counters,size={COUNTER_BYTES},share=on,mem-path={}",
            in_directory(COUNTERS)
        );
        words.extend(["-object".to_owned(), counters]);
        words.extend(["-device".to_owned(), "ivshmem-plain,memdev=counters,bus=pcie.0".to_owned()]);
        words
    }

    /// Writes the files that QEMU and its plugin read into a guest's directory.
    ///
    /// # Errors
    /// The file system's errors.
    pub fn prepare(&self, directory: &Path) -> io::Result<()> {
        let machine = serde_json::to_vec(&self.machine)?;
        fs::write(directory.join(MACHINE), machine)?;
        File::create(directory.join(COUNTERS))?.set_len(COUNTER_BYTES)
    }

    /// Reads the plugin's report (JSON, `numalab-emulator/1`) after QEMU has ended.
    ///
    /// # Errors
    /// The file system's errors: a QEMU that was killed leaves no report.
    pub fn report(directory: &Path) -> io::Result<String> {
        fs::read_to_string(directory.join(REPORT))
    }
}

/// Escapes a path for a QEMU option, where commas are doubled.
pub(crate) fn escaped(path: &Path) -> String {
    path.to_string_lossy().replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_formats::memory_emulator::{MemoryCosts, describe};
    use numalab_topology::{Cpu, Machine, Node};

    fn emulator(mode: EmulatorMode) -> MemoryEmulator {
        let node = Node { online: true, memory_bytes: 1 << 30, ..Node::default() };
        let cpu = Cpu { online: true, node: Some(node.id), ..Cpu::default() };
        let machine = Machine { nodes: vec![node], cpus: vec![cpu], ..Machine::default() };
        let machine = describe(&machine, &MemoryCosts::default()).unwrap();
        MemoryEmulator { plugin: PathBuf::from("/a,b/plugin.so"), mode, machine }
    }

    #[test]
    fn virtual_time_counts_instructions_and_every_path_is_escaped() {
        let words = emulator(EmulatorMode::Virtual);
        let words = words.arguments(Path::new("/run/g"), EmulatorStart::Marker);
        let expected = [
            "-icount",
            "shift=0,sleep=off",
            "-plugin",
            "/a,,b/plugin.so,machine=/run/g/memory.json,mode=virtual,start=marker,\
             report=/run/g/memory-report.json,pmu=/run/g/memory-counters@0",
            "-object",
            "memory-backend-file,id=counters,size=65536,share=on,mem-path=/run/g/memory-counters",
            "-device",
            "ivshmem-plain,memdev=counters,bus=pcie.0",
        ];
        assert_eq!(words, expected);
        let counting = emulator(EmulatorMode::Count);
        let words = counting.arguments(Path::new("/run/g"), EmulatorStart::PowerOn);
        assert_eq!(words[0], "-plugin");
        assert!(words[1].contains(",mode=count,start=on,"), "{words:?}");
    }

    #[test]
    fn only_virtual_time_with_several_cpus_needs_a_newer_qemu() {
        let least = |mode: EmulatorMode, cpus| mode.needs(Architecture::X86_64, cpus).least_version;
        assert_eq!(least(EmulatorMode::Virtual, 8), Some(OLDEST_PROVEN));
        assert_eq!(least(EmulatorMode::Virtual, 1), None);
        assert_eq!(least(EmulatorMode::Count, 8), None);
        assert!(EmulatorMode::Sleep.needs(Architecture::X86_64, 1).plugins);
        let on_arm = EmulatorMode::Count.needs(Architecture::Aarch64, 1);
        assert_eq!(on_arm.least_version, Some(OLDEST_PROVEN));
    }

    #[test]
    fn where_addresses_are_translated_qemu_must_give_the_guests_own() {
        let mut emulator = emulator(EmulatorMode::Virtual);
        let least = |emulator: &MemoryEmulator, cpus| {
            emulator.needs(Architecture::X86_64, cpus).least_version
        };
        assert_eq!(least(&emulator, 1), None);
        let tlb = r#"{"parts":[],"walkers":1}"#;
        emulator.machine.tlb = Some(serde_json::from_str(tlb).unwrap());
        assert_eq!(least(&emulator, 1), Some(PHYSICAL_ADDRESSES));
        assert_eq!(least(&emulator, 2), Some(OLDEST_PROVEN));
    }

    #[test]
    fn the_files_that_qemu_reads_are_written() {
        let directory = tempfile::tempdir().unwrap();
        emulator(EmulatorMode::Count).prepare(directory.path()).unwrap();
        let machine = fs::read_to_string(directory.path().join(MACHINE)).unwrap();
        assert!(machine.contains("numalab-emulator-machine/1"), "{machine}");
        let counters = fs::metadata(directory.path().join(COUNTERS)).unwrap();
        assert_eq!(counters.len(), COUNTER_BYTES);
        assert!(MemoryEmulator::report(directory.path()).is_err());
    }
}
