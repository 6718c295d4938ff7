//! Rules for problems of a process's memory.

use std::collections::BTreeMap;

use numalab_record::explore::{
    BytesByNode, DeviceUse, HugePageMode, MappingKind, MappingView, ProcessView, ThreadView, spread,
};
use numalab_topology::{DeviceKind, NodeId, NodeSet};
use serde::Serialize;

use super::nodes::{FULL, PLENTY};
use super::{Advice, ExploreFinding, Place, Problem, Remedy};
use crate::Finding;

/// Minimum amount of memory to be reported, in bytes.
pub(super) const LEAST_BYTES: u64 = 1 << 20;
/// Remote share of touched memory above which a thread counts as remote.
pub(super) const MOSTLY: f64 = 0.5;
/// Amount of anonymous memory, in bytes, that should be on huge pages, and the share below which
/// too little of it is.
const LARGE_BYTES: u64 = 64 << 20;
const FEW_HUGE: f64 = 0.1;
/// Minimum share of memory in swap to be reported.
const MUCH_SWAP: f64 = 0.05;

/// A problem of a process's memory. Shares are 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ProcessProblem {
    /// Threads run on one node and touch mostly another's memory.
    ThreadsRemote {
        /// The node on which they run.
        node: NodeId,
        /// The node with most of the memory that they touch.
        home: NodeId,
        /// The share on that node.
        share: f64,
        /// The memory compared with the threads.
        touched: Touched,
    },
    /// A policy binds memory to nodes on which no thread runs.
    BoundApart {
        /// The nodes of the policy.
        nodes: NodeSet,
        /// The memory on them, in bytes.
        bytes: u64,
    },
    /// A large process has little memory on huge pages.
    FewHugePages {
        /// Its anonymous memory, in bytes.
        anonymous_bytes: u64,
        /// The share of it on huge pages.
        share: f64,
        /// The mode of transparent huge pages.
        mode: HugePageMode,
    },
    /// An open device is close to a node on which no thread runs.
    DeviceRemote {
        /// The device's usual name.
        device: String,
        /// Its PCI address.
        address: String,
        /// The kind of device.
        device_kind: DeviceKind,
        /// The node that it is close to.
        near: NodeId,
        /// The nodes on which threads run.
        nodes: NodeSet,
    },
    /// Shared memory fills the nodes where it was first touched, while others have room.
    SegmentCrowds {
        /// The name of the segment.
        segment: String,
        /// Its size in memory.
        bytes: u64,
        /// The nodes that hold it.
        nodes: NodeSet,
        /// The largest share of memory that one of them has left.
        share: f64,
        /// The nodes with room.
        roomy: NodeSet,
    },
    /// Much of a process is swapped out.
    SwappedOut {
        /// The memory in swap, in bytes.
        bytes: u64,
        /// Its share of the process.
        share: f64,
    },
}

/// The memory that a thread's location is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Touched {
    /// The process's private memory, for several threads.
    ByProcess,
    /// The process's private memory, for its only thread.
    ByOnlyThread,
    /// The memory that the threads were seen to touch.
    ByThese,
}

pub(super) fn findings(view: &ProcessView) -> Vec<ExploreFinding> {
    let mut findings = remote_threads(view);
    findings.extend(bound_apart(view));
    findings.extend(crowding_segments(view));
    findings.extend(remote_devices(view));
    findings.extend(few_huge_pages(view));
    findings.extend(swapped(view));
    findings
}

/// Threads that run on one node and touch mostly one other.
#[derive(Default)]
struct Apart<'a> {
    threads: Vec<&'a ThreadView>,
    elsewhere: f64,
}

fn remote_threads(view: &ProcessView) -> Vec<ExploreFinding> {
    if spread::total(&view.own_bytes_by_node) < LEAST_BYTES {
        return Vec::new();
    }
    let mut groups: BTreeMap<(NodeId, NodeId, bool), Apart<'_>> = BTreeMap::new();
    for thread in &view.threads {
        let (Some(node), Some(share)) = (thread.node, thread.remote_share) else { continue };
        let seen = !thread.touched_pages.is_empty();
        let touched = if seen { &thread.touched_pages } else { &view.own_bytes_by_node };
        let Some((home, on_home)) = spread::most(touched) else { continue };
        if share >= MOSTLY && home != node {
            let group = groups.entry((node, home, seen)).or_default();
            group.threads.push(thread);
            group.elsewhere = group.elsewhere.max(on_home);
        }
    }
    let finding = |((node, home, seen), apart): (&(NodeId, NodeId, bool), &Apart<'_>)| {
        let touched = match (seen, view.threads.len()) {
            (true, _) => Touched::ByThese,
            (false, 1) => Touched::ByOnlyThread,
            (false, _) => Touched::ByProcess,
        };
        let problem = ProcessProblem::ThreadsRemote {
            node: *node,
            home: *home,
            share: apart.elsewhere,
            touched,
        };
        let remedy = remedy(view, (*node, *home), &apart.threads);
        let threads = apart.threads.iter().map(|thread| Place::Thread(thread.thread));
        Finding::new(Advice::wrong(Problem::Process(problem), remedy))
            .over(MOSTLY)
            .shown_by(threads.collect())
    };
    groups.iter().map(finding).collect()
}

fn runs_on(view: &ProcessView) -> NodeSet {
    view.threads.iter().filter_map(|thread| thread.node).collect()
}

/// Chooses the remedy: moves memory if all threads run on one node, else moves threads if their
/// affinity permits, else interleaves memory that one thread placed for many.
fn remedy(view: &ProcessView, (node, home): (NodeId, NodeId), threads: &[&ThreadView]) -> Remedy {
    let (process, runs_on) = (view.process, runs_on(view));
    let cpus = view.cpus_by_node.get(&home).cloned().unwrap_or_default();
    let tied = threads.iter().any(|thread| cpus.intersection(&thread.allowed).is_empty());
    if runs_on.len() == 1 && tied {
        let from = spread::others(&view.own_bytes_by_node, node);
        return Remedy::MovePages { process, from, to: Some(node) };
    }
    if runs_on.len() == 1 {
        return Remedy::MoveThreads { number: process, all: true, cpus };
    }
    Remedy::Interleave {
        nodes: runs_on,
        command: view.command.clone(),
        balancing_is_off: view.numa_balancing == Some(false),
    }
}

/// Finds memory that a policy binds to nodes on which no thread runs.
fn bound_apart(view: &ProcessView) -> Option<ExploreFinding> {
    let runs_on = runs_on(view);
    let mut bound = BytesByNode::new();
    let mut places = Vec::new();
    for mapping in view.mappings.iter().filter(|mapping| mapping.own) {
        let nodes = mapping.policy.strip_prefix("bind").and_then(|rest| rest.rsplit(':').next());
        let nodes: Option<NodeSet> = nodes.and_then(|nodes| nodes.parse().ok());
        if nodes.is_some_and(|nodes| nodes.intersection(&runs_on).is_empty()) {
            spread::add(&mut bound, &mapping.bytes_by_node);
            places.push(Place::Mapping(mapping.start));
        }
    }
    let bytes = spread::total(&bound);
    (bytes >= LEAST_BYTES && !runs_on.is_empty()).then(|| {
        let problem = ProcessProblem::BoundApart { nodes: bound.keys().copied().collect(), bytes };
        Finding::new(Advice::note(Problem::Process(problem), None)).shown_by(places)
    })
}

/// Finds large shared memory, placed by first touch, that fills nodes while others have room.
fn crowding_segments(view: &ProcessView) -> impl Iterator<Item = ExploreFinding> {
    let left = &view.available_by_node;
    let roomy = left.iter().filter(|(_, share)| **share >= PLENTY).map(|(node, _)| *node);
    let roomy: NodeSet = roomy.collect();
    let is_shared =
        |of: &&MappingView| matches!(of.kind, MappingKind::Shared | MappingKind::HugePool);
    let is_by_touch = |of: &&MappingView| ["default", "local"].contains(&of.policy.as_str());
    let shared = view.mappings.iter().filter(is_shared).filter(is_by_touch);
    shared.filter_map(move |of| {
        let bytes = spread::total(&of.bytes_by_node);
        let nodes: NodeSet = of
            .bytes_by_node
            .iter()
            .filter(|(_, bytes)| **bytes > 0)
            .map(|(node, _)| *node)
            .collect();
        let of_nodes = nodes.iter().map(|node| left.get(&node).copied().unwrap_or(1.0));
        let share = of_nodes.fold(0.0, f64::max);
        if bytes < LARGE_BYTES || share >= FULL || roomy.is_empty() {
            return None;
        }
        let segment = of.file.clone().unwrap_or_else(|| format!("{:x}", of.start));
        let remedy = Remedy::InterleaveSegment {
            nodes: nodes.iter().chain(roomy.iter()).collect(),
            segment: segment.clone(),
            command: view.command.clone(),
        };
        let roomy = roomy.clone();
        let problem = ProcessProblem::SegmentCrowds { segment, bytes, nodes, share, roomy };
        let advice = Advice::wrong(Problem::Process(problem), remedy);
        Some(Finding::new(advice).over(FULL).shown_by(vec![Place::Mapping(of.start)]))
    })
}

/// Notes devices close to nodes on which no thread runs. It is only a note, because an open device
/// need not be used much.
fn remote_devices(view: &ProcessView) -> Vec<ExploreFinding> {
    let nodes = runs_on(view);
    let finding = |device: &DeviceUse| {
        let near = device.node.filter(|node| !nodes.is_empty() && !nodes.contains(*node))?;
        let problem = ProcessProblem::DeviceRemote {
            device: device.name.clone(),
            address: device.address.clone(),
            device_kind: device.kind,
            near,
            nodes: nodes.clone(),
        };
        let remedy =
            Remedy::BindNear { device: device.name.clone(), command: view.command.clone() };
        let threads = view.threads.iter().filter(|thread| thread.node.is_some());
        let threads = threads.map(|thread| Place::Thread(thread.thread)).collect();
        Some(Finding::new(Advice::note(Problem::Process(problem), remedy)).shown_by(threads))
    };
    view.devices.iter().filter_map(finding).collect()
}

fn few_huge_pages(view: &ProcessView) -> Option<ExploreFinding> {
    let (sizes, mode) = (view.page_sizes?, view.transparent_huge_pages?);
    let share = spread::ratio(sizes.transparent_huge, sizes.anonymous)?;
    if sizes.anonymous < LARGE_BYTES || share >= FEW_HUGE {
        return None;
    }
    let remedy = match mode {
        HugePageMode::Madvise => Remedy::AskForHugePages { command: view.command.clone() },
        HugePageMode::Never => Remedy::AllowHugePages,
        HugePageMode::Always => Remedy::LookAtNodes,
    };
    let problem = ProcessProblem::FewHugePages { anonymous_bytes: sizes.anonymous, share, mode };
    Some(Finding::new(Advice::note(Problem::Process(problem), remedy)).over(FEW_HUGE))
}

fn swapped(view: &ProcessView) -> Option<ExploreFinding> {
    let sizes = view.page_sizes?;
    let share = spread::ratio(sizes.swapped, sizes.swapped.saturating_add(sizes.resident))?;
    (share >= MUCH_SWAP && sizes.swapped >= LEAST_BYTES).then(|| {
        let problem = ProcessProblem::SwappedOut { bytes: sizes.swapped, share };
        Finding::new(Advice::note(Problem::Process(problem), None)).over(MUCH_SWAP)
    })
}
