//! `FrameAllocator` and `FrameDeallocator` of the x86_64 crate, for its three page sizes.

use x86_64::PhysAddr;
use x86_64::structures::paging::{FrameAllocator, FrameDeallocator, PageSize, PhysFrame};

use crate::error::FreeError;
use crate::fences::Fences;
use crate::frames::Frames;
use crate::ids::{CpuIndex, FRAME_BYTES, Frame, Order};
use crate::policy::Request;

/// The allocator as the x86_64 crate's mappers want it.
pub struct X86Frames<'f, 'm, F> {
    frames: &'f Frames<'m, F>,
    cpu: fn() -> CpuIndex,
    refused: Option<FreeError>,
}

impl<'f, 'm, F: Fences> X86Frames<'f, 'm, F> {
    /// The allocator for callers on the cpu that `cpu` tells.
    ///
    /// # Safety
    /// Mappers write to what they are given. 1. The frames of the allocator's machine are memory
    /// that nobody uses who was not handed them. 2. A frame that was handed out is freed, here or
    /// by any other way ([`Frames::free`] is safe, and takes a number), by its owner alone and
    /// once nobody uses it any more.
    pub const unsafe fn new(frames: &'f Frames<'m, F>, cpu: fn() -> CpuIndex) -> Self {
        Self { frames, cpu, refused: None }
    }

    /// The last free that was refused: the trait has no room to say so.
    pub const fn refused(&self) -> Option<FreeError> {
        self.refused
    }
}

/// The order of a page size: 0, 9 or 18.
fn order_of<S: PageSize>() -> Option<Order> {
    Order::new((S::SIZE / FRAME_BYTES).ilog2().try_into().ok()?)
}

// SAFETY: `alloc` hands a frame out to one caller only, whatever cpu it names (with fences that
// keep their word), until it is freed; by the promise of `new` its owner frees it, and it is memory
// that nobody else uses.
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
