//! Redox's `rmm::FrameAllocator`: counts of frames at physical addresses.
//! <https://gitlab.redox-os.org/redox-os/rmm>

use crate::error::FreeError;
use crate::fences::Fences;
use crate::frames::Frames;
use crate::ids::{CpuIndex, FRAME_BYTES, Frame, NodeIndex, Order};
use crate::policy::Request;
use crate::sync::low_u16;

/// The allocator with the methods of `rmm::FrameAllocator`, with plain numbers for its
/// `PhysicalAddress` and `FrameCount`.
///
/// It is safe as [`Frames`] is; rmm's trait is unsafe to implement, and an implementation by these
/// methods promises that a frame is freed by its owner, once it is unused.
pub struct RmmFrames<'f, 'm, F> {
    frames: &'f Frames<'m, F>,
    cpu: fn() -> CpuIndex,
}

/// The equivalent of `rmm::FrameUsage`: frames in use, and frames in total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RmmUsage {
    /// Allocated frames.
    pub used: u64,
    /// Online frames.
    pub total: u64,
}

impl<'f, 'm, F: Fences> RmmFrames<'f, 'm, F> {
    /// Creates the adapter for callers on the cpu that `cpu` returns.
    pub const fn new(frames: &'f Frames<'m, F>, cpu: fn() -> CpuIndex) -> Self {
        Self { frames, cpu }
    }

    /// Allocates `count` frames and returns their physical address.
    pub fn allocate(&mut self, count: usize) -> Option<usize> {
        let frame = self.frames.alloc((self.cpu)(), &Request::run(count as u64)).ok()?;
        frame.addr().try_into().ok()
    }

    /// Frees `count` frames.
    ///
    /// # Errors
    /// As [`Frames::free_run`]; [`FreeError::Misaligned`] for an address within a frame.
    pub fn free(&mut self, address: usize, count: usize) -> Result<(), FreeError> {
        let address = address as u64;
        let misaligned =
            FreeError::Misaligned { frame: Frame::new(address / FRAME_BYTES), order: Order::FRAME };
        let frame = Frame::from_addr(address).ok_or(misaligned)?;
        self.frames.free_run((self.cpu)(), frame, count as u64)
    }

    /// Returns the number of frames in use and in total.
    pub fn usage(&self) -> RmmUsage {
        let nodes = 0..self.frames.machine().nodes();
        let infos = nodes.map(|node| self.frames.node_info(NodeIndex(low_u16(node))));
        infos.fold(RmmUsage { used: 0, total: 0 }, |sum, info| RmmUsage {
            used: sum.used + info.allocated(),
            total: sum.total + info.managed,
        })
    }
}
