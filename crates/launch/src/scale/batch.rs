//! The batch script of a scaling run, and its submission.

use std::time::Duration;

use numalab_host::{CommandError, Input, Interrupt, run_with_input, tool};
use numalab_record::shell::command_line;

/// The time limit of `sbatch`: a busy controller answers late, one that is down never.
const LIMIT: Duration = Duration::from_secs(300);

/// A batch script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch<'a> {
    /// The command that the job runs.
    pub command: &'a [String],
    /// The time limit of the job.
    pub time: Duration,
    /// The user's options, such as `--partition=standard`.
    pub options: &'a [String],
}

impl Batch<'_> {
    /// Returns its text. The job has a whole node: SLURM rejects a `map_cpu` binding to cpus
    /// outside the job.
    pub fn script(&self) -> String {
        let minutes = self.time.as_secs().div_ceil(60).max(1);
        let mut text = format!(
            "#!/bin/bash\n#SBATCH --job-name=numalab-scale\n#SBATCH --nodes=1\n\
             #SBATCH --exclusive\n#SBATCH --time={minutes}\n"
        );
        for option in self.options {
            text.push_str(&format!("#SBATCH {option}\n"));
        }
        text.push_str(&format!("exec {}\n", command_line(self.command)));
        text
    }
}

/// The result of submitting a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submission {
    /// SLURM accepted it; the job id.
    Accepted(String),
    /// SLURM rejected it; its message.
    Refused(String),
}

/// Submits a script, after `sbatch --test-only` has accepted it: a job that can never run would
/// wait forever.
///
/// # Errors
///
/// [`CommandError`] if `sbatch` cannot be started or does not answer.
pub fn submit(script: &str) -> Result<Submission, CommandError> {
    let (fits, words) = sbatch("--test-only", script)?;
    if !fits {
        return Ok(Submission::Refused(words));
    }
    let (accepted, words) = sbatch("--parsable", script)?;
    Ok(if accepted { Submission::Accepted(words) } else { Submission::Refused(words) })
}

fn sbatch(option: &str, script: &str) -> Result<(bool, String), CommandError> {
    let command = tool("sbatch", [option]);
    let ran = run_with_input(command, Input::Bytes(script.as_bytes()), LIMIT, &Interrupt::never())?;
    let words = if ran.status.success() { &ran.stdout } else { &ran.stderr };
    Ok((ran.status.success(), words.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_takes_a_whole_node_for_long_enough() {
        let command = ["numalab".to_owned(), "scale".to_owned(), "--label=a b".to_owned()];
        let options = ["--partition=standard".to_owned()];
        let batch = Batch { command: &command, time: Duration::from_secs(61), options: &options };
        assert_eq!(
            batch.script(),
            "#!/bin/bash\n#SBATCH --job-name=numalab-scale\n#SBATCH --nodes=1\n\
             #SBATCH --exclusive\n#SBATCH --time=2\n#SBATCH --partition=standard\n\
             exec numalab scale '--label=a b'\n"
        );
    }
}
