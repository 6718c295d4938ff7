//! Sets memory policies with the errors of Linux: set_mempolicy(2) and mbind(2) (`mm/mempolicy.c`).

use numalab_memory_model::space::{PAGE_BYTES, Placement};

use super::calls::pages;
use super::guest_memory;
use super::regions::Mapped;
use super::world::World;

/// `MPOL_MF_MOVE`, `MPOL_MF_MOVE_ALL`.
pub const MOVES: u64 = 2 | 4;
/// `MPOL_MF_STRICT`.
const STRICT: u64 = 1;
/// `MPOL_F_STATIC_NODES`, `MPOL_F_RELATIVE_NODES`, `MPOL_F_NUMA_BALANCING`.
const MODE_FLAGS: u64 = 7 << 13;

impl World {
    /// Sets the policy of the seat's thread.
    pub fn set_policy(
        &mut self,
        seat: usize,
        [mode, mask_at, bits, ..]: [u64; 6],
    ) -> Result<(), i32> {
        let placement = self.requested(mode, mask_at, bits)?.unwrap_or_default();
        self.threads[seat].placement = Some(placement);
        Ok(())
    }

    /// Sets the policy of a range.
    pub fn bind(
        &mut self,
        seat: usize,
        [start, bytes, mode, mask_at, bits, flags]: [u64; 6],
    ) -> Result<(), i32> {
        let placement = self.requested(mode, mask_at, bits)?;
        let bytes = bytes.checked_next_multiple_of(PAGE_BYTES);
        let end = bytes.and_then(|bytes| start.checked_add(bytes)).ok_or(libc::EINVAL)?;
        if flags & !(STRICT | MOVES) != 0 || !start.is_multiple_of(PAGE_BYTES) {
            return Err(libc::EINVAL);
        }
        if placement.is_some() && start < end && !Mapped::now().has(&(start..end)) {
            return Err(libc::EFAULT);
        }
        let home = self.threads[seat].home;
        let (numbers, moves) = (pages(start, end - start), flags & MOVES != 0);
        let strays = |of: &Self| {
            let strict = placement.as_ref().filter(|_| flags & STRICT != 0);
            strict.is_some_and(|placement| of.space.strays(&numbers, placement, home))
        };
        if !moves && strays(self) {
            return Err(libc::EIO);
        }
        self.forget();
        self.space.set_placement(numbers.clone(), placement.clone(), moves, home);
        if strays(self) { Err(libc::EIO) } else { Ok(()) }
    }

    /// Decodes a mode and its nodes, of which the kernel takes those with memory; `None` is the default
    /// policy.
    fn requested(&self, mode: u64, mask_at: u64, bits: u64) -> Result<Option<Placement>, i32> {
        // The kernel reads one bit less than it is given.
        let bits = bits.saturating_sub(1);
        let mut given = guest_memory::mask(mask_at, bits);
        given.retain(|id| (*id as u64) < bits);
        let nodes = || {
            let ids = given.iter().filter_map(|id| self.position(u32::try_from(*id).ok()?));
            let has_memory = self.with_memory();
            let nodes: Vec<usize> = ids.filter(|node| has_memory.contains(node)).collect();
            if nodes.is_empty() { Err(libc::EINVAL) } else { Ok(nodes) }
        };
        // `linux/mempolicy.h`: 0 is `MPOL_DEFAULT`, 1 and 5 are `MPOL_PREFERRED` and `_MANY`, 2 is
        // `MPOL_BIND`, 3 and 6 are `MPOL_INTERLEAVE` and `_WEIGHTED_INTERLEAVE`, 4 is `MPOL_LOCAL`.
        match (mode & !MODE_FLAGS, given.is_empty()) {
            (0, true) => Ok(None),
            (1 | 4, true) => Ok(Some(Placement::Local)),
            (1 | 5, _) => Ok(Some(Placement::Preferred(nodes()?[0]))),
            (2, _) => Ok(Some(Placement::Bind(nodes()?))),
            (3 | 6, _) => Ok(Some(Placement::Interleave(nodes()?))),
            _ => Err(libc::EINVAL),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::super::policy_calls::tests::world;
    use super::super::turns::Born;
    use super::*;

    /// Returns two nodes with a thread on the first.
    fn with_thread() -> World {
        let mut world = world();
        world.begins(0, Born { index: 0, clear_at: 0 });
        world
    }

    const BIND: u64 = 2;

    #[test]
    fn a_policy_needs_nodes_that_exist_and_a_mode_that_takes_them() {
        let mut world = with_thread();
        let mut set = |mode: u64, mask: u64, bits: u64| {
            let at = ptr::from_ref(&mask).expose_provenance() as u64;
            world
                .set_policy(0, [mode, at, bits, 0, 0, 0])
                .map(|()| world.threads[0].placement.clone())
        };
        let placed = |placement| Ok(Some(placement));
        assert_eq!(set(BIND, 0b110, 9), placed(Placement::Bind(vec![1])), "node 2 is left out");
        assert_eq!(set(3, 0b11, 9), placed(Placement::Interleave(vec![0, 1])));
        assert_eq!(set(1, 0, 9), placed(Placement::Local));
        assert_eq!(set(BIND | 1 << 15, 0b10, 9), placed(Placement::Bind(vec![1])), "static nodes");
        let refused = [(BIND, 0b100, 9), (BIND, 0, 9), (1, 0b100, 9), (3, 0, 9), (0, 1, 9)];
        let more = [(4, 1, 9), (99, 1, 9), (BIND, 0b10, 2)];
        for (mode, mask, bits) in refused.into_iter().chain(more) {
            assert_eq!(set(mode, mask, bits), Err(libc::EINVAL), "mode {mode}, mask {mask:#b}");
        }
    }

    #[test]
    fn a_range_is_bound_if_it_is_aligned_and_mapped_and_strictly_if_its_pages_are_there() {
        let mut world = with_thread();
        let own = vec![0_u8; 1 << 20];
        let start = (own.as_ptr() as u64).next_multiple_of(PAGE_BYTES);
        let mut bind = |start: u64, mode: u64, mask: u64, flags: u64| {
            let at = ptr::from_ref(&mask).expose_provenance() as u64;
            world.bind(0, [start, 4 * PAGE_BYTES, mode, at, 9, flags])
        };
        assert_eq!(bind(start + 1, BIND, 1, 0), Err(libc::EINVAL));
        assert_eq!(bind(start, BIND, 1, 8), Err(libc::EINVAL), "an unknown flag");
        assert_eq!(bind(start, BIND, 0b100, 0), Err(libc::EINVAL));
        assert_eq!(bind(0x1000, BIND, 1, 0), Err(libc::EFAULT));
        assert_eq!(bind(0x1000, 0, 0, 0), Ok(()), "the default policy may have holes");
        assert_eq!(bind(u64::MAX - PAGE_BYTES + 1, BIND, 1, 0), Err(libc::EINVAL));
        let number = start / PAGE_BYTES;
        assert!(world.space.touch(number + 1, 1, None, false).is_some());
        let mut bind = |flags: u64| {
            let mask = 1_u64;
            let at = ptr::from_ref(&mask).expose_provenance() as u64;
            let done = world.bind(0, [start, 4 * PAGE_BYTES, BIND, at, 9, flags]);
            (done, world.space.placement_of(number).is_some(), world.space.node_of(number + 1))
        };
        assert_eq!(bind(STRICT), (Err(libc::EIO), false, Some(1)));
        assert_eq!(bind(0), (Ok(()), true, Some(1)));
        assert_eq!(bind(STRICT | 2), (Ok(()), true, Some(0)));
    }
}
