//! Which rank this process is, from what its launcher put into the environment.

mod slurm;

use core::fmt;

pub use slurm::{map_cpu_list, tasks_on_node};

/// Who started this process as a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// numalab itself: `--ranks N`, `scale --launcher local`.
    Local,
    /// Open MPI's `mpirun`.
    OpenMpi,
    /// MPICH's `mpirun` (Hydra).
    Hydra,
    /// HPE's PALS (`aprun`, `mpiexec`).
    Pals,
    /// `srun`.
    Slurm,
    /// Another launcher that speaks PMI.
    Pmi,
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Local => "numalab",
            Self::OpenMpi => "Open MPI's mpirun",
            Self::Hydra => "MPICH's mpirun",
            Self::Pals => "PALS",
            Self::Slurm => "srun",
            Self::Pmi => "a PMI launcher",
        })
    }
}

/// A rank's place among all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Who started it.
    pub launcher: Launcher,
    /// Its number, from 0.
    pub rank: usize,
    /// How many ranks there are.
    pub size: usize,
    /// Its number among those of its host, and how many these are, where the launcher tells.
    pub local: Option<Local>,
}

/// A rank's place among those of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local {
    /// Its number, from 0.
    pub rank: usize,
    /// How many there are.
    pub size: usize,
}

impl Identity {
    /// Whether all ranks are on one host, as far as is known.
    #[must_use]
    pub fn is_on_one_host(&self) -> bool {
        self.size == 1 || self.local.is_some_and(|local| local.size == self.size)
    }
}

/// Why the environment names no rank, though a launcher left traces in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// A variable is no number.
    #[error("{name}={value}: expected a number; it is set by {launcher}")]
    NotANumber {
        /// The variable.
        name: String,
        /// Its value.
        value: String,
        /// Who sets it.
        launcher: Launcher,
    },
    /// The launcher's variables are incomplete.
    #[error(
        "{present} is set as by {launcher}, but {missing} is not: start the ranks by srun, mpirun or --ranks"
    )]
    Incomplete {
        /// The variable that is there.
        present: &'static str,
        /// The one that is not.
        missing: &'static str,
        /// Who sets them.
        launcher: Launcher,
    },
    /// A rank beyond the number of ranks.
    #[error(
        "rank {rank} of {size} ranks, as {launcher} says: expected ranks from 0 to one less than their number"
    )]
    Beyond {
        /// The rank.
        rank: usize,
        /// The number of ranks.
        size: usize,
        /// Who says so.
        launcher: Launcher,
    },
    /// Two launchers tell different worlds.
    #[error(
        "srun started {tasks} tasks, but each finds a world of {size}: the MPI plugin does not suit (srun --mpi=pmi2 for MPICH, --mpi=pmix for Open MPI)"
    )]
    SingletonWorld {
        /// Tasks of the step.
        tasks: usize,
        /// The size of the world that the process finds.
        size: usize,
    },
}

/// A look at one variable of the environment.
pub type Look<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Which rank this process is; `None` without a launcher.
///
/// The innermost launcher counts: `mpirun` within a SLURM job, not the job's own step.
///
/// # Errors
/// [`IdentityError`] if a launcher's variables make no sense.
pub fn detect(look: Look<'_>) -> Result<Option<Identity>, IdentityError> {
    let found = match FAMILIES.iter().find(|family| look(family.rank).is_some()) {
        Some(family) => Some(family.identity(look)?),
        None => slurm::identity(look)?.or(pmi(look)?),
    };
    if let Some(found) = &found {
        check(found, look)?;
    }
    Ok(found)
}

/// [`detect`] in this process's own environment.
///
/// # Errors
/// As [`detect`].
pub fn detect_own() -> Result<Option<Identity>, IdentityError> {
    detect(&|name| std::env::var(name).ok())
}

/// The variables of a launcher that can run inside of a SLURM job.
struct Family {
    launcher: Launcher,
    rank: &'static str,
    size: &'static str,
    local_rank: &'static str,
    local_size: &'static str,
}

/// numalab's own variable for the rank.
pub const RANK: &str = "NUMALAB_RANK";
/// numalab's own variable for the number of ranks, all on one host.
pub const SIZE: &str = "NUMALAB_RANKS";

const FAMILIES: [Family; 4] = [
    Family {
        launcher: Launcher::Local,
        rank: RANK,
        size: SIZE,
        local_rank: RANK,
        local_size: SIZE,
    },
    Family {
        launcher: Launcher::OpenMpi,
        rank: "OMPI_COMM_WORLD_RANK",
        size: "OMPI_COMM_WORLD_SIZE",
        local_rank: "OMPI_COMM_WORLD_LOCAL_RANK",
        local_size: "OMPI_COMM_WORLD_LOCAL_SIZE",
    },
    Family {
        launcher: Launcher::Pals,
        rank: "PALS_RANKID",
        size: "PMI_SIZE",
        local_rank: "PALS_LOCAL_RANKID",
        local_size: "PMI_LOCAL_SIZE",
    },
    Family {
        launcher: Launcher::Hydra,
        rank: "MPI_LOCALRANKID",
        size: "PMI_SIZE",
        local_rank: "MPI_LOCALRANKID",
        local_size: "MPI_LOCALNRANKS",
    },
];

impl Family {
    fn identity(&self, look: Look<'_>) -> Result<Identity, IdentityError> {
        let launcher = self.launcher;
        // Hydra's own variable is that of the local rank.
        let rank_name = if launcher == Launcher::Hydra { "PMI_RANK" } else { self.rank };
        let rank = required(look, launcher, self.rank, rank_name)?;
        let size = required(look, launcher, self.rank, self.size)?;
        let local_rank = number(look, launcher, self.local_rank)?;
        let local_size = number(look, launcher, self.local_size)?;
        let local = local_rank.zip(local_size).map(|(rank, size)| Local { rank, size });
        Ok(Identity { launcher, rank, size, local })
    }
}

/// A launcher of which nothing but PMI is known.
fn pmi(look: Look<'_>) -> Result<Option<Identity>, IdentityError> {
    let launcher = Launcher::Pmi;
    let Some(rank) = number(look, launcher, "PMI_RANK")? else { return Ok(None) };
    let size = required(look, launcher, "PMI_RANK", "PMI_SIZE")?;
    let local_rank = number(look, launcher, "PMI_LOCAL_RANK")?;
    let local_size = number(look, launcher, "PMI_LOCAL_SIZE")?;
    let local = local_rank.zip(local_size).map(|(rank, size)| Local { rank, size });
    Ok(Some(Identity { launcher, rank, size, local }))
}

fn check(found: &Identity, look: Look<'_>) -> Result<(), IdentityError> {
    let Identity { launcher, rank, size, local } = *found;
    if rank >= size {
        return Err(IdentityError::Beyond { rank, size, launcher });
    }
    if let Some(local) = local.filter(|local| local.rank >= local.size || local.size > size) {
        return Err(IdentityError::Beyond { rank: local.rank, size: local.size, launcher });
    }
    // srun with a PMI plugin sets both; they must tell the same world.
    let told = number(look, launcher, "PMI_SIZE")?;
    match told {
        Some(told) if launcher == Launcher::Slurm && told != size => {
            Err(IdentityError::SingletonWorld { tasks: size, size: told })
        }
        _ => Ok(()),
    }
}

fn required(
    look: Look<'_>,
    launcher: Launcher,
    present: &'static str,
    missing: &'static str,
) -> Result<usize, IdentityError> {
    number(look, launcher, missing)?.ok_or(IdentityError::Incomplete { present, missing, launcher })
}

fn number(look: Look<'_>, launcher: Launcher, name: &str) -> Result<Option<usize>, IdentityError> {
    let Some(value) = look(name) else { return Ok(None) };
    match value.trim().parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(IdentityError::NotANumber { name: name.to_owned(), value, launcher }),
    }
}

#[cfg(test)]
mod tests;
