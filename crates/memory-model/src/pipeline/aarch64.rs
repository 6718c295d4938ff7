//! Decodes the registers that an A64 instruction reads, writes, and computes addresses from.
//!
//! Enough of Arm's manual (Architecture Reference Manual for A-profile, C4.1, "A64 instruction set
//! encoding") to follow values from loads to addresses: integers, loads and stores, scalar and
//! Advanced SIMD. Not SVE. The stack pointer counts as known. A base register that an access
//! advances keeps its sources: the loaded value is not one of them.

mod classes;
mod vectors;

use super::operands::{Ends, Operands, Order, Registers};

const FLAGS: Registers = Registers::FLAGS;
const NONE: Registers = Registers::NONE;

/// An instruction's word.
#[derive(Clone, Copy, Debug)]
struct Word(u32);

/// Decodes the registers of an instruction; none for an unknown one.
pub fn decode(bytes: &[u8]) -> Operands {
    let Ok(bytes) = <[u8; 4]>::try_from(bytes) else { return Operands::default() };
    let word = Word(u32::from_le_bytes(bytes));
    let known = match word.field(25, 4) {
        0b1000 | 0b1001 => word.immediate(),
        0b1010 | 0b1011 => word.branch_or_system(),
        0b0100 | 0b0110 | 0b1100 | 0b1110 => word.memory(),
        0b0101 | 0b1101 => word.registers(),
        0b0111 | 0b1111 => word.vectors(),
        _ => Operands::default(),
    };
    // A load's result comes from memory, and most stores write no register.
    known.taking(word.class()).storing(known.writes == NONE)
}

fn plain(reads: Registers, writes: Registers) -> Operands {
    Operands { reads, writes, ..Operands::default() }
}

/// Returns a general register; 31 is zero, or the stack pointer.
fn general(number: u8) -> Registers {
    if number == 31 { NONE } else { Registers::general(number) }
}

impl Word {
    /// Returns `width` bits, of at most eight, from `low` on.
    fn field(self, low: u32, width: u32) -> u8 {
        (self.0 >> low & ((1 << width) - 1)).to_le_bytes()[0]
    }

    fn bit(self, number: u32) -> bool {
        self.0 >> number & 1 == 1
    }

    fn general(self, low: u32) -> Registers {
        general(self.field(low, 5))
    }

    fn vector(self, low: u32) -> Registers {
        Registers::vector(self.field(low, 5))
    }

    /// Returns the register that an access loads or stores.
    fn value(self, low: u32) -> Registers {
        if self.bit(26) { self.vector(low) } else { self.general(low) }
    }

    /// Decodes data processing with an immediate operand.
    fn immediate(self) -> Operands {
        let (to, from) = (self.general(0), self.general(5));
        match self.field(23, 3) {
            0b010 | 0b011 if self.bit(29) => plain(from, to | FLAGS),
            0b100 if self.field(29, 2) == 0b11 => plain(from, to | FLAGS),
            0b010..=0b100 => plain(from, to),
            // MOVK keeps part of its register, and so does BFM.
            0b101 if self.field(29, 2) == 0b11 => plain(to, to),
            0b110 if self.field(29, 2) == 0b01 => plain(from | to, to),
            0b110 => plain(from, to),
            0b111 => plain(from | self.general(16), to),
            _ => plain(NONE, to),
        }
    }

    fn branch_or_system(self) -> Operands {
        let link = Registers::general(30);
        let fence = Operands { order: Order::Fence, ..Operands::default() };
        let is_barrier = self.0 & 0xffff_f01f == 0xd503_301f;
        let stores_only = self.field(8, 2) == 0b10;
        match self.0 >> 24 {
            0xd4 => fence,
            // DSB, DMB and ISB; a DMB for stores does not order loads.
            _ if is_barrier => match self.field(5, 3) {
                0b100 | 0b110 => fence,
                0b101 if !stores_only => fence,
                _ => Operands::default(),
            },
            // MRS
            0xd5 if self.bit(21) && self.bit(20) => plain(NONE, self.general(0)),
            0x54 => plain(FLAGS, NONE).ending(Ends::Conditional),
            // CBZ and CBNZ, TBZ and TBNZ
            0x34..=0x37 | 0xb4..=0xb7 => plain(self.general(0), NONE).ending(Ends::Conditional),
            // BR and BLR
            0xd6 if self.field(21, 3) < 2 => {
                let (writes, ends) = match self.field(21, 3) {
                    1 => (link, Ends::IndirectCall),
                    _ => (NONE, Ends::Indirect),
                };
                plain(self.general(5), writes).ending(ends)
            }
            0x94..=0x97 => plain(NONE, link),
            _ => Operands::default(),
        }
    }

    /// Decodes data processing with registers.
    fn registers(self) -> Operands {
        let (to, one, two) = (self.general(0), self.general(5), self.general(16));
        if !self.bit(28) {
            let sets = if self.bit(24) { self.bit(29) } else { self.field(29, 2) == 0b11 };
            return plain(one | two, if sets { to | FLAGS } else { to });
        }
        let flags = if self.bit(29) { FLAGS } else { NONE };
        match self.field(21, 4) {
            0b0000 => plain(one | two | FLAGS, to | flags),
            0b0010 => {
                let two = if self.bit(11) { NONE } else { two };
                plain(one | two | FLAGS, FLAGS)
            }
            0b0100 => plain(one | two | FLAGS, to),
            0b0110 if self.bit(30) => plain(one, to),
            0b0110 => plain(one | two, to),
            0b1000..=0b1111 => plain(one | two | self.general(10), to),
            _ => Operands::default(),
        }
    }

    /// Decodes loads and stores.
    fn memory(self) -> Operands {
        let base = self.general(5);
        match (self.field(28, 2), self.field(24, 2)) {
            (0b00, 0b00) if self.bit(26) => self.structures(),
            (0b00, 0b01) if self.bit(26) => self.structures(),
            (0b00, 0b00) => self.exclusive(),
            (0b01, 0b00) if self.field(30, 2) == 0b11 && !self.bit(26) => Operands::default(),
            (0b01, 0b00) => self.access(NONE, true, self.value(0)),
            (0b10, _) => self.pair(base),
            (0b11, 0b00) if self.bit(21) => match self.field(10, 2) {
                0b00 => self.atomic(),
                0b10 => self.single(base | self.general(16)),
                _ => self.access(base, true, self.general(0)),
            },
            (0b01 | 0b11, _) => self.single(base),
            _ => Operands::default(),
        }
    }

    fn access(self, address: Registers, is_load: bool, values: Registers) -> Operands {
        let (reads, writes) = if is_load { (NONE, values) } else { (values, NONE) };
        Operands { address, reads, writes, memory: true, ..Operands::default() }
    }

    /// Decodes accesses of two registers. STNP hints that caches should be bypassed, and counts as
    /// a non-temporal store.
    fn pair(self, base: Registers) -> Operands {
        let known = self.access(base, self.bit(22), self.value(0) | self.value(10));
        let size = if self.bit(26) { 4 << self.field(30, 2) } else { 4 << self.field(31, 1) };
        let is_stnp = self.field(23, 2) == 0 && !self.bit(22);
        if is_stnp { known.non_temporal(2 * size) } else { known }
    }

    /// Decodes accesses of one register; prefetches do not count as accesses.
    fn single(self, address: Registers) -> Operands {
        let kind = self.field(22, 2);
        let is_load = if self.bit(26) { kind & 1 == 1 } else { kind != 0 };
        if !self.bit(26) && kind == 0b10 && self.field(30, 2) == 0b11 {
            return Operands::default();
        }
        self.access(address, is_load, self.value(0))
    }

    /// Decodes accesses of one to four vectors with interleaved elements.
    fn structures(self) -> Operands {
        let count = match (self.bit(24), self.field(12, 4)) {
            (true, _) => 1 + (self.field(13, 1) << 1 | self.field(21, 1)),
            (false, 0b0000 | 0b0010) => 4,
            (false, 0b0100 | 0b0110) => 3,
            (false, 0b1000 | 0b1010) => 2,
            (false, _) => 1,
        };
        let first = self.field(0, 5);
        let vectors = (first..first + count).map(Registers::vector);
        let values = vectors.fold(NONE, |all, one| all | one);
        let known = self.access(self.general(5), self.bit(22), values);
        // A load of one element keeps the others of its register.
        let keeps = self.bit(24) && self.bit(22) && self.field(14, 2) != 0b11;
        if keeps { known.also(values, NONE) } else { known }
    }

    /// Decodes exclusive and ordered accesses, and compare-and-swap.
    fn exclusive(self) -> Operands {
        let (base, value, status) = (self.general(5), self.general(0), self.general(16));
        let is_pair = self.bit(21);
        let pair = if is_pair { self.general(10) } else { NONE };
        let atomic = |known: Operands| Operands { order: Order::Atomic, ..known };
        match (self.bit(23), is_pair, self.bit(22)) {
            // CAS; CASP has the size bits of no exclusive pair.
            (true, true, _) => atomic(self.access(base, true, status).also(value | status, NONE)),
            (false, true, _) if !self.bit(31) => {
                let next = |low| general((self.field(low, 5) + 1).min(31));
                let (old, new) = (status | next(16), value | next(0));
                atomic(self.access(base, true, old).also(old | new, NONE))
            }
            (true, false, is_load) => self.access(base, is_load, value),
            (false, _, true) => atomic(self.access(base, true, value | pair)),
            (false, _, false) => {
                Operands { writes: status, ..self.access(base, false, value | pair) }
            }
        }
    }

    /// Decodes LDADD to SWP, and LDAPR.
    fn atomic(self) -> Operands {
        let known = self.access(self.general(5), true, self.general(0));
        if self.field(12, 4) == 0b1100 {
            return known;
        }
        Operands { order: Order::Atomic, ..known.also(self.general(16), NONE) }
    }
}

#[cfg(test)]
mod tests;
