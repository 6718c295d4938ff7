//! `numalab scale`.

use std::path::Path;

use numalab_host::{CommandError, Interrupt, note};
use numalab_launch::scale::{
    Batch, LauncherChoice, Line, Manifest, Mode, PlanRemarks, ResultDirectory, Runner, Submission,
    Workload, dry_run, estimate, submit,
};
use numalab_record::Kind;

use super::own::own_word;
use crate::args::ScaleArgs;
use crate::failure::{Code, Failure};
use crate::input;
use crate::output;

/// Runs, resumes, submits or shows a scaling run.
pub(crate) fn run(args: &ScaleArgs) -> Result<(), Failure> {
    if let Some(directory) = &args.resume {
        let open = if args.dry_run { ResultDirectory::open } else { ResultDirectory::resume };
        let (directory, manifest) = open(directory)?;
        let launcher = args.launcher.unwrap_or(manifest.launcher);
        if args.dry_run {
            return show(args, &manifest, launcher, Some(&directory));
        }
        return execute(&manifest, launcher, &directory);
    }
    let manifest = plan(args)?;
    let launcher = manifest.launcher;
    if args.dry_run {
        return show(args, &manifest, launcher, None);
    }
    if args.submit {
        return hand_over(args, &manifest);
    }
    // Fails before a directory is created.
    launcher.resolve()?;
    let job = std::env::var("SLURM_JOB_ID").ok();
    let directory = ResultDirectory::create(&args.output, job.as_deref(), &manifest)?;
    execute(&manifest, launcher, &directory)
}

/// Plans the run from the arguments.
fn plan(args: &ScaleArgs) -> Result<Manifest, Failure> {
    let path = args.arch.as_deref().unwrap_or(Path::new(""));
    let sizes_bytes = args
        .sizes_bytes()
        .map_err(|error| Failure::bad_input(format!("--memory-sizes: {error}")))?;
    if let Some(label) = args.label.as_ref().filter(|label| label.contains('/')) {
        return Err(Failure::bad_input(format!("--label {label}: expected a word without /")));
    }
    let (mode, domains) = match (&args.sequential, &args.interleaved) {
        (_, Some(domains)) => (Mode::Interleaved, domains),
        (Some(domains), None) => (Mode::Sequential, domains),
        (None, None) => return Err(Failure::bad_input("--sequential or --interleaved is needed")),
    };
    let mut manifest = Manifest {
        schema: Kind::Scale.into(),
        arch: input::architecture(path)?,
        system: String::new(),
        partition: String::new(),
        mode,
        domains: Vec::new(),
        memory_sizes: args.sizes().to_owned(),
        sizes_bytes,
        launcher: args.launcher.unwrap_or(LauncherChoice::Auto),
        workload: args.workload.clone(),
        options: args.rank_option.clone(),
        with_smt: args.smt,
        label: args.label.clone(),
        steps: Vec::new(),
    };
    let planned = manifest.plan(domains, !args.submit);
    let PlanRemarks { findings, left_out } =
        planned.map_err(|error| Failure::bad_input(format!("{}: {error}", path.display())))?;
    for finding in &findings {
        note(format_args!("{}: {finding}", path.display()));
    }
    if !left_out.is_empty() {
        note(format_args!("this process may not run on cpus {left_out}: they are left out"));
    }
    Ok(manifest)
}

/// Prints what would be launched, how long it takes, and the batch script.
fn show(
    args: &ScaleArgs,
    manifest: &Manifest,
    launcher: LauncherChoice,
    directory: Option<&ResultDirectory>,
) -> Result<(), Failure> {
    let own = own_word()?;
    // Users often look at a script on a machine that cannot run it.
    let launcher = launcher.resolve().unwrap_or(launcher);
    let line = Line { manifest, launcher, numalab: &own, in_job: true };
    let text = dry_run(&line, directory).map_err(Failure::bad_input)?;
    output::print(&(text + &script_text(args, manifest, &own)))
}

/// Returns the estimated time and the script that would be submitted.
fn script_text(args: &ScaleArgs, manifest: &Manifest, own: &str) -> String {
    let (time, script) = batch(args, manifest, own);
    let (steps, seconds) = (manifest.steps.len(), time.as_secs());
    let time = match seconds {
        ..180 => format!("{seconds} seconds"),
        _ => format!("{} minutes", seconds.div_ceil(60)),
    };
    format!("\nAbout {time} for {steps} launches.\n\nBatch script:\n{script}")
}

fn batch(args: &ScaleArgs, manifest: &Manifest, own: &str) -> (std::time::Duration, String) {
    let time = estimate(&manifest.steps, &manifest.sizes_bytes);
    let command = batch_command(args, manifest, own);
    let script = Batch { command: &command, time: time * 2, options: &args.sbatch }.script();
    (time, script)
}

/// Returns this command with the options for the job.
fn batch_command(args: &ScaleArgs, manifest: &Manifest, own: &str) -> Vec<String> {
    let mut command = vec![own.to_owned(), "scale".to_owned()];
    let mut add = |option: &str, value: &str| command.push(format!("--{option}={value}"));
    if let Some(directory) = &args.resume {
        add("resume", &absolute(directory));
        return command;
    }
    let domains: Vec<String> = manifest.domains.iter().map(ToString::to_string).collect();
    let arch = args.arch.as_deref().unwrap_or(Path::new(""));
    match arch.exists() {
        true => add("arch", &absolute(arch)),
        // A bundled architecture, found by its name.
        false => add("arch", &arch.to_string_lossy()),
    }
    add(&manifest.mode.to_string(), &domains.join(","));
    add("memory-sizes", &manifest.memory_sizes);
    add("launcher", "srun");
    match &manifest.workload {
        Workload::Latency => {}
        Workload::Bandwidth => add("workload", "bandwidth"),
        Workload::Command(text) => add("workload", text),
    }
    if let Some(label) = &manifest.label {
        add("label", label);
    }
    for option in &manifest.options {
        add("rank-option", option);
    }
    add("output", &absolute(&args.output));
    if manifest.with_smt {
        command.push("--smt".to_owned());
    }
    command
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned()
}

/// Submits the batch script.
fn hand_over(args: &ScaleArgs, manifest: &Manifest) -> Result<(), Failure> {
    let (_, script) = batch(args, manifest, &own_word()?);
    let answer = submit(&script).map_err(|error| match error {
        CommandError::NotFound { program } => {
            let remedy = "apt-get install slurm-client, or run it without --submit";
            Failure::new(Code::Lacking, format!("`{program}` is not on this machine: {remedy}"))
        }
        error => Failure::new(Code::Failed, error),
    })?;
    match answer {
        Submission::Accepted(job) => output::print(&format!("Submitted batch job {job}\n")),
        Submission::Refused(words) => {
            Err(Failure::new(Code::Lacking, format!("SLURM cannot run it: {words}")))
        }
    }
}

/// Runs the steps that have no result yet.
fn execute(
    manifest: &Manifest,
    launcher: LauncherChoice,
    directory: &ResultDirectory,
) -> Result<(), Failure> {
    let own = own_word()?;
    let interrupt = Interrupt::install()?;
    let line = Line {
        manifest,
        launcher: launcher.resolve()?,
        numalab: &own,
        in_job: std::env::var_os("SLURM_JOB_ID").is_some(),
    };
    let runner = Runner { directory, line, quiet: output::quiet(), interrupt: &interrupt };
    Ok(runner.run()?)
}
