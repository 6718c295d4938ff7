//! Sorting without a heap, in memory provided by the caller.

/// A slot of scratch memory for [`check`](crate::check()).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    /// The sort key of the slot: a first address, an id, or a domain.
    pub(super) key: u64,
    /// Offset of the entry, so that of two equal keys the earlier comes first.
    pub(super) offset: u32,
    /// Domain of a range or a processor; type of a MADT entry.
    pub(super) group: u32,
    /// Last address of a range.
    pub(super) last: u64,
}

impl Slot {
    /// Creates a slot with the key `key` for an entry at `offset`.
    pub(super) fn new(key: u64, offset: usize) -> Self {
        // Tables are below 4 GiB: their length field has 32 bits.
        let offset = u32::try_from(offset).unwrap_or(u32::MAX);
        Self { key, offset, ..Self::default() }
    }

    pub(super) fn offset(&self) -> usize {
        usize::try_from(self.offset).unwrap_or(usize::MAX)
    }
}

/// Fills `scratch` from the front and sorts the filled part.
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

/// Sorts by heap sort, because `sort_unstable` takes 3 KiB of code, which is too much for a small
/// kernel.
fn sort(slots: &mut [Slot]) {
    for root in (0..slots.len() / 2).rev() {
        sift_down(slots, root);
    }
    for end in (1..slots.len()).rev() {
        slots.swap(0, end);
        sift_down(slots.get_mut(..end).unwrap_or_default(), 0);
    }
}

/// Moves the slot at `root` down until no slot below it is larger.
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

/// Returns the first of `slots` with the key `key`.
pub(super) fn find(slots: &[Slot], key: u64) -> Option<&Slot> {
    slots.get(slots.partition_point(|slot| slot.key < key)).filter(|slot| slot.key == key)
}

/// Returns pairs of slots with the same key: the first that has it, with each later one.
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
