#![doc = include_str!("../README.md")]

mod affinity;
mod allowed;
mod cgroup;
mod clock;
mod disturbance;
mod environment;
mod error;
mod huge_pool;
mod mapping;
mod mapping_error;
mod memory_limit;
mod numa_maps;
mod pages;
mod populate;
mod proof;
mod root;
mod signals;
mod smaps;
mod syscall;
mod sysfs;
mod system_page;

pub use affinity::{AffinityError, Pinned, Place, current_affinity, current_place, pin};
pub use allowed::allowed_now;
pub use clock::{UtcTime, monotonic_raw_ns};
pub use disturbance::{Reason, SystemSnapshot, SystemWatch, ThreadSnapshot};
pub use environment::Environment;
pub use error::{Error, ErrorClass};
pub use mapping::{Mapping, Span, bound_and_touched};
pub use mapping_error::MappingError;
pub use memory_limit::{LimitSource, MemoryError, MemoryLimit};
pub use pages::{Pages, UnknownPages};
pub use proof::{Proof, ProofError, ProofMethod, prove, prove_span};
pub use root::Root;
pub use signals::{Interrupt, SignalError};
pub use sysfs::{Reading, SysfsError, read_machine};
pub use system_page::{base_page_bytes, huge_page_sizes, transparent_huge_page_bytes};
