//! `numalab fleet`.

use numalab_fleet::{FleetError, Runs, Store, TaskPlan, plan_submission, slurm};
use numalab_host::note;
use numalab_page::number::count;
use numalab_results::fleet::analyse;
use numalab_results::fleet::page::FleetReport;

use super::health;
use super::own::own_program;
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
