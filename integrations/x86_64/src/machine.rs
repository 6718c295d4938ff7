//! The machine as its firmware's tables describe it, and its memory as frames.

use alloc::boxed::Box;
use alloc::string::ToString;
use core::arch::x86_64::__cpuid;

use numalab_frames::{CpuFences, Frames, FramesCell, Word};
use numalab_kernel::boot_info::BootInfo;
use numalab_kernel::command::Numa;
use numalab_kernel::memory_map::{Span, carve, free_spans};
use numalab_kernel::plan::Plan;
use numalab_kernel::tables::{self, Physical};

use crate::Failure;

/// The memory that `boot.s` maps at its own addresses.
const MAPPED: Span = Span { start: 0, end: 4 << 30 };
/// The memory that the firmware uses.
const FIRST_MIB: Span = Span { start: 0, end: 1 << 20 };
/// Words of metadata in addition to those of the first plan: allocating them splits one range in
/// two.
const SLACK_WORDS: usize = 1024;

static FRAMES: FramesCell = FramesCell::new();

unsafe extern "C" {
    static __kernel_start: u8;
    static __kernel_end: u8;
}

/// Reads memory where it is mapped.
struct Low;

impl Physical for Low {
    fn read(&self, address: u64, bytes: usize) -> Option<&[u8]> {
        if address == 0 || !MAPPED.holds(&Span::of(address, bytes as u64)) {
            return None;
        }
        let start = core::ptr::with_exposed_provenance(address as usize);
        // SAFETY: `boot.s` maps it. The loader's and the firmware's data are read, which no one
        // writes; where a damaged table points elsewhere, any bytes may be read.
        Some(unsafe { core::slice::from_raw_parts(start, bytes) })
    }
}

/// Plans the machine that PVH's start info describes, and serves its free memory.
pub fn serve(
    start_info: u64,
) -> Result<(&'static Plan, &'static Frames<'static, CpuFences>), Failure> {
    let info = BootInfo::pvh(&Low, start_info).map_err(|error| error.to_string())?;
    let found = tables::find(&Low, info.rsdp);
    let kernel = Span {
        start: (&raw const __kernel_start).addr() as u64,
        end: (&raw const __kernel_end).addr() as u64,
    };
    let usable = info.usable().iter().map(|span| span.common(&MAPPED)).collect::<Box<[Span]>>();
    let mut free = free_spans(&usable, &[FIRST_MIB, kernel]);
    let boot_cpu = __cpuid(1).ebx >> 24;
    let plan = |free: &[Span]| {
        Plan::new(&found, free, boot_cpu, &Numa::On).map_err(|error| error.to_string())
    };
    let first = plan(&free)?;
    let needed = first.served(&first.fallback_slices()).metadata_words();
    let needed = needed.map_err(|error| error.to_string())? + SLACK_WORDS;
    let metadata = carve(&mut free, needed as u64 * 8).ok_or("no room for the metadata")?;
    let plan: &'static Plan = Box::leak(Box::new(plan(&free)?));
    let start = core::ptr::with_exposed_provenance_mut::<Word>(metadata.start as usize);
    // SAFETY: `carve` cut the span, mapped memory that is aligned to 2 MiB, off the served memory,
    // so nothing else uses it. Any bytes are valid words.
    let metadata =
        unsafe { core::slice::from_raw_parts_mut(start, (metadata.bytes() / 8) as usize) };
    let served = plan.served(plan.fallback_slices().leak());
    let frames = FRAMES.init(served, metadata, CpuFences).map_err(|error| error.to_string())?;
    Ok((plan, frames))
}
