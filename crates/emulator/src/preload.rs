//! The same file loaded into a program that uses libnuma (`LD_PRELOAD`). QEMU's user mode knows no call
//! about NUMA policy, and libnuma takes a kernel without them for one that has no nodes. So what it
//! asks the kernel goes to the plugin, which answers for the emulated machine.
//!
//! Nothing here is called inside QEMU, which looks for its functions elsewhere.

use std::arch::asm;
use std::ffi::{CStr, c_char, c_int, c_long};

use numalab_membench::libnuma::ASKS;

/// What stays there where no plugin is.
const NO_ANSWER: c_long = c_long::MIN;
/// The largest error that Linux returns, negated.
const MOST_ERROR: c_long = 4095;

const ANSWERED: [c_long; 6] = [
    libc::SYS_mbind,
    libc::SYS_set_mempolicy,
    libc::SYS_get_mempolicy,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_sched_setaffinity,
];

/// Where a process reads which cpus and nodes it may use, and where the emulated machine has that,
/// below `/sys`, which QEMU looks for in a directory of its own.
const STATUS: &CStr = c"/proc/self/status";
const STATUS_THERE: &CStr = c"/sys/devices/system/node/status";

/// syscall(2), by which libnuma calls the kernel.
///
/// # Safety
/// As syscall(2), whose arguments are in registers as here.
#[unsafe(no_mangle)]
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
        // What is behind a number alone is nobody's to read or write for the compiler.
        let places =
            [arguments.as_ptr().expose_provenance(), (&raw mut answer).expose_provenance()];
        let [arguments_at, answer_at] = places.map(usize::cast_signed);
        let asked = [number, arguments_at as c_long, answer_at as c_long, 0, 0, 0];
        // SAFETY: no kernel knows this call. The plugin reads six words at the first address and writes
        // one to the second (`Program::answers`): both live until it returns.
        unsafe { kernel(ASKS, asked) };
    }
    // SAFETY: a word of this frame. Volatile, as the call above may have changed it unseen.
    if unsafe { (&raw const answer).read_volatile() } == NO_ANSWER {
        // SAFETY: the caller vouches for the call.
        answer = unsafe { kernel(number, arguments) };
    }
    if (-MOST_ERROR..0).contains(&answer) {
        // SAFETY: `__errno_location` gives the calling thread's own place for as long as it lives.
        unsafe { *libc::__errno_location() = c_int::try_from(-answer).unwrap_or(libc::EINVAL) };
        return -1;
    }
    answer
}

/// fopen(3), by which libnuma reads what its process may use.
///
/// # Safety
/// As fopen(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fopen(path: *const c_char, mode: *const c_char) -> *mut libc::FILE {
    type Opens = unsafe extern "C" fn(*const c_char, *const c_char) -> *mut libc::FILE;
    // SAFETY: the C library's function is of this type; the caller vouches for the strings.
    unsafe {
        let next = libc::dlsym(libc::RTLD_NEXT, c"fopen".as_ptr());
        if next.is_null() {
            return std::ptr::null_mut();
        }
        let next = std::mem::transmute::<*mut libc::c_void, Opens>(next);
        if CStr::from_ptr(path) == STATUS {
            let there = next(STATUS_THERE.as_ptr(), mode);
            if !there.is_null() {
                return there;
            }
        }
        next(path, mode)
    }
}

/// Calls the kernel.
///
/// # Safety
/// As the call.
#[cfg(target_arch = "x86_64")]
unsafe fn kernel(number: c_long, [a, b, c, d, e, f]: [c_long; 6]) -> c_long {
    let answer;
    // SAFETY: the caller vouches for the call, which changes these registers alone.
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
/// As the call.
#[cfg(target_arch = "aarch64")]
unsafe fn kernel(number: c_long, [a, b, c, d, e, f]: [c_long; 6]) -> c_long {
    let answer;
    // SAFETY: the caller vouches for the call, which changes these registers alone.
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
        // SAFETY: calls without pointers.
        unsafe { syscall(number, a, 0, 0, 0, 0, 0) }
    }

    #[test]
    fn without_a_plugin_the_kernel_answers() {
        assert_eq!(call(libc::SYS_getpid, 0), i64::from(std::process::id()));
        assert_eq!(call(libc::SYS_close, -1), -1);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EBADF));
        // Of a mode that there is not, whether this kernel knows policies or not.
        assert_eq!(call(libc::SYS_set_mempolicy, 99), -1);
    }

    #[test]
    fn files_are_opened_as_ever_where_nothing_is_emulated() {
        // SAFETY: C strings, and a file that this opened.
        unsafe {
            let file = fopen(STATUS.as_ptr(), c"r".as_ptr());
            assert!(!file.is_null());
            libc::fclose(file);
            assert!(fopen(c"/no/such/file".as_ptr(), c"r".as_ptr()).is_null());
        }
    }
}
