//! Windows until the interval is narrow, the time is over or the user stops.

use std::time::{Duration, Instant};

use numalab_host::ThreadSnapshot;
use numalab_record::{CellId, Metric, Outcome, Sample};
use numalab_stats::{Precision, Progress, Sample as Values};

use crate::context::MeasureContext;
use crate::error::MeasureError;

/// Disturbed windows are taken again until they outnumber the clean ones so
/// many times; then the machine is simply busy, and the cell says so.
const MOST_DISTURBED_PER_CLEAN: usize = 3;
/// Even a cell out of time takes so many windows: fewer have no interval.
const LEAST_WINDOWS: usize = 6;

/// What one window gave.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    /// Value by metric; the first decides when to stop.
    pub values: Vec<(Metric, f64)>,
    /// How long the window took.
    pub duration_ns: u64,
    /// What was done in it.
    pub work: u64,
}

/// The samples of one cell as they come in.
#[derive(Debug)]
pub(crate) struct Samples<'a> {
    context: &'a MeasureContext,
    cell: &'a CellId,
    precision: Precision,
    limit: Duration,
    begun: Instant,
    taken: Vec<Sample>,
    clean: Vec<f64>,
    windows: u32,
    disturbed: usize,
    next_look: usize,
}

impl<'a> Samples<'a> {
    /// No samples yet, and `limit` to take them in.
    pub fn new(context: &'a MeasureContext, cell: &'a CellId, limit: Duration) -> Self {
        let precision = context.precision;
        Self {
            context,
            cell,
            precision,
            limit,
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
        if self.clean.len() >= self.next_look {
            let values = Values::new(self.clean.clone())?;
            match self.precision.look(&values) {
                Progress::Reached(_) => return Ok(Some(Outcome::Precise)),
                Progress::Continue { look_at, .. } => self.next_look = look_at,
            }
        }
        let enough = self.clean.len() + self.disturbed >= LEAST_WINDOWS;
        let late = enough && self.begun.elapsed() >= self.limit;
        let busy = self.disturbed
            > MOST_DISTURBED_PER_CLEAN * self.clean.len().max(self.precision.first_look());
        Ok((late || busy).then_some(Outcome::BudgetSpent))
    }

    /// The samples taken.
    pub fn into_taken(self) -> Vec<Sample> {
        self.taken
    }
}

/// Takes windows on the calling thread until the cell ends.
pub(crate) fn sample_here(
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
