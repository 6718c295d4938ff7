//! The command that launches a step.

use core::fmt;

use serde::{Deserialize, Serialize};

use super::step::Step;

/// The launcher that starts the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
        /// The way to install it.
        remedy: &'static str,
    },
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

/// The common parts of all steps' launch lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The launcher; never `Auto`.
    pub launcher: LauncherChoice,
    /// The path of this program.
    pub numalab: &'a str,
    /// The workload of each rank.
    pub workload: &'a Workload,
    /// The sizes as typed.
    pub sizes: &'a str,
    /// Options for every rank's command.
    pub options: &'a [String],
    /// True if the cores' second threads are used.
    pub with_smt: bool,
    /// True if this process is in a SLURM job: otherwise each launch allocates a node.
    pub in_job: bool,
}

impl Line<'_> {
    /// Returns the words of the command that launches `step`.
    pub fn words(&self, step: &Step) -> Vec<String> {
        let ranks = step.ranks.to_string();
        let cpus = list(step.cpus.iter());
        let mut words: Vec<String> = Vec::new();
        let mut add = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
        match self.launcher {
            LauncherChoice::Srun | LauncherChoice::Auto => {
                if !self.in_job {
                    // SLURM only accepts an arbitrary map in a job with a whole node.
                    add(&["salloc", "--quiet", "--exclusive", "--nodes", "1"]);
                }
                add(&["srun", "--unbuffered", "--nodes", "1", "--ntasks", &ranks]);
                add(&[&format!("--cpu-bind=map_cpu:{cpus}")]);
                if !self.with_smt {
                    add(&["--hint=nomultithread"]);
                }
                add(&[self.numalab, "bind"]);
            }
            // The ranks bind themselves, since each mpirun has different options for binding.
            LauncherChoice::Mpirun => {
                add(&["mpirun", "-n", &ranks, "--bind-to", "none"]);
                add(&[self.numalab, "bind", &format!("--cpus={cpus}")]);
            }
            LauncherChoice::Local => {
                add(&[self.numalab, "bind", "--ranks", &ranks, &format!("--cpus={cpus}")]);
            }
        }
        add(&[&format!("--numa={}", list(step.nodes.iter())), "--"]);
        match self.workload {
            Workload::Command(command) => add(&["sh", "-c", command]),
            Workload::Latency => {}
            Workload::Bandwidth => add(&[self.numalab, "bandwidth"]),
        }
        if !matches!(self.workload, Workload::Command(_)) {
            add(&[&format!("--size={}", self.sizes), &format!("--csv={}.csv", step.stem)]);
            words.extend(self.options.iter().cloned());
        }
        words
    }
}

fn list<T: fmt::Display>(items: impl Iterator<Item = T>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use numalab_topology::{CpuId, NodeId};

    use super::*;

    fn line(launcher: LauncherChoice, workload: &Workload, in_job: bool) -> String {
        let step = Step {
            ranks: 2,
            per_domain: 1,
            cpus: vec![CpuId(48), CpuId(80)],
            nodes: vec![NodeId(3), NodeId(5)],
            stem: "interleaved_domains3,5_2ranks_8MB".to_owned(),
        };
        let line = Line {
            launcher,
            numalab: "numalab",
            workload,
            sizes: "8",
            options: &[],
            with_smt: false,
            in_job,
        };
        numalab_record::shell::command_line(&line.words(&step))
    }

    #[test]
    fn each_launcher_has_its_line() {
        assert_eq!(
            line(LauncherChoice::Srun, &Workload::Latency, true),
            "srun --unbuffered --nodes 1 --ntasks 2 --cpu-bind=map_cpu:48,80 --hint=nomultithread \
             numalab bind --numa=3,5 -- --size=8 --csv=interleaved_domains3,5_2ranks_8MB.csv"
        );
        let outside = line(LauncherChoice::Srun, &Workload::Latency, false);
        assert!(outside.starts_with("salloc --quiet --exclusive --nodes 1 srun "), "{outside}");
        assert_eq!(
            line(LauncherChoice::Mpirun, &Workload::Bandwidth, true),
            "mpirun -n 2 --bind-to none numalab bind --cpus=48,80 --numa=3,5 -- \
             numalab bandwidth --size=8 --csv=interleaved_domains3,5_2ranks_8MB.csv"
        );
        assert_eq!(
            line(LauncherChoice::Local, &Workload::Command("echo 'a b'".to_owned()), true),
            "numalab bind --ranks 2 --cpus=48,80 --numa=3,5 -- sh -c 'echo '\\''a b'\\'''"
        );
    }
}
