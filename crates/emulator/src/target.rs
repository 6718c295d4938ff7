//! The processors of guests and programs, a row for each.

use numalab_memory_model::marker::Marker;
use numalab_memory_model::pipeline::operands::Operands;
use numalab_memory_model::pipeline::{aarch64, x86};

use crate::marker;
use crate::program::syscalls::Numbers;

/// All that differs between processors.
#[derive(Debug)]
pub struct Target {
    /// QEMU's name for it.
    pub name: &'static str,
    /// Decodes the operands of an instruction.
    pub operands: fn(&[u8]) -> Operands,
    /// Decodes an instruction of `marker_bytes` as a marker.
    pub marker: fn(&[u8]) -> Option<Marker>,
    pub marker_bytes: usize,
    /// The processor's number in programs (elf(5): `e_machine`).
    pub elf_machine: u16,
    /// The system calls of its programs; `None` if programs are not followed.
    pub calls: Option<Numbers>,
    /// True if calls store their return addresses, by which they are followed.
    pub pushes_calls: bool,
    /// True if QEMU does not show all stores: an instruction of aarch64 stores zeros unseen (`DC ZVA`).
    pub hides_stores: bool,
}

const X86_64: Target = Target {
    name: "x86_64",
    operands: x86::decode,
    marker: marker::decode,
    marker_bytes: marker::LENGTH,
    elf_machine: 0x3e,
    calls: Some(Numbers::X86_64),
    pushes_calls: true,
    hides_stores: false,
};

const I386: Target = Target { name: "i386", elf_machine: 3, calls: None, ..X86_64 };

const AARCH64: Target = Target {
    name: "aarch64",
    operands: aarch64::decode,
    marker: marker::decode_aarch64,
    marker_bytes: marker::AARCH64_LENGTH,
    elf_machine: 0xb7,
    calls: Some(Numbers::AARCH64),
    pushes_calls: false,
    hides_stores: true,
};

static ALL: [Target; 3] = [X86_64, I386, AARCH64];

impl Target {
    /// Returns the processor with QEMU's name; `None` for an unknown one.
    pub fn of(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|target| target.name == name)
    }

    /// Returns the names of processors with programs that are followed.
    pub fn of_programs() -> Vec<&'static str> {
        let followed = ALL.iter().filter(|target| target.calls.is_some());
        followed.map(|target| target.name).collect()
    }
}
