//! The page of a heap.

use std::collections::BTreeSet;

use numalab_page::number::size_words;
use numalab_page::rows::{Field, Rows};
use numalab_page::{Page, Panel, Part, Table, share_bar};
use numalab_record::explore::{HeapNode, HeapSource, HeapView, XEN_PAGE_BYTES, XenHeap, spread};

const BAR_WIDTH: usize = 20;

/// Returns the page of a heap: the fill level of each node, its zones, the owners of memory, and a
/// chart if there is one.
pub(super) fn page(view: &HeapView) -> Page {
    let title = match view.source {
        HeapSource::Frames => "heap of numalab-frames",
        HeapSource::Xen => "heap of Xen",
    };
    let part = |title: &str, table| Part::of(title, vec![Panel::table(table)]);
    let domains = view.xen.as_ref().and_then(|xen| {
        let part = part("Domains", domains(view, xen))?;
        Some(part.noted(list(xen).into_iter().collect()))
    });
    let picture = view.picture.clone().map(|picture| Part {
        title: "Picture".to_owned(),
        listing: Some(picture),
        ..Part::default()
    });
    let parts = [part("By node", nodes(view)), part("Free by zone", zones(view)), domains, picture];
    Page {
        title: title.to_owned(),
        parts: parts.into_iter().flatten().collect(),
        ..Page::default()
    }
}

pub(super) fn rows(view: &HeapView) -> Rows {
    let row = |node: &HeapNode| {
        vec![
            Field::from(node.node.to_string()),
            node.managed_bytes.into(),
            node.free_bytes.into(),
            node.free_huge_bytes.into(),
            node.cached_bytes.into(),
            node.offline_bytes.into(),
        ]
    };
    columns().rows(view.nodes.iter().map(row))
}

pub(crate) fn columns() -> Rows {
    Rows::new("heap").labels(["node"]).values(
        "bytes",
        [
            ("managed_bytes", "the memory of the node that the heap manages"),
            ("free_bytes", "free memory of the heap on the node"),
            ("free_huge_bytes", "free memory in entirely free blocks of 2 MiB"),
            ("cached_bytes", "free memory in caches of cpus"),
            ("offline_bytes", "memory taken out of use"),
        ],
    )
}

fn nodes(view: &HeapView) -> Table {
    let row = |node: &HeapNode| {
        let used = node.managed_bytes.saturating_sub(node.free_bytes + node.offline_bytes);
        let share = spread::ratio(used, node.managed_bytes).unwrap_or(0.0);
        let mut row = vec![format!("node {}", node.node), share_bar(share, BAR_WIDTH)];
        row.extend([node.free_bytes, node.managed_bytes].map(size_words));
        row.push(node.free_huge_bytes.map_or_else(|| "-".to_owned(), size_words));
        row.extend([node.cached_bytes, node.offline_bytes].map(size_words));
        row
    };
    Table::new("used and free memory of each node")
        .words(["node", "used"])
        .figures(["free", "of", "in 2 MiB", "cached", "offline"])
        .rows(view.nodes.iter().map(row))
}

fn zones(view: &HeapView) -> Table {
    let rows = view.nodes.iter().flat_map(|node| {
        node.zones
            .iter()
            .map(|zone| vec![node.node.to_string(), zone.name.clone(), size_words(zone.free_bytes)])
    });
    Table::new("free memory of each zone").figures("node").words("zone").figures("free").rows(rows)
}

/// Returns the name of the list, if the dump has several.
fn list(xen: &XenHeap) -> Option<String> {
    let which = match xen.domains.iter().any(|domain| domain.domain > 0) {
        true => "the last one with guests",
        false => "none has guests",
    };
    let of = format!("List {} of {} on this console: {which}.", xen.list, xen.lists);
    (xen.lists > 1).then_some(of)
}

fn domains(view: &HeapView, xen: &XenHeap) -> Table {
    // Xen may list domains without the lines of the nodes.
    let of_domains = xen.domains.iter().flat_map(|domain| domain.pages_by_node.keys().copied());
    let nodes: BTreeSet<_> = view.nodes.iter().map(|node| node.node).chain(of_domains).collect();
    let heading = Table::new("each domain's memory by node").figures("domain").figures("memory");
    let heading = nodes.iter().fold(heading, |table, node| table.figures(format!("node {node}")));
    let rows = xen.domains.iter().map(|domain| {
        let pages = |pages: u64| size_words(pages.saturating_mul(XEN_PAGE_BYTES));
        let mut row = vec![domain.domain.to_string(), pages(domain.total_pages)];
        row.extend(nodes.iter().map(|node| match domain.pages_by_node.get(node) {
            Some(&count) if count > 0 => pages(count),
            _ => "-".to_owned(),
        }));
        row
    });
    heading.rows(rows)
}
