//! The page of ranks and their threads: the cpus that they run on, and the nodes of their memory.

use std::collections::BTreeSet;

use numalab_page::number::{count, share_words, size_words};
use numalab_page::rows::{Field, Rows};
use numalab_page::text::cut;
use numalab_page::{Page, Panel, Part, Private, Table};
use numalab_record::explore::{RankView, RanksView, ThreadView, spread};
use numalab_topology::{CpuId, CpuSet, NodeId};

use super::shares;

/// Maximum number of cpus of a node in one line of the picture.
const CPUS_IN_LINE: usize = 48;
const FREE: char = '.';
const SEVERAL: char = '*';

/// Returns the page of ranks: drawn by node, one by one, and thread by thread.
pub(super) fn page(view: &RanksView) -> Page {
    let title = match view.ranks.len() {
        0 => "no rank of a parallel program found on this host".to_owned(),
        ranks => {
            let threads: usize = view.ranks.iter().map(|rank| rank.threads.len()).sum();
            format!("{} with {} on this host", count(ranks, "rank"), count(threads, "thread"))
        }
    };
    let part = |title: &str, table| Part::of(title, vec![Panel::table(table)]);
    let has_any = !view.ranks.is_empty();
    let parts = [
        has_any.then(|| part("By node", picture(view))).flatten(),
        part("Ranks", ranks(view)),
        part("Threads", threads(view)),
    ];
    let private = view.ranks.iter().map(|rank| Private { what: "command", text: named(rank) });
    Page {
        title,
        parts: parts.into_iter().flatten().collect(),
        private: private.collect(),
        ..Page::default()
    }
}

/// Draws each cpu as the rank with a thread on it, at least one line per node.
fn picture(view: &RanksView) -> Table {
    let mut rows = Vec::new();
    for (node, cpus) in &view.cpus_by_node {
        let all: Vec<CpuId> = cpus.iter().collect();
        for (line, some) in all.chunks(CPUS_IN_LINE).enumerate() {
            let drawn: String = some.iter().map(|cpu| letter(view, *cpu)).collect();
            let set: CpuSet = some.iter().copied().collect();
            let memory = if line == 0 { memory_on(view, *node) } else { String::new() };
            rows.push(vec![node.to_string(), set.to_string(), drawn, memory]);
        }
        if all.is_empty() {
            let drawn = "no cpus".to_owned();
            rows.push(vec![node.to_string(), String::new(), drawn, memory_on(view, *node)]);
        }
    }
    let legend = format!(
        "each cpu as the last digit of the rank that runs on it; {FREE} none, {SEVERAL} several"
    );
    Table::new(&legend).figures("node").words(["cpus", "ranks", "memory of ranks"]).rows(rows)
}

fn letter(view: &RanksView, cpu: CpuId) -> char {
    let on = |thread: &&ThreadView| thread.cpu == cpu && is_busy(thread);
    let here: BTreeSet<usize> = view
        .ranks
        .iter()
        .filter(|rank| rank.threads.iter().any(|thread| on(&thread)))
        .map(|rank| rank.rank)
        .collect();
    match here.first() {
        None => FREE,
        Some(rank) if here.len() == 1 => {
            char::from_digit(u32::try_from(rank % 10).unwrap_or(0), 10).unwrap_or(SEVERAL)
        }
        Some(_) => SEVERAL,
    }
}

/// Returns `true` if a thread ever ran. Runtimes start helper threads that never do.
fn is_busy(thread: &ThreadView) -> bool {
    thread.cpu_ticks > 0 || thread.state == 'R'
}

/// Describes the ranks with most memory on a node: `0: 512 MiB, 1: 12 MiB`.
fn memory_on(view: &RanksView, node: NodeId) -> String {
    let mut on: Vec<(u64, usize)> = view
        .ranks
        .iter()
        .filter_map(|rank| Some((*rank.own_bytes_by_node.get(&node)?, rank.rank)))
        .filter(|(bytes, _)| *bytes > 0)
        .collect();
    on.sort_by_key(|(bytes, rank)| (std::cmp::Reverse(*bytes), *rank));
    let texts = on.iter().map(|(bytes, rank)| format!("{rank}: {}", size_words(*bytes)));
    cut(&texts.collect::<Vec<_>>().join(", "), 40)
}

fn named(rank: &RankView) -> String {
    cut(&rank.command, 24)
}

fn ranks(view: &RanksView) -> Table {
    let row = |rank: &RankView| {
        let cpus: CpuSet = rank.threads.iter().filter(|t| is_busy(t)).map(|t| t.cpu).collect();
        vec![
            rank.rank.to_string(),
            rank.job.clone(),
            rank.process.to_string(),
            rank.threads.len().to_string(),
            cut(&cpus.to_string(), 16),
            size_words(spread::total(&rank.own_bytes_by_node)),
            shares(&rank.own_bytes_by_node, 26),
            rank.remote_share.map_or_else(|| "-".to_owned(), share_words),
            named(rank),
        ]
    };
    Table::new("each rank's cpus, and its own memory by node")
        .figures("rank")
        .words("job")
        .figures(["process", "threads"])
        .words("on cpus")
        .figures("memory")
        .words("on nodes")
        .figures("remote")
        .words("command")
        .rows(view.ranks.iter().map(row))
}

fn threads(view: &RanksView) -> Table {
    let of_rank = |rank: &RankView| {
        let row = |(number, thread): (usize, &ThreadView)| {
            vec![
                rank.rank.to_string(),
                number.to_string(),
                cut(&thread.name, 15),
                thread.cpu.to_string(),
                thread.node.map_or_else(|| "-".to_owned(), |node| node.to_string()),
                cut(&thread.allowed.to_string(), 20),
                format!("{}.{:02} s", thread.cpu_ticks / 100, thread.cpu_ticks % 100),
            ]
        };
        rank.threads.iter().enumerate().map(row).collect::<Vec<_>>()
    };
    Table::new("each rank's threads: where they run, and where they may run")
        .figures(["rank", "thread"])
        .words("name")
        .figures(["cpu", "node"])
        .words("may run on")
        .figures("cpu time")
        .rows(view.ranks.iter().flat_map(of_rank))
}

pub(super) fn rows(view: &RanksView) -> Rows {
    let of_rank = |rank: &RankView| {
        let row = |(number, thread): (usize, &ThreadView)| {
            let on_node = thread.node.and_then(|node| rank.own_bytes_by_node.get(&node));
            vec![
                Field::from(rank.job.as_str()),
                rank.rank.to_string().into(),
                number.into(),
                thread.cpu.to_string().into(),
                thread.node.map(|node| node.to_string()).into(),
                thread.allowed.to_string().into(),
                spread::total(&rank.own_bytes_by_node).into(),
                on_node.copied().unwrap_or(0).into(),
            ]
        };
        rank.threads.iter().enumerate().map(row).collect::<Vec<_>>()
    };
    columns().rows(view.ranks.iter().flat_map(of_rank))
}

pub(crate) fn columns() -> Rows {
    Rows::new("rank thread")
        .labels(["job", "rank", "thread"])
        .texts(["cpu", "node", "may_run_on"])
        .values(
            "bytes",
            [
                ("rank_memory_bytes", "the memory of the thread's rank"),
                ("rank_memory_on_node_bytes", "the rank's memory on the node of the thread's cpu"),
            ],
        )
}
