//! Chooses a QEMU by its features, and finds out whether KVM works with it.

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
