//! Answers libnuma's system calls when this file is preloaded into a program (`LD_PRELOAD`).
//!
//! QEMU's user mode implements no NUMA policy calls, and libnuma mistakes a kernel without them for
//! one without nodes. So its calls go to the plugin, which answers for the emulated machine.
//!
//! Nothing here runs inside QEMU, which does not resolve its functions from this library.

use std::arch::asm;
use std::ffi::{c_int, c_long};

use numalab_marks::libnuma::ASKS;

/// The initial value of the answer, which is unchanged if there is no plugin.
const NO_ANSWER: c_long = c_long::MIN;
/// The largest error number that Linux returns, negated.
const MOST_ERROR: c_long = 4095;

const ANSWERED: [c_long; 6] = [
    libc::SYS_mbind,
    libc::SYS_set_mempolicy,
    libc::SYS_get_mempolicy,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_sched_setaffinity,
];

/// Replaces syscall(2), by which libnuma calls the kernel.
///
/// # Safety
/// As syscall(2), with arguments in registers as here.
// Miri has a `syscall` and refuses a second one.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    let arguments = [a, b, c, d, e, f];
    let mut answer = NO_ANSWER;
    if ANSWERED.contains(&number) {
        // Exposed addresses: the compiler must not assume that only this function accesses them.
        let places =
            [arguments.as_ptr().expose_provenance(), (&raw mut answer).expose_provenance()];
        let [arguments_at, answer_at] = places.map(usize::cast_signed);
        let asked = [number, arguments_at as c_long, answer_at as c_long, 0, 0, 0];
        // SAFETY: no kernel has this call. The plugin reads six words at the first address and
        // writes one to the second (`Program::answers`); both live until it returns.
        unsafe { kernel(ASKS, asked) };
    }
    // SAFETY: a word of this stack frame; volatile because the call above may have changed it
    // unseen.
    if unsafe { (&raw const answer).read_volatile() } == NO_ANSWER {
        // SAFETY: the caller guarantees the call.
        answer = unsafe { kernel(number, arguments) };
    }
    if (-MOST_ERROR..0).contains(&answer) {
        // SAFETY: `__errno_location` returns the calling thread's own location, valid for its
        // lifetime.
        unsafe { *libc::__errno_location() = c_int::try_from(-answer).unwrap_or(libc::EINVAL) };
        return -1;
    }
    answer
}

/// Calls the kernel.
///
/// # Safety
/// The caller meets the requirements of the system call.
#[cfg(target_arch = "x86_64")]
unsafe fn kernel(number: c_long, [a, b, c, d, e, f]: [c_long; 6]) -> c_long {
    let answer;
    // SAFETY: the caller guarantees the call, which clobbers only these registers.
    unsafe {
        asm!(
            "syscall", inlateout("rax") number => answer, in("rdi") a, in("rsi") b, in("rdx") c,
            in("r10") d, in("r8") e, in("r9") f, lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    answer
}

/// Calls the kernel.
///
/// # Safety
/// The caller meets the requirements of the system call.
#[cfg(target_arch = "aarch64")]
unsafe fn kernel(number: c_long, [a, b, c, d, e, f]: [c_long; 6]) -> c_long {
    let answer;
    // SAFETY: the caller guarantees the call, which clobbers only these registers.
    unsafe {
        asm!(
            "svc 0", in("x8") number, inlateout("x0") a => answer, in("x1") b, in("x2") c,
            in("x3") d, in("x4") e, in("x5") f, options(nostack)
        );
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: c_long, a: c_long) -> c_long {
        // SAFETY: the calls take no pointers.
        unsafe { syscall(number, a, 0, 0, 0, 0, 0) }
    }

    #[test]
    fn without_a_plugin_the_kernel_answers() {
        assert_eq!(call(libc::SYS_getpid, 0), i64::from(std::process::id()));
        assert_eq!(call(libc::SYS_close, -1), -1);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EBADF));
        // Invalid mode: an error, with or without NUMA support in the kernel.
        assert_eq!(call(libc::SYS_set_mempolicy, 99), -1);
    }
}
