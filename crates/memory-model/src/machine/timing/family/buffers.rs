//! The sizes of a family's buffers, and the number of its page walkers.

use super::Family;

impl Family {
    /// Returns the number of concurrent page walks: Intel's Optimization Reference Manual gives two
    /// for Skylake and Sunny Cove and four for Golden Cove, AMD's guides two for family 17h and six for
    /// family 19h.
    pub fn walkers(self) -> u32 {
        match self {
            Self::Skylake | Self::SunnyCove | Self::Zen1 | Self::Zen2 => 2,
            Self::GoldenCove | Self::RedwoodCove | Self::NeoverseN1 => 4,
            Self::Zen3 | Self::Zen4 => 6,
        }
    }

    /// Returns the entries for small pages of a level of the data TLBs, if known: AMD's guides for
    /// families 17h and 19h, 2.12 (Zen 4's were confirmed by chases over 50 to 3400 pages).
    pub fn tlb_entries(self, level: u8) -> Option<u32> {
        match (self, level) {
            (Self::Zen1 | Self::Zen2 | Self::Zen3, 1) => Some(64),
            (Self::Zen4, 1) => Some(72),
            (Self::Zen1, 2) => Some(1536),
            (Self::Zen2 | Self::Zen3, 2) => Some(2048),
            (Self::Zen4, 2) => Some(3072),
            _ => None,
        }
    }

    /// Returns the entries of the reorder buffer: Intel's Optimization Reference Manual, 2.1 to 2.6,
    /// AMD's guides for families 17h and 19h (retire queue, 2.10.1), and Arm's for Neoverse N1.
    pub fn reorder_buffer(self) -> u32 {
        match self {
            Self::Skylake => 224,
            Self::SunnyCove => 352,
            Self::GoldenCove | Self::RedwoodCove => 512,
            Self::Zen1 => 192,
            Self::Zen2 => 224,
            Self::Zen3 => 256,
            Self::Zen4 => 320,
            Self::NeoverseN1 => 128,
        }
    }

    /// Returns the operations that fill the reorder buffer, if those with a result count for more: behind a
    /// load from the L3 a Zen 4 has 150 to 170 comparisons, moves of constants, loads or additions of vectors in
    /// flight, and 88 to 99 of these that load an operand, but 320 moves between registers. Not measured on
    /// other families.
    pub(crate) fn operations(self) -> Option<u64> {
        (self == Self::Zen4).then_some(160)
    }

    /// Returns the entries of the store queue, in which stores wait for the cache while later
    /// instructions run: Intel's Optimization Reference Manual, 2.3 to 2.6, and AMD's guides for families
    /// 17h and 19h, 2.12; 0 where it is not known.
    pub(crate) fn store_queue(self) -> u32 {
        match self {
            Self::Skylake => 56,
            Self::SunnyCove => 72,
            Self::GoldenCove | Self::RedwoodCove => 112,
            Self::Zen1 => 44,
            Self::Zen2 => 48,
            Self::Zen3 | Self::Zen4 => 64,
            Self::NeoverseN1 => 0,
        }
    }

    /// Returns the number of fill buffers of the nearest cache: Intel's Optimization Reference
    /// Manual, 2.3 to 2.6, AMD's "Software Optimization Guide" for families 17h and 19h, 2.12, and Arm's
    /// "Neoverse N1 Technical Reference Manual".
    pub fn fill_buffers(self) -> u32 {
        match self {
            Self::Skylake | Self::SunnyCove => 12,
            Self::GoldenCove | Self::RedwoodCove => 16,
            Self::Zen1 | Self::Zen2 => 22,
            Self::Zen3 | Self::Zen4 => 24,
            Self::NeoverseN1 => 20,
        }
    }

    /// Returns true if the second level of its caches does not evict the oldest line of a set. On a Zen 4,
    /// with 1 MiB in eight ways, 6, 23, 35, 46, 51, 62, 79 and 88 % of the lines of a chase over 768, 896,
    /// 1024, 1152, 1280, 1536, 2048 and 3072 KiB in frames at random came from the L3. If any line of a set but
    /// the most recent one is evicted, 9, 18, 27, 37, 46, 62, 82 and 96 % do, and 27, 34, 52, 66, 79, 93, 99 and
    /// 100 % if the oldest one is. Not known for other families.
    pub(crate) fn evicts_at_random(self) -> bool {
        self == Self::Zen4
    }
}
