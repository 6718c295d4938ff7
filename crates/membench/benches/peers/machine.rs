//! The machine that the bench runs on: its name, one of its cpus, and its memory.

use numalab_membench::{Clock, Line};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::ffi::c_void;
use std::fs;
use std::ptr::{NonNull, null_mut};
use std::time::Instant;

/// Returns one line that identifies the machine of the figures.
pub fn describe() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model =
        cpus.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown");
    format!(
        "{}, {} cpus, Linux {}, transparent huge pages {}",
        model.trim_start_matches(['\t', ' ', ':']),
        std::thread::available_parallelism().map_or(0, usize::from),
        read("/proc/sys/kernel/osrelease").trim(),
        read("/sys/kernel/mm/transparent_hugepage/enabled").trim(),
    )
}

/// Keeps this thread on the first cpu.
pub fn stay_on_first_cpu() {
    let mut first = CpuSet::new();
    first.set(0);
    if let Err(error) = sched_setaffinity(None, &first) {
        println!("not bound to a cpu: {error}");
    }
}

pub fn clock() -> Clock {
    let epoch = Instant::now();
    let now_ns = || u64::try_from(epoch.elapsed().as_nanos()).expect("under 500 years");
    Clock::calibrate(now_ns, 50_000_000).expect("a clock that runs evenly")
}

/// The pages requested for memory.
#[derive(Clone, Copy)]
pub enum Pages {
    Small,
    Huge,
}

/// Touched memory in a separate mapping.
pub struct Memory {
    mapping: *mut c_void,
    mapped_bytes: usize,
    lines: NonNull<[Line]>,
}

impl Memory {
    pub fn new(size_bytes: usize, pages: Pages) -> Memory {
        const HUGE: usize = 2 << 20;
        let mapped_bytes = size_bytes + HUGE;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let advice = match pages {
            Pages::Small => Advice::LinuxNoHugepage,
            Pages::Huge => Advice::LinuxHugepage,
        };
        // SAFETY: a new mapping at an address of the kernel's choice.
        let mapping =
            unsafe { mmap_anonymous(null_mut(), mapped_bytes, access, MapFlags::PRIVATE) };
        let mapping = mapping.expect("memory for the bench");
        // SAFETY: less than a huge page into the mapping.
        let start = unsafe { mapping.cast::<u8>().add(mapping.align_offset(HUGE)) };
        // SAFETY: `size_bytes` from `start` on are in the mapping; the advice changes no content.
        if let Err(error) = unsafe { madvise(start.cast(), size_bytes, advice) } {
            println!("pages are the kernel's choice: {error}");
        }
        // SAFETY: that memory is mapped and zero, and is not used otherwise until it is unmapped.
        let lines = unsafe { Line::slice_from_raw(start, size_bytes) }.expect("whole lines");
        lines.fill(Line::ZERO);
        Memory { mapping, mapped_bytes, lines: NonNull::from(lines) }
    }

    pub fn lines(&mut self) -> &mut [Line] {
        // SAFETY: in our mapping, which is borrowed through `self`.
        unsafe { self.lines.as_mut() }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: our mapping, which can no longer be borrowed.
        if let Err(error) = unsafe { munmap(self.mapping, self.mapped_bytes) } {
            println!("memory was not unmapped: {error}");
        }
    }
}
