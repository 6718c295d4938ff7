//! The size of the arenas of `test_numa`: as requested if memory has room for them, otherwise as
//! large as the machine allows.

/// The seed's arena.
const USUAL_BYTES: u64 = 4 << 30;
const MIB: u64 = 1 << 20;
/// The address range that each cpu has for an arena: one entry of the page tables' root. The
/// addresses after it belong to the next cpu.
pub const WINDOW_BYTES: u64 = 512 << 30;
/// The most that firmware, kernel and the allocator's tables take of a node.
const NODE_OVERHEAD_BYTES: u64 = 96 * MIB;
/// The most that alignment costs each node's memory: a piece of 2 MiB at both ends of two ranges.
const ALIGNMENT_BYTES: u64 = 8 * MIB;
/// Messages round the minimum amount of memory up to a multiple of this size.
const STATED_STEP_BYTES: u64 = 256 * MIB;

/// The requested arenas, and the memory available for them.
#[derive(Clone, Copy, Debug)]
pub struct ArenaRequest {
    /// The requested size; `None` leaves it to the machine.
    pub asked_bytes: Option<u64>,
    pub free_bytes: u64,
    /// Number of nodes over which an arena is spread.
    pub nodes: u64,
    /// Number of arenas in use at a time, one per thread.
    pub threads: u64,
    pub piece_bytes: u64,
}

/// Reason why the arenas cannot be allocated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArenaError {
    /// There is too little free memory.
    #[error(transparent)]
    DoNotFit(#[from] ArenasDoNotFit),
    #[error("an arena of {} MiB: expected at most size={}M", mib(*.0), mib(WINDOW_BYTES))]
    TooLarge(u64),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{threads} arenas of {} MiB do not fit into {} MiB of free memory: expected memory of at least \
     {} MiB, or size={}M or less",
    mib(*.arena_bytes), mib(*.free_bytes), mib(*.least_memory_bytes), mib(*.most_arena_bytes)
)]
pub struct ArenasDoNotFit {
    /// Number of arenas in use at a time, one per thread.
    pub threads: u64,
    pub arena_bytes: u64,
    pub free_bytes: u64,
    /// The memory with which the machine would have room.
    pub least_memory_bytes: u64,
    /// The largest arenas that this machine has room for.
    pub most_arena_bytes: u64,
}

impl ArenaRequest {
    /// Returns the size of an arena in bytes, in whole pieces.
    ///
    /// # Errors
    ///
    /// [`ArenaError`], before anything is allocated.
    pub fn bytes(&self) -> Result<u64, ArenaError> {
        let pieces = match self.asked_bytes {
            Some(asked) => asked.div_ceil(self.piece_bytes),
            None => {
                let share = self.free_bytes / (2 * self.threads);
                (USUAL_BYTES.min(share) / self.piece_bytes).max(1)
            }
        };
        let arena_bytes = pieces.saturating_mul(self.piece_bytes);
        if arena_bytes > WINDOW_BYTES {
            return Err(ArenaError::TooLarge(arena_bytes));
        }
        if self.needed_bytes(arena_bytes) <= self.free_bytes {
            return Ok(arena_bytes);
        }
        Err(self.do_not_fit(arena_bytes).into())
    }

    fn do_not_fit(&self, arena_bytes: u64) -> ArenasDoNotFit {
        let overhead = self.nodes * NODE_OVERHEAD_BYTES;
        let least = self.needed_bytes(arena_bytes).saturating_add(overhead);
        let room = self.free_bytes.saturating_sub(self.nodes * ALIGNMENT_BYTES);
        let most = room / self.threads / 256 * 255;
        ArenasDoNotFit {
            threads: self.threads,
            arena_bytes,
            free_bytes: self.free_bytes,
            least_memory_bytes: least.div_ceil(STATED_STEP_BYTES).saturating_mul(STATED_STEP_BYTES),
            most_arena_bytes: most / self.piece_bytes * self.piece_bytes,
        }
    }

    /// Returns the bytes that all arenas need, with the page tables that map each as one range, on
    /// nodes that may lose their ends.
    fn needed_bytes(&self, arena_bytes: u64) -> u64 {
        let arenas = arena_bytes.saturating_mul(self.threads);
        arenas.saturating_add(arenas / 256).saturating_add(self.nodes * ALIGNMENT_BYTES)
    }
}

const fn mib(bytes: u64) -> u64 {
    bytes / MIB
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    const GIB: u64 = 1 << 30;

    fn request(asked_bytes: Option<u64>, free_bytes: u64) -> ArenaRequest {
        ArenaRequest { asked_bytes, free_bytes, nodes: 2, threads: 2, piece_bytes: 2 * MIB }
    }

    #[test]
    fn arenas_take_half_of_a_small_machine_and_the_usual_size_of_a_large_one() {
        assert_eq!(request(None, 2 * GIB).bytes(), Ok(GIB / 2));
        assert_eq!(request(None, 32 * GIB).bytes(), Ok(4 * GIB));
        assert_eq!(request(Some(5 * MIB), 2 * GIB).bytes(), Ok(6 * MIB), "whole pieces");
    }

    #[test]
    fn arenas_that_do_not_fit_are_refused_with_the_least_memory() {
        let refused = request(Some(4 * GIB), 1900 * MIB).bytes().unwrap_err();
        assert_eq!(
            refused.to_string(),
            "2 arenas of 4096 MiB do not fit into 1900 MiB of free memory: expected memory of at \
             least 8448 MiB, or size=938M or less"
        );
        let ArenaError::DoNotFit(refused) = refused else { panic!("{refused}") };
        let most = refused.most_arena_bytes;
        assert_eq!(request(Some(most), 1900 * MIB).bytes(), Ok(most), "what it names fits");
    }

    /// Regression: a larger arena went into the addresses of the next cpu.
    #[test]
    fn no_arena_is_larger_than_the_addresses_of_its_cpu_whatever_memory_there_is() {
        let most = Some(WINDOW_BYTES);
        assert_eq!(request(most, 8 << 40).bytes(), Ok(WINDOW_BYTES));
        let refused = request(Some(WINDOW_BYTES + 1), 8 << 40).bytes().unwrap_err();
        let expected = "an arena of 524290 MiB: expected at most size=524288M";
        assert_eq!(refused.to_string(), expected);
    }

    proptest! {
        #[test]
        fn the_chosen_size_fits_with_room_to_spare(
            free in 64 * MIB..1 << 44, threads in 1_u64..64, nodes in 1_u64..8,
        ) {
            let request = ArenaRequest {
                asked_bytes: None, free_bytes: free, nodes, threads, piece_bytes: 4096,
            };
            if let Ok(bytes) = request.bytes() {
                prop_assert!(bytes * threads <= free / 2 + 4096 * threads);
            }
        }

        #[test]
        fn a_refusal_names_sizes_that_fit(asked in 0..WINDOW_BYTES, free in GIB..64 * GIB) {
            if let Err(ArenaError::DoNotFit(refused)) = request(Some(asked), free).bytes() {
                let most = refused.most_arena_bytes;
                prop_assert_eq!(request(Some(most), free).bytes(), Ok(most));
                let larger = refused.least_memory_bytes - 2 * NODE_OVERHEAD_BYTES;
                prop_assert!(request(Some(asked), larger).bytes().is_ok());
            }
        }
    }
}
