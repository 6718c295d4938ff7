//! The nodes as text.

use numalab_formats::size::format_rounded;
use numalab_report::Style;
use numalab_report::text::{Table, count, figure, table};

use super::bar::bar;
use super::closing;
use crate::nodes::{NodeView, NodesView};
use crate::spread::{self, percent};

const BAR_WIDTH: usize = 30;

/// The nodes: how full, what with, how free memory hangs together, and the counters.
#[must_use]
pub fn nodes(view: &NodesView, style: Style) -> String {
    let title = format!("memory of {}", count(view.nodes.len(), "node"));
    let mut out = format!("{}\n", style.heading(&title));
    for node in &view.nodes {
        let used = node.total_bytes.saturating_sub(node.free_bytes);
        let share = spread::ratio(used, node.total_bytes).unwrap_or(0.0);
        let name = format!("node {}", node.node);
        out.push_str(&format!(
            "{name:<9} {} {:>9} of {:<9} used, cpus {}\n",
            style.mark(&bar(share, BAR_WIDTH)),
            format_rounded(used),
            format_rounded(node.total_bytes),
            if node.cpus.is_empty() { "none".to_owned() } else { node.cpus.to_string() }
        ));
    }
    out.push('\n');
    out.push_str(&closing(&view.findings, &view.unseen, style));
    out.push_str(&format!("\n{}\n{}", style.heading("Used for"), uses(view, style)));
    out.push_str(&format!(
        "\n{}\n{}",
        style.heading("Free, in blocks of 2^n pages"),
        orders(view, style)
    ));
    out.push_str(&format!(
        "\n{}\n{}",
        style.heading("Allocations, in pages"),
        counters(view, style)
    ));
    out
}

fn uses(view: &NodesView, style: Style) -> String {
    let rows = view.nodes.iter().map(|node| {
        vec![
            node.node.to_string(),
            format_rounded(node.free_bytes),
            format_rounded(node.anonymous_bytes),
            format_rounded(node.transparent_huge_bytes),
            format_rounded(node.page_cache_bytes),
            format_rounded(node.slab_bytes),
            pools(node),
        ]
    });
    let shown = Table::new("")
        .figures("node")
        .figures("free")
        .figures("anonymous")
        .figures("huge of it")
        .figures("page cache")
        .figures("slab")
        .words("reserved huge pages")
        .rows(rows);
    table(&shown, style)
}

/// `4 of 8 x 2 MiB free`
fn pools(node: &NodeView) -> String {
    let used = node.huge_pages.iter().filter(|pool| pool.total > 0);
    let text = used.map(|pool| {
        format!("{} of {} x {} free", pool.free, pool.total, format_rounded(pool.page_bytes))
    });
    let text: Vec<String> = text.collect();
    if text.is_empty() { "none".to_owned() } else { text.join(", ") }
}

fn orders(view: &NodesView, style: Style) -> String {
    let zones =
        || view.nodes.iter().flat_map(|node| node.zones.iter().map(move |zone| (node, zone)));
    let most = zones().map(|(_, zone)| zone.free_blocks.len()).max().unwrap_or(0);
    let heading = (0..most)
        .fold(Table::new("").words("zone"), |table, order| table.figures(order.to_string()))
        .figures("lost");
    let rows = zones().map(|(node, zone)| {
        let unusable = crate::nodes::fragmentation(std::slice::from_ref(zone), view.huge_order);
        let mut row = vec![format!("{} {}", node.node, zone.name)];
        row.extend(zone.free_blocks.iter().map(|&blocks| rounded(blocks)));
        row.resize(most + 1, String::new());
        row.push(unusable.map_or_else(|| "-".to_owned(), percent));
        row
    });
    let note = format!(
        "lost: the share of free memory in pieces too small for a huge page (order {})\n",
        view.huge_order
    );
    table(&heading.rows(rows), style) + &style.faint(&note)
}

/// A count in at most four characters: `9999`, `38k`, `12M`.
fn rounded(count: u64) -> String {
    match count {
        0..10_000 => count.to_string(),
        10_000..10_000_000 => format!("{}k", count / 1000),
        _ => format!("{}M", count / 1_000_000),
    }
}

fn counters(view: &NodesView, style: Style) -> String {
    let with_rates = view.nodes.iter().any(|node| node.rates.is_some());
    let rows = view.nodes.iter().filter_map(|node| {
        let counters = node.rates.or(node.since_boot)?;
        let share = counters.foreign_share().map_or_else(|| "-".to_owned(), percent);
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
    let shown = Table::new("")
        .figures("node")
        .figures("hit")
        .figures("miss")
        .figures("foreign")
        .figures("interleaved")
        .figures("local")
        .figures("other")
        .figures("went elsewhere")
        .rows(rows);
    let per = if with_rates { "in a second, now\n" } else { "since boot\n" };
    table(&shown, style) + &style.faint(per)
}
