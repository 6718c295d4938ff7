//! Which fields a sample has, and the attributes that ask for them.

use perf_event_open_sys::bindings as sys;

use super::unit::MemoryEvent;

/// Frames of a sample's calls at most: enough to leave the C library, few enough to be read in time.
pub(super) const MOST_CALLS: u16 = 8;

/// The user's register that is the stack pointer (`asm/perf_regs.h`), which tells whose stack an
/// address lies on.
#[cfg(target_arch = "x86_64")]
const STACK_POINTER: u64 = 1 << 7;
#[cfg(target_arch = "aarch64")]
const STACK_POINTER: u64 = 1 << 31;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const STACK_POINTER: u64 = 0;

/// What every record says of itself, and every sample.
const COMMON: u32 = sys::PERF_SAMPLE_IDENTIFIER
    | sys::PERF_SAMPLE_TID
    | sys::PERF_SAMPLE_TIME
    | sys::PERF_SAMPLE_CPU;
/// Bytes of that behind a record which is no sample: thread, time, cpu, identifier.
pub(super) const TRAILER_BYTES: usize = 32;

/// How the samples of an event are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Whether it is an event of the processor, which tells latency and who had the data.
    pub(super) is_memory_sample: bool,
}

impl Layout {
    /// The fields, as `sample_type`.
    pub(super) const fn sample_type(self) -> u64 {
        let fields = COMMON
            | sys::PERF_SAMPLE_IP
            | sys::PERF_SAMPLE_ADDR
            | sys::PERF_SAMPLE_CALLCHAIN
            | if STACK_POINTER == 0 { 0 } else { sys::PERF_SAMPLE_REGS_USER };
        let of_memory = sys::PERF_SAMPLE_WEIGHT | sys::PERF_SAMPLE_DATA_SRC;
        (if self.is_memory_sample { fields | of_memory } else { fields }) as u64
    }

    /// Whether a sample has the stack pointer.
    pub(super) const fn has_registers() -> bool {
        STACK_POINTER != 0
    }
}

/// Whose code is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Privilege {
    /// The program's alone: what anybody may of their own processes.
    User,
    /// What the kernel does for it too.
    Kernel,
}

/// When events begin to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// At once.
    Now,
    /// When the process becomes another program.
    AtExec,
}

/// Attributes that all events of a recording share.
fn common(layout: Layout, begin: Begin, privilege: Privilege) -> sys::perf_event_attr {
    let mut attr = sys::perf_event_attr {
        size: u32::try_from(size_of::<sys::perf_event_attr>()).unwrap_or(0),
        sample_type: layout.sample_type(),
        sample_regs_user: STACK_POINTER,
        sample_max_stack: MOST_CALLS,
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

/// Every page fault, and with it all mappings, programs, threads and ends.
pub(super) fn page_faults(
    begin: Begin,
    privilege: Privilege,
    watermark_bytes: u32,
) -> sys::perf_event_attr {
    let layout = Layout { is_memory_sample: false };
    let mut attr = common(layout, begin, privilege);
    attr.type_ = sys::PERF_TYPE_SOFTWARE;
    attr.config = u64::from(sys::PERF_COUNT_SW_PAGE_FAULTS);
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

/// A memory event of the processor.
pub(super) fn memory_samples(
    event: &MemoryEvent,
    begin: Begin,
    privilege: Privilege,
    precise: u64,
    watermark_bytes: u32,
) -> sys::perf_event_attr {
    let layout = Layout { is_memory_sample: true };
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

/// The event that has to count before another one can sample.
pub(super) fn helper(
    event: &MemoryEvent,
    config: [u64; 3],
    begin: Begin,
    privilege: Privilege,
) -> sys::perf_event_attr {
    let mut attr = memory_samples(event, begin, privilege, 0, 0);
    [attr.config, attr.config1, attr.config2] = config;
    attr.sample_period = 0;
    attr.sample_type = 0;
    attr.sample_regs_user = 0;
    attr.set_watermark(0);
    attr
}
