//! The reason for a guest's accelerator.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The reason for a guest's accelerator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AcceleratorReason {
    /// The user requested it.
    Requested,
    /// Nothing was tried, as no guest is started.
    NotTried,
    /// A guest ran under KVM.
    KvmWorks,
    /// KVM cannot be used.
    KvmFails(KvmFault),
    /// The guest has a different architecture from the machine.
    OtherArchitecture,
    /// The memory emulator is a plugin of TCG.
    MemoryEmulator,
    /// A sentence, as in journals up to 0.1.0.
    #[serde(untagged)]
    Sentence(String),
}

/// The reason why guests cannot run under KVM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KvmFault {
    /// The device does not exist.
    #[error("/dev/kvm does not exist")]
    NoDevice,
    /// The device cannot be opened.
    #[error("/dev/kvm: {error}")]
    NotOpened {
        /// The system's error.
        error: String,
    },
    /// A guest did not finish.
    #[error("/dev/kvm can be opened, but a guest hung under it for {limit_s} s")]
    Hung {
        /// The time limit in seconds.
        limit_s: u64,
    },
    /// A guest did not run.
    #[error("/dev/kvm can be opened, but no guest runs under it ({status}): {said}")]
    Ended {
        /// QEMU's exit status.
        status: String,
        /// The first line of its error output, or a note that there was none.
        said: String,
    },
}
