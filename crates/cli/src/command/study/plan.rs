//! What a study would do.

use numalab_host::{Interrupt, UtcTime};
use numalab_places::BACKENDS;
use numalab_record::study::PlannedStudy;
use numalab_study::{
    Backend, BackendError, Plan, Position, Scope, Study, foreseen, parse, stated_time,
};
use numalab_workload::Workload;

use super::settings;
use super::source::{self, Source};
use crate::args::{Format, StudyChange, StudyPlanArgs};
use crate::failure::Failure;
use crate::output;

/// A study that can be run.
pub(super) struct Ready {
    pub plan: Plan,
    pub workloads: Vec<Workload>,
    /// The study's text.
    pub text: String,
    /// The file that it is from, or the bundled study.
    pub origin: String,
}

impl Ready {
    /// The backend that the study names.
    pub fn backend(&self, interrupt: &Interrupt) -> Result<Box<dyn Backend>, Failure> {
        BACKENDS.open(self.plan.study(), interrupt).map_err(|error| self.refused(error))
    }

    /// What the study asks of a backend.
    pub fn scope(&self) -> Scope<'_> {
        Scope { treatments: self.plan.treatments(), workloads: &self.workloads }
    }

    /// Bad input is shown where it stands in the study's text.
    pub fn refused(&self, error: BackendError) -> Failure {
        match &error {
            BackendError::BadInput { place, .. } => {
                let at = Position::of(place, &self.text);
                let at = at.map_or_else(String::new, |at| at.to_string());
                Failure::bad_input(format!("{}{at}: {error}", self.origin))
            }
            _ => error.into(),
        }
    }
}

/// Reads a study and makes its plan, with what the command line changes.
pub(super) fn ready(name: &str, change: &StudyChange) -> Result<Ready, Failure> {
    let mut source = source::read(name)?;
    apply(&mut source.study, change)?;
    if settings::apply(&mut source.study, &change.set)? {
        // What is kept with the results is the study that was run.
        source.text = source.study.to_toml().map_err(Failure::bad_input)?;
        source.study = parse(&source.text, name, BACKENDS).map_err(Failure::bad_input)?;
    }
    planned(source, name)
}

/// The plan of a study that was made here, from its text.
pub(super) fn given(text: &str) -> Result<Ready, Failure> {
    let study = parse(text, "compare", BACKENDS).map_err(Failure::bad_input)?;
    planned(Source { study, text: text.to_owned() }, "compare")
}

fn planned(source: Source, origin: &str) -> Result<Ready, Failure> {
    let workloads = source.study.resolved().map_err(Failure::bad_input)?;
    // Any number will do; the clock gives one that nobody chose.
    let seed = source.study.rules.seed.unwrap_or_else(|| UtcTime::now().unix_ms);
    let (plan, origin) = (Plan::new(source.study, seed), origin.to_owned());
    Ok(Ready { plan, workloads, text: source.text, origin })
}

fn apply(study: &mut Study, change: &StudyChange) -> Result<(), Failure> {
    let rules = &mut study.rules;
    rules.blocks = change.blocks.unwrap_or(rules.blocks);
    rules.seed = change.seed.or(rules.seed);
    rules.budget_s = change.budget.map(|budget| budget.as_secs_f64()).or(rules.budget_s);
    rules.precision_percent =
        change.precision.map(|ratio| 100.0 * ratio).or(rules.precision_percent);
    Ok(())
}

/// `numalab study plan`.
pub(super) fn run(args: &StudyPlanArgs) -> Result<(), Failure> {
    print(&ready(&args.study, &args.change)?, 0, args.format)
}

/// Prints what would be run, with how many samples were taken before; starts nothing and writes nothing.
pub(super) fn print(ready: &Ready, taken: usize, format: Format) -> Result<(), Failure> {
    let time = stated_time(&ready.plan, &ready.workloads);
    let backend = ready.backend(&Interrupt::never())?;
    let planned = foreseen(&ready.plan, &ready.workloads, backend.as_ref(), time)
        .map_err(|error| ready.refused(error))?;
    output::show(&PlannedStudy { taken, ..planned }, format)
}
