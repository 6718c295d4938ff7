//! Who watches trials: says how far they are, and which candidates cannot win any more.

use std::collections::BTreeMap;
use std::time::Duration;

use numalab_page::number::seconds_words;
use numalab_record::study::{Counted, Notice, Rules, StudyDocument};
use numalab_stats::{Confidence, Direction, Margin, Out, Race};
use numalab_study::Observer;

use super::tolerant::Failures;
use crate::progress::SampleProgress;

pub(super) struct Judge {
    metric: String,
    race: Option<Race>,
    failures: Failures,
    /// After how many blocks candidates were out, and why, by treatment.
    pub out: BTreeMap<usize, (usize, Out)>,
    progress: SampleProgress,
}

impl Judge {
    pub(super) fn new(metric: String, race: Option<Race>, failures: Failures) -> Self {
        let progress = SampleProgress::new();
        Self { metric, race, failures, out: BTreeMap::new(), progress }
    }

    /// A race of so many candidates, in which the best one is lost with a chance of 5 % at most.
    pub(super) fn race(candidates: usize, rules: &Rules, better: Direction) -> Option<Race> {
        let margin = Margin::percent(rules.margin_percent).unwrap_or(Margin::TWO_PERCENT);
        Race::new(candidates, rules.blocks, margin, (better, Confidence::P95)).ok()
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        self.progress.finish();
    }
}

impl Observer for Judge {
    fn starting(&mut self, notices: &[Notice]) {
        self.progress.starting(notices);
    }

    fn sampled(&mut self, done: usize, in_all: usize) {
        self.progress.sampled(done, in_all);
    }

    fn first_block(&mut self, rest: Duration) {
        let rest = seconds_words(rest.as_secs_f64());
        self.progress.say(format_args!("by the first block, about {rest} more at most\n"));
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
