//! A heap as text.

use numalab_formats::size::format_rounded;
use numalab_report::Style;
use numalab_report::text::{Table, table};
use numalab_xen::text::{PAGE_BYTES, XenDump};

use super::bar::bar;
use super::closing;
use crate::heap::{HeapNode, HeapSource, HeapView};
use crate::spread;

const BAR_WIDTH: usize = 30;

/// The heap: how full each node is, its zones, whose memory is where, a picture if there is
/// one, and what is wrong.
#[must_use]
pub fn heap(view: &HeapView, style: Style) -> String {
    let title = match view.source {
        HeapSource::Frames => "heap of numalab-frames",
        HeapSource::Xen => "heap of Xen",
    };
    let mut out = format!("{}\n", style.heading(title));
    out.extend(view.nodes.iter().map(|node| node_line(node, style)));
    out.push('\n');
    out.push_str(&closing(&view.findings, &[], style));
    if view.nodes.iter().any(|node| !node.zones.is_empty()) {
        out.push_str(&format!("\n{}\n{}", style.heading("Free by zone"), zones(view, style)));
    }
    if let Some(xen) = view.xen.as_ref().filter(|xen| !xen.domains.is_empty()) {
        out.push_str(&format!("\n{}\n{}", style.heading("Domains"), domains(xen, style)));
    }
    if let Some(picture) = &view.picture {
        out.push_str(&format!("\n{}\n{picture}", style.heading("Picture")));
    }
    out
}

fn node_line(node: &HeapNode, style: Style) -> String {
    let used = node.managed_bytes.saturating_sub(node.free_bytes + node.offline_bytes);
    let share = spread::ratio(used, node.managed_bytes).unwrap_or(0.0);
    let name = format!("node {}", node.node);
    let mut line = format!(
        "{name:<9} {} {:>9} free of {}",
        style.mark(&bar(share, BAR_WIDTH)),
        format_rounded(node.free_bytes),
        format_rounded(node.managed_bytes)
    );
    if let Some(huge) = node.free_huge_bytes {
        line.push_str(&format!(", {} in 2 MiB", format_rounded(huge)));
    }
    for (bytes, what) in [(node.cached_bytes, "cached"), (node.offline_bytes, "offline")] {
        if bytes > 0 {
            line.push_str(&format!(", {} {what}", format_rounded(bytes)));
        }
    }
    line + "\n"
}

fn zones(view: &HeapView, style: Style) -> String {
    let rows = view.nodes.iter().flat_map(|node| {
        node.zones.iter().map(|zone| {
            vec![node.node.to_string(), zone.name.clone(), format_rounded(zone.free_bytes)]
        })
    });
    table(&Table::new("").figures("node").words("zone").figures("free").rows(rows), style)
}

fn domains(xen: &XenDump, style: Style) -> String {
    let nodes: Vec<_> = xen.nodes.iter().map(|node| node.node).collect();
    let heading = Table::new("").figures("domain").figures("memory");
    let heading = nodes.iter().fold(heading, |table, node| table.figures(format!("node {node}")));
    let rows = xen.domains.iter().map(|domain| {
        let pages = |pages: u64| format_rounded(pages.saturating_mul(PAGE_BYTES));
        let mut row = vec![domain.domain.to_string(), pages(domain.total_pages)];
        row.extend(nodes.iter().map(|node| match domain.pages_by_node.get(node) {
            Some(&count) if count > 0 => pages(count),
            _ => "-".to_owned(),
        }));
        row
    });
    table(&heading.rows(rows), style)
}
