//! Typed numbers that cannot be confused with one another.

use core::fmt;

/// Size of a page frame in bytes.
pub const FRAME_BYTES: u64 = 4096;

/// Number of frames in a block of 2 MiB, the unit of huge pages and of the counters.
pub const BLOCK_FRAMES: u64 = 512;

/// The longest run that one request may have, in frames (1 GiB).
pub const MAX_RUN_FRAMES: u64 = 1 << 18;

/// The largest number of nodes of a machine (Linux's largest `MAX_NUMNODES`).
pub const MAX_NODES: usize = 1024;

/// The largest number of cpus of a machine.
pub const MAX_CPUS: usize = 65_534;

/// A page frame number (physical address / 4 KiB).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame(u64);

impl Frame {
    /// Creates the frame with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the frame that starts at a physical address in bytes; `None` if the address is not a
    /// multiple of [`FRAME_BYTES`].
    pub const fn from_addr(addr: u64) -> Option<Self> {
        if addr.is_multiple_of(FRAME_BYTES) { Some(Self(addr / FRAME_BYTES)) } else { None }
    }

    /// Returns the frame number.
    #[inline(always)]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Returns the physical address of the first byte; frame numbers are below 2^52, and higher
    /// ones lose their upper bits.
    pub const fn addr(self) -> u64 {
        self.0.wrapping_mul(FRAME_BYTES)
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A size as a power of two of frames: 0 (4 KiB) to 18 (1 GiB).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Order(u8);

impl Order {
    /// One frame, 4 KiB.
    pub const FRAME: Self = Self(0);
    /// One block, 2 MiB.
    pub const BLOCK: Self = Self(9);
    /// The largest, 1 GiB.
    pub const MAX: Self = Self(18);

    /// Creates the order with this exponent; `None` above 18.
    pub const fn new(exponent: u8) -> Option<Self> {
        if exponent <= Self::MAX.0 { Some(Self(exponent)) } else { None }
    }

    /// Returns the exponent, 0 to 18.
    pub const fn exponent(self) -> u8 {
        self.0
    }

    /// Returns the number of frames in a block of this order.
    #[inline(always)]
    pub const fn frames(self) -> u64 {
        1 << self.0
    }
}

/// A node: memory and cpus at one distance from everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub u16);

impl NodeIndex {
    #[inline(always)]
    pub(crate) const fn at(self) -> usize {
        self.0 as usize
    }
}

/// A cpu, counted from 0 without gaps in the order of [`Machine::cpus`](crate::Machine::cpus).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuIndex(pub u16);

impl CpuIndex {
    #[inline(always)]
    pub(crate) const fn at(self) -> usize {
        self.0 as usize
    }
}

/// A zone: the index of its limit in [`Machine::zone_limits`](crate::Machine::zone_limits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZoneIndex(pub u8);

/// A set of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeMask([u64; MAX_NODES / 64]);

impl NodeMask {
    /// The empty set.
    pub const EMPTY: Self = Self([0; MAX_NODES / 64]);

    /// Returns the set with `node` added; nodes at or above [`MAX_NODES`] are never in a set.
    #[must_use]
    pub const fn with(mut self, node: NodeIndex) -> Self {
        if node.at() < MAX_NODES {
            self.0[node.at() / 64] |= 1 << (node.0 % 64);
        }
        self
    }

    /// Returns true if `node` is in the set.
    pub const fn contains(&self, node: NodeIndex) -> bool {
        node.at() < MAX_NODES && self.0[node.at() / 64] >> (node.0 % 64) & 1 == 1
    }
}

impl FromIterator<NodeIndex> for NodeMask {
    fn from_iter<I: IntoIterator<Item = NodeIndex>>(nodes: I) -> Self {
        nodes.into_iter().fold(Self::EMPTY, Self::with)
    }
}

/// The owner that frames are allocated for, verified on free in `checked` builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Owner(pub u32);
