//! A kernel that maps pages with the `x86_64` crate's mapper and frames of `numalab-frames`: for
//! each CPU, pages of 4 KiB and one of 2 MiB, with frames on the CPU's own node.
#![no_std]
#![no_main]

extern crate alloc;

mod console;
mod heap;
mod machine;

use alloc::string::String;
use core::arch::global_asm;
use core::sync::atomic::{AtomicU16, Ordering};

use numalab_frames::{CpuFences, CpuIndex, FRAME_BYTES, Frame, Frames, X86Frames};
use x86_64::VirtAddr;
use x86_64::registers::control::Cr3;
use x86_64::structures::paging::{
    FrameAllocator, FrameDeallocator, Mapper, OffsetPageTable, Page, PageSize, PageTable,
    PageTableFlags, PhysFrame, Size2MiB, Size4KiB,
};

/// The reason for a failure, in words.
type Failure = String;

/// The address at which pages are mapped: nothing else is above 4 GiB.
const PAGES_START: u64 = 0x4444_0000_0000;
/// Distance at which the pages of two CPUs share no page table.
const CPU_BYTES: u64 = 1 << 30;
const SMALL_PAGES: u64 = 3;

global_asm!(include_str!("boot.s"), main = sym start);

/// The CPU for which frames are taken. A kernel that runs several would use the running CPU.
static CPU: AtomicU16 = AtomicU16::new(0);

extern "C" fn start(start_info: u64) -> ! {
    match map_all(start_info) {
        Ok(()) => {
            say!("numalab-x86_64: done");
            console::exit(0)
        }
        Err(failure) => {
            say!("numalab-x86_64: FAILED: {failure}");
            console::exit(1)
        }
    }
}

fn map_all(start_info: u64) -> Result<(), Failure> {
    let (plan, frames) = machine::serve(start_info)?;
    let (nodes, cpus) = (plan.machine.nodes.len(), plan.cpu_nodes.len());
    say!("machine: {nodes} nodes, {cpus} cpus");
    let start = core::ptr::with_exposed_provenance_mut::<PageTable>(
        Cr3::read().0.start_address().as_u64() as usize,
    );
    // SAFETY: `boot.s` made the table in separate memory and maps it, with the first 4 GiB, at its
    // own address; this is the only reference.
    let mut mapper = unsafe { OffsetPageTable::new(&mut *start, VirtAddr::new(0)) };
    for (place, home) in (0..).zip(&plan.cpu_nodes) {
        CPU.store(place, Ordering::Relaxed);
        say!("cpu {place}: node {}", home.0);
        small_pages(place).try_for_each(|page| map::<Size4KiB>(&mut mapper, frames, page))?;
        map::<Size2MiB>(&mut mapper, frames, large_page(place))?;
    }
    for (place, _) in (0..).zip(&plan.cpu_nodes) {
        small_pages(place).try_for_each(|page| unmap::<Size4KiB>(&mut mapper, frames, page))?;
        unmap::<Size2MiB>(&mut mapper, frames, large_page(place))?;
    }
    Ok(())
}

/// The addresses of a CPU's pages of 4 KiB.
fn small_pages(place: u16) -> impl Iterator<Item = u64> {
    let first = PAGES_START + u64::from(place) * CPU_BYTES;
    (0..SMALL_PAGES).map(move |number| first + number * Size4KiB::SIZE)
}

fn large_page(place: u16) -> u64 {
    PAGES_START + u64::from(place) * CPU_BYTES + Size2MiB::SIZE
}

/// The allocator in the form that mappers require.
fn source(frames: &'static Frames<'static, CpuFences>) -> X86Frames<'static, 'static, CpuFences> {
    // SAFETY: 1. The frames served are memory that the loader reports as free, without the kernel
    // and its metadata. 2. Only `map` and the mapper take frames; a page's frame is freed by
    // `unmap`, once it is unmapped, and a table's never is.
    unsafe { X86Frames::new(frames, this_cpu) }
}

/// Maps a page, prints the node of its frame, and writes to it.
fn map<S: PageSize + core::fmt::Debug>(
    mapper: &mut OffsetPageTable<'_>,
    frames: &'static Frames<'static, CpuFences>,
    address: u64,
) -> Result<(), Failure>
where
    for<'t> OffsetPageTable<'t>: Mapper<S>,
{
    let mut source = source(frames);
    let page = Page::<S>::containing_address(VirtAddr::new(address));
    let frame: PhysFrame<S> = source.allocate_frame().ok_or("no frame")?;
    let physical = frame.start_address().as_u64();
    let node = frames.node_of(Frame::new(physical / FRAME_BYTES)).ok_or("a frame of no node")?;
    let flags = PageTableFlags::PRESENT | PageTableFlags::WRITABLE;
    // SAFETY: the frame belongs to this page alone, and nothing else uses its addresses.
    let mapped = unsafe { mapper.map_to(page, frame, flags, &mut source) };
    mapped.map_err(|error| alloc::format!("{page:?}: {error:?}"))?.flush();
    let seen = core::ptr::with_exposed_provenance_mut::<u64>(address as usize);
    let own = core::ptr::with_exposed_provenance::<u64>(physical as usize);
    // SAFETY: the page is mapped and used by nothing else; its frame is below 4 GiB, where it is
    // also mapped at its own address.
    let same = unsafe {
        seen.write_volatile(address);
        own.read_volatile() == address
    };
    if !same {
        return Err(alloc::format!("{page:?} is not {frame:?}"));
    }
    say!("page {address:#x} of {} KiB: frame {physical:#x}, node {}", S::SIZE >> 10, node.0);
    Ok(())
}

/// Unmaps a page and gives its frame back.
fn unmap<S: PageSize + core::fmt::Debug>(
    mapper: &mut OffsetPageTable<'_>,
    frames: &'static Frames<'static, CpuFences>,
    address: u64,
) -> Result<(), Failure>
where
    for<'t> OffsetPageTable<'t>: Mapper<S>,
{
    let mut source = source(frames);
    let page = Page::<S>::containing_address(VirtAddr::new(address));
    let (frame, flush) = mapper.unmap(page).map_err(|error| alloc::format!("{error:?}"))?;
    flush.flush();
    // SAFETY: the frame was this page's, which is unmapped.
    unsafe { source.deallocate_frame(frame) };
    source.refused().map_or(Ok(()), |error| Err(alloc::format!("{frame:?}: {error}")))
}

fn this_cpu() -> CpuIndex {
    CpuIndex(CPU.load(Ordering::Relaxed))
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    say!("numalab-x86_64: FAILED: {info}");
    console::exit(1)
}
