//! Progress of a study, in samples.

use std::fmt::Arguments;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use numalab_host::print_error;
use numalab_page::number::seconds_words;
use numalab_record::study::{Notice, StudyDocument};
use numalab_results::study::StudySummary;
use numalab_results::study::page::notice_words;
use numalab_study::Observer;

use super::ProgressLines;
use crate::output;

/// A bar on standard error, or lines if that is not a terminal; nothing if quiet.
pub(crate) struct SampleProgress {
    bar: ProgressBar,
    lines: ProgressLines,
    /// Width of intervals with which a study ends early, in percent.
    precision_percent: Option<f64>,
}

impl SampleProgress {
    pub(crate) fn new(precision_percent: Option<f64>) -> Self {
        let target = if output::quiet() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let template = "{bar:24} {pos} of {len} samples  {elapsed}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar, lines: ProgressLines::new(), precision_percent }
    }

    /// Prints a line above the bar, unless quiet.
    pub(crate) fn say(&self, words: Arguments<'_>) {
        if !output::quiet() {
            self.bar.suspend(|| print_error(words));
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for SampleProgress {
    fn starting(&mut self, notices: &[Notice]) {
        notices.iter().for_each(|of| self.say(format_args!("{}\n", notice_words(of))));
    }

    fn sampled(&mut self, done: usize, in_all: usize) {
        self.bar.set_length(in_all as u64);
        self.bar.set_position(done as u64);
        self.lines.reached(|| format!("{done} of {in_all} samples"));
    }

    fn machine_is_shared(&mut self) {
        self.say(format_args!(
            "this machine is shared: other load disturbs most samples; none is repeated, and \
             intervals are at least as wide as those of the baseline against itself\n"
        ));
    }

    fn first_block(&mut self, rest: Duration) {
        let rest = seconds_words(rest.as_secs_f64());
        self.say(format_args!("by the first block, about {rest} more\n"));
    }

    fn is_precise(&mut self, document: &StudyDocument) -> bool {
        let precise = |percent| StudySummary::of(document).is_precise(percent);
        self.precision_percent.is_some_and(precise)
    }
}
