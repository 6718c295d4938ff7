//! Determines this process's rank from the environment that its launcher set.

mod error;
mod innermost;
mod jobs;
mod launchers;
mod slurm;
mod starters;

use std::fmt;

use numalab_host::Root;

pub use error::IdentityError;
use innermost::{innermost, last, outers, pmix_within, pytorch_within};
pub use jobs::not_a_rank;
use launchers::Variables;
pub use launchers::{LOCAL_RANK, LOCAL_SIZE, Launcher, RANK, SIZE};
pub use slurm::{map_cpu_list, tasks_on_node};

/// Maximum number of ranks; a larger number is a mistake.
const MOST_RANKS: usize = 1 << 30;

type NamedNumber = (&'static str, usize);

/// A process started by a launcher as one of its ranks, as far as the launcher describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    launcher: Launcher,
    rank: NamedNumber,
    size: Option<NamedNumber>,
    local_rank: Option<NamedNumber>,
    local_size: Option<NamedNumber>,
    /// The launcher of several other tasks on this host; this one's launcher ran inside one of
    /// them.
    outer: Option<Launcher>,
}

/// A rank's place among all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub launcher: Launcher,
    /// The rank, from 0.
    pub rank: usize,
    pub size: usize,
    /// Place among the ranks of the host, if the launcher gives it.
    pub local: Option<Local>,
}

/// A rank's place among those of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local {
    /// The local rank, from 0.
    pub rank: usize,
    /// Number of ranks on the host.
    pub size: usize,
}

impl Identity {
    /// Returns true if all ranks are on one host, as far as known.
    pub fn is_on_one_host(&self) -> bool {
        self.size == 1 || self.local.is_some_and(|local| local.size == self.size)
    }
}

impl fmt::Display for Task {
    /// Formats `rank 5 of 8, local rank 1 of 4 (srun)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |size: Option<usize>| size.map_or_else(String::new, |size| format!(" of {size}"));
        write!(f, "rank {}{}, ", self.rank(), of(self.size()))?;
        match self.local_rank() {
            Some(local) => write!(f, "local rank {local}{}", of(self.local_size()))?,
            None => f.write_str("local rank unknown")?,
        }
        write!(f, " ({})", self.launcher)
    }
}

impl Task {
    /// Returns a rank that numalab itself starts on this host.
    pub fn of_own(rank: usize, size: usize) -> Self {
        Self {
            launcher: Launcher::Local,
            rank: (RANK, rank),
            size: Some((SIZE, size)),
            local_rank: Some((RANK, rank)),
            local_size: Some((SIZE, size)),
            outer: None,
        }
    }

    pub fn launcher(&self) -> Launcher {
        self.launcher
    }

    /// Returns the rank, from 0.
    pub fn rank(&self) -> usize {
        self.rank.1
    }

    /// Returns the number of ranks, if known.
    pub fn size(&self) -> Option<usize> {
        self.size.map(|(_, size)| size)
    }

    /// Returns the local rank, if known.
    pub fn local_rank(&self) -> Option<usize> {
        self.local_rank.map(|(_, rank)| rank)
    }

    /// Returns the number of ranks on its host, if known.
    pub fn local_size(&self) -> Option<usize> {
        self.local_size.map(|(_, size)| size)
    }

    /// Returns the launcher of several tasks on this host, if this rank's launcher ran in one of
    /// them: the local rank is then that within one task, and other ranks on the host have the
    /// same.
    pub fn outer(&self) -> Option<Launcher> {
        self.outer
    }

    /// Returns its place among all ranks.
    ///
    /// # Errors
    /// [`IdentityError::NoSize`] if the launcher does not give their number.
    pub fn identity(&self) -> Result<Identity, IdentityError> {
        let launcher = self.launcher;
        let (name, rank) = self.rank;
        let size = self.size().ok_or(IdentityError::NoSize { name, rank, launcher })?;
        let local = self.local_rank().zip(self.local_size());
        let local = local.map(|(rank, size)| Local { rank, size });
        Ok(Identity { launcher, rank, size, local })
    }

    /// Returns true if this process is to start the ranks of `--ranks`, because it is the only one of
    /// its launcher, as in `srun -n1 --pty bash`; false if numalab started it as one of them.
    /// Any other rank may not.
    fn starts_ranks(&self, asked: usize) -> Result<bool, IdentityError> {
        let is_own = self.launcher == Launcher::Local;
        if is_own && self.size() == Some(asked) {
            return Ok(false);
        }
        if !is_own && self.size() == Some(1) && self.outer.is_none() {
            return Ok(true);
        }
        let ((name, rank), launcher) = (self.rank, self.launcher);
        Err(IdentityError::RankAlready { asked, name, rank, launcher })
    }

    fn of(variables: &Variables, look: VariableLookup<'_>) -> Result<Option<Self>, IdentityError> {
        let launcher = variables.launcher;
        let get = |name| number(look, launcher, name);
        let optional = |name: Option<&'static str>| name.map_or(Ok(None), get);
        let Some(rank) = get(variables.rank)? else {
            let (present, missing) = (variables.signs[0], variables.rank);
            return Err(IdentityError::Incomplete { present, missing, launcher });
        };
        let rank = (rank.0, rank.1.saturating_sub(variables.first));
        let size = optional(variables.size)?;
        let first_set = |names: &[&'static str]| {
            optional(names.iter().find(|name| look(name).is_some()).copied())
        };
        let mut local_rank = first_set(variables.local_rank)?;
        let mut local_size = first_set(variables.local_size)?;
        if optional(variables.hosts)?.is_some_and(|(_, hosts)| hosts == 1) {
            local_rank = local_rank.or(Some(rank));
            local_size = local_size.or(size);
        }
        Ok(Some(Self { launcher, rank, size, local_rank, local_size, outer: None }))
    }

    /// Reports whether this host seems to have other ranks of this launcher.
    fn has_neighbours(&self) -> bool {
        self.local_size().unwrap_or(1) > 1 || self.local_rank().unwrap_or(0) > 0
    }

    /// Forgets the local numbers if they count only within one of several tasks that another
    /// launcher started on this host; a world of one rank has its task's.
    fn within(self, outer: &Self) -> Result<Self, IdentityError> {
        if self.is_also(outer) {
            self.agrees(outer)?;
            // Numbers that a launcher around both made useless stay unknown.
            let same = Some(outer).filter(|_| self.outer.is_none());
            return Ok(Self {
                size: self.size.or(outer.size),
                local_rank: self.local_rank.or(same.and_then(|of| of.local_rank)),
                local_size: self.local_size.or(same.and_then(|of| of.local_size)),
                ..self
            });
        }
        if self.launcher == outer.launcher || !outer.has_neighbours() {
            return Ok(self);
        }
        let (local_rank, local_size) = match self.size() {
            Some(1) => (outer.local_rank, outer.local_size),
            _ => (None, None),
        };
        Ok(Self { local_rank, local_size, outer: Some(outer.launcher), ..self })
    }

    /// Reports whether both are the same rank by different names. On Cray systems, SLURM and Flux set some
    /// of PALS's variables for their own tasks (`mpi/cray_shasta`), but not the number of ranks.
    fn is_also(&self, other: &Self) -> bool {
        let is_of_pals = [self.launcher, other.launcher].contains(&Launcher::Pals);
        let sizes = self.size().zip(other.size());
        let local_ranks = self.local_rank().zip(other.local_rank());
        // An mpirun of one library within that of another can give the same numbers. MVAPICH's Hydra
        // sets both of its names.
        let is_of_mpi = |task: &Self| {
            matches!(task.launcher, Launcher::OpenMpi | Launcher::Hydra | Launcher::Mvapich)
        };
        let is_of_mvapich = self.launcher == Launcher::Mvapich
            && other.launcher == Launcher::Hydra
            && local_ranks.is_some_and(|(own, other)| own == other)
            && self.local_size() == other.local_size();
        let is_nested = self.launcher != other.launcher
            && is_of_mpi(self)
            && is_of_mpi(other)
            && !is_of_mvapich;
        self.rank() == other.rank()
            && !is_nested
            && self.launcher != Launcher::Pmix
            && match sizes {
                Some((own, other)) => own == other,
                None => is_of_pals && local_ranks.is_none_or(|(own, other)| own == other),
            }
    }

    /// Checks the local numbers against those of the same rank by another name. Every process
    /// manager sets `PMI_RANK`, so Hydra's local numbers may be left over from an `mpirun` around
    /// this rank's launcher: Flux, for one, removes only `PMI_*` from the environment.
    fn agrees(&self, other: &Self) -> Result<(), IdentityError> {
        let pairs = [(self.local_rank, other.local_rank), (self.local_size, other.local_size)];
        let mut known = pairs.into_iter().filter_map(|(own, other)| own.zip(other));
        match known.find(|((_, own), (_, other))| own != other) {
            Some(((name, value), (other_name, other_value))) if self.rank.0 == "PMI_RANK" => {
                Err(IdentityError::LeftOver {
                    name,
                    value,
                    launcher: self.launcher,
                    other_name,
                    other_value,
                    other: other.launcher,
                })
            }
            _ => Ok(()),
        }
    }

    /// Adds the user's variables for numbers that the launcher does not give.
    fn completed(self, look: VariableLookup<'_>) -> Result<Self, IdentityError> {
        let given = |known: Option<NamedNumber>, name| match known {
            Some(known) => Ok(Some(known)),
            None => number(look, self.launcher, name),
        };
        let size = given(self.size, SIZE)?;
        let is_alone = size.is_some_and(|(_, size)| size == 1) && self.outer.is_none();
        let alone = |known: Option<NamedNumber>, value| known.or(is_alone.then_some((SIZE, value)));
        let local_rank = alone(given(self.local_rank, LOCAL_RANK)?, 0);
        let local_size = alone(given(self.local_size, LOCAL_SIZE)?, 1);
        Ok(Self { size, local_rank, local_size, ..self })
    }

    fn check(&self, look: VariableLookup<'_>) -> Result<(), IdentityError> {
        let launcher = self.launcher;
        let below = |part: Option<NamedNumber>, whole: Option<NamedNumber>| match part.zip(whole) {
            Some(((name, value), (of, limit))) if value >= limit => {
                Err(IdentityError::Beyond { name, value, of, limit, launcher })
            }
            _ => Ok(()),
        };
        below(Some(self.rank), self.size)?;
        below(self.local_rank, self.local_size)?;
        // Within one of several tasks, the user's local numbers are those among all of the host.
        let all = self.size.filter(|_| self.outer.is_none());
        below(self.local_rank, all)?;
        if let Some(((name, local), (of, size))) = self.local_size.zip(all)
            && local > size
        {
            return Err(IdentityError::MoreOnHost { name, local, of, size, launcher });
        }
        // With a PMI plugin srun sets both; they must agree.
        if launcher == Launcher::Slurm
            && let Some(tasks) = self.size()
            && let Some((_, size)) = number(look, launcher, "PMI_SIZE")?
            && size != tasks
        {
            return Err(IdentityError::SingletonWorld { tasks, size });
        }
        Ok(())
    }
}

/// The role of a process among ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The process is not a rank, and starts none.
    Alone,
    /// Starts this number of ranks.
    Starter(usize),
    Rank(Task),
}

impl Role {
    /// Returns the role of this process, with the number that `--ranks` gives.
    ///
    /// # Errors
    /// [`IdentityError`] if a launcher's variables are inconsistent, or for a rank that may not start
    /// others.
    pub fn of_own(asked: Option<u32>) -> Result<Self, IdentityError> {
        let asked = asked.map(|ranks| usize::try_from(ranks).unwrap_or(usize::MAX));
        Ok(match (detect_own()?, asked) {
            (None, None) => Self::Alone,
            (None, Some(ranks)) => Self::Starter(ranks),
            (Some(task), Some(ranks)) if task.starts_ranks(ranks)? => Self::Starter(ranks),
            (Some(task), _) => Self::Rank(task),
        })
    }
}

/// Looks up one variable of the environment.
pub type VariableLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Returns the rank that an environment describes; `None` without a launcher.
///
/// The innermost launcher counts: `mpirun` within a SLURM job rather than the job's step. Of
/// launchers that can run in each other's ranks it is `nearest`, the one that started the nearest
/// process, if that is known.
///
/// # Errors
/// [`IdentityError`] if a launcher's variables are inconsistent.
pub fn detect(
    look: VariableLookup<'_>,
    nearest: Option<Launcher>,
) -> Result<Option<Task>, IdentityError> {
    let found = match innermost(look, nearest) {
        Some(variables) => Task::of(&variables, look)?,
        None => match slurm::task(look)? {
            Some(task) => Some(task),
            None => last(look)?,
        },
    };
    let found = found.map(|task| pmix_within(task, look, nearest)).transpose()?;
    let found = found.map(|task| pytorch_within(task, look));
    let within_all = |task: Task| {
        let own = task.rank.0;
        // Its own numbers may have given way to those of the task around it.
        let mut others = outers(look).filter(|other| other.rank.0 != own);
        others.try_fold(task, |task, outer| task.within(&outer))
    };
    let found = found.map(within_all).transpose()?;
    let found = found.map(|task| task.completed(look)).transpose()?;
    if let Some(found) = &found {
        found.check(look)?;
    }
    Ok(found)
}

/// Detects the rank like [`detect`], from this process's environment and the processes above it.
///
/// # Errors
/// As [`detect`].
pub fn detect_own() -> Result<Option<Task>, IdentityError> {
    detect(&|name| std::env::var(name).ok(), starters::nearest(&Root::live(), "self"))
}

/// Detects the rank of another process like [`detect`], from its environment and the processes above
/// it.
///
/// # Errors
/// As [`detect`].
pub fn detect_of(
    root: &Root,
    process: u32,
    look: VariableLookup<'_>,
) -> Result<Option<Task>, IdentityError> {
    detect(look, starters::nearest(root, &process.to_string()))
}

fn number<'a>(
    look: VariableLookup<'_>,
    launcher: Launcher,
    name: &'a str,
) -> Result<Option<(&'a str, usize)>, IdentityError> {
    let Some(value) = look(name) else { return Ok(None) };
    let digits = value.trim();
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    match digits.parse() {
        Ok(number) if is_plain && number <= MOST_RANKS => Ok(Some((name, number))),
        _ => Err(IdentityError::NotANumber { name: name.to_owned(), value, launcher }),
    }
}

#[cfg(test)]
mod tests;
