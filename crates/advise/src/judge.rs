//! Who watches trials: says how far they are, and which candidates cannot win any more.

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
    /// After how many blocks candidates were out, and why, by treatment.
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

    /// A race of this number of candidates, in which the best one is lost with a chance of 5 % at most.
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
