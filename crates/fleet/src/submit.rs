//! Submits a SLURM job array with one task for each machine of a partition.

pub mod slurm;

use std::path::{Path, PathBuf};
use std::{fs, io};

use numalab_host::{Classed, ErrorClass};
use numalab_page::number::count;
use numalab_record::shell::{command_line, quoted};

/// Names in the fleet's directory: the results of hosts, the logs of tasks, the script.
pub(crate) const HOSTS: &str = "hosts";
const LOG: &str = "log";
const SCRIPT: &str = "fleet.sh";

/// A batch script that measures a fleet, with the job arrays that run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    pub script: String,
    /// The hosts of each array: SLURM limits an array's length.
    pub arrays: Vec<Vec<String>>,
}

/// Reason why no job can be submitted.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    #[error(
        "{program} is not on this machine: install it (apt-get install slurm-client), submit from a login node of the cluster, or name the hosts with --hosts and look at the script with --dry-run"
    )]
    Absent { program: &'static str },
    #[error(
        "{program} finds no SLURM cluster ({message}): submit from a login node, name the cluster's file in SLURM_CONF, or start its controller (systemctl start slurmctld)"
    )]
    NoCluster {
        program: &'static str,
        /// The last line of its output.
        message: String,
    },
    #[error("{program}: {message}")]
    Failed { program: &'static str, message: String },
    /// A job was submitted, but its tasks are not bound to hosts.
    #[error("{error}; job {job} is held: scancel {job}")]
    Held { job: String, error: Box<Self> },
    /// A file or a directory cannot be written.
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("partition {partition:?} has no hosts; `sinfo` lists the partitions")]
    NoHosts { partition: String },
}

impl Classed for SubmitError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Absent { .. } | Self::NoCluster { .. } => ErrorClass::Lacking,
            Self::Failed { .. } | Self::Held { .. } | Self::Io { .. } => ErrorClass::Failed,
            Self::NoHosts { .. } => ErrorClass::BadInput,
        }
    }
}

/// The work of each task, and its host.
#[derive(Clone, Copy, Debug)]
pub struct TaskPlan<'a> {
    /// The fleet's directory, visible to every host.
    pub directory: &'a Path,
    /// The partition; `None` for the default one.
    pub partition: Option<&'a str>,
    pub program: &'a Path,
    /// The arguments of the measurement, without the output directory.
    pub measure: &'a [String],
    /// The time limit of a task in minutes.
    pub minutes: u32,
    /// Number of tasks that may run at once, if limited.
    pub at_once: Option<u32>,
    /// The longest array that SLURM accepts.
    pub longest_array: usize,
}

/// Plans the script and the arrays for these hosts.
pub fn plan_submission(hosts: &[String], plan: &TaskPlan<'_>) -> Submission {
    let arrays = hosts.chunks(plan.longest_array.max(1)).map(<[String]>::to_vec).collect();
    Submission { script: script(plan), arrays }
}

impl Submission {
    /// Writes the script into the fleet's directory and submits the arrays; returns the id of
    /// each job with the number of its hosts.
    pub fn submit(&self, plan: &TaskPlan<'_>) -> Result<Vec<(String, usize)>, SubmitError> {
        let io = |path: &Path| {
            let path = path.to_owned();
            |source| SubmitError::Io { path, source }
        };
        for part in [HOSTS, LOG] {
            let path = plan.directory.join(part);
            fs::create_dir_all(&path).map_err(io(&path))?;
        }
        let script = plan.directory.join(SCRIPT);
        fs::write(&script, &self.script).map_err(io(&script))?;
        let submit = |array: &Vec<String>| {
            let job = slurm::submit(&self.sbatch(array, plan, &script))?;
            match slurm::control(&Self::bindings(array, &job)) {
                Ok(()) => Ok((job, array.len())),
                Err(error) => Err(SubmitError::Held { job, error: Box::new(error) }),
            }
        };
        self.arrays.iter().map(submit).collect()
    }

    /// Describes what [`submit`](Self::submit) would write and run.
    pub fn foreseen(&self, plan: &TaskPlan<'_>) -> String {
        let script = plan.directory.join(SCRIPT);
        let mut text = format!("# {}\n{}\n", script.display(), self.script);
        for array in &self.arrays {
            let arguments = command_line(&self.sbatch(array, plan, &script));
            let count = count(array.len(), "host");
            text.push_str(&format!("# {count}\nsbatch {arguments}\nscontrol <<END\n"));
            text.push_str(&Self::bindings(array, "JOB"));
            text.push_str("END\n");
        }
        text
    }

    /// Returns the arguments of `sbatch` for an array, which is held until its tasks have been
    /// bound to hosts.
    fn sbatch(&self, array: &[String], plan: &TaskPlan<'_>, script: &Path) -> Vec<String> {
        let last = array.len().saturating_sub(1);
        let limit = plan.at_once.map_or_else(String::new, |at_once| format!("%{at_once}"));
        vec![
            "--parsable".to_owned(),
            "--hold".to_owned(),
            format!("--array=0-{last}{limit}"),
            // Not in the script, where a space ends the path.
            format!("--output={}/%A_%a.log", plan.directory.join(LOG).display()),
            script.display().to_string(),
        ]
    }

    /// Returns the commands for `scontrol` that bind each task to its host and release all.
    fn bindings(array: &[String], job: &str) -> String {
        let bind = |(task, host): (usize, &String)| {
            format!("update JobId={job}_{task} ReqNodeList={host}\n")
        };
        let bound: String = array.iter().enumerate().map(bind).collect();
        bound + &format!("release {job}\n")
    }
}

fn script(plan: &TaskPlan<'_>) -> String {
    let partition =
        plan.partition.map_or_else(String::new, |name| format!("#SBATCH --partition={name}\n"));
    let hosts: PathBuf = plan.directory.join(HOSTS);
    format!(
        "#!/bin/bash\n\
         #SBATCH --job-name=numalab-fleet\n\
         {partition}\
         #SBATCH --nodes=1\n\
         #SBATCH --ntasks=1\n\
         #SBATCH --exclusive\n\
         #SBATCH --time={}\n\
         # Every host is measured alone and the same way, once: its task is bound to it.\n\
         set -euo pipefail\n\
         host=${{SLURMD_NODENAME:?not started by SLURM}}\n\
         exec {} {} --output {}/\"$host\"\n",
        plan.minutes,
        quoted(&plan.program.display().to_string()),
        command_line(plan.measure),
        quoted(&hosts.display().to_string())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan<'a>(measure: &'a [String]) -> TaskPlan<'a> {
        TaskPlan {
            directory: Path::new("/scratch/my fleet"),
            partition: Some("standard"),
            program: Path::new("/opt/numalab"),
            measure,
            minutes: 10,
            at_once: Some(50),
            longest_array: 2,
        }
    }

    #[test]
    fn every_host_has_one_task_and_arrays_respect_the_limit() {
        let hosts = ["n1", "n2", "n3"].map(str::to_owned);
        let measure = ["measure".to_owned(), "--quick".to_owned()];
        let submission = plan_submission(&hosts, &plan(&measure));
        assert_eq!(
            submission.arrays,
            [vec!["n1".to_owned(), "n2".to_owned()], vec!["n3".to_owned()]]
        );
        let arguments =
            submission.sbatch(&submission.arrays[0], &plan(&measure), Path::new("f.sh"));
        let output = "--output=/scratch/my fleet/log/%A_%a.log";
        assert_eq!(arguments, ["--parsable", "--hold", "--array=0-1%50", output, "f.sh"]);
        let foreseen = submission.foreseen(&plan(&measure));
        assert!(foreseen.contains(&format!(" '{output}' ")), "{foreseen}");
        assert_eq!(
            Submission::bindings(&submission.arrays[0], "77"),
            "update JobId=77_0 ReqNodeList=n1\nupdate JobId=77_1 ReqNodeList=n2\nrelease 77\n"
        );
    }

    #[test]
    fn the_script_measures_alone_and_leaves_results_by_host() {
        let measure = ["measure".to_owned(), "--quick".to_owned()];
        let script = plan_submission(&[], &plan(&measure)).script;
        assert!(script.contains("#SBATCH --exclusive\n#SBATCH --time=10\n"), "{script}");
        assert!(script.contains("#SBATCH --partition=standard\n"), "{script}");
        let last =
            "exec /opt/numalab measure --quick --output '/scratch/my fleet/hosts'/\"$host\"\n";
        assert!(script.ends_with(last), "{script}");
    }
}
