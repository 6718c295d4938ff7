//! Which QEMU to use, chosen by what it can do, and whether KVM works under it.

mod abilities;
mod accelerator;
mod choose;
mod fetch;
mod version;

pub use abilities::Abilities;
pub use accelerator::{
    Accelerator, AcceleratorChoice, AcceleratorError, AcceleratorKind, QemuHazard,
};
pub use choose::{Qemu, QemuError, QemuNeeds};
pub use version::Version;
