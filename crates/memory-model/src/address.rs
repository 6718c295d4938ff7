//! Maps the address that QEMU reports to the node of the memory.

use crate::machine::{Machine, Node};
use alloc::vec::Vec;

/// Below this address q35 reserves room for PCI devices and firmware (`hw/i386/pc_q35.c`): a
/// machine with [`Q35_SPLIT_FROM`] bytes or more keeps only [`Q35_LOW`] of its memory below the
/// hole.
const Q35_SPLIT_FROM: u64 = 0xb000_0000;
const Q35_LOW: u64 = 2 << 30;
/// Address at which memory continues above the hole.
const Q35_HIGH: u64 = 4 << 30;
/// Upper end of memory. Memory that would end above it may be moved to 1 TiB on AMD processors: 32
/// GiB for devices behind it would overlap the addresses that their IOMMU reserves (`hw/i386/pc.c`,
/// `pc_memory_init`).
pub const Q35_END: u64 = 0xfd_0000_0000 - (32 << 30);

/// Start and end (exclusive) of a range of addresses.
pub type AddressRange = (u64, u64);

/// Returns the address ranges of nodes with these memory sizes on QEMU's q35 machine; `None` if
/// they would end above [`Q35_END`].
pub fn q35_ranges(memory_bytes: &[u64]) -> Option<Vec<Vec<AddressRange>>> {
    let total = memory_bytes.iter().try_fold(0_u64, |sum, &bytes| sum.checked_add(bytes))?;
    let low = if total >= Q35_SPLIT_FROM { Q35_LOW } else { total };
    if total.checked_add(Q35_HIGH)? > Q35_END {
        return None;
    }
    let mut begin = 0;
    let place = |&bytes: &u64| {
        let (start, end) = (begin, begin + bytes);
        begin = end;
        let below = (start.min(low), end.min(low));
        let above = (start.max(low) - low + Q35_HIGH, end.max(low) - low + Q35_HIGH);
        [below, above].into_iter().filter(|range| range.0 < range.1).collect()
    };
    Some(memory_bytes.iter().map(place).collect())
}

/// Base of the memory of an aarch64 `virt` machine, which is contiguous (`hw/arm/virt.c`).
const VIRT_BASE: u64 = 1 << 30;

/// Returns the address ranges of nodes with these memory sizes on QEMU's `virt` machine; `None`
/// beyond 64 bits.
pub fn virt_ranges(memory_bytes: &[u64]) -> Option<Vec<Vec<AddressRange>>> {
    let mut begin = VIRT_BASE;
    let place = |&bytes: &u64| {
        let start = begin;
        begin = start.checked_add(bytes)?;
        Some(if bytes > 0 { alloc::vec![(start, begin)] } else { Vec::new() })
    };
    memory_bytes.iter().map(place).collect()
}

/// Bytes that QEMU reserves before the windows for the registers of CXL host bridges.
const CXL_REGISTERS: u64 = 1 << 20;
/// Alignment of windows onto CXL memory (CXL 3.1, section 9.18.1.3).
pub const CXL_WINDOW_UNIT: u64 = 256 << 20;

/// Returns the windows onto CXL memory of these sizes on a q35 machine with `own_bytes` of other
/// memory (`hw/i386/pc.c`, `pc_memory_init`); `None` if they would end above [`Q35_END`].
pub fn q35_cxl_windows(own_bytes: u64, sizes: &[u64]) -> Option<Vec<AddressRange>> {
    let low = if own_bytes >= Q35_SPLIT_FROM { Q35_LOW } else { own_bytes };
    let own_end = Q35_HIGH.checked_add(own_bytes - low)?;
    let mut start =
        own_end.checked_add(CXL_REGISTERS)?.checked_next_multiple_of(CXL_WINDOW_UNIT)?;
    let window = |&bytes: &u64| {
        let end = start.checked_add(bytes).filter(|&end| end <= Q35_END)?;
        Some((core::mem::replace(&mut start, end), end))
    };
    sizes.iter().map(window).collect()
}

/// The kind of address that QEMU reports for an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// The guest-physical address: QEMU 8.2 and later.
    Physical,
    /// QEMU before 8.2: the offset in QEMU's list of memory blocks plus the offset in the machine's
    /// memory. With one block per node, in order, each of the two is the total size of the
    /// preceding nodes.
    Blocks,
}

impl Addressing {
    /// Returns the kind reported by this version of QEMU, or by this version of the plugin
    /// interface if the former is unknown.
    pub fn of_qemu(version: Option<&str>, interface: i32) -> Self {
        let old = match version.and_then(major_and_minor) {
            Some(version) => version < (8, 2),
            None => interface < 2,
        };
        if old { Self::Blocks } else { Self::Physical }
    }
}

fn major_and_minor(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// The nodes by address.
#[derive(Clone, Debug)]
pub struct AddressMap {
    /// Start, end (exclusive) and position of the node, sorted by start.
    ranges: Vec<(u64, u64, usize)>,
    addressing: Addressing,
}

impl AddressMap {
    /// Creates the map of a machine.
    pub fn new(machine: &Machine, addressing: Addressing) -> Self {
        let mut ranges = match addressing {
            Addressing::Physical => physical(&machine.nodes),
            Addressing::Blocks => blocks(&machine.nodes),
        };
        ranges.sort_unstable();
        Self { ranges, addressing }
    }

    /// Reports whether a device's address is memory of a node, as CXL memory is.
    pub fn is_memory(&self, device_address: u64) -> bool {
        self.addressing == Addressing::Physical && self.node(device_address).is_some()
    }

    /// Returns the position of the node that an address belongs to.
    #[inline]
    pub fn node(&self, address: u64) -> Option<usize> {
        let after = self.ranges.partition_point(|range| range.0 <= address);
        let &(_, end, node) = self.ranges.get(after.checked_sub(1)?)?;
        (address < end).then_some(node)
    }
}

fn physical(nodes: &[Node]) -> Vec<(u64, u64, usize)> {
    let of_node = |(at, node): (usize, &Node)| {
        let with_node = |&(start, end): &(u64, u64)| (start, end, at);
        node.ranges.iter().map(with_node).collect::<Vec<_>>()
    };
    nodes.iter().enumerate().flat_map(of_node).collect()
}

fn blocks(nodes: &[Node]) -> Vec<(u64, u64, usize)> {
    let mut before = 0;
    let mut ranges = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        let bytes: u64 = node.ranges.iter().map(|range| range.1 - range.0).sum();
        if bytes > 0 {
            ranges.push((2 * before, 2 * before + bytes, at));
        }
        before += bytes;
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::machine_of;

    const GIB: u64 = 1 << 30;

    #[test]
    fn windows_onto_cxl_memory_follow_the_memory_of_the_machine() {
        let windows = |own| q35_cxl_windows(own, &[512 << 20, GIB]).unwrap();
        let first = 4 * GIB + CXL_WINDOW_UNIT;
        assert_eq!(
            windows(GIB),
            [(first, first + GIB / 2), (first + GIB / 2, first + 3 * GIB / 2)]
        );
        assert_eq!(windows(4 * GIB)[0].0, 6 * GIB + CXL_WINDOW_UNIT);
        assert_eq!(q35_cxl_windows(GIB, &[Q35_END]), None);
    }

    #[test]
    fn a_device_is_memory_only_where_addresses_are_physical() {
        let machine = machine_of("cpus=0,memory=1G,distances=10");
        let map = |addressing| AddressMap::new(&machine, addressing);
        assert!(map(Addressing::Physical).is_memory(GIB - 1));
        assert!(!map(Addressing::Physical).is_memory(GIB));
        assert!(!map(Addressing::Blocks).is_memory(GIB - 1));
    }

    #[test]
    fn q35_leaves_room_for_devices_below_four_gibibytes() {
        let ranges = |memory: &[u64]| q35_ranges(memory).unwrap();
        assert_eq!(ranges(&[GIB, GIB]), [[(0, GIB)], [(GIB, 2 * GIB)]]);
        let four = ranges(&[GIB, 2 * GIB, 0, GIB]);
        assert_eq!(four[1], [(GIB, 2 * GIB), (4 * GIB, 5 * GIB)]);
        assert!(four[2].is_empty());
        assert_eq!(four[3], [(5 * GIB, 6 * GIB)]);
    }

    #[test]
    fn the_hole_begins_where_qemu_splits_memory_and_all_ends_below_a_tebibyte() {
        let pieces = |bytes| q35_ranges(&[bytes]).map(|nodes| nodes[0].len());
        assert_eq!(pieces(Q35_SPLIT_FROM - (1 << 20)), Some(1));
        assert_eq!(pieces(Q35_SPLIT_FROM), Some(2));
        assert_eq!(pieces(Q35_END - Q35_HIGH), Some(2));
        assert_eq!(pieces(Q35_END - Q35_HIGH + 1), None);
        assert_eq!(q35_ranges(&[u64::MAX, 1]), None);
        assert_eq!(q35_cxl_windows(u64::MAX, &[]), None);
    }

    proptest::proptest! {
        #[test]
        fn ranges_are_as_long_as_the_memory_and_do_not_overlap(
            mib in proptest::collection::vec(0_u64..6000, 1..8),
        ) {
            let bytes: Vec<u64> = mib.iter().map(|mib| mib << 20).collect();
            let ranges = q35_ranges(&bytes).unwrap();
            for (node, bytes) in ranges.iter().zip(&bytes) {
                proptest::prop_assert_eq!(node.iter().map(|range| range.1 - range.0).sum::<u64>(), *bytes);
            }
            let all: Vec<AddressRange> = ranges.concat();
            proptest::prop_assert!(all.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        }
    }

    #[test]
    fn an_address_between_ranges_is_on_no_node() {
        let machine = machine_of("cpus=0.1,memory=3G.1G,distances=10.20/20.10");
        let map = AddressMap::new(&machine, Addressing::Physical);
        let expected = [
            (0, Some(0)),
            (2 * GIB - 1, Some(0)),
            (2 * GIB, None),
            (4 * GIB, Some(0)),
            (5 * GIB, Some(1)),
            (6 * GIB, None),
            (u64::MAX, None),
        ];
        for (address, node) in expected {
            assert_eq!(map.node(address), node, "{address:#x}");
        }
    }

    #[test]
    fn the_version_of_qemu_says_which_address_it_gives() {
        use Addressing::{Blocks, Physical};
        let cases =
            [("7.2.22", Blocks), ("8.1.0", Blocks), ("8.2.2", Physical), ("10.0.2", Physical)];
        for (version, addressing) in cases {
            assert_eq!(Addressing::of_qemu(Some(version), 1), addressing, "{version}");
        }
        assert_eq!(Addressing::of_qemu(None, 1), Blocks);
        assert_eq!(Addressing::of_qemu(Some("git"), 4), Physical);
    }

    #[test]
    fn qemu_7_shows_each_nodes_memory_at_twice_its_place() {
        let machine = machine_of(
            "cpus=0.1,memory=1G.1G.0.2G,distances=10.20.20.20/20.10.20.20/20.20.10.20/20.20.20.10",
        );
        let map = AddressMap::new(&machine, Addressing::Blocks);
        assert_eq!(map.node(GIB - 1), Some(0));
        assert_eq!(map.node(GIB), None);
        assert_eq!(map.node(2 * GIB), Some(1));
        assert_eq!(map.node(4 * GIB), Some(3));
        assert_eq!(map.node(6 * GIB - 1), Some(3));
        assert_eq!(map.node(6 * GIB), None);
    }

    #[test]
    fn a_virt_machine_has_its_memory_in_one_piece_from_1_gib_on() {
        let ranges = virt_ranges(&[3 << 30, 0, 1 << 30]).unwrap();
        assert_eq!(ranges, [vec![(1 << 30, 4 << 30)], vec![], vec![(4 << 30, 5 << 30)]]);
        assert_eq!(virt_ranges(&[u64::MAX]), None);
    }
}
