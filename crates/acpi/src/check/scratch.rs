//! Sorting without a heap: the caller lends the memory.

/// A slot of scratch memory for [`check`](crate::check()).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    /// What slots are sorted by: a first address, an id, a domain.
    pub(super) key: u64,
    /// Offset of the entry, so that the earlier of two alike comes first.
    pub(super) offset: u32,
    /// Domain of a range or a processor; type of a MADT entry.
    pub(super) group: u32,
    /// Last address of a range.
    pub(super) last: u64,
}

impl Slot {
    /// A slot for a thing of `key` that an entry at `offset` gives.
    pub(super) fn new(key: u64, offset: usize) -> Self {
        // Tables are below 4 GiB: their length field has 32 bits.
        let offset = u32::try_from(offset).unwrap_or(u32::MAX);
        Self { key, offset, ..Self::default() }
    }

    pub(super) fn offset(&self) -> usize {
        usize::try_from(self.offset).unwrap_or(usize::MAX)
    }
}

/// Fills `scratch` from the front and sorts what was filled.
pub(super) fn sorted(scratch: &mut [Slot], slots: impl Iterator<Item = Slot>) -> &[Slot] {
    let mut used: usize = 0;
    for (room, slot) in scratch.iter_mut().zip(slots) {
        *room = slot;
        used = used.saturating_add(1);
    }
    let filled = scratch.get_mut(..used).unwrap_or_default();
    sort(filled);
    filled
}

/// A heap sort, since `sort_unstable` takes 3 KiB of a kernel that is to be small.
fn sort(slots: &mut [Slot]) {
    for root in (0..slots.len() / 2).rev() {
        sift_down(slots, root);
    }
    for end in (1..slots.len()).rev() {
        slots.swap(0, end);
        sift_down(slots.get_mut(..end).unwrap_or_default(), 0);
    }
}

/// Lets the slot at `root` down to where none below it is larger.
fn sift_down(heap: &mut [Slot], mut root: usize) {
    loop {
        let children = root.saturating_mul(2).saturating_add(1)..heap.len();
        let Some(child) = children.take(2).max_by_key(|&child| heap.get(child)) else { return };
        if heap.get(root) >= heap.get(child) {
            return;
        }
        heap.swap(root, child);
        root = child;
    }
}

/// The first of `slots` that has `key`.
pub(super) fn find(slots: &[Slot], key: u64) -> Option<&Slot> {
    slots.get(slots.partition_point(|slot| slot.key < key)).filter(|slot| slot.key == key)
}

/// Pairs of neighbours with one key: the first that has it, and each later one.
pub(super) fn repeats(slots: &[Slot]) -> impl Iterator<Item = (&Slot, &Slot)> {
    slots
        .chunk_by(|a, b| a.key == b.key)
        .filter_map(<[Slot]>::split_first)
        .flat_map(|(first, later)| later.iter().map(move |slot| (first, slot)))
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    #[test]
    fn slots_are_sorted_whatever_their_order() {
        for length in 0..40_usize {
            for step in [1, 7, 11, 17, 39] {
                let keys = (0..length).map(|at| (at * step % 41 % 13) as u64);
                let given: Vec<Slot> =
                    keys.enumerate().map(|(at, key)| Slot::new(key, at)).collect();
                let mut expected = given.clone();
                expected.sort();
                let mut scratch = given.clone();
                assert_eq!(sorted(&mut scratch, given.iter().copied()), expected);
            }
        }
    }
}
