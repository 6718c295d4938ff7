//! How fast a core runs instructions: what a block takes to come up, and what results take.

use super::operands::{Ends, Operands, Registers};
use crate::cost::ps;
use crate::machine::{CLASSES, Class, Core, Family};

/// Cycles that MOVS and STOS take with REP before their first line, and bytes a cycle from then on:
/// measured on Emerald and Granite Rapids, of 256 bytes to 16 KiB in the L1; other families are taken to
/// have the same.
const REPEATED: (f64, f64) = (20.0, 64.0);

/// Cycles that a call takes, and a return (A. Fog, "Instruction tables"; 3.6 for both, measured on a Granite
/// Rapids in loops that are not so short that it keeps them; other families are taken to have the same).
const CALL_CYCLES: f64 = 1.8;

/// What instructions of a core take, in ps.
#[derive(Clone, Debug)]
pub struct Speeds {
    /// Between two instructions, if nothing else is in their way.
    each_ps: u64,
    width: u64,
    /// From operands to result, and between two, by class.
    latency_ps: [u64; CLASSES],
    between_ps: [u64; CLASSES],
    /// What a load of a vector takes longer than one of a general register.
    vector_load_ps: u64,
    /// What a call or a return takes at least.
    call_ps: u64,
    /// What a branch that is taken takes at least.
    taken_ps: u64,
    /// Before the first of repeated elements, and for 64 bytes of them; none if they are like others.
    repeated_ps: Option<(u64, u64)>,
    /// Of which family it is, if that is known: its comparisons and the branches behind them are one
    /// (Intel and AMD: "macro-fusion", "branch fusion").
    family: Option<Family>,
}

impl Speeds {
    /// Returns those of a core; without a timing all instructions take the same, and results nothing.
    pub fn of(core: &Core) -> Self {
        let Some(timing) = &core.timing else {
            return Self {
                each_ps: ps(core.ns_per_instruction),
                width: 1,
                latency_ps: [0; CLASSES],
                between_ps: [0; CLASSES],
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
            vector_load_ps: takes(timing.family.vector_load_cycles()),
            call_ps: takes(CALL_CYCLES),
            taken_ps: takes(1.0),
            repeated_ps: Some((takes(begins), takes(64.0 / bytes))),
            family: Some(timing.family),
        }
    }

    /// Returns the time from operands, which the block has loaded or not, to the result. A constant is
    /// not added before what it is added to is there (measured on a Granite Rapids: a counter in memory
    /// takes a cycle more than the load and the store of the same word).
    pub(super) fn latency_ps(&self, class: Class, is_loaded: bool) -> u64 {
        let class = if is_loaded && class == Class::Constant { Class::Integer } else { class };
        self.latency_ps[class as usize]
    }

    /// Returns what a load takes longer than one of a general register.
    pub(super) fn load_ps(&self, operands: &Operands) -> u64 {
        let is_longer = !operands.stores && operands.writes.has_vectors();
        if is_longer { self.vector_load_ps } else { 0 }
    }

    /// Returns whether what stores and loads at such addresses passes its value on when it is renamed.
    pub(super) fn renames(&self, operands: &Operands) -> bool {
        operands.memory && operands.plain_address && self.family.is_some_and(Family::renames_memory)
    }

    /// Has constants added where a branch is decided by it, which is one instruction then.
    pub(super) fn fuse(&self, block: &mut [Operands]) {
        for at in 1..block.len() {
            if block[at].ends == Ends::Conditional && block[at - 1].class == Class::Constant {
                block[at - 1].class = Class::Integer;
            }
        }
    }

    /// Returns how long instructions of a block take to come up: as many at a time as the core is wide,
    /// and each class no faster than its units, some of which it shares with others.
    pub(super) fn takes_ps(&self, block: &[Operands]) -> u64 {
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
        // What is fused with a branch takes no other unit.
        counts[Class::Integer as usize] -= fused.min(counts[Class::Integer as usize]);
        let by_class = counts.iter().zip(&self.between_ps).map(|(count, ps)| count * ps);
        let shared = self.family.map_or(&[][..], Family::units).iter().map(|(groups, units)| {
            let classes = groups.iter().copied().flatten();
            let count: u64 = classes.map(|class| counts[*class as usize]).sum();
            count * self.each_ps / u64::from(*units)
        });
        let calls_ps = block.last().filter(|last| last.calls).map_or(0, |_| self.call_ps);
        // No core fetches past a taken branch in the same cycle.
        let taken_ps = block.last().filter(|last| last.jumps).map_or(0, |_| self.taken_ps);
        let busiest_ps = by_class.chain(shared).max().unwrap_or(0).max(calls_ps).max(taken_ps);
        (instructions * self.each_ps / self.width).max(busiest_ps)
    }

    /// Returns the same of a block that ends with repeated elements of so many bytes: QEMU has one for
    /// the first of them, and one again and again for each of the others.
    fn repeated_ps(&self, block: &[Operands], bytes: u64, (begins_ps, line_ps): (u64, u64)) -> u64 {
        let [before @ .., _] = block else { return 0 };
        let before_ps = if before.is_empty() { 0 } else { begins_ps + self.takes_ps(before) };
        before_ps + (bytes * line_ps / 64).max(1)
    }
}
