//! The JSON document of an emulated program or guest.

use numalab_record::{ContendedLine, MemoryReport, ProgramMemory};
use schemars::JsonSchema;
use serde::Serialize;

use super::{RemoteCost, RemoteRegion, contended_ns};

/// The memory emulator's report, with the figures of its page.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EmulationDocument<'a> {
    /// The cost of memory to the program; left out if a guest was emulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results: Option<MemoryCost>,
    /// The counts of the emulator.
    #[serde(flatten)]
    pub report: &'a MemoryReport,
}

/// The cost of memory to a program. Percentages are of the time of all its threads.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MemoryCost {
    /// The time of all the program's threads, in ns.
    pub time_ns: f64,
    /// The part of that time spent on memory and caches, in ns.
    pub memory_ns: f64,
    pub memory_percent: f64,
    /// The maximum saving if every access were local, in ns.
    pub remote_ns: f64,
    pub remote_percent: f64,
    /// The regions with remote accesses that cost 1 % of the time or more, most costly first.
    pub remote_regions: Vec<CostlyRegion>,
    /// The time of page faults; left out if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_faults_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_faults_percent: Option<f64>,
    /// The time that threads wait for cache lines for which they contend, in ns.
    pub contended_ns: u64,
    pub contended_percent: f64,
    /// The contended line with the longest waits; left out if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_contended: Option<CostlyLine>,
}

/// A region with pages away from the cpus that use them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CostlyRegion {
    /// The first address.
    pub start: u64,
    /// The first address after it.
    pub end: u64,
    /// The mapped file, or `[heap]`, `[stack]`, `[anonymous]`.
    pub name: String,
    /// The extra cost of its remote accesses over local ones, in ns.
    pub remote_ns: f64,
    /// The region's share of the remote cost of all regions, in percent.
    pub of_remote_percent: f64,
    /// The cpu node with the highest cost.
    pub cpu_node: u32,
    /// The memory node that this cost concerns.
    pub memory_node: u32,
}

/// A cache line that threads contend for.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CostlyLine {
    /// The line's first address.
    pub address: u64,
    /// The name of its region.
    pub region: String,
    /// The time that threads wait for it, in ns.
    pub waited_ns: u64,
    /// True if no thread uses a byte that another one stores to.
    pub false_sharing: bool,
}

impl<'a> EmulationDocument<'a> {
    /// Returns the document of a report.
    pub fn of(report: &'a MemoryReport) -> Self {
        let results = report.program().map(|program| MemoryCost::of(report, program));
        Self { results, report }
    }
}

impl MemoryCost {
    fn of(report: &MemoryReport, program: &ProgramMemory) -> Self {
        let cost = RemoteCost::of_report(report, program);
        let percent = |ns: f64| 100.0 * ns / cost.time_ns.max(1.0);
        let page_faults_ns = program.page_faults.map(|faults| faults.time_ns);
        let contended_ns = contended_ns(program);
        Self {
            time_ns: cost.time_ns,
            memory_ns: cost.memory_ns,
            memory_percent: percent(cost.memory_ns),
            remote_ns: cost.remote_ns,
            remote_percent: percent(cost.remote_ns),
            remote_regions: cost.regions.iter().map(|found| costly(found, &cost)).collect(),
            page_faults_ns,
            page_faults_percent: page_faults_ns.map(|ns| percent(ns as f64)),
            contended_ns,
            contended_percent: percent(contended_ns as f64),
            most_contended: program.contended_lines.first().map(CostlyLine::of),
        }
    }
}

fn costly(found: &RemoteRegion, cost: &RemoteCost) -> CostlyRegion {
    CostlyRegion {
        start: found.region.start,
        end: found.region.end,
        name: found.region.name.clone(),
        remote_ns: found.remote_ns,
        of_remote_percent: 100.0 * found.remote_ns / cost.remote_ns.max(1.0),
        cpu_node: found.cpu_node,
        memory_node: found.memory_node,
    }
}

impl CostlyLine {
    fn of(line: &ContendedLine) -> Self {
        Self {
            address: line.address,
            region: line.region.clone(),
            waited_ns: line.waited_ns(),
            false_sharing: line.is_false_sharing(),
        }
    }
}
