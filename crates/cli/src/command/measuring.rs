//! Shared by measuring commands: the live machine, the run, the session, the results.

mod memory_modules;

use std::path::{Path, PathBuf};
use std::time::Duration;

use numalab_formats::mess;
use numalab_host::{
    Interrupt, Root, UtcTime, base_pages, note, read_environment, transparent_huge_page_mode,
};
use numalab_measure::{
    MeasureContext, MeasureError, RunRecorder, Session, Settings, Store, StoreError, Tally,
    check_plan,
};
use numalab_measure::{Scope, estimate_plan};
use numalab_record::{Cell, Document, Environment, Kind, Pages, Run};
use numalab_results::capture::{CurveFamily, curve_families};
use numalab_results::run::Summary;
use numalab_topology::{CpuSet, Finding, Machine, Severity};

use crate::args::{Measuring, Output, Rules, Selection, VERSION};
use crate::failure::{Code, Failure, code_of};
use crate::output;
use crate::progress::Progress;

/// The live machine and the part of it that a command measures.
pub(crate) struct Target {
    pub machine: Machine,
    pub scope: Scope,
    pub pages: Pages,
}

impl Target {
    /// Reads the machine and checks the selection against it.
    pub fn survey(selection: &Selection) -> Result<Self, Failure> {
        let machine = machine_here()?;
        let (cpus, nodes) = selection.among(&machine);
        let scope = Scope::new(&machine, cpus.as_ref(), nodes.as_ref());
        let scope = scope.map_err(MeasureError::from)?;
        if cpus.is_none()
            && let Some(isolated) = left_out(&machine)
        {
            note(format_args!(
                "cpus {isolated} are isolated, so they are left out; --cpus includes them"
            ));
        }
        let pages = selection.pages.unwrap_or_else(usual_pages);
        Ok(Self { machine, scope, pages })
    }
}

/// Reads the live machine, and warns of errors in the kernel's description of it.
pub(crate) fn machine_here() -> Result<Machine, Failure> {
    let reading = numalab_host::read_machine(&Root::live())?;
    warn_of(&reading.findings);
    Ok(reading.machine)
}

/// Returns the exit code for too few cpus: the user's fault if selected, otherwise the machine's.
pub(crate) fn too_few(selection: &Selection) -> Code {
    if selection.cpus.is_some() { Code::BadInput } else { Code::Lacking }
}

/// Returns transparent huge pages if the kernel provides them, otherwise base pages.
pub(crate) fn usual_pages() -> Pages {
    match transparent_huge_page_mode(&Root::live()) {
        Some(mode) if mode != "never" => Pages::Transparent,
        _ => base_pages(),
    }
}

/// Returns the isolated cpus that the process could ask for.
fn left_out(machine: &Machine) -> Option<&CpuSet> {
    let allowed = machine.allowed.as_ref()?;
    Some(&allowed.isolated).filter(|isolated| !isolated.is_empty())
}

fn warn_of(findings: &[Finding]) {
    for finding in findings.iter().filter(|finding| finding.severity != Severity::Note) {
        note(finding);
    }
}

/// Returns a run of `name` that has not started.
pub(crate) fn new_run(
    name: &str,
    target: &Target,
    rules: &Rules,
    output: &Output,
    usual_budget: Duration,
) -> Run {
    let started_unix_ms = UtcTime::now().unix_ms;
    let budget = rules.budget.unwrap_or(usual_budget);
    Run {
        schema: Kind::Run.into(),
        name: name.to_owned(),
        label: output.label.clone(),
        version: VERSION.to_owned(),
        command: std::env::args().collect(),
        started_unix_ms,
        seed: rules.seed.unwrap_or(started_unix_ms),
        precision: rules.precision,
        budget_ns: u64::try_from(budget.as_nanos()).unwrap_or(u64::MAX),
        environment: facts_now(),
        machine: target.machine.clone(),
        survey: None,
        launch: None,
        plan: Vec::new(),
    }
}

/// Reads facts about this system.
pub(crate) fn facts_now() -> Environment {
    let root = Root::live();
    let mut environment = read_environment(&root);
    environment.facts.extend(memory_modules::facts(&root));
    environment
}

/// Returns the context for measuring by the rules of `run`.
pub(crate) fn context_for(run: &Run) -> Result<MeasureContext, Failure> {
    let budget = Duration::from_nanos(run.budget_ns);
    let settings = Settings { seed: run.seed, precision: run.precision, budget };
    let interrupt = Interrupt::install()?;
    Ok(MeasureContext::new(run.machine.clone(), settings, interrupt)?)
}

/// Records facts known only after measuring: whether the clock keeps its rate, and how much of the
/// time others took.
pub(crate) fn note_clock(run: &mut Run, context: &MeasureContext) {
    let answer = if context.clock_is_invariant() { "yes" } else { "no" };
    let facts = &mut run.environment.facts;
    facts.insert("clock_invariant".to_owned(), answer.to_owned());
    if context.time_is_virtual() {
        let text = "virtual, per vCPU, as charged by the memory emulator".to_owned();
        facts.insert("time".to_owned(), text);
    }
}

/// Measures the cells of `first`, then the cells that `second` derives from their results, except
/// those already recorded. The first phase leaves time in proportion for `later`, the expected
/// cells of the second.
pub(crate) fn measure_phases(
    context: &MeasureContext,
    recorder: &mut RunRecorder,
    (first, later): (&[Cell], &[Cell]),
    second: impl FnOnce(&Document) -> Vec<Cell>,
) -> Result<Tally, MeasureError> {
    let mut tally = measure(context, recorder, (first, later))?;
    let second = second(&recorder.document());
    if !second.is_empty() {
        tally.add(measure(context, recorder, (&second, &[]))?);
    }
    Ok(tally)
}

fn measure(
    context: &MeasureContext,
    recorder: &mut RunRecorder,
    (cells, later): (&[Cell], &[Cell]),
) -> Result<Tally, MeasureError> {
    let mut progress = Progress::new(cells);
    let mut session = Session::new(context, recorder, &mut progress).before(later);
    session.run(cells)?;
    Ok(session.into_tally())
}

/// Runs a command from its plan to its printed results.
pub(crate) fn run_plan(
    name: &str,
    target: &Target,
    given: &Measuring,
    first: &[Cell],
    second: impl FnOnce(&Document) -> Vec<Cell>,
) -> Result<(Document, Option<PathBuf>), Failure> {
    let output = &given.output;
    let mut run = new_run(name, target, &given.rules, output, usual_budget(first));
    let context = context_for(&run)?;
    note_clock(&mut run, &context);
    let mut recorder = recorder_for(run, output.output.as_deref())?;
    let tally = measure_phases(&context, &mut recorder, (first, &[]), second)
        .map_err(|error| interrupted(error, &recorder))?;
    complain(&tally)?;
    Ok((recorder.document(), recorder.directory().map(Path::to_owned)))
}

/// Measures all cells of a command at once and prints the findings, or the plan.
pub(crate) fn run_cells(
    name: &str,
    target: &Target,
    given: &Measuring,
    cells: &[Cell],
) -> Result<(), Failure> {
    if given.output.dry_run {
        return print_plan(cells, &given.rules, usual_budget(cells));
    }
    let (document, directory) = run_plan(name, target, given, cells, |_| Vec::new())?;
    deliver(&document, directory.as_deref(), &given.output)
}

/// Returns the time limit for a plan on a disturbed machine, unless `--budget` gives one.
pub(crate) fn usual_budget(plan: &[Cell]) -> Duration {
    const LEAST: Duration = Duration::from_secs(20);
    (estimate_plan(plan) * 4).max(LEAST)
}

/// Returns a recorder in memory, or in a new directory under `parent`.
pub(crate) fn recorder_for(run: Run, parent: Option<&Path>) -> Result<RunRecorder, StoreError> {
    match parent {
        Some(parent) => RunRecorder::in_directory(run, parent),
        None => Ok(RunRecorder::in_memory(run)),
    }
}

/// Returns the failure of a run that was interrupted.
pub(crate) fn interrupted(error: MeasureError, recorder: &RunRecorder) -> Failure {
    let (MeasureError::Interrupted, Some(directory)) = (&error, recorder.directory()) else {
        return error.into();
    };
    let directory = directory.display();
    let advice = match recorder.run().name.as_str() {
        "measure" => format!("; continue with:\n  numalab measure --resume {directory}"),
        _ => String::new(),
    };
    Failure::new(Code::Failed, format!("interrupted; what was measured is in {directory}{advice}"))
}

/// Fails if nothing could be measured; reports what could not be.
pub(crate) fn complain(tally: &Tally) -> Result<(), Failure> {
    let Some((class, reason)) = &tally.first_failure else { return Ok(()) };
    if tally.precise + tally.budget_spent == 0 {
        return Err(Failure::new(code_of(*class), reason));
    }
    note(format_args!("{} of the cells could not be measured, the first: {reason}", tally.failed));
    Ok(())
}

/// Prints the results, and writes the reports if there is a directory.
pub(crate) fn deliver(
    document: &Document,
    directory: Option<&Path>,
    output: &Output,
) -> Result<(), Failure> {
    if let Some(directory) = directory {
        write_reports(document, directory)?;
    }
    output::show(&Summary::of(document), output.format)
}

/// Writes `report.md` and `report.html` into a result directory, and load curves in the format of
/// Mess.
pub(crate) fn write_reports(
    document: &Document,
    directory: &Path,
) -> Result<[PathBuf; 2], Failure> {
    let summary = Summary::of(document);
    let written = output::write_pages(&summary, directory)?;
    for CurveFamily { node, from, curves } in curve_families(&summary) {
        // Some tools would read a comma as a separator of two files.
        let from = from.to_string().replace(',', "+");
        let name = format!("memory_curves-node{node}-from-node{from}.csv");
        Store::write_file(directory, &name, &mess::write(&curves))?;
    }
    Ok(written)
}

/// Prints what would be measured and how long it takes; fails where the run would.
pub(crate) fn print_plan(
    cells: &[Cell],
    rules: &Rules,
    usual_budget: Duration,
) -> Result<(), Failure> {
    check_plan(cells)?;
    let mut text = String::new();
    for cell in cells {
        text.push_str(&cell.id.0);
        text.push('\n');
    }
    let seconds = estimate_plan(cells).as_secs_f64();
    let most = rules.budget.unwrap_or(usual_budget).as_secs_f64();
    text.push_str(&format!(
        "{} cells, about {seconds:.0} s where nothing disturbs them, at most {most:.0} s\n",
        cells.len()
    ));
    output::print(&text)
}
