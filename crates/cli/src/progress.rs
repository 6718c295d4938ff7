//! Progress of a run on standard error while cells are measured, with the latest figure.

mod bar;
mod lines;
mod samples;

use bar::Bar;
use lines::ProgressLines;
pub(crate) use samples::SampleProgress;

use std::fmt;
use std::time::{Duration, Instant};

use indicatif::{ProgressState, ProgressStyle};
use numalab_measure::Observer;
use numalab_measure::estimate_plan;
use numalab_page::number::seconds_words;
use numalab_record::{Cell, Sample, is_shared};
use numalab_results::run::in_short;

use crate::output;

/// Shows progress by estimated time.
pub(crate) struct Progress {
    bar: Bar,
    begun: Instant,
    /// Estimated time of all cells, and of the finished ones.
    estimated: (Duration, Duration),
    /// Number of finished windows, and of those disturbed; `None` if the remark that the machine is
    /// shared was made or is not wanted.
    windows: Option<(usize, usize)>,
}

/// Minimum number of windows before the remark that the machine is shared.
const FEWEST_WINDOWS: usize = 60;

impl Progress {
    /// Returns a progress bar for `plan`, or lines if standard error is not a terminal; nothing
    /// with `--quiet`. With a limit of cpu time, disturbed windows do not show that the machine is shared.
    pub fn new(plan: &[Cell], is_limited: bool) -> Self {
        let whole = estimate_plan(plan);
        let template = "{bar:24} {percent:>3} %  {elapsed} of about {whole}  {wide_msg}";
        let style = ProgressStyle::with_template(template).ok();
        let style = style.map(|style| style.with_key("whole", write_whole));
        Self {
            bar: Bar::new(milliseconds(whole), style),
            begun: Instant::now(),
            estimated: (whole, Duration::ZERO),
            windows: (!output::quiet() && !is_limited).then_some((0, 0)),
        }
    }

    /// Returns the corrected total time and the time of finished cells: disturbed windows take
    /// longer than estimated, and so will those to come.
    fn learned(&self) -> (Duration, Duration) {
        let (whole, done) = self.estimated;
        let factor = self.begun.elapsed().as_secs_f64() / done.as_secs_f64().max(1e-3);
        (whole.mul_f64(factor), done.mul_f64(factor))
    }

    /// Remarks once that most windows are disturbed, if they are.
    fn tell_if_shared(&mut self, samples: &[Sample]) {
        let Some((taken, disturbed)) = &mut self.windows else { return };
        *taken += samples.len();
        *disturbed += samples.iter().filter(|sample| sample.disturbed.is_some()).count();
        if *taken >= FEWEST_WINDOWS && is_shared(*taken, *disturbed) {
            self.windows = None;
            self.bar.say(format_args!(
                "this machine is shared: other load disturbs most windows; cells with few \
                 undisturbed windows use all their windows, and their intervals are wider\n"
            ));
        }
    }
}

impl Observer for Progress {
    fn starting(&mut self, cells: &[Cell]) {
        // Afterwards the last figure stays until the next one arrives.
        if let (true, Some(first)) = (self.bar.bar.message().is_empty(), cells.first()) {
            self.bar.bar.set_message(first.id.0.clone());
        }
    }

    fn finished(&mut self, cell: &Cell, samples: &[Sample]) {
        self.tell_if_shared(samples);
        let found = in_short(cell, samples);
        self.estimated.1 += estimate_plan(std::slice::from_ref(cell));
        let (whole, done) = self.learned();
        let whole = whole.max(done);
        self.bar.reached(milliseconds(done), milliseconds(whole), || {
            let [done, whole] = [done, whole].map(|time| seconds_words(time.as_secs_f64()));
            format!("{done} of about {whole}: {found}")
        });
        self.bar.bar.set_message(found);
    }
}

/// Writes the length of the bar: the estimated total time.
fn write_whole(state: &ProgressState, to: &mut dyn fmt::Write) {
    let whole = Duration::from_millis(state.len().unwrap_or(0));
    // A failure to draw the bar does not matter.
    let _ = to.write_str(&seconds_words(whole.as_secs_f64()));
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
