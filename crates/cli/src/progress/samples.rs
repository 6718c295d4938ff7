//! Progress of a study, in samples.

use std::fmt::Arguments;
use std::time::Duration;

use indicatif::ProgressStyle;
use numalab_page::number::seconds_words;
use numalab_record::study::{Notice, StudyDocument};
use numalab_results::study::StudySummary;
use numalab_results::study::page::notice_words;
use numalab_study::Observer;

use super::bar::Bar;

pub(crate) struct SampleProgress {
    bar: Bar,
    /// Width of intervals at which a study ends early, in percent.
    precision_percent: Option<f64>,
}

impl SampleProgress {
    pub(crate) fn new(precision_percent: Option<f64>) -> Self {
        let template = "{bar:24} {pos} of {len} samples  {elapsed}, {eta} left";
        let bar = Bar::new(0, ProgressStyle::with_template(template).ok());
        Self { bar, precision_percent }
    }

    /// Prints a line above the bar, unless quiet.
    pub(crate) fn say(&self, words: Arguments<'_>) {
        self.bar.say(words);
    }
}

impl Observer for SampleProgress {
    fn starting(&mut self, notices: &[Notice]) {
        notices.iter().for_each(|of| self.say(format_args!("{}\n", notice_words(of))));
    }

    fn sampled(&mut self, done: usize, in_all: usize) {
        self.bar.reached(done as u64, in_all as u64, || format!("{done} of {in_all} samples"));
    }

    fn machine_is_shared(&mut self) {
        self.say(format_args!(
            "this machine is shared: other load disturbs most samples; none is repeated, and \
             intervals are at least as wide as those of the baseline against itself\n"
        ));
    }

    fn first_block(&mut self, rest: Duration) {
        let rest = seconds_words(rest.as_secs_f64());
        self.say(format_args!("judging by the first block, about {rest} more\n"));
    }

    fn is_precise(&mut self, document: &StudyDocument) -> bool {
        let precise = |percent| StudySummary::of(document).is_precise(percent);
        self.precision_percent.is_some_and(precise)
    }
}
