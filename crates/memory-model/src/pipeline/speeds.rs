//! Speed of a core's instructions: the time to issue a block, and latencies of results.

use alloc::vec::Vec;

use super::operands::{Ends, Operands, Order, Registers};
use super::parts::Parts;
use crate::cost::ps;
use crate::machine::{CLASSES, Class, Core, Family, Renaming};

/// Timing of a core's instructions, in ps.
#[derive(Clone, Debug)]
pub struct Speeds {
    /// Time between two instructions that nothing delays.
    each_ps: u64,
    width: u64,
    /// Latency, and time between two instructions, by class.
    latency_ps: [u64; CLASSES],
    between_ps: [u64; CLASSES],
    /// Extra time of a floating-point addition that uses no result of another addition.
    first_add_ps: u64,
    /// Extra times of a vector load over a load of a general register, of a load at an address of
    /// several parts, and of a load that extends a sign.
    vector_load_ps: u64,
    far_load_ps: u64,
    sign_ps: u64,
    /// Extra time of vector instructions that read or write general registers.
    crossing_ps: u64,
    /// Extra time of the mask of a vector of more than 16 bytes.
    wide_mask_ps: u64,
    /// Minimum time of a call or a return.
    call_ps: u64,
    /// Minimum time of a taken branch.
    taken_ps: u64,
    /// Time for which PAUSE stops the core.
    pause_ps: u64,
    /// Startup time of repeated moves and stores, and the time of 64 bytes; `None` if they are like
    /// other instructions.
    repeated_ps: Option<([u64; 2], u64)>,
    /// Slots of the reorder buffer, and the operations that fill it; `None` if each instruction takes a slot.
    slots: Option<(u64, u64)>,
    /// The family, if known. On Intel and AMD, comparisons fuse with the branches after them
    /// ("macro-fusion", "branch fusion").
    family: Option<Family>,
}

/// A block's demand on a core.
struct Counts {
    /// Number of micro-operations of each class.
    classes: [u64; CLASSES],
    /// Slots of the width.
    instructions: u64,
}

impl Speeds {
    /// Returns the speeds of a core; without a timing all instructions take the same time, and
    /// results are available at once.
    pub fn of(core: &Core) -> Self {
        let Some(timing) = &core.timing else {
            return Self {
                each_ps: ps(core.ns_per_instruction),
                width: 1,
                latency_ps: [0; CLASSES],
                between_ps: [0; CLASSES],
                first_add_ps: 0,
                vector_load_ps: 0,
                far_load_ps: 0,
                sign_ps: 0,
                crossing_ps: 0,
                wide_mask_ps: 0,
                call_ps: 0,
                taken_ps: 0,
                pause_ps: 0,
                repeated_ps: None,
                slots: None,
                family: None,
            };
        };
        let takes = |cycles: f64| ps(cycles * timing.cycle_ns);
        let (begins, bytes) = timing.family.repeated_cycles();
        let far_load_ps = takes(timing.family.address_cycles());
        Self {
            each_ps: takes(1.0),
            width: u64::from(timing.width),
            latency_ps: Class::ALL.map(|class| takes(timing.of(class).latency)),
            between_ps: Class::ALL.map(|class| takes(timing.of(class).each)),
            first_add_ps: takes(timing.family.first_add_cycles()),
            vector_load_ps: takes(timing.family.vector_load_cycles()),
            far_load_ps,
            sign_ps: if timing.family.is_zen() { takes(1.0) } else { 0 },
            crossing_ps: takes(timing.family.crossing_cycles()),
            wide_mask_ps: takes(timing.family.wide_mask_cycles()),
            call_ps: takes(timing.family.call_cycles()),
            taken_ps: takes(timing.family.taken_cycles()),
            pause_ps: takes(timing.family.pause_cycles()),
            repeated_ps: Some((begins.map(takes), takes(64.0 / bytes))),
            slots: timing.family.operations().map(|of| (core.instructions.into(), of)),
            family: Some(timing.family),
        }
    }

    /// Returns the slots of the reorder buffer that a block takes in addition to one for each instruction.
    pub(super) fn further_slots(&self, block: &[Operands]) -> u64 {
        let Some((slots, operations)) = self.slots else { return 0 };
        let of = |one: &Operands| {
            let loads = one.memory && (!one.stores || one.modifies());
            match one.class {
                // A branch is one with the comparison before it.
                Class::Branch if one.ends == Ends::Conditional => 0,
                Class::Move => u64::from(loads),
                _ => 1 + u64::from(loads),
            }
        };
        let taken = block.iter().map(of).sum::<u64>() * slots / operations;
        taken.saturating_sub(block.len() as u64)
    }

    /// Returns the latency from operands, which the block may have loaded or got from a
    /// floating-point addition, to the result. The addition of a constant starts only when the
    /// other operand is available (measured on a Granite Rapids: a counter in memory takes a cycle
    /// more than the load and the store of the same word).
    pub(super) fn latency_ps(&self, operands: &Operands, is_loaded: bool, is_added: bool) -> u64 {
        let class = operands.class;
        let is_move = matches!(class, Class::ToVector | Class::FromVector);
        let crosses = operands.enters_vectors() || operands.leaves_vectors();
        let crossing_ps = if crosses && !is_move { self.crossing_ps } else { 0 };
        let class = if is_loaded && class == Class::Constant { Class::Integer } else { class };
        let class = if class == Class::TwoFlags { Class::Select } else { class };
        let first_ps = if class == Class::FpAdd && !is_added { self.first_add_ps } else { 0 };
        let takes_mask = class == Class::FromVector && operands.is_wide;
        let mask_ps = if takes_mask { self.wide_mask_ps } else { 0 };
        self.latency_ps[class as usize] + first_ps + crossing_ps + mask_ps
    }

    /// Returns the extra latency of flags over a register: of the two micro-operations of a move by
    /// two flags on Intel, only the second reads the register (measured on an Emerald Rapids).
    pub(super) fn flags_ps(&self, class: Class) -> u64 {
        let of = |class: Class| self.latency_ps[class as usize];
        if class == Class::TwoFlags { of(class).saturating_sub(of(Class::Select)) } else { 0 }
    }

    /// Returns the extra time of a load over a load of a general register.
    pub(super) fn load_ps(&self, operands: &Operands) -> u64 {
        if operands.stores {
            return 0;
        }
        let vector_ps = if operands.writes.has_vectors() { self.vector_load_ps } else { 0 };
        let is_pair = || operands.address.numbers().count() > 1;
        let delays_pairs = self.family.is_some_and(Family::delays_pairs);
        let is_far = operands.far_address || delays_pairs && is_pair();
        let far_ps = if is_far { self.far_load_ps } else { 0 };
        vector_ps + far_ps + if operands.extends_sign { self.sign_ps } else { 0 }
    }

    /// Returns true if stores and loads at such addresses forward values at renaming. On Golden
    /// Cove, instructions that modify memory do not (measured on an Emerald Rapids: 7 cycles from
    /// one ADD to a word to the next).
    pub(super) fn renames(&self, operands: &Operands) -> bool {
        let is_plain = operands.plain_address && !operands.modifies();
        let is_move = operands.stores || operands.class == Class::Move;
        let extends = operands.extends_sign || operands.extends_zeros;
        operands.memory
            && operands.order == Order::Free
            && match self.family.map_or(Renaming::Never, Family::renaming) {
                Renaming::Never => false,
                Renaming::Plain => is_plain,
                Renaming::Any => is_move && !operands.is_vector() && !extends,
            }
    }

    /// Returns the extra time of the increment or multiplication at a position of a block over its latency:
    /// older instructions that wait for the same value take the units first.
    pub(super) fn crowding_ps(&self, block: &[Operands], at: usize) -> u64 {
        let Some(units) = self.family.and_then(Family::crowded_units) else { return 0 };
        let one = &block[at];
        if one.class == Class::Multiply {
            return older_products(block, at) * self.between_ps[Class::Multiply as usize];
        }
        let counter = one.writes.less(Registers::FLAGS);
        let is_arithmetic = |one: &Operands| {
            !one.memory
                && !one.is_vector()
                && one.class != Class::Move
                && one.writes.less(Registers::FLAGS) != Registers::NONE
        };
        let reads = |one: &Operands| one.reads.less(counter) != one.reads;
        let changes = |one: &Operands| one.writes.less(counter) != one.writes;
        let is_increment = is_arithmetic(one) && one.reads.less(Registers::FLAGS) == counter;
        if !is_increment || block.iter().filter(|other| changes(other)).count() > 1 {
            return 0;
        }
        let others = block.iter().filter(|other| is_arithmetic(other) && reads(other)).count() - 1;
        others as u64 / units * self.each_ps
    }

    /// Treats an addition of a constant that decides a branch as one instruction with the branch.
    pub(super) fn fuse(&self, block: &mut [Operands]) {
        for at in 1..block.len() {
            if block[at].ends == Ends::Conditional && block[at - 1].class == Class::Constant {
                block[at - 1].class = Class::Integer;
            }
        }
    }

    /// Returns the number of pieces in which the core fetches the code at these addresses.
    pub fn windows(&self, (first, end): (u64, u64)) -> u64 {
        let bytes = self.family.and_then(Family::window_bytes);
        bytes.map_or(1, |bytes| (end.max(first + 1) - 1) / bytes - first / bytes + 1)
    }

    /// Returns the time to issue a block's instructions, from this number of pieces of code: limited
    /// by the core's width, and for each class by its units, some of which it shares with others.
    pub(super) fn takes(&self, block: &[Operands], windows: u64) -> Parts {
        if let (Some(operands), Some(repeated_ps)) = (block.last(), self.repeated_ps)
            && operands.repeated_bytes > 0
        {
            let back_ps = self.repeated_ps(block, u64::from(operands.repeated_bytes), repeated_ps);
            return Parts {
                front_ps: back_ps,
                jumps_ps: back_ps,
                jumps: false,
                back_ps,
                stores_ps: 0,
            };
        }
        let Counts { classes: counts, instructions } = self.counts(block);
        let jumps = block.last().is_some_and(|last| last.jumps);
        let of = |class: Class| counts[class as usize] * self.between_ps[class as usize];
        let stores = [Class::Store, Class::VectorStore];
        let by_class = Class::ALL.into_iter().filter(|class| !stores.contains(class)).map(of);
        // Quotients and roots share a unit.
        let singles_ps = of(Class::SingleDivide) + of(Class::SingleRoot);
        let divided_ps = of(Class::FpDivide) + of(Class::FpRoot) + singles_ps;
        let shared =
            self.family.map_or(&[][..], Family::units).iter().map(|(groups, (many, cycles))| {
                let classes = groups.iter().copied().flatten();
                let count: u64 = classes.map(|class| counts[*class as usize]).sum();
                count * cycles * self.each_ps / many
            });
        let assigned = self.family.map_or(&[][..], Family::assigned).iter().map(|units| {
            let of = |classes: &[Class]| classes.iter().map(|class| counts[*class as usize]).sum();
            let [one, two, four]: [u64; 3] = units.map(of);
            (4 * one + two + four) * self.each_ps / 4
        });
        let calls_ps = block.last().filter(|last| last.calls).map_or(0, |_| self.call_ps);
        let entries = self.family.and_then(Family::window_instructions);
        let entries = entries.map_or(1, |each| instructions.div_ceil(each));
        let further_ps = (windows.max(entries) - 1) * self.each_ps;
        let wide_ps = instructions * self.each_ps / self.width;
        let busiest = by_class.chain(shared).chain(assigned).chain([divided_ps, calls_ps]);
        let pauses_ps = block.iter().filter(|one| one.pauses).count() as u64 * self.pause_ps;
        Parts {
            front_ps: wide_ps + pauses_ps,
            jumps_ps: wide_ps.max(self.taken_ps + further_ps) + pauses_ps,
            jumps,
            back_ps: busiest.fold(wide_ps, u64::max) + pauses_ps,
            stores_ps: stores.map(of).into_iter().max().unwrap_or(0),
        }
    }

    /// Counts the demand of a block on the core's width and units.
    fn counts(&self, block: &[Operands]) -> Counts {
        let mut counts = [0; CLASSES];
        let (mut fused, mut without_unit, mut added) = (0, 0, 0);
        let (mut compares, mut computes) = (false, false);
        let on_branch_unit = self.family.is_some_and(Family::has_branch_unit);
        let only_compares = self.family.is_some_and(Family::fuses_comparisons_only);
        let halves = self.family.is_some_and(Family::halves_vectors);
        let changes_by_one = self.family.is_some_and(Family::changes_by_one_access);
        for operands in block {
            let halves = u64::from(halves && operands.is_wide);
            counts[operands.class as usize] += 1 + halves;
            added += halves;
            // Each of the two micro-operations needs a unit.
            if self.flags_ps(operands.class) > 0 {
                counts[operands.class as usize] += 1;
                added += 1;
            }
            let modifies = operands.modifies();
            let is_vector = u64::from(operands.is_vector());
            if operands.stores {
                counts[Class::Store as usize] += 1;
                counts[Class::VectorStore as usize] += is_vector + halves;
            }
            if operands.memory && (!operands.stores || modifies && !changes_by_one) {
                counts[Class::Load as usize] += 1;
                counts[Class::VectorLoad as usize] += is_vector + halves;
            }
            // The class of a plain move already counts its crossing.
            if self.crossing_ps > 0 && operands.class != Class::ToVector {
                counts[Class::ToVector as usize] += u64::from(operands.enters_vectors());
            }
            if self.crossing_ps > 0 && operands.class != Class::FromVector {
                counts[Class::FromVector as usize] += u64::from(operands.leaves_vectors());
            }
            if modifies && self.family.is_some_and(Family::splits_changes) {
                added += if operands.plain_address { 1 } else { 2 };
            }
            let is_fused = self.family.is_some() && compares && operands.ends == Ends::Conditional;
            fused += u64::from(is_fused);
            without_unit += u64::from(is_fused && !(computes && on_branch_unit));
            let result = operands.writes.less(Registers::FLAGS);
            computes = result != Registers::NONE;
            compares = operands.class == Class::Integer
                && result != operands.writes
                && (!computes || !only_compares);
        }
        if block.last().is_some_and(|last| last.jumps) {
            counts[Class::Branch as usize] += self.family.map_or(0, Family::lost_slots);
        }
        counts[Class::Integer as usize] -= without_unit.min(counts[Class::Integer as usize]);
        Counts { classes: counts, instructions: block.len() as u64 + added - fused }
    }

    /// Returns the time to issue a block that ends with repeated elements of this number of bytes:
    /// QEMU has one block for the first element, and another, executed repeatedly, for each of the
    /// others.
    fn repeated_ps(
        &self,
        block: &[Operands],
        bytes: u64,
        (begins_ps, line_ps): ([u64; 2], u64),
    ) -> u64 {
        let [before @ .., last] = block else { return 0 };
        // A move has two addresses.
        let begins_ps = begins_ps[usize::from(last.reads != Registers::NONE)];
        let before_ps =
            if before.is_empty() { 0 } else { begins_ps + self.takes(before, 1).all_ps() };
        before_ps + (bytes * line_ps / 64).max(1)
    }
}

/// Returns the number of multiplications of a loop's block that wait for the same value as the one at a
/// position, and are older: they read a register, or a copy of it, after it was last written.
fn older_products(block: &[Operands], at: usize) -> u64 {
    let reads = block[at].reads.less(Registers::FLAGS);
    let older = (1..block.len()).map(|back| (at + block.len() - back) % block.len());
    let since: Vec<usize> =
        older.take_while(|&other| block[other].writes.less(reads) == block[other].writes).collect();
    let is_known =
        since.len() + 1 < block.len() || block[at].writes.less(reads) != block[at].writes;
    if !is_known || !block.last().is_some_and(|last| last.jumps) {
        return 0;
    }
    let (mut same, mut products) = (reads, 0);
    for other in since.into_iter().rev().map(|other| &block[other]) {
        let uses = other.reads.less(same) != other.reads;
        products += u64::from(uses && other.class == Class::Multiply);
        let is_copy = uses && other.class == Class::Move && !other.memory;
        same = if is_copy { same | other.writes } else { same.less(other.writes) };
    }
    products
}

#[cfg(test)]
mod tests;
