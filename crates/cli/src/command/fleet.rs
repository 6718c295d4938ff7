//! `numalab fleet`.

use clap::Parser as _;
use numalab_fleet::{FleetError, Runs, Store, TaskPlan, plan_submission, slurm};
use numalab_host::note;
use numalab_page::number::count;
use numalab_record::shell::command_line;
use numalab_results::fleet::analyse;
use numalab_results::fleet::page::FleetReport;

use super::own::own_program;
use super::{Cli, Command, health};
use crate::args::{CollectArgs, FleetCommand, FleetReportArgs, SubmitArgs};
use crate::failure::Failure;
use crate::output;

/// Command that each host measures by default.
const MEASURE: [&str; 3] = ["measure", "--quick", "--quiet"];

/// Runs the subcommand.
pub(crate) fn run(command: &FleetCommand) -> Result<(), Failure> {
    match command {
        FleetCommand::Submit(args) => submit(args),
        FleetCommand::Collect(args) => collect_results(args),
        FleetCommand::Report(args) => report(args),
        FleetCommand::Health(args) => health::run(args),
    }
}

fn submit(args: &SubmitArgs) -> Result<(), Failure> {
    let hosts = slurm::hosts(args.partition.as_deref(), args.hosts.as_deref())?;
    let program = own_program()?;
    let directory = std::path::absolute(&args.directory)
        .map_err(|error| Failure::at(&args.directory, error))?;
    let measure = match args.measure.is_empty() {
        true => MEASURE.map(str::to_owned).to_vec(),
        false => args.measure.clone(),
    };
    check_measure(&measure)?;
    let plan = TaskPlan {
        directory: &directory,
        partition: args.partition.as_deref(),
        program: &program,
        measure: &measure,
        minutes: args.minutes,
        at_once: args.at_once,
        longest_array: slurm::longest_array(),
    };
    let submission = plan_submission(&hosts, &plan);
    if args.dry_run {
        return output::print(&submission.foreseen(&plan));
    }
    let jobs = submission.submit(&plan)?.into_iter();
    let jobs: String =
        jobs.map(|(job, hosts)| format!("job {job}: {}\n", count(hosts, "host"))).collect();
    output::print(&format!("{jobs}then: numalab fleet collect {}\n", args.directory.display()))
}

/// Checks the command that each host would run.
fn check_measure(measure: &[String]) -> Result<(), Failure> {
    let bad = |reason: &str| {
        let given = command_line(measure);
        let expected = "expected a measuring command of numalab, such as measure --quick";
        Failure::bad_input(format!("-- {given}: {reason}{expected}"))
    };
    let words = ["numalab"].into_iter().chain(measure.iter().map(String::as_str));
    let parsed = Cli::try_parse_from(words.chain(["--output", "DIR"])).map_err(|error| {
        let said = error.to_string();
        let said = said.lines().next().unwrap_or_default();
        bad(&format!("{}; ", said.trim_start_matches("error: ")))
    })?;
    match parsed.command {
        Command::Measure(_) | Command::Latency(_) | Command::Bandwidth(_) | Command::Kind(_) => {
            Ok(())
        }
        _ => Err(bad("")),
    }
}

fn collect_results(args: &CollectArgs) -> Result<(), Failure> {
    let path = args.store.clone().unwrap_or_else(|| Store::path_in(&args.directory));
    let runs = Runs::find(&args.directory)?;
    if args.dry_run {
        let store = path.exists().then(|| Store::open(&path)).transpose()?;
        let (new, unchanged) = runs.foreseen(store.as_ref());
        let path = path.display();
        return output::print(&format!(
            "{path}: {} to read, {unchanged} unchanged\n",
            count(new, "run")
        ));
    }
    if let (None, Some(earlier)) = (&args.store, Store::earlier_in(&args.directory)) {
        note(format!(
            "{}: a store of an earlier version; its runs are collected again",
            earlier.display()
        ));
    }
    let collected = runs.collect(&path)?;
    collected.failed.iter().for_each(note);
    collected.copies.iter().for_each(note);
    if output::quiet() {
        return Ok(());
    }
    output::print(&format!(
        "{}: {} read, {} unchanged, {} unreadable\n",
        path.display(),
        count(collected.read, "run"),
        collected.unchanged,
        collected.failed.len()
    ))
}

fn report(args: &FleetReportArgs) -> Result<(), Failure> {
    let path = args.store.clone().unwrap_or_else(|| Store::path_in(&args.directory));
    let earlier = Store::earlier_in(&args.directory).filter(|_| args.store.is_none());
    let (keys, hosts) = Store::open(earlier.as_ref().unwrap_or(&path))?.latest();
    if hosts.is_empty() {
        return Err(FleetError::NothingCollected { path }.into());
    }
    let analysis = analyse(&keys, &hosts);
    let name = args.directory.display().to_string();
    output::show(&FleetReport { name, analysis }, args.format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_no_host_could_run_is_refused_before_it_is_submitted() {
        let check =
            |line: &str| check_measure(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for measuring in ["measure --quick --quiet", "bandwidth --kernel read,triad --budget 30s"] {
            assert!(check(measuring).is_ok(), "{measuring}");
        }
        for (line, expected) in [
            ("rm -rf x", "unrecognized subcommand 'rm'"),
            ("measure --quik", "unexpected argument '--quik'"),
            ("compare a b", "measuring command"),
        ] {
            let said = check(line).expect_err(line);
            assert!(format!("{said:?}").contains(expected), "{said:?}");
        }
    }
}
