//! OSTD's `GlobalFrameAllocator`: sizes need not be powers of two, pieces of a run are freed in any
//! order, and memory may be added.
//! <https://asterinas.github.io/api-docs-nightly/ostd/mm/frame/allocator/trait.GlobalFrameAllocator.html>

use core::alloc::Layout;

use crate::error::{FreeError, RangeError};
use crate::fences::Fences;
use crate::frames::Frames;
use crate::ids::{CpuIndex, FRAME_BYTES, Frame, Order};
use crate::policy::{Policy, Request};

/// The allocator with the methods of `GlobalFrameAllocator`. A kernel's trait implementation
/// forwards to them, and decides how to handle the errors that the trait cannot return.
///
/// It uses plain addresses, so it is safe as [`Frames`] is; the kernel's implementation promises
/// OSTD that a frame is freed by its owner, once it is unused.
pub struct OstdFrames<'f, 'm, F> {
    frames: &'f Frames<'m, F>,
    cpu: fn() -> CpuIndex,
    policy: Policy<'f>,
}

impl<'f, 'm, F: Fences> OstdFrames<'f, 'm, F> {
    /// Creates the adapter for callers on the cpu that `cpu` returns.
    pub const fn new(frames: &'f Frames<'m, F>, cpu: fn() -> CpuIndex) -> Self {
        Self { frames, cpu, policy: Policy::Local }
    }

    /// Sets the nodes that may serve; OSTD's trait has no argument for it.
    #[must_use]
    pub const fn policy(mut self, policy: Policy<'f>) -> Self {
        self.policy = policy;
        self
    }

    /// Returns the physical address of a run for a layout in bytes; sizes are rounded up to whole
    /// frames.
    pub fn alloc(&self, layout: Layout) -> Option<usize> {
        let bytes = layout.size() as u64;
        let align = (layout.align() as u64).div_ceil(FRAME_BYTES);
        let order = Order::new(align.ilog2().try_into().ok()?)?;
        let request = Request::run(bytes.div_ceil(FRAME_BYTES)).aligned(order).policy(self.policy);
        let frame = self.frames.alloc((self.cpu)(), &request).ok()?;
        frame.addr().try_into().ok()
    }

    /// Frees a run, or any piece of one.
    ///
    /// # Errors
    /// As [`Frames::free_run`]; an address or a size that is not a multiple of a frame's is
    /// [`FreeError::Misaligned`].
    pub fn dealloc(&self, addr: usize, size: usize) -> Result<(), FreeError> {
        let (addr, size) = (addr as u64, size as u64);
        let frame = Frame::new(addr / FRAME_BYTES);
        if !(addr | size).is_multiple_of(FRAME_BYTES) {
            return Err(FreeError::Misaligned { frame, order: Order::FRAME });
        }
        self.frames.free_run((self.cpu)(), frame, size / FRAME_BYTES)
    }

    /// Brings declared memory online.
    ///
    /// # Errors
    /// As [`Frames::online`].
    pub fn add_free_memory(&self, addr: usize, size: usize) -> Result<(), RangeError> {
        let (addr, size) = (addr as u64, size as u64);
        let frame = Frame::new(addr / FRAME_BYTES);
        if !(addr | size).is_multiple_of(FRAME_BYTES) {
            return Err(RangeError::Misaligned { frame });
        }
        self.frames.online((self.cpu)(), frame, size / FRAME_BYTES)
    }
}
