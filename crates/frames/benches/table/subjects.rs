//! The allocators under comparison, all behind the same two calls.

use std::alloc::Layout;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::Mutex;

use bitmap_allocator::BitAlloc as _;
use frame_alloc::{
    CpuId, DepotAllocator, PageSize, PhysicalAllocator, Provenance, RegionInit,
    SummaryBuddyAllocator,
};
use numalab_frames::{
    CpuIndex, Fences, Frame, Frames, Machine, MemoryRange, NodeIndex, Order, RangeState,
    RemoteFences, Request, Word,
};

/// Number of frames that every allocator here manages: 2 GiB.
pub const FRAMES: u64 = 1 << 19;

/// An allocator under test.
pub trait Subject: Sync {
    fn alloc(&self, cpu: u16, order: u8) -> Option<u64>;
    fn free(&self, cpu: u16, frame: u64, order: u8);
}

/// Creates this crate's allocator: `nodes` nodes with equal shares of `frames`, two cpus, leaked
/// tables.
pub fn ours<F: Fences>(nodes: u16, frames: u64, fences: F) -> Frames<'static, F> {
    let cpus = (0..2).map(|cpu| NodeIndex(cpu % nodes)).collect();
    let machine = machine(nodes, frames / u64::from(nodes), cpus);
    let words = machine.metadata_words().expect("the machine is valid");
    let metadata: Vec<Word> = (0..words).map(|_| Word::new(0)).collect();
    Frames::new(machine, metadata.leak(), fences).expect("the metadata suffices")
}

/// Returns nodes in a ring with this number of frames each.
pub fn machine(nodes: u16, per_node: u64, cpus: Vec<NodeIndex>) -> Machine<'static> {
    let ranges: Vec<MemoryRange> = (0..nodes)
        .map(|node| MemoryRange {
            start: Frame::new(u64::from(node) * per_node),
            frames: per_node,
            node: NodeIndex(node),
            state: RangeState::Online,
        })
        .collect();
    let order = |node: u16| -> &'static [NodeIndex] {
        (0..nodes).map(|k| NodeIndex((node + k) % nodes)).collect::<Vec<_>>().leak()
    };
    Machine {
        ranges: ranges.leak(),
        zone_limits: &[u64::MAX],
        cpus: cpus.leak(),
        fallback: (0..nodes).map(order).collect::<Vec<_>>().leak(),
    }
}

impl<F: Fences + Sync> Subject for Frames<'static, F> {
    #[inline(always)]
    fn alloc(&self, cpu: u16, order: u8) -> Option<u64> {
        let found = if order == 0 {
            self.alloc_frame(CpuIndex(cpu))
        } else {
            Frames::alloc(self, CpuIndex(cpu), &Request::order(Order::new(order)?))
        };
        found.ok().map(Frame::number)
    }

    #[inline(always)]
    fn free(&self, cpu: u16, frame: u64, order: u8) {
        let (cpu, frame) = (CpuIndex(cpu), Frame::new(frame));
        let freed = match Order::new(order) {
            Some(order) if order > Order::FRAME => Frames::free(self, cpu, frame, order),
            _ => self.free_frame(cpu, frame),
        };
        freed.expect("the frame was allocated");
    }
}

/// This crate's allocator through the calls that serve every order, as kernels' own interfaces use
/// them.
pub struct ByRequest(pub Frames<'static, RemoteFences>);

impl Subject for ByRequest {
    #[inline(always)]
    fn alloc(&self, cpu: u16, order: u8) -> Option<u64> {
        let request = Request::order(Order::new(order)?);
        self.0.alloc(CpuIndex(cpu), &request).ok().map(Frame::number)
    }

    #[inline(always)]
    fn free(&self, cpu: u16, frame: u64, order: u8) {
        self.0
            .free_run(CpuIndex(cpu), Frame::new(frame), 1 << order)
            .expect("the run was allocated");
    }
}

/// The lower bound: a stack of frame numbers for each cpu, order 0 only.
pub struct ArrayStack(Vec<Mutex<Vec<u64>>>);

impl ArrayStack {
    pub fn new() -> Self {
        let half = FRAMES / 2;
        let stack = |cpu: u64| Mutex::new((cpu * half..(cpu + 1) * half).rev().collect());
        Self((0..2).map(stack).collect())
    }

    /// Times the lower bound: one cpu's stack without a lock.
    pub fn pair_ns(&self, operations: u64) -> f64 {
        let mut stack = self.0[0].lock().expect("no panic");
        super::harness::per_op_ns(operations, || {
            for _ in 0..operations {
                let frame = stack.pop().expect("half of all frames");
                stack.push(std::hint::black_box(frame));
            }
        })
    }
}

/// `buddy_system_allocator`'s frame allocator behind a mutex, which is its intended use.
pub struct Buddy(Mutex<buddy_system_allocator::FrameAllocator>);

impl Buddy {
    pub fn new() -> Self {
        let mut buddy = buddy_system_allocator::FrameAllocator::new();
        buddy.add_frame(0, usize::try_from(FRAMES).expect("64 bits"));
        Self(Mutex::new(buddy))
    }
}

impl Subject for Buddy {
    #[inline(always)]
    fn alloc(&self, _cpu: u16, order: u8) -> Option<u64> {
        self.0.lock().ok()?.alloc(1 << order).map(|frame| frame as u64)
    }

    #[inline(always)]
    fn free(&self, _cpu: u16, frame: u64, order: u8) {
        let frame = usize::try_from(frame).expect("64 bits");
        self.0.lock().expect("no panic").dealloc(frame, 1 << order);
    }
}

/// `bitmap-allocator` for a million frames, behind a mutex.
pub struct Bitmap(Mutex<Box<bitmap_allocator::BitAlloc1M>>);

impl Bitmap {
    pub fn new() -> Self {
        let mut bitmap = Box::new(bitmap_allocator::BitAlloc1M::DEFAULT);
        bitmap.insert(0..usize::try_from(FRAMES).expect("64 bits"));
        Self(Mutex::new(bitmap))
    }
}

impl Subject for Bitmap {
    #[inline(always)]
    fn alloc(&self, _cpu: u16, order: u8) -> Option<u64> {
        let mut bitmap = self.0.lock().ok()?;
        let found = match order {
            0 => bitmap.alloc(),
            _ => bitmap.alloc_contiguous(None, 1 << order, order.into()),
        };
        found.map(|frame| frame as u64)
    }

    #[inline(always)]
    fn free(&self, _cpu: u16, frame: u64, order: u8) {
        let frame = usize::try_from(frame).expect("64 bits");
        let mut bitmap = self.0.lock().expect("no panic");
        let freed = match order {
            0 => bitmap.dealloc(frame),
            _ => bitmap.dealloc_contiguous(frame, 1 << order),
        };
        assert!(freed);
    }
}

const BASE: PageSize = PageSize::from_log2(12);

/// The pool is memory of this process.
pub struct Exposed;

// SAFETY: addresses given to `create` are in the pool that `Depot::new` allocated and exposed, and
// the pool is never freed.
unsafe impl Provenance for Exposed {
    unsafe fn create(phys: usize) -> NonNull<u8> {
        NonNull::new(std::ptr::with_exposed_provenance_mut(phys)).expect("the pool is not at 0")
    }

    unsafe fn destroy<T>(pointer: NonNull<T>) -> usize {
        pointer.addr().get()
    }
}

std::thread_local! {
    static CPU: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The cpu that the workload has set.
pub struct SaidCpu;

impl CpuId for SaidCpu {
    fn current_cpu() -> usize {
        CPU.get()
    }
}

type DepotOf = DepotAllocator<SummaryBuddyAllocator<19, Exposed>, SaidCpu, 2>;

/// `frame-alloc`'s magazines and depot over its buddy allocator.
pub struct Depot {
    depot: Box<DepotOf>,
    base: usize,
}

impl Depot {
    pub fn new() -> Self {
        let bytes = usize::try_from(FRAMES * 4096).expect("64 bits");
        let layout = Layout::from_size_align(bytes, 1 << 30).expect("a valid layout");
        // SAFETY: the layout's size is not zero.
        let base = unsafe { std::alloc::alloc(layout) }.expose_provenance();
        assert_ne!(base, 0, "no memory for the pool");
        let depot = Box::new(DepotOf::new(BASE, SummaryBuddyAllocator::new(BASE)));
        // SAFETY: the pool is used by nothing else, is aligned to the largest block, and is never
        // freed; this is the only call, before any other.
        unsafe { depot.init_region(base, bytes) };
        Self { depot, base }
    }
}

impl Subject for Depot {
    #[inline(always)]
    fn alloc(&self, cpu: u16, order: u8) -> Option<u64> {
        CPU.set(cpu.into());
        let count = NonZeroUsize::new(1 << order)?;
        let address = self.depot.allocate_physical(BASE, count).ok()?;
        Some((address - self.base) as u64 / 4096)
    }

    #[inline(always)]
    fn free(&self, cpu: u16, frame: u64, order: u8) {
        CPU.set(cpu.into());
        let count = NonZeroUsize::new(1 << order).expect("a power of two");
        let address = self.base + usize::try_from(frame * 4096).expect("64 bits");
        // SAFETY: the workloads free each run that `alloc` returned once, with the same order.
        unsafe { self.depot.deallocate_physical(BASE, count, address) };
    }
}
