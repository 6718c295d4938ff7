//! Speed of a core's instructions: the time to issue a block, and latencies of results.

use super::operands::{Ends, Operands, Registers};
use crate::cost::ps;
use crate::machine::{CLASSES, Class, Core, Family};

/// Startup cycles of MOVS and STOS with REP, and bytes per cycle after that: measured on Emerald and
/// Granite Rapids, for 256 bytes to 16 KiB in the L1; assumed for other families.
const REPEATED: (f64, f64) = (20.0, 64.0);

/// Cycles of a call and of a return (A. Fog, "Instruction tables"; 3.6 for both, measured on a
/// Granite Rapids in loops long enough that the core does not cache them; assumed for other
/// families).
const CALL_CYCLES: f64 = 1.8;

/// Timing of a core's instructions, in ps.
#[derive(Clone, Debug)]
pub struct Speeds {
    /// Time between two instructions that nothing delays.
    each_ps: u64,
    width: u64,
    /// Latency, and time between two instructions, by class.
    latency_ps: [u64; CLASSES],
    between_ps: [u64; CLASSES],
    /// Extra time of a floating-point addition that gets nothing from another one.
    first_add_ps: u64,
    /// Extra time of a vector load over a load of a general register.
    vector_load_ps: u64,
    /// Minimum time of a call or a return.
    call_ps: u64,
    /// Minimum time of a taken branch.
    taken_ps: u64,
    /// Startup time of repeated elements, and the time of 64 bytes; `None` if they are like other
    /// instructions.
    repeated_ps: Option<(u64, u64)>,
    /// The family, if known. On Intel and AMD, comparisons fuse with the branches after them
    /// ("macro-fusion", "branch fusion").
    family: Option<Family>,
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
                call_ps: 0,
                taken_ps: 0,
                repeated_ps: None,
                family: None,
            };
        };
        let takes = |cycles: f64| ps(cycles * timing.cycle_ns);
        let (begins, bytes) = REPEATED;
        Self {
            each_ps: takes(1.0),
            width: u64::from(timing.width),
            latency_ps: Class::ALL.map(|class| takes(timing.of(class).latency)),
            between_ps: Class::ALL.map(|class| takes(timing.of(class).each)),
            first_add_ps: takes(timing.family.first_add_cycles()),
            vector_load_ps: takes(timing.family.vector_load_cycles()),
            call_ps: takes(CALL_CYCLES),
            taken_ps: takes(1.0),
            repeated_ps: Some((takes(begins), takes(64.0 / bytes))),
            family: Some(timing.family),
        }
    }

    /// Returns the latency from operands, which the block may have loaded or got from a
    /// floating-point addition, to the result. A constant is added only once the other operand is
    /// there (measured on a Granite Rapids: a counter in memory takes a cycle more than the load and
    /// the store of the same word).
    pub(super) fn latency_ps(&self, class: Class, is_loaded: bool, is_added: bool) -> u64 {
        let class = if is_loaded && class == Class::Constant { Class::Integer } else { class };
        let class = if class == Class::TwoFlags { Class::Shift } else { class };
        let first_ps = if class == Class::FpAdd && !is_added { self.first_add_ps } else { 0 };
        self.latency_ps[class as usize] + first_ps
    }

    /// Returns the time that flags take longer than a register to the result: of the two
    /// micro-operations of a move by two flags on Intel, the second alone reads the register
    /// (measured on an Emerald Rapids).
    pub(super) fn flags_ps(&self, class: Class) -> u64 {
        let of = |class: Class| self.latency_ps[class as usize];
        if class == Class::TwoFlags { of(class).saturating_sub(of(Class::Shift)) } else { 0 }
    }

    /// Returns the extra time of a load over one of a general register.
    pub(super) fn load_ps(&self, operands: &Operands) -> u64 {
        let is_longer = !operands.stores && operands.writes.has_vectors();
        if is_longer { self.vector_load_ps } else { 0 }
    }

    /// Returns true if stores and loads at such addresses forward values at renaming. What modifies
    /// memory does not (measured on an Emerald Rapids: 7 cycles from one ADD to a word to the next).
    pub(super) fn renames(&self, operands: &Operands) -> bool {
        let is_plain = operands.memory && operands.plain_address && !operands.modifies();
        is_plain && self.family.is_some_and(Family::renames_memory)
    }

    /// Treats an addition of a constant that decides a branch as one instruction with the branch.
    pub(super) fn fuse(&self, block: &mut [Operands]) {
        for at in 1..block.len() {
            if block[at].ends == Ends::Conditional && block[at - 1].class == Class::Constant {
                block[at - 1].class = Class::Integer;
            }
        }
    }

    /// Returns the number of pieces in which the core gets the code at these addresses.
    pub fn windows(&self, (first, end): (u64, u64)) -> u64 {
        let bytes = self.family.and_then(Family::window_bytes);
        bytes.map_or(1, |bytes| (end.max(first + 1) - 1) / bytes - first / bytes + 1)
    }

    /// Returns the time to issue a block's instructions, from this number of pieces of code: limited
    /// by the core's width, and for each class by its units, some of which it shares with others.
    pub(super) fn takes_ps(&self, block: &[Operands], windows: u64) -> u64 {
        if let (Some(operands), Some(repeated_ps)) = (block.last(), self.repeated_ps)
            && operands.repeated_bytes > 0
        {
            return self.repeated_ps(block, u64::from(operands.repeated_bytes), repeated_ps);
        }
        let mut counts = [0; CLASSES];
        let (mut fused, mut added) = (0, 0);
        let mut compares = false;
        for operands in block {
            counts[operands.class as usize] += 1;
            // Each of its two micro-operations needs a unit.
            if self.flags_ps(operands.class) > 0 {
                counts[operands.class as usize] += 1;
                added += 1;
            }
            let modifies = operands.modifies();
            if operands.stores {
                counts[Class::Store as usize] += 1;
            }
            if operands.memory && (!operands.stores || modifies) {
                counts[Class::Load as usize] += 1;
            }
            if modifies && self.family.is_some_and(Family::splits_changes) {
                added += if operands.plain_address { 1 } else { 2 };
            }
            fused +=
                u64::from(self.family.is_some() && compares && operands.ends == Ends::Conditional);
            compares = operands.class == Class::Integer
                && operands.writes.less(Registers::FLAGS) != operands.writes;
        }
        let instructions = block.len() as u64 + added - fused;
        // Instructions that are fused with a branch need no other unit.
        counts[Class::Integer as usize] -= fused.min(counts[Class::Integer as usize]);
        let by_class = counts.iter().zip(&self.between_ps).map(|(count, ps)| count * ps);
        // Quotients and roots share a unit.
        let of = |class: Class| counts[class as usize] * self.between_ps[class as usize];
        let divided_ps = of(Class::FpDivide) + of(Class::FpRoot);
        let shared = self.family.map_or(&[][..], Family::units).iter().map(|(groups, units)| {
            let classes = groups.iter().copied().flatten();
            let count: u64 = classes.map(|class| counts[*class as usize]).sum();
            count * self.each_ps / u64::from(*units)
        });
        let calls_ps = block.last().filter(|last| last.calls).map_or(0, |_| self.call_ps);
        // No core fetches past a taken branch in the same cycle.
        let taken_ps =
            block.last().filter(|last| last.jumps).map_or(0, |_| self.taken_ps * windows);
        let busiest_ps = by_class.chain(shared).chain([divided_ps, calls_ps, taken_ps]).max();
        (instructions * self.each_ps / self.width).max(busiest_ps.unwrap_or(0))
    }

    /// Returns the time to issue a block that ends with repeated elements of this number of bytes:
    /// QEMU has one block for the first element, and another, executed repeatedly, for each of the
    /// others.
    fn repeated_ps(&self, block: &[Operands], bytes: u64, (begins_ps, line_ps): (u64, u64)) -> u64 {
        let [before @ .., _] = block else { return 0 };
        let before_ps = if before.is_empty() { 0 } else { begins_ps + self.takes_ps(before, 1) };
        before_ps + (bytes * line_ps / 64).max(1)
    }
}
