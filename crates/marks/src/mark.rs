//! Markers for numalab's emulator.
//!
//! A marker is an instruction without effect: on hardware, under KVM or in a QEMU without the
//! plugin a program with markers runs like one without them. Under the plugin it marks where measuring begins
//! and ends, and the phase of the program, for the whole machine. On architectures other than
//! x86-64 and aarch64 markers do nothing at all.

/// The variable that gives a command the time to mark, in ns of the wall clock, so that several
/// guests begin the measured part together.
pub const AT: &str = "NUMALAB_MARK_AT_NS";

/// The first bytes of a marker's instruction: `nop dword ptr [rax + rax + disp32]`. The
/// displacement is the marker's code and a name.
pub const OPCODE: [u8; 4] = [0x0f, 0x1f, 0x84, 0x00];
/// Returns a marker on aarch64: `movz xzr, #(letter << 8 | code), lsl #48`, which writes to the
/// register that stays zero. The letter is the first of the marker's name.
pub const fn aarch64(code: u8, name: [u8; 3]) -> u32 {
    AARCH64 | (u32::from_be_bytes([0, 0, name[0], code])) << 5
}

/// `movz xzr, #0, lsl #48` (Arm ARM C6.2, MOVZ).
const AARCH64: u32 = 0xd2e0_001f;

/// The name after the code of a marker.
pub const NAME: [u8; 3] = *b"MUN";
/// The name after a letter of a phase's name.
pub const LETTER: [u8; 3] = *b"LUN";
/// Code of [`begin`].
pub const BEGIN: u8 = 1;
/// Code of [`end`].
pub const END: u8 = 2;
/// Code of [`report`].
pub const REPORT: u8 = 3;
/// Code of [`publish`].
pub const PUBLISH: u8 = 4;
/// Code of [`named_phase`], sent after its letters.
pub const NAMED_PHASE: u8 = 5;
/// Code of the host's pages of 4 KiB; those of 2 MiB and of 1 GiB follow it.
pub const FIRST_HOST_PAGES: u8 = 6;
/// Code of phase 0; the others follow it.
pub const FIRST_PHASE: u8 = 0x10;
/// Number of phases that have a code.
pub const PHASES: u8 = 240;

/// Begins counting and charging. Calls nest: both last until the outermost [`end`].
#[inline]
pub fn begin() {
    emit::<BEGIN>();
}

/// Ends the effect of [`begin`].
#[inline]
pub fn end() {
    emit::<END>();
}

/// Makes the plugin write its report now.
#[inline]
pub fn report() {
    emit::<REPORT>();
}

/// Makes the plugin write this vCPU's counts to the virtual PMU, before the next instruction.
#[inline]
pub fn publish() {
    emit::<PUBLISH>();
}

/// Tells the plugin the size of the host's pages behind this guest's memory: 0 for 4 KiB, 1 for 2 MiB,
/// 2 and more for 1 GiB. A machine without nested paging ignores it.
pub fn host_pages(size: u8) {
    match size {
        0 => emit::<FIRST_HOST_PAGES>(),
        1 => emit::<{ FIRST_HOST_PAGES + 1 }>(),
        _ => emit::<{ FIRST_HOST_PAGES + 2 }>(),
    }
}

/// Marks that the following code belongs to a phase, 0 to 239; higher numbers mean the last one.
pub fn phase(number: u8) {
    emit_phase(u64::from(number.min(PHASES - 1)));
}

/// Marks that the following code belongs to the phase of this name: at most 64 ASCII letters;
/// others become `?`. The caller should stay on its cpu meanwhile.
pub fn named_phase(name: &str) {
    for letter in name.chars().take(64) {
        emit_letter(if letter.is_ascii() { u64::from(u32::from(letter)) } else { u64::from(b'?') });
    }
    emit::<NAMED_PHASE>();
}

/// Executes the marker with this code, and a jump, so that QEMU begins a new block after it.
#[inline]
fn emit<const CODE: u8>() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a NOP of eight bytes and a jump to the next instruction.
    unsafe {
        core::arch::asm!(
            ".byte {o0}, {o1}, {o2}, {o3}, {code}, {n0}, {n1}, {n2}",
            "jmp 2f",
            "2:",
            o0 = const OPCODE[0], o1 = const OPCODE[1], o2 = const OPCODE[2], o3 = const OPCODE[3],
            n0 = const NAME[0], n1 = const NAME[1], n2 = const NAME[2],
            code = const CODE,
            options(nostack, preserves_flags),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a move to the register that stays zero, and a branch to the next instruction.
    unsafe {
        core::arch::asm!(
            ".inst {marker}",
            "b 2f",
            "2:",
            marker = const aarch64(CODE, NAME),
            options(nostack, preserves_flags),
        );
    }
}

/// Defines a function that executes one marker of a table, by its index: `$count` markers from
/// `$first` on with the name `$name`, 10 bytes each.
#[cfg(target_arch = "x86_64")]
macro_rules! marker_table {
    ($(#[$doc:meta])* $function:ident, $count:expr, $first:expr, $name:expr) => {
        $(#[$doc])*
        #[inline(never)]
        fn $function(place: u64) {
            debug_assert!(place < u64::from($count));
            // SAFETY: the index is below the number of markers in the table, so the jump goes to
            // one of them, from which another jump leads to the table's end.
            unsafe {
                core::arch::asm!(
                    // A marker of eight bytes and a `jmp rcx` of two, `$count` times.
                    "lea {at}, [{at} + {at} * 4]",
                    "lea {table}, [rip + 2f]",
                    "lea {at}, [{table} + {at} * 2]",
                    "lea rcx, [rip + 3f]",
                    "jmp {at}",
                    "2:",
                    ".set numalab_marker_code, {first}",
                    ".rept {count}",
                    ".byte {o0}, {o1}, {o2}, {o3}, numalab_marker_code, {n0}, {n1}, {n2}",
                    "jmp rcx",
                    ".set numalab_marker_code, numalab_marker_code + 1",
                    ".endr",
                    "3:",
                    at = inout(reg) place => _,
                    table = out(reg) _,
                    out("rcx") _,
                    first = const $first,
                    count = const $count,
                    o0 = const OPCODE[0], o1 = const OPCODE[1], o2 = const OPCODE[2], o3 = const OPCODE[3],
                    n0 = const $name[0], n1 = const $name[1], n2 = const $name[2],
                    options(nostack),
                );
            }
        }
    };
}

/// Defines a function with a table of markers, each of eight bytes: the marker and a branch to the
/// table's end.
#[cfg(target_arch = "aarch64")]
macro_rules! marker_table {
    ($(#[$doc:meta])* $function:ident, $count:expr, $first:expr, $name:expr) => {
        $(#[$doc])*
        #[inline(never)]
        fn $function(place: u64) {
            debug_assert!(place < u64::from($count));
            // SAFETY: the index is below the number of markers in the table, so the branch goes to
            // one of them, from which another one leads to the table's end.
            unsafe {
                core::arch::asm!(
                    "adr {table}, 2f",
                    "add {table}, {table}, {at}, lsl #3",
                    "br {table}",
                    "2:",
                    ".set numalab_marker_code, {first}",
                    ".rept {count}",
                    ".long {marker} + (numalab_marker_code << 5)",
                    "b 3f",
                    ".set numalab_marker_code, numalab_marker_code + 1",
                    ".endr",
                    "3:",
                    at = in(reg) place,
                    table = out(reg) _,
                    first = const $first,
                    count = const $count,
                    marker = const aarch64(0, $name),
                    options(nostack),
                );
            }
        }
    };
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
marker_table!(
    /// Executes the marker of a phase below 240.
    emit_phase, PHASES, FIRST_PHASE, NAME
);

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
marker_table!(
    /// Executes the marker of an ASCII letter.
    emit_letter, 128_u8, 0, LETTER
);

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn emit_letter(_: u64) {}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn emit_phase(_: u64) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_do_nothing_without_an_emulator() {
        begin();
        (0..=u8::MAX).for_each(phase);
        named_phase("walk");
        named_phase("größe\u{7f}\0");
        (0..=u8::MAX).for_each(host_pages);
        publish();
        report();
        end();
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn markers_are_the_instructions_that_the_emulator_looks_for() {
        let holds = |function: *const u8, bytes: usize, code: u8, name: u8| {
            let marker = [0x0f, 0x1f, 0x84, 0x00, code, name, b'U', b'N'];
            // SAFETY: a function's bytes and those after it are code of this program.
            let code = unsafe { core::slice::from_raw_parts(function, bytes) };
            code.windows(8).any(|bytes| bytes == marker)
        };
        assert!(holds(emit::<3> as *const u8, 32, 3, b'M'));
        for code in [0x10, 0x11, 0xff] {
            assert!(holds(emit_phase as *const u8, 128 + 240 * 10, code, b'M'), "{code:#x}");
        }
        for letter in [0, b'a', 127] {
            let found = holds(emit_letter as *const u8, 128 + 128 * 10, letter, b'L');
            assert!(found, "{letter:#x}");
        }
    }

    #[cfg(target_arch = "aarch64")]
    #[test]
    fn markers_are_the_instructions_that_the_emulator_looks_for() {
        let holds = |function: *const u8, bytes: usize, marker: u32| {
            // SAFETY: a function's bytes and those after it are code of this program.
            let code = unsafe { core::slice::from_raw_parts(function, bytes) };
            code.chunks_exact(4).any(|bytes| bytes == marker.to_le_bytes())
        };
        assert!(holds(emit::<3> as *const u8, 32, aarch64(3, NAME)));
        for code in [0x10, 0x11, 0xff] {
            assert!(
                holds(emit_phase as *const u8, 128 + 240 * 8, aarch64(code, NAME)),
                "{code:#x}"
            );
        }
        for letter in [0, b'a', 127] {
            let found = holds(emit_letter as *const u8, 128 + 128 * 8, aarch64(letter, LETTER));
            assert!(found, "{letter:#x}");
        }
    }
}
