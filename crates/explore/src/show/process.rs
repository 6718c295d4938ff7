//! A process as text.

use numalab_formats::size::format_rounded;
use numalab_report::Style;
use numalab_report::text::{Table, count, cut, table, wrap};

use super::bar::bar;
use super::closing;
use crate::process::{MappingView, ProcessView, largest};
use crate::spread::{self, percent};

const BAR_WIDTH: usize = 30;

/// How many threads and mappings are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessRows {
    /// Threads, the most remote and busiest first.
    pub threads: usize,
    /// Mappings, the largest first.
    pub mappings: usize,
}

impl Default for ProcessRows {
    fn default() -> Self {
        Self { threads: 16, mappings: 12 }
    }
}

/// The process: by node, by thread, by mapping, and what is wrong.
#[must_use]
pub fn process(view: &ProcessView, rows: ProcessRows, style: Style) -> String {
    let title = format!("process {}: {}", view.process, cut(&view.command, 60));
    let mut out = format!("{}\n{}\n\n", style.heading(&wrap(&title, 0)), wrap(&headline(view), 0));
    out.push_str(&closing(&view.findings, &view.unseen, style));
    out.push_str(&format!("\n{}\n{}", style.heading("By node"), by_node(view, style)));
    out.push_str(&format!("\n{}\n{}", style.heading("Threads"), threads(view, rows, style)));
    out.push_str(&format!("\n{}\n{}", style.heading("Mappings"), mappings(view, rows, style)));
    out
}

fn headline(view: &ProcessView) -> String {
    let mut parts = vec![
        format!("{} in memory", format_rounded(spread::total(&view.bytes_by_node))),
        count(view.threads.len(), "thread"),
        count(view.mappings.len(), "mapping"),
    ];
    if let Some(sizes) = view.page_sizes {
        let huge = sizes.transparent_huge.saturating_add(sizes.reserved_huge);
        parts.push(format!("{} on huge pages", format_rounded(huge)));
        if sizes.swapped > 0 {
            parts.push(format!("{} swapped out", format_rounded(sizes.swapped)));
        }
    }
    if let Some(share) = view.remote_share {
        parts.push(format!("{} remote to its threads", percent(share)));
    }
    parts.join(", ")
}

/// A bar for each node, with its threads and what a sample of pages showed.
fn by_node(view: &ProcessView, style: Style) -> String {
    let all = spread::total(&view.bytes_by_node);
    let mut nodes: Vec<_> = view.bytes_by_node.keys().copied().collect();
    nodes.extend(view.threads.iter().filter_map(|thread| thread.node));
    nodes.sort_unstable();
    nodes.dedup();
    let mut out = String::new();
    for node in nodes {
        let bytes = view.bytes_by_node.get(&node).copied().unwrap_or(0);
        let share = spread::ratio(bytes, all).unwrap_or(0.0);
        let here = view.threads.iter().filter(|thread| thread.node == Some(node)).count();
        let name = format!("node {node}");
        out.push_str(&format!(
            "{name:<9} {} {:>9}  {:>11}  {}\n",
            style.mark(&bar(share, BAR_WIDTH)),
            format_rounded(bytes),
            percent(share),
            count(here, "thread")
        ));
    }
    if let Some(sampled) = &view.sampled {
        let found = spread::total(&sampled.pages_by_node);
        let shares = sampled.pages_by_node.iter().map(|(node, pages)| {
            format!("{} on node {node}", percent(spread::ratio(*pages, found).unwrap_or(0.0)))
        });
        let shares: Vec<String> = shares.collect();
        let text = format!(
            "{} sampled by move_pages: {}",
            count(usize::try_from(found).unwrap_or(0), "page"),
            shares.join(", ")
        );
        out.push_str(&format!("{}\n", style.faint(&wrap(&text, 0))));
    }
    out
}

fn threads(view: &ProcessView, rows: ProcessRows, style: Style) -> String {
    let mut order: Vec<_> = view.threads.iter().collect();
    order.sort_by(|a, b| {
        let remote = |share: Option<f64>| share.unwrap_or(0.0) >= 0.5;
        (remote(b.remote_share), b.cpu_ticks, a.thread).cmp(&(
            remote(a.remote_share),
            a.cpu_ticks,
            b.thread,
        ))
    });
    let hidden = order.len().saturating_sub(rows.threads);
    let cells = order.iter().take(rows.threads).map(|thread| {
        vec![
            thread.thread.to_string(),
            cut(&thread.name, 15),
            thread.state.to_string(),
            thread.cpu.to_string(),
            thread.node.map_or_else(|| "-".to_owned(), |node| node.to_string()),
            cut(&thread.allowed.to_string(), 14),
            format!("{}.{:02} s", thread.cpu_ticks / 100, thread.cpu_ticks % 100),
            thread.remote_share.map_or_else(|| "-".to_owned(), percent),
            if thread.touched_pages.is_empty() { "process" } else { "samples" }.to_owned(),
        ]
    });
    let shown = Table::new("")
        .figures("thread")
        .words("name")
        .words("")
        .figures("cpu")
        .figures("node")
        .words("may run on")
        .figures("cpu time")
        .figures("remote")
        .words("by")
        .rows(cells);
    table(&shown, style) + &more(hidden, "thread")
}

fn mappings(view: &ProcessView, rows: ProcessRows, style: Style) -> String {
    let order = largest(view);
    let hidden = order.len().saturating_sub(rows.mappings);
    let cells = order.iter().take(rows.mappings).map(|mapping| {
        vec![
            format!("{:x}", mapping.start),
            format_rounded(spread::total(&mapping.bytes_by_node)),
            mapping
                .transparent_huge_bytes
                .map_or_else(|| "-".to_owned(), |huge| huge_text(mapping, huge)),
            mapping.policy.clone(),
            shares(mapping),
            mapping
                .file
                .as_deref()
                .map_or_else(|| mapping.kind.name().to_owned(), |file| cut_left(file, 24)),
        ]
    });
    let shown = Table::new("")
        .words("address")
        .figures("in memory")
        .figures("huge")
        .words("policy")
        .words("nodes")
        .words("what")
        .rows(cells);
    table(&shown, style) + &more(hidden, "smaller mapping")
}

fn huge_text(mapping: &MappingView, transparent: u64) -> String {
    match mapping.page_bytes >= 1 << 21 {
        true => format_rounded(mapping.page_bytes),
        false => {
            let all = spread::total(&mapping.bytes_by_node);
            percent(spread::ratio(transparent.min(all), all).unwrap_or(0.0))
        }
    }
}

/// `0: 96 %, 3: 4 %`, the largest first.
fn shares(mapping: &MappingView) -> String {
    let all = spread::total(&mapping.bytes_by_node);
    let mut nodes: Vec<_> = mapping.bytes_by_node.iter().collect();
    nodes.sort_by_key(|(_, bytes)| std::cmp::Reverse(**bytes));
    let text = nodes.iter().map(|(node, bytes)| {
        format!("{node}: {}", percent(spread::ratio(**bytes, all).unwrap_or(0.0)))
    });
    cut(&text.collect::<Vec<_>>().join(", "), 26)
}

/// The end of a path tells more than its beginning.
fn cut_left(text: &str, width: usize) -> String {
    let length = text.chars().count();
    match length > width {
        true => format!("…{}", text.chars().skip(length - width + 1).collect::<String>()),
        false => text.to_owned(),
    }
}

fn more(hidden: usize, what: &str) -> String {
    match hidden {
        0 => String::new(),
        hidden => format!("… and {}\n", count(hidden, &format!("more {what}"))),
    }
}
