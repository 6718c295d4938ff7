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
