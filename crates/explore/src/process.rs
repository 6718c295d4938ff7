//! The nodes of one process's memory, compared with the cpus of its threads.

mod devices;
pub mod numa_maps;
mod sampled;
mod threads;

use std::collections::BTreeMap;
use std::io::ErrorKind;

use numalab_host::proc::{address_range, smaps};
use numalab_host::{Root, node_rooms, read_machine_and_devices, usual_page_bytes};
use numalab_record::explore::{
    BytesByNode, HugePageMode, HugeRoom, MappingView, PageSizes, ProcessView, Sampled, Unseen,
    spread,
};
use numalab_topology::{CpuSet, HugePagePool, Machine, Node, NodeId};

use crate::error::ExploreError;

/// The largest number of mappings for which `smaps` is read: the kernel takes about 4 us for each.
const MOST_SMAPS: usize = 20_000;

/// Reads a process of the root, without changing anything.
///
/// # Errors
/// [`ExploreError::NoProcess`], and [`ExploreError::Denied`], as for another user's process.
pub fn read_process(root: &Root, process: u32) -> Result<ProcessView, ExploreError> {
    let machine = read_machine_and_devices(root)?.machine;
    read_process_on(root, process, &machine)
}

/// Reads a process like [`read_process`], on a machine that was read before.
///
/// # Errors
/// As [`read_process`].
pub fn read_process_on(
    root: &Root,
    process: u32,
    machine: &Machine,
) -> Result<ProcessView, ExploreError> {
    let command = command(root, process).ok_or(ExploreError::NoProcess { process })?;
    let threads = threads::read(root, process, machine);
    let mut unseen = Vec::new();
    let mut mappings = mappings(root, process, &command)?;
    let page_sizes = page_sizes(root, process, &mut mappings, &mut unseen);
    let sampled = match root.is_live() {
        true => sampled::sample(process, &mappings),
        false => Ok(Sampled { pages: 0, pages_by_node: BytesByNode::new() }),
    };
    let placed = mappings.iter().any(|mapping| !mapping.bytes_by_node.is_empty());
    // Only a thread of the kernel, which has no command line, has no memory.
    let has_memory =
        || !mappings.is_empty() || !root.arguments(process).unwrap_or_default().is_empty();
    if !placed && !root.is_live() && has_memory() {
        return Err(ExploreError::NotCopied { process });
    }
    let sampled = match sampled {
        Ok(sampled) if sampled.pages == 0 => None,
        Ok(sampled) => Some(sampled),
        Err(source) if !placed && page_sizes.is_some_and(|sizes| sizes.resident > 0) => {
            return Err(ExploreError::NoPlacement { process, source });
        }
        Err(error) => {
            unseen.push(Unseen::PageSample { reason: error.to_string() });
            None
        }
    };
    let mapped = mappings.iter().filter_map(|mapping| mapping.file.as_deref());
    let devices = devices::read(root, process, mapped, machine);
    let mut view = ProcessView {
        process,
        command,
        threads,
        bytes_by_node: sum(&mappings, |_| true),
        own_bytes_by_node: sum(&mappings, |mapping| mapping.own),
        mappings,
        page_sizes,
        sampled,
        remote_share: None,
        devices,
        cpus_by_node: cpus_by_node(machine),
        room_by_node: node_rooms(root),
        huge_rooms: huge_rooms(machine),
        numa_balancing: root.value("proc/sys/kernel/numa_balancing").ok().map(|mode| mode != "0"),
        transparent_huge_pages: huge_page_mode(root),
        unseen,
    };
    take_samples_for_sums(&mut view);
    leave_out_partial_samples(&mut view);
    weigh_threads(&mut view);
    Ok(view)
}

/// Returns the free huge pages of each node that keeps pools.
fn huge_rooms(machine: &Machine) -> Vec<HugeRoom> {
    let of_node = |node: &Node| {
        let id = node.id;
        let room = move |pool: &HugePagePool| HugeRoom {
            node: id,
            page_bytes: pool.page_bytes,
            free: pool.free,
        };
        node.huge_pages.iter().map(room).collect::<Vec<_>>()
    };
    machine.nodes.iter().flat_map(of_node).collect()
}

pub(crate) fn cpus_by_node(machine: &Machine) -> BTreeMap<NodeId, CpuSet> {
    machine.nodes.iter().map(|node| (node.id, node.cpus.clone())).collect()
}

/// Parses the mode in a file such as `always [madvise] never`.
fn huge_page_mode(root: &Root) -> Option<HugePageMode> {
    let enabled = root.value("sys/kernel/mm/transparent_hugepage/enabled").ok()?;
    match enabled.split_once('[')?.1.split(']').next()? {
        "madvise" => Some(HugePageMode::Madvise),
        "never" => Some(HugePageMode::Never),
        _ => Some(HugePageMode::Always),
    }
}

/// Uses the samples in place of sums, because a kernel without `numa_maps` gives nothing else.
fn take_samples_for_sums(view: &mut ProcessView) {
    let (Some(sampled), Some(sizes)) = (&view.sampled, view.page_sizes) else { return };
    let found = spread::total(&sampled.pages_by_node);
    if !view.bytes_by_node.is_empty() || found == 0 {
        return;
    }
    let resident = sizes.resident.saturating_add(sizes.reserved_huge);
    let scale = |pages: u64| {
        u64::try_from(u128::from(pages) * u128::from(resident) / u128::from(found))
            .unwrap_or(resident)
    };
    view.bytes_by_node =
        sampled.pages_by_node.iter().map(|(node, pages)| (*node, scale(*pages))).collect();
    view.own_bytes_by_node = view.bytes_by_node.clone();
    view.unseen.push(Unseen::SumsByMapping { pages: sampled.pages });
}

/// Drops incomplete samples: NUMA balancing samples only memory without its own policy, so the
/// samples say nothing about a thread that works in memory with a policy that binds or interleaves.
fn leave_out_partial_samples(view: &mut ProcessView) {
    let own = spread::total(&view.own_bytes_by_node);
    let sampled = sum(&view.mappings, |mapping| mapping.own && mapping.policy == "default");
    let partial = spread::total(&sampled) < own / 2;
    if partial && view.threads.iter().any(|thread| !thread.touched_pages.is_empty()) {
        for thread in &mut view.threads {
            thread.touched_pages.clear();
        }
        view.unseen.push(Unseen::TouchedByThread);
    }
}

/// Sets the remote share of each thread, and the mean by cpu time for the process.
fn weigh_threads(view: &mut ProcessView) {
    let (mut weighted, mut weights) = (0.0, 0.0);
    for thread in &mut view.threads {
        let touched = match thread.touched_pages.is_empty() {
            true => &view.own_bytes_by_node,
            false => &thread.touched_pages,
        };
        let share = thread.node.and_then(|node| spread::share_elsewhere(touched, node));
        thread.remote_share = share;
        if let Some(share) = share {
            #[expect(clippy::cast_precision_loss, reason = "a weight")]
            let weight = (thread.cpu_ticks + 1) as f64;
            weighted += share * weight;
            weights += weight;
        }
    }
    view.remote_share = (weights > 0.0).then(|| weighted / weights);
}

fn sum(mappings: &[MappingView], wanted: impl Fn(&MappingView) -> bool) -> BytesByNode {
    let mut sum = BytesByNode::new();
    for mapping in mappings.iter().filter(|mapping| wanted(mapping)) {
        spread::add(&mut sum, &mapping.bytes_by_node);
    }
    sum
}

/// Returns the command line, or the name if it is empty; `None` if no such process.
fn command(root: &Root, process: u32) -> Option<String> {
    let arguments = root.arguments(process).unwrap_or_default();
    match arguments.is_empty() {
        false => Some(arguments.join(" ")),
        true => Some(format!("[{}]", root.value(&format!("proc/{process}/comm")).ok()?)),
    }
}

/// Returns the mappings with their nodes, or without nodes on a kernel that has no `numa_maps`.
fn mappings(root: &Root, process: u32, command: &str) -> Result<Vec<MappingView>, ExploreError> {
    let read = |name: &str| match root.document(&format!("proc/{process}/{name}")) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Err(ExploreError::Denied { process, command: command.to_owned() })
        }
        // Too large: a part of the mappings would be shown as all of them.
        Err(source) if source.kind() == ErrorKind::InvalidInput => {
            let path = root.directory().join(format!("proc/{process}/{name}"));
            Err(ExploreError::Unreadable { path, source })
        }
        other => Ok(other.ok()),
    };
    let maps = read("maps")?.unwrap_or_default();
    let length = |(start, end): (u64, u64)| Some((start, end.checked_sub(start)?));
    let lengths: BTreeMap<u64, u64> =
        maps.lines().filter_map(address_range).filter_map(length).collect();
    let text = read("numa_maps")?.unwrap_or_default();
    if let Some(start) = numa_maps::first_cut(&text).filter(|_| !root.is_live()) {
        return Err(ExploreError::Cut { process, start });
    }
    let page_bytes = usual_page_bytes(root);
    let mut mappings = numa_maps::read(&text, page_bytes);
    if mappings.is_empty() {
        let lines: String = lengths.keys().map(|start| format!("{start:x} unknown\n")).collect();
        mappings = numa_maps::read(&lines, page_bytes);
    }
    for mapping in &mut mappings {
        mapping.size_bytes = lengths.get(&mapping.start).copied();
    }
    Ok(mappings)
}

fn page_sizes(
    root: &Root,
    process: u32,
    mappings: &mut [MappingView],
    unseen: &mut Vec<Unseen>,
) -> Option<PageSizes> {
    if mappings.len() > MOST_SMAPS {
        unseen.push(Unseen::HugePagesByMapping { most_mappings: MOST_SMAPS });
        return Some(sums(root, &format!("proc/{process}/smaps_rollup"))?.0);
    }
    let (sum, huge) = sums(root, &format!("proc/{process}/smaps"))?;
    for mapping in mappings {
        mapping.transparent_huge_bytes = huge.get(&mapping.start).copied();
    }
    Some(sum)
}

/// Returns the sums over all mappings, and the bytes of each in transparent huge pages, by first
/// address.
fn sums(root: &Root, file: &str) -> Option<(PageSizes, BTreeMap<u64, u64>)> {
    let mut sum = PageSizes::default();
    let mut huge = BTreeMap::new();
    for mapping in smaps(&root.document(file).ok()?) {
        sum += mapping.sizes;
        huge.insert(mapping.start, mapping.sizes.transparent_huge);
    }
    Some((sum, huge))
}
