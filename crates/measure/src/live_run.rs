//! A run of a command: its facts, its context and its recorder.

use std::path::Path;
use std::time::Duration;

use numalab_host::{
    Interrupt, Root, UtcTime, base_pages, read_environment, transparent_huge_page_mode,
};
use numalab_record::{Cell, Document, Environment, Kind, Pages, Run};

use crate::context::{MeasureContext, Settings};
use crate::error::MeasureError;
use crate::memory_modules;
use crate::recorder::RunRecorder;
use crate::session::{Observer, Session, Tally};
use crate::store::StoreError;
use crate::target::Target;

/// The rules of a run as a command gives them.
#[derive(Clone, Copy, Debug)]
pub struct RunRules {
    /// Relative half width of the interval at which a cell ends.
    pub precision: f64,
    /// Time for all cells.
    pub budget: Duration,
    /// The seed; the time if absent.
    pub seed: Option<u64>,
}

impl Target {
    /// Returns a run of this target that has not started, by this version of numalab.
    pub fn run(&self, name: &str, label: Option<&str>, rules: RunRules, version: &str) -> Run {
        let started_unix_ms = UtcTime::now().unix_ms;
        Run {
            schema: Kind::Run.into(),
            name: name.to_owned(),
            label: label.map(str::to_owned),
            version: version.to_owned(),
            command: std::env::args().collect(),
            started_unix_ms,
            seed: rules.seed.unwrap_or(started_unix_ms),
            precision: rules.precision,
            budget_ns: u64::try_from(rules.budget.as_nanos()).unwrap_or(u64::MAX),
            environment: facts_now(),
            machine: self.machine.clone(),
            survey: None,
            launch: None,
            plan: Vec::new(),
        }
    }
}

/// Returns transparent huge pages if the kernel provides them, otherwise base pages.
pub fn usual_pages() -> Pages {
    match transparent_huge_page_mode(&Root::live()) {
        Some(mode) if mode != "never" => Pages::Transparent,
        _ => base_pages(),
    }
}

/// Reads facts about this system.
pub fn facts_now() -> Environment {
    let root = Root::live();
    let mut environment = read_environment(&root);
    environment.facts.extend(memory_modules::facts(&root));
    environment
}

/// Makes the observer of a phase with these cells.
pub type Observe<'a> = &'a mut dyn FnMut(&[Cell]) -> Box<dyn Observer>;

/// A run that is being measured.
#[derive(Debug)]
pub struct LiveRun {
    context: MeasureContext,
    recorder: RunRecorder,
}

impl LiveRun {
    /// Begins a run, kept in a new directory under `parent` if there is one. Signals end it.
    ///
    /// # Errors
    /// [`MeasureError`] if the clock cannot be used or the directory cannot be written.
    pub fn begin(mut run: Run, parent: Option<&Path>) -> Result<Self, MeasureError> {
        let context = context_of(&run)?;
        // Facts known only after the calibration.
        let facts = &mut run.environment.facts;
        facts.insert("clock_invariant".to_owned(), context.clock_is_invariant().into());
        if context.time_is_virtual() {
            let text = "virtual, per vCPU, as charged by the memory emulator";
            facts.insert("time".to_owned(), text.into());
        }
        Ok(Self { context, recorder: recorder_for(run, parent)? })
    }

    /// Continues the interrupted run in this directory, which must be of this system.
    ///
    /// # Errors
    /// [`MeasureError`] as [`begin`](Self::begin), or if the directory has no such run.
    pub fn resume(directory: &Path) -> Result<Self, MeasureError> {
        let recorder = RunRecorder::resumed(directory)?;
        recorder.check_same_system(&facts_now())?;
        Ok(Self { context: context_of(recorder.run())?, recorder })
    }

    /// Measures the cells of `first`, then the cells that `second` derives from their results,
    /// except those already recorded. The first phase leaves time in proportion for `later`, the
    /// expected cells of the second.
    ///
    /// # Errors
    /// [`MeasureError::Interrupted`], or [`MeasureError::Store`].
    pub fn measure(
        &mut self,
        (first, later): (&[Cell], &[Cell]),
        second: impl FnOnce(&Document) -> Vec<Cell>,
        observe: Observe<'_>,
    ) -> Result<Tally, MeasureError> {
        let mut tally = self.phase(first, later, &mut *observe)?;
        let second = second(&self.recorder.document());
        if !second.is_empty() {
            tally.add(self.phase(&second, &[], observe)?);
        }
        Ok(tally)
    }

    fn phase(
        &mut self,
        cells: &[Cell],
        later: &[Cell],
        observe: Observe<'_>,
    ) -> Result<Tally, MeasureError> {
        let mut observer = observe(cells);
        let mut session = Session::new(&self.context, &mut self.recorder, &mut *observer);
        session = session.before(later);
        session.run(cells)?;
        Ok(session.into_tally())
    }

    /// Returns the facts known before the first sample.
    pub fn run(&self) -> &Run {
        self.recorder.run()
    }

    /// Returns the directory of the results, if they are on disk.
    pub fn directory(&self) -> Option<&Path> {
        self.recorder.directory()
    }

    /// Returns everything recorded so far.
    pub fn document(&self) -> Document {
        self.recorder.document()
    }
}

/// Returns a recorder in memory, or in a new directory under `parent`.
///
/// # Errors
/// [`StoreError`] if the directory cannot be written.
pub fn recorder_for(run: Run, parent: Option<&Path>) -> Result<RunRecorder, StoreError> {
    match parent {
        Some(parent) => RunRecorder::in_directory(run, parent),
        None => Ok(RunRecorder::in_memory(run)),
    }
}

fn context_of(run: &Run) -> Result<MeasureContext, MeasureError> {
    let budget = Duration::from_nanos(run.budget_ns);
    let settings = Settings { seed: run.seed, precision: run.precision, budget };
    MeasureContext::new(run.machine.clone(), settings, Interrupt::install()?)
}
