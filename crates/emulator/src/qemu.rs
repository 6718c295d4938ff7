//! Accesses what QEMU's plugin interface does not offer: the clock that counts instructions, and
//! which vCPU runs where several share one thread.
//!
//! The interface's calls for time (`qemu_plugin_request_time_control` and `qemu_plugin_update_ns`,
//! QEMU 9.1 and later) do not work here: with `-icount` the clock is computed from the instructions
//! and cannot be set, so the call waits inside QEMU for a time that never comes; without `-icount`
//! it waits for the host's clock. So the plugin changes the offset of QEMU's own clock, after
//! testing that it found the right field.

use std::ffi::{CStr, c_int, c_void};
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicUsize, Ordering::Relaxed};

use crate::api::symbol;

/// Offset of `qemu_icount_bias` in QEMU's `TimersState`, in 7.2 and 10.0.
const BIAS_OFFSET: usize = 40;

/// QEMU's instruction clock, adjusted through its offset.
#[derive(Debug)]
pub struct Clock {
    bias: *mut i64,
    icount_get: unsafe extern "C" fn() -> i64,
    to_ns: unsafe extern "C" fn(i64) -> i64,
}

// SAFETY: the pointers are to statics and functions of QEMU's executable, which live as long as the
// process and belong to no thread.
unsafe impl Send for Clock {}
// SAFETY: the offset is accessed only by atomics here; QEMU changes it only while no vCPU runs, and
// all our callers are vCPUs, or the thread that loads the plugin before there is one.
unsafe impl Sync for Clock {}

impl Clock {
    /// Finds QEMU's clock; fails without `-icount` or without the symbols.
    pub fn find() -> Result<Self, &'static str> {
        let icount = symbol(c"use_icount");
        let missing = "this QEMU does not export the symbols of its clock";
        if icount.is_null() {
            return Err(missing);
        }
        // SAFETY: an `int`, or an enum of that size, since QEMU 2.
        if unsafe { icount.cast::<c_int>().read_volatile() } == 0 {
            return Err("mode=virtual needs QEMU's option `-icount shift=0,sleep=off`");
        }
        let timers = symbol(c"timers_state");
        let (get, to_ns) = (symbol(c"icount_get"), symbol(c"icount_to_ns"));
        if timers.is_null() || get.is_null() || to_ns.is_null() {
            return Err(missing);
        }
        // SAFETY: both functions have these signatures (`include/sysemu/cpu-timers.h`); the offset
        // is within the structure, which is larger in every version.
        unsafe {
            Ok(Self {
                bias: timers.cast::<u8>().add(BIAS_OFFSET).cast(),
                icount_get: std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> i64>(get),
                to_ns: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(i64) -> i64>(to_ns),
            })
        }
    }

    /// Moves the guest's clock forwards, or backwards if negative.
    #[inline]
    pub fn advance(&self, ns: i64) {
        // SAFETY: an aligned i64 that lives as long as QEMU (see `find`).
        let bias = unsafe { AtomicI64::from_ptr(self.bias) };
        // Not a read-modify-write: others change the offset only while no vCPU runs (QEMU's
        // `icount_start_warp_timer`), and a locked instruction takes longer than most accesses.
        bias.store(bias.load(Relaxed).wrapping_add(ns), Relaxed);
    }

    /// Moves the offset by a trial amount and back; returns the change that QEMU's clock showed, in
    /// ns.
    ///
    /// Must not be called on a thread that runs a vCPU: QEMU does not read its clock within a
    /// block.
    pub fn trial(&self, ns: i64) -> i64 {
        // SAFETY: the field found by `find`, an aligned i64 that lives as long as QEMU;
        // `icount_get` takes no arguments, and no lock.
        unsafe {
            let bias = AtomicI64::from_ptr(self.bias);
            // QEMU itself must show the difference: writing the right field and reading it back
            // would prove nothing about a wrong one.
            let before = (self.icount_get)();
            bias.fetch_add(ns, Relaxed);
            let after = (self.icount_get)();
            bias.fetch_sub(ns, Relaxed);
            after - before
        }
    }

    /// Returns the time of an instruction set by `-icount shift`, in ns.
    pub fn ns_per_instruction(&self) -> u64 {
        // SAFETY: a pure function of QEMU's.
        u64::try_from(unsafe { (self.to_ns)(1) }).unwrap_or(1)
    }
}

/// Finds the vCPU that runs, if QEMU's index is wrong. If vCPUs share one thread, QEMU 9 and later
/// pass to callbacks the index of the vCPU that translated the block, not of the one that executes
/// it.
#[derive(Debug, Default)]
pub struct Running {
    /// Location of that thread's `current_cpu`; null until known.
    current: AtomicPtr<*mut c_void>,
    cpus: Vec<AtomicPtr<c_void>>,
    last: AtomicUsize,
    exit: AtomicPtr<c_void>,
}

impl Running {
    pub fn new(vcpus: usize) -> Self {
        Self {
            cpus: (0..vcpus).map(|_| AtomicPtr::default()).collect(),
            exit: AtomicPtr::new(symbol(c"cpu_exit")),
            ..Self::default()
        }
    }

    /// Returns true if all vCPUs share one thread, or `None` if QEMU does not say: up to 10.0 by a
    /// variable, later by a function.
    pub fn one_thread() -> Option<bool> {
        let (variable, function) = (symbol(c"mttcg_enabled"), symbol(c"qemu_tcg_mttcg_enabled"));
        // SAFETY: in QEMU these names are a `bool` and a function (`include/system/tcg.h`).
        unsafe { Self::has_one_thread(variable, function) }
    }

    /// # Safety
    /// Each is null or QEMU's symbol: a `bool`, and a `bool function(void)`.
    unsafe fn has_one_thread(variable: *mut c_void, function: *mut c_void) -> Option<bool> {
        type Asks = unsafe extern "C" fn() -> bool;
        if !variable.is_null() {
            // SAFETY: by the caller's guarantee a `bool`, whose byte is 0 or 1.
            return Some(unsafe { variable.cast::<u8>().read_volatile() } == 0);
        }
        // SAFETY: by the caller's guarantee a function of this type, which only reads how QEMU was
        // started.
        (!function.is_null())
            .then(|| unsafe { !std::mem::transmute::<*mut c_void, Asks>(function)() })
    }

    /// Finds the vCPUs and returns their number. Must be called on the thread that runs them.
    pub fn learn(&self) -> Result<usize, &'static str> {
        let get: *mut c_void = symbol(c"qemu_get_cpu");
        let current: *mut c_void = symbol(c"current_cpu");
        if get.is_null() || current.is_null() {
            return Err("this QEMU does not export which vCPU runs");
        }
        // SAFETY: `CPUState *qemu_get_cpu(int)` (`include/hw/core/cpu.h`).
        let get = unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int) -> *mut c_void>(get)
        };
        let mut known = 0;
        for (index, cpu) in self.cpus.iter().enumerate() {
            // SAFETY: it reads the list of vCPUs, which is complete before one runs; an unused
            // index gives null.
            let found = unsafe { get(c_int::try_from(index).unwrap_or(c_int::MAX)) };
            cpu.store(found, Relaxed);
            known += usize::from(!found.is_null());
        }
        // A thread-local symbol resolves to the calling thread's variable.
        self.current.store(current.cast(), Relaxed);
        Ok(known)
    }

    /// Returns the vCPU that runs on this thread, on which `learn` was called.
    #[inline]
    pub fn vcpu(&self) -> Option<usize> {
        let current = self.current();
        let last = self.last.load(Relaxed);
        // A vCPU mostly runs many blocks in a row.
        if self.cpus.get(last).is_some_and(|cpu| cpu.load(Relaxed) == current) {
            return Some(last);
        }
        let found = self.cpus.iter().position(|cpu| cpu.load(Relaxed) == current)?;
        self.last.store(found, Relaxed);
        Some(found)
    }

    /// Ends the turn of the running vCPU.
    pub fn end_turn(&self) {
        let (exit, current) = (self.exit.load(Relaxed), self.current());
        if exit.is_null() || current.is_null() {
            return;
        }
        // SAFETY: `void cpu_exit(CPUState *)`, which any thread may call on a living vCPU; this one
        // is executing us.
        unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void)>(exit)(current);
        }
    }

    fn current(&self) -> *mut c_void {
        let place = self.current.load(Relaxed);
        if place.is_null() {
            return place.cast();
        }
        // SAFETY: `learn` found the `current_cpu` of the only thread that runs vCPUs, which is the
        // calling one (`Plugin::tell_vcpus_apart` requires it) and the only writer.
        unsafe { place.read() }
    }
}

/// Writes a line to standard error. `eprintln!` panics once the pipe is closed, and a panic here
/// ends QEMU.
pub fn complain(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "numalab-emulator: {text}");
}

/// Ends QEMU, because any further figures would be wrong.
pub fn refuse(reason: &str) -> ! {
    complain(reason);
    // SAFETY: ends the process at once. Not `exit`: its handlers wait for this thread.
    unsafe { libc::_exit(1) }
}

/// Copies text that QEMU passed.
///
/// # Safety
/// `text` is null or a C string that lives during the call.
pub unsafe fn text(text: *const std::ffi::c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: guaranteed by the caller.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    extern "C" fn several() -> bool {
        true
    }

    extern "C" fn one() -> bool {
        false
    }

    #[test]
    fn asks_newer_qemus_by_a_function_whether_vcpus_share_a_thread() {
        let says = |variable: Option<&mut bool>, function: Option<extern "C" fn() -> bool>| {
            let variable = variable.map_or(ptr::null_mut(), |of| ptr::from_mut(of).cast());
            let function = function.map_or(ptr::null_mut(), |of| of as *mut c_void);
            // SAFETY: null, or a `bool` and a function of ours.
            unsafe { Running::has_one_thread(variable, function) }
        };
        assert_eq!(
            [Some(one as _), Some(several as _)].map(|of| says(None, of)),
            [Some(true), Some(false)]
        );
        assert_eq!(
            [false, true].map(|mut of| says(Some(&mut of), None)),
            [Some(true), Some(false)]
        );
        assert_eq!(says(None, None), None);
    }
}
