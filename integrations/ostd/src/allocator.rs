//! The allocator that OSTD requests frames from: numalab's or OSTD's own.
//!
//! OSTD reports all free memory before it requests the first frame. The machine is planned at that
//! first request: reading the tables needs a heap, which needs frames, and these come from a small
//! arena. From then on everything comes from the allocator.

use alloc::boxed::Box;
use alloc::string::ToString;
use core::alloc::Layout;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use numalab_frames::{CpuFences, CpuIndex, Frames, FramesCell, NodeIndex, OstdFrames, Policy};
use numalab_kernel::command::Numa;
use numalab_kernel::memory_map::{Span, carve};
use numalab_kernel::plan::Plan;
use osdk_frame_allocator::FrameAllocator;
use ostd::mm::Paddr;
use ostd::mm::frame::GlobalFrameAllocator;
use ostd::prelude::println;
use ostd::{cpu_local_cell, irq};
use spin::Mutex;

use crate::words::{Allocator, Words};
use crate::{Failure, machine, osdk, physical, recorded};

/// Room for the heap while the machine is planned.
const ARENA_BYTES: u64 = 1 << 20;
/// Words of metadata in addition to those of the first plan: allocating them splits one range in
/// two.
const SLACK_WORDS: usize = 1024;

#[ostd::global_frame_allocator]
pub static ALLOCATOR: NodeAllocator = NodeAllocator;

static FRAMES: FramesCell = FramesCell::new();
/// True while the machine is being planned.
static PLANNING: AtomicBool = AtomicBool::new(false);
/// The rest of the arena, which is at [`ARENA_START`].
static ARENA: Mutex<Span> = Mutex::new(Span { start: 0, end: 0 });
static ARENA_START: AtomicU64 = AtomicU64::new(u64::MAX);
/// Frees that were refused.
static REFUSED: AtomicU64 = AtomicU64::new(0);

cpu_local_cell! {
    /// Index of this cpu in the plan; `u16::MAX` until it is requested.
    static PLACE: u16 = u16::MAX;
}

/// The allocator that the command line names.
pub struct NodeAllocator;

impl GlobalFrameAllocator for NodeAllocator {
    fn alloc(&self, layout: Layout) -> Option<Paddr> {
        let _on_this_cpu = irq::disable_local();
        match (Allocator::chosen(), FRAMES.get()) {
            (Allocator::Osdk, _) => {
                plan_for_osdk();
                FrameAllocator.alloc(layout)
            }
            (_, Some(frames)) => adapter(frames).alloc(layout),
            _ => before(layout),
        }
    }

    fn dealloc(&self, addr: Paddr, size: usize) {
        if Allocator::chosen() == Allocator::Osdk {
            return FrameAllocator.dealloc(addr, size);
        }
        let _on_this_cpu = irq::disable_local();
        let start = ARENA_START.load(Ordering::Relaxed);
        if (start..start.saturating_add(ARENA_BYTES)).contains(&(addr as u64)) {
            // The arena is not allocated again.
            return;
        }
        let freed = FRAMES.get().map(|frames| adapter(frames).dealloc(addr, size));
        if !matches!(freed, Some(Ok(()))) {
            REFUSED.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn add_free_memory(&self, addr: Paddr, size: usize) {
        recorded::add(addr, size);
        if Allocator::chosen() == Allocator::Osdk {
            FrameAllocator.add_free_memory(addr, size);
        }
    }
}

/// Returns the free bytes, by the allocator's own count.
pub fn free_bytes() -> u64 {
    match FRAMES.get() {
        Some(frames) => {
            let nodes = (0..=u16::MAX).take(frames.machine().nodes());
            let infos = nodes.map(|node| frames.node_info(NodeIndex(node)));
            infos.map(|info| (info.free + info.cached) * numalab_frames::FRAME_BYTES).sum()
        }
        None => osdk::free_bytes(),
    }
}

/// Prints what the allocator itself reports.
pub fn tell() {
    let refused = REFUSED.load(Ordering::Relaxed);
    println!("allocator: {} KiB free, {} frees refused", free_bytes() >> 10, refused);
}

fn adapter(frames: &'static Frames<'static, CpuFences>) -> OstdFrames<'static, 'static, CpuFences> {
    let policy = match Allocator::chosen() {
        Allocator::Blind => Policy::Blind,
        _ => Policy::Local,
    };
    OstdFrames::new(frames, this_cpu).policy(policy)
}

/// Returns the cpu that runs this, which interrupts do not change while it is used. OSTD numbers
/// cpus in the order in which they come up, so its numbers say nothing about nodes.
fn this_cpu() -> CpuIndex {
    let place = PLACE.load();
    if place != u16::MAX {
        return CpuIndex(place);
    }
    let found = machine::made().and_then(machine::place);
    let place = found.and_then(|place| u16::try_from(place).ok()).unwrap_or(0);
    PLACE.store(place);
    CpuIndex(place)
}

/// Plans the machine at the first request: OSTD does not map the firmware's tables later.
fn plan_for_osdk() {
    if PLANNING.load(Ordering::Relaxed) || PLANNING.swap(true, Ordering::Relaxed) {
        return;
    }
    if let Err(failure) = plan_beside_osdk() {
        println!("numalab-ostd: FAILED: {}", failure);
    }
}

fn plan_beside_osdk() -> Result<(), Failure> {
    let first_frame = Layout::from_size_align(4096, 4096).ok();
    let first_frame = first_frame.and_then(|one| FrameAllocator.alloc(one)).ok_or("no frame")?;
    physical::words(&Span::of(first_frame as u64, 4096)).ok_or("the first frame is in use")?;
    let plan = machine::make(&recorded::spans(), &wanted_nodes())?;
    machine::keep(Box::leak(Box::new(plan)));
    Ok(())
}

/// Returns the nodes that the command line requests. An invalid word is reported when everything is
/// up.
fn wanted_nodes() -> Numa {
    Words::of_boot().map_or(Numa::On, |words| words.command.numa)
}

/// Allocates a frame. The first request plans the machine; requests made by planning come from the
/// arena.
fn before(layout: Layout) -> Option<Paddr> {
    if PLANNING.swap(true, Ordering::Relaxed) {
        return from_arena(layout);
    }
    let arena = recorded::cut(ARENA_BYTES)?;
    ARENA_START.store(arena.start, Ordering::Relaxed);
    *ARENA.lock() = arena;
    match serve() {
        Ok(frames) => adapter(frames).alloc(layout),
        Err(failure) => {
            println!("numalab-ostd: FAILED: {}", failure);
            None
        }
    }
}

fn from_arena(layout: Layout) -> Option<Paddr> {
    let mut left = ARENA.lock();
    let start = left.start.next_multiple_of(layout.align() as u64);
    let end = start.checked_add(layout.size() as u64).filter(|end| *end <= left.end)?;
    left.start = end;
    usize::try_from(start).ok()
}

/// Plans the machine and passes its memory to the allocator.
fn serve() -> Result<&'static Frames<'static, CpuFences>, Failure> {
    let first_frame = Layout::from_size_align(4096, 4096).ok().and_then(from_arena);
    let first_frame = first_frame.ok_or("the arena is empty")? as u64;
    // Only the frame's address is used: it shows where OSTD maps memory, and so where the tables
    // are.
    physical::words(&Span::of(first_frame, 4096)).ok_or("the arena's first frame is in use")?;
    let numa = wanted_nodes();
    let mut free = recorded::spans();
    let first = machine::make(&free, &numa)?;
    let needed = first.served(&first.fallback_slices()).metadata_words();
    let needed = needed.map_err(|error| error.to_string())? + SLACK_WORDS;
    let metadata = carve(&mut free, needed as u64 * 8).ok_or("no room for the metadata")?;
    let plan: &'static Plan = Box::leak(Box::new(machine::make(&free, &numa)?));
    let metadata = physical::words(&metadata).ok_or("the metadata's memory is in use")?;
    machine::keep(plan);
    let served = plan.served(plan.fallback_slices().leak());
    FRAMES.init(served, metadata, CpuFences).map_err(|error| error.to_string())
}
