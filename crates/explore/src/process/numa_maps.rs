//! The mappings of a process, from `/proc/PID/numa_maps` (numa(7)).

use numalab_host::proc::{NumaKind, NumaMapping, PageBytes, numa_maps};
use numalab_record::explore::{MappingKind, MappingView};

/// Parses every mapping; the sizes are used if a kernel does not print them.
pub fn read(text: &str, unprinted: PageBytes) -> Vec<MappingView> {
    numa_maps(text).map(|line| mapping(line, unprinted)).collect()
}

/// Returns the address of the first mapping with fewer pages on nodes than anonymous ones: its line is
/// cut, as in a copy from a terminal.
pub fn first_cut(text: &str) -> Option<u64> {
    let mut mappings = numa_maps(text);
    let is_cut = |line: &NumaMapping| line.anonymous_pages > line.pages();
    mappings.find(is_cut).map(|line| line.start)
}

fn mapping(line: NumaMapping, unprinted: PageBytes) -> MappingView {
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
        page_bytes: line.page_bytes(unprinted),
        bytes_by_node: line.bytes_by_node(unprinted).collect(),
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

    #[test]
    fn a_written_private_file_mapping_is_private_memory() {
        let text = "7f9a86a1e000 default file=/lib/libc.so anon=4 dirty=4 N0=4 kernelpagesize_kB=4";
        assert!(read(text, SIZES)[0].own);
    }
}
