//! What a study would do.

use numalab_formats::size;
use numalab_host::{Interrupt, UtcTime};
use numalab_record::shell::command_line;
use numalab_record::study::Arm;
use numalab_study::{
    Backend, BackendError, Inspection, Level, Plan, Position, Scope, Study, open, parse, pilot,
};
use numalab_workload::Workload;

use super::settings;
use super::source::{self, Source};
use super::time;
use crate::args::{StudyChange, StudyPlanArgs};
use crate::failure::Failure;
use crate::output;

/// Blocks whose order is printed.
const SHOWN_BLOCKS: usize = 4;

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
        open(self.plan.study(), interrupt).map_err(|error| self.refused(error))
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
        source.study = parse(&source.text, name).map_err(Failure::bad_input)?;
    }
    planned(source, name)
}

/// The plan of a study that was made here, from its text.
pub(super) fn given(text: &str) -> Result<Ready, Failure> {
    let study = parse(text, "compare").map_err(Failure::bad_input)?;
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
    let ready = ready(&args.study, &args.change)?;
    if !args.pilot {
        return print(&ready);
    }
    let interrupt = Interrupt::install().map_err(numalab_host::Error::from)?;
    let backend = ready.backend(&interrupt)?;
    backend.inspect(&ready.scope()).map_err(|error| ready.refused(error))?;
    let time = pilot(&ready.plan, &ready.workloads, backend)?;
    let time = format!("about {}", time::words(time));
    output::print(&text(&ready, &time)?)
}

/// Prints what would be run; starts nothing and writes nothing.
pub(super) fn print(ready: &Ready) -> Result<(), Failure> {
    let time = time::stated(&ready.plan, &ready.workloads);
    output::print(&text(ready, &time)?)
}

fn text(ready: &Ready, time: &str) -> Result<String, Failure> {
    let backend = ready.backend(&Interrupt::never())?;
    let plan = &ready.plan;
    let study = plan.study();
    let mut text = format!("{}\n", study.question);
    text.extend(study.note.iter().map(|note| format!("{}\n", note.trim_end())));
    text.push_str(&format!("On: {}\n", backend.describe()));
    match backend.inspect(&ready.scope()) {
        Ok(inspection) => text.push_str(&inspected(&inspection)),
        Err(error @ BackendError::BadInput { .. }) => return Err(ready.refused(error)),
        Err(error) => text.push_str(&format!("It cannot be run now: {error}\n")),
    }
    text.push_str("\nTreatments, the baseline first\n");
    for (index, treatment) in plan.treatments().iter().enumerate() {
        text.push_str(&format!("  {}  {}\n", letter(index), treatment.name));
    }
    text.push_str(&sets(study));
    text.push_str("\nWorkloads\n");
    for workload in &ready.workloads {
        let command = command_line(&workload.command);
        text.push_str(&format!("  {}: {command}\n", workload.name));
        if let Some(service) = &workload.service {
            let command = command_line(&service.command);
            text.push_str(&format!("    service: {command}\n"));
        }
    }
    text.push_str(&format!("\nOrder, seed {}\n", plan.seed()));
    for block in 0..plan.blocks().min(SHOWN_BLOCKS) {
        text.push_str(&format!("  {}\n", order(plan, block)));
    }
    if plan.blocks() > SHOWN_BLOCKS {
        text.push_str(&format!("  ... and {} more blocks\n", plan.blocks() - SHOWN_BLOCKS));
    }
    let samples = plan.blocks() * plan.visits(0).len() * ready.workloads.len();
    text.push_str(&format!("\n{samples} samples in {} blocks, {time}\n", plan.blocks()));
    if let Some(sentence) = time::too_few(plan, &ready.workloads, backend.own_metrics()) {
        text.push_str(&format!("{sentence}\n"));
    }
    let decisions = time::decisions(plan, &ready.workloads, backend.own_metrics());
    text.push_str(&format!("\n{decisions}"));
    Ok(text)
}

/// What was found without fetching or booting anything.
fn inspected(inspection: &Inspection) -> String {
    let mut text: String = inspection.notices.iter().map(|notice| format!("{notice}\n")).collect();
    if inspection.memory_bytes > 0 {
        text.push_str(&format!(
            "Memory for guests: {}\n",
            size::format_rounded(inspection.memory_bytes)
        ));
    }
    if !inspection.downloads.is_empty() {
        let downloads = inspection.downloads.join(", ");
        text.push_str(&format!(
            "To be downloaded first: {downloads}; versions and sizes are not known until fetched\n"
        ));
    }
    text
}

/// What the levels set that have a name of their own.
fn sets(study: &Study) -> String {
    let mut text = String::new();
    for factor in &study.factors {
        for level in &factor.levels {
            let Level::Named(named) = level else { continue };
            let set: Vec<String> =
                named.set.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            text.push_str(&format!("  {}={}: {}\n", factor.name, named.name, set.join(", ")));
        }
    }
    if text.is_empty() { text } else { format!("\nLevels\n{text}") }
}

fn order(plan: &Plan, block: usize) -> String {
    let warm_ups = plan.study().rules.warm_ups;
    let name = match block.checked_sub(warm_ups) {
        None => format!("warm-up {}", block + 1),
        Some(block) => format!("block {}", block + 1),
    };
    let visits = plan.visits(block);
    let visit = |visit: &numalab_record::study::Visit| match visit.arm {
        Arm::Main => letter(visit.treatment),
        Arm::Again => format!("{} again", letter(visit.treatment)),
    };
    let visits: Vec<String> = visits.iter().map(visit).collect();
    format!("{name}: {}", visits.join(", "))
}

/// A, B, ..., Z, T27, T28.
fn letter(index: usize) -> String {
    match u8::try_from(index).ok().filter(|index| *index < 26) {
        Some(index) => char::from(b'A' + index).to_string(),
        None => format!("T{}", index + 1),
    }
}
