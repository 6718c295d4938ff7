//! `/proc/PID/numa_maps` (numa(7)): pages per node of every mapping.

use numalab_topology::NodeId;
use serde::Serialize;

use crate::spread::BytesByNode;

/// What a mapping is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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

/// Reads every mapping; lines that are none are passed over. `base_page_bytes` counts
/// where a kernel does not say `kernelpagesize_kB` (before Linux 3.14).
#[must_use]
pub fn read(text: &str, base_page_bytes: u64) -> Vec<MappingView> {
    text.lines().filter_map(|line| mapping(line, base_page_bytes)).collect()
}

fn mapping(line: &str, base_page_bytes: u64) -> Option<MappingView> {
    let mut words = line.split_ascii_whitespace().peekable();
    let start = u64::from_str_radix(words.next()?, 16).ok()?;
    let mut policy = words.next()?.to_owned();
    // `prefer (many):0-1` is one policy.
    if let Some(rest) = words.next_if(|word| word.starts_with("(many)")) {
        policy = format!("{policy} {rest}");
    }
    let mut found = Found { page_bytes: base_page_bytes, ..Found::default() };
    words.for_each(|word| found.take(word));
    Some(found.view(start, policy))
}

/// The words of a line so far.
#[derive(Default)]
struct Found {
    page_bytes: u64,
    file: Option<String>,
    kind: Option<MappingKind>,
    anonymous_pages: u64,
    pages: Vec<(NodeId, u64)>,
}

impl Found {
    fn take(&mut self, word: &str) {
        let Some((name, value)) = word.split_once('=') else {
            self.kind = match word {
                "heap" => Some(MappingKind::Heap),
                "stack" => Some(MappingKind::Stack),
                "huge" => Some(MappingKind::HugePool),
                _ => self.kind,
            };
            return;
        };
        let number = value.parse::<u64>().ok();
        match (name, number) {
            ("file", _) => self.file = Some(unescaped(value)),
            ("anon", Some(pages)) => self.anonymous_pages = pages,
            ("kernelpagesize_kB", Some(kib)) => self.page_bytes = kib.saturating_mul(1024),
            (_, Some(pages)) => {
                if let Some(Ok(node)) = name.strip_prefix('N').map(str::parse) {
                    self.pages.push((NodeId(node), pages));
                }
            }
            _ => {}
        }
    }

    fn view(self, start: u64, policy: String) -> MappingView {
        let kind = self.kind.unwrap_or(match &self.file {
            None => MappingKind::Anonymous,
            Some(file) if is_shared_memory(file) => MappingKind::Shared,
            Some(_) => MappingKind::File,
        });
        let pages = self.pages.iter().fold(0, |sum: u64, (_, pages)| sum.saturating_add(*pages));
        let bytes = |(node, pages): (NodeId, u64)| (node, pages.saturating_mul(self.page_bytes));
        MappingView {
            start,
            size_bytes: None,
            policy,
            kind,
            own: kind != MappingKind::File || (pages > 0 && self.anonymous_pages >= pages),
            file: self.file,
            page_bytes: self.page_bytes,
            bytes_by_node: self.pages.into_iter().map(bytes).collect(),
            transparent_huge_bytes: None,
        }
    }
}

fn is_shared_memory(file: &str) -> bool {
    ["/dev/shm/", "/memfd:", "/SYSV", "/dev/zero"].iter().any(|start| file.starts_with(start))
}

/// Blanks and the like come as `\040` (seq_path in the kernel).
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let digits = rest.get(at + 1..at + 4);
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if byte.is_ascii() => {
                out.push(char::from(byte));
                rest = &rest[at + 4..];
            }
            _ => {
                out.push('\\');
                rest = &rest[at + 1..];
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_tells_policy_kind_pages_and_file() {
        let text = "\
7f0000000000 bind:1 anon=1536 dirty=1536 active=0 N0=24 N1=1512 kernelpagesize_kB=4
7f1000000000 prefer (many):0-1 file=/anon_hugepage\\040(deleted) huge anon=2 dirty=2 N1=2 kernelpagesize_kB=2048
5581a2e0a000 default file=/bin/a\\134b mapped=2 N0=2 kernelpagesize_kB=4
5581a2e0b000 default heap anon=1 dirty=1 N0=1 kernelpagesize_kB=4
nonsense
";
        let read = read(text, 4096);
        assert_eq!(read.len(), 4);
        let bytes = BytesByNode::from([(NodeId(0), 24 << 12), (NodeId(1), 1512 << 12)]);
        assert_eq!((read[0].policy.as_str(), &read[0].bytes_by_node), ("bind:1", &bytes));
        assert_eq!(read[1].policy, "prefer (many):0-1");
        assert_eq!(read[1].file.as_deref(), Some("/anon_hugepage (deleted)"));
        assert_eq!(
            (read[1].kind, read[1].bytes_by_node[&NodeId(1)]),
            (MappingKind::HugePool, 4 << 20)
        );
        assert_eq!((read[2].file.as_deref(), read[2].own), (Some("/bin/a\\b"), false));
        assert_eq!((read[3].kind, read[3].own), (MappingKind::Heap, true));
    }

    #[test]
    fn a_private_file_mapping_that_was_written_is_the_processs_own() {
        let text = "7f9a86a1e000 default file=/lib/libc.so anon=4 dirty=4 N0=4 kernelpagesize_kB=4";
        assert!(read(text, 4096)[0].own);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(?s)([0-9a-f]{1,17} \\PC{0,60}\n){0,4}\\PC{0,40}") {
            let _ = read(&text, 4096);
        }
    }
}
