//! Tags of `checked` builds: every frame has the length of the rest of its run, and its owner.

use crate::error::FreeError;
use crate::ids::Owner;
use crate::shared::Shared;
use crate::sync::Word;

#[cfg(feature = "checked")]
use crate::ids::{BLOCK_FRAMES, Frame};
#[cfg(feature = "checked")]
use crate::sync::{Ordering::Relaxed, index};

/// A word per frame: the owner in the upper half, the remaining frames of the run (this one
/// included) in the lower half.
#[derive(Clone, Copy)]
pub(crate) struct Tags<'m> {
    #[cfg(feature = "checked")]
    words: &'m [Word],
    #[cfg(not(feature = "checked"))]
    none: core::marker::PhantomData<&'m Word>,
}

#[cfg(not(feature = "checked"))]
impl<'m> Tags<'m> {
    pub(crate) const fn new(_words: &'m [Word]) -> Self {
        Self { none: core::marker::PhantomData }
    }

    #[inline(always)]
    pub(crate) fn hand_out(&self, _shared: &Shared<'_>, _first: u64, _frames: u64, _owner: Owner) {}

    /// Accepts every free, because there are no tags.
    #[inline(always)]
    pub(crate) fn check(
        &self,
        _shared: &Shared<'_>,
        _first: u64,
        _frames: u64,
        _owner: Owner,
    ) -> Result<(), FreeError> {
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn take_back(&self, _shared: &Shared<'_>, _first: u64, _frames: u64) {}
}

#[cfg(feature = "checked")]
impl<'m> Tags<'m> {
    pub(crate) fn new(words: &'m [Word]) -> Self {
        words.iter().for_each(|tag| tag.store(0, Relaxed));
        Self { words }
    }

    pub(crate) fn hand_out(&self, shared: &Shared<'_>, first: u64, frames: u64, owner: Owner) {
        for at in 0..frames {
            if let Some(tag) = self.tag(shared, first + at) {
                tag.store(u64::from(owner.0) << 32 | (frames - at), Relaxed);
            }
        }
    }

    /// Refuses frames that extend beyond their run or belong to another owner.
    pub(crate) fn check(
        &self,
        shared: &Shared<'_>,
        first: u64,
        frames: u64,
        owner: Owner,
    ) -> Result<(), FreeError> {
        let left = self.read(shared, first).1;
        // No tag: the frame is free or not managed, which the maps decide.
        if left != 0 && frames > left {
            return Err(FreeError::WrongSize { frame: Frame::new(first), frames, left });
        }
        for at in 0..frames.min(left) {
            let (expected, here) = self.read(shared, first + at);
            let frame = Frame::new(first + at);
            if here != 0 && here != left - at {
                return Err(FreeError::WrongSize { frame: Frame::new(first), frames, left: at });
            }
            if here != 0 && owner != expected {
                return Err(FreeError::WrongOwner { frame, expected, found: owner });
            }
        }
        Ok(())
    }

    /// Removes the tags of freed frames.
    pub(crate) fn take_back(&self, shared: &Shared<'_>, first: u64, frames: u64) {
        for at in first..first + frames {
            if let Some(tag) = self.tag(shared, at) {
                tag.store(0, Relaxed);
            }
        }
    }

    fn read(&self, shared: &Shared<'_>, frame: u64) -> (Owner, u64) {
        let tag = self.tag(shared, frame).map_or(0, |tag| tag.load(Relaxed));
        (Owner(crate::sync::high_u32(tag)), tag & 0xffff_ffff)
    }

    fn tag(&self, shared: &Shared<'_>, frame: u64) -> Option<&'m Word> {
        let region = shared.map.find(frame)?;
        self.words.get(region.block_of(frame) * 512 + index(frame % BLOCK_FRAMES))
    }
}
