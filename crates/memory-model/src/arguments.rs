//! The arguments on QEMU's command line after the plugin's name.

mod given;
mod policy;

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use serde::Serialize;

use given::Given;

use crate::address::{Q35_END, q35_ranges};
use crate::machine::{Machine, MachineError, Node, SCHEMA};
use crate::short::{self, rows};
use crate::space::Placement;

pub use policy::{Alternative, Policy};

/// The effect of the time of accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The time is only counted.
    #[default]
    Count,
    /// The time is added to the guest's clock, which counts instructions (`-icount`).
    Virtual,
    /// The vCPU's thread sleeps for that time.
    Sleep,
}

/// The moment when counting begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// At power-on.
    #[default]
    On,
    /// At the guest's first begin marker.
    Marker,
}

/// The place where the virtual PMU is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PmuPlace {
    /// A file that is memory of the guest.
    pub file: String,
    /// Offset in the file, in bytes.
    pub offset: u64,
}

/// All arguments, validated.
#[derive(Clone, Debug, PartialEq)]
pub struct Arguments {
    /// The memory system.
    pub machine: Machine,
    /// The effect of the time of accesses.
    pub mode: Mode,
    /// The moment when counting begins.
    pub start: Start,
    /// The file for the report; standard error if `None`.
    pub report: Option<String>,
    /// The place of the virtual PMU, if any.
    pub pmu: Option<PmuPlace>,
    /// One access in this number is simulated.
    pub sample: u32,
    /// Instructions that overlap with a miss, including its own.
    pub overlap: u32,
    /// The cpus that a program's threads take in turn; all in order if empty.
    pub threads: Vec<usize>,
    /// The placement of a program's pages without a policy of the program.
    pub policy: Policy,
    /// True if the kernel uses huge pages everywhere (`transparent_hugepage/enabled`), not only
    /// where the program requests them.
    pub huge_always: bool,
    /// Alternatives for which the threads' wait is reported as well.
    pub alternatives: Vec<Alternative>,
    /// True if all of a program is simulated in detail, not only a sample of a long one.
    pub exact: bool,
}

/// A fault in the arguments.
#[derive(Debug, thiserror::Error)]
pub enum ArgumentError {
    /// The argument has no `=`, or an unknown key.
    #[error("argument `{0}` is not known; expected one of {KEYS}")]
    Unknown(String),
    /// The argument occurs twice.
    #[error("argument `{0}` is given twice")]
    Twice(String),
    /// The value cannot be parsed.
    #[error("`{key}={value}`: expected {expected}")]
    Value {
        /// The argument's key.
        key: &'static str,
        /// The rejected value.
        value: String,
        /// The expected form.
        expected: &'static str,
    },
    /// An argument is missing.
    #[error("`{missing}` is missing; {because}")]
    Missing {
        /// The missing key.
        missing: &'static str,
        /// The reason why the other argument is needed.
        because: &'static str,
    },
    /// Two arguments exclude each other.
    #[error("`{0}` and `{1}` exclude each other")]
    Both(&'static str, &'static str),
    /// More memory than fits below the limit of q35.
    #[error(
        "`memory` has more than q35 can place below {Q35_END:#x}; expected less, or `ranges` \
         instead"
    )]
    Layout,
    /// The machine's file cannot be read.
    #[error("machine={path}: {error}")]
    File {
        /// Path of the file.
        path: String,
        /// The reason given by the system.
        error: String,
    },
    /// The machine is inconsistent.
    #[error("machine: {0}")]
    Machine(#[from] MachineError),
}

const KEYS: &str = "machine, cpus, memory, ranges, distances, local-ns, latency, node-bandwidth, \
     link-bandwidth, caches, l3-groups, stages, mode, start, report, pmu, sample, overlap, threads, \
     policy, thp, alternatives, exact";
/// Default overlap: a chase's loop has three instructions, which a processor executes while the
/// miss is outstanding.
const OVERLAP: u32 = 8;
/// Largest number of alternatives watched in one run.
pub const MOST_ALTERNATIVES: usize = 8;
const LOCAL_DISTANCE: f64 = 10.0;

impl Arguments {
    /// Parses `key=value` arguments as QEMU passes them on; `read` returns the text of the
    /// machine's file, if one is named.
    ///
    /// # Errors
    /// [`ArgumentError`] quotes the argument and the expected form.
    pub fn parse<'a>(
        given: impl IntoIterator<Item = &'a str>,
        read: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<Self, ArgumentError> {
        let mut given = Given::new(given)?;
        let mode = given.choice("mode", "count, virtual or sleep", |word| match word {
            "count" => Some(Mode::Count),
            "virtual" => Some(Mode::Virtual),
            "sleep" => Some(Mode::Sleep),
            _ => None,
        })?;
        let start = given.choice("start", "on or marker", |word| match word {
            "on" => Some(Start::On),
            "marker" => Some(Start::Marker),
            _ => None,
        })?;
        let positive = "a number from 1 to 1000000";
        let number = |word: &str| word.parse().ok().filter(|n| (1..=1_000_000).contains(n));
        let sample = given.choice("sample", positive, number)?.unwrap_or(1);
        let overlap = given.choice("overlap", positive, number)?.unwrap_or(OVERLAP);
        let pmu = given.choice("pmu", "FILE@OFFSET, such as /dev/shm/pmu@0", pmu_place)?;
        let report = given.take("report");
        let machine = machine(&mut given, read)?;
        let (mode, start) = (mode.unwrap_or_default(), start.unwrap_or_default());
        exclusions(mode, sample, &machine)?;
        let cpus = machine.cpus.len();
        let threads = given.choice("threads", "cpus of the machine, such as 0.2.1.3", |word| {
            let cpus_of = short::numbers(word)?;
            cpus_of.iter().all(|cpu| *cpu < cpus).then_some(cpus_of)
        })?;
        let threads = threads.unwrap_or_else(|| (0..cpus).collect());
        let nodes = machine.nodes.len();
        let expected = "local, users, or preferred, bind or interleave with nodes, such as bind.0";
        let policy = given.choice("policy", expected, |word| Policy::parse(word, nodes))?;
        let policy = policy.unwrap_or(Policy::Stay(Placement::Local));
        let huge_always = is_first(&mut given, "thp", "always or madvise")?;
        let others = "at most eight of bind with one node, interleave with nodes, thp and pack, such as \
                      bind.0+interleave.0.1";
        let alternatives = given
            .choice("alternatives", others, |word| policy::alternatives(word, nodes))?
            .unwrap_or_default();
        let exact = is_first(&mut given, "exact", "on or off")?;
        given.nothing_left()?;
        Ok(Self {
            machine,
            mode,
            start,
            report,
            pmu,
            sample,
            overlap,
            threads,
            policy,
            huge_always,
            alternatives,
            exact,
        })
    }
}

/// Parses an argument that is one of two words; returns true for the first one.
fn is_first(
    given: &mut Given,
    key: &'static str,
    words: &'static str,
) -> Result<bool, ArgumentError> {
    let first = |word: &str| Some(words.split(" or ").position(|known| known == word)? == 0);
    Ok(given.choice(key, words, first)?.unwrap_or(false))
}

/// Rejects arguments that exclude each other.
fn exclusions(mode: Mode, sample: u32, machine: &Machine) -> Result<(), ArgumentError> {
    if sample > 1 && mode != Mode::Count {
        return Err(ArgumentError::Both("sample", "mode"));
    }
    if sample > 1 && !machine.caches.is_empty() {
        return Err(ArgumentError::Both("sample", "caches"));
    }
    if mode == Mode::Sleep && machine.core.is_some() {
        return Err(ArgumentError::Both("core", "mode=sleep"));
    }
    Ok(())
}

fn pmu_place(word: &str) -> Option<PmuPlace> {
    let (file, offset) = word.rsplit_once('@')?;
    let offset = match offset.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => offset.parse().ok()?,
    };
    (!file.is_empty() && offset.is_multiple_of(8)).then(|| PmuPlace { file: file.into(), offset })
}

fn machine(
    given: &mut Given,
    read: impl FnOnce(&str) -> Result<String, String>,
) -> Result<Machine, ArgumentError> {
    let Some(path) = given.take("machine") else {
        return short_machine(given);
    };
    let text = read(&path);
    let text = text.map_err(|error| ArgumentError::File { path, error })?;
    Ok(Machine::from_json(&text)?)
}

/// Builds a machine from the short forms.
fn short_machine(given: &mut Given) -> Result<Machine, ArgumentError> {
    let cpus = given.choice("cpus", "a node per vCPU, such as 0.0.1.1", short::numbers)?;
    let cpus = cpus.ok_or(ArgumentError::Missing {
        missing: "cpus",
        because: "it gives the node of each vCPU (or use machine=FILE)",
    })?;
    let latency_ns = latencies(given)?;
    let nodes = nodes(given, latency_ns.len())?;
    let row = "a figure per node, such as 10000.0";
    let matrix = "a row per node, such as 0.5000/5000.0";
    let stages = given
        .choice("stages", "load, core, owners or tlb, joined by +", short::stages)?
        .unwrap_or_default();
    let machine = Machine {
        schema: SCHEMA.to_owned(),
        nodes,
        cpus,
        l3_groups: given.choice(
            "l3-groups",
            "a group per vCPU, such as 0.0.1.1",
            short::numbers,
        )?,
        latency_ns,
        store_latency_ns: None,
        node_bandwidth_mb_s: given.choice("node-bandwidth", row, short::figures)?,
        link_bandwidth_mb_s: given.choice("link-bandwidth", matrix, rows)?,
        node_load: None,
        link_load: None,
        core: None,
        tlb: None,
        other_page_ns: 0.0,
        faults: None,
        calls: None,
        transfers: None,
        caches: given
            .choice("caches", "level:size:ways:line:cpu|group, joined by +", short::caches)?
            .unwrap_or_default(),
    };
    machine.check()?;
    Ok(stages.into_iter().fold(machine, Machine::with))
}

fn latencies(given: &mut Given) -> Result<Vec<Vec<f64>>, ArgumentError> {
    let matrix = "a row per node, such as 10.20/20.10";
    let latency = given.choice("latency", matrix, rows)?;
    let distances = given.choice("distances", matrix, rows)?;
    let local_ns = given.choice("local-ns", "a number of ns", |word| word.parse::<f64>().ok())?;
    match (latency, distances) {
        (Some(_), Some(_)) => Err(ArgumentError::Both("latency", "distances")),
        (Some(_), None) if local_ns.is_some() => Err(ArgumentError::Both("latency", "local-ns")),
        (Some(latency), None) => Ok(latency),
        (None, Some(mut distances)) => {
            let per_unit = local_ns.unwrap_or(100.0) / LOCAL_DISTANCE;
            distances.iter_mut().flatten().for_each(|distance| *distance *= per_unit);
            Ok(distances)
        }
        (None, None) => Err(ArgumentError::Missing {
            missing: "distances",
            because: "it, or latency, gives the cost of an access",
        }),
    }
}

fn nodes(given: &mut Given, count: usize) -> Result<Vec<Node>, ArgumentError> {
    let memory = given.choice("memory", "a size per node, such as 1G.512M.0", short::sizes)?;
    let form = "start-end-node in hexadecimal and decimal, joined by +";
    let ranges = given.choice("ranges", form, short::ranges)?;
    let mut of_nodes = match (memory, ranges) {
        (Some(_), Some(_)) => return Err(ArgumentError::Both("memory", "ranges")),
        (Some(memory), None) => q35_ranges(&memory).ok_or(ArgumentError::Layout)?,
        (None, Some(ranges)) => {
            let most = ranges.iter().map(|range| range.2 + 1).max().unwrap_or(0);
            let mut of_nodes = vec![Vec::new(); most.max(count)];
            ranges.iter().for_each(|&(start, end, node)| of_nodes[node].push((start, end)));
            of_nodes
        }
        (None, None) => {
            return Err(ArgumentError::Missing {
                missing: "memory",
                because: "it, or ranges, gives the memory of each node",
            });
        }
    };
    let id = |at| u32::try_from(at).unwrap_or(u32::MAX);
    Ok(of_nodes.drain(..).enumerate().map(|(at, ranges)| Node { id: id(at), ranges }).collect())
}

/// Returns the machine described by these arguments, for tests.
///
/// # Panics
/// If they are invalid.
#[cfg(test)]
pub fn machine_of(arguments: &str) -> Machine {
    Arguments::parse(arguments.split(','), |_| unreachable!()).unwrap().machine
}

#[cfg(test)]
mod tests;
