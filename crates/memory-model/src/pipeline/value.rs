//! When a value is known that a block computes: so long after each thing that it comes from.

use super::late::Late;
use super::operands::REGISTERS;

/// Loads of a block that are told apart.
pub(super) const LOADS: usize = 64;

/// Things that a value comes from and whose latencies are told apart; those behind them share the last
/// place, which has the longest.
const PLACES: usize = 8;

/// The things that a value comes from: registers as they were when the block began, and its loads; and how
/// long after each of them it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Value {
    registers: u64,
    /// By number of the instruction among those that access memory; the last place is that of
    /// all that come behind.
    loads: u64,
    /// How long after the block's begin it is known if none of them is late.
    least_ps: u64,
    /// How long after each of them, in ps: registers, then loads, in the order of their bits.
    latencies: [u32; PLACES],
}

impl Value {
    /// What a register has when the block begins.
    pub(super) fn of_register(number: usize) -> Self {
        Self { registers: 1 << number, ..Self::default() }
    }

    /// What a load brings.
    pub(super) fn of_load(number: usize) -> Self {
        Self { loads: 1 << number, ..Self::default() }
    }

    /// What is known so long after the block's begin.
    pub(super) fn known(least_ps: u64) -> Self {
        Self { least_ps, ..Self::default() }
    }

    /// The registers that it comes from, a bit for each.
    pub fn registers(&self) -> u64 {
        self.registers
    }

    /// The loads.
    pub fn loads(&self) -> u64 {
        self.loads
    }

    /// How long after the block's begin it is known at the earliest.
    pub fn least_ps(&self) -> u64 {
        self.least_ps
    }

    /// It comes from what another one comes from, too.
    pub(super) fn join(&mut self, other: &Self) {
        let before = *self;
        self.least_ps = self.least_ps.max(other.least_ps);
        (self.registers, self.loads) = (self.registers | other.registers, self.loads | other.loads);
        self.latencies = [0; PLACES];
        let mut place = 0;
        for (mine, theirs, behind) in [
            (before.registers, other.registers, [0, 0]),
            (before.loads, other.loads, [before.registers, other.registers].map(u64::count_ones)),
        ] {
            let mut left = mine | theirs;
            while left != 0 {
                let at = left.trailing_zeros();
                let of = |set: u64, behind: u32, latencies: &[u32; PLACES]| {
                    let rank = behind + (set & ((1 << at) - 1)).count_ones();
                    if set >> at & 1 == 0 { 0 } else { latencies[placed(rank)] }
                };
                let latency = of(mine, behind[0], &before.latencies).max(of(
                    theirs,
                    behind[1],
                    &other.latencies,
                ));
                let kept = &mut self.latencies[placed(place)];
                *kept = latency.max(*kept);
                place += 1;
                left &= left - 1;
            }
        }
    }

    /// It is known so much later.
    pub(super) fn delay(&mut self, by_ps: u64) {
        self.least_ps += by_ps;
        let by_ps = u32::try_from(by_ps).unwrap_or(u32::MAX);
        let places = (self.registers.count_ones() + self.loads.count_ones()) as usize;
        let kept = self.latencies.iter_mut().take(places);
        kept.for_each(|latency| *latency = latency.saturating_add(by_ps));
    }

    /// When it is known in a block that began at a time.
    #[inline]
    pub(super) fn known_ps(
        &self,
        begin_ps: u64,
        registers: &Late<REGISTERS>,
        loads: &Late<LOADS>,
    ) -> u64 {
        let mut known_ps = begin_ps + self.least_ps;
        if registers.any(self.registers) {
            let later = |rank| u64::from(self.latencies[placed(rank)]);
            known_ps = known_ps.max(registers.latest(self.registers, later));
        }
        if loads.any(self.loads) {
            let behind = self.registers.count_ones();
            let later = |rank| u64::from(self.latencies[placed(behind + rank)]);
            known_ps = known_ps.max(loads.latest(self.loads, later));
        }
        known_ps
    }
}

/// The place of the latency of what comes so far behind the first thing.
#[inline]
fn placed(rank: u32) -> usize {
    (rank as usize).min(PLACES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_known_when_the_last_of_what_it_comes_from_has_come_all_the_way() {
        let mut sum = Value::of_register(3);
        let mut product = Value::of_load(1);
        product.join(&Value::of_register(2));
        product.delay(40);
        sum.join(&product);
        sum.join(&Value::known(5));
        sum.delay(30);
        let (mut registers, mut loads) = (Late::default(), Late::default());
        let known_ps = |registers: &_, loads: &_| sum.known_ps(1000, registers, loads);
        assert_eq!(known_ps(&registers, &loads), 1070, "all of it is there when the block begins");
        registers.set(3, 1100);
        assert_eq!(known_ps(&registers, &loads), 1130, "one addition later");
        registers.set(2, 1090);
        assert_eq!(known_ps(&registers, &loads), 1160, "both");
        loads.set(1, 2000);
        assert_eq!(known_ps(&registers, &loads), 2070);
        loads.set(0, 9000);
        assert_eq!(known_ps(&registers, &loads), 2070, "another load");
    }

    #[test]
    fn things_behind_those_that_are_told_apart_take_the_longest_latency_of_theirs() {
        let mut all = Value::default();
        for number in (0..12).rev() {
            let mut one = Value::of_load(number);
            one.delay(10 * number as u64);
            all.join(&one);
        }
        let known_ps = |number| {
            let mut loads = Late::default();
            loads.set(number, 1000);
            all.known_ps(0, &Late::default(), &loads)
        };
        assert_eq!([0, 6, 7, 11].map(known_ps), [1000, 1060, 1110, 1110]);
    }
}
