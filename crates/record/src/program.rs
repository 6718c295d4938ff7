//! What a program did to its memory, on a machine that was emulated for it or on this one.

mod joined;
mod timeline;

pub use timeline::{Stretch, StretchAccesses};

use serde::{Deserialize, Serialize};

/// One process, as the memory emulator or the source of a profile saw it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramMemory {
    /// Its number.
    pub process: u32,
    /// The program that it went on as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub became: Option<String>,
    /// From its beginning to its end, in ns. On a machine that is emulated threads wait where they
    /// are made, woken and joined; what they wait for by looking again and again takes the time of
    /// looking.
    pub elapsed_ns: u64,
    /// Its threads: those that ran one after the other on the same seat are one.
    pub threads: Vec<ProgramThread>,
    /// Ranges of addresses that it used, each as one thing.
    pub regions: Vec<Region>,
    /// Cache lines that threads contend for, the one that is waited for most first.
    pub contended_lines: Vec<ContendedLine>,
    /// Accesses to pages for which the machine had no memory left, or whose node is not known.
    pub unplaced: u64,
    /// What it did over time, in order; none where that was not followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Stretch>,
}

/// A thread of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramThread {
    /// Its number.
    pub thread: u32,
    /// The node of its cpu; of the cpus that it was seen on most, where it moves.
    pub cpu_node: u32,
    /// How long it ran or waited for memory, in ns.
    pub busy_ns: u64,
    /// What other placements would change in that, where a core's overlapping misses are modelled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<Elsewhere>,
}

/// Where pages might lie of which the program says nothing. Nodes by position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Placed {
    /// On this node, and all threads too.
    Bound(usize),
    /// On these in turn.
    Interleaved(Vec<usize>),
    /// Where they do, as huge pages wherever there can be.
    Huge,
    /// Where they are touched first, by threads that take cpus node by node.
    Packed,
    /// With the second thread that uses them, as if that had touched them first.
    Users,
}

/// What a thread would wait with pages elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Elsewhere {
    /// Where.
    pub placed: Placed,
    /// How much longer it would wait, at the same load of memory, in ns.
    pub longer_ns: i64,
}

/// A mapping, a part of the heap, or a stack.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Region {
    /// The first address.
    pub start: u64,
    /// The address behind it.
    pub end: u64,
    /// The file that is mapped, or `[heap]`, `[stack]`, `[anonymous]`.
    pub name: String,
    /// The calls that made it, the innermost first; none where they could not be followed.
    pub made_at: Vec<CodePlace>,
    /// Who touched its pages first.
    pub first_touches: Vec<FirstTouches>,
    /// The fewest pages that took 90 % of the accesses, of those that are there at the end.
    pub hot_pages: u64,
    /// Its pages, together where they are alike.
    pub pages: Vec<PagesAlike>,
    /// By thread and the memory's node, where there were any.
    pub accesses: Vec<RegionAccesses>,
    /// Its pages by node when it was looked at last, whether accesses to them were seen or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resident: Vec<NodePages>,
    /// Parts of it from its beginning to its end, equally long: what is hot and what is not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<RegionPart>,
    /// Where in the code it is accessed, most often first, as far as that is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accessed_at: Vec<AccessedAt>,
    /// Whether other processes may have the same pages, as of `MAP_SHARED`, as far as that is known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
}

/// Pages on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodePages {
    /// The node.
    pub memory_node: u32,
    /// So many pages of 4 KiB, or of the kernel's base size.
    pub pages: u64,
}

/// A part of a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RegionPart {
    /// The address behind it.
    pub end: u64,
    /// The node that most of its pages lie on that were accessed, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_node: Option<u32>,
    /// Accesses to it.
    pub accesses: u64,
    /// Of these, those from cpus of other nodes.
    #[serde(default)]
    pub remote: u64,
    /// Of these, stores; `None` where they are not told from loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stores: Option<u64>,
}

/// Accesses from one place of the code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AccessedAt {
    /// The instruction, and the calls that it was made in.
    pub at: Vec<CodePlace>,
    /// Accesses.
    pub accesses: u64,
    /// Of these, those to memory of another node.
    pub remote: u64,
}

/// A place in a program's code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CodePlace {
    /// The file that it was loaded from.
    pub object: String,
    /// Where in that file, in bytes.
    pub offset: u64,
    /// The function, where the file has symbols.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The source file and line, where there is debug information.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
}

/// Pages that one thread touched first at one place of the code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FirstTouches {
    /// The thread.
    pub thread: u32,
    /// The node of its cpu.
    pub cpu_node: u32,
    /// So many pages.
    pub pages: u64,
    /// The instruction, and the calls that it was made in.
    pub at: Vec<CodePlace>,
}

/// Who uses pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// One thread.
    Private,
    /// Threads of one node.
    OneNode,
    /// Threads of several nodes, which read; of 100 accesses at most one is a store.
    Read,
    /// Threads of several nodes, some of which write.
    Written,
    /// Threads of several nodes; whether any writes is not known.
    Shared,
}

/// Pages of a region that are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PagesAlike {
    /// The node that they lie on.
    pub memory_node: u32,
    /// The node whose cpus wait for them most.
    pub main_node: u32,
    /// Whether the program itself said where they lie (mbind(2), set_mempolicy(2)).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bound: bool,
    /// Who uses them.
    pub sharing: Sharing,
    /// So many.
    pub pages: u64,
    /// Accesses to them.
    pub accesses: u64,
    /// How long is waited for their memory, by the cpus' node.
    pub waits: Vec<NodeWaits>,
}

/// How long the cpus of a node wait for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeWaits {
    /// The cpus' node.
    pub cpu_node: u32,
    /// In ns.
    pub memory_ns: u64,
}

/// What a thread did to a region's pages on a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RegionAccesses {
    /// The thread.
    pub thread: u32,
    /// The node of its cpu.
    pub cpu_node: u32,
    /// The pages' node.
    pub memory_node: u32,
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// Accesses of which it is not known whether they load or store.
    #[serde(default, skip_serializing_if = "is_none")]
    pub either: u64,
    /// Those that reached memory.
    pub misses: u64,
    /// What the latencies of loads add up to, in cycles of the cpu, where they were measured. Loads
    /// overlap, so that less is waited for them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub latency_cycles: u64,
    /// How long the thread waited for all of them, in ns.
    pub waited_ns: u64,
    /// Of that, for those that reached memory.
    pub memory_ns: u64,
    /// Of that, because the memory was busy.
    pub queue_ns: u64,
    /// Of `memory_ns`, for lines that shared caches would have had if all threads were on one node.
    #[serde(default)]
    pub cached_ns: u64,
    /// Of `waited_ns`, for lines from caches of other cpus on the thread's node.
    #[serde(default)]
    pub near_ns: u64,
    /// The same from other nodes.
    #[serde(default)]
    pub far_ns: u64,
    /// Accesses that a shared cache served and would not if all threads were on one node.
    #[serde(default)]
    pub uncached: u64,
}

/// A cache line that threads contend for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContendedLine {
    /// Its first address.
    pub address: u64,
    /// Name of its region.
    pub region: String,
    /// How often it went from one thread to another, since it was seen to do so often.
    pub changes: u64,
    /// Who uses it.
    pub threads: Vec<LineUser>,
}

/// What a thread does to a line that threads contend for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineUser {
    /// The thread.
    pub thread: u32,
    /// The node of its cpu.
    pub cpu_node: u32,
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// The bytes of the line that it loads, a bit each.
    pub loaded_bytes: u64,
    /// The bytes that it stores to.
    pub stored_bytes: u64,
    /// How long it waited for the line, in ns.
    pub waited_ns: u64,
    /// Where it stores first, and the calls that this was in.
    pub at: Vec<CodePlace>,
}

impl ProgramMemory {
    /// Every place in the code that it names.
    pub fn places_mut(&mut self) -> impl Iterator<Item = &mut CodePlace> {
        let regions = self.regions.iter_mut().flat_map(|region| {
            let touches = region.first_touches.iter_mut().flat_map(|of| &mut of.at);
            let accesses = region.accessed_at.iter_mut().flat_map(|of| &mut of.at);
            region.made_at.iter_mut().chain(touches).chain(accesses)
        });
        let users = self.contended_lines.iter_mut().flat_map(|line| &mut line.threads);
        regions.chain(users.flat_map(|user| &mut user.at))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl RegionAccesses {
    /// All of them.
    #[must_use]
    pub const fn all(&self) -> u64 {
        self.loads.saturating_add(self.stores).saturating_add(self.either)
    }

    /// Whether they are to memory of another node.
    #[must_use]
    pub const fn is_remote(&self) -> bool {
        self.cpu_node != self.memory_node
    }
}

impl Region {
    /// Accesses to it, by whom it is known or not.
    #[must_use]
    pub fn all_accesses(&self) -> u64 {
        let by_threads: u64 = self.accesses.iter().map(RegionAccesses::all).sum();
        by_threads.max(self.parts.iter().map(|part| part.accesses).sum())
    }
}

impl ContendedLine {
    /// Whether no thread uses a byte that another one stores to: they share the line for nothing.
    #[must_use]
    pub fn is_false_sharing(&self) -> bool {
        let threads = || self.threads.iter().enumerate();
        threads().all(|(at, writer)| {
            let mut others = threads().filter(|(other, _)| *other != at);
            others
                .all(|(_, user)| writer.stored_bytes & (user.stored_bytes | user.loaded_bytes) == 0)
        })
    }

    /// How long all threads waited for it, in ns.
    #[must_use]
    pub fn waited_ns(&self) -> u64 {
        self.threads.iter().map(|user| user.waited_ns).sum()
    }
}
