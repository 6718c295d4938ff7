//! The batch script of a scaling run, and its submission.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use numalab_record::shell::command_line;

/// A batch script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch<'a> {
    /// The command that the job runs.
    pub command: &'a [String],
    /// How long it may take.
    pub time: Duration,
    /// Options of the user's own, such as `--partition=standard`.
    pub options: &'a [String],
}

impl Batch<'_> {
    /// Its text. The job has a whole node: SLURM refuses a `map_cpu` binding to cpus that
    /// are not the job's.
    #[must_use]
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

/// What SLURM made of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submission {
    /// The job's number.
    Accepted(String),
    /// SLURM's words.
    Refused(String),
}

/// Submits a script, after `sbatch --test-only` found that it can ever run: else it would
/// wait for ever.
///
/// # Errors
/// If `sbatch` cannot be started.
pub fn submit(script: &str) -> std::io::Result<Submission> {
    let (fits, words) = sbatch(&["--test-only"], script)?;
    if !fits {
        return Ok(Submission::Refused(words));
    }
    let (accepted, words) = sbatch(&["--parsable"], script)?;
    Ok(if accepted { Submission::Accepted(words) } else { Submission::Refused(words) })
}

fn sbatch(options: &[&str], script: &str) -> std::io::Result<(bool, String)> {
    let mut child = Command::new("sbatch")
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // If it ended before it read all, its words say why.
        let _ = input.write_all(script.as_bytes());
    }
    let output = child.wait_with_output()?;
    let words = if output.status.success() { &output.stdout } else { &output.stderr };
    Ok((output.status.success(), String::from_utf8_lossy(words).trim().to_owned()))
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
