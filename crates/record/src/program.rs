//! A program's use of memory, on an emulated machine or on this one.

mod joined;
mod timeline;

pub use timeline::{Stretch, StretchAccesses};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One process, as seen by the memory emulator or the source of a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramMemory {
    /// The process id.
    pub process: u32,
    /// The path of the program that it executed, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The program that the process went on to execute (execve(2)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub became: Option<String>,
    /// The time from start to end, in ns. On an emulated machine threads wait when they are
    /// created, woken and joined; busy waiting takes the time of its instructions.
    pub elapsed_ns: u64,
    /// The program's threads; those that ran one after another on the same cpu count as one.
    pub threads: Vec<ProgramThread>,
    /// The address ranges that it used, each as one unit.
    pub regions: Vec<Region>,
    /// Cache lines that threads contend for, the one with the longest waits first.
    pub contended_lines: Vec<ContendedLine>,
    /// Accesses to pages for which the machine had no memory left, or whose node is unknown.
    pub unplaced: u64,
    /// The program's page faults, if their time is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_faults: Option<KernelTime>,
    /// The program's system calls, if their time is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_calls: Option<KernelTime>,
    /// The program's use of memory over time, in order; empty if that was not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Stretch>,
}

/// The kernel's work at first uses of pages, or in system calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelTime {
    /// The number of page faults, or of calls.
    pub count: u64,
    /// The time that threads took for these events, in ns; a part of their busy time. Freed pages
    /// count as page faults.
    pub time_ns: u64,
}

/// A program's thread, with its node and busy time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramThread {
    /// The thread id.
    pub thread: u32,
    /// The node of its cpu; if it moves, the node on which it was seen most.
    pub cpu_node: u32,
    /// The time it ran or waited for memory, in ns.
    pub busy_ns: u64,
    /// The change in that time under other placements, if a core's overlapping misses are modelled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<Elsewhere>,
}

/// A possible placement of pages for which the program does not set a policy. Nodes are given by
/// position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placed {
    /// All pages and threads are bound to this node.
    Bound(usize),
    /// The pages are interleaved over these nodes.
    Interleaved(Vec<usize>),
    /// The pages are on their actual nodes, as huge pages wherever possible.
    Huge,
    /// The pages are on the node of their first touch, by threads packed onto cpus node by node.
    Packed,
    /// The pages are on the node of the second thread that uses them, as if it had touched them
    /// first.
    Users,
}

/// The wait of a thread under another placement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Elsewhere {
    /// The placement.
    pub placed: Placed,
    /// The additional wait in ns, under the same memory load.
    pub longer_ns: i64,
}

/// A mapping, a part of the heap, or a stack.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Region {
    /// The first address.
    pub start: u64,
    /// The first address after it.
    pub end: u64,
    /// The mapped file, or `[heap]`, `[stack]`, `[anonymous]`.
    pub name: String,
    /// The calls that created it, innermost first; empty if they could not be traced.
    pub made_at: Vec<CodePlace>,
    /// The threads that touched its pages first.
    pub first_touches: Vec<FirstTouches>,
    /// The smallest number of pages that accounts for 90 % of the accesses, among those present at
    /// the end.
    pub hot_pages: u64,
    /// The region's pages, in groups of similar pages.
    pub pages: Vec<PagesAlike>,
    /// Accesses by thread and memory node.
    pub accesses: Vec<RegionAccesses>,
    /// The region's pages by node when last inspected, with or without observed accesses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resident: Vec<NodePages>,
    /// Equal parts of the region from start to end, which show its hot parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<RegionPart>,
    /// The code that accesses it, most accesses first, as far as known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accessed_at: Vec<AccessedAt>,
    /// True if other processes may share its pages, as with `MAP_SHARED`, as far as known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
}

/// Pages of one size on one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodePages {
    pub memory_node: u32,
    /// The number of pages, each of 4 KiB or the kernel's base size.
    pub pages: u64,
}

/// One of the equal parts of a region, with its accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RegionPart {
    /// The first address after it.
    pub end: u64,
    /// The node that holds most of its accessed pages, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_node: Option<u32>,
    /// The number of accesses.
    pub accesses: u64,
    /// The accesses from cpus of other nodes.
    #[serde(default)]
    pub remote: u64,
    /// The stores; `None` if they cannot be distinguished from loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stores: Option<u64>,
}

/// Accesses from one place of the code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccessedAt {
    /// The instruction and its call stack.
    pub at: Vec<CodePlace>,
    /// The number of accesses.
    pub accesses: u64,
    /// The accesses to memory of another node.
    pub remote: u64,
}

/// A place in a program's code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodePlace {
    /// The object file.
    pub object: String,
    /// The offset in that file, in bytes.
    pub offset: u64,
    /// The function, if the file has symbols.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The source file and line, if there is debug information.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
}

/// Pages that one thread touched first at one place in the code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FirstTouches {
    pub thread: u32,
    pub cpu_node: u32,
    /// The number of pages.
    pub pages: u64,
    /// The instruction and its call stack.
    pub at: Vec<CodePlace>,
}

/// The threads that use a page.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// One thread.
    Private,
    /// Threads of one node.
    OneNode,
    /// Threads of several nodes, reading; at most 1 % of the accesses since the second node's first
    /// are stores.
    Read,
    /// Threads of several nodes, some of which write.
    Written,
    /// Threads of several nodes; it is unknown whether any of them writes.
    Shared,
}

/// A group of similar pages of a region.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PagesAlike {
    /// The node that holds them.
    pub memory_node: u32,
    /// The node whose cpus wait for them the longest.
    pub main_node: u32,
    /// True if the program itself set their placement (mbind(2), set_mempolicy(2)).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bound: bool,
    /// The threads that use them.
    pub sharing: Sharing,
    /// The number of pages.
    pub pages: u64,
    /// The number of accesses.
    pub accesses: u64,
    /// The waits for their memory, by the cpus' node.
    pub waits: Vec<NodeWaits>,
}

/// The time that the cpus of a node wait for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeWaits {
    /// The cpus' node.
    pub cpu_node: u32,
    /// The time in ns.
    pub memory_ns: u64,
}

/// A thread's accesses to a region's pages on one node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionAccesses {
    pub thread: u32,
    pub cpu_node: u32,
    /// The pages' node.
    pub memory_node: u32,
    /// The number of loads; left out if the source does not distinguish them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loads: Option<u64>,
    /// The number of stores; left out if the source does not distinguish them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stores: Option<u64>,
    /// Accesses that are not known to be loads or stores.
    #[serde(default, skip_serializing_if = "is_none")]
    pub either: u64,
    /// Accesses that reached memory; left out if the source does not see them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misses: Option<u64>,
    /// The sum of the measured load latencies, in cpu cycles. Loads overlap, so the actual wait is
    /// shorter.
    #[serde(default, skip_serializing_if = "is_none")]
    pub latency_cycles: u64,
    /// The thread's waiting; left out if the source does not see it.
    #[serde(flatten)]
    pub waits: Option<AccessWaits>,
}

/// A thread's waiting for a region's pages on one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccessWaits {
    /// The time that the thread waited for all of these accesses, in ns.
    pub waited_ns: u64,
    /// The part of `waited_ns` for accesses that reached memory.
    pub memory_ns: u64,
    /// The part of `waited_ns` caused by contention for the memory.
    pub queue_ns: u64,
    /// The part of `memory_ns` for lines that would be in shared caches if all threads were on one
    /// node.
    #[serde(default)]
    pub cached_ns: u64,
    /// The part of `waited_ns` for lines from caches of other cpus on the thread's node.
    #[serde(default)]
    pub near_ns: u64,
    /// The part of `waited_ns` for lines from caches of other nodes.
    #[serde(default)]
    pub far_ns: u64,
    /// Accesses served by a shared cache that would miss it if all threads were on one node.
    #[serde(default)]
    pub uncached: u64,
}

/// A cache line that threads contend for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContendedLine {
    /// The line's first address.
    pub address: u64,
    /// The name of its region.
    pub region: String,
    /// The number of transfers between threads since contention was detected.
    pub changes: u64,
    /// The threads that use it.
    pub threads: Vec<LineUser>,
}

/// A thread's use of a contended cache line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LineUser {
    pub thread: u32,
    pub cpu_node: u32,
    /// The number of loads.
    pub loads: u64,
    /// The number of stores.
    pub stores: u64,
    /// The bytes of the line that it loads, one bit per byte. The line's rarest uses, up to 1 % of
    /// all, are left out.
    pub loaded_bytes: u64,
    /// The bytes that it stores to, one bit per byte, without the rarest uses.
    pub stored_bytes: u64,
    /// The time spent waiting for the line, in ns.
    pub waited_ns: u64,
    /// The place of its first store, with the call stack.
    pub at: Vec<CodePlace>,
}

impl ProgramMemory {
    /// Replaces every code place that the program names by its frames, innermost first.
    pub fn name_code(&mut self, mut frames: impl FnMut(&CodePlace) -> Vec<CodePlace>) {
        let regions = self.regions.iter_mut().flat_map(|region| {
            let touches = region.first_touches.iter_mut().map(|of| &mut of.at);
            let accesses = region.accessed_at.iter_mut().map(|of| &mut of.at);
            std::iter::once(&mut region.made_at).chain(touches).chain(accesses)
        });
        let users = self.contended_lines.iter_mut().flat_map(|line| &mut line.threads);
        for places in regions.chain(users.map(|user| &mut user.at)) {
            *places = places.iter().flat_map(&mut frames).collect();
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl RegionAccesses {
    /// Returns the total number of accesses.
    pub fn all(&self) -> u64 {
        let [loads, stores] = [self.loads, self.stores].map(Option::unwrap_or_default);
        loads.saturating_add(stores).saturating_add(self.either)
    }

    /// Returns the thread's waiting, none if it is unknown.
    pub fn waits(&self) -> AccessWaits {
        self.waits.unwrap_or_default()
    }

    /// Returns true if they are to memory of another node.
    pub const fn is_remote(&self) -> bool {
        self.cpu_node != self.memory_node
    }
}

impl Region {
    /// Returns the number of accesses to the region, from known and unknown threads.
    pub fn all_accesses(&self) -> u64 {
        let by_threads: u64 = self.accesses.iter().map(RegionAccesses::all).sum();
        by_threads.max(self.parts.iter().map(|part| part.accesses).sum())
    }
}

impl ContendedLine {
    /// Returns true if no thread uses a byte that another one stores to (false sharing).
    pub fn is_false_sharing(&self) -> bool {
        let threads = || self.threads.iter().enumerate();
        threads().all(|(at, writer)| {
            let mut others = threads().filter(|(other, _)| *other != at);
            others
                .all(|(_, user)| writer.stored_bytes & (user.stored_bytes | user.loaded_bytes) == 0)
        })
    }

    /// Returns the wait of all threads for the line, in ns.
    pub fn waited_ns(&self) -> u64 {
        self.threads.iter().map(|user| user.waited_ns).sum()
    }
}
