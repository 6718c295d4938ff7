//! `FrameAllocator` and `FrameDeallocator` of the x86_64 crate, for its three page sizes.

use x86_64::PhysAddr;
use x86_64::structures::paging::{FrameAllocator, FrameDeallocator, PageSize, PhysFrame};

use crate::error::FreeError;
use crate::fences::Fences;
use crate::frames::Frames;
use crate::ids::{CpuIndex, FRAME_BYTES, Frame, Order};
use crate::policy::Request;

/// The allocator as the x86_64 crate's mappers need it.
pub struct X86Frames<'f, 'm, F> {
    frames: &'f Frames<'m, F>,
    cpu: fn() -> CpuIndex,
    refused: Option<FreeError>,
}

impl<'f, 'm, F: Fences> X86Frames<'f, 'm, F> {
    /// Creates the adapter for callers on the cpu that `cpu` returns.
    ///
    /// # Safety
    /// Mappers write to the frames they get. 1. The frames of the allocator's machine are memory
    /// that is used only by those who allocated them. 2. An allocated frame is freed, here or in
    /// any other way ([`Frames::free`] is safe, and takes a number), only by its owner and only
    /// once it is no longer used.
    pub const unsafe fn new(frames: &'f Frames<'m, F>, cpu: fn() -> CpuIndex) -> Self {
        Self { frames, cpu, refused: None }
    }

    /// Returns the last refused free, which the trait cannot report.
    pub const fn refused(&self) -> Option<FreeError> {
        self.refused
    }
}

/// Returns the order of a page size: 0, 9 or 18.
fn order_of<S: PageSize>() -> Option<Order> {
    Order::new((S::SIZE / FRAME_BYTES).ilog2().try_into().ok()?)
}

// SAFETY: `alloc` returns a frame to one caller only, whatever cpu it names (with fences that keep
// their promise), until it is freed. By the promise of `new` its owner frees it, and it is memory
// that is not used otherwise.
unsafe impl<S: PageSize, F: Fences> FrameAllocator<S> for X86Frames<'_, '_, F> {
    fn allocate_frame(&mut self) -> Option<PhysFrame<S>> {
        let frame = self.frames.alloc((self.cpu)(), &Request::order(order_of::<S>()?)).ok()?;
        PhysFrame::from_start_address(PhysAddr::new(frame.addr())).ok()
    }
}

impl<S: PageSize, F: Fences> FrameDeallocator<S> for X86Frames<'_, '_, F> {
    unsafe fn deallocate_frame(&mut self, frame: PhysFrame<S>) {
        let number = frame.start_address().as_u64() / FRAME_BYTES;
        let freed =
            order_of::<S>().map(|order| self.frames.free((self.cpu)(), Frame::new(number), order));
        if let Some(Err(error)) = freed {
            self.refused = Some(error);
        }
    }
}
