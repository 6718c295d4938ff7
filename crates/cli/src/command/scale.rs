//! `numalab scale`.

use std::path::Path;

use numalab_formats::architecture;
use numalab_host::{CommandError, Interrupt, Root, note, read_machine};
use numalab_launch::scale::{
    Batch, LauncherChoice, Line, Manifest, Mode, ResultDirectory, Runner, Submission, Tally,
    closing, estimate, opening, step_heading, steps, submit,
};
use numalab_record::shell::command_line;
use numalab_topology::{Allowed, Machine, NodeId};

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
    let arch = input::architecture(path)?;
    let named = |error: numalab_formats::ReadError| {
        Failure::bad_input(format!("{}: {error}", path.display()))
    };
    let reading = architecture::read(&arch).map_err(named)?;
    for finding in &reading.findings {
        note(format_args!("{}: {finding}", path.display()));
    }
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
    let mut architecture = reading.value;
    if !args.submit {
        architecture.machine.allowed = allowed_on(&architecture.machine);
    }
    let all = architecture.machine.nodes.iter().map(|node| node.id).collect();
    let domains: Vec<NodeId> = domains.of(&all).iter().collect();
    let steps = steps(&architecture, mode, &domains, args.sizes(), args.smt)
        .map_err(|error| Failure::bad_input(format!("{}: {error}", path.display())))?;
    Ok(Manifest {
        schema: numalab_record::Kind::Scale.into(),
        system: architecture.system,
        partition: architecture.partition,
        mode,
        domains,
        memory_sizes: args.sizes().to_owned(),
        sizes_bytes,
        launcher: args.launcher.unwrap_or(LauncherChoice::Auto),
        workload: args.workload.clone(),
        options: args.rank_option.clone(),
        with_smt: args.smt,
        label: args.label.clone(),
        arch,
        steps,
    })
}

/// Returns what this process may use of the machine, if the run is planned for this one: a job may
/// have only some of its hardware threads, and binding to others fails.
fn allowed_on(planned: &Machine) -> Option<Allowed> {
    let here = read_machine(&Root::live()).ok()?.machine;
    let cpus = |of: &Machine| -> Vec<_> {
        let online = of.cpus.iter().filter(|cpu| cpu.online);
        online.map(|cpu| (cpu.id, cpu.node)).collect()
    };
    let allowed = here.allowed.clone().filter(|_| cpus(planned) == cpus(&here))?;
    let left_out = planned.online_cpus().difference(&allowed.cpus);
    if !left_out.is_empty() {
        note(format_args!("this process may not run on cpus {left_out}: they are left out"));
    }
    Some(allowed)
}

fn line<'a>(manifest: &'a Manifest, launcher: LauncherChoice, numalab: &'a str) -> Line<'a> {
    Line {
        launcher,
        numalab,
        workload: &manifest.workload,
        sizes: &manifest.memory_sizes,
        options: &manifest.options,
        with_smt: manifest.with_smt,
        in_job: std::env::var_os("SLURM_JOB_ID").is_some(),
    }
}

/// Prints what would be launched, how long it takes, and the batch script.
fn show(
    args: &ScaleArgs,
    manifest: &Manifest,
    launcher: LauncherChoice,
    directory: Option<&ResultDirectory>,
) -> Result<(), Failure> {
    let architecture = manifest.architecture().map_err(Failure::bad_input)?;
    let own = own_word()?;
    // Users often look at a script on a machine that cannot run it.
    let launcher = launcher.resolve().unwrap_or(launcher);
    let line = Line { in_job: true, ..line(manifest, launcher, &own) };
    let mut text = opening(&architecture);
    let end = manifest.workload.file_end();
    for step in &manifest.steps {
        if directory.is_some_and(|directory| directory.has(step, end)) {
            continue;
        }
        let command = command_line(&line.words(step));
        text.push_str(&step_heading(manifest, step, &command));
        text.push_str(&format!("{}\n", "=".repeat(80)));
    }
    text.push_str(&closing(manifest, &architecture, true));
    text.push_str(&script_text(args, manifest, &own));
    output::print(&text)
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
        numalab_launch::scale::Workload::Latency => {}
        numalab_launch::scale::Workload::Bandwidth => add("workload", "bandwidth"),
        numalab_launch::scale::Workload::Command(text) => add("workload", text),
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
    let architecture = manifest.architecture().map_err(Failure::bad_input)?;
    let own = own_word()?;
    let interrupt = Interrupt::install()?;
    let runner = Runner {
        manifest,
        directory,
        line: line(manifest, launcher.resolve()?, &own),
        quiet: output::quiet(),
        interrupt: &interrupt,
    };
    say(directory, &opening(&architecture))?;
    let tally = runner.run()?;
    say(directory, &closing(manifest, &architecture, false))?;
    conclude(manifest, directory, &tally)
}

fn conclude(
    manifest: &Manifest,
    directory: &ResultDirectory,
    tally: &Tally,
) -> Result<(), Failure> {
    let (done, all) = (tally.done, manifest.steps.len());
    if done == all {
        let end = format!("Benchmarks completed successfully\n{}\n", "=".repeat(80));
        return say(directory, &end);
    }
    let failed: Vec<String> = tally.failed.iter().map(ToString::to_string).collect();
    let why = if tally.interrupted {
        "interrupted".to_owned()
    } else {
        let log = directory.log_path();
        format!(
            "the steps of {} ranks failed ({} has the reason)",
            failed.join(", "),
            log.display()
        )
    };
    let path = directory.path().display();
    let message = format!(
        "{why}; {done} of {all} steps have their results in {path}; finish them with:\n  \
         numalab scale --resume {path}"
    );
    say(directory, &format!("{message}\n"))?;
    Err(Failure::new(Code::Failed, message))
}

/// Prints to the terminal and the log.
fn say(directory: &ResultDirectory, text: &str) -> Result<(), Failure> {
    directory.append_log(text)?;
    if output::quiet() { Ok(()) } else { output::print(text) }
}
