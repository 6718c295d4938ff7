//! Exceptions are reported with their cpu and address; interrupts only wake cpus.

use core::cell::UnsafeCell;
use core::fmt::Write;

use x86_64::VirtAddr;
use x86_64::instructions::port::Port;
use x86_64::instructions::tables::lidt;
use x86_64::registers::control::Cr2;
use x86_64::structures::DescriptorTablePointer;

use super::apic::{self, WAKE};
use super::exit::{Verdict, exit};
use super::serial::Serial;

/// A gate of the interrupt descriptor table (AMD APM volume 2, 8.6.1).
#[derive(Clone, Copy)]
#[repr(C)]
struct Gate([u32; 4]);

struct Table(UnsafeCell<[Gate; 256]>);

// SAFETY: written by the boot cpu before any other runs, then only read, by the processor.
unsafe impl Sync for Table {}

static TABLE: Table = Table(UnsafeCell::new([Gate([0; 4]); 256]));

unsafe extern "C" {
    static exception_vectors: [u64; 32];
    fn wake_vector();
    fn ignore_vector();
}

impl Gate {
    /// Returns an interrupt gate to an address, in the code segment 8.
    const fn to(address: u64) -> Self {
        let [a, b, c, d, e, f, g, h] = address.to_le_bytes();
        Self([
            u32::from_le_bytes([a, b, 8, 0]),
            u32::from_le_bytes([0, 0x8e, c, d]),
            u32::from_le_bytes([e, f, g, h]),
            0,
        ])
    }
}

/// Fills the table, and masks the legacy interrupt controllers.
///
/// # Safety
/// Called once, before any cpu loads the table.
pub unsafe fn init() {
    // SAFETY: by the caller's promise the only access. The vectors are addresses of code in boot.s,
    // which was written for this purpose.
    unsafe {
        let table = &mut *TABLE.0.get();
        table.fill(Gate::to(ignore_vector as *const () as u64));
        for (gate, address) in table.iter_mut().zip(exception_vectors) {
            *gate = Gate::to(address);
        }
        table[usize::from(WAKE)] = Gate::to(wake_vector as *const () as u64);
    }
    // The 8259s' vectors are moved to 0x20 and above, away from the exceptions, and all are masked.
    let words = [(0x20, 0x11), (0xa0, 0x11), (0x21, 0x20), (0xa1, 0x28), (0x21, 4), (0xa1, 2)];
    for (port, value) in words.into_iter().chain([(0x21, 1), (0xa1, 1), (0x21, 0xff), (0xa1, 0xff)])
    {
        // SAFETY: the initialisation sequence from their data sheet.
        unsafe { Port::<u8>::new(port).write(value) };
    }
}

/// Loads the table on this cpu.
pub fn load() {
    let base = VirtAddr::from_ptr(TABLE.0.get());
    // SAFETY: the table is static and was filled by `init`.
    unsafe { lidt(&DescriptorTablePointer { limit: 4095, base }) };
}

/// The stack frame built by boot.s and the processor.
#[repr(C)]
pub struct Trap {
    number: u64,
    code: u64,
    rip: u64,
    cs: u64,
    flags: u64,
    rsp: u64,
    ss: u64,
}

const NAMES: [&str; 22] = [
    "divide error",
    "debug",
    "NMI",
    "breakpoint",
    "overflow",
    "bound range",
    "invalid opcode",
    "device not available",
    "double fault",
    "coprocessor segment",
    "invalid TSS",
    "segment not present",
    "stack fault",
    "general protection",
    "page fault",
    "reserved",
    "floating point",
    "alignment check",
    "machine check",
    "SIMD floating point",
    "virtualisation",
    "control protection",
];

/// Handles every exception; called by boot.s.
pub extern "C" fn exception(trap: &Trap) -> ! {
    let place = usize::try_from(trap.number).unwrap_or(usize::MAX);
    let name = NAMES.get(place).copied().unwrap_or("reserved");
    let Trap { number, code, rip, rsp, .. } = trap;
    let cpu = apic::id();
    let _ = write!(
        Serial,
        "\nPANIC: exception {number} ({name}) on the cpu with APIC id {cpu} at {rip:#x}, \
         code {code:#x}, stack {rsp:#x}"
    );
    if *number == 14 {
        let address = Cr2::read_raw();
        let _ = write!(Serial, ", address {address:#x}");
    }
    let _ = writeln!(Serial);
    exit(Verdict::Panicked)
}

/// Handles the wake-up interrupt; called by boot.s.
pub extern "C" fn wake() {
    apic::end_of_interrupt();
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let cpu = apic::id();
    let _ = writeln!(Serial, "\nPANIC: on the cpu with APIC id {cpu}: {info}");
    exit(Verdict::Panicked)
}
