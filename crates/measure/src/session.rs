//! Measures cells in order within the budget, and records each as soon as it ends.

use numalab_host::{ErrorClass, expect_threads};
use numalab_record::{Cell, Outcome, Sample};

use crate::chase::MOST_BUILDERS;
use crate::context::MeasureContext;
use crate::error::MeasureError;
use crate::kind::{Together, measurement};
use crate::measured::Measured;
use crate::plan::{estimate_unsampled, shared_runs};
use crate::recorder::RunRecorder;
use crate::share::Share;

/// Observes the progress of a session, such as a progress bar.
pub trait Observer {
    /// Receives cells that share their buffers before they are measured.
    fn starting(&mut self, cells: &[Cell]);
    /// Receives a cell with its samples after it has ended and been recorded.
    fn finished(&mut self, cell: &Cell, samples: &[Sample]);
}

/// Ignores all progress.
impl Observer for () {
    fn starting(&mut self, _: &[Cell]) {}
    fn finished(&mut self, _: &Cell, _: &[Sample]) {}
}

/// Counts of the outcomes of cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Cells with an interval that became narrow enough.
    pub precise: usize,
    /// Cells that ran out of time first.
    pub budget_spent: usize,
    /// Cells that could not be measured.
    pub failed: usize,
    /// Cells not begun because the budget was spent.
    pub unmeasured: usize,
    /// The first failure's class, and its cell and reason.
    pub first_failure: Option<(ErrorClass, String)>,
}

impl Tally {
    /// Returns the first failure's class and message if nothing could be measured.
    pub fn nothing_measured(&self) -> Option<&(ErrorClass, String)> {
        self.first_failure.as_ref().filter(|_| self.precise + self.budget_spent == 0)
    }
}

pub struct Session<'a> {
    context: &'a MeasureContext,
    recorder: &'a mut RunRecorder,
    observer: &'a mut dyn Observer,
    later: &'a [Cell],
    tally: Tally,
}

impl<'a> Session<'a> {
    /// Creates a session that records its cells.
    pub fn new(
        context: &'a MeasureContext,
        recorder: &'a mut RunRecorder,
        observer: &'a mut dyn Observer,
    ) -> Self {
        Self { context, recorder, observer, later: &[], tally: Tally::default() }
    }

    /// Reserves time for the cells of a later session.
    pub fn before(self, later: &'a [Cell]) -> Self {
        Self { later, ..self }
    }

    /// Measures the cells of `plan` that are not recorded yet.
    ///
    /// # Errors
    /// [`MeasureError::Interrupted`], [`MeasureError::Store`], or too few threads; the failure of a cell
    /// is its outcome, not an error.
    pub fn run(&mut self, plan: &[Cell]) -> Result<(), MeasureError> {
        self.recorder.extend_plan(plan)?;
        let done = self.recorder.done();
        let left: Vec<Cell> =
            plan.iter().filter(|cell| !done.contains(&cell.id)).cloned().collect();
        let workers = left.iter().map(|cell| cell.experiment.workers().len()).max();
        if let Some(workers) = workers {
            let builders = self.context.machine.online_cpus().len().min(MOST_BUILDERS);
            expect_threads(workers + builders)?;
        }
        let mut rest = &left[..];
        for together in shared_runs(&left) {
            let left = self.context.time_left();
            if left.is_zero() {
                self.tally.unmeasured += rest.len();
                break;
            }
            rest = &rest[together.len()..];
            let left = (left, self.context.budget().part());
            let share = Share::of(left, together, [rest, self.later], estimate_unsampled);
            self.run_together(together, &share)?;
        }
        Ok(())
    }

    pub fn into_tally(self) -> Tally {
        self.tally
    }

    fn run_together(&mut self, cells: &[Cell], share: &Share<'_>) -> Result<(), MeasureError> {
        self.observer.starting(cells);
        let context = self.context;
        let mut given = 0;
        let mut give = |cell: &Cell, measured: Measured| {
            given += 1;
            self.keep(cell, &measured)
        };
        let first = measurement(&cells[0].experiment);
        let ran = first.run(Together { context, cells, share }, &mut give);
        let rest = cells.get(given..).unwrap_or_default();
        match ran {
            Ok(()) => {
                // Cells that the budget did not reach.
                self.tally.unmeasured += rest.len();
                Ok(())
            }
            Err(error @ (MeasureError::Interrupted | MeasureError::Store(_))) => Err(error),
            Err(error) => self.without_largest(rest, &error, share),
        }
    }

    /// Records cells without buffers, and measures the smaller ones: shared buffers are as large as
    /// the largest cell requires.
    fn without_largest(
        &mut self,
        cells: &[Cell],
        error: &MeasureError,
        share: &Share<'_>,
    ) -> Result<(), MeasureError> {
        let size = |cell: &Cell| cell.experiment.description().axes().size_bytes;
        let largest = cells.iter().map(size).max().flatten();
        let (lost, left): (Vec<Cell>, Vec<Cell>) =
            cells.iter().cloned().partition(|cell| size(cell) == largest);
        lost.iter().try_for_each(|cell| self.keep(cell, &Measured::failed(cell, error)))?;
        if left.is_empty() { Ok(()) } else { self.run_together(&left, share) }
    }

    /// Counts and records an ended cell, and notifies the observer.
    fn keep(&mut self, cell: &Cell, measured: &Measured) -> Result<(), MeasureError> {
        self.tally.count(measured);
        self.recorder.record(&measured.finished, &measured.samples)?;
        self.observer.finished(cell, &measured.samples);
        Ok(())
    }
}

impl Tally {
    /// Adds the counts of `other`.
    pub fn add(&mut self, other: Self) {
        self.precise += other.precise;
        self.budget_spent += other.budget_spent;
        self.failed += other.failed;
        self.unmeasured += other.unmeasured;
        self.first_failure = self.first_failure.take().or(other.first_failure);
    }

    fn count(&mut self, measured: &Measured) {
        match &measured.finished.outcome {
            Outcome::Precise => self.precise += 1,
            Outcome::BudgetSpent => self.budget_spent += 1,
            Outcome::Failed { reason } => {
                self.failed += 1;
                let class = measured.failure.unwrap_or(ErrorClass::Failed);
                let named = || format!("{}: {reason}", measured.finished.cell);
                self.first_failure.get_or_insert_with(|| (class, named()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use numalab_record::{CoreCell, Experiment};
    use numalab_topology::CpuId;

    use super::*;

    fn counted(outcomes: &[(u32, Result<Outcome, MeasureError>)]) -> Tally {
        let mut tally = Tally::default();
        for (cpu, outcome) in outcomes {
            let cell = Cell::of(Experiment::Core(CoreCell { cpu: CpuId(*cpu) }));
            let measured = match outcome {
                Ok(outcome) => Measured::new(&cell, outcome.clone(), Vec::new(), Vec::new()),
                Err(error) => Measured::failed(&cell, error),
            };
            tally.count(&measured);
        }
        tally
    }

    #[test]
    fn outcomes_are_counted_and_the_first_failure_is_kept_with_its_cell() {
        let tally = counted(&[
            (0, Ok(Outcome::Precise)),
            (1, Err(MeasureError::OneTier)),
            (2, Ok(Outcome::BudgetSpent)),
            (3, Err(MeasureError::Interrupted)),
        ]);
        assert_eq!((tally.precise, tally.budget_spent, tally.failed), (1, 1, 2));
        let (_, message) = tally.first_failure.clone().expect("a failure");
        assert_eq!(message, format!("core/cpu1: {}", MeasureError::OneTier));
        assert_eq!(tally.nothing_measured(), None, "two cells have figures");
    }

    #[test]
    fn a_run_of_failures_alone_has_measured_nothing() {
        let tally = counted(&[(0, Err(MeasureError::OneTier)), (1, Err(MeasureError::OneTier))]);
        let (_, message) = tally.nothing_measured().expect("a failure");
        assert!(message.starts_with("core/cpu0: "), "{message}");
    }

    #[test]
    fn the_counts_of_two_sessions_add_up_and_the_earlier_failure_stays() {
        let mut first = counted(&[(0, Err(MeasureError::OneTier)), (1, Ok(Outcome::Precise))]);
        let second = Tally { unmeasured: 3, ..counted(&[(2, Err(MeasureError::Interrupted))]) };
        first.add(second);
        assert_eq!((first.precise, first.failed, first.unmeasured), (1, 2, 3));
        assert!(first.first_failure.is_some_and(|(_, message)| message.starts_with("core/cpu0")));
    }
}
