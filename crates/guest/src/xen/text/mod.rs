//! What Xen's tools print, read.

mod heap;
mod info;
mod list;
mod p2m;
mod srat;

pub use heap::{HeapDump, heap_dump};
pub use info::{XenInfo, xen_info};
pub use list::{DomainLine, domain_list, vcpu_list};
pub use p2m::{FrameCount, count_frames};
pub use srat::srat_ranges;
