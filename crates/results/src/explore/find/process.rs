//! Rules for problems of a process's memory.

pub(super) mod apart;
mod shared;

use numalab_record::explore::{BytesByNode, DeviceUse, HugePageMode, ProcessView, spread};
use numalab_topology::{DeviceKind, NodeId, NodeSet};
use serde::Serialize;

use super::room::has_room;
use super::{ExploreFinding, JudgedProblem, Obstacle, Problem, ProblemPlace, Remedy};
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
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
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
        /// The process's anonymous memory, in bytes.
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
        /// The device's PCI address.
        address: String,
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
        /// The segment's size in memory.
        bytes: u64,
        /// The nodes that hold it.
        nodes: NodeSet,
        /// The largest share of memory that any of these nodes has left.
        share: f64,
        /// The nodes with room.
        roomy: NodeSet,
    },
    /// Most of a file's pages are on nodes on which no thread runs.
    FileRemote {
        /// The file's path.
        file: String,
        /// Pages of the file in memory, in bytes.
        bytes: u64,
        /// The node with most of them.
        home: NodeId,
        /// The share on that node.
        share: f64,
        /// The nodes on which threads run.
        nodes: NodeSet,
    },
    /// Memory is on nodes that the machine does not have: the files are of different machines.
    UnknownNodes {
        /// The nodes.
        nodes: NodeSet,
        /// The memory on them, in bytes.
        bytes: u64,
    },
    /// Much of a process is swapped out.
    SwappedOut {
        /// The memory in swap, in bytes.
        bytes: u64,
        /// The share of the process's memory that it holds.
        share: f64,
    },
}

/// The memory that a thread's location is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
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
    // Remedies would apply to another machine.
    if let Some(finding) = unknown_nodes(view) {
        return vec![finding];
    }
    let mut findings = apart::findings(view);
    findings.extend(bound_apart(view));
    findings.extend(shared::crowding(view));
    findings.extend(shared::remote_files(view));
    findings.extend(remote_devices(view));
    findings.extend(few_huge_pages(view));
    findings.extend(swapped(view));
    findings
}

/// Finds memory on nodes that are not of the machine.
fn unknown_nodes(view: &ProcessView) -> Option<ExploreFinding> {
    let is_known = |node: &NodeId| {
        view.cpus_by_node.contains_key(node) || view.room_by_node.contains_key(node)
    };
    let unknown = view.bytes_by_node.iter().filter(|(node, _)| !is_known(node));
    let (nodes, bytes): (Vec<NodeId>, Vec<u64>) = unknown.unzip();
    if view.room_by_node.is_empty() || nodes.is_empty() {
        return None;
    }
    let nodes = nodes.into_iter().collect();
    let bytes = bytes.into_iter().fold(0, u64::saturating_add);
    let problem = ProcessProblem::UnknownNodes { nodes, bytes };
    Some(Finding::new(JudgedProblem::note(Problem::Process(problem), None)))
}

fn runs_on(view: &ProcessView) -> NodeSet {
    view.threads.iter().filter_map(|thread| thread.node).collect()
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
            places.push(ProblemPlace::Mapping(mapping.start));
        }
    }
    let bytes = spread::total(&bound);
    (bytes >= LEAST_BYTES && !runs_on.is_empty()).then(|| {
        let problem = ProcessProblem::BoundApart { nodes: bound.keys().copied().collect(), bytes };
        Finding::new(JudgedProblem::note(Problem::Process(problem), None)).shown_by(places)
    })
}

/// Notes devices close to nodes on which no thread runs. It is only a note, because an open device
/// need not be used much.
fn remote_devices(view: &ProcessView) -> Vec<ExploreFinding> {
    let nodes = runs_on(view);
    let finding = |device: &DeviceUse| {
        let is_away = |node: &NodeId| !nodes.is_empty() && !nodes.contains(*node);
        let near_node = device.node.filter(is_away)?;
        let problem = ProcessProblem::DeviceRemote {
            device: device.name.clone(),
            address: device.address.clone(),
            device_kind: device.kind,
            near: near_node,
            nodes: nodes.clone(),
        };
        let remedy = near(view, &device.name, near_node);
        let threads = view.threads.iter().filter(|thread| thread.node.is_some());
        let threads = threads.map(|thread| ProblemPlace::Thread(thread.thread)).collect();
        Some(
            Finding::new(JudgedProblem::note_if(Problem::Process(problem), remedy))
                .shown_by(threads),
        )
    };
    view.devices.iter().filter_map(finding).collect()
}

/// Starts the program near a device, if its memory fits there. Near a device's own memory, or a node
/// without any, the memory goes to another node.
fn near(view: &ProcessView, device: &str, node: NodeId) -> Result<Remedy, Obstacle> {
    let own = &view.own_bytes_by_node;
    let has_cpus = view.cpus_by_node.get(&node).is_some_and(|cpus| !cpus.is_empty());
    let elsewhere = spread::total(own).saturating_sub(own.get(&node).copied().unwrap_or(0));
    match has_room(&view.room_by_node, node, elsewhere) {
        Err(full @ Obstacle::NoRoom { .. }) if has_cpus => Err(full),
        _ => Ok(Remedy::BindNear { device: device.to_owned(), command: view.command.clone() }),
    }
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
    Some(Finding::new(JudgedProblem::note(Problem::Process(problem), remedy)).over(FEW_HUGE))
}

fn swapped(view: &ProcessView) -> Option<ExploreFinding> {
    let sizes = view.page_sizes?;
    let share = spread::ratio(sizes.swapped, sizes.swapped.saturating_add(sizes.resident))?;
    (share >= MUCH_SWAP && sizes.swapped >= LEAST_BYTES).then(|| {
        let problem = ProcessProblem::SwappedOut { bytes: sizes.swapped, share };
        Finding::new(JudgedProblem::note(Problem::Process(problem), None)).over(MUCH_SWAP)
    })
}
