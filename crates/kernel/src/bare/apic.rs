//! The local interrupt controller of each cpu (Intel SDM volume 3, chapter 11).

use core::arch::x86_64::{__cpuid, __cpuid_count};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use x86_64::registers::model_specific::Msr;

use super::address::pointer;

/// The interrupt that wakes a cpu.
pub const WAKE: u8 = 0x40;
const APIC_BASE: u32 = 0x1b;
const ENABLED: u64 = 1 << 11;
const X2APIC: u64 = 1 << 10;
/// Offsets of registers in the xAPIC; in the x2APIC they are MSRs.
const EOI: u32 = 0xb0;
const SPURIOUS: u32 = 0xf0;
const COMMAND: u32 = 0x300;
const COMMAND_HIGH: u32 = 0x310;
const PENDING: u32 = 1 << 12;

static IS_X2APIC: AtomicBool = AtomicBool::new(false);
static BASE: AtomicU64 = AtomicU64::new(0xfee0_0000);

#[derive(Clone, Copy)]
pub enum Signal {
    /// Reset, and wait for a start.
    Init,
    /// Start at this page in real mode.
    Start(u8),
    /// The interrupt [`WAKE`].
    Wake,
}

/// Enables this cpu's controller, as x2APIC if possible.
pub fn enable() {
    let x2apic = __cpuid(1).ecx >> 21 & 1 == 1;
    let mut msr = Msr::new(APIC_BASE);
    // SAFETY: enabling the controller changes no memory; every long-mode cpu has this register.
    let base = unsafe { msr.read() };
    let mode = if x2apic { X2APIC } else { 0 };
    // SAFETY: every long-mode cpu has this register; only these two bits of it are changed, and no
    // interrupt is on its way to this cpu yet. A disabled controller needs two steps to become an
    // x2APIC (SDM 11.12.5).
    unsafe {
        msr.write(base | ENABLED);
        msr.write(base | ENABLED | mode);
    }
    BASE.store(base & 0xf_ffff_ffff_f000, Ordering::Relaxed);
    IS_X2APIC.store(x2apic, Ordering::Relaxed);
    // Enabled by software too; spurious interrupts go to 0xff.
    write(SPURIOUS, 0x1ff);
}

/// Returns true if it is an x2APIC.
pub fn is_x2apic() -> bool {
    IS_X2APIC.load(Ordering::Relaxed)
}

/// Returns the id of the current cpu, whatever state its controller is in.
pub fn id() -> u32 {
    if __cpuid(0).eax >= 0xb {
        let topology = __cpuid_count(0xb, 0);
        if topology.ebx != 0 {
            return topology.edx;
        }
    }
    __cpuid(1).ebx >> 24
}

pub fn wake(to: u32) {
    // SAFETY: the interrupt only ends its sleep.
    unsafe { send(to, Signal::Wake) };
}

/// Sends a signal to a cpu; returns false if this controller cannot address it, or did not send it.
///
/// # Safety
/// `to` is the id of one cpu, never that of all. A cpu that is reset runs nothing that others wait
/// for, and one that is started finds its code at the page.
pub unsafe fn send(to: u32, signal: Signal) -> bool {
    let command = match signal {
        Signal::Init => 0x4500,
        Signal::Start(page) => 0x4600 | u32::from(page),
        Signal::Wake => 0x4000 | u32::from(WAKE),
    };
    if is_x2apic() {
        let word = u64::from(to) << 32 | u64::from(command);
        // SAFETY: the interrupt command register; the rest is the caller's promise.
        unsafe { Msr::new(0x830).write(word) };
        return true;
    }
    if to > 0xfe {
        return false;
    }
    write(COMMAND_HIGH, to << 24);
    write(COMMAND, command);
    (0..1_000_000).any(|_| read(COMMAND) & PENDING == 0)
}

/// Allows the next interrupt.
pub fn end_of_interrupt() {
    write(EOI, 0);
}

fn write(register: u32, value: u32) {
    if is_x2apic() {
        // SAFETY: `enable` has found an x2APIC, whose registers are these (SDM table 11-6); none of
        // those written here makes the cpu access memory.
        unsafe { Msr::new(0x800 + register / 16).write(value.into()) };
        return;
    }
    // SAFETY: `BASE` is where the controller says that its registers are: in no memory of the loader's
    // map, and mapped at its own address as all below 4 GiB is, where firmware leaves it.
    unsafe { at(register).write_volatile(value) };
}

fn read(register: u32) -> u32 {
    // SAFETY: without x2APIC, which `send` checked, the registers are at `BASE`, mapped at its own
    // address.
    unsafe { at(register).read_volatile() }
}

fn at(register: u32) -> *mut u32 {
    let address = BASE.load(Ordering::Relaxed) + u64::from(register);
    pointer(address)
}
