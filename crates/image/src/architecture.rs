//! The processor architectures of guests.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use elf::abi::{EM_AARCH64, EM_X86_64};
use serde::Deserialize;

use crate::companion::Companion;
use crate::elf::is_readable;

/// Number of bytes at the start of a file that identify its processor.
const START_BYTES: u64 = 0x210;
/// Offset of the processor (`e_machine`) in an ELF file.
const ELF_MACHINE: usize = 18;

/// The processor architecture of a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// The architecture of PCs, and of the hosts on which numalab boots guests.
    #[default]
    X86_64,
    /// 64-bit Arm, as a machine of QEMU's type `virt`.
    Aarch64,
}

/// A static numalab for aarch64, process 1 of such guests.
static NUMALAB_AARCH64: Companion = Companion {
    what: "numalab for aarch64",
    file: "numalab-aarch64",
    variable: "NUMALAB_AARCH64",
    built: Some("aarch64-unknown-linux-gnu/release/numalab"),
    build: "`make aarch64` in numalab's source",
};

impl Architecture {
    /// Every architecture.
    pub const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];
    /// Their names.
    pub const NAMES: [&str; 2] = [Self::ALL[0].name(), Self::ALL[1].name()];

    /// Returns this machine's architecture; x86-64 if guests of this machine's architecture are not
    /// supported.
    pub fn of_host() -> Self {
        Self::of_name(std::env::consts::ARCH).unwrap_or_default()
    }

    /// Returns the architecture with this name, of the kernel or of Debian.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|of| [of.name(), of.debian_name()].contains(&name))
    }

    /// Returns the kernel's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// Returns the packages whose only dependency is the newest kernel for virtual machines:
    /// Debian's and Ubuntu's.
    pub(crate) const fn kernel_packages(self) -> &'static [&'static str] {
        match self {
            Self::X86_64 => &["linux-image-cloud-amd64", "linux-image-virtual"],
            Self::Aarch64 => &["linux-image-cloud-arm64"],
        }
    }

    const fn debian_name(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// Returns the distribution's name for the architecture; `None` for that of hosts.
    pub(crate) fn foreign(self) -> Option<&'static str> {
        (self != Self::default()).then(|| self.debian_name())
    }

    /// Returns the directory of its C library in Debian's cross packages.
    pub fn cross_root(self) -> String {
        format!("/usr/{}-linux-gnu", self.name())
    }

    /// Returns the architecture of a program or a kernel image; `None` if the start of the file
    /// does not identify it.
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
        let is_image = |of: &Self| has(of.linux_magic());
        Self::of_program(start).or_else(|| Self::ALL.into_iter().find(is_image))
    }

    /// Returns the architecture of a 64-bit program with these first bytes.
    pub fn of_program(start: &[u8]) -> Option<Self> {
        let machine = start.get(ELF_MACHINE..ELF_MACHINE + 2).filter(|_| is_readable(start))?;
        Self::ALL.into_iter().find(|of| of.elf_machine().to_le_bytes() == *machine)
    }

    const fn elf_machine(self) -> u16 {
        match self {
            Self::X86_64 => EM_X86_64,
            Self::Aarch64 => EM_AARCH64,
        }
    }

    /// Returns the place and the magic number of Linux's boot protocol.
    const fn linux_magic(self) -> (usize, &'static [u8]) {
        match self {
            // `Documentation/arch/x86/boot.rst`.
            Self::X86_64 => (0x202, b"HdrS"),
            // `Documentation/arch/arm64/booting.rst`.
            Self::Aarch64 => (56, b"ARM\x64"),
        }
    }

    /// Returns the prefix of the architecture's entries in the cache.
    pub(crate) fn prefix(self) -> String {
        self.foreign().map(|name| format!("{name}-")).unwrap_or_default()
    }

    /// Returns the numalab that guests of the architecture run as process 1; `None` for this
    /// program itself.
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
    fn the_processor_of_programs_and_kernels_is_identified() {
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
        let program = |machine: u8| {
            let mut start = b"\x7fELF\x02\x01\x01".to_vec();
            start.resize(ELF_MACHINE, 0);
            start.extend([machine, 0]);
            Architecture::of_program(&start)
        };
        let known = [Some(Architecture::X86_64), Some(Architecture::Aarch64), None];
        assert_eq!([0x3e, 0xb7, 3].map(program), known);
        assert_eq!(Architecture::of_program(b"\x7fELF"), None);
    }

    #[test]
    fn guests_of_the_hosts_own_processor_run_this_program() {
        let (pc, arm) = (Architecture::X86_64, Architecture::Aarch64);
        assert_eq!(Architecture::of_host().name(), std::env::consts::ARCH);
        assert_eq!(Architecture::of_name("arm64"), Some(arm));
        assert_eq!(Architecture::of_name("riscv64"), None);
        assert_eq!((pc.own_program_on(pc), arm.own_program_on(arm)), (None, None));
        assert_eq!(arm.own_program_on(pc), Some(&NUMALAB_AARCH64));
    }
}
