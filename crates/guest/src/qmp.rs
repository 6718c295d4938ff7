//! QEMU's machine protocol (QMP) and its uses here: finding the threads of the vCPUs,
//! pinning them to host cpus, and proving the placement of these threads and of guest memory.

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
