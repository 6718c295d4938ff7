//! `numalab scale`.

use std::path::Path;

use numalab_host::{Interrupt, note};
use numalab_launch::scale::{
    Batch, LauncherChoice, Line, Manifest, Mode, PlanRemarks, ResultDirectory, Runner, dry_run,
};
use numalab_places::machine::architecture_text;
use numalab_record::Kind;

use super::own::own_word;
use crate::args::ScaleArgs;
use crate::failure::Failure;
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
        let job = batch(args, &manifest, &own_word()?).submit()?;
        return output::print(&format!("Submitted batch job {job}\n"));
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
        arch: architecture_text(path)?,
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
    output::print(&(text + &batch(args, manifest, &own).foreseen()))
}

fn batch<'a>(args: &'a ScaleArgs, manifest: &'a Manifest, numalab: &'a str) -> Batch<'a> {
    let arch = args.arch.as_deref().unwrap_or(Path::new(""));
    let (resume, results) = (args.resume.as_deref(), &args.output);
    Batch { manifest, numalab, arch, resume, results, options: &args.sbatch }
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
