//! Windows until the interval is narrow, the time is over or the user stops.

use std::time::{Duration, Instant};

use numalab_host::ThreadSnapshot;
use numalab_record::{CellId, Metric, Outcome, Sample};
use numalab_stats::{Confidence, Precision, Progress, Sample as Values, stopped_interval};

use crate::context::MeasureContext;
use crate::error::MeasureError;

/// Disturbed windows are taken again until they outnumber the clean ones so
/// many times; then the machine is simply busy, and the cell says so.
const MOST_DISTURBED_PER_CLEAN: usize = 3;
/// Even a cell out of time takes so many windows: fewer have no interval.
const LEAST_WINDOWS: usize = 6;

/// What one window gave.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Value by metric; the first decides when to stop.
    pub values: Vec<(Metric, f64)>,
    /// How long the window took.
    pub duration_ns: u64,
    /// What was done in it.
    pub work: u64,
}

/// When a cell ends.
#[derive(Clone, Copy, Debug)]
enum End {
    /// When its interval is narrow, or after this long.
    Narrow(Duration),
    /// After so many windows.
    Windows(u32),
}

/// The samples of one cell as they come in.
#[derive(Debug)]
pub struct Samples<'a> {
    context: &'a MeasureContext,
    cell: &'a CellId,
    precision: Precision,
    end: End,
    begun: Instant,
    taken: Vec<Sample>,
    clean: Vec<f64>,
    windows: u32,
    disturbed: usize,
    next_look: usize,
}

impl<'a> Samples<'a> {
    /// No samples yet, and `limit` to take them in.
    #[must_use]
    pub fn new(context: &'a MeasureContext, cell: &'a CellId, limit: Duration) -> Self {
        Self::until(context, cell, End::Narrow(limit))
    }

    /// No samples yet, of so many windows whatever they show.
    #[must_use]
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
            clean: Vec::new(),
            windows: 0,
            disturbed: 0,
            next_look: precision.first_look(),
        }
    }

    /// Adds one window; `disturbed` was decided without looking at its values.
    pub fn push(&mut self, reading: &Reading, disturbed: Option<String>) {
        match (&disturbed, reading.values.first()) {
            (None, Some(&(_, value))) => self.clean.push(value),
            _ => self.disturbed += 1,
        }
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

    /// Counts a window that gave no value at all, so that a cell of nothing else ends.
    pub fn miss(&mut self) {
        self.disturbed += 1;
    }

    /// How the cell ends, if it ends now.
    ///
    /// # Errors
    /// [`MeasureError::Interrupted`] if the user asked to stop.
    pub fn ended(&mut self) -> Result<Option<Outcome>, MeasureError> {
        self.context.check_interrupt()?;
        let limit = match self.end {
            End::Narrow(limit) => limit,
            End::Windows(windows) => {
                let over = self.windows >= windows;
                return Ok(over.then(|| outcome_of(&self.taken, self.context.settings.precision)));
            }
        };
        if self.clean.len() >= self.next_look {
            let values = Values::new(self.clean.clone())?;
            match self.precision.look(&values) {
                Progress::Reached(_) => return Ok(Some(Outcome::Precise)),
                Progress::Continue { look_at, .. } => self.next_look = look_at,
            }
        }
        let enough = self.clean.len() + self.disturbed >= LEAST_WINDOWS;
        let late = enough && self.begun.elapsed() >= limit;
        let busy = self.disturbed
            > MOST_DISTURBED_PER_CLEAN * self.clean.len().max(self.precision.first_look());
        Ok((late || busy).then_some(Outcome::BudgetSpent))
    }

    /// The samples taken.
    #[must_use]
    pub fn into_taken(self) -> Vec<Sample> {
        self.taken
    }
}

/// Whether samples of a number of windows decided before are precise enough, by the interval
/// that reports show of them.
#[must_use]
pub fn outcome_of(samples: &[Sample], precision: f64) -> Outcome {
    let clean = samples.iter().filter(|sample| sample.disturbed.is_none());
    let interval = Values::new(clean.map(|sample| sample.value).collect::<Vec<f64>>())
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
/// What a window failed with; [`MeasureError::Interrupted`] if the user asked to stop.
pub fn sample_here(
    samples: &mut Samples<'_>,
    mut window: impl FnMut() -> Result<Reading, MeasureError>,
) -> Result<Outcome, MeasureError> {
    loop {
        let before = ThreadSnapshot::take();
        let reading = window()?;
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
