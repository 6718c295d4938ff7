//! The other cpus: started once, asleep until there is work, woken together.

use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use numalab_frames::{CpuIndex, Policy};
use numalab_membench::Stamp;
use x86_64::instructions::interrupts as flags;

use super::apic::{self, Signal};
use super::memory::{Memory, Run};
use super::{interrupts, paging, processor};

/// Address of the trampoline; `memory_map` keeps it free.
const TRAMPOLINE: usize = 0x8000;
const STACK_FRAMES: u64 = 16;
/// Time limit for a cpu to respond; one that takes longer does not run.
const START_LIMIT_MS: u64 = 200;

unsafe extern "C" {
    static trampoline_start: u8;
    static trampoline_end: u8;
    static trampoline_cr3: u8;
    static trampoline_stack: u8;
    static trampoline_argument: u8;
    static trampoline_entry: u8;
}

/// The work of a cpu, called with the cpu's index.
type Job<'j> = dyn Fn(usize) + Sync + 'j;

/// One cpu, on its own cache lines.
#[repr(align(128))]
struct Cpu {
    place: usize,
    apic_id: u32,
    started: AtomicBool,
    /// The job, as a pointer to the fat pointer to it; null if there is none.
    job: AtomicPtr<&'static Job<'static>>,
}

pub struct Cpus {
    all: &'static [Cpu],
    boot: usize,
    ticks_per_ms: u64,
}

/// A place where one cpu stores the result of its job.
struct ResultSlot<T>(UnsafeCell<Option<T>>);

// SAFETY: `Cpus::collect` lets one cpu write each, and reads it after that cpu has finished.
unsafe impl<T: Send> Sync for ResultSlot<T> {}

/// The number of running jobs, and the cpu that waits for them.
static RUNNING: AtomicUsize = AtomicUsize::new(0);
static WAITER: AtomicU32 = AtomicU32::new(0);

impl Cpus {
    /// Creates the set of cpus with these APIC ids, of which only `boot` is running.
    pub fn new(apic_ids: impl Iterator<Item = u32>, boot_apic_id: u32, ticks_per_ms: u64) -> Self {
        let cpu = |(place, apic_id)| Cpu {
            place,
            apic_id,
            started: AtomicBool::new(apic_id == boot_apic_id),
            job: AtomicPtr::new(core::ptr::null_mut()),
        };
        let all: &'static [Cpu] = apic_ids.enumerate().map(cpu).collect::<Vec<_>>().leak();
        let boot = all.iter().position(|cpu| cpu.apic_id == boot_apic_id).unwrap_or_default();
        WAITER.store(boot_apic_id, Ordering::Relaxed);
        Self { all, boot, ticks_per_ms }
    }

    /// Returns the index of the cpu that booted the kernel.
    pub fn boot(&self) -> usize {
        self.boot
    }

    /// Returns true if a cpu is running.
    pub fn has_started(&self, place: usize) -> bool {
        self.all[place].started.load(Ordering::Acquire)
    }

    /// Starts all cpus, each with a stack on its own node. [`Cpus::has_started`] returns false for
    /// those that do not start.
    pub fn start(&mut self) {
        self.lay_trampoline();
        let others = || self.all.iter().enumerate().filter(|&(place, _)| place != self.boot);
        for (_, cpu) in others() {
            // SAFETY: one cpu's id (`Plan` leaves out that of all); it runs no job, as jobs end
            // before `run` gives `&mut self` back.
            unsafe { apic::send(cpu.apic_id, Signal::Init) };
        }
        // A cpu is ready for its start-up signal 10 ms after INIT (Multiprocessor Specification
        // 1.4, B.4); virtual ones are ready at once.
        if processor::is_real_hardware() {
            self.wait_ms(10, || false);
        }
        for (place, cpu) in others() {
            self.start_one(place, cpu);
        }
    }

    /// Runs a job on these cpus at once, and waits until all have finished. A job that runs other
    /// jobs ends the kernel, because the number of running jobs would be lost.
    pub fn run(&self, places: &[usize], job: &Job<'_>) {
        let others = || places.iter().filter(|&&place| place != self.boot);
        let free =
            RUNNING.compare_exchange(0, others().count(), Ordering::AcqRel, Ordering::Relaxed);
        assert!(free.is_ok(), "a job runs jobs");
        // SAFETY: only the lifetime changes. `wait` below returns when no cpu is running the job
        // any more, and every cpu drops its pointer before it reports that: this call has counted
        // them all, and no other call does before it returns.
        let job: &'static Job<'static> = unsafe { core::mem::transmute(job) };
        for &place in others() {
            let cpu = &self.all[place];
            cpu.job.store((&raw const job).cast_mut(), Ordering::Release);
            apic::wake(cpu.apic_id);
        }
        if places.contains(&self.boot) {
            job(self.boot);
        }
        wait();
    }

    /// Runs a job like [`Cpus::run`], and returns its results in the order of `places`.
    pub fn collect<T: Send>(&self, places: &[usize], job: &(dyn Fn(usize) -> T + Sync)) -> Vec<T> {
        let results: Vec<ResultSlot<T>> =
            places.iter().map(|_| ResultSlot(UnsafeCell::new(None))).collect();
        self.run(places, &|place| {
            let given = job(place);
            if let Some(at) = places.iter().position(|&other| other == place) {
                // SAFETY: only the cpu of this index writes here, and it is read only after `run`
                // has waited for it.
                unsafe { *results[at].0.get() = Some(given) };
            }
        });
        results.into_iter().filter_map(|result| result.0.into_inner()).collect()
    }

    fn start_one(&self, place: usize, cpu: &'static Cpu) {
        let Some(memory) = Memory::get() else { return };
        let index = CpuIndex(u16::try_from(place).unwrap_or(u16::MAX));
        let Ok(stack) = Run::new(memory, index, STACK_FRAMES, Policy::Local) else { return };
        let top = stack.address() + STACK_FRAMES * 4096;
        set(&raw const trampoline_stack, top);
        set(&raw const trampoline_argument, core::ptr::from_ref(cpu).expose_provenance() as u64);
        for _ in 0..2 {
            // SAFETY: one cpu's id, and the trampoline is in page 8.
            unsafe { apic::send(cpu.apic_id, Signal::Start(8)) };
            if self.wait_ms(START_LIMIT_MS / 2, || cpu.started.load(Ordering::Acquire)) {
                return;
            }
        }
        // A cpu that starts late would use the next one's stack, so it is reset to wait for a start
        // again.
        // SAFETY: one cpu's id; it has got no job yet.
        unsafe { apic::send(cpu.apic_id, Signal::Init) };
        // The cpu may have started between the last check and this signal, which stops it anyway.
        self.wait_ms(1, || false);
        cpu.started.store(false, Ordering::Release);
    }

    fn lay_trampoline(&self) {
        let (start, end) = (&raw const trampoline_start, &raw const trampoline_end);
        let to = core::ptr::with_exposed_provenance_mut::<u8>(TRAMPOLINE);
        // SAFETY: the frame at 0x8000 is ordinary memory that is not used otherwise, and longer
        // than the trampoline; the source is in the kernel's read-only data.
        unsafe { to.copy_from_nonoverlapping(start, end.addr() - start.addr()) };
        set(&raw const trampoline_cr3, paging::root());
        set(&raw const trampoline_entry, started as *const () as u64);
    }

    /// Waits for a condition, at most this number of milliseconds; returns true if it became true.
    fn wait_ms(&self, milliseconds: u64, came: impl Fn() -> bool) -> bool {
        let begun = Stamp::now();
        loop {
            if came() {
                return true;
            }
            let waited = Stamp::now().since(begun).map_or(u64::MAX, |ticks| ticks.0);
            if waited > milliseconds * self.ticks_per_ms {
                return false;
            }
            core::hint::spin_loop();
        }
    }
}

/// Sets a word of the trampoline's copy.
fn set(word: *const u8, value: u64) {
    let offset = word.addr() - (&raw const trampoline_start).addr();
    let at = core::ptr::with_exposed_provenance_mut::<u64>(TRAMPOLINE + offset);
    // SAFETY: an aligned word of the copy; the cpu that reads it is started afterwards.
    unsafe { at.write_volatile(value) };
}

/// Runs a started cpu, from the end of the trampoline on.
extern "C" fn started(cpu: &'static Cpu) -> ! {
    interrupts::load();
    processor::enable_vectors();
    apic::enable();
    cpu.started.store(true, Ordering::Release);
    loop {
        flags::disable();
        let job = cpu.job.swap(core::ptr::null_mut(), Ordering::AcqRel);
        if job.is_null() {
            flags::enable_and_hlt();
            continue;
        }
        flags::enable();
        // SAFETY: `Cpus::run` keeps the pointer valid until this cpu has counted itself out.
        unsafe { (*job)(cpu.place) };
        if RUNNING.fetch_sub(1, Ordering::AcqRel) == 1 {
            apic::wake(WAITER.load(Ordering::Relaxed));
        }
    }
}

/// Sleeps until no job is running.
fn wait() {
    loop {
        flags::disable();
        if RUNNING.load(Ordering::Acquire) == 0 {
            flags::enable();
            return;
        }
        flags::enable_and_hlt();
    }
}
