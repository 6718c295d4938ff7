//! Observes trials: reports their progress, and drops candidates that can no longer win.

use std::collections::BTreeMap;
use std::time::Duration;

use numalab_places::Failures;
use numalab_record::study::{Counted, Notice, Rules, StudyDocument};
use numalab_stats::{Confidence, Direction, Margin, Out, Race};
use numalab_study::Observer;

use crate::watch::Watch;

pub(super) struct Judge<'w> {
    metric: String,
    race: Option<Race>,
    failures: Failures,
    /// The dropped candidates by treatment, with the number of blocks after which they were dropped
    /// and the reason.
    pub out: BTreeMap<usize, (usize, Out)>,
    watch: &'w mut dyn Watch,
}

impl<'w> Judge<'w> {
    pub(super) fn new(
        metric: String,
        race: Option<Race>,
        failures: Failures,
        watch: &'w mut dyn Watch,
    ) -> Self {
        Self { metric, race, failures, out: BTreeMap::new(), watch }
    }

    /// Returns a race of this number of candidates, in which the chance of dropping the best one is
    /// at most 5 %.
    pub(super) fn race(candidates: usize, rules: &Rules, better: Direction) -> Option<Race> {
        let margin = Margin::percent(rules.margin_percent).unwrap_or(Margin::TWO_PERCENT);
        Race::new(candidates, rules.blocks, margin, (better, Confidence::P95)).ok()
    }
}

impl Observer for Judge<'_> {
    fn starting(&mut self, notices: &[Notice]) {
        self.watch.starting(notices);
    }

    fn sampled(&mut self, done: usize, in_all: usize) {
        self.watch.sampled(done, in_all);
    }

    fn first_block(&mut self, rest: Duration) {
        self.watch.first_block(rest);
    }

    fn out(&mut self, document: &StudyDocument) -> Vec<usize> {
        let cells = document.cells(0, &self.metric, Counted::Undisturbed);
        let found = self.race.map_or_else(Vec::new, |race| race.out(&cells.treatments));
        for (treatment, why) in found {
            self.out.entry(treatment).or_insert((cells.blocks.len(), why));
        }
        self.out.keys().copied().chain(self.failures.borrow().keys().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_study::{KeptRemarks, kept_study};

    fn judge<'w>(watch: &'w mut KeptRemarks, candidates: usize) -> Judge<'w> {
        let rules = Rules { blocks: 8, ..kept_study().run.rules };
        let race = (candidates > 0)
            .then(|| Judge::race(candidates, &rules, Direction::HigherIsBetter).expect("8 blocks"));
        Judge::new("bandwidth".to_owned(), race, Failures::default(), watch)
    }

    #[test]
    fn candidates_that_can_no_longer_win_are_dropped_once_with_the_reason() {
        let mut watch = KeptRemarks::default();
        let mut judge = judge(&mut watch, 4);
        assert_eq!(judge.out(&kept_study()), [1, 3, 4]);
        let out = [(1, (8, Out::NoGain)), (3, (8, Out::Behind(2))), (4, (8, Out::Behind(2)))];
        assert_eq!(judge.out, out.into());
        judge.out.insert(1, (5, Out::NoGain));
        judge.out(&kept_study());
        assert_eq!(judge.out[&1], (5, Out::NoGain), "the first time counts");
    }

    #[test]
    fn without_a_race_only_failures_end_a_candidate() {
        let mut watch = KeptRemarks::default();
        let mut judge = judge(&mut watch, 0);
        assert_eq!(judge.out(&kept_study()), Vec::<usize>::new());
        judge.failures.borrow_mut().insert(2, "it does not fit on one node".to_owned());
        assert_eq!(judge.out(&kept_study()), [2]);
        assert!(judge.out.is_empty(), "it was not judged");
    }

    #[test]
    fn too_few_blocks_are_no_race() {
        let rules = Rules { blocks: 2, ..kept_study().run.rules };
        assert!(Judge::race(2, &rules, Direction::LowerIsBetter).is_none());
    }
}
