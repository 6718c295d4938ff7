//! The number of candidates and blocks: enough to distinguish them from chance, and no more than
//! there is time for.

use std::time::Duration;

use numalab_stats::{Confidence, least_pairs};

/// The number of candidates and blocks in a set of trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// The number of candidates, each of which runs once per block; the unchanged program runs
    /// twice.
    pub candidates: usize,
    pub blocks: usize,
    /// The number of warm-up blocks before them.
    pub warm_ups: usize,
}

impl Extent {
    /// Returns the extent with the requested candidates and blocks, and more blocks if those could
    /// not distinguish that many candidates from chance.
    pub(super) fn enough(self) -> Self {
        Self { blocks: self.blocks.max(self.least_blocks()), ..self }
    }

    /// Returns the largest extent within the budget if each run takes `run`: first as many of the
    /// requested candidates as possible, then blocks; `None` if there is not even time for one
    /// candidate.
    pub(super) fn within(self, budget: Duration, run: Duration) -> Option<Self> {
        let runs = budget.as_secs_f64() / run.as_secs_f64().max(1e-3);
        let fits = |of: &Self| of.runs() as f64 <= runs;
        let with = |candidates| Self { candidates, ..self };
        let fewer = (1..=self.candidates).rev().map(with);
        let mut least = fewer.map(|of| Self { blocks: of.least_blocks(), ..of });
        let found = least.find(fits)?;
        let most = found.blocks..=self.blocks.max(found.blocks);
        most.rev().map(|blocks| Self { blocks, ..found }).find(fits)
    }

    /// Returns the smallest extent that gives a verdict: one candidate.
    pub(super) fn least(warm_ups: usize) -> Self {
        let one = Self { candidates: 1, blocks: 0, warm_ups };
        one.enough()
    }

    /// Returns the number of runs of the program.
    pub(super) fn runs(self) -> usize {
        (self.candidates + 2) * (self.warm_ups + self.blocks)
    }

    /// Returns the time of all runs if each takes `run`.
    pub(super) fn time(self, run: Duration) -> Duration {
        run.saturating_mul(u32::try_from(self.runs()).unwrap_or(u32::MAX))
    }

    /// Returns the time of runs under emulation if results repeat exactly: each candidate then runs
    /// once for all blocks, and the unchanged program twice, of which `known` runs are already
    /// done. `at_once` runs proceed in parallel.
    pub(super) fn time_if_repeated(self, run: Duration, known: usize, at_once: usize) -> Duration {
        let runs = self.candidates + 2_usize.saturating_sub(known);
        let turns = runs.div_ceil(at_once.max(1));
        run.saturating_mul(u32::try_from(turns).unwrap_or(u32::MAX))
    }

    /// Returns the fewest blocks that can distinguish each candidate from chance at a single look,
    /// corrected for the number of candidates.
    fn least_blocks(self) -> usize {
        least_pairs(Confidence::P95.at_look(1).alpha() / self.candidates.max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn extent(candidates: usize, blocks: usize) -> Extent {
        Extent { candidates, blocks, warm_ups: 0 }
    }

    #[test]
    fn blocks_suffice_to_distinguish_all_candidates() {
        assert_eq!(extent(1, 6).enough(), extent(1, 6));
        assert_eq!(extent(2, 6).enough(), extent(2, 7));
        assert_eq!(extent(4, 6).enough(), extent(4, 8));
        assert_eq!(extent(5, 8).enough(), extent(5, 9));
        assert_eq!(extent(2, 20).enough(), extent(2, 20));
        assert_eq!((Extent::least(0).runs(), Extent::least(1).runs()), (18, 21));
    }

    #[test]
    fn trials_take_as_long_as_their_runs_and_less_where_results_repeat() {
        assert_eq!(extent(2, 8).time(SECOND), 32 * SECOND);
        assert_eq!(extent(3, 8).time_if_repeated(SECOND, 0, 2), 3 * SECOND);
        assert_eq!(extent(3, 8).time_if_repeated(SECOND, 2, 2), 2 * SECOND);
        assert_eq!(extent(1, 8).time_if_repeated(SECOND, 0, 1), 3 * SECOND);
    }

    #[test]
    fn a_budget_takes_blocks_first_then_candidates_and_never_verdicts() {
        let asked = extent(3, 10);
        assert_eq!(asked.within(50 * SECOND, SECOND), Some(asked));
        assert_eq!(asked.within(49 * SECOND, SECOND), Some(extent(3, 9)));
        assert_eq!(asked.within(40 * SECOND, SECOND), Some(extent(3, 8)));
        assert_eq!(asked.within(39 * SECOND, SECOND), Some(extent(2, 9)));
        assert_eq!(asked.within(18 * SECOND, SECOND), Some(extent(1, 6)));
        assert_eq!(asked.within(17 * SECOND, SECOND), None);
    }
}
