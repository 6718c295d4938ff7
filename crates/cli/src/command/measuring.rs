//! Parts shared by measuring commands: the live machine, the run, the session, the results.

use std::path::{Path, PathBuf};
use std::time::Duration;

use numalab_formats::mess;
use numalab_host::{CpuQuota, Root, cpu_quota, current_affinity, note};
use numalab_measure::{
    LiveRun, MeasureError, RunRules, Scope, Store, Tally, Target, check_plan, estimate_plan,
    impossible_cells, usual_budget, usual_pages,
};
use numalab_record::{Cell, Document, Run};
use numalab_results::capture::curve_families;
use numalab_results::run::Summary;
use numalab_topology::{CpuSet, Finding, Machine, Severity, count};

use crate::args::{Measuring, Output, Rules, Selection, VERSION};
use crate::failure::{Code, Failure};
use crate::output;
use crate::progress::Progress;

/// Reads the machine and checks the selection against it.
pub(crate) fn survey(selection: &Selection) -> Result<Target, Failure> {
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
    warn_of_quota(&machine);
    let pages = selection.pages.unwrap_or_else(usual_pages);
    Ok(Target { machine, scope, pages })
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

/// Returns the isolated cpus that the process could request.
fn left_out(machine: &Machine) -> Option<&CpuSet> {
    let allowed = machine.allowed.as_ref()?;
    Some(&allowed.isolated).filter(|isolated| !isolated.is_empty())
}

/// Returns the limit of cpu time if it is below that of this number of cpus.
fn quota_below(usable: usize) -> Option<CpuQuota> {
    cpu_quota(&Root::live()).filter(|quota| quota.limits(usable))
}

/// Warns of a limit of cpu time below that of all cpus on which the process may run.
fn warn_of_quota(machine: &Machine) {
    let usable = machine.usable_cpus().len();
    if let Some(quota) = quota_below(usable) {
        let (CpuQuota { cpus, file }, usable) = (quota, count(usable, "cpu"));
        note(format_args!(
            "{file} allows the time of only {cpus} of {usable}: the kernel stops threads that use \
             more, so measure outside this control group, or on fewer cpus with --cpus"
        ));
    }
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
    let Rules { precision, budget, seed } = rules.clone();
    let rules = RunRules { precision, budget: budget.unwrap_or(usual_budget), seed };
    target.run(name, output.label.as_deref(), rules, VERSION)
}

/// Measures with a bar of progress for each phase.
pub(crate) fn measure(
    live: &mut LiveRun,
    phases: (&[Cell], &[Cell]),
    second: impl FnOnce(&Document) -> Vec<Cell>,
) -> Result<Tally, Failure> {
    let usable = current_affinity().map_or(usize::MAX, |cpus| cpus.len());
    let is_limited = quota_below(usable).is_some();
    let measured =
        live.measure(phases, second, &mut |cells| Box::new(Progress::new(cells, is_limited)));
    measured.map_err(|error| interrupted(error, live))
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
    let run = new_run(name, target, &given.rules, output, usual_budget(first));
    let mut live = LiveRun::begin(run, output.output.as_deref())?;
    complain(&measure(&mut live, (first, &[]), second)?)?;
    Ok((live.document(), live.directory().map(Path::to_owned)))
}

/// Measures all cells of a command together and prints the findings, or the plan.
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

fn interrupted(error: MeasureError, live: &LiveRun) -> Failure {
    let (MeasureError::Interrupted, Some(directory)) = (&error, live.directory()) else {
        return error.into();
    };
    let directory = directory.display();
    let advice = match live.run().name.as_str() {
        "measure" => format!("; continue with:\n  numalab measure --resume {directory}"),
        _ => String::new(),
    };
    Failure::new(Code::Failed, format!("interrupted; what was measured is in {directory}{advice}"))
}

/// Fails if nothing could be measured; reports the cells that could not be measured.
pub(crate) fn complain(tally: &Tally) -> Result<(), Failure> {
    if let Some((class, reason)) = tally.nothing_measured() {
        return Err(Failure::new(*class, reason));
    }
    let Some((_, reason)) = &tally.first_failure else { return Ok(()) };
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
    for family in curve_families(&summary) {
        Store::write_file(directory, &family.file_name(), &mess::write(&family.curves))?;
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
        "{}, about {seconds:.0} s where nothing disturbs them, at most {most:.0} s\n",
        count(cells.len(), "cell")
    ));
    output::print(&text)?;
    if let Some((impossible, reason)) = impossible_cells(cells) {
        note(format_args!("{impossible} of the cells cannot be measured, the first: {reason}"));
    }
    Ok(())
}
