//! The active vCPU, if all vCPUs share one thread. It stays in the model until another one runs,
//! because entering and leaving cost as much as most accesses.

use std::cell::UnsafeCell;

use numalab_memory_model::engine::{Active, Engine};

/// The vCPU that is active in the model, with its number.
#[derive(Debug, Default)]
pub struct Present(UnsafeCell<Option<(usize, Active<'static>)>>);

// SAFETY: both accessors are unsafe, and their callers guarantee that they run on the only thread
// that runs vCPUs.
unsafe impl Sync for Present {}
// SAFETY: it moves to its static location before it holds a vCPU.
unsafe impl Send for Present {}

impl Present {
    /// Returns the vCPU with this number, after making it the active one.
    ///
    /// # Safety
    /// The calling thread is the one that runs all vCPUs, and holds no other reference to one.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "the caller vouches for it")]
    pub unsafe fn of(&self, engine: &'static Engine, vcpu: usize) -> &mut Active<'static> {
        // SAFETY: guaranteed by the caller.
        let present = unsafe { &mut *self.0.get() };
        if present.as_ref().is_none_or(|(number, _)| *number != vcpu) {
            *present = None;
        }
        &mut present.get_or_insert_with(|| (vcpu, engine.enter(vcpu))).1
    }

    /// Removes the active vCPU from the model.
    ///
    /// # Safety
    /// As for [`Self::of`].
    pub unsafe fn leave(&self) {
        // SAFETY: guaranteed by the caller.
        unsafe { *self.0.get() = None };
    }
}
