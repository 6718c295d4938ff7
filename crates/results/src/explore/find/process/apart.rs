//! Threads that run apart from the memory that they touch.

use std::collections::BTreeMap;

use numalab_record::explore::{
    BytesByNode, HugeRoom, MappingKind, MappingView, ProcessView, ThreadView, spread,
};
use numalab_topology::{CpuSet, NodeId, NodeSet};

use super::shared::{self, is_shared};
use super::{LEAST_BYTES, MOSTLY, ProcessProblem, Touched, runs_on};
use crate::Finding;
use crate::explore::find::room::{has_room, spread_over};
use crate::explore::find::{
    ExploreFinding, JudgedProblem, Obstacle, Problem, ProblemPlace, Remedy,
};

/// Minimum excess of the other node's share of the memory over that of the threads' own node. Where
/// memory is spread evenly, no node is better for the threads.
pub(in crate::explore::find) const GAIN: f64 = 0.1;

/// Size from which a running kernel cannot make huge pages from ordinary memory: its largest blocks
/// have 4 MiB on x86, and 512 MiB on arm64 with pages of 64 KiB.
const GIGANTIC_BYTES: u64 = 1 << 30;

/// Threads that run on one node and touch mostly one other.
#[derive(Default)]
struct Apart<'a> {
    threads: Vec<&'a ThreadView>,
    elsewhere: f64,
}

/// Returns the node that holds more of the memory than `node` does by at least [`GAIN`], and its share.
pub(in crate::explore::find) fn better_node(
    memory: &BytesByNode,
    node: NodeId,
) -> Option<(NodeId, f64)> {
    let (home, on_home) = spread::most(memory)?;
    let here = spread::share_on(memory, &NodeSet::from_iter([node]))?;
    (home != node && on_home - here >= GAIN).then_some((home, on_home))
}

pub(super) fn findings(view: &ProcessView) -> Vec<ExploreFinding> {
    if spread::total(&view.own_bytes_by_node) < LEAST_BYTES {
        return Vec::new();
    }
    let mut groups: BTreeMap<(NodeId, NodeId, bool), Apart<'_>> = BTreeMap::new();
    for thread in &view.threads {
        let (Some(node), Some(share)) = (thread.node, thread.remote_share) else { continue };
        let seen = !thread.touched_pages.is_empty();
        let touched = if seen { &thread.touched_pages } else { &view.own_bytes_by_node };
        // A node without memory cannot hold any.
        let is_without = view.room_by_node.get(&node).is_some_and(|of| of.total_bytes == 0);
        let better = better_node(touched, node).filter(|_| share >= MOSTLY && !is_without);
        if let Some((home, on_home)) = better {
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
        let remedy = match seen {
            true => of_private(view, (*node, *home), &apart.threads),
            false => remedy(view, (*node, *home), &apart.threads),
        };
        let threads = apart.threads.iter().map(|thread| ProblemPlace::Thread(thread.thread));
        Finding::new(JudgedProblem::wrong_if(Problem::Process(problem), remedy))
            .over(MOSTLY)
            .shown_by(threads.collect())
    };
    groups.iter().map(finding).collect()
}

/// Chooses the remedy for remote memory: the segment's if most of it is shared, otherwise that of
/// private memory.
fn remedy(
    view: &ProcessView,
    (node, home): (NodeId, NodeId),
    threads: &[&ThreadView],
) -> Result<Remedy, Obstacle> {
    let shared = || view.mappings.iter().filter(|mapping| mapping.own && is_shared(mapping));
    let mut elsewhere = BytesByNode::new();
    shared().for_each(|mapping| spread::add(&mut elsewhere, &mapping.bytes_by_node));
    let away = |of: &BytesByNode| -> u64 {
        of.iter().filter(|(of, _)| **of != node).map(|(_, bytes)| *bytes).sum()
    };
    if away(&elsewhere) <= away(&view.own_bytes_by_node) / 2 {
        return of_private(view, (node, home), threads);
    }
    let largest = shared().max_by_key(|mapping| away(&mapping.bytes_by_node));
    let Some(segment) = largest else { return of_private(view, (node, home), threads) };
    match shared::crowded(view, segment) {
        Some(_) => Err(Obstacle::OfSegment { segment: shared::name(segment) }),
        None => shared::interleaved(view, segment, &runs_on(view)),
    }
}

/// Moves memory if all threads run on one node, otherwise moves threads if their affinity permits,
/// otherwise interleaves memory that one thread placed for many. The target nodes need room for it.
fn of_private(
    view: &ProcessView,
    (node, home): (NodeId, NodeId),
    threads: &[&ThreadView],
) -> Result<Remedy, Obstacle> {
    let (process, runs_on) = (view.process, runs_on(view));
    let cpus: CpuSet = view.cpus_by_node.get(&home).cloned().unwrap_or_default();
    let tied = threads.iter().any(|thread| cpus.intersection(&thread.allowed).is_empty());
    let (room, own) = (&view.room_by_node, &view.own_bytes_by_node);
    if runs_on.len() == 1 && tied {
        let here = own.get(&node).copied().unwrap_or(0);
        let pooled = into_pools(view, node)?;
        has_room(room, node, spread::total(own).saturating_sub(here).saturating_sub(pooled))?;
        let from = spread::others(own, node);
        return Ok(Remedy::MovePages { process, from, to: Some(node) });
    }
    if runs_on.len() == 1 {
        return Ok(Remedy::MoveThreads { number: process, all: true, cpus });
    }
    Ok(Remedy::Interleave {
        nodes: spread_over(room, &runs_on, spread::total(own), own)?,
        command: view.command.clone(),
        balancing_is_off: view.numa_balancing == Some(false),
    })
}

/// Returns the bytes of the process's own reserved huge pages on other nodes that the pools of a node
/// can take, when pages are moved. The kernel takes free pages of the pool first, and then makes more
/// from ordinary memory (`alloc_hugetlb_folio_nodemask` of its `mm/hugetlb.c`), but not the largest.
///
/// # Errors
/// [`Obstacle::FewHugePages`] for those; pools that are unknown refuse nothing.
fn into_pools(view: &ProcessView, node: NodeId) -> Result<u64, Obstacle> {
    let mut moved: BTreeMap<u64, u64> = BTreeMap::new();
    let is_own =
        |of: &&MappingView| of.own && of.kind == MappingKind::HugePool && of.page_bytes > 0;
    for of in view.mappings.iter().filter(is_own) {
        let others = of.bytes_by_node.iter().filter(|(on, _)| **on != node);
        let bytes = others.map(|(_, bytes)| *bytes).fold(0, u64::saturating_add);
        let sum = moved.entry(of.page_bytes).or_default();
        *sum = sum.saturating_add(bytes);
    }
    let mut taken: u64 = 0;
    for (page_bytes, bytes) in moved {
        let needed = bytes.div_ceil(page_bytes);
        let is_pool = |of: &&HugeRoom| (of.node, of.page_bytes) == (node, page_bytes);
        let Some(&HugeRoom { free, .. }) = view.huge_rooms.iter().find(is_pool) else { continue };
        if free < needed && page_bytes >= GIGANTIC_BYTES {
            return Err(Obstacle::FewHugePages { node, page_bytes, needed, free });
        }
        taken = taken.saturating_add(free.min(needed).saturating_mul(page_bytes));
    }
    Ok(taken)
}
