//! A progress line on standard error while cells are measured.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use numalab_measure::Observer;
use numalab_measure::plan::estimate_plan;
use numalab_record::Cell;

/// Shows how far the run is, by estimated time.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A progress line for `plan`; nothing is drawn if `quiet` or not on a terminal.
    pub fn new(plan: &[Cell], quiet: bool) -> Self {
        let target =
            if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(milliseconds(estimate_plan(plan))), target);
        let template = "{bar:24} {percent:>3} %  {elapsed} of about {duration}  {wide_msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar }
    }
}

impl Observer for Progress {
    fn starting(&mut self, cells: &[Cell]) {
        if let Some(first) = cells.first() {
            self.bar.set_message(first.id.0.clone());
        }
    }

    fn finished(&mut self, cell: &Cell) {
        self.bar.set_message(cell.id.0.clone());
        self.bar.inc(milliseconds(estimate_plan(std::slice::from_ref(cell))));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
