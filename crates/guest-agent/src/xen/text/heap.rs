//! The output on Xen's console of the debug keys `u` (placement of memory) and `H` (its heap): `xl
//! debug-keys u; xl dmesg` (Xen `xen/common/numa.c`, `xen/common/page_alloc.c`).

use std::collections::BTreeMap;

use numalab_topology::{CpuId, NodeId};

/// Size in bytes of a page of Xen on x86.
pub const PAGE_BYTES: u64 = 4096;
/// The maximum number of outputs that are searched, from the last, for one with guests.
const MOST_LISTS: usize = 64;

/// A node in Xen's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XenNode {
    pub node: NodeId,
    /// Number of pages that the node spans, including holes.
    pub spanned_pages: u64,
    pub free_pages: u64,
}

/// The placement of a domain's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XenDomain {
    pub domain: u32,
    pub total_pages: u64,
    pub pages_by_node: BTreeMap<NodeId, u64>,
}

/// Free pages of a zone: zone z has the pages with numbers of z bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XenZone {
    pub node: NodeId,
    pub zone: u32,
    pub free_pages: u64,
}

/// The last output of each of Xen's debug keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XenDump {
    /// The nodes (`u`).
    pub nodes: Vec<XenNode>,
    /// The node of each cpu (`u`).
    pub cpus: BTreeMap<CpuId, NodeId>,
    /// The domains (`u`).
    pub domains: Vec<XenDomain>,
    /// The zones that have free pages (`H`).
    pub zones: Vec<XenZone>,
}

impl XenDump {
    /// Parses a console: the last output of each key counts, and other lines in between are
    /// skipped.
    pub fn read(text: &str) -> Self {
        let mut dump = Self::default();
        for line in text.lines() {
            let line = bare(line);
            if line.contains("dumping numa info") {
                dump = Self { zones: std::mem::take(&mut dump.zones), ..Self::default() };
            } else if line.contains("dumping heap info") {
                dump.zones.clear();
            } else {
                dump.take(line);
            }
        }
        dump
    }

    /// Reads a console that may have several outputs of the key `u`, as before and after guests
    /// were destroyed. Returns the last one that lists guests, or else the last; its position; and
    /// the number of outputs.
    pub fn read_with_guests(text: &str) -> (Self, usize, usize) {
        let begins = |line: &&str| line.contains("dumping numa info");
        let lists = text.lines().filter(begins).count();
        let upto = |list: usize| -> String {
            let mut seen = 0;
            let before_next = text.lines().take_while(|line| {
                seen += usize::from(begins(line));
                seen <= list
            });
            before_next.flat_map(|line| [line, "\n"]).collect()
        };
        let has_guests = |dump: &Self| dump.domains.iter().any(|domain| domain.domain > 0);
        let dumps = (1..=lists).rev().map(|list| (Self::read(&upto(list)), list, lists));
        dumps
            .take(MOST_LISTS)
            .find(|(dump, ..)| has_guests(dump))
            .unwrap_or_else(|| (Self::read(text), lists, lists))
    }

    /// Returns the pages of a domain by node; `None` for one that is not listed.
    pub fn pages_of(&self, domain: u32) -> Option<&BTreeMap<NodeId, u64>> {
        let known = self.domains.iter().find(|known| known.domain == domain);
        known.map(|known| &known.pages_by_node)
    }

    /// Returns true if there was no output of any key.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.domains.is_empty() && self.zones.is_empty()
    }

    fn take(&mut self, line: &str) {
        if let Some(node) = node(line) {
            self.nodes.push(node);
        } else if let Some(zone) = zone(line) {
            if zone.free_pages > 0 {
                self.zones.push(zone);
            }
        } else if let Some((first, last, node)) = cpus(line) {
            self.cpus.extend((first..=last).map(|cpu| (CpuId(cpu), node)));
        } else if let Some((domain, total_pages)) = domain(line) {
            self.domains.push(XenDomain { domain, total_pages, pages_by_node: BTreeMap::new() });
        } else if let (Some(domain), Some((node, pages))) =
            (self.domains.last_mut(), pages_on_node(line))
        {
            domain.pages_by_node.insert(node, pages);
        }
    }
}

/// Returns the line without `(XEN) `, time stamps before and after it, and the prefix of a log.
fn bare(line: &str) -> &str {
    let line = line.split_once("(XEN)").map_or(line, |(_, rest)| rest).trim_start();
    let stamped = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    stamped.map_or(line, |(_, rest)| rest).trim()
}

/// Parses `NODE1 start->262144 size->262144 free->219998`.
fn node(line: &str) -> Option<XenNode> {
    let mut words = line.strip_prefix("NODE")?.split_ascii_whitespace();
    let node = NodeId(words.next()?.parse().ok()?);
    let mut value = |name| words.next()?.strip_prefix(name)?.parse().ok();
    let _start: u64 = value("start->")?;
    Some(XenNode { node, spanned_pages: value("size->")?, free_pages: value("free->")? })
}

/// Parses `CPU0...1 -> NODE0` and `CPU4 -> NODE1`; at most the number of cpus that Xen supports.
fn cpus(line: &str) -> Option<(u32, u32, NodeId)> {
    let (cpus, node) = line.strip_prefix("CPU")?.split_once(" -> NODE")?;
    let (first, last) = cpus.split_once("...").unwrap_or((cpus, cpus));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (last < 4096).then_some((first, last, NodeId(node.parse().ok()?)))
}

/// Parses `Domain 1 (total: 32768):`, or `d1 (total: 32768):` since Xen 4.18.
fn domain(line: &str) -> Option<(u32, u64)> {
    let rest = line.strip_prefix("Domain ").or_else(|| line.strip_prefix('d'))?;
    let (domain, rest) = rest.split_once(" (total: ")?;
    Some((domain.parse().ok()?, rest.strip_suffix("):")?.parse().ok()?))
}

/// Parses `Node 0: 32768`.
fn pages_on_node(line: &str) -> Option<(NodeId, u64)> {
    let (node, pages) = line.strip_prefix("Node ")?.split_once(':')?;
    Some((NodeId(node.trim().parse().ok()?), pages.trim().parse().ok()?))
}

/// Parses `heap[node=0][zone=15] -> 16128 pages`.
fn zone(line: &str) -> Option<XenZone> {
    let (node, rest) = line.strip_prefix("heap[node=")?.split_once("][zone=")?;
    let (zone, rest) = rest.split_once("] -> ")?;
    let free_pages = rest.strip_suffix(" pages")?.parse().ok()?;
    Some(XenZone { node: NodeId(node.parse().ok()?), zone: zone.parse().ok()?, free_pages })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CONSOLE: &str = "\
(XEN) 'u' pressed -> dumping numa info (now = 1)
(XEN) NODE0 start->0 size->99 free->1
(XEN) [  107.548347] 'u' pressed -> dumping numa info (now = 107548177943)
(XEN) [  107.548484] NODE0 start->0 size->262144 free->162642
(XEN) [  107.548602] NODE1 start->262144 size->262144 free->219998
(XEN) [  107.570541] CPU0...1 -> NODE0
a guest speaks
(XEN) [  107.570604] CPU2 -> NODE1
(XEN) [  107.570777] Memory location of each domain:
(XEN) [  107.570926] Domain 0 (total: 100):
(XEN) [  107.636841]     Node 0: 60
(XEN) [  107.637033]     Node 1: 40
(XEN) d7 (total: 32768):
(XEN)     Node 1: 32768
(XEN) heap[node=0][zone=0] -> 0 pages
(XEN) heap[node=1][zone=19] -> 16128 pages
";

    #[test]
    fn the_last_output_counts_with_or_without_time_stamps() {
        let dump = XenDump::read(CONSOLE);
        assert_eq!(dump.nodes.len(), 2);
        assert_eq!(dump.nodes[1].free_pages, 219_998);
        assert_eq!(dump.cpus[&CpuId(1)], NodeId(0));
        assert_eq!(dump.cpus[&CpuId(2)], NodeId(1));
        assert_eq!(dump.domains[0].pages_by_node[&NodeId(1)], 40);
        assert_eq!(dump.pages_of(7), Some(&BTreeMap::from([(NodeId(1), 32_768)])));
        assert_eq!(dump.pages_of(8), None);
        assert_eq!((dump.domains[1].domain, dump.domains[1].total_pages), (7, 32_768));
        let zone = XenZone { node: NodeId(1), zone: 19, free_pages: 16_128 };
        assert_eq!(dump.zones, [zone]);
        assert!(XenDump::read("no xen here\n").is_empty());
    }

    #[test]
    fn logs_have_stamps_and_prefixes_before_the_lines_of_xen() {
        let expected = XenDump::read(CONSOLE);
        for prefix in ["[2026-11-29 10:00:00] ", "Nov 29 10:00:00 host xenconsoled[412]: "] {
            let log = CONSOLE.replace("(XEN)", &format!("{prefix}(XEN)"));
            assert_eq!(XenDump::read(&log), expected, "{prefix}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(?s)((CPU|NODE|Domain |heap\\[node=)\\PC{0,40}\n){0,4}", end in 0..CONSOLE.len()) {
            let _ = (XenDump::read(&text), XenDump::read(&CONSOLE[..end]));
        }
    }
}
