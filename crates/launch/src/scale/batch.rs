//! The batch script of a scaling run, and its submission.

use std::path::{Path, absolute};
use std::time::Duration;

use numalab_host::{Classed, CommandError, ErrorClass, Input, Interrupt, run_with_input, tool};
use numalab_record::shell::command_line;

use super::estimate::estimate;
use super::launcher::{LauncherChoice, Workload};
use super::manifest::Manifest;

/// The time limit of `sbatch`: a busy controller answers late, one that is down never does.
const LIMIT: Duration = Duration::from_secs(300);

/// A batch script that runs a manifest in a job.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    pub manifest: &'a Manifest,
    pub numalab: &'a str,
    /// The architecture file, or the name of a bundled one.
    pub arch: &'a Path,
    /// The directory of an earlier run to continue.
    pub resume: Option<&'a Path>,
    /// The parent of the result directory.
    pub results: &'a Path,
    /// The user's options, such as `--partition=standard`.
    pub options: &'a [String],
}

/// Reason why no job was submitted.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    #[error(
        "`{program}` is not on this machine: apt-get install slurm-client, or run it without \
         --submit"
    )]
    Absent { program: String },
    /// SLURM's program failed.
    #[error(transparent)]
    Failed(CommandError),
    #[error("SLURM rejects the batch script: {message}")]
    Refused { message: String },
}

impl Classed for BatchError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Absent { .. } | Self::Refused { .. } => ErrorClass::Lacking,
            Self::Failed(_) => ErrorClass::Failed,
        }
    }
}

impl Batch<'_> {
    /// Returns the text of the batch script. The job gets a whole node: SLURM rejects a `map_cpu`
    /// binding to cpus outside the job.
    pub fn script(&self) -> String {
        let minutes = (self.time() * 2).as_secs().div_ceil(60).max(1);
        let mut text = format!(
            "#!/bin/bash\n#SBATCH --job-name=numalab-scale\n#SBATCH --nodes=1\n\
             #SBATCH --exclusive\n#SBATCH --time={minutes}\n"
        );
        for option in self.options {
            text.push_str(&format!("#SBATCH {option}\n"));
        }
        text.push_str(&format!("exec {}\n", command_line(&self.command())));
        text
    }

    /// Describes the estimated time, and the script that would be submitted.
    pub fn foreseen(&self) -> String {
        let (steps, seconds) = (self.manifest.steps.len(), self.time().as_secs());
        let time = match seconds {
            ..180 => format!("{seconds} seconds"),
            _ => format!("{} minutes", seconds.div_ceil(60)),
        };
        format!("\nAbout {time} for {steps} launches.\n\nBatch script:\n{}", self.script())
    }

    /// Submits the script, after `sbatch --test-only` has accepted it: a job that can never run
    /// would wait forever. Returns the job's id.
    ///
    /// # Errors
    ///
    /// [`BatchError`] if SLURM is missing, does not answer, or refuses the script.
    pub fn submit(&self) -> Result<String, BatchError> {
        let script = self.script();
        sbatch("--test-only", &script)?;
        sbatch("--parsable", &script)
    }

    fn time(&self) -> Duration {
        estimate(&self.manifest.steps, &self.manifest.sizes_bytes)
    }

    fn command(&self) -> Vec<String> {
        let manifest = self.manifest;
        let mut command = vec![self.numalab.to_owned(), "scale".to_owned()];
        let mut add = |option: &str, value: &str| command.push(format!("--{option}={value}"));
        if let Some(directory) = self.resume {
            add("resume", &whole(directory));
            return command;
        }
        let domains: Vec<String> = manifest.domains.iter().map(ToString::to_string).collect();
        match self.arch.exists() {
            true => add("arch", &whole(self.arch)),
            // A bundled architecture, found by its name.
            false => add("arch", &self.arch.to_string_lossy()),
        }
        add(&manifest.mode.to_string(), &domains.join(","));
        add("memory-sizes", &manifest.memory_sizes);
        // The job has SLURM; a launcher of numalab alone, or one that is installed here, is
        // irrelevant there.
        let launcher = match manifest.launcher {
            LauncherChoice::Mpirun => LauncherChoice::Mpirun,
            _ => LauncherChoice::Srun,
        };
        add("launcher", &launcher.to_string());
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
        add("output", &whole(self.results));
        if manifest.with_smt {
            command.push("--smt".to_owned());
        }
        command
    }
}

fn whole(path: &Path) -> String {
    absolute(path).unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned()
}

/// Runs sbatch, and returns its output.
fn sbatch(option: &str, script: &str) -> Result<String, BatchError> {
    let command = tool("sbatch", [option]);
    let ran = run_with_input(command, Input::Bytes(script.as_bytes()), LIMIT, &Interrupt::never());
    let ran = ran.map_err(|error| match error {
        CommandError::NotFound { program } => BatchError::Absent { program },
        error => BatchError::Failed(error),
    })?;
    match ran.status.success() {
        true => Ok(ran.stdout.trim().to_owned()),
        false => Err(BatchError::Refused { message: ran.stderr.trim().to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_takes_a_whole_node_and_repeats_the_command_in_the_job() {
        let manifest = Manifest {
            label: Some("a b".to_owned()),
            sizes_bytes: vec![8 << 20],
            ..Manifest::read(
                r#"{"schema":"numalab-scale/1","system":"S","partition":"P","mode":"sequential","domains":[0,1],
                "memory_sizes":"8","launcher":"local","workload":"latency","label":null,"arch":"",
                "steps":[]}"#,
            )
            .unwrap()
        };
        let options = ["--partition=standard".to_owned()];
        let batch = Batch {
            manifest: &manifest,
            numalab: "numalab",
            arch: Path::new("lumi_partc"),
            resume: None,
            results: Path::new("/results"),
            options: &options,
        };
        assert_eq!(
            batch.script(),
            "#!/bin/bash\n#SBATCH --job-name=numalab-scale\n#SBATCH --nodes=1\n\
             #SBATCH --exclusive\n#SBATCH --time=1\n#SBATCH --partition=standard\n\
             exec numalab scale --arch=lumi_partc --sequential=0,1 --memory-sizes=8 \
             --launcher=srun '--label=a b' --output=/results\n"
        );
        let of_mpirun = Manifest { launcher: LauncherChoice::Mpirun, ..manifest.clone() };
        let script = Batch { manifest: &of_mpirun, ..batch }.script();
        assert!(script.contains(" --launcher=mpirun "), "as requested: {script}");
        let resumed = Batch { resume: Some(Path::new("/results/job_1")), ..batch };
        assert!(resumed.script().ends_with("exec numalab scale --resume=/results/job_1\n"));
    }
}
