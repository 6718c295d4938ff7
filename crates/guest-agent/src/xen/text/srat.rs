//! The machine's SRAT as read by the hypervisor, from its log (`xen/arch/x86/srat.c`).

use crate::xen::NodeRange;

/// Parses the memory ranges of a log's lines `SRAT: Node 0 PXM 0 [START, LAST]`.
pub fn srat_ranges(log: &[String]) -> Vec<NodeRange> {
    log.iter().filter_map(|line| range(line)).collect()
}

fn range(line: &str) -> Option<NodeRange> {
    let rest = line.split_once("SRAT: Node ")?.1;
    let (node, rest) = rest.split_once(' ')?;
    let (start, last) = rest.split_once('[')?.1.split_once(']')?.0.split_once(", ")?;
    let address = |text: &str| u64::from_str_radix(text, 16).ok();
    let end = address(last)?.checked_add(1)?;
    Some(NodeRange { node: node.parse().ok()?, start: address(start)?, end })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_and_other_lines_are_ignored() {
        let log = [
            "(XEN) ACPI: SRAT 7FFE22B0, 01A0 (r1 BOCHS  BXPC            1 BXPC        1)",
            "(XEN) SRAT: Node 2 PXM 2 [0000000100000000, 000000013fffffff]",
            "(XEN) SRAT: Node 3 PXM 3 [zz, 1]",
            "(XEN) SRAT: Node 3 PXM 3 [0000000000000000, ffffffffffffffff]",
        ];
        let log: Vec<String> = log.map(ToOwned::to_owned).to_vec();
        let expected = NodeRange { node: 2, start: 0x1_0000_0000, end: 0x1_4000_0000 };
        assert_eq!(srat_ranges(&log), [expected]);
    }
}
