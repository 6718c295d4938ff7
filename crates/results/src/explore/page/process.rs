//! The page of a process.

use std::cmp::Reverse;

use numalab_page::number::{count, share_words, size_words};
use numalab_page::rows::{Field, Rows};
use numalab_page::text::cut;
use numalab_page::{Page, Panel, Part, Private, Table, is_private_path, share_bar};
use numalab_record::explore::{
    BytesByNode, DeviceUse, MappingKind, MappingView, ProcessView, spread,
};
use numalab_topology::NodeId;

use super::shares;

const BAR_WIDTH: usize = 30;
/// Width of a mapped file's path, in characters.
const FILE_WIDTH: usize = 24;

/// Returns the page of a process: by node, by thread and by mapping.
pub(super) fn page(view: &ProcessView) -> Page {
    let part = |title: &str, table| Part::of(title, vec![Panel::table(table)]);
    let by_node = part("By node", by_node(view));
    let parts = [
        by_node.map(|part| part.noted(sampled(view).into_iter().collect())),
        part("Threads", threads(view)),
        part("Devices", devices(view)),
        part("Mappings", mappings(view)),
    ];
    Page {
        title: format!("process {}: {}", view.process, cut(&view.command, 60)),
        meta: headline(view),
        parts: parts.into_iter().flatten().collect(),
        private: private(view),
        ..Page::default()
    }
}

/// Returns strings to hide from shared pages: the command as remedies and title quote it, and
/// truncated paths, which are no longer recognisable as paths.
fn private(view: &ProcessView) -> Vec<Private> {
    let commands = [view.command.clone(), cut(&view.command, 60)];
    let commands = commands.map(|text| Private { what: "command", text });
    let files = view.mappings.iter().filter_map(|mapping| mapping.file.as_deref());
    let ends = files
        .filter(|file| is_private_path(file))
        .map(|file| (file, cut_left(file, FILE_WIDTH)))
        .filter(|(file, end)| file != end)
        .map(|(_, text)| Private { what: "paths", text });
    commands.into_iter().chain(ends).collect()
}

pub(super) fn rows(view: &ProcessView) -> Rows {
    let row = |node: NodeId| {
        let bytes = |of: &BytesByNode| of.get(&node).copied().unwrap_or(0);
        let (all, own) = (bytes(&view.bytes_by_node), bytes(&view.own_bytes_by_node));
        let labels = [view.process.to_string(), node.to_string()].map(Field::from);
        let values = [all.into(), own.into(), threads_on(view, node).into()];
        labels.into_iter().chain(values).collect()
    };
    columns().rows(nodes(view).into_iter().map(row))
}

pub(crate) fn columns() -> Rows {
    Rows::new("process")
        .labels(["process", "node"])
        .values(
            "bytes",
            [
                ("memory_bytes", "the memory of the process on the node"),
                (
                    "own_bytes",
                    "the process's own memory on the node: all but unmodified pages of files",
                ),
            ],
        )
        .values("threads", [("threads", "threads of the process on cpus of the node")])
}

/// Returns the nodes with memory or threads of the process.
fn nodes(view: &ProcessView) -> Vec<NodeId> {
    let mut nodes: Vec<_> = view.bytes_by_node.keys().copied().collect();
    nodes.extend(view.threads.iter().filter_map(|thread| thread.node));
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

fn threads_on(view: &ProcessView, node: NodeId) -> usize {
    view.threads.iter().filter(|thread| thread.node == Some(node)).count()
}

fn headline(view: &ProcessView) -> String {
    let mut parts = vec![
        format!("{} in memory", size_words(spread::total(&view.bytes_by_node))),
        count(view.threads.len(), "thread"),
        count(view.mappings.len(), "mapping"),
    ];
    if let Some(sizes) = view.page_sizes {
        let huge = sizes.transparent_huge.saturating_add(sizes.reserved_huge);
        parts.push(format!("{} on huge pages", size_words(huge)));
        if sizes.swapped > 0 {
            parts.push(format!("{} swapped out", size_words(sizes.swapped)));
        }
    }
    if let Some(share) = view.remote_share {
        parts.push(format!("{} remote to its threads", share_words(share)));
    }
    parts.join(", ")
}

fn by_node(view: &ProcessView) -> Table {
    let all = spread::total(&view.bytes_by_node);
    let row = |node: NodeId| {
        let bytes = view.bytes_by_node.get(&node).copied().unwrap_or(0);
        let share = spread::ratio(bytes, all).unwrap_or(0.0);
        vec![
            format!("node {node}"),
            share_bar(share, BAR_WIDTH),
            size_words(bytes),
            share_words(share),
            threads_on(view, node).to_string(),
        ]
    };
    Table::new("its memory and threads by node")
        .words(["node", "memory"])
        .figures(["", "share", "threads"])
        .rows(nodes(view).into_iter().map(row))
}

/// Describes the result of a page sample.
fn sampled(view: &ProcessView) -> Option<String> {
    let sampled = view.sampled.as_ref()?;
    let found = spread::total(&sampled.pages_by_node);
    let shares = sampled.pages_by_node.iter().map(|(node, pages)| {
        format!("{} on node {node}", share_words(spread::ratio(*pages, found).unwrap_or(0.0)))
    });
    let shares: Vec<String> = shares.collect();
    let pages = count(usize::try_from(found).unwrap_or(0), "page");
    Some(format!("{pages} sampled by move_pages: {}", shares.join(", ")))
}

/// Tabulates threads, most remote and busiest first.
fn threads(view: &ProcessView) -> Table {
    let mut order: Vec<_> = view.threads.iter().collect();
    order.sort_by(|a, b| {
        let remote = |share: Option<f64>| share.unwrap_or(0.0) >= 0.5;
        (remote(b.remote_share), b.cpu_ticks, a.thread).cmp(&(
            remote(a.remote_share),
            a.cpu_ticks,
            b.thread,
        ))
    });
    let cells = order.iter().map(|thread| {
        vec![
            thread.thread.to_string(),
            cut(&thread.name, 15),
            thread.state.to_string(),
            thread.cpu.to_string(),
            thread.node.map_or_else(|| "-".to_owned(), |node| node.to_string()),
            cut(&thread.allowed.to_string(), 14),
            format!("{}.{:02} s", thread.cpu_ticks / 100, thread.cpu_ticks % 100),
            thread.remote_share.map_or_else(|| "-".to_owned(), share_words),
            if thread.touched_pages.is_empty() { "process" } else { "samples" }.to_owned(),
        ]
    });
    Table::new("its threads' nodes, and the remote share of what they touch")
        .figures("thread")
        .words(["name", ""])
        .figures(["cpu", "node"])
        .words("may run on")
        .figures(["cpu time", "remote"])
        .words("by")
        .rows(cells)
}

/// Tabulates open devices and the nodes that they are close to.
fn devices(view: &ProcessView) -> Table {
    let row = |device: &DeviceUse| {
        vec![
            device.name.clone(),
            device.kind.to_string(),
            device.node.map_or_else(|| "-".to_owned(), |node| node.to_string()),
            device.address.clone(),
            cut(&device.files.join(" "), 30),
        ]
    };
    Table::new("PCI devices with device files open or mapped")
        .words(["device", "kind"])
        .figures("node")
        .words(["address", "files"])
        .rows(view.devices.iter().map(row))
}

fn mappings(view: &ProcessView) -> Table {
    let order = largest(view);
    let cells = order.iter().map(|mapping| {
        vec![
            format!("{:x}", mapping.start),
            size_words(spread::total(&mapping.bytes_by_node)),
            mapping
                .transparent_huge_bytes
                .map_or_else(|| "-".to_owned(), |huge| huge_text(mapping, huge)),
            mapping.policy.clone(),
            shares(&mapping.bytes_by_node, 26),
            mapping.file.as_deref().map_or_else(
                || kind_name(mapping.kind).to_owned(),
                |file| cut_left(file, FILE_WIDTH),
            ),
        ]
    });
    Table::new("the largest first")
        .words("address")
        .figures(["in memory", "huge"])
        .words(["policy", "nodes", "what"])
        .rows(cells)
}

fn huge_text(mapping: &MappingView, transparent: u64) -> String {
    match mapping.page_bytes >= 1 << 21 {
        true => size_words(mapping.page_bytes),
        false => {
            let all = spread::total(&mapping.bytes_by_node);
            share_words(spread::ratio(transparent.min(all), all).unwrap_or(0.0))
        }
    }
}

const fn kind_name(kind: MappingKind) -> &'static str {
    match kind {
        MappingKind::Heap => "heap",
        MappingKind::Stack => "stack",
        MappingKind::Anonymous => "anonymous",
        MappingKind::Shared => "shared",
        MappingKind::HugePool => "huge pool",
        MappingKind::File => "file",
    }
}

/// Returns mappings that hold memory, largest first; of equal ones, files come last.
fn largest(view: &ProcessView) -> Vec<&MappingView> {
    let size = |mapping: &MappingView| spread::total(&mapping.bytes_by_node);
    let mut mappings: Vec<_> = view.mappings.iter().filter(|mapping| size(mapping) > 0).collect();
    mappings.sort_by_key(|mapping| (Reverse(size(mapping)), mapping.kind == MappingKind::File));
    mappings
}

/// Truncates from the left, because the end of a path says more than its beginning.
fn cut_left(text: &str, width: usize) -> String {
    let length = text.chars().count();
    match length > width {
        true => format!("…{}", text.chars().skip(length - width + 1).collect::<String>()),
        false => text.to_owned(),
    }
}
