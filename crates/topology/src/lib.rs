#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod access;
mod cache;
mod chosen;
mod count;
mod cpu;
mod device;
mod distance;
mod emulate;
mod fallback;
mod finding;
mod id;
mod id_set;
mod machine;
mod memory;
mod node;
pub mod order;
pub mod placement;
mod tables;
mod tiers;
mod uniform;
mod usable;
mod validate;
mod weights;

pub use access::{AccessAttributes, AccessClass};
pub use cache::{Cache, CacheKind};
pub use chosen::Chosen;
pub use count::count;
pub use cpu::Cpu;
pub use device::{Device, DeviceKind};
pub use distance::{DistanceError, Distances, LOCAL_DISTANCE, UNREACHABLE_DISTANCE};
pub use emulate::{EmulatedNode, EmulatedNodes, EmulationError, EmulationSpec};
pub use fallback::{FallbackOrder, REMOTE_DISTANCE};
pub use finding::{Finding, Findings, Severity};
pub use id::{CpuId, Id, NodeId, ProximityDomain};
pub use id_set::{CpuSet, IdListError, IdSet, MAX_ID, NodeSet};
pub use machine::{Allowed, CpuGroup, MAX_NODES, Machine};
pub use memory::{MemoryKind, MemoryRange};
pub use node::{HugePagePool, MemorySideCache, MemoryTier, Node};
pub use placement::{MemoryPolicy, Placement, PlacementError};
pub use tables::{TableBytes, TableError};
pub use tiers::{EmulatedTier, TierError, TierSpec};
pub use uniform::{UniformError, UniformMachine};
pub use weights::{interleave_weights, weights_by_bandwidth};
