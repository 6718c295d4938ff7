//! `xen-mfndump dump-p2m DOMAIN`: the machine frame of each of a domain's frames.

use std::collections::BTreeMap;

use crate::xen::NodeRange;

const FRAME_BYTES: u64 = 4096;

/// A domain's frames by node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameCount {
    pub by_node: BTreeMap<u32, u64>,
    /// Frames with an address outside every node's memory.
    pub elsewhere: u64,
}

/// Counts the frames of a dump by the node of their address.
pub fn count_frames(dump: &str, ranges: &[NodeRange]) -> FrameCount {
    let mut count = FrameCount::default();
    for line in dump.lines() {
        let Some((_, rest)) = line.split_once("mfn=0x") else { continue };
        let digits = rest.split(|c: char| !c.is_ascii_hexdigit()).next().unwrap_or_default();
        let Ok(frame) = u64::from_str_radix(digits, 16) else { continue };
        let address = frame.saturating_mul(FRAME_BYTES);
        let range = ranges.iter().find(|range| (range.start..range.end).contains(&address));
        match range {
            Some(range) => *count.by_node.entry(range.node).or_default() += 1,
            None => count.elsewhere += 1,
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGES: [NodeRange; 2] = [
        NodeRange { node: 0, start: 0, end: 0x8000_0000 },
        NodeRange { node: 1, start: 0x1_0000_0000, end: 0x1_8000_0000 },
    ];

    #[test]
    fn frames_are_counted_on_the_node_of_their_address() {
        let dump = " --- Dumping P2M for domain 1 ---\n Guest Width: 8, PT Levels: 4\n  \
                    pfn=0x0 ==> mfn=0x64200 (type 0x0)\n  pfn=0x1 ==> mfn=0x100000 (type 0x0)\n  \
                    pfn=0x2 ==> mfn=0x100001 (type 0x10000000)\n  pfn=0x3 ==> mfn=0x80000 (type 0x0)\n";
        let count = count_frames(dump, &RANGES);
        assert_eq!(count.by_node, BTreeMap::from([(0, 1), (1, 2)]));
        assert_eq!(count.elsewhere, 1);
    }

    #[test]
    fn lines_without_a_frame_are_not_counted() {
        assert_eq!(count_frames("mfn=0x\nmfn=0xzz\npfn=0x1\n", &RANGES), FrameCount::default());
    }
}
