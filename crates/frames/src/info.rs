//! Statistics: free memory, its fragmentation, and the locality of allocations. They are computed
//! from the maps on request, so they cost the allocation paths nothing.

use crate::fences::Fences;
use crate::frames::Frames;
use crate::ids::{Frame, NodeIndex, Order, ZoneIndex};
use crate::slot::Slot;
use crate::sync::low_u16;
use crate::walk::BlockView;

/// Number of orders: 0 to 18.
const ORDERS: usize = 19;

/// The memory of a node, or of one of its zones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Number of online frames of the memory map.
    pub managed: u64,
    /// Number of offline frames of the memory map.
    pub offline: u64,
    /// Number of frames free in the shared maps.
    pub free: u64,
    /// Number of frames free in cpus' caches.
    pub cached: u64,
    /// Free frames of the shared maps divided into the fewest aligned blocks: the number of each
    /// order.
    pub blocks: [u64; ORDERS],
}

impl MemoryInfo {
    /// Returns the number of allocated frames.
    pub const fn allocated(&self) -> u64 {
        self.managed.saturating_sub(self.free + self.cached)
    }

    /// Returns the number of free blocks of exactly this order, as `/proc/buddyinfo` counts them.
    pub const fn free_blocks(&self, order: Order) -> u64 {
        self.blocks[order.exponent() as usize]
    }

    fn add(&mut self, view: &BlockView) {
        if view.offline {
            self.offline += view.managed();
            return;
        }
        self.managed += view.managed();
        self.free += view.free_frames();
    }
}

/// Allocation counters, summed over the cpus of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Number of frames from the cpus' own node.
    pub local: u64,
    /// Number of frames from other nodes.
    pub remote: u64,
    /// Number of frames found both in a cache and free in the shared maps: freed twice.
    pub freed_twice: u64,
    /// Number of requests refused for lack of memory.
    pub refused: u64,
}

impl<'m, F: Fences> Frames<'m, F> {
    /// Returns the node that a frame belongs to, if it is in the memory map.
    pub fn node_of(&self, frame: Frame) -> Option<NodeIndex> {
        let region = self.shared.map.find(frame.number())?;
        Some(NodeIndex(low_u16(region.pool / self.machine.zone_limits.len())))
    }

    /// Returns the memory of one zone of a node; all zero if the zone or node does not exist.
    pub fn zone_info(&self, node: NodeIndex, zone: ZoneIndex) -> MemoryInfo {
        if node.at() >= self.machine.nodes()
            || usize::from(zone.0) >= self.machine.zone_limits.len()
        {
            return MemoryInfo::default();
        }
        let pool = self.machine.pool(node, zone.0.into());
        let mut info = MemoryInfo { cached: self.cached(pool), ..MemoryInfo::default() };
        for region in self.shared.map.of_pool(pool) {
            let mut whole = WholeRun::default();
            for view in self.walk_region(region) {
                info.add(&view);
                if !view.offline && view.free_frames() > 0 {
                    count_blocks(&view, &mut whole, &mut info.blocks);
                }
            }
            whole.end(&mut info.blocks);
        }
        info
    }

    /// Returns the memory of a node.
    pub fn node_info(&self, node: NodeIndex) -> MemoryInfo {
        let zones = (0..=u8::MAX).take(self.machine.zone_limits.len()).map(ZoneIndex);
        zones.map(|zone| self.zone_info(node, zone)).fold(MemoryInfo::default(), |sum, zone| {
            let mut blocks = sum.blocks;
            blocks.iter_mut().zip(zone.blocks).for_each(|(sum, here)| *sum += here);
            MemoryInfo {
                managed: sum.managed + zone.managed,
                offline: sum.offline + zone.offline,
                free: sum.free + zone.free,
                cached: sum.cached + zone.cached,
                blocks,
            }
        })
    }

    /// Returns the counters of the cpus of a node since the start.
    pub fn counters(&self, node: NodeIndex) -> Counters {
        let zones = self.machine.zone_limits.len();
        let cpus = self.slots.iter().zip(self.machine.cpus).filter(|&(_, &home)| home == node);
        cpus.fold(Counters::default(), |sum, (slot, _)| {
            let slot = Slot(slot);
            let [hits, local, remote, twice, refused] = slot.counters();
            let home_is_local = slot.home() / zones == node.at();
            let (near, far) = if home_is_local { (hits, 0) } else { (0, hits) };
            Counters {
                local: sum.local + local + near,
                remote: sum.remote + remote + far,
                freed_twice: sum.freed_twice + twice,
                refused: sum.refused + refused,
            }
        })
    }

    fn cached(&self, pool: usize) -> u64 {
        self.slots
            .iter()
            .map(|slot| {
                let slot = Slot(slot);
                let frames = if slot.pool() == Some(pool) { slot.cached() } else { 0 };
                let whole = slot.home() == pool && slot.whole().is_some();
                frames + if whole { 512 } else { 0 }
            })
            .sum()
    }
}

/// A run of consecutive wholly free blocks.
#[derive(Default)]
struct WholeRun {
    start: u64,
    end: u64,
}

impl WholeRun {
    fn add(&mut self, block: u64, blocks: &mut [u64; ORDERS]) {
        if self.end != block {
            self.end(blocks);
            self.start = block;
        }
        self.end = block + 1;
    }

    /// Cuts the run into the largest aligned blocks.
    fn end(&mut self, blocks: &mut [u64; ORDERS]) {
        while self.start < self.end {
            let fits = (self.end - self.start).ilog2();
            let order = self.start.trailing_zeros().min(fits).min(9);
            blocks[9 + order as usize] += 1;
            self.start += 1 << order;
        }
    }
}

fn count_blocks(view: &BlockView, whole: &mut WholeRun, blocks: &mut [u64; ORDERS]) {
    let mut rows = 0_u64;
    for (row, &bits) in view.free.iter().enumerate() {
        if count_pairs(bits, 6, &mut blocks[..6]) {
            rows |= 1 << row;
        }
    }
    if count_pairs(rows, 3, &mut blocks[6..9]) {
        whole.add(view.first.number() / 512, blocks);
    }
}

/// Joins buddies `levels` times and counts those without a free buddy at each level; returns true
/// if the last level's single block is free.
fn count_pairs(bits: u64, levels: u32, blocks: &mut [u64]) -> bool {
    let mut bits = bits;
    for (level, count) in (0..levels).zip(blocks) {
        let stride = 1 << level;
        // Every second block of this level.
        let first = (0..64).step_by(2 * stride).fold(0, |mask: u64, bit| mask | 1 << bit);
        let pairs = bits & (bits >> stride) & first;
        *count += u64::from(bits.count_ones() - 2 * pairs.count_ones());
        bits = pairs;
    }
    bits & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_counted_as_the_fewest_aligned_blocks() {
        let mut blocks = [0; 6];
        assert!(!count_pairs(0b0111_0110_1111, 6, &mut blocks));
        // 0-3 is an order 2, 5 and 6 are not buddies, 8-9 is an order 1, 10 is single.
        assert_eq!(blocks, [3, 1, 1, 0, 0, 0]);
        let mut blocks = [0; 6];
        assert!(count_pairs(!0, 6, &mut blocks));
        assert_eq!(blocks, [0; 6]);
    }
}
