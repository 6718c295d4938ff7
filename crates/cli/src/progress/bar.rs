//! A bar on standard error, or lines where a bar cannot be drawn.

use std::fmt::{Arguments, Display};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use numalab_host::print_error;

use super::ProgressLines;
use crate::output;

/// Shows the progress of a command; nothing if quiet.
pub(super) struct Bar {
    pub(super) bar: ProgressBar,
    lines: ProgressLines,
}

impl Bar {
    /// Returns a bar of this length, drawn in this style if that is valid.
    pub(super) fn new(length: u64, style: Option<ProgressStyle>) -> Self {
        let quiet = output::quiet();
        let target =
            if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(length), target);
        if let Some(style) = style {
            bar.set_style(style);
        }
        Self { bar, lines: ProgressLines::new() }
    }

    /// Moves the bar, and prints a line if one is due.
    pub(super) fn reached<T: Display>(
        &mut self,
        done: u64,
        in_all: u64,
        words: impl FnOnce() -> T,
    ) {
        self.lines.reached(words);
        self.bar.update(|state| {
            state.set_len(in_all);
            state.set_pos(done);
        });
    }

    /// Prints a line above the bar, unless quiet.
    pub(super) fn say(&self, words: Arguments<'_>) {
        if !output::quiet() {
            self.bar.suspend(|| print_error(words));
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
