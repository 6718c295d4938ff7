//! System calls that change where a program's memory lies or where its threads run, by the
//! numbers of an architecture (Linux's `unistd_64.h` and `asm-generic/unistd.h`).

/// What a system call does, as far as it matters here; the arguments stay where they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// mmap(2)
    Map,
    /// munmap(2)
    Unmap,
    /// mremap(2)
    Remap,
    /// brk(2)
    Break,
    /// madvise(2)
    Advise,
    /// mbind(2)
    BindMemory,
    /// set_mempolicy(2)
    SetPolicy,
    /// sched_setaffinity(2)
    SetAffinity,
    /// execve(2)
    Execute,
    /// futex(2)
    Futex,
    /// clone(2)
    Clone,
    /// _exit(2), of one thread
    Exit,
}

use Call::{
    Advise, BindMemory, Break, Clone as Make, Execute, Exit, Futex, Map, Remap, SetAffinity,
    SetPolicy, Unmap,
};

const X86_64: [(i64, Call); 12] = [
    (9, Map),
    (11, Unmap),
    (12, Break),
    (25, Remap),
    (28, Advise),
    (56, Make),
    (59, Execute),
    (60, Exit),
    (202, Futex),
    (203, SetAffinity),
    (237, BindMemory),
    (238, SetPolicy),
];
const AARCH64: [(i64, Call); 12] = [
    (93, Exit),
    (98, Futex),
    (122, SetAffinity),
    (214, Break),
    (215, Unmap),
    (216, Remap),
    (220, Make),
    (221, Execute),
    (222, Map),
    (233, Advise),
    (235, BindMemory),
    (237, SetPolicy),
];

/// The calls of an architecture.
#[derive(Clone, Copy, Debug)]
pub struct Numbers(&'static [(i64, Call)]);

impl Numbers {
    /// Those of a target as QEMU names it, if we know them.
    pub fn of(target: &str) -> Option<Self> {
        match target {
            "x86_64" => Some(Self(&X86_64)),
            "aarch64" => Some(Self(&AARCH64)),
            _ => None,
        }
    }

    /// Where clone(2) is told the address at which the thread's end is to be told: the architectures
    /// order its arguments otherwise.
    pub fn tells_end_at(self, arguments: &[u64; 6]) -> u64 {
        if std::ptr::eq(self.0, &AARCH64) { arguments[4] } else { arguments[3] }
    }

    /// What this number does.
    pub fn call(self, number: i64) -> Option<Call> {
        self.0.iter().find(|(known, _)| *known == number).map(|(_, call)| *call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the numbers of the C library that the tests run on.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn numbers_are_those_of_linux() {
        let expected = [
            (libc::SYS_mmap, Map),
            (libc::SYS_munmap, Unmap),
            (libc::SYS_mremap, Remap),
            (libc::SYS_brk, Break),
            (libc::SYS_madvise, Advise),
            (libc::SYS_mbind, BindMemory),
            (libc::SYS_set_mempolicy, SetPolicy),
            (libc::SYS_sched_setaffinity, SetAffinity),
            (libc::SYS_execve, Execute),
            (libc::SYS_futex, Futex),
            (libc::SYS_clone, Make),
            (libc::SYS_exit, Exit),
        ];
        let numbers = Numbers::of("x86_64").unwrap();
        for (number, call) in expected {
            assert_eq!(numbers.call(number), Some(call), "{number}");
        }
        assert_eq!(numbers.call(libc::SYS_read), None);
        assert!(Numbers::of("riscv64").is_none());
    }
}
