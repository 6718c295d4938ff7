//! What is wrong with a process's memory, by rules.

use std::collections::BTreeMap;

use numalab_formats::size::format_rounded;
use numalab_host::Root;
use numalab_topology::{Machine, NodeId, NodeSet};

use super::{MappingKind, ProcessView, ThreadView, allowed_nodes};
use crate::finding::Finding;
use crate::spread::{self, BytesByNode, percent};

/// Less memory than this is not worth a sentence, in bytes.
const LEAST_BYTES: u64 = 1 << 20;
/// A thread is called remote if so much of what it touches is elsewhere.
const MOSTLY: f64 = 0.5;
/// Anonymous memory worth huge pages, in bytes, and the share below which it has too few.
const LARGE_BYTES: u64 = 64 << 20;
const FEW_HUGE: f64 = 0.1;
/// The share in swap that is worth a sentence.
const MUCH_SWAP: f64 = 0.05;

pub(super) fn findings(root: &Root, view: &ProcessView, machine: &Machine) -> Vec<Finding> {
    let mut findings = remote_threads(root, view, machine);
    findings.extend(bound_apart(view));
    findings.extend(few_huge_pages(root, view));
    findings.extend(swapped(view));
    findings
}

/// Threads that run on one node and touch mostly one other.
#[derive(Default)]
struct Apart<'a> {
    threads: Vec<&'a ThreadView>,
    elsewhere: f64,
}

fn remote_threads(root: &Root, view: &ProcessView, machine: &Machine) -> Vec<Finding> {
    if spread::total(&view.own_bytes_by_node) < LEAST_BYTES {
        return Vec::new();
    }
    let mut groups: BTreeMap<(NodeId, NodeId, bool), Apart<'_>> = BTreeMap::new();
    for thread in &view.threads {
        let (Some(node), Some(share)) = (thread.node, thread.remote_share) else { continue };
        let seen = !thread.touched_pages.is_empty();
        let touched = if seen { &thread.touched_pages } else { &view.own_bytes_by_node };
        let Some((home, on_home)) = spread::most(touched) else { continue };
        if share >= MOSTLY && home != node {
            let group = groups.entry((node, home, seen)).or_default();
            group.threads.push(thread);
            group.elsewhere = group.elsewhere.max(on_home);
        }
    }
    let runs_on: NodeSet = view.threads.iter().filter_map(|thread| thread.node).collect();
    groups
        .iter()
        .map(|((node, home, seen), apart)| {
            let (who, verb) = names(&apart.threads);
            let what = match (seen, view.threads.len()) {
                (true, _) => "what was touched from there",
                (false, 1) => "what it touched",
                (false, _) => "the process's own memory",
            };
            let share = percent(apart.elsewhere);
            let what =
                format!("{who} {verb} on node {node}; {share} of {what} lies on node {home}");
            Finding::wrong(
                what,
                mend(root, view, machine, (*node, *home), &apart.threads, &runs_on),
            )
        })
        .collect()
}

fn names(threads: &[&ThreadView]) -> (String, &'static str) {
    match threads {
        [thread] => (format!("thread {}", thread.thread), "runs"),
        [first, second] => (format!("threads {} and {}", first.thread, second.thread), "run"),
        [first, rest @ ..] => (format!("thread {} and {} more", first.thread, rest.len()), "run"),
        [] => (String::new(), ""),
    }
}

/// Memory follows threads that all run on one node; threads that may go home go home;
/// else memory that one thread placed for many is spread.
fn mend(
    root: &Root,
    view: &ProcessView,
    machine: &Machine,
    (node, home): (NodeId, NodeId),
    threads: &[&ThreadView],
    runs_on: &NodeSet,
) -> String {
    let process = view.process;
    let tied = threads.iter().any(|thread| !allowed_nodes(thread, machine).contains(home));
    let home_cpus = machine.node(home).map(|home| home.cpus.to_string()).unwrap_or_default();
    if runs_on.len() == 1 && tied {
        let from = spread::others(&view.own_bytes_by_node, node);
        return format!("migratepages {process} {from} {node}");
    }
    if runs_on.len() == 1 && !home_cpus.is_empty() {
        return format!("taskset -acp {home_cpus} {process}");
    }
    let spread_it = format!("numactl --interleave={runs_on} -- {}", view.command);
    match root.value("proc/sys/kernel/numa_balancing").as_deref() {
        Ok("0") => format!("sysctl kernel.numa_balancing=1, or start it as {spread_it}"),
        _ => format!("start it as {spread_it}"),
    }
}

/// Memory that a policy binds to where no thread runs.
fn bound_apart(view: &ProcessView) -> Option<Finding> {
    let runs_on: NodeSet = view.threads.iter().filter_map(|thread| thread.node).collect();
    let mut bound = BytesByNode::new();
    for mapping in view.mappings.iter().filter(|mapping| mapping.own) {
        let nodes = mapping.policy.strip_prefix("bind").and_then(|rest| rest.rsplit(':').next());
        let nodes: Option<NodeSet> = nodes.and_then(|nodes| nodes.parse().ok());
        if nodes.is_some_and(|nodes| nodes.intersection(&runs_on).is_empty()) {
            spread::add(&mut bound, &mapping.bytes_by_node);
        }
    }
    let bytes = spread::total(&bound);
    (bytes >= LEAST_BYTES && !runs_on.is_empty()).then(|| {
        let nodes: NodeSet = bound.keys().copied().collect();
        Finding::remark(format!(
            "{} are bound to node {nodes} by a policy of the program (mbind or set_mempolicy), but no thread runs there: it stays there until the program, or its wrapper, asks otherwise",
            format_rounded(bytes)
        ))
    })
}

fn few_huge_pages(root: &Root, view: &ProcessView) -> Option<Finding> {
    let sizes = view.page_sizes?;
    let share = spread::ratio(sizes.transparent_huge, sizes.anonymous)?;
    if sizes.anonymous < LARGE_BYTES || share >= FEW_HUGE {
        return None;
    }
    let what = format!(
        "{} of its {} of anonymous memory are on huge pages: {} pages of 4 KiB where {} of 2 MiB \
         would do, so that random access walks page tables (measure what a walk costs here: \
         numalab latency --size {}M --pattern random --pages 4k, then --pages thp)",
        percent(share),
        format_rounded(sizes.anonymous),
        sizes.anonymous >> 12,
        sizes.anonymous.div_ceil(2 << 20),
        sizes.anonymous >> 20,
    );
    let enabled = "sys/kernel/mm/transparent_hugepage/enabled";
    let enabled = root.value(enabled).unwrap_or_default();
    match enabled.split_once('[').and_then(|(_, rest)| rest.split(']').next()) {
        Some("madvise") => Some(Finding::note(
            format!("{what}; transparent ones are for programs that ask (madvise)"),
            format!(
                "start it as GLIBC_TUNABLES=glibc.malloc.hugetlb=1 {0}, or to try: numalab knobs \
                 run thp_enabled=always -- {0}",
                view.command
            ),
        )),
        Some("never") => Some(Finding::note(
            format!("{what}; transparent ones are off"),
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        )),
        Some(_) => Some(Finding::note(
            format!("{what} although transparent ones are on: memory may be fragmented"),
            "numalab explore --nodes",
        )),
        None => None,
    }
}

fn swapped(view: &ProcessView) -> Option<Finding> {
    let sizes = view.page_sizes?;
    let share = spread::ratio(sizes.swapped, sizes.swapped.saturating_add(sizes.resident))?;
    (share >= MUCH_SWAP && sizes.swapped >= LEAST_BYTES).then(|| {
        Finding::remark(format!(
            "{} of its memory ({}) is swapped out; it comes back to the node of the thread that touches it",
            percent(share),
            format_rounded(sizes.swapped)
        ))
    })
}

/// Mappings that hold data of the process, largest first.
pub(crate) fn largest(view: &ProcessView) -> Vec<&super::MappingView> {
    let mut mappings: Vec<_> =
        view.mappings.iter().filter(|mapping| spread::total(&mapping.bytes_by_node) > 0).collect();
    mappings.sort_by_key(|mapping| {
        (
            mapping.kind == MappingKind::File,
            std::cmp::Reverse(spread::total(&mapping.bytes_by_node)),
        )
    });
    mappings
}
