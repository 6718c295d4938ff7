//! Parsers of the output of Xen's tools.

mod heap;
mod info;
mod list;
mod p2m;
mod srat;

pub use heap::{PAGE_BYTES, XenDomain, XenDump, XenNode, XenZone};
pub use info::{XenInfo, xen_info};
pub use list::{ListedDomain, ListedVcpu, cpupools, read_list, read_vcpus};
pub use p2m::{FrameCount, count_frames};
pub use srat::srat_ranges;
