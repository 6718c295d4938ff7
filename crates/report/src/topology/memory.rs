//! Nodes, distances, tiers and what the firmware says of accesses.

use numalab_topology::{AccessAttributes, LOCAL_DISTANCE, Machine, Node};

use super::cpus::list;
use super::line;
use crate::number::size;
use crate::table::Table;
use crate::terminal::Style;
use crate::terminal::layout::{table, wrap};

/// Firmware attributes shown; JSON has all.
const MOST_ACCESSES: usize = 12;

/// A line for each node; nodes side by side with neither cpus nor memory share one.
pub(super) fn nodes(machine: &Machine, style: Style) -> String {
    let has_pools = machine.nodes.iter().any(|node| !pools(node).is_empty());
    let no_memory = if machine.memory_bytes() == 0 { "unknown" } else { "none" };
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut empty: Vec<&Node> = Vec::new();
    for node in &machine.nodes {
        if node.cpus.is_empty() && node.memory_bytes == 0 {
            empty.push(node);
            continue;
        }
        rows.extend(empty_row(&empty, no_memory, has_pools));
        empty.clear();
        rows.push(row(node, no_memory, has_pools));
    }
    rows.extend(empty_row(&empty, no_memory, has_pools));
    let heading = Table::new("").figures("node").words("cpus").figures("memory").figures("free");
    let heading = if has_pools { heading.words("huge pages free/all") } else { heading };
    let shown = table(&heading.rows(rows), style);
    if has_pools || machine.nodes.is_empty() {
        shown
    } else {
        format!("{shown}No huge pages are reserved.\n")
    }
}

fn row(node: &Node, no_memory: &str, has_pools: bool) -> Vec<String> {
    let memory = match node.memory_bytes {
        0 => no_memory.to_owned(),
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

/// One line for a run of empty nodes; nothing for none.
fn empty_row(nodes: &[&Node], no_memory: &str, has_pools: bool) -> Option<Vec<String>> {
    let (first, last) = (nodes.first()?, nodes.last()?);
    let name = if first.id == last.id {
        first.id.to_string()
    } else {
        format!("{}…{}", first.id, last.id)
    };
    let mut cells = vec![name, "none".to_owned(), no_memory.to_owned(), "–".to_owned()];
    if has_pools {
        cells.push(String::new());
    }
    Some(cells)
}

/// The pools that hold pages: `2M 512/512`.
fn pools(node: &Node) -> String {
    let pools = node.huge_pages.iter().filter(|pool| pool.total > 0);
    let pools: Vec<String> = pools
        .map(|pool| format!("{} {}/{}", size(pool.page_bytes), pool.free, pool.total))
        .collect();
    pools.join(", ")
}

/// The tiers in a line each, fastest first.
pub(super) fn tiers(machine: &Machine) -> String {
    let tier = |tier: &numalab_topology::MemoryTier| {
        line("Tier", &format!("{}: nodes {}", tier.id, list(&tier.nodes)))
    };
    machine.tiers.iter().map(tier).collect()
}

/// The matrix, or a sentence where every remote distance is the same.
pub(super) fn distances(machine: &Machine, style: Style) -> String {
    let distances = &machine.distances;
    if distances.len() < 2 {
        return String::new();
    }
    if let Some(remote) = uniform(machine) {
        let text = format!("{LOCAL_DISTANCE} from each node to itself, {remote} to any other");
        return line("Distances", &text);
    }
    let heading = Table::new("").words("distance");
    let heading =
        machine.nodes.iter().fold(heading, |heading, node| heading.figures(node.id.to_string()));
    let rows = machine.nodes.iter().enumerate().map(|(from, node)| {
        let cell = |to| {
            let distance = distances.get(from, to);
            distance.map_or_else(|| "–".to_owned(), |distance| distance.to_string())
        };
        let cells = (0..machine.nodes.len()).map(cell);
        core::iter::once(format!("node {}", node.id)).chain(cells).collect()
    });
    format!("\n{}", table(&heading.rows(rows), style))
}

/// The one distance between different nodes, if there is one and each node is
/// [`LOCAL_DISTANCE`] from itself.
fn uniform(machine: &Machine) -> Option<u8> {
    let distances = &machine.distances;
    let remote = distances.get(0, 1)?;
    let nodes = 0..distances.len();
    let is_as_said = nodes.clone().all(|from| {
        nodes.clone().all(|to| {
            let expected = if from == to { LOCAL_DISTANCE } else { remote };
            distances.get(from, to) == Some(expected)
        })
    });
    is_as_said.then_some(remote)
}

/// What HMAT says, pair by pair.
pub(super) fn access(machine: &Machine, style: Style) -> String {
    if machine.access.is_empty() {
        return String::new();
    }
    let hidden = machine.access.len().saturating_sub(MOST_ACCESSES);
    let heading = Table::new("")
        .words("from → to (HMAT)")
        .words("class")
        .figures("read ns")
        .figures("write ns")
        .figures("read GB/s")
        .figures("write GB/s");
    let shown = machine.access.iter().take(MOST_ACCESSES).map(access_row);
    let more = match hidden {
        0 => String::new(),
        hidden => wrap(&format!("… and {hidden} more in JSON"), 0) + "\n",
    };
    format!("\n{}{more}", table(&heading.rows(shown), style))
}

fn access_row(access: &AccessAttributes) -> Vec<String> {
    // Tenths are enough to tell nodes apart; the table has whole picoseconds.
    let tenths = |thousandths: Option<u64>| {
        let tenths = thousandths.map(|value| value.saturating_add(50) / 100);
        tenths.map_or_else(|| "–".to_owned(), |tenths| format!("{}.{}", tenths / 10, tenths % 10))
    };
    vec![
        format!("node {} → node {}", access.initiator, access.target),
        format!("{:?}", access.class).to_lowercase(),
        tenths(access.read_latency_ps),
        tenths(access.write_latency_ps),
        tenths(access.read_bandwidth_mb_per_s),
        tenths(access.write_bandwidth_mb_per_s),
    ]
}
