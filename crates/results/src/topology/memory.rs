//! Nodes, distances, tiers, and the firmware's figures for accesses.

use numalab_page::Table;
use numalab_page::number::size;
use numalab_topology::{
    AccessAttributes, LOCAL_DISTANCE, Machine, MemoryTier, Node, NodeId, NodeSet,
    UNREACHABLE_DISTANCE, interleave_weights,
};

use super::cpus::list;

/// Returns one row per node; nodes without cpus or memory share one row at the end, and so do nodes
/// without cpus and with unknown memory.
pub(super) fn nodes(machine: &Machine) -> Table {
    let has_pools = machine.nodes.iter().any(|node| !pools(node).is_empty());
    let no_memory = if machine.memory_bytes() == 0 { "unknown" } else { "none" };
    let (empty, full): (Vec<&Node>, Vec<&Node>) =
        machine.nodes.iter().partition(|node| is_empty(node));
    let unknown: Vec<&Node> = full.iter().copied().filter(|node| is_unknown(node)).collect();
    let are_folded = unknown.len() > 1;
    let own_row = full.iter().filter(|node| !are_folded || !is_unknown(node));
    let rows = own_row.map(|node| row(node, no_memory, has_pools));
    let rows = rows.chain(shared_row(&empty, no_memory, has_pools));
    let folded = if are_folded { unknown.as_slice() } else { &[] };
    let rows = rows.chain(shared_row(folded, "unknown", has_pools));
    let heading = Table::new("cpus and memory of each node")
        .figures("node")
        .words("cpus")
        .figures("memory")
        .figures("free");
    let heading = if has_pools { heading.words("huge pages free/all") } else { heading };
    heading.rows(rows)
}

fn is_empty(node: &Node) -> bool {
    node.cpus.is_empty() && !node.may_have_memory()
}

fn is_unknown(node: &Node) -> bool {
    node.cpus.is_empty() && node.memory_unknown && node.online
}

fn row(node: &Node, no_memory: &str, has_pools: bool) -> Vec<String> {
    let memory = match node.memory_bytes {
        _ if node.memory_unknown => "unknown".to_owned(),
        0 => no_memory.to_owned(),
        bytes if node.cxl => format!("{} CXL", size(bytes)),
        bytes => size(bytes),
    };
    let name = if node.online { node.id.to_string() } else { format!("{} offline", node.id) };
    let free = node.free_bytes.map_or_else(|| "–".to_owned(), size);
    let mut cells = vec![name, list(&node.cpus), memory, free];
    if has_pools {
        cells.push(pools(node));
    }
    cells
}

/// Returns one row for nodes without cpus; `None` if there are none.
fn shared_row(nodes: &[&Node], memory: &str, has_pools: bool) -> Option<Vec<String>> {
    let ids: NodeSet = nodes.iter().map(|node| node.id).collect();
    if ids.is_empty() {
        return None;
    }
    let mut cells = vec![list(&ids), "none".to_owned(), memory.to_owned(), "–".to_owned()];
    if has_pools {
        cells.push(String::new());
    }
    Some(cells)
}

/// Lists the pools that hold pages: `2M 512/512`.
fn pools(node: &Node) -> String {
    let pools = node.huge_pages.iter().filter(|pool| pool.total > 0);
    let pools: Vec<String> = pools
        .map(|pool| format!("{} {}/{}", size(pool.page_bytes), pool.free, pool.total))
        .collect();
    pools.join(", ")
}

/// Describes the caches in front of the nodes' memory, such as HBM in cache mode: `16G, before node
/// 0`; empty if there are none.
pub(super) fn side_caches(machine: &Machine) -> String {
    let of_node = |node: &Node| match side_cache_sizes(node) {
        sizes if sizes.is_empty() => None,
        sizes => Some(format!("{sizes}, before node {}", node.id)),
    };
    let nodes: Vec<String> = machine.nodes.iter().filter_map(of_node).collect();
    nodes.join("; ")
}

fn side_cache_sizes(node: &Node) -> String {
    let sizes = node.memory_side_caches.iter().map(|cache| size(cache.size_bytes));
    sizes.collect::<Vec<String>>().join(" and ")
}

/// Tabulates tiers, fastest first, with the firmware's figures for reads.
pub(super) fn tiers(machine: &Machine) -> Table {
    let row = |tier: &MemoryTier| {
        let memory =
            tier.nodes.iter().filter_map(|id| machine.node(id)).map(|node| node.memory_bytes);
        let reads = tier.nodes.iter().map(|id| machine.best_read(id));
        let (latency, bandwidth): (Vec<_>, Vec<_>) = reads.unzip();
        vec![
            tier.id.to_string(),
            list(&tier.nodes),
            size(memory.sum()),
            tenths(latency.into_iter().flatten().min()),
            tenths(bandwidth.into_iter().flatten().max()),
        ]
    };
    Table::new("tiers as Linux numbers them, fastest first")
        .figures("tier")
        .words("nodes")
        .figures(["memory", "read ns", "read GB/s"])
        .rows(machine.tiers.iter().map(row))
}

/// Tabulates interleaving weights in proportion to bandwidth; empty if all nodes have the same.
pub(super) fn weights(machine: &Machine) -> Table {
    let row = |(node, weight): (NodeId, u64)| {
        let bandwidth = tenths(machine.best_read(node).1);
        vec![node.to_string(), bandwidth, weight.to_string()]
    };
    let weights = interleave_weights(machine);
    let weights = weights.filter(|all| all.iter().any(|(_, weight)| *weight != all[0].1));
    Table::new("by bandwidth; numalab bind --policy weighted --weights auto sets them")
        .figures(["node", "read GB/s", "weight"])
        .rows(weights.into_iter().flatten().map(row))
}

/// Returns a sentence in place of the matrix if all remote distances are the same.
pub(super) fn uniform_distance(machine: &Machine) -> Option<String> {
    let remote = uniform(machine)?;
    Some(format!("{LOCAL_DISTANCE} from each node to itself, {remote} to any other"))
}

/// Tabulates the distances between nodes, leaving out nodes without cpus, memory and devices.
pub(super) fn distances(machine: &Machine) -> Table {
    let distances = &machine.distances;
    let has_device = |node: &Node| machine.devices.iter().any(|of| of.node == Some(node.id));
    let shown: Vec<(usize, &Node)> = (machine.nodes.iter().enumerate())
        .filter(|(_, node)| !is_empty(node) || has_device(node))
        .collect();
    let heading = Table::new(match shown.len() < machine.nodes.len() {
        true => "distances between nodes with cpus, memory or devices",
        false => "distances from each node to each node",
    });
    let heading = heading.words("distance");
    let heading =
        shown.iter().fold(heading, |heading, (_, node)| heading.figures(node.id.to_string()));
    let rows = shown.iter().map(|(from, node)| {
        let cell = |to| match distances.get(*from, to) {
            None => "–".to_owned(),
            Some(UNREACHABLE_DISTANCE) => "unreachable".to_owned(),
            Some(distance) => distance.to_string(),
        };
        let cells = shown.iter().map(|(to, _)| cell(*to));
        core::iter::once(format!("node {}", node.id)).chain(cells).collect()
    });
    if distances.len() < 2 { heading } else { heading.rows(rows) }
}

/// Returns the distance between different nodes if there is only one and each node is
/// [`LOCAL_DISTANCE`] from itself.
fn uniform(machine: &Machine) -> Option<u8> {
    let distances = &machine.distances;
    let remote = distances.get(0, 1).filter(|&remote| remote != UNREACHABLE_DISTANCE)?;
    let nodes = 0..distances.len();
    let is_as_said = nodes.clone().all(|from| {
        nodes.clone().all(|to| {
            let expected = if from == to { LOCAL_DISTANCE } else { remote };
            distances.get(from, to) == Some(expected)
        })
    });
    is_as_said.then_some(remote)
}

/// Tabulates the figures of accesses from this source, one row per pair.
pub(super) fn access(machine: &Machine, source: &str) -> Table {
    Table::new(format!("latency and bandwidth by initiator and target ({source})"))
        .words(["from → to", "class"])
        .figures(["read ns", "write ns", "read GB/s", "write GB/s"])
        .rows(machine.access.iter().map(access_row))
}

fn access_row(access: &AccessAttributes) -> Vec<String> {
    vec![
        format!("node {} → node {}", access.initiator, access.target),
        format!("{:?}", access.class).to_lowercase(),
        tenths(access.read_latency_ps),
        tenths(access.write_latency_ps),
        tenths(access.read_bandwidth_mb_per_s),
        tenths(access.write_bandwidth_mb_per_s),
    ]
}

/// Formats thousandths as tenths, which suffice to distinguish nodes; JSON has whole picoseconds.
fn tenths(thousandths: Option<u64>) -> String {
    let tenths = thousandths.map(|value| value.saturating_add(50) / 100);
    tenths.map_or_else(|| "–".to_owned(), |tenths| format!("{}.{}", tenths / 10, tenths % 10))
}

#[cfg(test)]
mod tests {
    use numalab_topology::CpuSet;

    use super::*;

    #[test]
    fn several_nodes_of_which_only_the_number_is_known_share_a_row() {
        let node = |id: u32, cpus: &str| Node {
            id: NodeId(id),
            online: true,
            cpus: cpus.parse::<CpuSet>().unwrap(),
            memory_unknown: true,
            ..Node::default()
        };
        let names = |nodes: Vec<Node>| {
            let rows = super::nodes(&Machine { nodes, ..Machine::default() }).rows;
            rows.into_iter().map(|row| row[0].clone()).collect::<Vec<String>>()
        };
        assert_eq!(names(vec![node(0, "0-1"), node(2, ""), node(3, "")]), ["0", "2,3"]);
        assert_eq!(names(vec![node(0, ""), node(1, "0-1")]), ["0", "1"]);
    }
}
