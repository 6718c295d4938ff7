//! System calls: the time of each in the kernel, apart from page faults and waiting.

use serde::{Deserialize, Serialize};

/// The time of a system call by its kind, in ns, 0 to 1000000000.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calls {
    /// A call that does next to nothing, such as getppid(2).
    pub call_ns: f64,
    /// sched_yield(2) with no other thread to run.
    pub yield_ns: f64,
    /// Mapping memory, or unmapping memory that was not used.
    pub map_ns: f64,
    /// Moving 4 KiB between a program and a file in memory, in addition to the call.
    pub page_ns: f64,
    /// From the call that wakes a thread until it runs on a cpu that was idle.
    pub wake_ns: f64,
}

/// Kinds of system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemCall {
    /// Any other.
    Other,
    /// sched_yield(2).
    Yield,
    /// mmap(2) or munmap(2).
    Map,
    /// read(2), write(2) and the like, of parts of this number of pages.
    Move(u64),
}

impl Calls {
    /// Returns the time of a call, in ns.
    pub fn takes_ns(&self, call: SystemCall) -> f64 {
        match call {
            SystemCall::Other => self.call_ns,
            SystemCall::Yield => self.yield_ns,
            SystemCall::Map => self.map_ns,
            SystemCall::Move(pages) => self.call_ns + pages as f64 * self.page_ns,
        }
    }

    /// Returns all times, by name.
    pub(super) fn all(&self) -> [(&'static str, f64); 5] {
        [
            ("calls call_ns", self.call_ns),
            ("calls yield_ns", self.yield_ns),
            ("calls map_ns", self.map_ns),
            ("calls page_ns", self.page_ns),
            ("calls wake_ns", self.wake_ns),
        ]
    }
}
