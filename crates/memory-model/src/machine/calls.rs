//! System calls: the time of each in the kernel, apart from page faults and waiting.

use serde::{Deserialize, Serialize};

use crate::space::PAGE_BYTES;

/// The time of a system call by its kind, in ns, 0 to 1000000000.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calls {
    /// A call that does next to nothing, such as getppid(2).
    pub call_ns: f64,
    /// sched_yield(2) with no other thread to run.
    pub yield_ns: f64,
    /// Mapping memory, or unmapping memory that was not used.
    pub map_ns: f64,
    /// Moving 4 KiB between a program and a file that the caches have, in addition to the call.
    pub page_ns: f64,
    /// Reading a byte of a file.
    #[serde(default)]
    pub read_ns: f64,
    /// Writing a byte of a file within its length.
    #[serde(default)]
    pub write_ns: f64,
    /// A write that adds pages to a file, in addition to the other times.
    #[serde(default)]
    pub grow_ns: f64,
    /// Each of these pages of 4 KiB.
    #[serde(default)]
    pub new_page_ns: f64,
    /// Moving 4 KiB into a pipe or out of it, beyond the first 4 KiB of a call.
    #[serde(default)]
    pub pipe_page_ns: f64,
    /// From the call that wakes a thread until it runs on a cpu that was idle.
    pub wake_ns: f64,
    /// Opening a file by its path.
    #[serde(default)]
    pub open_ns: f64,
    /// Creating a process with its own memory, of which there is next to none, and removing it at its end.
    #[serde(default)]
    pub fork_ns: f64,
    /// Copying the page table's entry for a small page of private memory to that process, and removing
    /// the copy.
    #[serde(default)]
    pub fork_page_ns: f64,
    /// Copying a mapping with such pages to that process, and removing the copy.
    #[serde(default)]
    pub fork_map_ns: f64,
    /// Starting a program that ends at once, with the process for it, which shares its parent's memory up
    /// to then (posix_spawn(3)).
    #[serde(default)]
    pub execute_ns: f64,
    /// The instruction CPUID, which a hypervisor executes for a virtual machine.
    #[serde(default)]
    pub cpuid_ns: f64,
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
    /// recv(2) and the like, of this number of bytes.
    Move(u64),
    /// read(2) of this number of bytes of a file.
    Read(u64),
    /// write(2) of this number of bytes to a file, which adds a number of pages to it.
    Write(u64, u64),
    /// read(2) or write(2) of this number of bytes of a pipe.
    Pipe(u64),
    /// open(2).
    Open,
    /// fork(2) of a process with this number of small pages of private memory, and of mappings.
    Fork(u64, u64),
    /// execve(2).
    Execute,
    /// Not a call: this number of CPUID instructions.
    Cpuid(u64),
}

impl Calls {
    /// Returns the time of a call, in ns.
    pub fn takes_ns(&self, call: SystemCall) -> f64 {
        match call {
            SystemCall::Other => self.call_ns,
            SystemCall::Yield => self.yield_ns,
            SystemCall::Map => self.map_ns,
            SystemCall::Move(bytes) => self.call_ns + pages(bytes) * self.page_ns,
            // Machine files of earlier versions have no times of the calls from here on.
            SystemCall::Read(bytes) => self.read_ns.max(self.call_ns) + pages(bytes) * self.page_ns,
            SystemCall::Write(bytes, added) => {
                let grows_ns = if added > 0 { self.grow_ns } else { 0.0 };
                let added_ns = grows_ns + added as f64 * self.new_page_ns;
                self.write_ns.max(self.call_ns) + pages(bytes) * self.page_ns + added_ns
            }
            SystemCall::Pipe(bytes) => {
                // A pipe keeps an empty page, so that the first one of a call is not allocated.
                let first_ns = if bytes > 0 { self.page_ns } else { 0.0 };
                let page_ns = self.pipe_page_ns.max(self.page_ns);
                self.call_ns + first_ns + pages(bytes.saturating_sub(PAGE_BYTES)) * page_ns
            }
            SystemCall::Open => self.open_ns.max(self.call_ns),
            SystemCall::Fork(pages, mappings) => {
                let copies_ns = mappings as f64 * self.fork_map_ns;
                self.fork_ns.max(self.call_ns) + pages as f64 * self.fork_page_ns + copies_ns
            }
            SystemCall::Execute => self.execute_ns,
            SystemCall::Cpuid(times) => times as f64 * self.cpuid_ns,
        }
    }

    /// Returns all times, by name.
    pub(super) fn all(&self) -> [(&'static str, f64); 16] {
        [
            ("calls call_ns", self.call_ns),
            ("calls yield_ns", self.yield_ns),
            ("calls map_ns", self.map_ns),
            ("calls page_ns", self.page_ns),
            ("calls read_ns", self.read_ns),
            ("calls write_ns", self.write_ns),
            ("calls grow_ns", self.grow_ns),
            ("calls new_page_ns", self.new_page_ns),
            ("calls pipe_page_ns", self.pipe_page_ns),
            ("calls wake_ns", self.wake_ns),
            ("calls open_ns", self.open_ns),
            ("calls fork_ns", self.fork_ns),
            ("calls fork_page_ns", self.fork_page_ns),
            ("calls fork_map_ns", self.fork_map_ns),
            ("calls execute_ns", self.execute_ns),
            ("calls cpuid_ns", self.cpuid_ns),
        ]
    }
}

/// Returns the number of pages in this number of bytes.
fn pages(bytes: u64) -> f64 {
    bytes as f64 / PAGE_BYTES as f64
}
