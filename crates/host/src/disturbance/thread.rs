//! Disturbances of one thread, cheap enough for every window.

use numalab_topology::CpuId;

use crate::clock::{monotonic_raw_ns, thread_cpu_ns};
use crate::disturbance::Reason;
use crate::syscall;

/// Time off the cpu that is allowed: a timer tick of a quiet kernel takes a few microseconds.
const OFF_CPU_ALLOWED_NS: u64 = 10_000;

/// Divisor of the further share of a window that a thread may be off its cpu: 1 %.
const OFF_CPU_SHARE: u64 = 100;

/// Minor faults that are allowed: the bookkeeping between windows may touch a fresh page.
const MINOR_FAULTS_ALLOWED: u64 = 8;

/// Counters of the calling thread at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadSnapshot {
    switches: u64,
    minor_faults: u64,
    major_faults: u64,
    cpu: CpuId,
    on_cpu_ns: u64,
    wall_ns: u64,
}

impl ThreadSnapshot {
    /// Reads the counters of the calling thread.
    pub fn take() -> Self {
        let usage = syscall::thread_usage();
        let counter = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
        Self {
            switches: counter(usage.ru_nivcsw),
            minor_faults: counter(usage.ru_minflt),
            major_faults: counter(usage.ru_majflt),
            cpu: syscall::cpu(),
            on_cpu_ns: thread_cpu_ns(),
            wall_ns: monotonic_raw_ns(),
        }
    }

    /// Returns the disturbance of the thread since `before`, if there was one: the first that
    /// applies of a changed cpu; an involuntary context switch; a major fault; more than 10
    /// microseconds and 1 % of the time off the cpu; more than 8 minor faults. No rule looks at the
    /// measured value, so that no window is dropped because of it.
    pub fn disturbance_since(&self, before: &Self) -> Option<Reason> {
        // The cause comes before its effects: a migration is also a switch, and a fault that waits
        // for a disk is also time off the cpu.
        if self.cpu != before.cpu {
            return Some(Reason::Migrated { from: before.cpu, to: self.cpu });
        }
        let switches = self.switches.saturating_sub(before.switches);
        if switches > 0 {
            return Some(Reason::Switched { switches });
        }
        let faults = self.major_faults.saturating_sub(before.major_faults);
        if faults > 0 {
            return Some(Reason::MajorFaults { faults });
        }
        // A hypervisor that takes the cpu away shows neither a switch nor a fault: only time that
        // passed and was not the thread's.
        let wall_ns = self.wall_ns.saturating_sub(before.wall_ns);
        let off_ns = wall_ns.saturating_sub(self.on_cpu_ns.saturating_sub(before.on_cpu_ns));
        if off_ns > OFF_CPU_ALLOWED_NS + wall_ns / OFF_CPU_SHARE {
            return Some(Reason::OffCpu { off_ns, wall_ns });
        }
        let faults = self.minor_faults.saturating_sub(before.minor_faults);
        (faults > MINOR_FAULTS_ALLOWED).then_some(Reason::MinorFaults { faults })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: ThreadSnapshot = ThreadSnapshot {
        switches: 7,
        minor_faults: 100,
        major_faults: 1,
        cpu: CpuId(2),
        on_cpu_ns: 1_000_000,
        wall_ns: 5_000_000,
    };

    fn after_two_ms() -> ThreadSnapshot {
        ThreadSnapshot {
            on_cpu_ns: QUIET.on_cpu_ns + 1_980_000,
            wall_ns: QUIET.wall_ns + 2_000_000,
            ..QUIET
        }
    }

    #[test]
    fn a_tick_in_a_window_is_not_a_disturbance() {
        assert_eq!(after_two_ms().disturbance_since(&QUIET), None);
    }

    #[test]
    fn an_involuntary_switch_is_a_disturbance() {
        let mut after = after_two_ms();
        after.switches += 1;
        let reason = after.disturbance_since(&QUIET);
        assert_eq!(reason, Some(Reason::Switched { switches: 1 }));
        assert_eq!(reason.unwrap().to_string(), "switched 1");
    }

    #[test]
    fn a_migration_is_a_disturbance() {
        let mut after = after_two_ms();
        after.cpu = CpuId(5);
        let reason = after.disturbance_since(&QUIET).unwrap();
        assert_eq!(reason.to_string(), "migrated cpu 2 to 5");
    }

    #[test]
    fn time_off_the_cpu_is_a_disturbance_beyond_the_allowance() {
        let mut after = after_two_ms();
        after.on_cpu_ns = QUIET.on_cpu_ns + 2_000_000 - 30_000;
        assert_eq!(after.disturbance_since(&QUIET), None);
        after.on_cpu_ns -= 1;
        let reason = after.disturbance_since(&QUIET).unwrap();
        assert_eq!(reason.to_string(), "off-cpu 30001 of 2000000 ns");
    }

    #[test]
    fn faults_are_a_disturbance() {
        let mut after = after_two_ms();
        after.minor_faults += 8;
        assert_eq!(after.disturbance_since(&QUIET), None);
        after.minor_faults += 1;
        let reason = after.disturbance_since(&QUIET);
        assert_eq!(reason, Some(Reason::MinorFaults { faults: 9 }));
        after.major_faults += 1;
        let reason = after.disturbance_since(&QUIET);
        assert_eq!(reason, Some(Reason::MajorFaults { faults: 1 }));
    }

    #[test]
    fn counters_that_went_backwards_are_not_a_disturbance() {
        assert_eq!(QUIET.disturbance_since(&after_two_ms()), None);
    }
}
