//! How fast a core runs instructions: what a block takes to come up, and what results take.

use super::operands::{Ends, Operands, Registers};
use crate::cost::ps;
use crate::machine::{CLASSES, Class, Core};

/// What instructions of a core take, in ps.
#[derive(Clone, Debug)]
pub struct Speeds {
    /// Between two instructions, if nothing else is in their way.
    each_ps: u64,
    width: u64,
    /// From operands to result, and between two, by class.
    latency_ps: [u64; CLASSES],
    between_ps: [u64; CLASSES],
    /// Whether a comparison and the branch behind it are one (Intel and AMD: "macro-fusion", "branch fusion").
    fuses: bool,
}

impl Speeds {
    /// Those of a core; without a timing all instructions take the same, and results nothing.
    pub fn of(core: &Core) -> Self {
        let Some(timing) = &core.timing else {
            let none = [0; CLASSES];
            let each_ps = ps(core.ns_per_instruction);
            return Self { each_ps, width: 1, latency_ps: none, between_ps: none, fuses: false };
        };
        let takes = |cycles: f64| ps(cycles * timing.cycle_ns);
        Self {
            each_ps: takes(1.0),
            width: u64::from(timing.width),
            latency_ps: Class::ALL.map(|class| takes(timing.of(class).latency)),
            between_ps: Class::ALL.map(|class| takes(timing.of(class).each)),
            fuses: true,
        }
    }

    /// From operands to result.
    pub(super) fn latency_ps(&self, class: Class) -> u64 {
        self.latency_ps[class as usize]
    }

    /// How long instructions of a block take to come up: as many at a time as the core is wide, and each class
    /// no faster than its units.
    pub(super) fn takes_ps(&self, block: &[Operands]) -> u64 {
        let mut counts = [0; CLASSES];
        let mut fused = 0;
        let mut compares = false;
        for operands in block {
            counts[operands.class as usize] += 1;
            if operands.memory {
                let class = if operands.stores { Class::Store } else { Class::Load };
                counts[class as usize] += 1;
            }
            fused += u64::from(self.fuses && compares && operands.ends == Ends::Conditional);
            compares = operands.class == Class::Integer
                && operands.writes.less(Registers::FLAGS) != operands.writes;
        }
        let instructions = block.len() as u64 - fused;
        let by_class = counts.iter().zip(&self.between_ps).map(|(count, ps)| count * ps);
        (instructions * self.each_ps / self.width).max(by_class.max().unwrap_or(0))
    }
}
