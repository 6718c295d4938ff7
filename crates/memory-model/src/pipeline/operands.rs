//! What an instruction reads, writes and takes.

use core::ops::{BitOr, BitOrAssign};

use crate::machine::Class;

/// A set of registers: 31 general ones, the flags, 32 vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Registers(u64);

/// Registers that values are followed through.
pub const REGISTERS: usize = 64;
const GENERAL: u8 = 31;

impl Registers {
    /// No register.
    pub const NONE: Self = Self(0);
    /// The flags.
    pub const FLAGS: Self = Self(1 << GENERAL);

    /// The general register of this number.
    pub const fn general(number: u8) -> Self {
        Self(1 << (number % GENERAL))
    }

    /// The vector register of this number.
    pub const fn vector(number: u8) -> Self {
        Self(1 << (GENERAL + 1 + number % 32))
    }

    /// Those that are not among others.
    pub fn less(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Whether any of them is a vector.
    pub(super) fn has_vectors(self) -> bool {
        self.0 >> (GENERAL + 1) != 0
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

/// How an instruction stands to those around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// It runs when its operands are there.
    #[default]
    Free,
    /// An atomic read-modify-write: what comes behind it waits for its access to memory.
    Atomic,
    /// It waits for the stores before it that went past the caches.
    Drain,
    /// It waits for all accesses before it.
    Fence,
}

/// How an instruction leaves its block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ends {
    /// It goes on with the next one, or where it says itself, or returns.
    #[default]
    Known,
    /// It branches or does not, by what it reads.
    Conditional,
    /// It branches to where what it reads or loads says.
    Indirect,
}

/// What an instruction does to registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operands {
    /// Those that make up an address in memory.
    pub address: Registers,
    /// Those whose values flow into what it writes.
    pub reads: Registers,
    /// Those that it writes.
    pub writes: Registers,
    /// Whether it accesses memory; what it loads flows into what it writes.
    pub memory: bool,
    /// Bytes that it stores past the caches at a time; 0 where it does not.
    pub non_temporal_bytes: u8,
    /// Its order.
    pub order: Order,
    /// How it leaves its block.
    pub ends: Ends,
    /// What it takes.
    pub class: Class,
    /// Whether it writes memory, if it accesses any.
    pub stores: bool,
    /// Whether its address is one register and a constant, and what it moves is in general registers.
    pub plain_address: bool,
    /// Whether it calls or returns.
    pub calls: bool,
    /// Whether it branches backward, which loops do, or always.
    pub jumps: bool,
    /// Bytes of an element that it moves or stores again and again; 0 where it does not.
    pub repeated_bytes: u8,
}

impl Operands {
    /// With more registers read and written.
    pub fn also(self, reads: Registers, writes: Registers) -> Self {
        Self { reads: self.reads | reads, writes: self.writes | writes, ..self }
    }

    /// Without writing these.
    pub fn without(self, registers: Registers) -> Self {
        Self { writes: self.writes.less(registers), ..self }
    }

    /// As a store of so many bytes past the caches, if it accesses memory.
    pub fn non_temporal(self, bytes: u8) -> Self {
        Self { non_temporal_bytes: if self.memory { bytes } else { 0 }, ..self }
    }

    /// As one that branches backward or always.
    pub fn jumping(self, jumps: bool) -> Self {
        Self { jumps, ..self }
    }

    /// As a call or a return.
    pub fn calling(self) -> Self {
        Self { calls: true, ..self }
    }

    /// As one that moves elements of so many bytes again and again.
    pub fn repeating(self, repeated_bytes: u8) -> Self {
        Self { repeated_bytes, ..self }
    }

    /// As one that leaves its block by what it reads or loads.
    pub fn ending(self, ends: Ends) -> Self {
        Self { ends, ..self }
    }

    /// As one that takes what those of a class do.
    pub fn taking(self, class: Class) -> Self {
        Self { class, ..self }
    }

    /// As one that writes memory, if it accesses any.
    pub fn storing(self, stores: bool) -> Self {
        Self { stores: stores && self.memory, ..self }
    }

    /// Whether it changes in memory what it reads there.
    pub(super) fn modifies(self) -> bool {
        self.stores && !matches!(self.class, Class::Move | Class::Shuffle)
    }

    /// Writing what comes from no register.
    pub fn of_nothing(self) -> Self {
        Self { reads: Registers::NONE, ..self }
    }
}
