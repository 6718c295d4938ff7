//! What a program did to the memory of a machine that was emulated for it.

use serde::{Deserialize, Serialize};

/// One process, as the memory emulator saw it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramMemory {
    /// Its number.
    pub process: u32,
    /// The program that it went on as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub became: Option<String>,
    /// From its beginning to its end on that machine, in ns: threads wait where they are made, woken
    /// and joined. What they wait for by looking again and again takes the time of looking.
    pub elapsed_ns: u64,
    /// Its threads: those that ran one after the other on the same seat are one.
    pub threads: Vec<ProgramThread>,
    /// Ranges of addresses that it used, each as one thing.
    pub regions: Vec<Region>,
    /// Cache lines that threads contend for, the one that is waited for most first.
    pub contended_lines: Vec<ContendedLine>,
    /// Accesses to pages for which the machine had no memory left.
    pub unplaced: u64,
}

/// A thread of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramThread {
    /// Its number.
    pub thread: u32,
    /// The node of its cpu.
    pub cpu_node: u32,
    /// How long it ran or waited for memory, in ns.
    pub busy_ns: u64,
    /// What other placements would change in that, where a core's overlapping misses are modelled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<Elsewhere>,
}

/// Where pages might lie of which the program says nothing. Nodes by position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
}

/// What a thread would wait with pages elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elsewhere {
    /// Where.
    pub placed: Placed,
    /// How much longer it would wait, at the same load of memory, in ns.
    pub longer_ns: i64,
}

/// A mapping, a part of the heap, or a stack.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
}

/// A place in a program's code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
}

/// Pages of a region that are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
pub struct NodeWaits {
    /// The cpus' node.
    pub cpu_node: u32,
    /// In ns.
    pub memory_ns: u64,
}

/// What a thread did to a region's pages on a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// Those that reached memory.
    pub misses: u64,
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
            region.made_at.iter_mut().chain(touches)
        });
        let users = self.contended_lines.iter_mut().flat_map(|line| &mut line.threads);
        regions.chain(users.flat_map(|user| &mut user.at))
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
