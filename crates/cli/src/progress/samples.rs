//! Progress of a study, in samples.

use std::fmt::Arguments;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use numalab_host::print_error;
use numalab_record::study::Notice;
use numalab_results::study::page::notice_words;

use super::ProgressLines;
use crate::output;

/// A bar on standard error, or lines if that is not a terminal; nothing if quiet.
pub(crate) struct SampleProgress {
    bar: ProgressBar,
    lines: ProgressLines,
}

impl SampleProgress {
    pub(crate) fn new() -> Self {
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
        Self { bar, lines: ProgressLines::new() }
    }

    /// Prints notices before the first sample, unless quiet.
    pub(crate) fn starting(&self, notices: &[Notice]) {
        notices.iter().for_each(|of| self.say(format_args!("{}\n", notice_words(of))));
    }

    /// Shows that `done` of `in_all` samples are finished.
    pub(crate) fn sampled(&mut self, done: usize, in_all: usize) {
        self.bar.set_length(in_all as u64);
        self.bar.set_position(done as u64);
        self.lines.reached(|| format!("{done} of {in_all} samples"));
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
