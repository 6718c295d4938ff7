//! Accesses over time, in stretches that grow longer with time.

use numalab_record::{Stretch, StretchAccesses};

/// Maximum number of stretches, fewer than the columns of a screen; beyond it they are merged in
/// pairs.
const MOST: usize = 240;
/// Initial length of stretches.
const FIRST_NS: u64 = 5_000_000;

/// The activity of a program over time.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    begun_ns: u64,
    width_ns: u64,
    stretches: Vec<Stretch>,
}

impl Timeline {
    /// Creates an empty timeline that begins at this time of `CLOCK_MONOTONIC`.
    pub(crate) fn new(begun_ns: u64) -> Self {
        Self { begun_ns, width_ns: FIRST_NS, stretches: Vec::new() }
    }

    /// Adds accesses to the stretch that contains `time_ns`.
    pub(crate) fn add(&mut self, time_ns: u64, accesses: StretchAccesses) {
        self.at(time_ns).add(accesses);
    }

    /// Adds cpu time of threads, spread evenly between two moments.
    pub(crate) fn ran(&mut self, from_ns: u64, to_ns: u64, busy_ns: u64) {
        self.spread(from_ns, to_ns, busy_ns, |stretch, share| stretch.busy_ns += share);
    }

    /// Adds used pages of a region, spread evenly between two moments.
    pub(crate) fn used(&mut self, from_ns: u64, to_ns: u64, region: usize, pages: u64) {
        self.spread(from_ns, to_ns, pages, |stretch, share| {
            stretch.add(StretchAccesses { region, unplaced: share, ..StretchAccesses::default() });
        });
    }

    /// Distributes a sum over the stretches between two moments, without loss by rounding.
    fn spread(
        &mut self,
        from_ns: u64,
        to_ns: u64,
        sum: u64,
        mut add: impl FnMut(&mut Stretch, u64),
    ) {
        let from_ns = from_ns.max(self.begun_ns).min(to_ns.saturating_sub(1));
        // The last stretch is created first, so that the width does not change in the loop.
        self.at(to_ns.saturating_sub(1));
        let whole = u128::from(to_ns - from_ns).max(1);
        let until = |moment: u64| {
            let part = u128::from(sum) * u128::from(moment - from_ns) / whole;
            u64::try_from(part).unwrap_or(sum)
        };
        let mut from = from_ns;
        while from < to_ns {
            let end = self.at(from).end_ns + self.begun_ns;
            let end = end.clamp(from + 1, to_ns);
            match until(end) - until(from) {
                0 => {}
                share => add(self.at(from), share),
            }
            from = end;
        }
    }

    /// Returns the stretches, the last of which ends at this moment.
    pub(crate) fn finish(mut self, ended_ns: u64) -> Vec<Stretch> {
        let end = ended_ns.saturating_sub(self.begun_ns);
        if let Some(last) = self.stretches.last_mut() {
            last.end_ns = last.end_ns.min(end.max(last.end_ns - self.width_ns + 1));
        }
        self.stretches
    }

    fn at(&mut self, time_ns: u64) -> &mut Stretch {
        let since = time_ns.saturating_sub(self.begun_ns);
        while since / self.width_ns >= MOST as u64 {
            // With an odd number, the last stretch would cover twice its time.
            self.stretches = Stretch::joined(&self.stretches);
            self.width_ns *= 2;
            if let Some(last) = self.stretches.last_mut() {
                last.end_ns = last.end_ns.next_multiple_of(self.width_ns);
            }
        }
        let at = usize::try_from(since / self.width_ns).unwrap_or(0);
        while self.stretches.len() <= at {
            let end_ns = (self.stretches.len() as u64 + 1) * self.width_ns;
            self.stretches.push(Stretch { end_ns, ..Stretch::default() });
        }
        &mut self.stretches[at]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    fn access(region: usize) -> StretchAccesses {
        StretchAccesses { region, local: 1, ..StretchAccesses::default() }
    }

    #[test]
    fn stretches_get_longer_so_that_there_are_never_too_many() {
        let mut timeline = Timeline::new(7);
        for at in 0..5000 {
            timeline.add(7 + at * MS, access(0));
        }
        timeline.ran(7, 7 + 5000 * MS, 2500 * MS);
        let stretches = timeline.finish(7 + 5000 * MS);
        assert!(stretches.len() <= MOST && stretches.len() > MOST / 2, "{}", stretches.len());
        assert!(stretches.windows(2).all(|pair| pair[0].end_ns < pair[1].end_ns));
        assert_eq!(stretches.last().unwrap().end_ns, 5000 * MS);
        let all: u64 = stretches.iter().flat_map(|of| &of.regions).map(|of| of.local).sum();
        assert_eq!(all, 5000);
        let busy: u64 = stretches.iter().map(|of| of.busy_ns).sum();
        assert_eq!(busy, 2500 * MS);
    }

    #[test]
    fn pages_used_since_the_last_poll_are_spread_over_that_time() {
        let mut timeline = Timeline::new(0);
        timeline.used(10 * MS, 30 * MS, 3, 10);
        timeline.used(30 * MS, 30 * MS, 3, 1);
        let stretches = timeline.finish(30 * MS);
        let used: Vec<u64> =
            stretches.iter().map(|of| of.regions.iter().map(|of| of.unplaced).sum()).collect();
        assert_eq!(used, [0, 0, 2, 3, 2, 4]);
    }

    proptest! {
        #[test]
        fn any_times_are_accepted(moments in prop::collection::vec(0_u64..u64::MAX / 4, 1..20), begun in 0_u64..1 << 50) {
            let mut timeline = Timeline::new(begun);
            for moment in &moments {
                timeline.add(*moment, access(1));
            }
            let stretches = timeline.finish(*moments.iter().max().unwrap());
            let all: u64 = stretches.iter().flat_map(|of| &of.regions).map(|of| of.local).sum();
            prop_assert_eq!(all, moments.len() as u64);
            prop_assert!(stretches.len() <= MOST);
        }
    }
}
