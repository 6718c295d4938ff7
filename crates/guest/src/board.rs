//! QEMU's machines, a row for each processor of guests.
//!
//! Linux learns the nodes of memory and CPUs and their distances on a `virt` machine for aarch64
//! from a device tree (`hw/arm/virt.c`; Linux's `numa-node-id` and `numa-distance-map-v1`).
//! Everything else is in its ACPI tables, which Linux gets only from UEFI firmware.

use numalab_image::Architecture;
use numalab_topology::{Machine, Node};

/// Reason why a guest cannot have this processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoardError {
    /// QEMU's machine for the processor lacks the feature.
    #[error("--arch {} does not support {what}", .architecture.name())]
    Unable {
        architecture: Architecture,
        /// The missing feature.
        what: &'static str,
    },
}

/// QEMU's machine for a processor, and the files that it needs.
#[derive(Debug)]
pub(crate) struct Board {
    /// The program that emulates it.
    pub program: &'static str,
    /// The packages of the emulator, the emulator's own first, then its shared and data files.
    pub packages: &'static [&'static str],
    /// The firmware that gives Linux ACPI tables, on a machine that has a device tree without it.
    pub firmware: Option<Firmware>,
    /// The value of `-machine`.
    pub machine: &'static str,
    /// The most capable processor model that is not slow; `None` for the accelerator's own.
    pub cpu_model: Option<&'static str>,
    /// Kernel arguments for the console and for trusted clocks.
    pub linux_words: &'static [&'static str],
    /// Kernel arguments without which Linux does not trust a clock in virtual time.
    pub virtual_clock_words: &'static [&'static str],
    /// The name of a die in its topology.
    pub die: &'static str,
    /// True if it has a PC's addresses and features, and KVM has been tried with it.
    pub is_pc: bool,
}

/// A machine's firmware.
#[derive(Debug)]
pub(crate) struct Firmware {
    pub package: &'static str,
    /// Its file, below the prefix of QEMU's own files.
    pub file: &'static str,
}

const PC: Board = Board {
    program: "qemu-system-x86_64",
    packages: &["qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios"],
    firmware: None,
    machine: "q35",
    cpu_model: None,
    linux_words: &["console=ttyS0", "no_timer_check"],
    // Linux's clocksource watchdog would otherwise reject the TSC.
    virtual_clock_words: &["tsc=reliable"],
    die: "die",
    is_pc: true,
};

const ARM: Board = Board {
    program: "qemu-system-aarch64",
    packages: &["qemu-system-arm", "qemu-system-common", "qemu-system-data"],
    firmware: Some(Firmware {
        package: "qemu-efi-aarch64",
        file: "share/qemu-efi-aarch64/QEMU_EFI.fd",
    }),
    // Version 2 of the interrupt controller supports only 8 CPUs.
    machine: "virt,gic-version=3",
    // The processor of Graviton 2 and Altra; `max` has pointer authentication, which is slow in QEMU.
    cpu_model: Some("neoverse-n1"),
    linux_words: &["console=ttyAMA0"],
    virtual_clock_words: &[],
    die: "cluster",
    is_pc: false,
};

impl Board {
    /// Returns the machine for a processor.
    pub const fn of(architecture: Architecture) -> &'static Self {
        match architecture {
            Architecture::X86_64 => &PC,
            Architecture::Aarch64 => &ARM,
        }
    }

    /// Reports whether the machine can be described only by ACPI tables, which come from firmware.
    pub fn needs_firmware(&self, machine: &Machine) -> bool {
        // A device tree describes neither nodes without memory nor latencies and tiers.
        let is_empty = |node: &Node| node.online && node.memory_bytes == 0;
        self.firmware.is_some()
            && (!machine.access.is_empty()
                || machine.tiers.len() > 1
                || machine.nodes.iter().any(is_empty))
    }

    /// Renames the levels of the topology, given as those of a PC, for this machine.
    pub fn levels(&self, words: Vec<String>) -> Vec<String> {
        let [dies, die] = [format!(",{}s=", self.die), format!(",{}-id=", self.die)];
        let renamed = |word: String| word.replace(",dies=", &dies).replace(",die-id=", &die);
        words.into_iter().map(renamed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_die_of_a_pc_is_a_cluster_of_a_virt_machine() {
        let words = || {
            vec![
                "8,sockets=2,dies=2,cores=2,threads=1".to_owned(),
                "cpu,node-id=0,socket-id=0,die-id=1,core-id=0".to_owned(),
            ]
        };
        assert_eq!(Board::of(Architecture::X86_64).levels(words()), words());
        let expected = [
            "8,sockets=2,clusters=2,cores=2,threads=1",
            "cpu,node-id=0,socket-id=0,cluster-id=1,core-id=0",
        ];
        assert_eq!(Board::of(Architecture::Aarch64).levels(words()), expected);
    }
}
