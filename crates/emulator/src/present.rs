//! The vCPU that runs, where all take turns on one thread: it stays in the model until another one
//! runs, as coming and going takes as long as most accesses.

use std::cell::UnsafeCell;

use numalab_memory_model::engine::{Active, Engine};

/// The vCPU that is in the model, and its number.
#[derive(Debug, Default)]
pub struct Present(UnsafeCell<Option<(usize, Active<'static>)>>);

// SAFETY: both ways to what is inside are unsafe, and have their callers vouch that they are the one
// thread that runs all vCPUs: there is never a second one.
unsafe impl Sync for Present {}
// SAFETY: it is moved to its static place before it has anybody in it.
unsafe impl Send for Present {}

impl Present {
    /// The vCPU of this number, which comes to the model if another one was there.
    ///
    /// # Safety
    /// The calling thread is the one that runs all vCPUs, and has no other reference to one.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "the caller vouches for it")]
    pub unsafe fn of(&self, engine: &'static Engine, vcpu: usize) -> &mut Active<'static> {
        // SAFETY: the caller vouches for it.
        let present = unsafe { &mut *self.0.get() };
        if present.as_ref().is_none_or(|(number, _)| *number != vcpu) {
            *present = None;
        }
        &mut present.get_or_insert_with(|| (vcpu, engine.enter(vcpu))).1
    }

    /// No vCPU is in the model.
    ///
    /// # Safety
    /// As for [`Self::of`].
    pub unsafe fn leave(&self) {
        // SAFETY: the caller vouches for it.
        unsafe { *self.0.get() = None };
    }
}
