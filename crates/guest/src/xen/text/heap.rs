//! The hypervisor's debug key `u`: nodes, cpus, and the frames of each domain by node
//! (`xen/arch/x86/numa.c`, `dump_numa`).

use std::collections::BTreeMap;

/// The last dump in a log of the hypervisor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeapDump {
    /// Free frames of each node.
    pub free: BTreeMap<u32, u64>,
    /// For each domain the frames on each node.
    pub domains: BTreeMap<u32, BTreeMap<u32, u64>>,
}

/// Reads the last whole dump of a log; `None` if there is none.
#[must_use]
pub fn heap_dump(log: &str) -> Option<HeapDump> {
    let start = log.rfind("dumping numa info")?;
    let mut dump = HeapDump::default();
    let mut domain = None;
    for line in log[start..].lines() {
        let line = without_time(line.trim_start_matches("(XEN)").trim());
        if let Some(rest) = line.strip_prefix("NODE") {
            let node = rest.split(' ').next().and_then(|text| text.parse().ok());
            let free = rest.split("free->").nth(1).and_then(|text| text.parse().ok());
            if let (Some(node), Some(free)) = (node, free) {
                dump.free.insert(node, free);
            }
        } else if let Some(rest) = line.strip_prefix("Domain ") {
            domain = rest.split(' ').next().and_then(|text| text.parse::<u32>().ok());
        } else if let Some((node, frames)) =
            line.strip_prefix("Node ").and_then(|rest| rest.split_once(": "))
            && let (Some(domain), Ok(node), Ok(frames)) = (domain, node.parse(), frames.parse())
        {
            dump.domains.entry(domain).or_default().insert(node, frames);
        }
    }
    (!dump.domains.is_empty()).then_some(dump)
}

/// With `console_timestamps` every line begins with the time in brackets.
fn without_time(line: &str) -> &str {
    let behind = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    behind.map_or(line, |(_, rest)| rest.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "\
(XEN) 'u' pressed -> dumping numa info (now = 387138822271)
(XEN) NODE0 start->0 size->524288 free->213991
(XEN) NODE1 start->1048576 size->524288 free->457689
(XEN) CPU0...3 -> NODE0
(XEN) Memory location of each domain:
(XEN) Domain 0 (total: 262144):
(XEN)     Node 0: 242514
(XEN)     Node 1: 19630
(XEN) Domain 12 (total: 32768):
(XEN)     Node 0: 0
(XEN)     Node 1: 32768
";

    #[test]
    fn frames_of_every_domain_are_read_by_node() {
        let dump = heap_dump(DUMP).unwrap();
        assert_eq!(dump.free, BTreeMap::from([(0, 213_991), (1, 457_689)]));
        assert_eq!(dump.domains[&12], BTreeMap::from([(0, 0), (1, 32_768)]));
        assert_eq!(dump.domains[&0][&1], 19_630);
    }

    #[test]
    fn a_log_with_times_is_the_same_dump() {
        let timed = DUMP.replace("(XEN) ", "(XEN) [  157.980065] ");
        assert_eq!(heap_dump(&timed), heap_dump(DUMP));
    }

    #[test]
    fn the_last_of_several_dumps_counts() {
        let later = DUMP.replace("32768\n", "1\n");
        let dump = heap_dump(&format!("{DUMP}{later}")).unwrap();
        assert_eq!(dump.domains[&12][&1], 1);
        assert_eq!(heap_dump("(XEN) nothing"), None);
    }

    #[test]
    fn a_dump_cut_anywhere_is_no_panic() {
        for end in 0..DUMP.len() {
            let _ = heap_dump(&DUMP[..end]);
        }
    }
}
