//! The processors that guests can have.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use elf::abi::{EM_AARCH64, EM_X86_64};

use crate::companion::Companion;
use crate::elf::is_readable;

/// So much of a file tells which processor it is for.
const START_BYTES: u64 = 0x210;
/// Where an ELF file has its processor (`e_machine`).
const ELF_MACHINE: usize = 18;
/// Linux's boot protocols: `Documentation/arch/x86/boot.rst` and
/// `Documentation/arch/arm64/booting.rst`.
const LINUX_X86: (usize, &[u8]) = (0x202, b"HdrS");
const LINUX_AARCH64: (usize, &[u8]) = (56, b"ARM\x64");

/// What a guest's processor is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Architecture {
    /// That of PCs, and of the hosts that numalab boots guests on.
    #[default]
    X86_64,
    /// Arm's of 64 bits, as a machine of QEMU's kind `virt`.
    Aarch64,
}

/// numalab as a static program for aarch64, which is process 1 of such guests.
static NUMALAB_AARCH64: Companion = Companion {
    what: "numalab for aarch64",
    file: "numalab-aarch64",
    variable: "NUMALAB_AARCH64",
    built: Some("aarch64-unknown-linux-gnu/release/numalab"),
    build: "`make aarch64` in numalab's source",
};

impl Architecture {
    /// This machine's; x86-64 where it is one of which there are no guests.
    #[must_use]
    pub fn of_host() -> Self {
        Self::of_name(std::env::consts::ARCH).unwrap_or_default()
    }

    /// By the kernel's name or Debian's.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "x86_64" | "amd64" => Some(Self::X86_64),
            "aarch64" | "arm64" => Some(Self::Aarch64),
            _ => None,
        }
    }

    /// As the kernel calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// The packages whose one dependency is the newest kernel for virtual machines: Debian's,
    /// Ubuntu's.
    pub(crate) const fn kernel_packages(self) -> &'static [&'static str] {
        match self {
            Self::X86_64 => &["linux-image-cloud-amd64", "linux-image-virtual"],
            Self::Aarch64 => &["linux-image-cloud-arm64"],
        }
    }

    /// The distribution's name for it, where it is not the host's own.
    pub(crate) const fn foreign(self) -> Option<&'static str> {
        match self {
            Self::X86_64 => None,
            Self::Aarch64 => Some("arm64"),
        }
    }

    /// That of a program or a kernel's image; none where its beginning does not tell.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of_file(file: &Path) -> io::Result<Option<Self>> {
        let mut start = Vec::new();
        File::open(file)?.take(START_BYTES).read_to_end(&mut start)?;
        Ok(Self::of_start(&start))
    }

    fn of_start(start: &[u8]) -> Option<Self> {
        let has = |(at, magic): (usize, &[u8])| start.get(at..at + magic.len()) == Some(magic);
        let machine = start.get(ELF_MACHINE..ELF_MACHINE + 2);
        let machine = machine.map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
        match machine {
            Some(EM_X86_64) if is_readable(start) => Some(Self::X86_64),
            Some(EM_AARCH64) if is_readable(start) => Some(Self::Aarch64),
            _ if has(LINUX_X86) => Some(Self::X86_64),
            _ if has(LINUX_AARCH64) => Some(Self::Aarch64),
            _ => None,
        }
    }

    /// What the names of its entries in the cache begin with.
    pub(crate) fn prefix(self) -> String {
        self.foreign().map(|name| format!("{name}-")).unwrap_or_default()
    }

    /// The numalab that is process 1 of its guests; none where this very program is.
    #[must_use]
    pub fn own_program(self) -> Option<&'static Companion> {
        self.own_program_on(Self::of_host())
    }

    fn own_program_on(self, host: Self) -> Option<&'static Companion> {
        (self == Self::Aarch64 && host != self).then_some(&NUMALAB_AARCH64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_kernels_say_which_processor_they_are_for() {
        let this = Architecture::of_file(&std::env::current_exe().unwrap()).unwrap();
        assert_eq!(this.map(Architecture::name), Some(std::env::consts::ARCH));
        let mut image = [0; 0x210];
        assert_eq!(Architecture::of_start(&image), None);
        image[56..60].copy_from_slice(b"ARMd");
        assert_eq!(Architecture::of_start(&image), Some(Architecture::Aarch64));
        image[56] = 0;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        assert_eq!(Architecture::of_start(&image), Some(Architecture::X86_64));
        assert_eq!(Architecture::of_start(b"#!/bin/sh\n"), None);
    }

    #[test]
    fn guests_of_the_hosts_own_processor_run_this_very_program() {
        let (pc, arm) = (Architecture::X86_64, Architecture::Aarch64);
        assert_eq!(Architecture::of_host().name(), std::env::consts::ARCH);
        assert_eq!(Architecture::of_name("arm64"), Some(arm));
        assert_eq!(Architecture::of_name("riscv64"), None);
        assert_eq!((pc.own_program_on(pc), arm.own_program_on(arm)), (None, None));
        assert_eq!(arm.own_program_on(pc), Some(&NUMALAB_AARCH64));
    }
}
