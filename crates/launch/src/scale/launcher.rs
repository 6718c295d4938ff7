//! The launcher of ranks, and the work of each rank.

use core::fmt;
use std::time::Duration;

use numalab_host::{Classed, ErrorClass, output_of, tool};
use serde::{Deserialize, Serialize};

/// The time limit of `mpirun --version`.
const LIMIT: Duration = Duration::from_secs(10);

/// Variables with which Open MPI, and PRRTE within it, start ranks as root: both of a pair are 1.
const ROOT_VARIABLES: [[&str; 2]; 2] = [
    ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"],
    ["PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"],
];

/// The launcher that starts the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LauncherChoice {
    /// `srun` within a SLURM job or if it is installed, else numalab.
    Auto,
    /// numalab itself, on this machine.
    Local,
    /// `mpirun`, on this machine.
    Mpirun,
    Srun,
}

impl fmt::Display for LauncherChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Auto => "auto",
            Self::Local => "local",
            Self::Mpirun => "mpirun",
            Self::Srun => "srun",
        })
    }
}

/// The workload of each rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// `numalab latency`.
    Latency,
    /// `numalab bandwidth`.
    Bandwidth,
    /// A shell command, whose output is kept.
    Command(String),
}

impl std::str::FromStr for Workload {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "latency" => Self::Latency,
            "bandwidth" => Self::Bandwidth,
            command => Self::Command(command.to_owned()),
        })
    }
}

impl Workload {
    /// Returns the suffix of the file that a finished step leaves, after the step's stem.
    pub fn file_end(&self) -> &'static str {
        match self {
            Self::Latency | Self::Bandwidth => "csv",
            Self::Command(_) => "out",
        }
    }
}

/// Reason why a launcher cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// The program is not installed.
    #[error("`{program}` is not in PATH: {remedy}")]
    NoProgram {
        program: &'static str,
        /// Advice for installing it.
        remedy: &'static str,
    },
    #[error(
        "Open MPI's `mpirun` starts no ranks as root: set {} and {} to 1, or --launcher local",
        ROOT_VARIABLES[0][0],
        ROOT_VARIABLES[0][1]
    )]
    RefusesRoot,
}

impl Classed for LaunchError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Lacking
    }
}

impl LauncherChoice {
    /// Returns the launcher that `Auto` selects here, or the launcher itself.
    ///
    /// # Errors
    ///
    /// [`LaunchError`] if its program is not in `PATH`, or will not start ranks for this user.
    pub fn resolve(self) -> Result<Self, LaunchError> {
        let is_there = |program: &str| numalab_host::on_path(program).is_some();
        match self {
            Self::Auto if is_there("srun") => Ok(Self::Srun),
            Self::Auto => Ok(Self::Local),
            Self::Srun if !is_there("srun") => Err(LaunchError::NoProgram {
                program: "srun",
                remedy: "apt-get install slurm-client, or --launcher local",
            }),
            Self::Mpirun if !is_there("mpirun") => Err(LaunchError::NoProgram {
                program: "mpirun",
                remedy: "apt-get install openmpi-bin (or mpich), or --launcher local",
            }),
            Self::Mpirun if rustix::process::geteuid().is_root() && mpirun_refuses_root() => {
                Err(LaunchError::RefusesRoot)
            }
            other => Ok(other),
        }
    }
}

fn mpirun_refuses_root() -> bool {
    let version = output_of(tool("mpirun", ["--version"]), LIMIT);
    version.is_ok_and(|version| refuses_root(&version, |name| std::env::var(name).ok()))
}

/// Returns `true` if the MPI with this version text starts nothing as root in this environment.
fn refuses_root(version: &str, variable: impl Fn(&str) -> Option<String>) -> bool {
    let is_one = |name: &&str| variable(name).as_deref() == Some("1");
    version.contains("Open MPI") && !ROOT_VARIABLES.iter().any(|pair| pair.iter().all(is_one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_mpi_starts_ranks_as_root_only_with_both_variables() {
        let refuses = |version: &str, set: &[&str]| {
            refuses_root(version, |name| set.contains(&name).then(|| "1".to_owned()))
        };
        assert!(refuses("mpirun (Open MPI) 4.1.4\n", &[]));
        assert!(refuses("mpirun (Open MPI) 4.1.4\n", &ROOT_VARIABLES[0][..1]));
        for both in &ROOT_VARIABLES {
            assert!(!refuses("mpirun (Open MPI) 5.0.3\n", both));
        }
        assert!(!refuses("HYDRA build details:\n    Version: 4.0.2\n", &[]), "MPICH does");
    }
}
