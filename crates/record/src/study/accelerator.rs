//! Why a guest runs under its accelerator.

use serde::{Deserialize, Serialize};

/// Why a guest runs under its accelerator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AcceleratorReason {
    /// It was asked for.
    Requested,
    /// Nothing was tried: no guest is started.
    NotTried,
    /// A guest ran under KVM.
    KvmWorks,
    /// KVM cannot be used.
    KvmFails(KvmFault),
    /// The guest's processor is another than the machine's.
    OtherArchitecture,
    /// The memory emulator is a plugin of TCG.
    MemoryEmulator,
    /// A sentence, as journals up to 0.1.0 had it.
    #[serde(untagged)]
    Sentence(String),
}

/// What keeps guests from running under KVM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum KvmFault {
    /// The device is not there.
    #[error("/dev/kvm is not there")]
    NoDevice,
    /// The device cannot be opened.
    #[error("/dev/kvm: {error}")]
    NotOpened {
        /// What the system says.
        error: String,
    },
    /// A guest did not come to its end.
    #[error("/dev/kvm opens, but a guest hung under it for {limit_s} s")]
    Hung {
        /// After this many seconds.
        limit_s: u64,
    },
    /// A guest did not run.
    #[error("/dev/kvm opens, but no guest runs under it ({status}): {said}")]
    Ended {
        /// How QEMU ended.
        status: String,
        /// The first line of its errors, or that there is none.
        said: String,
    },
}
