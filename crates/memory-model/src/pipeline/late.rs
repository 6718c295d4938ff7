//! Times of events that are still in the future.

/// Times of up to 64 items, few of which matter at any moment.
#[derive(Clone, Debug)]
pub struct Late<const COUNT: usize> {
    /// A bit for each item that has a time.
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

    /// Returns true if any item of a set has a time.
    #[inline]
    pub(super) fn any(&self, of: u64) -> bool {
        self.which & of != 0
    }

    /// Removes the times of a set's items.
    #[inline]
    pub(super) fn forget(&mut self, set: u64) {
        self.which &= !set;
    }

    /// Removes times of a set's items that are not after this time.
    #[inline]
    pub(super) fn forget_until(&mut self, set: u64, time: u64) {
        let mut left = self.which & set;
        while left != 0 {
            let at = left.trailing_zeros() as usize;
            self.which &= !(u64::from(self.times[at] <= time) << at);
            left &= left - 1;
        }
    }

    /// Returns the latest time of a set's items, each plus its delay, in the order of their bits; 0
    /// for none.
    #[inline]
    pub(super) fn latest(&self, of: u64, later: impl Fn(usize) -> u64) -> u64 {
        let (mut left, mut rank, mut latest) = (of, 0, 0);
        while left != 0 {
            let at = left.trailing_zeros() as usize;
            if self.which >> at & 1 == 1 {
                latest = u64::max(latest, self.times[at] + later(rank));
            }
            // Counted here, as few sets have more than two items, and hosts may lack POPCNT.
            rank += 1;
            left &= left - 1;
        }
        latest
    }

    /// Replaces the times of a set's items by those of another one.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_of_a_set_decides_and_those_without_a_time_do_not_count() {
        let mut late = Late::<64>::default();
        [(3, 70), (1, 50), (63, 90)].into_iter().for_each(|(at, time)| late.set(at, time));
        assert_eq!((late.latest(1 << 3 | 2, |_| 0), late.latest(4, |_| 9)), (70, 0));
        assert_eq!(late.latest(1 << 3 | 2, |rank| [30, 5][rank]), 80, "each so much later");
        assert_eq!(late.latest(u64::MAX, |_| 0), 90);
        let mut by = Late::default();
        by.set(3, 20);
        by.set(5, 30);
        late.replace(1 << 3 | 1 << 63, &by);
        assert_eq!([1, 3, 5, 63].map(|at| late.get(at)), [50, 20, 0, 0]);
        late.forget(2);
        assert!(late.any(1 << 3 | 4) && !late.any(2));
        late.set(5, 30);
        late.forget_until(1 << 3, 100);
        assert_eq!([3, 5].map(|at| late.get(at)), [0, 30], "the other one is not in the set");
        late.forget_until(1 << 5, 29);
        assert!(late.any(1 << 5), "it is later");
        late.clear();
        assert_eq!(late.latest(u64::MAX, |_| 0), 0);
    }
}
