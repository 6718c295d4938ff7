//! `numalab scale`.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use numalab_host::{Interrupt, note};
use numalab_launch::scale::{
    Batch, LaunchLine, LauncherChoice, Manifest, Mode, PlanError, PlanRemarks, ResultDirectory,
    Runner, Workload, dry_run,
};
use numalab_places::machine::architecture_text;
use numalab_record::Kind;
use numalab_topology::{Chosen, NodeId};

use super::own::own_word;
use crate::args::value;
use crate::failure::Failure;
use crate::output;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("placement").args(["sequential", "interleaved", "resume"]).required(true))]
#[command(after_help = "\
Examples:
  numalab scale --arch lumi_partc --sequential 0,1 --dry-run
  numalab scale --arch lumi_partc --interleaved 0,1,2 --label test_run --submit \\
      --sbatch=--partition=standard --sbatch=--account=project_1
  sbatch --exclusive --nodes=1 --wrap 'numalab scale --arch lumi_partc --sequential 0'
  numalab scale --resume results_scaling/job_123456_test_run     run the missing steps
  numalab scale --arch laptop --sequential 0 --launcher local --memory-sizes 8
  numalab scale --arch laptop --sequential 0 --workload 'stress-ng --vm 1 -t 5'

Replaces run_numa_benchmarks.sh and writes the same files: results_scaling/job_<id>[_label]/ has
<mode>_domain0_7ranks_8MB.csv for each step, mapping_check.log and
slurm_run_numa_benchmarks_<id>.log. Steps go from one rank per domain to one on every core.")]
pub(crate) struct ScaleArgs {
    /// The architecture file (SYSTEM_NAME, PARTITION, CCDS_PER_NUMA, SKIP_CORES and lscpu), or the
    /// name of a bundled one: lumi_partc, lumi_partg
    #[arg(long, value_name = "FILE", required_unless_present = "resume")]
    pub arch: Option<PathBuf>,
    /// NUMA domains to fill core by core in numerical order, such as 0,1, all or !0
    #[arg(long, value_name = "DOMAINS")]
    pub sequential: Option<Chosen<NodeId>>,
    /// NUMA domains to fill by taking one core from each CCD in turn
    #[arg(long, value_name = "DOMAINS")]
    pub interleaved: Option<Chosen<NodeId>>,
    /// Continue an earlier run in its directory: run the steps that have no result
    #[arg(long, value_name = "DIR", conflicts_with_all = ["arch", "memory_sizes", "label", "workload", "smt", "submit", "output", "rank_option"])]
    pub resume: Option<PathBuf>,
    /// Sizes in MB, in the forms of --size: 8, 1-512, 1,4,16 [default: 1-512]
    #[arg(long, value_name = "SIZES")]
    pub memory_sizes: Option<String>,
    /// Label added to the name of the result directory
    #[arg(long, value_name = "WORD")]
    pub label: Option<String>,
    /// Launcher of the ranks [default: srun if present, else numalab itself]
    #[arg(long, value_name = "WHO", value_parser = value::one_of([
        (LauncherChoice::Auto, "auto", "srun if present, else numalab itself"),
        (LauncherChoice::Local, "local", "numalab itself, on this machine"),
        (LauncherChoice::Mpirun, "mpirun", "mpirun of Open MPI or MPICH"),
        (LauncherChoice::Srun, "srun", "srun"),
    ]))]
    pub launcher: Option<LauncherChoice>,
    /// Work of each rank: latency, bandwidth, or a shell command
    #[arg(long, value_name = "WORKLOAD", default_value = "latency")]
    pub workload: Workload,
    /// After all cores, add their SMT siblings
    #[arg(long)]
    pub smt: bool,
    /// An option for every rank's latency or bandwidth, such as --rank-option=--serial
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub rank_option: Vec<String>,
    /// Submit the run as a SLURM job with exclusive use of a node
    #[arg(long)]
    pub submit: bool,
    /// A line for the batch script, such as --sbatch=--partition=standard
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub sbatch: Vec<String>,
    /// Keep the results in a new directory under DIR
    #[arg(short, long, value_name = "DIR", default_value = "results_scaling")]
    pub output: PathBuf,
    /// Print every launch line, the estimated time and the batch script; start nothing
    #[arg(long)]
    pub dry_run: bool,
}

impl ScaleArgs {
    /// Returns the sizes as typed.
    pub fn sizes(&self) -> &str {
        self.memory_sizes.as_deref().unwrap_or("1-512")
    }

    /// Returns the sizes in bytes.
    pub fn sizes_bytes(&self) -> Result<Vec<u64>, String> {
        value::sizes(self.sizes())
    }
}

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
    if launcher.resolve()? == LauncherChoice::Local {
        manifest.check_local().map_err(|error| unplanned(args, &error))?;
    }
    let job = std::env::var("SLURM_JOB_ID").ok();
    let directory = ResultDirectory::create(&args.output, job.as_deref(), &manifest)?;
    execute(&manifest, launcher, &directory)
}

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
    let PlanRemarks { findings, left_out } = planned.map_err(|error| unplanned(args, &error))?;
    for finding in &findings {
        note(format_args!("{}: {finding}", path.display()));
    }
    if !left_out.is_empty() {
        note(format_args!("this process may not run on cpus {left_out}: they are left out"));
    }
    Ok(manifest)
}

fn unplanned(args: &ScaleArgs, error: &PlanError) -> Failure {
    let path = args.arch.as_deref().unwrap_or(Path::new(""));
    Failure::bad_input(format!("{}: {error}", path.display()))
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
    let launcher = launcher.resolve().unwrap_or_else(|error| {
        note(format_args!("here it would not run: {error}"));
        launcher
    });
    let line = LaunchLine { manifest, launcher, numalab: &own, in_job: true };
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
    let line = LaunchLine {
        manifest,
        launcher: launcher.resolve()?,
        numalab: &own,
        in_job: std::env::var_os("SLURM_JOB_ID").is_some(),
    };
    let runner = Runner { directory, line, quiet: output::quiet(), interrupt: &interrupt };
    Ok(runner.run()?)
}
