//! `/proc/PID/numa_maps` (numa(7)): the policy and the pages per node of every mapping.

use std::collections::BTreeMap;

use numalab_topology::NodeId;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NumaKind {
    /// The heap (`brk`).
    Heap,
    /// The stack of the first thread.
    Stack,
    /// Pages of a reserved pool.
    HugePool,
    #[default]
    Other,
}

/// A line of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumaMapping {
    /// The mapping's first address.
    pub start: u64,
    /// The policy as the kernel prints it: `default`, `bind:0`, `interleave:0-3`.
    pub policy: String,
    pub kind: NumaKind,
    /// The file that is mapped, if any.
    pub file: Option<String>,
    pub anonymous_pages: u64,
    pub pages_by_node: BTreeMap<NodeId, u64>,
    /// The size of these pages in bytes, as printed since Linux 3.14: the base size, or that of a
    /// reserved pool.
    pub printed_page_bytes: Option<u64>,
}

/// The sizes of pages on kernels that do not print them.
#[derive(Clone, Copy, Debug)]
pub struct PageBytes {
    /// The size of a base page, in bytes.
    pub base: u64,
    /// The size of a page of the usual reserved pool, in bytes.
    pub pool: u64,
}

/// Parses every mapping, skipping other lines.
pub fn numa_maps(text: &str) -> impl Iterator<Item = NumaMapping> {
    text.lines().filter_map(NumaMapping::parse)
}

impl NumaMapping {
    /// Returns the number of pages in memory.
    pub fn pages(&self) -> u64 {
        self.pages_by_node.values().fold(0, |sum, pages| sum.saturating_add(*pages))
    }

    /// Returns the size of the pages in bytes; one of these sizes if the kernel does not print it.
    pub fn page_bytes(&self, unprinted: PageBytes) -> u64 {
        self.printed_page_bytes.unwrap_or(match self.kind {
            NumaKind::HugePool => unprinted.pool,
            _ => unprinted.base,
        })
    }

    /// Returns the bytes in memory by node.
    pub fn bytes_by_node(&self, unprinted: PageBytes) -> impl Iterator<Item = (NodeId, u64)> {
        let page_bytes = self.page_bytes(unprinted);
        self.pages_by_node
            .iter()
            .map(move |(node, pages)| (*node, pages.saturating_mul(page_bytes)))
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace().peekable();
        let start = u64::from_str_radix(words.next()?, 16).ok()?;
        let mut policy = words.next()?.to_owned();
        // `prefer (many):0-1` and `weighted interleave:0-1` have a space, but are one policy.
        let is_rest = |word: &&str| word.starts_with("(many)") || word.starts_with("interleave");
        if let Some(rest) = words.next_if(is_rest) {
            policy = format!("{policy} {rest}");
        }
        let mut found = Self { start, policy, ..Self::default() };
        words.for_each(|word| found.take(word));
        Some(found)
    }

    fn take(&mut self, word: &str) {
        let Some((name, value)) = word.split_once('=') else {
            self.kind = match word {
                "heap" => NumaKind::Heap,
                "stack" => NumaKind::Stack,
                "huge" => NumaKind::HugePool,
                _ => self.kind,
            };
            return;
        };
        match (name, value.parse::<u64>().ok()) {
            ("file", _) => self.file = Some(unescaped(value)),
            ("anon", Some(pages)) => self.anonymous_pages = pages,
            ("kernelpagesize_kB", Some(kib)) => {
                self.printed_page_bytes = Some(kib.saturating_mul(1024));
            }
            (_, Some(pages)) => {
                if let Some(Ok(node)) = name.strip_prefix('N').map(str::parse) {
                    let sum = self.pages_by_node.entry(NodeId(node)).or_default();
                    *sum = sum.saturating_add(pages);
                }
            }
            _ => {}
        }
    }
}

/// Decodes spaces and other characters that the kernel prints as `\040` (seq_path).
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

    const TEXT: &str = "\
7f0000000000 bind:1 anon=1536 dirty=1536 active=0 N0=24 N1=1512 kernelpagesize_kB=4
7f1000000000 prefer (many):0-1 file=/anon_hugepage\\040(deleted) huge anon=2 dirty=2 N1=2 kernelpagesize_kB=2048
7f2000000000 weighted interleave:0-3 anon=4 N0=3 N1=1 kernelpagesize_kB=4
5581a2e0a000 default file=/bin/a\\134b mapped=2 N0=2 kernelpagesize_kB=4
5581a2e0b000 default heap anon=1 dirty=1 N0=1
7f3000000000 bind:3 file=/anon_hugepage huge anon=3 N3=3
nonsense
";
    const UNPRINTED: PageBytes = PageBytes { base: 8192, pool: 4 << 20 };

    #[test]
    fn a_line_has_policy_kind_pages_and_file() {
        let read: Vec<NumaMapping> = numa_maps(TEXT).collect();
        assert_eq!(read.len(), 6);
        let bytes = BTreeMap::from([(NodeId(0), 24 << 12), (NodeId(1), 1512 << 12)]);
        assert_eq!(read[0].policy, "bind:1");
        assert_eq!(read[0].bytes_by_node(UNPRINTED).collect::<BTreeMap<_, _>>(), bytes);
        assert_eq!((read[0].pages(), read[0].anonymous_pages), (1536, 1536));
        assert_eq!(read[1].policy, "prefer (many):0-1");
        assert_eq!(read[1].file.as_deref(), Some("/anon_hugepage (deleted)"));
        assert_eq!((read[1].kind, read[1].page_bytes(UNPRINTED)), (NumaKind::HugePool, 2 << 20));
        assert_eq!(read[2].policy, "weighted interleave:0-3");
        assert_eq!(read[3].file.as_deref(), Some("/bin/a\\b"));
        assert_eq!((read[4].kind, read[4].page_bytes(UNPRINTED)), (NumaKind::Heap, 8192));
        assert_eq!(read[5].page_bytes(UNPRINTED), 4 << 20);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(?s)([0-9a-f]{1,17} \\PC{0,60}\n){0,4}\\PC{0,40}") {
            for mapping in numa_maps(&text) {
                let _ = (mapping.pages(), mapping.bytes_by_node(UNPRINTED).count());
            }
        }
    }
}
