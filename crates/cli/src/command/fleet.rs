//! `numalab fleet`.

use std::fs;
use std::path::{Path, PathBuf};

use numalab_fleet::{
    FleetError, Runs, Store, Submission, SubmitError, TaskPlan, plan_submission, slurm,
};
use numalab_host::note;
use numalab_results::fleet::analyse;
use numalab_results::fleet::page::FleetReport;

use super::health;
use super::own::own_program;
use crate::args::{CollectArgs, FleetCommand, FleetReportArgs, SubmitArgs};
use crate::failure::{Code, Failure};
use crate::output;

/// Command that each host measures by default.
const MEASURE: [&str; 3] = ["measure", "--quick", "--quiet"];

/// Name of the store in the fleet's directory.
const STORE: &str = "fleet.jsonl";
/// Name of the store in earlier versions.
const EARLIER_STORE: &str = "fleet.sqlite";

/// Runs the subcommand.
pub(crate) fn run(command: &FleetCommand) -> Result<(), Failure> {
    match command {
        FleetCommand::Submit(args) => submit(args),
        FleetCommand::Collect(args) => collect_results(args),
        FleetCommand::Report(args) => report(args),
        FleetCommand::Health(args) => health::run(args),
    }
}

impl From<FleetError> for Failure {
    fn from(error: FleetError) -> Self {
        let code = match error {
            FleetError::Store { .. } | FleetError::Line { .. } => Code::Failed,
            _ => Code::BadInput,
        };
        Self::new(code, error)
    }
}

impl From<SubmitError> for Failure {
    fn from(error: SubmitError) -> Self {
        let code = match error {
            SubmitError::Absent { .. } | SubmitError::NoCluster { .. } => Code::Lacking,
            SubmitError::Failed { .. } => Code::Failed,
            SubmitError::NoHosts { .. } => Code::BadInput,
        };
        Self::new(code, error)
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
    let script = directory.join("fleet.sh");
    if args.dry_run {
        return output::print(&dry_run(&submission, &plan, &script));
    }
    for part in ["hosts", "log"] {
        let path = directory.join(part);
        fs::create_dir_all(&path).map_err(|error| Failure::at(&path, error))?;
    }
    fs::write(&script, &submission.script).map_err(|error| Failure::at(&script, error))?;
    let mut text = String::new();
    for array in &submission.arrays {
        let job = slurm::submit(&submission.sbatch(array, &plan, &script))?;
        slurm::control(&Submission::bindings(array, &job)).map_err(|error| {
            Failure::new(Code::Failed, format!("{error}; job {job} is held: scancel {job}"))
        })?;
        text.push_str(&format!("job {job}: {} hosts\n", array.len()));
    }
    text.push_str(&format!("then: numalab fleet collect {}\n", args.directory.display()));
    output::print(&text)
}

fn dry_run(submission: &Submission, plan: &TaskPlan<'_>, script: &Path) -> String {
    let mut text = format!("# {}\n{}\n", script.display(), submission.script);
    for array in &submission.arrays {
        let arguments = submission.sbatch(array, plan, script).join(" ");
        text.push_str(&format!("# {} hosts\nsbatch {arguments}\nscontrol <<END\n", array.len()));
        text.push_str(&Submission::bindings(array, "JOB"));
        text.push_str("END\n");
    }
    text
}

fn store_of(directory: &Path, store: Option<&PathBuf>) -> PathBuf {
    store.cloned().unwrap_or_else(|| directory.join(STORE))
}

/// Returns the store of an earlier version if the directory has no other and none is given.
fn only_earlier(directory: &Path, store: Option<&PathBuf>) -> Option<PathBuf> {
    let earlier = directory.join(EARLIER_STORE);
    let is_only = store.is_none() && !directory.join(STORE).exists() && earlier.exists();
    is_only.then_some(earlier)
}

fn collect_results(args: &CollectArgs) -> Result<(), Failure> {
    let hosts = args.directory.join("hosts");
    let hosts = if hosts.is_dir() { hosts } else { args.directory.clone() };
    let path = store_of(&args.directory, args.store.as_ref());
    let runs = Runs::find(&hosts)?;
    if args.dry_run {
        let store = path.exists().then(|| Store::open(&path)).transpose()?;
        let (new, unchanged) = runs.foreseen(store.as_ref());
        let path = path.display();
        return output::print(&format!("{path}: {new} runs to read, {unchanged} unchanged\n"));
    }
    if let Some(earlier) = only_earlier(&args.directory, args.store.as_ref()) {
        note(format!("{}: no longer read; its runs are collected again", earlier.display()));
    }
    let collected = runs.collect(&path)?;
    collected.failed.iter().for_each(note);
    if output::quiet() {
        return Ok(());
    }
    output::print(&format!(
        "{}: {} runs read, {} unchanged, {} unreadable\n",
        path.display(),
        collected.read,
        collected.unchanged,
        collected.failed.len()
    ))
}

fn report(args: &FleetReportArgs) -> Result<(), Failure> {
    let path = store_of(&args.directory, args.store.as_ref());
    let earlier = only_earlier(&args.directory, args.store.as_ref());
    let (keys, hosts) = Store::open(earlier.as_ref().unwrap_or(&path))?.latest();
    if hosts.is_empty() {
        return Err(FleetError::NothingCollected { path }.into());
    }
    let analysis = analyse(&keys, &hosts);
    let name = args.directory.display().to_string();
    output::show(&FleetReport { name, analysis }, args.format)
}
