//! Measuring commands as ranks.

use std::path::Path;
use std::time::Duration;

use numalab_host::{Classed, note};
use numalab_launch::identity::{Identity, Role, Task as RankTask};
use numalab_launch::session::{Findings, SessionPlan, Surroundings, Work, run as measure};
use numalab_launch::suite;
use numalab_launch::team::Team;
use numalab_measure::{Target, recorder_for, usual_pages};
use numalab_record::{Document, Launch, Pages, Run};
use numalab_results::Report;
use numalab_results::run::Summary;
use numalab_results::scaling::RanksReport;

use super::measuring::{new_run, survey, write_reports};
use super::own;
use crate::args::{Format, Measuring, Output, RankArgs, Selection};
use crate::failure::{Code, Failure};
use crate::output;

/// Ranks always measure the requested number of windows.
const NO_BUDGET: Duration = Duration::ZERO;

/// The work that a command gives its ranks, in addition to what all commands share.
pub(crate) struct Task<'a> {
    pub name: &'static str,
    pub work: Work,
    pub sizes_bytes: Vec<u64>,
    pub serial: bool,
    pub given: &'a Measuring,
    pub ranks: &'a RankArgs,
}

/// Measures with `here`, as ranks with `task`, or starts this command again as ranks. With `--csv`,
/// a process without a launcher is the only rank.
pub(crate) fn run<'a>(
    args: &RankArgs,
    output: &Output,
    here: impl FnOnce() -> Result<(), Failure>,
    task: impl FnOnce() -> Result<Task<'a>, Failure>,
) -> Result<(), Failure> {
    match Role::of_own(args.ranks)? {
        Role::Alone if args.csv.is_none() => here(),
        Role::Alone => run_rank(task()?, &RankTask::of_own(0, 1).identity()?),
        Role::Rank(rank) => run_rank(task()?, &rank.identity()?),
        Role::Starter(ranks) if output.dry_run => {
            output::print(&format!("{ranks} ranks on this machine, one on each core\n"))
        }
        Role::Starter(ranks) => match own::start_ranks(ranks)? {
            0 => Ok(()),
            // The rank has already printed its error.
            code => Err(Failure::of_rank(code)),
        },
    }
}

fn run_rank(task: Task<'_>, identity: &Identity) -> Result<(), Failure> {
    let target = survey(&Selection { cpus: None, nodes: None, ..task.given.selection.clone() })?;
    let plan = plan(&task, &target)?;
    if task.given.output.dry_run {
        return match identity.rank {
            0 => output::print(&plan.foreseen(identity)),
            _ => Ok(()),
        };
    }
    let look = |name: &str| std::env::var(name).ok();
    let joined = Team::join(identity, &task.ranks.meet, &look);
    let mut team = joined.map_err(|error| rank_failure(identity, &error))?;
    let render = |document: &Document| Summary::of(document).json();
    let around = Surroundings { identity, machine: &target.machine, look: &look, render };
    let mut begin = |team: &Team, launch: Launch| {
        if !output::quiet() && task.given.output.format == Format::Text {
            // A closed pipe is reported at the end.
            let _ = output::print(&suite::debug_block(&target.machine, identity, team));
        }
        let run = new_run(task.name, &target, &task.given.rules, &task.given.output, NO_BUDGET);
        let run = Run { seed: plan.seed, launch: Some(launch), ..run };
        Ok(recorder_for(run, task.given.output.output.as_deref())?)
    };
    let outcome = measure(&mut team, around, &plan, &mut begin);
    let findings = outcome.map_err(|error| match error.is_of_another_rank() {
        true => Failure::of_rank(1),
        false => rank_failure(identity, &error),
    })?;
    team.part().map_err(|error| rank_failure(identity, &error))?;
    match findings {
        Some(findings) => deliver(&findings, &task.given.output),
        None => Ok(()),
    }
}

fn rank_failure(identity: &Identity, error: &impl Classed) -> Failure {
    Failure::new(error.class(), format!("[Rank {}] {error}", identity.rank))
}

fn plan(task: &Task<'_>, target: &Target) -> Result<SessionPlan, Failure> {
    let (cpus, nodes) = task.given.selection.among(&target.machine);
    let node = match nodes {
        None => None,
        Some(nodes) if nodes.len() == 1 => nodes.first(),
        Some(nodes) => {
            let message = format!(
                "--nodes {nodes}: expected one node for all ranks; a node for each: \
                 numalab bind --numa={nodes} -- numalab latency"
            );
            return Err(Failure::bad_input(message));
        }
    };
    // All ranks must draw from the same seed, and their clocks differ.
    let seed = task.given.rules.seed.unwrap_or(0);
    let csv = task.ranks.csv.as_deref().map(Path::to_owned);
    if csv.as_ref().is_some_and(|csv| csv.file_name().is_none()) {
        return Err(Failure::bad_input("--csv: expected the name of a file"));
    }
    Ok(SessionPlan {
        work: task.work.clone(),
        sizes_bytes: task.sizes_bytes.clone(),
        pages: target.pages,
        serial: task.serial,
        seed,
        precision: task.given.rules.precision,
        cpus,
        node,
        overcommit: task.ranks.overcommit,
        csv,
    })
}

/// Writes the reports if there is a directory, and prints the results of the ranks: in the suite's
/// format, or as the page of a run.
fn deliver(findings: &Findings, output: &Output) -> Result<(), Failure> {
    let Findings { recorder, document, table, memory } = findings;
    if let Some(directory) = recorder.directory() {
        write_reports(document, directory)?;
    }
    let summary = &Summary::of(document);
    let report = RanksReport { summary, table, memory, csv: suite::csv(table) };
    report.shortfalls().iter().for_each(note);
    output::show(&report, output.format)
}

pub(crate) fn pages(selection: &Selection) -> Pages {
    selection.pages.unwrap_or_else(usual_pages)
}

/// Returns the only stream kernel; ranks do not take several.
pub(crate) fn one<T: Copy>(given: &[T], default: T) -> Result<T, Failure> {
    match given {
        [] => Ok(default),
        [one] => Ok(*one),
        _ => Err(Failure::new(Code::BadInput, "--kernel: expected one kernel with ranks")),
    }
}
