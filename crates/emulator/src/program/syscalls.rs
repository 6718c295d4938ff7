//! System calls that change where a program's memory is or where its threads run, or that take
//! time, with the numbers of each architecture (Linux's `unistd_64.h` and `asm-generic/unistd.h`).

/// The system calls that matter to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// mmap(2).
    Map,
    /// munmap(2).
    Unmap,
    /// mremap(2).
    Remap,
    /// mprotect(2).
    Protect,
    /// brk(2).
    Break,
    /// madvise(2).
    Advise,
    /// mbind(2).
    BindMemory,
    /// set_mempolicy(2).
    SetPolicy,
    /// get_mempolicy(2).
    GetPolicy,
    MigratePages,
    MovePages,
    /// Not a call of Linux: asks the plugin for the result of another call ([`crate::preload`]).
    Asks,
    /// sched_setaffinity(2).
    SetAffinity,
    /// sched_getaffinity(2).
    GetAffinity,
    /// getcpu(2).
    GetCpu,
    /// open(2), openat(2).
    Open,
    /// execve(2).
    Execute,
    Futex,
    Clone,
    Fork,
    /// vfork(2).
    BorrowingFork,
    WaitsForChild,
    /// _exit(2), of one thread.
    Exit,
    ExitGroup,
    /// sched_yield(2).
    Yield,
    /// clock_gettime(2).
    ClockTime,
    /// gettimeofday(2).
    TimeOfDay,
    /// nanosleep(2).
    Sleep,
    /// clock_nanosleep(2).
    ClockSleep,
    Poll,
    /// ppoll(2).
    PollNs,
    Select,
    /// pselect(2).
    SelectNs,
    /// epoll_wait(2), epoll_pwait(2).
    EventPoll,
    Read,
    Write,
    /// pread(2).
    ReadAt,
    /// pwrite(2).
    WriteAt,
    /// recv(2), readv(2) and the like. All calls that move data wait on some kinds of files.
    Transfer,
    /// Waits for something outside of the program.
    Waits,
}

use Call::{
    Advise, Asks, BindMemory, BorrowingFork, Break, ClockSleep, ClockTime, Clone as Make,
    EventPoll, Execute, Exit, ExitGroup, Fork, Futex, GetAffinity, GetCpu, GetPolicy, Map,
    MigratePages, MovePages, Open, Poll, PollNs, Protect, Read, ReadAt, Remap, Select, SelectNs,
    SetAffinity, SetPolicy, Sleep, TimeOfDay, Transfer, Unmap, Waits, WaitsForChild, Write,
    WriteAt, Yield,
};
use numalab_marks::libnuma::ASKS;

const X86_64_CALLS: &[(i64, Call)] = &[
    (0, Read),
    (1, Write),
    (2, Open),
    (7, Poll),
    (9, Map),
    (10, Protect),
    (11, Unmap),
    (12, Break),
    (17, ReadAt),
    (18, WriteAt),
    (19, Transfer),
    (20, Transfer),
    (23, Select),
    (24, Yield),
    (25, Remap),
    (28, Advise),
    (34, Waits),
    (35, Sleep),
    (42, Waits),
    (43, Waits),
    (44, Transfer),
    (45, Transfer),
    (46, Transfer),
    (47, Transfer),
    (56, Make),
    (57, Fork),
    (58, BorrowingFork),
    (59, Execute),
    (60, Exit),
    (61, WaitsForChild),
    (65, Waits),
    (70, Waits),
    (73, Waits),
    (96, TimeOfDay),
    (128, Waits),
    (130, Waits),
    (202, Futex),
    (203, SetAffinity),
    (204, GetAffinity),
    (208, Waits),
    (220, Waits),
    (228, ClockTime),
    (230, ClockSleep),
    (231, ExitGroup),
    (232, EventPoll),
    (237, BindMemory),
    (238, SetPolicy),
    (239, GetPolicy),
    (247, Waits),
    (256, MigratePages),
    (257, Open),
    (270, SelectNs),
    (271, PollNs),
    (279, MovePages),
    (281, EventPoll),
    (288, Waits),
    (299, Transfer),
    (309, GetCpu),
    (ASKS, Asks),
];
const AARCH64_CALLS: &[(i64, Call)] = &[
    (22, EventPoll),
    (32, Waits),
    (56, Open),
    (63, Read),
    (64, Write),
    (65, Transfer),
    (66, Transfer),
    (67, ReadAt),
    (68, WriteAt),
    (72, SelectNs),
    (73, PollNs),
    (93, Exit),
    (94, ExitGroup),
    (95, Waits),
    (98, Futex),
    (101, Sleep),
    (113, ClockTime),
    (115, ClockSleep),
    (122, SetAffinity),
    (123, GetAffinity),
    (124, Yield),
    (133, Waits),
    (137, Waits),
    (168, GetCpu),
    (169, TimeOfDay),
    (188, Waits),
    (192, Waits),
    (193, Waits),
    (202, Waits),
    (203, Waits),
    (206, Transfer),
    (207, Transfer),
    (211, Transfer),
    (212, Transfer),
    (214, Break),
    (215, Unmap),
    (216, Remap),
    (220, Make),
    (221, Execute),
    (222, Map),
    (226, Protect),
    (233, Advise),
    (235, BindMemory),
    (236, GetPolicy),
    (237, SetPolicy),
    (238, MigratePages),
    (239, MovePages),
    (242, Waits),
    (243, Transfer),
    (260, WaitsForChild),
    (ASKS, Asks),
];

/// The call numbers of an architecture.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    known: &'static [(i64, Call)],
    /// Index of clone(2)'s argument with the address to clear at the thread's end.
    clear_argument: usize,
}

impl Numbers {
    pub const X86_64: Self = Self { known: X86_64_CALLS, clear_argument: 3 };
    pub const AARCH64: Self = Self { known: AARCH64_CALLS, clear_argument: 4 };

    /// Returns the address that clone(2) has the kernel clear at the thread's end.
    pub fn clear_at_end(self, arguments: &[u64; 6]) -> u64 {
        arguments[self.clear_argument]
    }

    /// Returns the call with this number.
    pub fn call(self, number: i64) -> Option<Call> {
        let at = self.known.binary_search_by_key(&number, |(known, _)| *known).ok()?;
        Some(self.known[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_arch = "x86_64")]
    const EXPECTED: [(i64, Call); 40] = [
        (libc::SYS_mmap, Map),
        (libc::SYS_munmap, Unmap),
        (libc::SYS_mremap, Remap),
        (libc::SYS_mprotect, Protect),
        (libc::SYS_brk, Break),
        (libc::SYS_madvise, Advise),
        (libc::SYS_mbind, BindMemory),
        (libc::SYS_set_mempolicy, SetPolicy),
        (libc::SYS_get_mempolicy, GetPolicy),
        (libc::SYS_migrate_pages, MigratePages),
        (libc::SYS_move_pages, MovePages),
        (ASKS, Asks),
        (libc::SYS_sched_setaffinity, SetAffinity),
        (libc::SYS_sched_getaffinity, GetAffinity),
        (libc::SYS_getcpu, GetCpu),
        (libc::SYS_open, Open),
        (libc::SYS_openat, Open),
        (libc::SYS_execve, Execute),
        (libc::SYS_futex, Futex),
        (libc::SYS_clone, Make),
        (libc::SYS_fork, Fork),
        (libc::SYS_vfork, BorrowingFork),
        (libc::SYS_wait4, WaitsForChild),
        (libc::SYS_exit, Exit),
        (libc::SYS_exit_group, ExitGroup),
        (libc::SYS_sched_yield, Yield),
        (libc::SYS_clock_gettime, ClockTime),
        (libc::SYS_gettimeofday, TimeOfDay),
        (libc::SYS_nanosleep, Sleep),
        (libc::SYS_clock_nanosleep, ClockSleep),
        (libc::SYS_poll, Poll),
        (libc::SYS_ppoll, PollNs),
        (libc::SYS_select, Select),
        (libc::SYS_pselect6, SelectNs),
        (libc::SYS_epoll_wait, EventPoll),
        (libc::SYS_epoll_pwait, EventPoll),
        (libc::SYS_read, Read),
        (libc::SYS_write, Write),
        (libc::SYS_pread64, ReadAt),
        (libc::SYS_pwrite64, WriteAt),
    ];

    #[cfg(target_arch = "x86_64")]
    const TRANSFERS: [i64; 7] = [
        libc::SYS_readv,
        libc::SYS_writev,
        libc::SYS_sendto,
        libc::SYS_recvfrom,
        libc::SYS_sendmsg,
        libc::SYS_recvmsg,
        libc::SYS_recvmmsg,
    ];

    #[cfg(target_arch = "x86_64")]
    const WAITS: [i64; 12] = [
        libc::SYS_pause,
        libc::SYS_connect,
        libc::SYS_accept,
        libc::SYS_accept4,
        libc::SYS_waitid,
        libc::SYS_semop,
        libc::SYS_semtimedop,
        libc::SYS_msgrcv,
        libc::SYS_flock,
        libc::SYS_rt_sigtimedwait,
        libc::SYS_rt_sigsuspend,
        libc::SYS_io_getevents,
    ];

    /// Compares with the C library that the tests run on.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn numbers_are_those_of_linux() {
        let all = EXPECTED
            .into_iter()
            .chain(TRANSFERS.map(|number| (number, Transfer)))
            .chain(WAITS.map(|number| (number, Waits)));
        let numbers = Numbers::X86_64;
        let mut known = 0;
        for (number, call) in all {
            assert_eq!(numbers.call(number), Some(call), "{number}");
            known += 1;
        }
        assert_eq!(known, X86_64_CALLS.len());
        assert_eq!(numbers.call(libc::SYS_getpid), None);
    }

    #[test]
    fn numbers_are_sorted_for_lookup() {
        assert!(X86_64_CALLS.is_sorted_by(|one, next| one.0 < next.0));
        assert!(AARCH64_CALLS.is_sorted_by(|one, next| one.0 < next.0));
    }
}
