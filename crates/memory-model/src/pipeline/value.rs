//! Availability of the values that a block computes: the delay after each source.

use super::late::Late;
use super::operands::REGISTERS;

/// Number of a block's loads that are tracked separately.
pub(super) const LOADS: usize = 64;

/// Number of sources of a value with separate delays; if there are more, the first ones share a
/// slot, with the longest delay. A chain waits for the value that was loaded last.
const PLACES: usize = 8;

/// The sources of a value: registers at the start of the block, and its loads; and the delay after
/// each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Value {
    registers: u64,
    /// A bit for each load by its number among accesses; the last bit stands for all further loads.
    loads: u64,
    /// Time from the start of the block until the value is known, if no source is late.
    least_ps: u64,
    /// Delay after each source, in ps: registers, then loads, in the order of their bits.
    latencies: [u32; PLACES],
    /// Number of source registers; `shared` is the number of sources in a slot with another source.
    count: u8,
    shared: u8,
}

impl Value {
    /// Returns the value of a register at the start of the block.
    pub(super) fn of_register(number: usize) -> Self {
        Self { registers: 1 << number, count: 1, ..Self::default() }
    }

    pub(super) fn of_load(number: usize) -> Self {
        Self { loads: 1 << number, ..Self::default() }
    }

    /// Returns a value that is known this long after the start of the block.
    pub(super) fn known(least_ps: u64) -> Self {
        Self { least_ps, ..Self::default() }
    }

    /// Returns the registers that the value depends on, one bit per register.
    pub fn registers(&self) -> u64 {
        self.registers
    }

    /// Returns the loads that the value depends on, one bit per load.
    pub fn loads(&self) -> u64 {
        self.loads
    }

    /// Returns the earliest time at which the value is known, from the start of the block.
    pub fn least_ps(&self) -> u64 {
        self.least_ps
    }

    fn sources(&self) -> u32 {
        self.registers.count_ones() + self.loads.count_ones()
    }

    /// Adds the sources of another value.
    pub(super) fn join(&mut self, other: &Self) {
        let before = *self;
        self.least_ps = self.least_ps.max(other.least_ps);
        (self.registers, self.loads) = (self.registers | other.registers, self.loads | other.loads);
        self.latencies = [0; PLACES];
        let mut place = 0;
        let [all, ours, others] = [self.sources(), before.sources(), other.sources()];
        // There are 64 registers and 64 loads at most.
        let places = u32::try_from(PLACES).unwrap_or(u32::MAX);
        [self.count, self.shared] = [self.registers.count_ones(), all.saturating_sub(places)]
            .map(|count| u8::try_from(count).unwrap_or(u8::MAX));
        for (mine, theirs, behind) in [
            (before.registers, other.registers, [0, 0]),
            (before.loads, other.loads, [before.registers, other.registers].map(u64::count_ones)),
        ] {
            let mut left = mine | theirs;
            while left != 0 {
                let at = left.trailing_zeros();
                let of = |set: u64, behind: u32, (count, latencies): (u32, &[u32; PLACES])| {
                    let rank = behind + (set & ((1 << at) - 1)).count_ones();
                    if set >> at & 1 == 0 { 0 } else { latencies[placed(rank, count)] }
                };
                let latency = of(mine, behind[0], (ours, &before.latencies)).max(of(
                    theirs,
                    behind[1],
                    (others, &other.latencies),
                ));
                let kept = &mut self.latencies[placed(place, all)];
                *kept = latency.max(*kept);
                place += 1;
                left &= left - 1;
            }
        }
    }

    /// Adds a delay.
    pub(super) fn delay(&mut self, by_ps: u64) {
        self.least_ps += by_ps;
        let by_ps = u32::try_from(by_ps).unwrap_or(u32::MAX);
        let sources = self.sources() as usize;
        let kept = self.latencies.iter_mut().take(sources);
        kept.for_each(|latency| *latency = latency.saturating_add(by_ps));
    }

    /// Returns the time at which the value is known, in a block that began at `begin_ps`.
    #[inline]
    pub(super) fn known_ps(
        &self,
        begin_ps: u64,
        registers: &Late<REGISTERS>,
        loads: &Late<LOADS>,
    ) -> u64 {
        let mut known_ps = begin_ps + self.least_ps;
        let later = |rank: usize| {
            let place = rank.saturating_sub(usize::from(self.shared));
            u64::from(self.latencies[place.min(PLACES - 1)])
        };
        if registers.any(self.registers) {
            known_ps = known_ps.max(registers.latest(self.registers, later));
        }
        if loads.any(self.loads) {
            let behind = usize::from(self.count);
            known_ps = known_ps.max(loads.latest(self.loads, |rank| later(behind + rank)));
        }
        known_ps
    }
}

/// Returns the slot for the delay of the source with this rank among all sources.
#[inline]
fn placed(rank: u32, count: u32) -> usize {
    (rank as usize).saturating_sub((count as usize).saturating_sub(PLACES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_ready_when_the_last_of_its_sources_has_arrived() {
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
    fn sources_beyond_the_number_tracked_take_their_longest_latency() {
        let mut all = Value::default();
        for number in (0..12).rev() {
            let mut one = Value::of_load(number);
            one.delay(10 * (12 - number) as u64);
            all.join(&one);
        }
        let known_ps = |number| {
            let mut loads = Late::default();
            loads.set(number, 1000);
            all.known_ps(0, &Late::default(), &loads)
        };
        assert_eq!([0, 4, 5, 11].map(known_ps), [1120, 1120, 1070, 1010]);
    }
}
