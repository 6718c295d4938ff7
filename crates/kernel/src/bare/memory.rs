//! Frames as memory: runs that are owned, filled and given back.

use numalab_frames::{
    AllocError, CpuFences, CpuIndex, Frame, Frames, FramesCell, FreeError, NodeIndex, Order,
    Policy, Request, Word,
};
use numalab_kernel::memory_map::Span;
use numalab_kernel::tables::Physical;
use numalab_membench::Line;

use super::address::{index, pointer};

/// The allocator of the machine.
pub static FRAMES: FramesCell = FramesCell::new();

/// Consecutive frames that the allocator has handed out, and that only their owner touches.
pub struct Run {
    first: Frame,
    frames: u64,
    node: NodeIndex,
}

impl Run {
    /// As many frames by a policy; `cpu` is the one that this runs on.
    pub fn new(
        allocator: &'static Frames<'static, CpuFences>,
        cpu: CpuIndex,
        frames: u64,
        policy: Policy<'_>,
    ) -> Result<Self, AllocError> {
        // Powers of two are aligned to their size, as a buddy allocator's are.
        let request = match frames.is_power_of_two().then(|| order_of(frames)) {
            Some(Some(order)) => Request::order(order),
            _ => Request::run(frames),
        };
        let first = allocator.alloc(cpu, &request.policy(policy))?;
        let node = allocator.node_of(first).unwrap_or(NodeIndex(0));
        Ok(Self { first, frames, node })
    }

    /// How many frames.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// The run at an address that was forgotten while its frames were in use.
    ///
    /// # Safety
    /// A run of so many frames began at `address` and was dropped without being freed; the caller
    /// makes one of it only once, and nothing uses its memory by the address any more.
    pub unsafe fn from_address(address: u64, frames: u64) -> Self {
        Self { first: Frame::new(address / 4096), frames, node: NodeIndex(0) }
    }

    /// The node of its first frame.
    pub fn node(&self) -> NodeIndex {
        self.node
    }

    /// The address of its first byte.
    pub fn address(&self) -> u64 {
        self.first.addr()
    }

    /// Its memory.
    pub fn lines(&mut self) -> &mut [Line] {
        let start = pointer(self.address());
        // SAFETY: 1. The frames are handed out to this run alone, and `&mut self` excludes any
        // other view. 2. All frames of the allocator are ordinary memory, mapped at their own
        // addresses, and never at 0. 3. Any bytes are lines.
        let lines = unsafe { Line::slice_from_raw(start, index(self.frames * 4096)) };
        lines.unwrap_or_default()
    }

    /// Gives it back.
    pub fn free(
        self,
        allocator: &'static Frames<'static, CpuFences>,
        cpu: CpuIndex,
    ) -> Result<(), FreeError> {
        allocator.free_run(cpu, self.first, self.frames)
    }
}

/// The order of a power of two of frames.
fn order_of(frames: u64) -> Option<Order> {
    u8::try_from(frames.ilog2()).ok().and_then(Order::new)
}

/// A span of memory as words.
///
/// # Safety
/// The span is ordinary memory, mapped at its own addresses and aligned to 8 bytes, which nobody
/// else uses from now on.
pub unsafe fn words(span: &Span) -> &'static mut [Word] {
    let start = pointer::<Word>(span.start);
    // SAFETY: the caller's promise; any bytes are words.
    unsafe { core::slice::from_raw_parts_mut(start, index(span.bytes() / 8)) }
}

/// Physical memory as the loader's map has it, as far as it is mapped.
pub struct Mapped(alloc::vec::Vec<Span>);

impl Mapped {
    /// What may be looked at.
    ///
    /// # Safety
    /// As long as this lives, all of these spans but address 0 that hold memory or firmware's data
    /// are mapped at their own addresses, and nobody writes to what is read.
    pub unsafe fn new(spans: impl Iterator<Item = Span>) -> Self {
        Self(spans.collect())
    }
}

impl Physical for Mapped {
    fn read(&self, address: u64, bytes: usize) -> Option<&[u8]> {
        let wanted = Span::of(address, bytes as u64);
        if !self.0.iter().any(|span| span.holds(&wanted)) || address == 0 {
            return None;
        }
        let start = pointer(address);
        // SAFETY: the bytes lie within a span, which by the promise of `new` is mapped and not
        // written to.
        Some(unsafe { core::slice::from_raw_parts(start, bytes) })
    }
}
