//! The QEMU machine type for a guest's processor, with its options and limits.
//!
//! Linux learns the nodes of memory and CPUs and their distances on a `virt` machine for aarch64
//! from a device tree (`hw/arm/virt.c`; Linux's `numa-node-id` and `numa-distance-map-v1`).
//! Everything else is in its ACPI tables, which Linux gets only from UEFI firmware.

use numalab_image::Architecture;
use numalab_topology::{Machine, Node};

use crate::qemu::AcceleratorKind;

/// Reason why a guest cannot have this processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoardError {
    #[error("--arch {} does not support {what}", .architecture.name())]
    Unable {
        architecture: Architecture,
        /// The missing feature.
        what: &'static str,
    },
}

/// Reports whether the machine can be described only by ACPI tables, which come from firmware.
pub fn needs_firmware(architecture: Architecture, machine: &Machine) -> bool {
    // A device tree describes neither nodes without memory nor latencies and tiers.
    let is_empty = |node: &Node| node.online && node.memory_bytes == 0;
    architecture == Architecture::Aarch64
        && (!machine.access.is_empty()
            || machine.tiers.len() > 1
            || machine.nodes.iter().any(is_empty))
}

/// Returns the value of `-machine`.
pub const fn machine(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::X86_64 => "q35",
        // Version 2 of the interrupt controller supports only 8 CPUs.
        Architecture::Aarch64 => "virt,gic-version=3",
    }
}

/// Returns the most capable processor model for this accelerator.
pub fn cpu_model(architecture: Architecture, accelerator: AcceleratorKind) -> &'static str {
    match architecture {
        Architecture::X86_64 => accelerator.cpu_model(),
        // The processor of Graviton 2 and Altra; `max` has pointer authentication, which is slow in
        // QEMU.
        Architecture::Aarch64 => "neoverse-n1",
    }
}

/// Returns kernel arguments for the console and for trusted clocks.
pub const fn linux_words(architecture: Architecture) -> &'static [&'static str] {
    match architecture {
        Architecture::X86_64 => &["console=ttyS0", "no_timer_check"],
        Architecture::Aarch64 => &["console=ttyAMA0"],
    }
}

/// Renames the levels of the topology for this machine: the die of a PC is a cluster of a `virt`
/// machine.
pub fn levels(architecture: Architecture, words: Vec<String>) -> Vec<String> {
    if architecture == Architecture::X86_64 {
        return words;
    }
    let renamed =
        |word: String| word.replace(",dies=", ",clusters=").replace(",die-id=", ",cluster-id=");
    words.into_iter().map(renamed).collect()
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
        assert_eq!(levels(Architecture::X86_64, words()), words());
        let expected = [
            "8,sockets=2,clusters=2,cores=2,threads=1",
            "cpu,node-id=0,socket-id=0,cluster-id=1,core-id=0",
        ];
        assert_eq!(levels(Architecture::Aarch64, words()), expected);
    }
}
