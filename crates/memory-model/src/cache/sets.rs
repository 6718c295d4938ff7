//! The choice of a line's set.

/// Bits of a line's offset in a page of 4 KiB.
const PAGE_BITS: u32 = 6;

/// The bits of a line's number that select its set.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sets {
    /// The lowest ones.
    Lowest,
    /// The lowest ones, which are an offset in a small page, and all others, folded onto this number of bits.
    Sliced(u32),
    /// The lowest bits, with frames of 2 to the power of this number of lines scattered.
    Scattered(u32),
}

impl Sets {
    /// Returns the choice of one of this number of sets of a cache in slices.
    pub(super) fn sliced(sets: u64) -> Self {
        Self::Sliced(sets.max(1).ilog2().saturating_sub(PAGE_BITS).max(1))
    }

    /// Returns a number with lowest bits that select the set of a line.
    #[inline]
    pub(super) fn selector(self, line: u64) -> u64 {
        match self {
            Self::Lowest => line,
            Self::Sliced(bits) => {
                let page = line >> PAGE_BITS;
                (page ^ page >> bits ^ page >> (2 * bits)) << PAGE_BITS
                    | line & ((1 << PAGE_BITS) - 1)
            }
            Self::Scattered(bits) => scattered(line >> bits) << bits | line & ((1 << bits) - 1),
        }
    }
}

/// Returns a frame's number as if it had been assigned at random. The multiplier alone spreads consecutive
/// frames more evenly than chance would, so the bits are mixed twice (D. Stafford's variant of the finaliser
/// of MurmurHash3, 2011).
#[inline]
fn scattered(frame: u64) -> u64 {
    let frame = (frame ^ frame >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let frame = (frame ^ frame >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (frame ^ frame >> 31) >> 16
}
