#![doc = include_str!("../README.md")]
#![expect(missing_docs, reason = "fields of errors and records that their names explain")]
#![expect(clippy::missing_errors_doc, reason = "error types that list what can fail")]

mod affinity;
mod allowed;
pub mod bounded;
mod cgroup;
mod child;
mod clock;
mod command;
mod directory_lock;
mod disturbance;
mod emulator;
mod environment;
mod error;
mod error_class;
mod file_lock;
pub mod files;
mod huge_pool;
mod json;
mod linux_version;
mod mapping;
mod mapping_error;
mod memory_limit;
mod memory_usage;
mod mpi;
mod page_cache;
mod page_nodes;
pub mod perf;
mod populate;
pub mod proc;
mod process_policy;
mod proof;
mod root;
mod shared_words;
mod signals;
mod source_lines;
mod stderr;
mod syscall;
mod sysfs;
mod system_page;
mod temporary;
#[cfg(test)]
mod test_tree;
#[cfg(test)]
mod tests;
mod threads;
mod virtual_machine;

pub use affinity::{
    AffinityError, Pinned, Place, current_affinity, current_place, pin, set_thread_affinity,
    thread_affinity,
};
pub use allowed::allowed_now;
pub use cgroup::{CpuQuota, cpu_quota, group_file, memory_limit_file};
pub use child::{SmallProgram, SmallSize};
pub use clock::{
    UtcTime, children_cpu_ns, cpu_ns_of, monotonic_ns, monotonic_raw_ns, process_cpu_ns, unix_ns,
};
pub use command::{
    CommandError, Input, Interpreter, Ran, StartError, adopt_orphans, check_startable,
    die_with_parent, end_orphans, loader_of, on_path, output_of, run_command, run_with_input,
    spawn_held, terminate_with_parent, tool, users_program,
};
pub use directory_lock::{DirectoryLock, DirectoryLockError};
pub use disturbance::{Reason, SystemSnapshot, SystemWatch, ThreadSnapshot};
pub use emulator::emulator_counters;
pub use environment::{host_name, read_environment};
pub use error::Error;
pub use error_class::{Classed, ErrorClass};
pub use file_lock::open_locked;
pub use huge_pool::HugePool;
pub use json::from_json;
pub use linux_version::linux_version;
pub use mapping::{Mapping, Span, bound_and_touched, map_and_unmap};
pub use mapping_error::MappingError;
pub use memory_limit::{LimitSource, MemoryError, MemoryLimit, node_rooms, nodes_with_memory};
pub use memory_usage::{MemoryUse, memory_use};
pub use mpi::{Mpi, MpiError, MpiFlavour};
pub use page_cache::{cached_bytes, data_files, drop_cached};
pub use page_nodes::{PageNodesError, page_nodes};
pub use process_policy::{PolicyError, process_policy, set_process_policy};
pub use proof::{Proof, ProofError, prove, prove_span, prove_within};
pub use root::Root;
pub use shared_words::{SharedWords, remove_abandoned};
pub use signals::{Interrupt, SignalError, end_gently, report_file_limit, wait_passing_signals};
pub use source_lines::SourceLines;
pub use stderr::{note, print_error, visible};
pub use sysfs::{
    MachineReading, SysfsError, generic_initiators, has_interface_or_disk, read_machine,
    read_machine_and_devices,
};
pub use system_page::{
    base_page_bytes, base_page_bytes_of, base_pages, huge_page_sizes, page_size_bytes, pages_here,
    transparent_huge_page_bytes, transparent_huge_page_mode, usual_page_bytes,
};
pub use temporary::TemporaryDirectory;
pub use threads::{ThreadsError, expect_threads, process_limits};
