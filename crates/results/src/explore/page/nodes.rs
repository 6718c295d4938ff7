//! The page of nodes.

use std::collections::BTreeSet;

use numalab_page::number::{count, figure, share_words, size_words};
use numalab_page::rows::{Field, Rows};
use numalab_page::{Page, Panel, Part, Table, share_bar};
use numalab_record::explore::{NodeView, NodesView, fragmentation, spread};
use numalab_topology::NodeSet;

use crate::topology::odd;

const BAR_WIDTH: usize = 30;

/// Returns the page of nodes: fill level, contents, fragmentation and counters.
pub(super) fn page(view: &NodesView) -> Page {
    let part = |title: &str, table| Part::of(title, vec![Panel::table(table)]);
    let parts = [
        part("By node", usage(view)).map(|part| part.noted(empty(view).into_iter().collect())),
        part("Moved between tiers, in pages", moves(view))
            .map(|part| part.noted(migrations(view).into_iter().collect())),
        part("Used for", uses(view)),
        part("Free, in blocks of 2^n pages", orders(view)),
        part("Allocations, in pages", counters(view)),
        part("Anomalies", odd(&view.odd)),
    ];
    Page {
        title: format!("memory of {}", count(view.nodes.len(), "node")),
        parts: parts.into_iter().flatten().collect(),
        ..Page::default()
    }
}

pub(super) fn rows(view: &NodesView) -> Rows {
    let row = |node: &NodeView| {
        let bytes = [
            node.total_bytes,
            node.free_bytes,
            node.anonymous_bytes,
            node.transparent_huge_bytes,
            node.page_cache_bytes,
            node.slab_bytes,
        ];
        let mut row = vec![Field::from(node.node.to_string())];
        row.extend(bytes.map(Field::from));
        row.push(node.fragmentation.into());
        row.push(node.rates.map(|rates| rates.foreign).into());
        row.push(node.tier.map(|tier| tier.to_string()).into());
        let moves = node.moves_rates;
        row.extend([
            moves.map(|moves| moves.promoted).into(),
            moves.map(|moves| moves.demoted).into(),
        ]);
        row
    };
    columns().rows(view.nodes.iter().map(row))
}

pub(crate) fn columns() -> Rows {
    let fragmentation = "the share of the free memory that is in pieces smaller than a huge page";
    let foreign = "pages requested on this node but allocated on another (numa_foreign)";
    Rows::new("node")
        .labels(["node"])
        .values(
            "bytes",
            [
                ("total_bytes", "the memory of the node"),
                ("free_bytes", "free memory of the node"),
                ("anonymous_bytes", "anonymous memory of processes on the node"),
                ("transparent_huge_bytes", "anonymous memory on transparent huge pages"),
                ("page_cache_bytes", "cached contents of files on the node"),
                ("slab_bytes", "the kernel's slab caches on the node"),
            ],
        )
        .values("x", [("fragmentation", fragmentation)])
        .values("pages/s", [("foreign_pages", foreign)])
        .texts(["tier"])
        .values(
            "pages/s",
            [
                ("promoted_pages", "pages promoted to this node from a slower tier"),
                ("demoted_pages", "pages demoted from this node to a slower tier"),
            ],
        )
}

/// Names the nodes that tables leave out: machines with GPU memory have dozens without cpus or
/// memory.
fn empty(view: &NodesView) -> Option<String> {
    let empty = view.nodes.iter().filter(|node| is_empty(node)).map(|node| node.node);
    let empty: NodeSet = empty.collect();
    let (which, have) = if empty.len() == 1 { ("Node", "has") } else { ("Nodes", "have") };
    (!empty.is_empty()).then(|| format!("{which} {empty} {have} neither cpus nor memory."))
}

fn is_empty(node: &NodeView) -> bool {
    node.cpus.is_empty() && node.total_bytes == Some(0)
}

fn with_anything(view: &NodesView) -> impl Iterator<Item = &NodeView> {
    view.nodes.iter().filter(|node| !is_empty(node))
}

fn usage(view: &NodesView) -> Table {
    let row = |node: &NodeView| {
        let used = node.total_bytes.zip(node.free_bytes);
        let used = used.map(|(total, free)| (total.saturating_sub(free), total));
        let share = used.map(|(used, total)| spread::ratio(used, total).unwrap_or(0.0));
        let mut row = vec![
            format!("node {}", node.node),
            share.map_or_else(String::new, |share| share_bar(share, BAR_WIDTH)),
            size_or_dash(used.map(|(used, _)| used)),
            size_or_dash(node.total_bytes),
            if node.cpus.is_empty() { "none".to_owned() } else { node.cpus.to_string() },
        ];
        row.extend(node.tier.map(|tier| tier.to_string()));
        row
    };
    let heading = Table::new("use of each node's memory")
        .words(["node", "used"])
        .figures(["", "of"])
        .words("cpus");
    let has_tiers = view.nodes.iter().any(|node| node.tier.is_some());
    let heading = if has_tiers { heading.figures("tier") } else { heading };
    heading.rows(with_anything(view).map(row))
}

fn size_or_dash(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "-".to_owned(), size_words)
}

/// Tabulates promotions and demotions by node, if memory has several tiers.
fn moves(view: &NodesView) -> Table {
    let tiers: BTreeSet<u32> = view.nodes.iter().filter_map(|node| node.tier).collect();
    let several = tiers.len() > 1;
    let nodes = view.nodes.iter().filter(|node| several && node.tier.is_some());
    let with_rates = view.nodes.iter().any(|node| node.moves_rates.is_some());
    let rows = nodes.filter_map(|node| {
        // A node that has just appeared has no rates; its counts since boot are zero.
        let moves = if with_rates { node.moves_rates } else { node.moves_since_boot }?;
        let tier = node.tier.map(|tier| tier.to_string()).unwrap_or_default();
        let pages = [moves.promoted, moves.candidates, moves.demoted].map(figure);
        Some([vec![node.node.to_string(), tier], pages.to_vec()].concat())
    });
    Table::new(if with_rates { "per second, now" } else { "since boot" })
        .figures(["node", "tier", "promoted to it", "candidates", "demoted from it"])
        .rows(rows)
}

/// Describes the migrations on the whole machine.
fn migrations(view: &NodesView) -> Option<String> {
    let found = view.migrations_rates.or(view.migrations_since_boot)?;
    let [balanced, moved, failed] = [found.balanced, found.moved, found.failed].map(figure);
    Some(format!(
        "All nodes: {moved} moved for any reason, {balanced} of them by NUMA balancing; {failed} \
         could not be moved."
    ))
}

fn uses(view: &NodesView) -> Table {
    let rows = with_anything(view).map(|node| {
        vec![
            node.node.to_string(),
            size_or_dash(node.free_bytes),
            size_or_dash(node.anonymous_bytes),
            size_or_dash(node.transparent_huge_bytes),
            size_or_dash(node.page_cache_bytes),
            size_or_dash(node.slab_bytes),
            pools(node),
        ]
    });
    Table::new("contents of each node's memory")
        .figures(["node", "free", "anonymous", "of which huge", "page cache", "slab"])
        .words("reserved huge pages")
        .rows(rows)
}

/// Describes huge-page pools: `4 of 8 x 2 MiB free`.
fn pools(node: &NodeView) -> String {
    let used = node.huge_pages.iter().filter(|pool| pool.total > 0);
    let text = used.map(|pool| {
        format!("{} of {} x {} free", pool.free, pool.total, size_words(pool.page_bytes))
    });
    let text: Vec<String> = text.collect();
    if text.is_empty() { "none".to_owned() } else { text.join(", ") }
}

fn orders(view: &NodesView) -> Table {
    let zones =
        || view.nodes.iter().flat_map(|node| node.zones.iter().map(move |zone| (node, zone)));
    let most = zones().map(|(_, zone)| zone.free_blocks.len()).max().unwrap_or(0);
    let lost = view.huge_order.map_or_else(
        || "unknown, as is the size of a page".to_owned(),
        |order| {
            format!("the share of free memory in pieces too small for a huge page (order {order})")
        },
    );
    let caption = format!("free blocks by n; lost: {lost}");
    let heading = (0..most)
        .fold(Table::new(caption).words("zone"), |table, order| table.figures(order.to_string()))
        .figures("lost");
    let rows = zones().map(|(node, zone)| {
        let zone_alone = std::slice::from_ref(zone);
        let unusable = view.huge_order.and_then(|order| fragmentation(zone_alone, order));
        let mut row = vec![format!("{} {}", node.node, zone.name)];
        row.extend(zone.free_blocks.iter().map(|&blocks| rounded(blocks)));
        row.resize(most + 1, String::new());
        row.push(unusable.map_or_else(|| "-".to_owned(), share_words));
        row
    });
    heading.rows(rows)
}

/// Formats a count in at most four characters: `9999`, `38k`, `12M`.
fn rounded(count: u64) -> String {
    match count {
        0..10_000 => count.to_string(),
        10_000..10_000_000 => format!("{}k", count / 1000),
        _ => format!("{}M", count / 1_000_000),
    }
}

fn counters(view: &NodesView) -> Table {
    let with_rates = view.nodes.iter().any(|node| node.rates.is_some());
    let rows = view.nodes.iter().filter_map(|node| {
        let counters = if with_rates { node.rates } else { node.since_boot }?;
        let share = counters.foreign_share().map_or_else(|| "-".to_owned(), share_words);
        let values = [
            counters.hit,
            counters.miss,
            counters.foreign,
            counters.interleave_hit,
            counters.local,
            counters.other,
        ];
        let mut row = vec![node.node.to_string()];
        row.extend(values.map(figure));
        row.push(share);
        Some(row)
    });
    Table::new(if with_rates { "per second, now" } else { "since boot" })
        .figures(["node", "hit", "miss", "foreign", "interleaved", "local", "other"])
        .figures("went elsewhere")
        .rows(rows)
}
