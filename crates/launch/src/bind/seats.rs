//! Which entry of a list is a rank's.

use crate::identity::{LOCAL_RANK, LOCAL_SIZE, Launcher, Task};

/// Why it is unknown which entry of a list is a rank's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeatError {
    /// The list does not suit the ranks.
    #[error(
        "{option} names {entries} {what} for {}: expected one for all, or one for each",
        ranks_of(*local, *ranks)
    )]
    Length {
        /// The option.
        option: &'static str,
        /// Entries named.
        entries: usize,
        /// What these are, `nodes` or `cpus`.
        what: &'static str,
        /// Ranks on this host, where known.
        local: Option<usize>,
        /// All ranks, where known.
        ranks: Option<usize>,
    },
    /// A list, but no launcher.
    #[error(
        "{option} names {entries} {what}, but no launcher says which rank this is: start it by srun or mpirun, or name one"
    )]
    NoRank {
        /// The option.
        option: &'static str,
        /// Entries named.
        entries: usize,
        /// What these are.
        what: &'static str,
    },
    /// The launcher does not say which of its host's ranks this is.
    #[error(
        "rank {rank} was started by {launcher}, which does not say which of this host's ranks it is: set {LOCAL_RANK} (from 0), or name one node"
    )]
    NoLocalRank {
        /// The rank.
        rank: usize,
        /// Who started it.
        launcher: Launcher,
    },
    /// The launcher does not say how many ranks are on this host.
    #[error(
        "{option} names {entries} {what}, but {launcher} does not say how many ranks this host has: set {LOCAL_SIZE}, or name one for each of all ranks"
    )]
    NoLocalSize {
        /// The option.
        option: &'static str,
        /// Entries named.
        entries: usize,
        /// What these are.
        what: &'static str,
        /// Who started the rank.
        launcher: Launcher,
    },
}

fn ranks_of(local: Option<usize>, ranks: Option<usize>) -> String {
    match (local, ranks) {
        (Some(local), Some(ranks)) if local != ranks => {
            format!("{local} ranks on this host and {ranks} ranks in all")
        }
        (_, Some(ranks)) => format!("{ranks} ranks"),
        (Some(local), None) => format!("{local} ranks on this host"),
        (None, None) => "an unknown number of ranks".to_owned(),
    }
}

/// A list of which each rank has one entry.
#[derive(Clone, Copy, Debug)]
pub struct Seats {
    /// The option that gave it, such as `--numa`.
    pub option: &'static str,
    /// What it names, such as `nodes`.
    pub what: &'static str,
    /// The number of entries.
    pub entries: usize,
}

impl Seats {
    /// Returns the entry of a rank (none: the process is not a rank).
    ///
    /// A list as long as there are ranks goes by rank. One as long as there are ranks on this
    /// host goes by local rank, on each host anew. Both are the same on one host.
    ///
    /// # Errors
    /// [`SeatError`] if the list has another length, or a number that decides is unknown.
    pub fn of(self, task: Option<&Task>) -> Result<usize, SeatError> {
        let Self { option, what, entries } = self;
        let Some(task) = task else {
            let no_rank = SeatError::NoRank { option, entries, what };
            return if entries == 1 { Ok(0) } else { Err(no_rank) };
        };
        if entries == 1 && what == "nodes" {
            return Ok(0);
        }
        let (local, ranks, launcher) = (task.local_size(), task.size(), task.launcher());
        if ranks == Some(entries) {
            return Ok(task.rank());
        }
        match local {
            Some(local) if local == entries => local_rank(task),
            None if ranks.is_none_or(|ranks| entries < ranks) => {
                local_rank(task)?;
                Err(SeatError::NoLocalSize { option, entries, what, launcher })
            }
            _ => Err(SeatError::Length { option, entries, what, local, ranks }),
        }
    }
}

/// The rank's number on its host.
pub(super) fn local_rank(task: &Task) -> Result<usize, SeatError> {
    let (rank, launcher) = (task.rank(), task.launcher());
    task.local_rank().ok_or(SeatError::NoLocalRank { rank, launcher })
}
