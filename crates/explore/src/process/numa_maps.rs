//! The mappings of a process, by `/proc/PID/numa_maps` (numa(7)).

use numalab_host::proc::{NumaKind, NumaMapping, numa_maps};
use serde::Serialize;

use crate::spread::BytesByNode;

/// What a mapping is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MappingKind {
    /// The heap (`brk`).
    Heap,
    /// The stack of the first thread.
    Stack,
    /// Anonymous memory.
    Anonymous,
    /// Memory shared with others: tmpfs, memfd, System V.
    Shared,
    /// Pages of a reserved pool.
    HugePool,
    /// A file.
    File,
}

impl MappingKind {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Heap => "heap",
            Self::Stack => "stack",
            Self::Anonymous => "anonymous",
            Self::Shared => "shared",
            Self::HugePool => "huge pool",
            Self::File => "file",
        }
    }
}

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MappingView {
    /// Its first address.
    pub start: u64,
    /// Its length in bytes, where `maps` tells it.
    pub size_bytes: Option<u64>,
    /// Its policy in the kernel's words: `default`, `bind:0`, `interleave:0-3`.
    pub policy: String,
    /// What it is made of.
    pub kind: MappingKind,
    /// The file behind it.
    pub file: Option<String>,
    /// Bytes in memory by node.
    pub bytes_by_node: BytesByNode,
    /// Of these, bytes that are the process's own: all but unmodified pages of files.
    pub own: bool,
    /// The size of its pages in bytes, transparent huge pages apart.
    pub page_bytes: u64,
    /// Bytes in transparent huge pages, where `smaps` was read.
    pub transparent_huge_bytes: Option<u64>,
}

/// Reads every mapping; `base_page_bytes` counts where a kernel does not tell the size.
#[must_use]
pub fn read(text: &str, base_page_bytes: u64) -> Vec<MappingView> {
    numa_maps(text, base_page_bytes).map(MappingView::from).collect()
}

impl From<NumaMapping> for MappingView {
    fn from(line: NumaMapping) -> Self {
        let kind = match (line.kind, &line.file) {
            (NumaKind::Heap, _) => MappingKind::Heap,
            (NumaKind::Stack, _) => MappingKind::Stack,
            (NumaKind::HugePool, _) => MappingKind::HugePool,
            (NumaKind::Other, None) => MappingKind::Anonymous,
            (NumaKind::Other, Some(file)) if is_shared_memory(file) => MappingKind::Shared,
            (NumaKind::Other, Some(_)) => MappingKind::File,
        };
        let pages = line.pages();
        Self {
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
}

fn is_shared_memory(file: &str) -> bool {
    ["/dev/shm/", "/memfd:", "/SYSV", "/dev/zero"].iter().any(|start| file.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_mapping_is_made_of_is_told_by_its_words_and_its_file() {
        let text = "\
7f1000000000 bind:1 file=/anon_hugepage\\040(deleted) huge anon=2 N1=2 kernelpagesize_kB=2048
5581a2e0a000 default file=/bin/ab mapped=2 N0=2 kernelpagesize_kB=4
5581a2e0b000 default heap anon=1 dirty=1 N0=1 kernelpagesize_kB=4
7f2000000000 default file=/dev/shm/x dirty=1 N0=1 kernelpagesize_kB=4
7f3000000000 default anon=1 dirty=1 N0=1 kernelpagesize_kB=4
";
        let read: Vec<_> = read(text, 4096).iter().map(|view| (view.kind, view.own)).collect();
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
    fn a_private_file_mapping_that_was_written_is_the_processs_own() {
        let text = "7f9a86a1e000 default file=/lib/libc.so anon=4 dirty=4 N0=4 kernelpagesize_kB=4";
        assert!(read(text, 4096)[0].own);
    }
}
