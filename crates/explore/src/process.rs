//! Where the memory of one process lies, beside where its threads run.

pub(crate) mod advice;
pub mod numa_maps;
mod sampled;
mod threads;

use std::collections::BTreeMap;
use std::io::ErrorKind;

use numalab_host::proc::{address_range, smaps};
use numalab_host::{Root, base_page_bytes, read_machine};
use numalab_topology::Machine;
use serde::Serialize;

pub(crate) use advice::largest;
pub use numa_maps::{MappingKind, MappingView};
pub use numalab_host::proc::PageSizes;
pub use sampled::Sampled;
pub use threads::ThreadView;
pub(crate) use threads::allowed_nodes;

use crate::error::ExploreError;
use crate::finding::Finding;
use crate::spread::{self, BytesByNode};

/// Beyond so many mappings `smaps` is not read: the kernel takes about 4 us for each.
const MOST_SMAPS: usize = 20_000;

/// A process: where its memory lies and where its threads run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessView {
    /// Its number.
    pub process: u32,
    /// Its command line, or its name in brackets for a kernel thread.
    pub command: String,
    /// Its threads, by number.
    pub threads: Vec<ThreadView>,
    /// Its mappings, by address.
    pub mappings: Vec<MappingView>,
    /// Bytes in memory by node.
    pub bytes_by_node: BytesByNode,
    /// Bytes by node that are its own: all but unmodified pages of files.
    pub own_bytes_by_node: BytesByNode,
    /// What pages its memory is made of.
    pub page_sizes: Option<PageSizes>,
    /// A sample of single pages, where the kernel tells them.
    pub sampled: Option<Sampled>,
    /// The share of what its threads touch that is remote, 0 to 1, each thread by its time
    /// on a cpu.
    pub remote_share: Option<f64>,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// What is missing here and who could see it.
    pub unseen: Vec<String>,
}

/// Looks at a process of the root, without changing anything.
///
/// # Errors
/// [`ExploreError::NoProcess`], and [`ExploreError::Foreign`] for another user's process.
pub fn read_process(root: &Root, process: u32) -> Result<ProcessView, ExploreError> {
    let machine = read_machine(root)?.machine;
    read_process_on(root, process, &machine)
}

/// As [`read_process`], on a machine that was read before.
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
    let sampled = match sampled {
        Ok(sampled) if sampled.pages == 0 => None,
        Ok(sampled) => Some(sampled),
        Err(source) if !placed && page_sizes.is_some_and(|sizes| sizes.resident > 0) => {
            return Err(ExploreError::NoPlacement { process, source });
        }
        Err(error) => {
            unseen.push(format!("no pages were sampled: {error}"));
            None
        }
    };
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
        findings: Vec::new(),
        unseen,
    };
    view.take_samples_for_sums();
    view.leave_out_partial_samples();
    view.weigh_threads();
    view.findings = advice::findings(root, &view, machine);
    Ok(view)
}

impl ProcessView {
    /// A kernel without `numa_maps` leaves only the sample to go by.
    fn take_samples_for_sums(&mut self) {
        let (Some(sampled), Some(sizes)) = (&self.sampled, self.page_sizes) else { return };
        let found = spread::total(&sampled.pages_by_node);
        if !self.bytes_by_node.is_empty() || found == 0 {
            return;
        }
        let resident = sizes.resident.saturating_add(sizes.reserved_huge);
        let scale = |pages: u64| {
            u64::try_from(u128::from(pages) * u128::from(resident) / u128::from(found))
                .unwrap_or(resident)
        };
        self.bytes_by_node =
            sampled.pages_by_node.iter().map(|(node, pages)| (*node, scale(*pages))).collect();
        self.own_bytes_by_node = self.bytes_by_node.clone();
        self.unseen.push(format!(
            "without numa_maps the sums are estimates from {} pages of move_pages(2)",
            sampled.pages
        ));
    }

    /// NUMA balancing samples memory without a policy of its own only: what it saw says
    /// nothing of a thread that works in memory which a policy binds or spreads.
    fn leave_out_partial_samples(&mut self) {
        let own = spread::total(&self.own_bytes_by_node);
        let sampled = sum(&self.mappings, |mapping| mapping.own && mapping.policy == "default");
        let partial = spread::total(&sampled) < own / 2;
        if partial && self.threads.iter().any(|thread| !thread.touched_pages.is_empty()) {
            for thread in &mut self.threads {
                thread.touched_pages.clear();
            }
            self.unseen.push(
                "what each thread touches is not known: the system samples no memory that a \
                 policy places"
                    .to_owned(),
            );
        }
    }

    /// Gives each thread its remote share, and the process the mean by time on a cpu.
    fn weigh_threads(&mut self) {
        let (mut weighted, mut weights) = (0.0, 0.0);
        for thread in &mut self.threads {
            let touched = match thread.touched_pages.is_empty() {
                true => &self.own_bytes_by_node,
                false => &thread.touched_pages,
            };
            let share = thread.node.and_then(|node| spread::share_beside(touched, node));
            thread.remote_share = share;
            if let Some(share) = share {
                #[expect(clippy::cast_precision_loss, reason = "a weight")]
                let weight = (thread.cpu_ticks + 1) as f64;
                weighted += share * weight;
                weights += weight;
            }
        }
        self.remote_share = (weights > 0.0).then(|| weighted / weights);
    }
}

fn sum(mappings: &[MappingView], wanted: impl Fn(&MappingView) -> bool) -> BytesByNode {
    let mut sum = BytesByNode::new();
    for mapping in mappings.iter().filter(|mapping| wanted(mapping)) {
        spread::add(&mut sum, &mapping.bytes_by_node);
    }
    sum
}

/// The command line, else the name; `None` for no process.
pub(crate) fn command(root: &Root, process: u32) -> Option<String> {
    let arguments = root.arguments(process).unwrap_or_default();
    match arguments.is_empty() {
        false => Some(arguments.join(" ")),
        true => Some(format!("[{}]", root.value(&format!("proc/{process}/comm")).ok()?)),
    }
}

/// The mappings with their nodes; without nodes on a kernel that has no `numa_maps`.
fn mappings(root: &Root, process: u32, command: &str) -> Result<Vec<MappingView>, ExploreError> {
    let read = |name: &str| match root.document(&format!("proc/{process}/{name}")) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Err(ExploreError::Foreign { process, command: command.to_owned() })
        }
        other => Ok(other.ok()),
    };
    let maps = read("maps")?.unwrap_or_default();
    let length = |(start, end): (u64, u64)| Some((start, end.checked_sub(start)?));
    let lengths: BTreeMap<u64, u64> =
        maps.lines().filter_map(address_range).filter_map(length).collect();
    let mut mappings = match read("numa_maps")? {
        Some(text) => numa_maps::read(&text, base_page_bytes()),
        None => Vec::new(),
    };
    if mappings.is_empty() {
        let lines: String = lengths.keys().map(|start| format!("{start:x} unknown\n")).collect();
        mappings = numa_maps::read(&lines, base_page_bytes());
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
    unseen: &mut Vec<String>,
) -> Option<PageSizes> {
    if mappings.len() > MOST_SMAPS {
        unseen.push(format!(
            "huge pages are told in all and not by mapping: more than {MOST_SMAPS} mappings"
        ));
        return Some(sums(root, &format!("proc/{process}/smaps_rollup"))?.0);
    }
    let (sum, huge) = sums(root, &format!("proc/{process}/smaps"))?;
    for mapping in mappings {
        mapping.transparent_huge_bytes = huge.get(&mapping.start).copied();
    }
    Some(sum)
}

/// Sums over all mappings, and the bytes of each in transparent huge pages, by first address.
fn sums(root: &Root, file: &str) -> Option<(PageSizes, BTreeMap<u64, u64>)> {
    let mut sum = PageSizes::default();
    let mut huge = BTreeMap::new();
    for mapping in smaps(&root.document(file).ok()?) {
        sum += mapping.sizes;
        huge.insert(mapping.start, mapping.sizes.transparent_huge);
    }
    Some((sum, huge))
}
