//! Reasons why a rank is unknown.

use numalab_host::{Classed, ErrorClass};

use super::MOST_RANKS;
use super::launchers::{Launcher, SIZE};

/// Reason why a launcher's variables do not determine the rank.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    #[error("{name}={value}: expected a number from 0 to {MOST_RANKS}; it is set by {launcher}")]
    NotANumber { name: String, value: String, launcher: Launcher },
    #[error(
        "{present} is set, as by {launcher}, but {missing} is not: set it, or start the ranks by \
         srun, mpirun or --ranks"
    )]
    Incomplete { present: &'static str, missing: &'static str, launcher: Launcher },
    #[error(
        "{name}={rank} is set by {launcher}, which does not say how many ranks there are: set {SIZE} to their number"
    )]
    NoSize { name: &'static str, rank: usize, launcher: Launcher },
    #[error(
        "{name}={value}, but {of}={limit}, as {launcher} says: expected a rank below their number"
    )]
    Beyond { name: &'static str, value: usize, of: &'static str, limit: usize, launcher: Launcher },
    #[error(
        "{name}={local}, but {of}={size}, as {launcher} says: expected at most all ranks on one host"
    )]
    MoreOnHost {
        /// The variable of the number of ranks on this host.
        name: &'static str,
        /// The number of ranks on this host.
        local: usize,
        /// The variable of the total number of ranks.
        of: &'static str,
        size: usize,
        launcher: Launcher,
    },
    #[error(
        "{name}={value}, as {launcher} sets it, but {other_name}={other_value}, as {other} sets \
         it, for the same rank: unset the stale one, such as {name} from an mpirun around {other}"
    )]
    LeftOver {
        name: &'static str,
        value: usize,
        launcher: Launcher,
        other_name: &'static str,
        other_value: usize,
        other: Launcher,
    },
    /// `--ranks` was given to a process that is already a rank.
    #[error(
        "--ranks {asked}: this process is already a rank ({name}={rank}, set by {launcher}): omit \
         --ranks, or start it outside of {launcher}"
    )]
    RankAlready { asked: usize, name: &'static str, rank: usize, launcher: Launcher },
    #[error(
        "srun started {tasks} tasks, but each finds a world of {size}: the MPI plugin does not \
         match (srun --mpi=pmi2 for MPICH, --mpi=pmix for Open MPI)"
    )]
    SingletonWorld { tasks: usize, size: usize },
}

impl Classed for IdentityError {
    fn class(&self) -> ErrorClass {
        ErrorClass::BadInput
    }
}
