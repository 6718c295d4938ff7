//! The files that child processes read, and the nodes of the pages that they map.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use numalab_host::proc::{descendants, memory_text, numa_maps};
use numalab_host::{Root, data_files, usual_page_bytes};
use numalab_topology::NodeId;

/// The size below which the place of a file's pages does not matter.
pub(super) const LEAST_BYTES: u64 = 1 << 20;
const SYSTEM: [&str; 6] = ["/usr", "/lib", "/lib64", "/etc", "/proc", "/sys"];
/// The first and the longest interval between looks at the processes; it doubles from look to look.
const INTERVALS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(250)];

/// The files that a run reads, and the bytes of each that it maps, by node.
pub type FilesSeen = BTreeMap<PathBuf, BTreeMap<NodeId, u64>>;

/// Runs work, and returns the large files that child processes have open or map meanwhile.
pub(super) fn reading<T>(work: impl FnOnce() -> T) -> (T, FilesSeen) {
    watched(work, |found, process| {
        found.extend(data_files(process).into_iter().map(|path| (path, BTreeMap::new())));
    })
}

/// Runs work, and returns the large files that child processes read meanwhile, with the nodes of what
/// they map.
pub fn reading_from_nodes<T>(work: impl FnOnce() -> T) -> (T, FilesSeen) {
    let sizes = usual_page_bytes(&Root::live());
    watched(work, |found, process| {
        for path in data_files(process) {
            found.entry(path).or_default();
        }
        let text = memory_text(process, "numa_maps").unwrap_or_default();
        for mapping in numa_maps(&text) {
            let name = mapping.file.as_ref().map(Path::new);
            let Some(nodes) = name.and_then(|name| found.get_mut(name)) else { continue };
            for (node, bytes) in mapping.bytes_by_node(sizes) {
                let most = nodes.entry(node).or_default();
                *most = bytes.max(*most);
            }
        }
    })
}

/// Runs work while a thread looks at its processes again and again.
fn watched<T>(
    work: impl FnOnce() -> T,
    look: impl Fn(&mut FilesSeen, u32) + Sync,
) -> (T, FilesSeen) {
    let (is_done, begun) = (AtomicBool::new(false), SystemTime::now());
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let (mut found, mut interval) = (FilesSeen::new(), INTERVALS[0]);
            loop {
                let is_last = is_done.load(Ordering::Relaxed);
                descendants(std::process::id()).for_each(|process| look(&mut found, process));
                if is_last {
                    return found;
                }
                thread::park_timeout(interval);
                interval = (2 * interval).min(INTERVALS[1]);
            }
        });
        let done = work();
        is_done.store(true, Ordering::Relaxed);
        watch.thread().unpark();
        let mut found = watch.join().unwrap_or_default();
        found.retain(|path, _| is_input(path, begun));
        (done, found)
    })
}

/// Returns true for a large file that the run did not write itself, and that is not a system file,
/// which other programs use too.
fn is_input(path: &Path, begun: SystemTime) -> bool {
    if SYSTEM.iter().any(|directory| path.starts_with(directory)) {
        return false;
    }
    let is_older = |meta: &fs::Metadata| meta.modified().is_ok_and(|written| written < begun);
    fs::metadata(path).is_ok_and(|meta| meta.len() >= LEAST_BYTES && is_older(&meta))
}
