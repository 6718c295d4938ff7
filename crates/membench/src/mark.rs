//! Markers for numalab's emulator, and what it publishes.
//!
//! A marker is an instruction that does nothing: on hardware, under KVM or in a QEMU
//! without the plugin a program with markers runs as without. Under the plugin it says
//! where measuring begins and ends and which phase it is in, for the whole machine.
//! On other architectures than x86-64 markers are nothing at all.

use core::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, fence};

/// The variable that tells a command when to mark, in ns of the wall clock, so that several
/// guests begin what counts together.
pub const AT: &str = "NUMALAB_MARK_AT_NS";

/// Begins counting and charging. Nested: they last until the outermost [`end`].
#[inline]
pub fn begin() {
    emit::<1>();
}

/// Ends what [`begin`] began.
#[inline]
pub fn end() {
    emit::<2>();
}

/// Has the plugin write its report now.
#[inline]
pub fn report() {
    emit::<3>();
}

/// Has the plugin write this vCPU's counts to the virtual PMU, before the next instruction.
#[inline]
pub fn publish() {
    emit::<4>();
}

/// Says that what follows belongs to a phase, 0 to 239; higher numbers are the last one.
pub fn phase(number: u8) {
    emit_phase(u64::from(number.min(239)));
}

/// Says that what follows belongs to the phase of this name: at most 64 ASCII letters,
/// others become `?`. The caller should stay on its cpu meanwhile.
pub fn named_phase(name: &str) {
    for letter in name.chars().take(64) {
        emit_letter(if letter.is_ascii() { u64::from(u32::from(letter)) } else { u64::from(b'?') });
    }
    emit::<5>();
}

/// The marker with this code, and a jump, so that QEMU begins a new block behind it.
#[inline]
fn emit<const CODE: u8>() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a NOP of eight bytes and a jump to the next instruction.
    unsafe {
        core::arch::asm!(
            ".byte 0x0f, 0x1f, 0x84, 0x00, {code}, 0x4d, 0x55, 0x4e",
            "jmp 2f",
            "2:",
            code = const CODE,
            options(nostack, preserves_flags),
        );
    }
}

/// A function that executes one marker of a table, by its place: markers from `$first` on
/// with the name `$name`, 16 bytes each, `$count` of them.
#[cfg(target_arch = "x86_64")]
macro_rules! marker_table {
    ($(#[$doc:meta])* $function:ident, $count:literal, $first:literal, $name:literal) => {
        $(#[$doc])*
        #[inline(never)]
        fn $function(place: u64) {
            debug_assert!(place < $count);
            // SAFETY: the place is below the number of markers in the table, so the jump
            // goes to one of them, from which another jump leads to the table's end.
            unsafe {
                core::arch::asm!(
                    "shl {at}, 4",
                    "lea {table}, [rip + 2f]",
                    "add {at}, {table}",
                    "jmp {at}",
                    ".p2align 4",
                    "2:",
                    concat!(".set numalab_marker_code, ", $first),
                    concat!(".rept ", $count),
                    concat!(".byte 0x0f, 0x1f, 0x84, 0x00, numalab_marker_code, ", $name, ", 0x55, 0x4e"),
                    "jmp 3f",
                    ".p2align 4",
                    ".set numalab_marker_code, numalab_marker_code + 1",
                    ".endr",
                    "3:",
                    at = inout(reg) place => _,
                    table = out(reg) _,
                    options(nostack),
                );
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
marker_table!(
    /// The marker of a phase below 240.
    emit_phase, 240, "0x10", "0x4d"
);

#[cfg(target_arch = "x86_64")]
marker_table!(
    /// The marker of an ASCII letter.
    emit_letter, 128, "0", "0x4c"
);

#[cfg(not(target_arch = "x86_64"))]
fn emit_letter(_: u64) {}

#[cfg(not(target_arch = "x86_64"))]
fn emit_phase(_: u64) {}

/// Nodes that a block of the virtual PMU has room for.
pub const PMU_NODES: usize = 16;
/// Bytes of a virtual PMU with room for every machine.
pub const PMU_BYTES: usize = 64 * 1024;

const MAGIC: u64 = u64::from_le_bytes(*b"NUMAPMU1");
const VERSION: u32 = 1;
const HEADER: usize = 64;
const STRIDE: u32 = 256;
/// A block is written in microseconds.
const ATTEMPTS: u32 = 1000;

/// What the emulator charges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PmuMode {
    /// Nothing; it counts.
    Count,
    /// Virtual time.
    Virtual,
    /// Host time.
    Sleep,
}

/// A vCPU's counts since counting first began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PmuCounts {
    /// Its own time: its instructions and what its accesses cost.
    pub time_ns: u64,
    /// Instructions.
    pub instructions: u64,
    /// What memory took.
    pub cost_ns: u64,
    /// Loads from its own node's memory, and from others'.
    pub loads: [u64; 2],
    /// Stores to its own node's memory, and to others'.
    pub stores: [u64; 2],
    /// Accesses that reached memory of its own node, and of others.
    pub misses: [u64; 2],
    /// Position of its node.
    pub node: u32,
    /// The phase when it was published.
    pub phase: u32,
    /// Accesses by position of the node.
    pub nodes: [u64; PMU_NODES],
}

/// Memory that the emulator publishes into.
#[derive(Clone, Copy, Debug)]
pub struct Pmu<'a> {
    words: &'a [AtomicU64],
    vcpus: u32,
}

impl<'a> Pmu<'a> {
    /// The virtual PMU in this memory, if there is one.
    pub fn over(words: &'a [AtomicU64]) -> Option<Self> {
        let pmu = Self { words, vcpus: 0 };
        let ours = pmu.long(0)? == MAGIC && pmu.word(8)? == VERSION && pmu.word(20)? == STRIDE;
        let vcpus = pmu.word(12)?;
        let needed = HEADER as u64 + u64::from(vcpus) * u64::from(STRIDE);
        let fits = needed <= size_of_val(words) as u64;
        (ours && fits).then_some(Self { words, vcpus })
    }

    /// vCPUs of the machine.
    pub fn vcpus(&self) -> u32 {
        self.vcpus
    }

    /// What the emulator charges; none if it is a way we do not know.
    pub fn mode(&self) -> Option<PmuMode> {
        match self.word(24)? {
            0 => Some(PmuMode::Count),
            1 => Some(PmuMode::Virtual),
            2 => Some(PmuMode::Sleep),
            _ => None,
        }
    }

    /// Whether the emulator counts and charges now.
    pub fn is_on(&self) -> bool {
        self.word(28).is_some_and(|on| on != 0)
    }

    /// What was last published of a vCPU; none if there is no such vCPU, or it is being
    /// written all the time.
    pub fn counts(&self, vcpu: u32) -> Option<PmuCounts> {
        if vcpu >= self.vcpus {
            return None;
        }
        let block = HEADER + usize::try_from(vcpu).ok()? * STRIDE as usize;
        for _ in 0..ATTEMPTS {
            let before = self.long(block)?;
            fence(Acquire);
            let counts = self.read(block)?;
            fence(Acquire);
            if before.is_multiple_of(2) && self.long(block)? == before {
                return Some(counts);
            }
        }
        None
    }

    /// A vCPU's own time when it was last published, for who just did that on it: with
    /// less to read than [`Pmu::counts`].
    pub fn own_time_ns(&self, vcpu: u32) -> Option<u64> {
        let block = HEADER + usize::try_from(vcpu).ok()? * STRIDE as usize;
        self.long(block + 8)
    }

    fn read(&self, block: usize) -> Option<PmuCounts> {
        let at = |place| self.long(block + place);
        let mut nodes = [0; PMU_NODES];
        for (node, count) in nodes.iter_mut().enumerate() {
            *count = at(128 + 8 * node)?;
        }
        Some(PmuCounts {
            time_ns: at(8)?,
            instructions: at(16)?,
            cost_ns: at(24)?,
            loads: [at(32)?, at(40)?],
            stores: [at(48)?, at(56)?],
            misses: [at(64)?, at(72)?],
            node: self.word(block + 80)?,
            phase: self.word(block + 84)?,
            nodes,
        })
    }

    /// Eight bytes at a multiple of eight.
    fn long(&self, place: usize) -> Option<u64> {
        Some(u64::from_le(self.words.get(place / 8)?.load(Relaxed)))
    }

    /// Four bytes at a multiple of four.
    fn word(&self, place: usize) -> Option<u32> {
        let half = self.long(place)? >> (place % 8 * 8);
        u32::try_from(half & u64::from(u32::MAX)).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use super::*;

    fn page(vcpus: u32) -> Vec<AtomicU64> {
        let mut page = vec![0_u64; PMU_BYTES / 8];
        page[0] = MAGIC;
        page[1] = u64::from(VERSION) | u64::from(vcpus) << 32;
        page[2] = 2 | u64::from(STRIDE) << 32;
        page[3] = 1 | 1 << 32;
        page.into_iter().map(|word| AtomicU64::new(word.to_le())).collect()
    }

    #[test]
    fn markers_do_nothing_without_an_emulator() {
        begin();
        (0..=u8::MAX).for_each(phase);
        named_phase("walk");
        named_phase("größe\u{7f}\0");
        publish();
        report();
        end();
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn markers_are_the_instructions_that_the_emulator_looks_for() {
        let holds = |function: *const u8, bytes: usize, code: u8, name: u8| {
            let marker = [0x0f, 0x1f, 0x84, 0x00, code, name, 0x55, 0x4e];
            // SAFETY: a function's bytes and those behind it are code of this program.
            let code = unsafe { core::slice::from_raw_parts(function, bytes) };
            code.windows(8).any(|bytes| bytes == marker)
        };
        assert!(holds(emit::<3> as *const u8, 32, 3, b'M'));
        for code in [0x10, 0x11, 0xff] {
            assert!(holds(emit_phase as *const u8, 64 + 240 * 16, code, b'M'), "{code:#x}");
        }
        for letter in [0, b'a', 127] {
            let found = holds(emit_letter as *const u8, 64 + 128 * 16, letter, b'L');
            assert!(found, "{letter:#x}");
        }
    }

    #[test]
    fn a_page_without_the_magic_word_or_of_another_version_is_no_pmu() {
        let empty: Vec<_> = (0..PMU_BYTES / 8).map(|_| AtomicU64::new(0)).collect();
        assert!(Pmu::over(&empty).is_none());
        let newer = page(2);
        newer[1].fetch_add(1, Relaxed);
        assert!(Pmu::over(&newer).is_none());
        assert!(Pmu::over(&page(256)).is_none(), "more vCPUs than fit");
        let good = page(2);
        let pmu = Pmu::over(&good).unwrap();
        assert_eq!((pmu.vcpus(), pmu.mode(), pmu.is_on()), (2, Some(PmuMode::Virtual), true));
        for words in 0..HEADER / 8 + 2 * STRIDE as usize / 8 {
            assert!(Pmu::over(&good[..words]).is_none(), "{words} words");
        }
    }

    #[test]
    fn a_vcpus_counts_are_its_own() {
        let page = page(2);
        let block = (HEADER + STRIDE as usize) / 8;
        let words = [4_u64, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1 | 3 << 32];
        for (place, word) in page[block..].iter().zip(words) {
            place.store(word.to_le(), Relaxed);
        }
        page[block + 16].store(11_u64.to_le(), Relaxed);
        let mut expected = PmuCounts {
            time_ns: 1,
            instructions: 2,
            cost_ns: 3,
            loads: [4, 5],
            stores: [6, 7],
            misses: [8, 9],
            node: 1,
            phase: 3,
            nodes: [0; PMU_NODES],
        };
        expected.nodes[0] = 11;
        let pmu = Pmu::over(&page).unwrap();
        assert_eq!(pmu.counts(1), Some(expected));
        assert_eq!(pmu.counts(0), Some(PmuCounts::default()));
        assert_eq!(pmu.own_time_ns(1), Some(1));
        assert_eq!(pmu.counts(2), None);
        page[block].store(5_u64.to_le(), Relaxed);
        assert_eq!(pmu.counts(1), None, "half written");
    }
}
