//! The machine of QEMU that has a guest's processor: its words, and what it cannot be.
//!
//! A `virt` machine for aarch64 is described to Linux by a device tree, which has the nodes of
//! memory and CPUs and their distances (`hw/arm/virt.c`; Linux's `numa-node-id` and
//! `numa-distance-map-v1`). What a device tree does not tell is in its ACPI tables, which Linux
//! gets from UEFI firmware only.

use numalab_image::Architecture;
use numalab_topology::{Machine, Node};

use crate::qemu::AcceleratorKind;

/// Why a guest cannot have this processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoardError {
    /// QEMU's machine is not made for it.
    #[error("--arch {} does not support {what}", .architecture.name())]
    Unable {
        /// The processor.
        architecture: Architecture,
        /// What they do not have.
        what: &'static str,
    },
}

/// Whether the machine is one that only ACPI tables tell, and these come from firmware.
pub fn needs_firmware(architecture: Architecture, machine: &Machine) -> bool {
    let is_empty = |node: &Node| node.online && node.memory_bytes == 0;
    architecture == Architecture::Aarch64
        && (!machine.access.is_empty()
            || machine.tiers.len() > 1
            || machine.nodes.iter().any(is_empty))
}

/// As in `-machine`.
pub const fn machine(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::X86_64 => "q35",
        // Version 3 of the interrupt controller serves more than 8 CPUs.
        Architecture::Aarch64 => "virt,gic-version=3",
    }
}

/// The processor model with all that this accelerator can give.
pub fn cpu_model(architecture: Architecture, accelerator: AcceleratorKind) -> &'static str {
    match architecture {
        Architecture::X86_64 => accelerator.cpu_model(),
        // That of Graviton 2 and Altra; `max` signs pointers, which takes QEMU long.
        Architecture::Aarch64 => "neoverse-n1",
    }
}

/// What Linux must be told: where its console is, and which clocks to trust.
pub const fn linux_words(architecture: Architecture) -> &'static [&'static str] {
    match architecture {
        Architecture::X86_64 => &["console=ttyS0", "no_timer_check"],
        Architecture::Aarch64 => &["console=ttyAMA0"],
    }
}

/// The words of the topology by the names that this machine has for its levels: what is a die
/// of a PC is a cluster there.
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
