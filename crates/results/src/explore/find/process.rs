//! What is wrong with a process's memory, by rules.

use std::collections::BTreeMap;

use numalab_record::explore::{
    BytesByNode, DeviceUse, HugePageMode, MappingKind, MappingView, ProcessView, ThreadView, spread,
};
use numalab_topology::{DeviceKind, NodeId, NodeSet};
use serde::Serialize;

use super::nodes::{FULL, PLENTY};
use super::{Advice, ExploreFinding, Place, Problem, Remedy};
use crate::Finding;

/// Less memory than this is not reported, in bytes.
pub(super) const LEAST_BYTES: u64 = 1 << 20;
/// A thread is remote if this share of what it touches is elsewhere.
pub(super) const MOSTLY: f64 = 0.5;
/// Anonymous memory that should be on huge pages, in bytes, and the share below which too little
/// of it is.
const LARGE_BYTES: u64 = 64 << 20;
const FEW_HUGE: f64 = 0.1;
/// The share in swap from which on it is reported.
const MUCH_SWAP: f64 = 0.05;

/// Something that is wrong with a process's memory. Shares are 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ProcessProblem {
    /// Threads run on one node and touch mostly another's memory.
    ThreadsRemote {
        /// The node where they run.
        node: NodeId,
        /// The node where most of what they touch lies.
        home: NodeId,
        /// The share that lies there.
        share: f64,
        /// Whose memory that is.
        touched: Touched,
    },
    /// A policy binds memory to nodes where no thread runs.
    BoundApart {
        /// These nodes.
        nodes: NodeSet,
        /// The memory there.
        bytes: u64,
    },
    /// Little of a large process is on huge pages.
    FewHugePages {
        /// Its anonymous memory.
        anonymous_bytes: u64,
        /// The share of it on huge pages.
        share: f64,
        /// Who gets transparent huge pages here.
        mode: HugePageMode,
    },
    /// A device that it has open is near another node than those where its threads run.
    DeviceRemote {
        /// What people call the device.
        device: String,
        /// Its address on PCI.
        address: String,
        /// What it is for.
        device_kind: DeviceKind,
        /// The node that it is near.
        near: NodeId,
        /// The nodes where threads run.
        nodes: NodeSet,
    },
    /// Shared memory fills the nodes where it was first touched, while others have room.
    SegmentCrowds {
        /// What it is called.
        segment: String,
        /// Its size in memory.
        bytes: u64,
        /// The nodes that it lies on.
        nodes: NodeSet,
        /// The largest share of memory that one of them has left.
        share: f64,
        /// The nodes with room.
        roomy: NodeSet,
    },
    /// Much of a process is swapped out.
    SwappedOut {
        /// What is out.
        bytes: u64,
        /// Its share.
        share: f64,
    },
}

/// Whose memory is compared with where a thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Touched {
    /// All memory that is the process's own, by several threads.
    ByProcess,
    /// The same of a process with one thread.
    ByOnlyThread,
    /// What the threads were seen to touch.
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

/// Memory follows threads that all run on one node; threads that may go home go home;
/// else memory that one thread placed for many is spread.
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

/// Memory that a policy binds to where no thread runs.
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

/// Large shared memory, placed by first touch, on nodes that are full while others have room.
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
        };
        let roomy = roomy.clone();
        let problem = ProcessProblem::SegmentCrowds { segment, bytes, nodes, share, roomy };
        let advice = Advice::wrong(Problem::Process(problem), remedy);
        Some(Finding::new(advice).over(FULL).shown_by(vec![Place::Mapping(of.start)]))
    })
}

/// Devices near nodes where no thread runs. It is a note: that a device is open does not say how
/// much it is used.
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
