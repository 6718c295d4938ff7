//! The word of a 2 MiB block: all of its state that must change in one step.

use crate::ids::CpuIndex;
use crate::sync::{index, low_u16};

const COUNT_BITS: u64 = 0x3ff;
const LISTED_SHIFT: u32 = 10;
const LISTED_BITS: u64 = 0xf << LISTED_SHIFT;
const PARTIAL: u64 = 1 << 14;
const OFFLINE: u64 = 1 << 15;
const CACHED: u64 = 1 << 16;
const TOKEN_SHIFT: u32 = 17;
const TOKEN_BITS: u64 = 0xffff << TOKEN_SHIFT;
const PHYS_SHIFT: u32 = 33;

/// Number of frames in a block, as a counter value.
pub(crate) const FULL: u64 = crate::ids::BLOCK_FRAMES;

/// The fullness list of a block with some free frames: 0 (1 to 63 free) to 7 (448 to 511 free), and
/// 8 (wholly free).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct List(u8);

impl List {
    /// The list of blocks with the fewest free frames.
    pub(crate) const FULLEST: Self = Self(0);
    /// The list of wholly free blocks.
    pub(crate) const WHOLE: Self = Self(8);
    pub(crate) const COUNT: usize = 9;

    /// Returns the list for a count of free frames; `None` for 0.
    pub(crate) const fn of(count: u64) -> Option<Self> {
        // count <= 512, so the quotient is at most 8.
        if count == 0 { None } else { Some(Self((count >> 6).to_le_bytes()[0])) }
    }

    /// Returns every list, fullest blocks first.
    pub(crate) fn fullest_first() -> impl Iterator<Item = Self> {
        (0..=8).map(Self)
    }

    pub(crate) const fn at(self) -> usize {
        self.0 as usize
    }
}

/// The holder of a block's token, which may move it between lists and take frames from it in bulk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// The token is free for anyone to take.
    Nobody,
    /// An operation that is moving the block from one list to another.
    Mover,
    /// The cpu that has reserved the block or, with [`BlockWord::is_cached`], caches it whole.
    Cpu(CpuIndex),
}

impl Token {
    const MOVER: u64 = 0xffff;

    const fn bits(self) -> u64 {
        match self {
            Self::Nobody => 0,
            Self::Mover => Self::MOVER << TOKEN_SHIFT,
            Self::Cpu(cpu) => (cpu.0 as u64 + 1) << TOKEN_SHIFT,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockWord(pub(crate) u64);

impl BlockWord {
    /// Creates the word of a block with no free frames; `partial` if only a part of it is managed.
    pub(crate) const fn new(phys_block: u64, partial: bool) -> Self {
        Self(phys_block << PHYS_SHIFT | if partial { PARTIAL } else { 0 })
    }

    /// Returns the number of free frames that are not yet claimed, which is never more than the
    /// number of set bits in the rows.
    #[inline(always)]
    pub(crate) const fn count(self) -> u64 {
        self.0 & COUNT_BITS
    }

    pub(crate) const fn with_count(self, count: u64) -> Self {
        Self(self.0 & !COUNT_BITS | count)
    }

    /// Returns the list on which the last mover left the block.
    pub(crate) const fn listed(self) -> Option<List> {
        match (self.0 & LISTED_BITS) >> LISTED_SHIFT {
            0 => None,
            list => Some(List(list.to_le_bytes()[0] - 1)),
        }
    }

    pub(crate) const fn with_listed(self, list: Option<List>) -> Self {
        let bits = match list {
            None => 0,
            Some(list) => (list.0 as u64 + 1) << LISTED_SHIFT,
        };
        Self(self.0 & !LISTED_BITS | bits)
    }

    pub(crate) const fn token(self) -> Token {
        match (self.0 & TOKEN_BITS) >> TOKEN_SHIFT {
            0 => Token::Nobody,
            Token::MOVER => Token::Mover,
            cpu => Token::Cpu(CpuIndex(low_u16(index(cpu - 1)))),
        }
    }

    pub(crate) const fn with_token(self, token: Token) -> Self {
        Self(self.0 & !TOKEN_BITS | token.bits())
    }

    /// Returns true if a free needs the slow path: the token is held, or the block is offline.
    #[inline(always)]
    pub(crate) const fn needs_care(self) -> bool {
        self.0 & (TOKEN_BITS | OFFLINE | CACHED) != 0
    }

    /// Returns true if the block is on no list and the token is free, so that no other operation
    /// will list it.
    #[inline(always)]
    pub(crate) const fn is_left_alone(self) -> bool {
        self.0 & (LISTED_BITS | TOKEN_BITS) == 0
    }

    /// Returns true if some of the 512 frames are not managed here.
    pub(crate) const fn is_partial(self) -> bool {
        self.0 & PARTIAL != 0
    }

    pub(crate) const fn is_offline(self) -> bool {
        self.0 & OFFLINE != 0
    }

    pub(crate) const fn with_offline(self, offline: bool) -> Self {
        Self(self.0 & !OFFLINE | if offline { OFFLINE } else { 0 })
    }

    /// Returns true if the block is wholly free in a cpu's cache.
    pub(crate) const fn is_cached(self) -> bool {
        self.0 & CACHED != 0
    }

    pub(crate) const fn with_cached(self, cached: bool) -> Self {
        Self(self.0 & !CACHED | if cached { CACHED } else { 0 })
    }

    /// Returns the number of the block's first frame.
    #[inline(always)]
    pub(crate) const fn first_frame(self) -> u64 {
        (self.0 >> PHYS_SHIFT) << 9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_of_the_word_keeps_the_others() {
        let word = BlockWord::new(0x7fff_ffff, true)
            .with_count(512)
            .with_listed(Some(List::WHOLE))
            .with_token(Token::Cpu(CpuIndex(65_533)))
            .with_offline(true)
            .with_cached(true);
        assert_eq!(word.count(), 512);
        assert_eq!(word.listed(), Some(List::WHOLE));
        assert_eq!(word.token(), Token::Cpu(CpuIndex(65_533)));
        assert!(word.is_partial() && word.is_offline() && word.is_cached());
        assert_eq!(word.first_frame(), 0x7fff_ffff << 9);
        let bare = word.with_count(0).with_listed(None).with_token(Token::Nobody);
        assert_eq!((bare.count(), bare.listed(), bare.token()), (0, None, Token::Nobody));
        assert_eq!(bare.with_token(Token::Mover).token(), Token::Mover);
    }

    #[test]
    fn a_list_holds_64_counts_and_the_last_only_the_wholly_free() {
        assert_eq!(List::of(0), None);
        assert_eq!(List::of(1), List::of(63));
        assert_ne!(List::of(63), List::of(64));
        assert_ne!(List::of(511), Some(List::WHOLE));
        assert_eq!(List::of(512), Some(List::WHOLE));
    }
}
