//! Announcement by a cpu that it is moving a block between two lists.

use crate::sync::{Ordering, Word};

/// The numbers of moves that a cpu has begun (upper half) and ended (lower half); both wrap.
#[derive(Clone, Copy)]
pub(crate) struct Moves<'a>(pub(crate) &'a Word);

const ENDED: u64 = 0xffff_ffff;
const BEGIN: u64 = 1 << 32;

impl<'a> Moves<'a> {
    /// Announces a move until the guard is dropped. `AcqRel`: pairs with [`Moves::seen`], which
    /// reads every list only between two equal counts.
    pub(crate) fn begin(self) -> Moving<'a> {
        self.0.fetch_add(BEGIN, Ordering::AcqRel);
        Moving(self.0)
    }

    /// Returns the number of moves begun, if all have ended.
    pub(crate) fn seen(self) -> Option<u64> {
        let word = self.0.load(Ordering::Acquire);
        let (begun, ended) = (word >> 32, word & ENDED);
        (begun == ended).then_some(begun)
    }
}

pub(crate) struct Moving<'a>(&'a Word);

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        // The ended half carries into the begun half once in 2^32 moves: the carry is removed.
        let before = self.0.fetch_add(1, Ordering::AcqRel);
        if before & ENDED == ENDED {
            self.0.fetch_sub(BEGIN, Ordering::AcqRel);
        }
    }
}
