//! The machine of QEMU that has a guest's processor: its words, and what it cannot be.
//!
//! A `virt` machine for aarch64 is described to Linux by a device tree, which has the nodes of
//! memory and CPUs and their distances (`hw/arm/virt.c`; Linux's `numa-node-id` and
//! `numa-distance-map-v1`), but neither latencies nor tiers.

use numalab_image::Architecture;

use super::guest::Guest;
use crate::qemu::AcceleratorKind;

/// Why a guest cannot have this processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoardError {
    /// A device tree does not tell it.
    #[error("--arch {}: guests with it have no {what}", .architecture.name())]
    Unable {
        /// The processor.
        architecture: Architecture,
        /// What they do not have.
        what: &'static str,
    },
}

/// Refuses what a guest of this processor does not have.
pub fn check(guest: &Guest, accelerator: AcceleratorKind) -> Result<(), BoardError> {
    let architecture = guest.architecture;
    if architecture == Architecture::X86_64 {
        return Ok(());
    }
    let machine = &guest.machine;
    let what = [
        (accelerator == AcceleratorKind::Kvm, "KVM on this machine"),
        (guest.hypervisor.is_some(), "hypervisor"),
        (!guest.tables.is_empty(), "ACPI tables: Linux reads their nodes from a device tree"),
        (!machine.access.is_empty(), "latencies of the firmware (HMAT)"),
        (machine.tiers.len() > 1, "memory tiers"),
        (
            machine.nodes.iter().any(|node| node.online && node.memory_bytes == 0),
            "nodes without memory",
        ),
        (guest.memory_emulator.is_some(), "memory emulator: its markers are those of x86-64"),
    ];
    match what.into_iter().find(|(is_asked, _)| *is_asked) {
        Some((_, what)) => Err(BoardError::Unable { architecture, what }),
        None => Ok(()),
    }
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
    use numalab_topology::{AccessAttributes, Machine, Node};

    fn arm(machine: Machine) -> Guest {
        Guest { machine, architecture: Architecture::Aarch64, ..Guest::default() }
    }

    fn refused(guest: &Guest) -> String {
        check(guest, AcceleratorKind::Tcg).expect_err("refused").to_string()
    }

    #[test]
    fn what_a_device_tree_does_not_tell_is_refused_by_name() {
        let node = |memory_bytes| Node { online: true, memory_bytes, ..Node::default() };
        let plain = Machine { nodes: vec![node(1 << 30)], ..Machine::default() };
        assert_eq!(check(&arm(plain.clone()), AcceleratorKind::Tcg), Ok(()));
        let empty = Machine { nodes: vec![node(1 << 30), node(0)], ..plain.clone() };
        assert!(refused(&arm(empty.clone())).contains("aarch64: guests with it have no nodes wi"));
        let pc = Guest { machine: empty, ..Guest::default() };
        assert_eq!(check(&pc, AcceleratorKind::Tcg), Ok(()));
        let access = vec![AccessAttributes::default()];
        assert!(refused(&arm(Machine { access, ..plain.clone() })).contains("(HMAT)"));
        let tables = Guest { tables: vec!["SRAT.bin".into()], ..arm(plain.clone()) };
        assert!(refused(&tables).contains("ACPI tables"));
        assert!(check(&arm(plain), AcceleratorKind::Kvm).is_err());
    }

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
