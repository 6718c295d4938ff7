//! What each node's memory is used for, and how well its free memory hangs together.

mod advice;
mod counters;
mod moves;
mod zones;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::thread;
use std::time::{Duration, Instant};

use numalab_host::{Root, base_page_bytes, proc, read_machine};
use numalab_topology::{CpuSet, HugePagePool, NodeId};
use serde::Serialize;

pub use counters::Counters;
pub use moves::{Migrations, TierMoves};
pub use zones::{ZoneView, fragmentation, read_buddyinfo};

use crate::error::ExploreError;
use crate::finding::Finding;

/// The nodes of a machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodesView {
    /// The nodes by number.
    pub nodes: Vec<NodeView>,
    /// What the kernel moved since boot.
    pub migrations_since_boot: Option<Migrations>,
    /// The same in a second.
    pub migrations_rates: Option<Migrations>,
    /// A huge page is a block of this order.
    pub huge_order: u32,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// What is missing here and who could see it.
    pub unseen: Vec<String>,
}

/// One node's memory, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeView {
    /// The node.
    pub node: NodeId,
    /// The tier of its memory, where the system has tiers.
    pub tier: Option<u32>,
    /// Its cpus.
    pub cpus: CpuSet,
    /// All of it.
    pub total_bytes: u64,
    /// Free.
    pub free_bytes: u64,
    /// Page cache.
    pub page_cache_bytes: u64,
    /// Anonymous.
    pub anonymous_bytes: u64,
    /// Of these, in transparent huge pages.
    pub transparent_huge_bytes: u64,
    /// The kernel's slab caches.
    pub slab_bytes: u64,
    /// Of these, such as the kernel can give back.
    pub slab_reclaimable_bytes: u64,
    /// Pools of reserved huge pages.
    pub huge_pages: Vec<HugePagePool>,
    /// Its zones.
    pub zones: Vec<ZoneView>,
    /// The share of its free memory that cannot serve a huge page, 0 to 1.
    pub fragmentation: Option<f64>,
    /// Pages since boot.
    pub since_boot: Option<Counters>,
    /// Pages a second.
    pub rates: Option<Counters>,
    /// Pages promoted and demoted since boot.
    pub moves_since_boot: Option<TierMoves>,
    /// The same in a second.
    pub moves_rates: Option<TierMoves>,
}

/// Looks at the nodes; on the running system twice, `interval` apart, so that the counters
/// have rates. A zero interval gives none.
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
        view.take_rates(&before, begun.elapsed());
    }
    view.findings = advice::findings(&view);
    Ok(view)
}

/// As [`read_nodes`], with rates since an earlier view in place of a wait.
///
/// # Errors
/// As [`read_nodes`].
pub fn read_nodes_since(
    root: &Root,
    earlier: &NodesView,
    passed: Duration,
) -> Result<NodesView, ExploreError> {
    let mut view = read_once(root)?;
    view.take_rates(&Before::of(earlier), passed);
    view.findings = advice::findings(&view);
    Ok(view)
}

fn read_once(root: &Root) -> Result<NodesView, ExploreError> {
    let machine = read_machine(root)?.machine;
    let page_bytes = base_page_bytes();
    let huge_bytes = numalab_host::transparent_huge_page_bytes(root).unwrap_or(2 << 20);
    let huge_order = (huge_bytes / page_bytes).max(1).ilog2();
    let buddyinfo = root.document("proc/buddyinfo").unwrap_or_default();
    let mut zones = read_buddyinfo(&buddyinfo);
    zones::take_zoneinfo(&mut zones, &root.document("proc/zoneinfo").unwrap_or_default());
    let mut unseen = Vec::new();
    match root.document("proc/pagetypeinfo") {
        Ok(text) => zones::take_pagetypeinfo(&mut zones, &text),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => unseen.push(
            "what of the memory the kernel can move to make huge pages: root sees it (/proc/pagetypeinfo)"
                .to_owned(),
        ),
        Err(_) => {}
    }
    let Before { mut counters, mut moves, migrations } = Before::now(root);
    let nodes = machine.nodes.iter().map(|node| {
        let zones = zones.remove(&node.id).unwrap_or_default();
        let meminfo = format!("sys/devices/system/node/node{}/meminfo", node.id);
        let meminfo = root.document(&meminfo).unwrap_or_default();
        let bytes = |name| proc::bytes(&meminfo, name).and_then(Result::ok);
        NodeView {
            node: node.id,
            tier: machine.tier_of(node.id),
            cpus: node.cpus.clone(),
            total_bytes: bytes("MemTotal").unwrap_or(node.memory_bytes),
            free_bytes: bytes("MemFree").unwrap_or_default(),
            page_cache_bytes: bytes("FilePages").unwrap_or_default(),
            anonymous_bytes: bytes("AnonPages").unwrap_or_default(),
            transparent_huge_bytes: bytes("AnonHugePages").unwrap_or_default(),
            slab_bytes: bytes("Slab").unwrap_or_default(),
            slab_reclaimable_bytes: bytes("SReclaimable").unwrap_or_default(),
            huge_pages: node.huge_pages.clone(),
            fragmentation: fragmentation(&zones, huge_order),
            zones,
            since_boot: counters.remove(&node.id),
            rates: None,
            moves_since_boot: moves.remove(&node.id),
            moves_rates: None,
        }
    });
    Ok(NodesView {
        nodes: nodes.collect(),
        migrations_since_boot: migrations,
        migrations_rates: None,
        huge_order,
        findings: Vec::new(),
        unseen,
    })
}

/// What is counted since boot, at one time.
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
            .filter_map(|&node| Some((node, Counters::read(&file(node, "numastat")?)?)));
        let moves =
            nodes.iter().filter_map(|&node| Some((node, TierMoves::read(&file(node, "vmstat")?)?)));
        let vmstat = root.document("proc/vmstat").unwrap_or_default();
        Self {
            counters: counters.collect(),
            moves: moves.collect(),
            migrations: Migrations::read(&vmstat),
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

impl NodesView {
    fn take_rates(&mut self, before: &Before, passed: Duration) {
        for node in &mut self.nodes {
            if let (Some(now), Some(before)) = (node.since_boot, before.counters.get(&node.node)) {
                node.rates = Some(now.rates(before, passed));
            }
            let moves = (node.moves_since_boot, before.moves.get(&node.node));
            if let (Some(now), Some(before)) = moves {
                node.moves_rates = Some(now.rates(before, passed));
            }
        }
        if let (Some(now), Some(before)) = (self.migrations_since_boot, before.migrations) {
            self.migrations_rates = Some(now.rates(&before, passed));
        }
    }
}

impl NodeView {
    /// Bytes that are free or can be freed at once: page cache and reclaimable slab.
    #[must_use]
    pub fn available_bytes(&self) -> u64 {
        self.free_bytes
            .saturating_add(self.page_cache_bytes)
            .saturating_add(self.slab_reclaimable_bytes)
    }
}
