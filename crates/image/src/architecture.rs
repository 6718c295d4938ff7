//! The processors that guests can have.

use crate::companion::Companion;

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

    /// What the names of its entries in the cache begin with.
    pub(crate) fn prefix(self) -> String {
        self.foreign().map(|name| format!("{name}-")).unwrap_or_default()
    }

    /// The numalab that is process 1 of its guests; none where this very program is.
    #[must_use]
    pub fn own_program(self) -> Option<&'static Companion> {
        match self {
            Self::X86_64 => None,
            Self::Aarch64 => Some(&NUMALAB_AARCH64),
        }
    }
}
