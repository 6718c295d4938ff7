//! `numalab fleet`.

use std::path::PathBuf;

use clap::{Args, Parser as _, Subcommand};
use numalab_fleet::{FleetError, Runs, Store, TaskPlan, plan_submission, slurm};
use numalab_host::note;
use numalab_page::number::count;
use numalab_record::shell::command_line;
use numalab_results::fleet::analyse;
use numalab_results::fleet::page::FleetReport;

use super::health::{self, HealthArgs};
use super::own::own_program;
use super::{Cli, Command};
use crate::args::{Format, value};
use crate::failure::Failure;
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab fleet submit --partition standard /scratch/fleet --dry-run
                                           the script and what would be submitted
  numalab fleet submit --partition standard /scratch/fleet
                                           a job array: about 10 s for each host, exclusively
  numalab fleet collect /scratch/fleet     new and changed results into fleet.jsonl
  numalab fleet report /scratch/fleet      outliers, and how their settings differ")]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    pub command: FleetCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Submit a SLURM job array that measures each host of a partition the same way
    Submit(SubmitArgs),
    /// Collect new and changed results into one file
    Collect(CollectArgs),
    /// Show outliers among hosts, packages and memory nodes
    Report(FleetReportArgs),
    /// Check in seconds whether this machine is as good as its baseline
    Health(HealthArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab fleet submit --partition standard /scratch/fleet --dry-run
  numalab fleet submit --hosts 'nid[001000-001063]' /scratch/fleet --at-once 16
  numalab fleet submit /scratch/fleet -- bandwidth --kernel read,triad --budget 30s

Results go to DIR/hosts/HOST/; every host must be able to access DIR and this program. Each task is
bound to one host and has it exclusively (--exclusive); hosts that are down or drained are skipped.")]
pub(crate) struct SubmitArgs {
    /// Directory of the fleet, on a file system shared by all hosts
    pub directory: PathBuf,
    /// The partition [default: SLURM's own default]
    #[arg(long, value_name = "NAME")]
    pub partition: Option<String>,
    /// Only these hosts, as SLURM writes them: n1,n2 or n[1-64]
    #[arg(long, value_name = "HOSTS")]
    pub hosts: Option<String>,
    /// Maximum number of hosts measured at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub at_once: Option<u32>,
    /// Time limit of each task in minutes
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub minutes: u32,
    /// Print the script and the commands; submit nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Command that each host runs: a measuring command of numalab [default: measure --quick]
    #[arg(last = true, value_name = "COMMAND")]
    pub measure: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  numalab fleet collect /scratch/fleet")]
pub(crate) struct CollectArgs {
    #[command(flatten)]
    pub place: FleetPlace,
    /// Show how many results would be read; write nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab fleet report /scratch/fleet
  numalab fleet report /scratch/fleet --format html > fleet.html
  numalab fleet report /scratch/fleet --format csv | sort -t, -k5 -g    one outlier per line")]
pub(crate) struct FleetReportArgs {
    #[command(flatten)]
    pub place: FleetPlace,
    /// Output format
    #[arg(long, default_value = "text", value_parser = value::format())]
    pub format: Format,
}

/// The results of a fleet.
#[derive(Debug, Args)]
pub(crate) struct FleetPlace {
    /// Directory of the fleet, with results in DIR/hosts/HOST/RUN/
    pub directory: PathBuf,
    /// The file [default: fleet.jsonl in DIR]
    #[arg(long, value_name = "FILE")]
    pub store: Option<PathBuf>,
}

impl FleetPlace {
    /// Returns the file, and an earlier version's file in the default place.
    fn files(&self) -> (PathBuf, Option<PathBuf>) {
        match &self.store {
            Some(store) => (store.clone(), None),
            None => (Store::path_in(&self.directory), Store::earlier_in(&self.directory)),
        }
    }
}

/// Command that each host measures by default.
const MEASURE: [&str; 3] = ["measure", "--quick", "--quiet"];

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
    let (path, earlier) = args.place.files();
    let runs = Runs::find(&args.place.directory)?;
    if args.dry_run {
        let store = path.exists().then(|| Store::open(&path)).transpose()?;
        return output::print(&format!("{}: {}\n", path.display(), runs.foreseen(store.as_ref())));
    }
    if let Some(earlier) = earlier {
        note(format!(
            "{}: a store of an earlier version; its runs are collected again",
            earlier.display()
        ));
    }
    let collected = runs.collect(&path)?;
    collected.failed.iter().for_each(note);
    collected.copies.iter().for_each(note);
    collected.expect_any(&args.place.directory)?;
    match output::quiet() {
        true => Ok(()),
        false => output::print(&format!("{}: {collected}\n", path.display())),
    }
}

fn report(args: &FleetReportArgs) -> Result<(), Failure> {
    let (path, earlier) = args.place.files();
    let (keys, hosts) = Store::open(earlier.as_ref().unwrap_or(&path))?.latest();
    if hosts.is_empty() {
        return Err(FleetError::NothingCollected { path }.into());
    }
    let analysis = analyse(&keys, &hosts);
    let name = args.place.directory.display().to_string();
    output::show_taken(&FleetReport { name, analysis }, args.format)
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
