//! How values flow through a block of instructions: from which registers and loads each address
//! comes, and each register when the block ends.

use alloc::vec::Vec;
use core::ops::{BitOr, BitOrAssign};

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

    fn numbers(self) -> impl Iterator<Item = usize> {
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

    /// As one that leaves its block by what it reads or loads.
    pub fn ending(self, ends: Ends) -> Self {
        Self { ends, ..self }
    }

    /// Writing what comes from no register.
    pub fn of_nothing(self) -> Self {
        Self { reads: Registers::NONE, ..self }
    }
}

/// Where a value comes from: registers as they were when the block began, and its loads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sources {
    pub(super) registers: u64,
    /// By number of the instruction among those that access memory; the last place is that of
    /// all that come behind.
    pub(super) loads: u64,
}

impl Sources {
    fn with(self, other: Self) -> Self {
        Self { registers: self.registers | other.registers, loads: self.loads | other.loads }
    }
}

/// Loads of a block that are told apart.
pub const LOADS: usize = 64;

/// Times of up to 64 things, of which those that matter are few.
#[derive(Clone, Debug)]
pub(super) struct Late<const COUNT: usize> {
    /// A bit for each that has a time.
    which: u64,
    times: [u64; COUNT],
}

impl<const COUNT: usize> Default for Late<COUNT> {
    fn default() -> Self {
        Self { which: 0, times: [0; COUNT] }
    }
}

impl<const COUNT: usize> Late<COUNT> {
    #[inline]
    pub(super) fn clear(&mut self) {
        self.which = 0;
    }

    #[inline]
    pub(super) fn set(&mut self, at: usize, time: u64) {
        self.which |= 1 << at;
        self.times[at] = time;
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> u64 {
        if self.which >> at & 1 == 1 { self.times[at] } else { 0 }
    }

    /// Whether those in a set have times.
    #[inline]
    pub(super) fn any(&self, of: u64) -> bool {
        self.which & of != 0
    }

    /// Those in a set have no times.
    #[inline]
    pub(super) fn forget(&mut self, set: u64) {
        self.which &= !set;
    }

    /// The latest time of those in a set; 0 for none.
    #[inline]
    pub(super) fn latest(&self, of: u64) -> u64 {
        let mut left = of & self.which;
        let mut latest = 0;
        while left != 0 {
            latest = u64::max(latest, self.times[left.trailing_zeros() as usize]);
            left &= left - 1;
        }
        latest
    }

    /// Those in a set are as they are in another one.
    #[inline]
    pub(super) fn replace(&mut self, set: u64, by: &Self) {
        self.which = self.which & !set | by.which & set;
        let mut left = by.which & set;
        while left != 0 {
            let at = left.trailing_zeros() as usize;
            self.times[at] = by.times[at];
            left &= left - 1;
        }
    }
}

/// An instruction that accesses memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Accessor {
    /// Where its address comes from.
    pub address: Sources,
    /// Where what it stores comes from.
    pub data: Sources,
    /// Its place among the block's loads.
    pub load: u8,
    /// Whether it is an atomic read-modify-write: what comes behind it waits for it.
    pub atomic: bool,
    /// Bytes that it stores past the caches at a time; 0 where it does not.
    pub non_temporal_bytes: u8,
}

impl Accessor {
    /// Whether nothing comes of it but what its line takes.
    #[inline]
    pub(crate) fn is_quick(&self) -> bool {
        !self.atomic && self.non_temporal_bytes == 0
    }
}

/// A block of instructions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flow {
    /// Its instructions.
    pub instructions: u64,
    /// By position; only those that access memory say anything.
    pub accessors: Vec<Accessor>,
    /// Registers that have other values when it ends, and where those come from.
    pub results: Vec<(u8, Sources)>,
    /// A bit for each of those registers, and all places that their values come from.
    pub(super) changed: u64,
    pub(super) sources: Sources,
    /// Whether one of its instructions waits for all accesses before it.
    pub fence: bool,
    /// Whether one of them waits for the stores before it that went past the caches.
    pub drains: bool,
    /// Loads in it that are told apart.
    pub loads: usize,
    /// How its last instruction leaves it, and where what decides that comes from.
    pub ends: Ends,
    pub(super) decided_by: Sources,
}

impl Flow {
    /// The flow through instructions with these operands.
    pub fn new(block: impl IntoIterator<Item = Operands>) -> Self {
        let entry = |number: usize| Sources { registers: 1 << number, loads: 0 };
        let mut values: [Sources; REGISTERS] = core::array::from_fn(entry);
        let mut flow = Self::default();
        for operands in block {
            flow.instructions += 1;
            flow.fence |= operands.order == Order::Fence;
            flow.drains |= operands.order == Order::Drain;
            let of = |registers: Registers| {
                let each = registers.numbers().map(|number| values[number]);
                each.fold(Sources::default(), Sources::with)
            };
            let (address, mut result) = (of(operands.address), of(operands.reads));
            let load = flow.loads.min(LOADS - 1);
            if operands.memory {
                result.loads |= 1 << load;
            }
            flow.accessors.push(Accessor {
                address,
                data: result,
                load: u8::try_from(load).unwrap_or(u8::MAX),
                atomic: operands.order == Order::Atomic,
                non_temporal_bytes: operands.non_temporal_bytes,
            });
            if operands.memory {
                flow.loads = load + 1;
            }
            (flow.ends, flow.decided_by) = (operands.ends, result);
            operands.writes.numbers().for_each(|number| values[number] = result);
        }
        let changed = values.iter().enumerate().filter(|(at, value)| **value != entry(*at));
        let number = |at: usize| u8::try_from(at).unwrap_or(u8::MAX);
        flow.results = changed.map(|(at, value)| (number(at), *value)).collect();
        flow.changed = flow.results.iter().fold(0, |all, (at, _)| all | 1 << at);
        let sources = flow.results.iter().map(|(_, sources)| *sources);
        flow.sources = sources.fold(Sources::default(), Sources::with);
        flow
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::x86::decode;

    fn flow(block: &[&[u8]]) -> Flow {
        Flow::new(block.iter().map(|bytes| decode(bytes)))
    }

    const RAX: Sources = Sources { registers: 1, loads: 0 };

    #[test]
    fn a_chases_address_is_what_it_loaded_last() {
        // mov (%rax),%rax twice; dec %ecx; jnz
        let chase = flow(&[&[0x48, 0x8b, 0x00], &[0x48, 0x8b, 0x00], &[0xff, 0xc9], &[0x75, 0xf6]]);
        assert_eq!(chase.accessors[0].address, RAX);
        assert_eq!(chase.accessors[1].address, Sources { registers: 0, loads: 1 });
        let rax = chase.results.iter().find(|(register, _)| *register == 0).unwrap();
        assert_eq!(rax.1, Sources { registers: 0, loads: 2 });
    }

    #[test]
    fn a_streams_address_is_none_of_what_it_loads() {
        // add (%rax),%rdx; add $8,%rax; add (%rax),%rdx
        let stream = flow(&[&[0x48, 0x03, 0x10], &[0x48, 0x83, 0xc0, 0x08], &[0x48, 0x03, 0x10]]);
        assert_eq!(stream.accessors[0].address, RAX);
        assert_eq!(stream.accessors[2].address, RAX);
        let rdx = stream.results.iter().find(|(register, _)| *register == 2).unwrap();
        assert_eq!(rdx.1, Sources { registers: 1 << 2, loads: 3 });
    }

    #[test]
    fn a_branch_is_decided_by_what_its_flags_come_from() {
        // cmp %rax,(%rbx); jb
        let search = flow(&[&[0x48, 0x39, 0x03], &[0x72, 0xf6]]);
        assert_eq!(search.ends, Ends::Conditional);
        assert_eq!(search.decided_by, Sources { registers: 1, loads: 1 });
        // jmp *(%rax,%rcx,8)
        let table = flow(&[&[0xff, 0x24, 0xc8]]);
        assert_eq!((table.ends, table.decided_by.loads), (Ends::Indirect, 1));
    }

    #[test]
    fn more_loads_than_are_told_apart_count_as_the_last_one() {
        let loads = vec![[0x48, 0x8b, 0x00]; 100];
        let chase = Flow::new(loads.iter().map(|bytes| decode(bytes)));
        assert_eq!(chase.loads, LOADS);
        assert_eq!(chase.accessors[99].load, 63);
        assert_eq!(chase.accessors[99].address, Sources { registers: 0, loads: 1 << 63 });
    }

    #[test]
    fn the_latest_of_a_set_decides_and_those_without_a_time_do_not_count() {
        let mut late = Late::<64>::default();
        [(3, 70), (1, 50), (63, 90)].into_iter().for_each(|(at, time)| late.set(at, time));
        assert_eq!((late.latest(1 << 3 | 2), late.latest(u64::MAX), late.latest(4)), (70, 90, 0));
        let mut by = Late::default();
        by.set(3, 20);
        by.set(5, 30);
        late.replace(1 << 3 | 1 << 63, &by);
        assert_eq!([1, 3, 5, 63].map(|at| late.get(at)), [50, 20, 0, 0]);
        late.forget(2);
        assert!(late.any(1 << 3 | 4) && !late.any(2));
        late.clear();
        assert_eq!(late.latest(u64::MAX), 0);
    }
}
