//! The machine the bench runs on: its name, one of its cpus, and its memory.

use numalab_membench::{Clock, Line};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::fs;
use std::time::Instant;

/// One line that says which machine the figures are of.
pub fn describe() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or(": unknown");
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

/// The pages that memory is asked to lie on.
#[derive(Clone, Copy)]
pub enum Pages {
    Small,
    Huge,
}

/// Touched memory, for the rest of the process's life.
pub fn memory(size_bytes: usize, pages: Pages) -> &'static mut [Line] {
    const HUGE: usize = 2 << 20;
    let mapped = size_bytes + HUGE;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let advice = match pages {
        Pages::Small => Advice::LinuxNoHugepage,
        Pages::Huge => Advice::LinuxHugepage,
    };
    // SAFETY: a new mapping, which nothing else knows of and which is never unmapped; the
    // part taken of it begins less than a huge page in, and so ends inside.
    let lines = unsafe {
        let start = mmap_anonymous(std::ptr::null_mut(), mapped, access, MapFlags::PRIVATE)
            .expect("memory for the bench")
            .cast::<u8>();
        let start = start.add(start.align_offset(HUGE));
        if let Err(error) = madvise(start.cast(), size_bytes, advice) {
            println!("pages are the kernel's choice: {error}");
        }
        Line::slice_from_raw(start, size_bytes).expect("whole lines")
    };
    lines.fill(Line::ZERO);
    lines
}
