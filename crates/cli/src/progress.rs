//! A progress line on standard error while cells are measured.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use numalab_measure::Observer;
use numalab_measure::plan::estimate_plan;
use numalab_record::Cell;

/// Shows how far the run is, by estimated time.
pub(crate) struct Progress {
    bar: ProgressBar,
    begun: Instant,
    /// What all cells were estimated to take, and those that are done.
    estimated: (Duration, Duration),
}

impl Progress {
    /// A progress line for `plan`; nothing is drawn if `quiet` or not on a terminal.
    pub fn new(plan: &[Cell], quiet: bool) -> Self {
        let target =
            if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let whole = estimate_plan(plan);
        let bar = ProgressBar::with_draw_target(Some(milliseconds(whole)), target);
        let template = "{bar:24} {percent:>3} %  {elapsed} of about {duration}  {wide_msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar, begun: Instant::now(), estimated: (whole, Duration::ZERO) }
    }

    /// The whole time and that of what is done, as this machine is found to be: cells take
    /// longer than estimated where windows are disturbed, and those to come will too.
    fn learned(&self) -> (Duration, Duration) {
        let (whole, done) = self.estimated;
        let factor = self.begun.elapsed().as_secs_f64() / done.as_secs_f64().max(1e-3);
        (whole.mul_f64(factor), done.mul_f64(factor))
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
        self.estimated.1 += estimate_plan(std::slice::from_ref(cell));
        let (whole, done) = self.learned();
        self.bar.set_length(milliseconds(whole.max(done)));
        self.bar.set_position(milliseconds(done));
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
