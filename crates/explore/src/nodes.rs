//! The use of each node's memory, and the fragmentation of its free memory.

mod counters;
mod meminfo;
mod moves;
mod zones;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::thread;
use std::time::{Duration, Instant};

use numalab_host::{MachineReading, Root, base_page_bytes_of, read_machine};
use numalab_record::explore::{
    Counters, Migrations, NodeView, NodesView, TierMoves, Unseen, fragmentation,
};
use numalab_topology::{NodeId, NodeSet, Severity};

pub use zones::read_buddyinfo;

use crate::error::ExploreError;
use meminfo::Meminfo;

/// Reads the nodes; on the running system twice, `interval` apart, so that the counters have rates.
/// With an interval of zero there are no rates.
///
/// # Errors
/// [`ExploreError::Machine`] if the machine cannot be read.
pub fn read_nodes(root: &Root, interval: Duration) -> Result<NodesView, ExploreError> {
    let before = Before::now(root);
    let begun = Instant::now();
    if root.is_live() {
        thread::sleep(interval);
    }
    let mut view = read_once(root)?;
    if root.is_live() && !interval.is_zero() {
        take_rates(&mut view, &before, begun.elapsed());
    }
    Ok(view)
}

/// Reads the nodes like [`read_nodes`], with rates since an earlier view instead of a pause.
///
/// # Errors
/// As [`read_nodes`].
pub fn read_nodes_since(
    root: &Root,
    earlier: &NodesView,
    passed: Duration,
) -> Result<NodesView, ExploreError> {
    let mut view = read_once(root)?;
    take_rates(&mut view, &Before::of(earlier), passed);
    Ok(view)
}

fn read_once(root: &Root) -> Result<NodesView, ExploreError> {
    let MachineReading { machine, mut findings } = read_machine(root)?;
    findings.retain(|finding| finding.severity > Severity::Note);
    let page_bytes = base_page_bytes_of(root);
    let huge_bytes = numalab_host::transparent_huge_page_bytes(root).unwrap_or(2 << 20);
    let huge_order = page_bytes.map(|bytes| (huge_bytes / bytes).max(1).ilog2());
    let buddyinfo = root.document("proc/buddyinfo").unwrap_or_default();
    let mut zones = read_buddyinfo(&buddyinfo);
    zones::take_zoneinfo(&mut zones, &root.document("proc/zoneinfo").unwrap_or_default());
    let mut unseen = Vec::new();
    match root.document("proc/pagetypeinfo") {
        Ok(text) => zones::take_pagetypeinfo(&mut zones, &text),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            unseen.push(Unseen::Pageblocks);
        }
        Err(_) => {}
    }
    let Before { mut counters, mut moves, migrations } = Before::now(root);
    let is_only = machine.nodes.len() == 1;
    let nodes = machine.nodes.iter().map(|node| {
        let zones = zones.remove(&node.id).unwrap_or_default();
        let meminfo = Meminfo::read(root, node.id, is_only);
        let known_bytes = (!node.memory_unknown).then_some(node.memory_bytes);
        NodeView {
            node: node.id,
            tier: machine.tier_of(node.id),
            cpus: node.cpus.clone(),
            total_bytes: meminfo.bytes("MemTotal").or(known_bytes),
            free_bytes: meminfo.bytes("MemFree").or(node.free_bytes),
            page_cache_bytes: meminfo.page_cache_bytes(),
            shared_bytes: meminfo.bytes("Shmem"),
            anonymous_bytes: meminfo.bytes("AnonPages"),
            transparent_huge_bytes: meminfo.bytes("AnonHugePages"),
            slab_bytes: meminfo.bytes("Slab"),
            slab_reclaimable_bytes: meminfo.bytes("SReclaimable"),
            huge_pages: node.huge_pages.clone(),
            fragmentation: huge_order.and_then(|order| fragmentation(&zones, order)),
            zones,
            since_boot: counters.remove(&node.id),
            rates: None,
            moves_since_boot: moves.remove(&node.id),
            moves_rates: None,
        }
    });
    let nodes: Vec<NodeView> = nodes.collect();
    let is_unknown = |node: &&NodeView| {
        let may_have_memory = node.total_bytes != Some(0);
        may_have_memory && (node.total_bytes.is_none() || node.free_bytes.is_none())
    };
    let unknown: NodeSet = nodes.iter().filter(is_unknown).map(|node| node.node).collect();
    unseen.extend((!unknown.is_empty()).then_some(Unseen::NodeMemory { nodes: unknown }));
    Ok(NodesView {
        nodes,
        migrations_since_boot: migrations,
        migrations_rates: None,
        base_page_bytes: page_bytes,
        huge_order,
        unseen,
        odd: findings,
    })
}

/// The counters since boot, at one time.
struct Before {
    counters: BTreeMap<NodeId, Counters>,
    moves: BTreeMap<NodeId, TierMoves>,
    migrations: Option<Migrations>,
}

impl Before {
    fn now(root: &Root) -> Self {
        let nodes = root.numbered("sys/devices/system/node", "node").into_iter().map(NodeId);
        let nodes: Vec<NodeId> = nodes.collect();
        let file = |node: NodeId, name: &str| {
            root.document(&format!("sys/devices/system/node/node{node}/{name}")).ok()
        };
        let counters = nodes
            .iter()
            .filter_map(|&node| Some((node, counters::read(&file(node, "numastat")?)?)));
        let moves =
            nodes.iter().filter_map(|&node| Some((node, moves::read(&file(node, "vmstat")?)?)));
        let vmstat = root.document("proc/vmstat").unwrap_or_default();
        Self {
            counters: counters.collect(),
            moves: moves.collect(),
            migrations: moves::read_migrations(&vmstat),
        }
    }

    fn of(view: &NodesView) -> Self {
        let nodes = || view.nodes.iter();
        Self {
            counters: nodes().filter_map(|node| Some((node.node, node.since_boot?))).collect(),
            moves: nodes().filter_map(|node| Some((node.node, node.moves_since_boot?))).collect(),
            migrations: view.migrations_since_boot,
        }
    }
}

/// Sets the rates of the view: the counts per second since `before`.
fn take_rates(view: &mut NodesView, before: &Before, passed: Duration) {
    for node in &mut view.nodes {
        if let (Some(now), Some(before)) = (node.since_boot, before.counters.get(&node.node)) {
            node.rates = Some(counters::rates(&now, before, passed));
        }
        if let (Some(now), Some(before)) = (node.moves_since_boot, before.moves.get(&node.node)) {
            node.moves_rates = Some(moves::rates(&now, before, passed));
        }
    }
    if let (Some(now), Some(before)) = (view.migrations_since_boot, before.migrations) {
        view.migrations_rates = Some(moves::migration_rates(&now, &before, passed));
    }
}
