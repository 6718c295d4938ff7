//! A dump of `numalab-frames` (its README documents the format).

use std::collections::BTreeMap;

use numalab_frames::{BlockState, Dump, DumpBlock, DumpError, DumpPool, FRAME_BYTES, Frame};
use numalab_record::explore::{HeapNode, HeapSource, HeapView, HeapZone};
use numalab_topology::NodeId;

const BLOCK_BYTES: u64 = 2 << 20;

pub(super) fn view(bytes: &[u8]) -> Result<HeapView, DumpError> {
    let dump = Dump::parse(bytes)?;
    let pools: Vec<DumpPool> = dump.pools().collect();
    let limits: Vec<u64> = dump.zone_limits().collect();
    let mut nodes: BTreeMap<NodeId, HeapNode> = BTreeMap::new();
    for block in dump.blocks() {
        let Some(pool) = pools.get(block.region) else { continue };
        let id = NodeId(u32::from(pool.node.0));
        let node = nodes.entry(id).or_insert_with(|| HeapNode {
            node: id,
            free_huge_bytes: Some(0),
            ..HeapNode::default()
        });
        take_block(node, &block, zone_name(&limits, pool));
    }
    for (frame, mask) in dump.magazines() {
        let cached = u64::from(mask.count_ones()) * FRAME_BYTES;
        if let Some(node) = node_of(&mut nodes, &pools, frame) {
            node.cached_bytes += cached;
            node.free_bytes += cached;
        }
    }
    let nodes = nodes.into_values().collect();
    let picture = Some(dump.to_string());
    Ok(HeapView { source: HeapSource::Frames, nodes, xen: None, picture })
}

fn take_block(node: &mut HeapNode, block: &DumpBlock, zone: String) {
    let managed = block.managed * FRAME_BYTES;
    node.managed_bytes += managed;
    let free = match block.state {
        BlockState::Offline => {
            node.offline_bytes += managed;
            return;
        }
        // Wholly free, in a cpu's cache.
        BlockState::Cached => {
            node.cached_bytes += managed;
            managed
        }
        BlockState::Shared | BlockState::Reserved => block.free_frames() * FRAME_BYTES,
    };
    node.free_bytes += free;
    if free == BLOCK_BYTES {
        *node.free_huge_bytes.get_or_insert(0) += BLOCK_BYTES;
    }
    match node.zones.iter_mut().find(|known| known.name == zone) {
        Some(known) => known.free_bytes += free,
        None => node.zones.push(HeapZone { name: zone, free_bytes: free }),
    }
}

fn zone_name(limits: &[u64], pool: &DumpPool) -> String {
    match limits.get(usize::from(pool.zone.0)) {
        Some(&limit) if limit < 1 << 52 => {
            format!("below {}", numalab_formats::size::format_rounded(limit))
        }
        _ => format!("zone {}", pool.zone.0),
    }
}

fn node_of<'a>(
    nodes: &'a mut BTreeMap<NodeId, HeapNode>,
    pools: &[DumpPool],
    frame: Frame,
) -> Option<&'a mut HeapNode> {
    let pool = pools.iter().find(|pool| pool.start <= frame && frame < pool.end)?;
    nodes.get_mut(&NodeId(u32::from(pool.node.0)))
}
