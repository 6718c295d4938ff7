//! Where QEMU's `q35` puts the memory of each node in the guest's physical addresses
//! (QEMU `hw/i386/pc_q35.c`, `pc_q35_init`, and `hw/i386/pc.c`, `pc_memory_init`).

const GIB: u64 = 1 << 30;
/// From so much memory on, only 2 GiB of it lie below the devices' addresses.
const SPLIT_FROM: u64 = 0xb000_0000;
const BELOW_DEVICES: u64 = 2 * GIB;
const ABOVE_DEVICES: u64 = 4 * GIB;
/// Beyond this, QEMU moves all upper memory on processors of AMD (a hole below 1 TiB).
const HIGHEST_END: u64 = 0xfd_0000_0000 - 32 * GIB;

/// The first address and the one behind the last of each node's memory, nodes in order; `None` if the last lies so high
/// that QEMU lays them out otherwise.
pub(crate) fn node_ranges(node_bytes: &[u64]) -> Option<Vec<Vec<[u64; 2]>>> {
    let total = node_bytes.iter().try_fold(0_u64, |sum, bytes| sum.checked_add(*bytes))?;
    let below = if total >= SPLIT_FROM { BELOW_DEVICES } else { total };
    if total.checked_add(ABOVE_DEVICES)? > HIGHEST_END {
        return None;
    }
    let mut start = 0;
    let mut all = Vec::new();
    for bytes in node_bytes {
        let end = start + bytes;
        let parts = [
            [start, end.min(below)],
            [start, end].map(|address| address.max(below) - below + ABOVE_DEVICES),
        ];
        all.push(parts.into_iter().filter(|[start, end]| start < end).collect());
        start = end;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_fits_below_the_devices_is_in_one_piece() {
        let ranges = node_ranges(&[GIB, 0, GIB / 2]).unwrap();
        assert_eq!(ranges, [vec![[0, GIB]], vec![], vec![[GIB, GIB + GIB / 2]]]);
    }

    #[test]
    fn a_node_across_the_hole_has_two_ranges() {
        let ranges = node_ranges(&[3 * GIB, GIB]).unwrap();
        assert_eq!(ranges, [vec![[0, 2 * GIB], [4 * GIB, 5 * GIB]], vec![[5 * GIB, 6 * GIB]]]);
        let ranges = node_ranges(&[GIB; 4]).unwrap();
        let starts: Vec<u64> = ranges.iter().map(|node| node[0][0] / GIB).collect();
        assert_eq!(starts, [0, 1, 4, 5]);
    }

    #[test]
    fn the_hole_begins_where_qemu_splits_memory() {
        let one = |bytes| node_ranges(&[bytes]).unwrap()[0].len();
        assert_eq!((one(SPLIT_FROM - (1 << 20)), one(SPLIT_FROM)), (1, 2));
        assert_eq!(node_ranges(&[1 << 40]), None);
        assert_eq!(node_ranges(&[u64::MAX, 1]), None);
    }

    proptest::proptest! {
        #[test]
        fn every_byte_has_one_address(sizes in proptest::collection::vec(0_u64..40, 1..9)) {
            let bytes: Vec<u64> = sizes.iter().map(|size| size * GIB / 4).collect();
            let ranges = node_ranges(&bytes).unwrap();
            for (node, bytes) in ranges.iter().zip(&bytes) {
                let length: u64 = node.iter().map(|[start, end]| end - start).sum();
                proptest::prop_assert_eq!(length, *bytes);
            }
            let all: Vec<_> = ranges.concat();
            proptest::prop_assert!(all.windows(2).all(|pair| pair[0][1] <= pair[1][0]));
        }
    }
}
