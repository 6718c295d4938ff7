//! The number that the system's C library gives.

/// Returns true if [`cpu_number`] is available: on Linux.
pub fn has_cpu_number() -> bool {
    cfg!(target_os = "linux")
}

/// Returns the number of the cpu that the calling thread is on, which is in no register that
/// programs can read.
///
/// # Safety
/// [`has_cpu_number`] is true.
#[cfg(target_os = "linux")]
pub unsafe fn cpu_number() -> u32 {
    unsafe extern "C" {
        // The system's C library, which since glibc 2.35 reads the number from memory that Linux
        // maintains for each thread (rseq(2)); a system call costs some hundred accesses.
        safe fn sched_getcpu() -> i32;
    }
    sched_getcpu().cast_unsigned()
}

/// Returns 0; never called.
///
/// # Safety
/// [`has_cpu_number`] is true.
#[cfg(not(target_os = "linux"))]
pub unsafe fn cpu_number() -> u32 {
    0
}
