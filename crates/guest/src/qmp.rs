//! QEMU's machine protocol, and what it is used for here: knowing the threads
//! of the virtual cpus, keeping them on host cpus, and proving where they and
//! the guest's memory are.

mod client;
mod memory;
mod pin;
mod plan;
mod ram_blocks;
mod threads;

pub use client::{QmpAddress, QmpAddressError, QmpClient, QmpError};
pub use memory::{MemoryProof, prove_memory};
pub use pin::{HelperThread, PinError, PinReport, PinnedVcpu, apply};
pub use plan::{PinPlan, PlanError};
pub use ram_blocks::RamBlock;
pub use threads::{IoThread, Vcpu, io_threads, vcpus};
