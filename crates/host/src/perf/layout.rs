//! The fields of samples, and the event attributes that request them.

use perf_event_open_sys::bindings as sys;

use super::unit::MemoryEvent;

/// Maximum number of frames in a sample's call chain: enough to leave the C library, few enough to
/// be read in time.
pub(super) const MOST_CALLS: u16 = 8;

/// The user register that holds the stack pointer (`asm/perf_regs.h`); it shows to which thread's
/// stack an address belongs.
#[cfg(target_arch = "x86_64")]
const STACK_POINTER: u64 = 1 << 7;
#[cfg(target_arch = "aarch64")]
const STACK_POINTER: u64 = 1 << 31;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const STACK_POINTER: u64 = 0;

/// Fields of every record and every sample.
const COMMON: u32 = sys::PERF_SAMPLE_IDENTIFIER
    | sys::PERF_SAMPLE_TID
    | sys::PERF_SAMPLE_TIME
    | sys::PERF_SAMPLE_CPU;
/// Bytes of these fields at the end of a record other than a sample: thread, time, cpu, identifier.
pub(super) const TRAILER_BYTES: usize = 32;

/// The fields in the samples of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SampleLayout {
    /// True if it is a hardware event, which reports latency and data source.
    pub(super) is_memory_sample: bool,
}

impl SampleLayout {
    /// Returns the fields as `sample_type`.
    pub(super) const fn sample_type(self) -> u64 {
        let fields = COMMON
            | sys::PERF_SAMPLE_IP
            | sys::PERF_SAMPLE_ADDR
            | sys::PERF_SAMPLE_CALLCHAIN
            | if STACK_POINTER == 0 { 0 } else { sys::PERF_SAMPLE_REGS_USER };
        let of_memory = sys::PERF_SAMPLE_WEIGHT | sys::PERF_SAMPLE_DATA_SRC;
        (if self.is_memory_sample { fields | of_memory } else { fields }) as u64
    }

    /// Reports whether samples have the stack pointer.
    pub(super) const fn has_registers() -> bool {
        STACK_POINTER != 0
    }
}

/// The privilege levels that are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Privilege {
    /// User code only, which every user may record in their own processes.
    User,
    /// The kernel's work for the program too.
    Kernel,
}

/// The moment at which events begin to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// Immediately.
    Now,
    /// On the process's next exec.
    AtExec,
}

/// Returns the attributes that all events of a recording share.
fn common(layout: SampleLayout, begin: Begin, privilege: Privilege) -> sys::perf_event_attr {
    let mut attr = sys::perf_event_attr {
        sample_type: layout.sample_type(),
        sample_regs_user: STACK_POINTER,
        sample_max_stack: MOST_CALLS,
        // The clock by which this process takes times itself, so that records can be ordered among
        // these.
        clockid: libc::CLOCK_MONOTONIC,
        ..sys::perf_event_attr::default()
    };
    attr.set_use_clockid(1);
    attr.set_inherit(1);
    attr.set_sample_id_all(1);
    attr.set_exclude_hv(1);
    attr.set_exclude_callchain_kernel(1);
    attr.set_exclude_kernel(u64::from(privilege == Privilege::User));
    attr.set_watermark(1);
    if begin == Begin::AtExec {
        attr.set_disabled(1);
        attr.set_enable_on_exec(1);
    }
    attr
}

/// Returns the page fault event, which also records all mappings, execs, threads and exits.
pub(super) fn page_faults(
    begin: Begin,
    privilege: Privilege,
    watermark_bytes: u32,
) -> sys::perf_event_attr {
    let layout = SampleLayout { is_memory_sample: false };
    let mut attr = common(layout, begin, privilege);
    attr.type_ = sys::PERF_TYPE_SOFTWARE;
    attr.config = u64::from(sys::PERF_COUNT_SW_PAGE_FAULTS);
    // Every fault, because a page is touched first only once.
    attr.sample_period = 1;
    attr.wakeup_watermark = watermark_bytes;
    attr.set_mmap(1);
    attr.set_mmap2(1);
    attr.set_mmap_data(1);
    attr.set_comm(1);
    attr.set_comm_exec(1);
    attr.set_task(1);
    attr
}

pub(super) fn memory_samples(
    event: &MemoryEvent,
    begin: Begin,
    privilege: Privilege,
    precise: u64,
    watermark_bytes: u32,
) -> sys::perf_event_attr {
    let layout = SampleLayout { is_memory_sample: true };
    let mut attr = common(layout, begin, privilege);
    attr.type_ = event.unit_type;
    [attr.config, attr.config1, attr.config2] = event.config;
    attr.sample_period = event.period;
    attr.wakeup_watermark = watermark_bytes;
    attr.set_precise_ip(precise);
    if !event.may_exclude_kernel {
        attr.set_exclude_kernel(0);
        attr.set_exclude_hv(0);
    }
    attr
}

/// Returns the event that has to count before the hardware can sample another one.
pub(super) fn helper(
    event: &MemoryEvent,
    config: [u64; 3],
    begin: Begin,
    privilege: Privilege,
) -> sys::perf_event_attr {
    let mut attr = memory_samples(event, begin, privilege, 0, 0);
    [attr.config, attr.config1, attr.config2] = config;
    // It only counts, and writes no records.
    attr.sample_period = 0;
    attr.sample_type = 0;
    attr.sample_regs_user = 0;
    attr.set_watermark(0);
    attr
}
