//! Assigns entries of a list to ranks.

use numalab_topology::count;

use crate::identity::{LOCAL_RANK, LOCAL_SIZE, Launcher, Task};

/// Reason why a rank's entry of a list is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeatError {
    #[error(
        "{option} names {} for {}: expected {}one for each",
        count(*entries, what),
        ranks_of(*local, *ranks),
        if are_shared(what) { "one for all, or " } else { "" }
    )]
    Length {
        option: &'static str,
        entries: usize,
        /// The kind of entries, `node` or `cpu`.
        what: &'static str,
        /// Ranks on this host, if known.
        local: Option<usize>,
        /// All ranks, if known.
        ranks: Option<usize>,
    },
    #[error(
        "{option} names {}, but no launcher says which rank this is: start it with srun or mpirun, or name one",
        count(*entries, what)
    )]
    NoRank {
        option: &'static str,
        entries: usize,
        /// The kind of entries.
        what: &'static str,
    },
    #[error(
        "rank {rank} was started by {launcher}, which does not say which of this host's ranks it is: set {LOCAL_RANK} (from 0), or name one node"
    )]
    NoLocalRank { rank: usize, launcher: Launcher },
    /// The rank's launcher ran in one of several tasks of another launcher on this host.
    #[error(
        "rank {rank} was started by {launcher} within one of several tasks that {outer} started \
         on this host, so its number on the host is unknown: set {LOCAL_RANK} (from 0), or name \
         one node"
    )]
    Nested { rank: usize, launcher: Launcher, outer: Launcher },
    #[error(
        "{option} names {}, but {launcher} does not say how many ranks this host has: set {LOCAL_SIZE}, or give one for every rank of the job",
        count(*entries, what)
    )]
    NoLocalSize {
        option: &'static str,
        entries: usize,
        /// The kind of entries.
        what: &'static str,
        launcher: Launcher,
    },
}

/// Returns true if several ranks may have the same entry: they may share a node, but not a cpu.
fn are_shared(what: &str) -> bool {
    what == "node"
}

fn ranks_of(local: Option<usize>, ranks: Option<usize>) -> String {
    match (local, ranks) {
        (Some(local), Some(ranks)) if local != ranks => {
            format!("{} on this host and {} in all", count(local, "rank"), count(ranks, "rank"))
        }
        (_, Some(ranks)) => count(ranks, "rank"),
        (Some(local), None) => format!("{} on this host", count(local, "rank")),
        (None, None) => "an unknown number of ranks".to_owned(),
    }
}

/// A list with one entry for each rank.
#[derive(Clone, Copy, Debug)]
pub struct Seats {
    /// The option that gave the list, such as `--numa`.
    pub option: &'static str,
    /// The kind of the entries, such as `node`.
    pub what: &'static str,
    pub entries: usize,
}

impl Seats {
    /// Returns the index of a rank's entry (`None` for a process that is not a rank).
    ///
    /// A list with an entry for every rank is indexed by rank; one with an entry for every rank of
    /// this host by local rank. On a single host both are the same.
    ///
    /// # Errors
    /// [`SeatError`] if the list has another length, or a deciding number is unknown.
    pub fn entry_of(self, task: Option<&Task>) -> Result<usize, SeatError> {
        let Self { option, what, entries } = self;
        let Some(task) = task else {
            let no_rank = SeatError::NoRank { option, entries, what };
            return if entries == 1 { Ok(0) } else { Err(no_rank) };
        };
        if entries == 1 && are_shared(what) {
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

/// Returns the rank's number on its host.
pub(super) fn local_rank(task: &Task) -> Result<usize, SeatError> {
    let (rank, launcher) = (task.rank(), task.launcher());
    task.local_rank().ok_or(match task.outer() {
        Some(outer) => SeatError::Nested { rank, launcher, outer },
        None => SeatError::NoLocalRank { rank, launcher },
    })
}
