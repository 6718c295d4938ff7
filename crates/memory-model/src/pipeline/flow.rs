//! Flow of values through a block of instructions: the registers and loads from which each address
//! comes, and each register at the end of the block.

use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use super::operands::{Ends, Operands, Order, REGISTERS, Registers};
use super::parts::Parts;
use super::schedulers::Pool;
use super::speeds::Speeds;
use super::value::{LOADS, Value};
use crate::machine::Class;

/// An instruction that accesses memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Accessor {
    /// The time at which the access's address is known.
    pub address: Value,
    /// The time at which the data that the access stores are known.
    pub data: Value,
    /// Time to issue the instructions after the access.
    pub behind_ps: u64,
    /// Index among the block's loads.
    pub load: u8,
    /// True if its store forwards values at renaming, where its load receives them.
    pub renames: bool,
    /// True if it moves or stores elements repeatedly.
    pub repeated: bool,
    /// True for an atomic read-modify-write: later instructions wait for it.
    pub atomic: bool,
    /// Size of the access's non-temporal stores in bytes; 0 if it makes none.
    pub non_temporal_bytes: u8,
}

impl Accessor {
    /// Returns true if the access's only effect is the time of its line.
    #[inline]
    pub(crate) fn is_quick(&self) -> bool {
        !self.atomic && self.non_temporal_bytes == 0
    }
}

/// Instructions of a block that wait for the same registers and loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Waiting {
    pub pool: Pool,
    pub count: u64,
    /// The operands of the last of these instructions.
    pub value: Value,
}

/// Maximum number of groups of a block's instructions, by the values they wait for.
const GROUPS: usize = 16;

/// A block of instructions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Number of instructions.
    pub instructions: u64,
    /// Slots of the reorder buffer that it takes in addition to one for each instruction.
    pub(super) further_slots: u64,
    /// Time to issue all instructions.
    pub takes_ps: u64,
    /// Time that the instructions take in each part of the core.
    pub(super) parts: Parts,
    /// By position; empty for instructions that do not access memory.
    pub accessors: Vec<Accessor>,
    /// Registers that the block changes, and the times at which they are known.
    pub results: Vec<(u8, Value)>,
    /// The results that are still unknown at the end of the block even if nothing is late, and the
    /// delay of each.
    pub(super) tails: Vec<(u8, u64)>,
    /// A bit for each register that the block changes, and for all registers and loads that the
    /// values come from.
    pub(super) changed: u64,
    pub(super) registers: u64,
    pub(super) loaded: u64,
    /// Instructions that wait in schedulers while their operands are late.
    pub(super) waiting: Vec<Waiting>,
    /// True if an instruction waits for all earlier accesses.
    pub fence: bool,
    /// True if an instruction waits for earlier stores past the caches.
    pub drains: bool,
    /// Number of loads that are tracked separately.
    pub loads: usize,
    /// The way in which the last instruction leaves the block, and the time at which it is decided.
    pub ends: Ends,
    pub(super) decided: Value,
}

impl Hash for Flow {
    /// Hashes a part that few blocks share, because the whole is many times longer than the block's
    /// code.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.instructions, self.takes_ps, self.changed, self.registers, self.loaded).hash(state);
        (self.tails.len(), self.waiting.len(), self.decided.least_ps()).hash(state);
    }
}

impl Flow {
    /// Analyses instructions with these operands on a core of these speeds.
    pub fn new(block: impl IntoIterator<Item = Operands>, speeds: &Speeds) -> Self {
        Self::at(block, (0, 1), speeds)
    }

    /// Analyses instructions with these operands at addresses from the first up to, but not
    /// including, the second.
    pub fn at(
        block: impl IntoIterator<Item = Operands>,
        addresses: (u64, u64),
        speeds: &Speeds,
    ) -> Self {
        let mut block: Vec<Operands> = block.into_iter().collect();
        speeds.fuse(&mut block);
        let parts = speeds.takes(&block, speeds.windows(addresses));
        let takes_ps = parts.all_ps();
        let instructions = block.len() as u64;
        let further_slots = speeds.further_slots(&block);
        let entry = |number: usize| Value::of_register(number);
        let mut values: [Value; REGISTERS] = core::array::from_fn(entry);
        let mut flow = Self { instructions, further_slots, takes_ps, parts, ..Self::default() };
        // The values of registers at the start of a block are assumed to come from the block
        // itself, as in a loop.
        let mut added = block.iter().fold(Registers::NONE, |added, one| one.added(added));
        for (at, operands) in block.iter().enumerate() {
            let crowding_ps = speeds.crowding_ps(&block, at);
            flow.add(operands, &mut values, (at as u64, added, speeds), crowding_ps);
            added = operands.added(added);
        }
        flow.settle(values);
        flow
    }

    /// Returns a bit for each register that it changes.
    pub(crate) fn changes(&self) -> u64 {
        self.changed
    }

    /// Adds the instruction at a position.
    fn add(
        &mut self,
        operands: &Operands,
        values: &mut [Value; REGISTERS],
        (at, added, speeds): (u64, Registers, &Speeds),
        crowding_ps: u64,
    ) {
        self.fence |= operands.order == Order::Fence;
        self.drains |= operands.order == Order::Drain;
        let up_ps = self.takes_ps * at / self.instructions;
        let of = |registers: Registers| {
            let each = registers.numbers().map(|number| &values[number]);
            each.fold(Value::known(up_ps), |mut all, one| {
                all.join(one);
                all
            })
        };
        let (address, mut result) = (of(operands.address), of(operands.reads));
        let flags_ps = speeds.flags_ps(operands.class);
        if flags_ps > 0 && operands.reads.has_flags() {
            let mut flags = of(Registers::FLAGS);
            flags.delay(flags_ps);
            result.join(&flags);
        }
        let is_loaded = result.loads() != 0;
        let load = self.loads.min(LOADS - 1);
        if operands.memory {
            let mut loaded = Value::of_load(load);
            loaded.delay(speeds.load_ps(operands));
            result.join(&loaded);
        }
        if operands.memory && (!operands.stores || operands.modifies()) {
            self.waits(Pool::Load, &address);
        }
        // Moves are executed at renaming, and a branch is fused with the instruction that decides
        // it.
        if !matches!(operands.class, Class::Move | Class::Branch) {
            let pool = if operands.is_vector() { Pool::Vector } else { Pool::Integer };
            self.waits(pool, &result);
        }
        let is_added = operands.reads.less(added) != operands.reads;
        result.delay(speeds.latency_ps(operands, is_loaded, is_added) + crowding_ps);
        let behind_ps = self.takes_ps * (self.instructions - at - 1) / self.instructions;
        let data = if operands.memory { result } else { Value::default() };
        self.accessors.push(Accessor {
            address,
            data,
            behind_ps,
            load: u8::try_from(load).unwrap_or(u8::MAX),
            renames: speeds.renames(operands),
            repeated: operands.repeated_bytes > 0,
            atomic: operands.order == Order::Atomic,
            non_temporal_bytes: operands.non_temporal_bytes,
        });
        if operands.memory {
            self.loads = load + 1;
        }
        operands.writes.numbers().for_each(|number| values[number] = result);
        (self.ends, self.decided) = (operands.ends, result);
    }

    /// Adds an instruction that waits for a value.
    fn waits(&mut self, pool: Pool, value: &Value) {
        if value.registers() == 0 && value.loads() == 0 {
            return;
        }
        let is_full = self.waiting.len() >= GROUPS;
        let same = |one: &&mut Waiting| {
            let of = (one.value.registers(), one.value.loads());
            one.pool == pool && (is_full || of == (value.registers(), value.loads()))
        };
        match self.waiting.iter_mut().rev().find(same) {
            Some(one) => (one.count, one.value) = (one.count + 1, *value),
            None => self.waiting.push(Waiting { pool, count: 1, value: *value }),
        }
    }

    /// Determines the registers at the end of the block.
    fn settle(&mut self, values: [Value; REGISTERS]) {
        for (number, value) in (0_u8..).zip(values) {
            if value == Value::of_register(usize::from(number)) {
                continue;
            }
            self.changed |= 1 << number;
            self.registers |= value.registers();
            self.loaded |= value.loads();
            if value.least_ps() > self.takes_ps {
                self.tails.push((number, value.least_ps()));
            }
            self.results.push((number, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Core, Family};
    use crate::pipeline::x86::decode;

    fn flow(block: &[&[u8]]) -> Flow {
        Flow::new(block.iter().map(|bytes| decode(bytes)), &Speeds::of(&Core::TYPICAL))
    }

    /// Returns the registers and loads that a value comes from.
    fn of(value: &Value) -> (u64, u64) {
        (value.registers(), value.loads())
    }

    fn result(flow: &Flow, register: u8) -> (u64, u64) {
        flow.results
            .iter()
            .find(|(number, _)| *number == register)
            .map(|(_, value)| of(value))
            .unwrap()
    }

    #[test]
    fn a_chases_address_depends_on_its_last_load() {
        // mov (%rax),%rax twice; dec %ecx; jnz
        let chase = flow(&[&[0x48, 0x8b, 0x00], &[0x48, 0x8b, 0x00], &[0xff, 0xc9], &[0x75, 0xf6]]);
        assert_eq!(of(&chase.accessors[0].address), (1, 0));
        assert_eq!(of(&chase.accessors[1].address), (0, 1));
        assert_eq!(result(&chase, 0), (0, 2));
    }

    #[test]
    fn a_streams_address_does_not_depend_on_its_loads() {
        // add (%rax),%rdx; add $8,%rax; add (%rax),%rdx
        let stream = flow(&[&[0x48, 0x03, 0x10], &[0x48, 0x83, 0xc0, 0x08], &[0x48, 0x03, 0x10]]);
        assert_eq!(of(&stream.accessors[0].address), (1, 0));
        assert_eq!(of(&stream.accessors[2].address), (1, 0));
        assert_eq!(result(&stream, 2), (1 << 2, 3));
    }

    #[test]
    fn a_branch_depends_on_the_sources_of_its_flags() {
        // cmp %rax,(%rbx); jb
        let search = flow(&[&[0x48, 0x39, 0x03], &[0x72, 0xf6]]);
        assert_eq!(search.ends, Ends::Conditional);
        assert_eq!(of(&search.decided), (1, 1));
        // jmp *(%rax,%rcx,8)
        let table = flow(&[&[0xff, 0x24, 0xc8]]);
        assert_eq!((table.ends, table.decided.loads()), (Ends::Indirect, 1));
    }

    #[test]
    fn loads_beyond_the_last_distinguished_one_count_as_that_one() {
        let loads = vec![[0x48, 0x8b, 0x00]; 100];
        let chase = Flow::new(loads.iter().map(|bytes| decode(bytes)), &Speeds::of(&Core::TYPICAL));
        assert_eq!(chase.loads, LOADS);
        assert_eq!(chase.accessors[99].load, 63);
        assert_eq!(of(&chase.accessors[99].address), (0, 1 << 63));
    }

    #[test]
    fn a_block_takes_the_time_of_its_width_or_busiest_unit_and_leaves_unknown_latencies_open() {
        let timing = Family::GoldenCove.timing(0.3);
        let speeds = Speeds::of(&Core { timing: Some(timing), ..Core::TYPICAL });
        let of = |block: &[&[u8]]| Flow::new(block.iter().map(|bytes| decode(bytes)), &speeds);
        let add: &[u8] = &[0x48, 0x01, 0xd8];
        let constant: &[u8] = &[0x48, 0x83, 0xc0, 0x08];
        let move_: &[u8] = &[0x48, 0x89, 0xd8];
        // Twelve moves at six a cycle, six additions at five.
        assert_eq!([of(&[move_; 12]), of(&[add; 5])].map(|flow| flow.takes_ps), [600, 300]);
        // A comparison and its branch are one instruction: cmp; jb
        assert_eq!(of(&[&[0x48, 0x39, 0xd8], &[0x72, 0x05]]).takes_ps, 150);
        // An iteration takes at least one cycle.
        assert_eq!(of(&[&[0x48, 0x39, 0xd8], &[0x72, 0xfb]]).takes_ps, 300);
        // Five additions to one register, one after the other.
        assert!(of(&[add; 5]).tails.contains(&(0, 1500)), "{:?}", of(&[add; 5]).tails);
        assert_eq!(of(&[move_; 12]).tails, []);
        // Constants are added when registers are renamed, unless a branch is decided by the sum.
        assert_eq!(of(&[constant; 5]).tails, []);
        assert!(of(&[constant, &[0x75, 0x06]]).tails.contains(&(0, 300)), "sub and jne are one");
        // Six loads, three at a time; shifts and branches, two at a time: shl $3,%rax
        let (load, shift): (&[u8], &[u8]) = (&[0x48, 0x8b, 0x03], &[0x48, 0xc1, 0xe0, 3]);
        assert_eq!([of(&[load; 6]), of(&[shift; 3])].map(|flow| flow.takes_ps), [600, 450]);
        // mulsd %xmm1,%xmm0; divsd %xmm1,%xmm2
        let divide = of(&[&[0xf2, 0x0f, 0x59, 0xc1], &[0xf2, 0x0f, 0x5e, 0xd1]]);
        // The product is known when the division's unit is free, the quotient ten and a half cycles
        // later.
        assert_eq!((divide.takes_ps, &divide.tails[..]), (1200, &[(34, 4800)][..]));
    }

    #[test]
    fn sums_after_sums_shared_units_and_pieces_of_code_take_their_own_time() {
        let timing = Family::GoldenCove.timing(0.3);
        let speeds = Speeds::of(&Core { timing: Some(timing), ..Core::TYPICAL });
        let at = |block: &[&[u8]], addresses| {
            Flow::at(block.iter().map(|bytes| decode(bytes)), addresses, &speeds)
        };
        let of = |block: &[&[u8]]| at(block, (0, 1));
        // addsd %xmm1,%xmm0 and mulsd %xmm1,%xmm0: two cycles after a sum, three after a product.
        let (add, multiply): (&[u8], &[u8]) =
            (&[0xf2, 0x0f, 0x58, 0xc1], &[0xf2, 0x0f, 0x59, 0xc1]);
        assert_eq!(of(&[add; 5]).tails, [(32, 3000)]);
        assert_eq!(of(&[add, multiply]).tails, [(32, 2100)]);
        // divsd %xmm1,%xmm2; sqrtsd %xmm1,%xmm3
        let divided = of(&[&[0xf2, 0x0f, 0x5e, 0xd1], &[0xf2, 0x0f, 0x51, 0xd9]]);
        assert_eq!(divided.takes_ps, 3000, "one unit");
        // cmova %rbx,%rax is two micro-operations on two units, and waits a cycle for the register.
        let (move_, copy): (&[u8], &[u8]) = (&[0x48, 0x0f, 0x47, 0xc3], &[0x48, 0x89, 0xd8]);
        assert_eq!(of(&[move_; 6]).takes_ps, 1800);
        assert_eq!(of(&[copy; 12]).takes_ps, 600);
        // A loop of cmp and jb in one piece of 64 bytes, and in two.
        let ends: [&[u8]; 2] = [&[0x48, 0x39, 0xd8], &[0x72, 0xfb]];
        assert_eq!([(64, 69), (60, 65)].map(|addresses| at(&ends, addresses).takes_ps), [300, 600]);
        // mov %rax,(%rbx) forwards its value when registers are renamed; add %rax,(%rbx) does not.
        let renames = |code: &[u8]| of(&[code]).accessors[0].renames;
        assert!(renames(&[0x48, 0x89, 0x03]) && !renames(&[0x48, 0x01, 0x03]));
    }

    #[test]
    fn zen_assigns_instructions_to_units_before_it_knows_when_they_run() {
        let timing = Family::Zen3.timing(0.8);
        let speeds = Speeds::of(&Core { timing: Some(timing), ..Core::TYPICAL });
        let of =
            |block: &[&[u8]]| Flow::new(block.iter().map(|bytes| decode(bytes)), &speeds).takes_ps;
        // imul $3,%rax,%rdx and lea 1(%rax),%rcx
        let (multiply, add): (&[u8], &[u8]) = (&[0x48, 0x6b, 0xd0, 3], &[0x48, 0x8d, 0x48, 1]);
        assert_eq!(of(&[add; 8]), 1600);
        assert_eq!(of(&[multiply, multiply, add, add, add, add, add, add]), 2800);
        // movd %eax,%xmm0 and cmovb %rcx,%rax: on one unit, and on that one or another.
        let (to, select): (&[u8], &[u8]) = (&[0x66, 0x0f, 0x6e, 0xc0], &[0x48, 0x0f, 0x42, 0xc1]);
        assert_eq!(of(&[to, to, to, to, select, select, select, select]), 4000);
    }

    #[test]
    fn zen_takes_its_own_time_for_addresses_crossings_and_values_from_stores() {
        let timing = Family::Zen3.timing(0.1);
        let speeds = Speeds::of(&Core { timing: Some(timing), ..Core::TYPICAL });
        let of = |block: &[&[u8]]| Flow::new(block.iter().map(|bytes| decode(bytes)), &speeds);
        // lea (%rax,%rax,4),%rax and lea 8(%rax,%rax),%rax
        let [scaled, parts]: [&[u8]; 2] = [&[0x48, 0x8d, 0x04, 0x80], &[0x48, 0x8d, 0x44, 0x00, 8]];
        assert_eq!([scaled, parts].map(|code| of(&[code; 8]).tails[0].1), [800, 1600]);
        // cvtsi2sd %rax,%xmm0 and cvttsd2si %xmm0,%rax; movq %rax,%xmm0 and movq %xmm0,%rax
        let [to, from]: [&[u8]; 2] =
            [&[0xf2, 0x48, 0x0f, 0x2a, 0xc0], &[0xf2, 0x48, 0x0f, 0x2c, 0xc0]];
        assert!(of(&[to, from]).tails.contains(&(0, 1200)), "{:?}", of(&[to, from]).tails);
        let [to, from]: [&[u8]; 2] =
            [&[0x66, 0x48, 0x0f, 0x6e, 0xc0], &[0x66, 0x48, 0x0f, 0x7e, 0xc0]];
        assert!(of(&[to, from]).tails.contains(&(0, 600)), "{:?}", of(&[to, from]).tails);
        assert_eq!(of(&[to; 6]).takes_ps, 600, "one a cycle");
        // movss (%rax),%xmm0 twice a cycle, and movss %xmm0,(%rax) once.
        let [load, store]: [&[u8]; 2] = [&[0xf3, 0x0f, 0x10, 0x00], &[0xf3, 0x0f, 0x11, 0x00]];
        assert_eq!([load, store].map(|code| of(&[code; 6]).takes_ps), [300, 600]);
        // mov %rax,(%rbx,%rcx,8) and add %rax,(%rbx) forward at renaming; so does a load by mov, but
        // none by add.
        let renames = |code: &[u8]| of(&[code]).accessors[0].renames;
        assert!(renames(&[0x48, 0x89, 0x04, 0xcb]) && renames(&[0x48, 0x01, 0x03]));
        assert!(renames(&[0x48, 0x8b, 0x03]) && !renames(&[0x48, 0x03, 0x03]) && !renames(load));
        assert!(!renames(&[0xf0, 0x48, 0x01, 0x03]), "lock add %rax,(%rbx)");
        assert!(!renames(&[0x0f, 0xb6, 0x03]), "movzbl (%rbx),%eax");
        // mov (%rbx,%rcx,8),%rax takes a cycle more than mov (%rbx),%rax, movslq (%rbx),%rax too.
        let later = |code: &[u8]| of(&[code]).results[0].1.least_ps();
        let codes: [&[u8]; 3] =
            [&[0x48, 0x8b, 0x03], &[0x48, 0x8b, 0x04, 0xcb], &[0x48, 0x63, 0x03]];
        assert_eq!(codes.map(later), [0, 100, 100]);
    }
}
