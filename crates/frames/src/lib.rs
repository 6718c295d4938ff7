#![doc = include_str!("../README.md")]
#![no_std]
#![deny(unsafe_code)]

#[cfg(not(target_pointer_width = "64"))]
compile_error!("numalab-frames needs a 64-bit target: its metadata holds 64-bit indices");

#[cfg(test)]
extern crate std;

mod adapt;
mod alloc;
mod bits;
mod block;
mod cache;
#[cfg(not(loom))]
#[expect(unsafe_code, reason = "a static that is initialised once needs it")]
mod cell;
mod domain;
mod dump;
mod error;
mod fences;
mod frames;
mod free;

mod hotplug;
mod ids;
mod info;
mod layout;
mod lists;
mod machine;
mod map;
mod moves;
mod policy;
mod reclaim;
mod runs;
mod shared;
mod slot;
mod sync;
mod tags;
mod walk;

pub use adapt::*;
#[cfg(not(loom))]
pub use cell::FramesCell;
pub use domain::{Affinity, Domain, DomainError};
pub use dump::{BlockState, Dump, DumpBlock, DumpError, DumpPool};
pub use error::{AllocError, FreeError, FreePlace, InitError, RangeError};
pub use fences::{CpuFences, Fences, RemoteFences};
pub use frames::Frames;
pub use ids::{
    BLOCK_FRAMES, CpuIndex, FRAME_BYTES, Frame, MAX_CPUS, MAX_NODES, MAX_RUN_FRAMES, NodeIndex,
    NodeMask, Order, Owner, ZoneIndex,
};
pub use info::{Counters, MemoryInfo};
pub use machine::{Machine, MemoryRange, PC_ZONE_LIMITS, RangeState};
pub use policy::{Policy, Request, Yields};
pub use sync::Word;
pub use walk::BlockView;
