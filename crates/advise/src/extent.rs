//! How many candidates are tried in how many blocks: enough to tell them from chance, and no more
//! than there is time for.

use std::time::Duration;

use numalab_stats::{Confidence, least_pairs};

/// What trials are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// Candidates, each of which runs once a block; the program as it is runs twice.
    pub candidates: usize,
    /// Blocks.
    pub blocks: usize,
    /// Blocks before them that do not count.
    pub warm_ups: usize,
}

impl Extent {
    /// As many candidates and blocks as were asked for, with more blocks where these could not tell
    /// so many candidates from chance.
    pub(super) fn enough(self) -> Self {
        Self { blocks: self.blocks.max(self.least_blocks()), ..self }
    }

    /// The most candidates, at most these, for which there is time if each run takes so long, and
    /// then the most blocks; `None` if there is no time for one candidate.
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

    /// The least that gives a verdict on anything: one candidate.
    pub(super) fn least(warm_ups: usize) -> Self {
        let one = Self { candidates: 1, blocks: 0, warm_ups };
        one.enough()
    }

    /// So many runs of the program.
    pub(super) fn runs(self) -> usize {
        (self.candidates + 2) * (self.warm_ups + self.blocks)
    }

    /// The fewest blocks that can tell each candidate from chance, all of them allowed for, at the
    /// one look that is taken.
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
    fn blocks_are_enough_to_tell_all_candidates() {
        assert_eq!(extent(1, 6).enough(), extent(1, 6));
        assert_eq!(extent(2, 6).enough(), extent(2, 7));
        assert_eq!(extent(4, 6).enough(), extent(4, 8));
        assert_eq!(extent(5, 8).enough(), extent(5, 9));
        assert_eq!(extent(2, 20).enough(), extent(2, 20));
        assert_eq!((Extent::least(0).runs(), Extent::least(1).runs()), (18, 21));
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
