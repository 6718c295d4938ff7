//! Operands of instructions, and their other properties.

use core::ops::{BitOr, BitOrAssign};

use crate::machine::Class;

/// A set of registers: 31 general ones, the flags, 32 vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Registers(u64);

/// Number of registers that are tracked.
pub const REGISTERS: usize = 64;
const GENERAL: u8 = 31;

impl Registers {
    /// No register.
    pub const NONE: Self = Self(0);
    /// The flags.
    pub const FLAGS: Self = Self(1 << GENERAL);

    /// Returns the general register of this number.
    pub const fn general(number: u8) -> Self {
        Self(1 << (number % GENERAL))
    }

    /// Returns the vector register of this number.
    pub const fn vector(number: u8) -> Self {
        Self(1 << (GENERAL + 1 + number % 32))
    }

    /// Returns the registers that are not among others.
    pub fn less(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Returns true if the flags are among them.
    pub(super) fn has_flags(self) -> bool {
        self.0 & Self::FLAGS.0 != 0
    }

    /// Returns true if any of them is a vector.
    pub(super) fn has_vectors(self) -> bool {
        self.0 >> (GENERAL + 1) != 0
    }

    /// Returns true if any of them is not a vector.
    pub(super) fn has_others(self) -> bool {
        self.0 << (u64::BITS - u32::from(GENERAL) - 1) != 0
    }

    pub(super) fn numbers(self) -> impl Iterator<Item = usize> {
        (0..REGISTERS).filter(move |number| self.0 >> number & 1 == 1)
    }
}

impl BitOr for Registers {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Registers {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

/// Ordering of an instruction relative to those around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// It runs when its operands are available.
    #[default]
    Free,
    /// An atomic read-modify-write: later instructions wait for its access to memory.
    Atomic,
    /// It waits for earlier stores past the caches.
    Drain,
    /// It waits for all earlier accesses.
    Fence,
}

/// The way in which an instruction leaves its block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ends {
    /// Falls through, jumps to a constant address, or returns.
    #[default]
    Known,
    /// Branches or not, depending on its operands.
    Conditional,
    /// Branches to an address that the instruction reads or loads.
    Indirect,
    /// Calls such an address.
    IndirectCall,
}

/// Effects of an instruction on registers and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operands {
    /// Registers of an address in memory.
    pub address: Registers,
    /// Registers that flow into the values it writes.
    pub reads: Registers,
    /// Registers that the instruction writes.
    pub writes: Registers,
    /// True if the instruction accesses memory; the loaded value flows into what it writes.
    pub memory: bool,
    /// Size of its non-temporal stores in bytes; 0 if it makes none.
    pub non_temporal_bytes: u8,
    /// Memory ordering.
    pub order: Order,
    /// Its exit from its block.
    pub ends: Ends,
    /// Timing class.
    pub class: Class,
    /// True if the instruction writes memory, given that it accesses any.
    pub stores: bool,
    /// True if the address is one register and a constant, and the data are in general registers.
    pub plain_address: bool,
    /// True if the address has a scaled register, or two registers and a constant.
    pub far_address: bool,
    /// True if the instruction uses vectors of more than 16 bytes.
    pub is_wide: bool,
    /// True if the instruction extends the sign of the loaded value.
    pub extends_sign: bool,
    /// True if the instruction zero-extends the 8 or 16 bits that it loads.
    pub extends_zeros: bool,
    /// True if its result does not depend on its operands, and needs no unit.
    pub clears: bool,
    /// True for the hint that a loop waits (PAUSE).
    pub pauses: bool,
    /// True for calls and returns.
    pub calls: bool,
    /// True for unconditional branches, and for branches backward, as loops have them.
    pub jumps: bool,
    /// Bytes of the element that the instruction moves or stores repeatedly; 0 if it does not.
    pub repeated_bytes: u8,
}

impl Operands {
    /// Adds registers that the instruction reads and writes.
    pub fn also(self, reads: Registers, writes: Registers) -> Self {
        Self { reads: self.reads | reads, writes: self.writes | writes, ..self }
    }

    /// Removes these from the registers it writes.
    pub fn without(self, registers: Registers) -> Self {
        Self { writes: self.writes.less(registers), ..self }
    }

    /// Marks it as a store of this number of bytes past the caches, if it accesses memory.
    pub fn non_temporal(self, bytes: u8) -> Self {
        Self { non_temporal_bytes: if self.memory { bytes } else { 0 }, ..self }
    }

    /// Sets whether it is an unconditional branch or one backward.
    pub fn jumping(self, jumps: bool) -> Self {
        Self { jumps, ..self }
    }

    /// Marks it as extending the sign of the loaded value, if it does.
    pub fn extending_sign(self) -> Self {
        Self { extends_sign: self.memory, ..self }
    }

    /// Marks a load as zero-extending; other instructions are unchanged.
    pub fn extending_zeros(self) -> Self {
        Self { extends_zeros: self.memory, ..self }
    }

    /// Marks it as a call or a return.
    pub fn calling(self) -> Self {
        Self { calls: true, ..self }
    }

    /// Marks it as repeated for elements of this number of bytes.
    pub fn repeating(self, repeated_bytes: u8) -> Self {
        Self { repeated_bytes, ..self }
    }

    /// Marks the way it leaves its block.
    pub fn ending(self, ends: Ends) -> Self {
        Self { ends, ..self }
    }

    /// Sets its timing class.
    pub fn taking(self, class: Class) -> Self {
        Self { class: if self.clears { Class::Move } else { class }, ..self }
    }

    /// Sets whether it writes memory, if it accesses any.
    pub fn storing(self, stores: bool) -> Self {
        Self { stores: stores && self.memory, ..self }
    }

    /// Returns the registers that hold sums of floating-point additions after this instruction,
    /// given those that did before it.
    pub(super) fn added(&self, before: Registers) -> Registers {
        let others = before.less(self.writes);
        let is_copy = self.class == Class::Move && self.reads.less(before) != self.reads;
        if self.class == Class::FpAdd || is_copy { others | self.writes } else { others }
    }

    /// Returns true if the instruction reads memory and writes the result back.
    pub(super) fn modifies(self) -> bool {
        self.stores && !matches!(self.class, Class::Move | Class::Shuffle)
    }

    /// Removes all sources of the written value, because it is a constant.
    pub fn of_nothing(self) -> Self {
        Self { reads: Registers::NONE, clears: true, ..self }
    }

    /// Returns true if the instruction writes a general register or the flags from a vector.
    pub(super) fn leaves_vectors(self) -> bool {
        !self.memory && self.reads.has_vectors() && self.writes.has_others()
    }

    /// Returns true if the instruction writes a vector from a general register.
    pub(super) fn enters_vectors(self) -> bool {
        !self.memory && self.writes.has_vectors() && self.reads.has_others()
    }

    /// Returns true if the instruction reads or writes vectors.
    pub(super) fn is_vector(self) -> bool {
        (self.reads | self.writes).has_vectors()
    }
}
