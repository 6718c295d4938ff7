//! Frames as memory: runs that are owned, filled and freed.

use numalab_frames::{
    AllocError, CpuFences, CpuIndex, Frame, Frames, FramesCell, FreeError, InitError, Machine,
    NodeIndex, Order, Policy, Request, Word,
};
use numalab_kernel::memory_map::Span;
use numalab_kernel::tables::Physical;
use numalab_membench::Line;

use super::address::{index, pointer};

static FRAMES: FramesCell = FramesCell::new();

/// The machine's memory, as runs of frames. The allocator itself, which any caller may ask to free
/// a frame of a run, is reached through [`Memory::frames`].
#[derive(Clone, Copy)]
pub struct Memory(&'static Frames<'static, CpuFences>);

impl Memory {
    /// Starts the allocator, once.
    ///
    /// # Safety
    /// The frames of the machine, and the metadata, whole blocks of 2 MiB, are ordinary memory. It is
    /// mapped at its own addresses, without address 0, for as long as the kernel runs, and is not
    /// used otherwise from now on.
    pub unsafe fn start(machine: Machine<'static>, metadata: &Span) -> Result<Self, InitError> {
        // SAFETY: guaranteed by the caller.
        let metadata = unsafe { words(metadata) };
        FRAMES.init(machine, metadata, CpuFences).map(Self)
    }

    /// Returns the memory, once its allocator has been started.
    pub fn get() -> Option<Self> {
        FRAMES.get().map(Self)
    }

    /// Returns the allocator.
    ///
    /// # Safety
    /// The caller frees only frames that it allocated by the allocator itself.
    pub unsafe fn frames(self) -> &'static Frames<'static, CpuFences> {
        self.0
    }
}

/// Consecutive allocated frames, which are accessed only by their owner.
pub struct Run {
    first: Frame,
    frames: u64,
    node: NodeIndex,
}

impl Run {
    /// Allocates this number of frames by a policy; `cpu` is the current one.
    pub fn new(
        memory: Memory,
        cpu: CpuIndex,
        frames: u64,
        policy: Policy<'_>,
    ) -> Result<Self, AllocError> {
        // Powers of two are aligned to their size, as in a buddy allocator.
        let request = match frames.is_power_of_two().then(|| order_of(frames)) {
            Some(Some(order)) => Request::order(order),
            _ => Request::run(frames),
        };
        let first = memory.0.alloc(cpu, &request.policy(policy))?;
        let node = memory.0.node_of(first).unwrap_or(NodeIndex(0));
        Ok(Self { first, frames, node })
    }

    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Returns the run at an address that was leaked with its frames in use.
    ///
    /// # Safety
    /// A run of this number of frames began at `address` and was dropped without being freed; the
    /// caller rebuilds it only once, and its memory is no longer accessed through the address.
    pub unsafe fn from_address(address: u64, frames: u64) -> Self {
        Self { first: Frame::new(address / 4096), frames, node: NodeIndex(0) }
    }

    /// Returns the node of the run's first frame.
    pub fn node(&self) -> NodeIndex {
        self.node
    }

    /// Returns the address of the run's first byte.
    pub fn address(&self) -> u64 {
        self.first.addr()
    }

    /// Returns the memory of the run's frames, with arbitrary content.
    pub fn lines(&mut self) -> &mut [Line] {
        let start = pointer(self.address());
        // SAFETY: 1. The frames are allocated to this run alone, which alone can free them
        // (`Memory::frames`), and `&mut self` excludes any other view. 2. They are ordinary memory,
        // mapped at their own addresses and never at 0 (`Memory::start`). 3. Any bytes are valid
        // lines.
        let lines = unsafe { Line::slice_from_raw(start, index(self.frames * 4096)) };
        lines.unwrap_or_default()
    }

    /// Returns the frames to the allocator.
    pub fn free(self, memory: Memory, cpu: CpuIndex) -> Result<(), FreeError> {
        memory.0.free_run(cpu, self.first, self.frames)
    }
}

/// Returns the order of a power of two of frames.
fn order_of(frames: u64) -> Option<Order> {
    u8::try_from(frames.ilog2()).ok().and_then(Order::new)
}

/// Returns a span of memory as words.
///
/// # Safety
/// The span is ordinary memory, mapped at its own addresses and aligned to 8 bytes, which is not
/// used otherwise from now on.
unsafe fn words(span: &Span) -> &'static mut [Word] {
    let start = pointer::<Word>(span.start);
    // SAFETY: guaranteed by the caller; any bytes are valid words.
    unsafe { core::slice::from_raw_parts_mut(start, index(span.bytes() / 8)) }
}

/// The mapped part of the physical memory in the loader's map.
pub struct Mapped(alloc::vec::Vec<Span>);

impl Mapped {
    /// Creates the memory that may be read.
    ///
    /// # Safety
    /// As long as this exists, all of these spans except address 0 that contain memory or
    /// firmware's data are mapped at their own addresses, and the memory that is read is not
    /// written to.
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
        // SAFETY: the bytes are within a span, which the caller of `new` guaranteed to be mapped
        // and not written to.
        Some(unsafe { core::slice::from_raw_parts(start, bytes) })
    }
}
