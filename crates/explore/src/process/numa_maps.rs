//! The mappings of a process, from `/proc/PID/numa_maps` (numa(7)).

use numalab_host::proc::{NumaKind, NumaMapping, bytes, numa_maps};
use numalab_host::{Root, base_page_bytes, base_page_bytes_of};
use numalab_record::explore::{MappingKind, MappingView};

/// The sizes of pages on kernels that do not print them (before Linux 3.14).
#[derive(Clone, Copy, Debug)]
pub struct PageBytes {
    /// The size of a base page, in bytes.
    pub base: u64,
    /// The size of a page of the usual reserved pool, in bytes.
    pub pool: u64,
}

impl PageBytes {
    /// Reads the sizes of a system or of its copy.
    pub fn of(root: &Root) -> Self {
        let base = base_page_bytes_of(root).unwrap_or_else(base_page_bytes);
        let memory = root.document("proc/meminfo").unwrap_or_default();
        let pool = bytes(&memory, "Hugepagesize").and_then(Result::ok);
        Self { base, pool: pool.unwrap_or(base) }
    }
}

/// Parses every mapping; the sizes are used if a kernel does not give them.
pub fn read(text: &str, page_bytes: PageBytes) -> Vec<MappingView> {
    let sized = |line: NumaMapping| match (line.kind, line.page_bytes) {
        (NumaKind::HugePool, bytes) if bytes == page_bytes.base => {
            NumaMapping { page_bytes: page_bytes.pool, ..line }
        }
        _ => line,
    };
    numa_maps(text, page_bytes.base).map(sized).map(mapping).collect()
}

/// Returns the address of the first mapping with fewer pages on nodes than anonymous ones: its line is
/// cut, as in a copy from a terminal.
pub fn first_cut(text: &str) -> Option<u64> {
    let mut mappings = numa_maps(text, 1);
    let is_cut = |line: &NumaMapping| line.anonymous_pages > line.pages();
    mappings.find(is_cut).map(|line| line.start)
}

fn mapping(line: NumaMapping) -> MappingView {
    let kind = match (line.kind, &line.file) {
        (NumaKind::Heap, _) => MappingKind::Heap,
        (NumaKind::Stack, _) => MappingKind::Stack,
        (NumaKind::HugePool, _) => MappingKind::HugePool,
        (NumaKind::Other, None) => MappingKind::Anonymous,
        (NumaKind::Other, Some(file)) if is_shared_memory(file) => MappingKind::Shared,
        (NumaKind::Other, Some(_)) => MappingKind::File,
    };
    let pages = line.pages();
    MappingView {
        start: line.start,
        size_bytes: None,
        kind,
        own: kind != MappingKind::File || (pages > 0 && line.anonymous_pages >= pages),
        page_bytes: line.page_bytes,
        bytes_by_node: line.bytes_by_node().collect(),
        policy: line.policy,
        file: line.file,
        transparent_huge_bytes: None,
    }
}

fn is_shared_memory(file: &str) -> bool {
    ["/dev/shm/", "/memfd:", "/SYSV", "/dev/zero"].iter().any(|start| file.starts_with(start))
}

#[cfg(test)]
mod tests {
    use numalab_topology::NodeId;

    use super::*;

    const SIZES: PageBytes = PageBytes { base: 4096, pool: 2 << 20 };

    #[test]
    fn the_kind_of_a_mapping_follows_from_its_words_and_its_file() {
        let text = "\
7f1000000000 bind:1 file=/anon_hugepage\\040(deleted) huge anon=2 N1=2 kernelpagesize_kB=2048
5581a2e0a000 default file=/bin/ab mapped=2 N0=2 kernelpagesize_kB=4
5581a2e0b000 default heap anon=1 dirty=1 N0=1 kernelpagesize_kB=4
7f2000000000 default file=/dev/shm/x dirty=1 N0=1 kernelpagesize_kB=4
7f3000000000 default anon=1 dirty=1 N0=1 kernelpagesize_kB=4
";
        let read: Vec<_> = read(text, SIZES).iter().map(|view| (view.kind, view.own)).collect();
        let expected = [
            (MappingKind::HugePool, true),
            (MappingKind::File, false),
            (MappingKind::Heap, true),
            (MappingKind::Shared, true),
            (MappingKind::Anonymous, true),
        ];
        assert_eq!(read, expected);
    }

    /// Regression: pages of a reserved pool counted as base pages.
    #[test]
    fn pages_of_a_pool_have_its_size_if_the_kernel_does_not_print_it() {
        let text = "7f00 default file=/anon_hugepage huge anon=3 N0=3\n7f10 default anon=3 N0=3\n";
        let sizes: Vec<_> =
            read(text, SIZES).iter().map(|view| view.bytes_by_node[&NodeId(0)]).collect();
        assert_eq!(sizes, [3 * (2 << 20), 3 * 4096]);
    }

    #[test]
    fn a_written_private_file_mapping_is_private_memory() {
        let text = "7f9a86a1e000 default file=/lib/libc.so anon=4 dirty=4 N0=4 kernelpagesize_kB=4";
        assert!(read(text, SIZES)[0].own);
    }
}
