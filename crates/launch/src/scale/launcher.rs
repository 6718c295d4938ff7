//! The launcher of ranks, and the work that each of them does.

use core::fmt;

use numalab_host::{Classed, ErrorClass};
use serde::{Deserialize, Serialize};

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
    /// [`LaunchError::NoProgram`] if its program is not in `PATH`.
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
            other => Ok(other),
        }
    }
}
