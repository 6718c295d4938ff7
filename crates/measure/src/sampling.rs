//! Takes windows until the interval is narrow, the time is over, or the user stops.

use std::time::{Duration, Instant};

use numalab_host::ThreadSnapshot;
use numalab_record::{
    CellId, Metric, Outcome, Sample, all_windows_count, counted_values, is_shared,
};
use numalab_stats::{Confidence, Precision, Progress, Sample as Values, stopped_interval};

use crate::context::MeasureContext;
use crate::error::MeasureError;

/// A cell ends after this number of windows without a value for each window with one.
const MOST_MISSED_PER_VALUE: usize = 3;
/// Minimum number of windows, taken even if no time is left: fewer give no interval.
const LEAST_WINDOWS: usize = 6;

#[derive(Clone, Debug)]
pub struct WindowValues {
    /// Values by metric; the first one decides when to stop.
    pub values: Vec<(Metric, f64)>,
    pub duration_ns: u64,
    pub work: u64,
}

/// The length of the next window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowLength {
    /// The length that is precise.
    Usual,
    /// The shortest useful length: most windows were disturbed, and other processes leave the cpu
    /// to this thread for only a few milliseconds at a time.
    Short,
}

#[derive(Clone, Copy, Debug)]
enum End {
    /// When its interval is narrow, or after this time.
    Narrow(Duration),
    Windows(u32),
}

/// The samples of one cell as they are taken.
#[derive(Debug)]
pub struct Samples<'a> {
    context: &'a MeasureContext,
    cell: &'a CellId,
    precision: Precision,
    end: End,
    begun: Instant,
    taken: Vec<Sample>,
    values: Vec<f64>,
    clean: Vec<f64>,
    windows: u32,
    missed: usize,
    next_look: usize,
}

impl<'a> Samples<'a> {
    /// Creates an empty set of samples to be taken within `limit`.
    pub fn new(context: &'a MeasureContext, cell: &'a CellId, limit: Duration) -> Self {
        Self::until(context, cell, End::Narrow(limit))
    }

    /// Creates an empty set of exactly `windows` samples, whatever they show.
    pub fn of_windows(context: &'a MeasureContext, cell: &'a CellId, windows: u32) -> Self {
        Self::until(context, cell, End::Windows(windows))
    }

    fn until(context: &'a MeasureContext, cell: &'a CellId, end: End) -> Self {
        let precision = context.precision;
        Self {
            context,
            cell,
            precision,
            end,
            begun: Instant::now(),
            taken: Vec::new(),
            values: Vec::new(),
            clean: Vec::new(),
            windows: 0,
            missed: 0,
            next_look: precision.first_look(),
        }
    }

    /// Adds one window; `disturbed` must not depend on its values.
    pub fn push(&mut self, reading: &WindowValues, disturbed: Option<String>) {
        match reading.values.first() {
            Some(&(_, value)) => {
                self.values.push(value);
                self.clean.extend(disturbed.is_none().then_some(value));
            }
            None => self.missed += 1,
        }
        // The window has just ended, so its start follows from its duration.
        let start_ns = self.context.elapsed_ns().saturating_sub(reading.duration_ns);
        for &(metric, value) in &reading.values {
            self.taken.push(Sample {
                cell: self.cell.clone(),
                metric,
                index: self.windows,
                value,
                start_ns,
                duration_ns: reading.duration_ns,
                work: reading.work,
                disturbed: disturbed.clone(),
            });
        }
        self.windows += 1;
    }

    /// Returns the length for the next window.
    pub fn window_length(&self) -> WindowLength {
        let disturbed = self.values.len() - self.clean.len();
        match self.values.len() >= LEAST_WINDOWS && is_shared(self.values.len(), disturbed) {
            true => WindowLength::Short,
            false => WindowLength::Usual,
        }
    }

    /// Counts a window without a value, so that a cell with nothing else ends.
    pub fn miss(&mut self) {
        self.missed += 1;
    }

    /// Returns the values of the windows that count for the result; they decide when the cell ends.
    fn counted(&self) -> &[f64] {
        let disturbed = self.values.len() - self.clean.len();
        if all_windows_count(self.clean.len(), disturbed) { &self.values } else { &self.clean }
    }

    /// Returns the outcome if the cell ends now.
    ///
    /// # Errors
    /// [`MeasureError::Interrupted`] after the user's request to stop.
    pub fn ended(&mut self) -> Result<Option<Outcome>, MeasureError> {
        // Checked after every window, which bounds the delay of ctrl-C.
        self.context.check_interrupt()?;
        let limit = match self.end {
            End::Narrow(limit) => limit,
            End::Windows(windows) => {
                let over = self.windows >= windows;
                return Ok(over.then(|| outcome_of(&self.taken, self.context.settings.precision)));
            }
        };
        // Looks are scheduled, since a test after every window would stop too early by chance.
        if self.counted().len() >= self.next_look {
            let values = Values::new(self.counted().to_vec())?;
            match self.precision.look(&values) {
                Progress::Reached(_) => return Ok(Some(Outcome::Precise)),
                Progress::Continue { look_at, .. } => self.next_look = look_at,
            }
        }
        let enough = self.values.len() + self.missed >= LEAST_WINDOWS;
        let late = enough && self.begun.elapsed() >= limit;
        let empty = self.missed
            > MOST_MISSED_PER_VALUE * self.values.len().max(self.precision.first_look());
        Ok((late || empty).then_some(Outcome::BudgetSpent))
    }

    pub fn into_taken(self) -> Vec<Sample> {
        self.taken
    }
}

/// Decides whether a fixed number of samples is precise enough, by the same interval that reports
/// show.
pub fn outcome_of(samples: &[Sample], precision: f64) -> Outcome {
    let interval = Values::new(counted_values(samples.iter()))
        .and_then(|values| stopped_interval(&values, Confidence::P95))
        .map(|serial| serial.estimate.relative_half_width());
    match interval {
        Ok(width) if width <= precision => Outcome::Precise,
        _ => Outcome::BudgetSpent,
    }
}

/// Takes windows on the calling thread until the cell ends.
///
/// # Errors
/// The error of a window; [`MeasureError::Interrupted`] after the user's request to stop.
pub fn sample_here(
    samples: &mut Samples<'_>,
    mut window: impl FnMut(WindowLength) -> Result<WindowValues, MeasureError>,
) -> Result<Outcome, MeasureError> {
    loop {
        let before = ThreadSnapshot::take();
        let reading = window(samples.window_length())?;
        let disturbed = ThreadSnapshot::take().disturbance_since(&before);
        samples.push(&reading, disturbed.map(|reason| reason.to_string()));
        if let Some(outcome) = samples.ended()? {
            return Ok(outcome);
        }
    }
}

#[cfg(test)]
mod tests {
    use numalab_stats::median_interval_serial;

    use super::*;

    /// Returns the outcome of a cell and its number of windows if one window in `clean_of` is
    /// undisturbed; disturbed windows take ten times as long.
    fn ended(clean_of: u32) -> (Outcome, u32) {
        let context = MeasureContext::for_tests();
        let cell = CellId("one".to_owned());
        let mut samples = Samples::new(&context, &cell, Duration::from_secs(60));
        for window in 0..10_000 {
            let clean = clean_of > 0 && window % clean_of == 0;
            let noise = f64::from(window * 7919 % 101) / 100.0;
            let value = (100.0 + noise) * if clean { 1.0 } else { 10.0 };
            let values = vec![(Metric::Latency, value)];
            let reading = WindowValues { values, duration_ns: 1, work: 1 };
            samples.push(&reading, (!clean).then(|| "off-cpu".to_owned()));
            if let Some(outcome) = samples.ended().unwrap() {
                return (outcome, window + 1);
            }
        }
        panic!("no end after 10,000 windows");
    }

    #[test]
    fn disturbed_windows_alone_do_not_extend_a_cell() {
        let (quiet, windows) = ended(1);
        assert_eq!(quiet, Outcome::Precise);
        assert_eq!(ended(0), (Outcome::Precise, windows));
    }

    #[test]
    fn disturbed_windows_do_not_count_if_one_in_two_is_clean() {
        let (_, quiet) = ended(1);
        let (outcome, windows) = ended(2);
        assert_eq!(outcome, Outcome::Precise);
        assert!(windows >= 2 * quiet - 1, "{windows} windows, {quiet} where all are clean");
    }

    #[test]
    fn a_fixed_number_of_windows_is_precise_by_the_interval_that_reports_show() {
        let values: Vec<f64> = (0..60).map(|i| 100.0 + f64::from(i * 7919 % 101) / 20.0).collect();
        let sample = |value: &f64| Sample {
            cell: CellId("one".to_owned()),
            metric: Metric::Latency,
            index: 0,
            value: *value,
            start_ns: 0,
            duration_ns: 1,
            work: 1,
            disturbed: None,
        };
        let samples: Vec<Sample> = values.iter().map(sample).collect();
        let windows = Values::new(values).unwrap();
        let width = |found: Result<numalab_stats::SerialEstimate, _>| {
            found.map(|serial| serial.estimate.relative_half_width()).unwrap()
        };
        let shown = width(stopped_interval(&windows, Confidence::P95));
        let plain = width(median_interval_serial(&windows, Confidence::P95));
        assert!(plain < shown, "{plain} {shown}");
        assert_eq!(outcome_of(&samples, (plain + shown) / 2.0), Outcome::BudgetSpent);
        assert_eq!(outcome_of(&samples, shown), Outcome::Precise);
    }
}
