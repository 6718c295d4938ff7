//! Synchronises ranks and exchanges their results.

mod message;
mod rendezvous;
mod secret;
mod shared_memory;
mod tcp;

use std::time::Duration;

use numalab_host::{Classed, ErrorClass, Mpi, MpiError};

use crate::identity::{Identity, IdentityError, Launcher, VariableLookup};
use message::RankMessages;
use rendezvous::Endpoint;
pub use rendezvous::Rendezvous;
pub use secret::{SECRET, new_secret};
use shared_memory::SharedMemoryTransport;
use tcp::TcpTransport;

/// Time that ranks wait for the last one to join.
const ARRIVAL: Duration = Duration::from_secs(60);

/// Reason why ranks could not meet, or lost each other.
#[derive(Debug, thiserror::Error)]
pub enum TeamError {
    #[error("rank {rank}: only {present} of {expected} {what} arrived at {place} within {} s: did \
             the launcher start all of them with this same program?", ARRIVAL.as_secs())]
    NotAllCame {
        /// The reporting rank.
        rank: usize,
        /// Number that joined.
        present: usize,
        expected: usize,
        /// "ranks" or "hosts".
        what: &'static str,
        place: String,
    },
    #[error("rank {rank} is gone (process {process} on this host): it was killed or failed")]
    Gone { rank: usize, process: u32 },
    #[error("another rank aborted")]
    GaveUp,
    /// The rendezvous failed.
    #[error("the ranks cannot connect at {place}: {reason}")]
    Place { place: String, reason: String },
    /// The launcher does not provide a meeting place for ranks of several hosts.
    #[error(
        "{launcher} does not say where ranks of several hosts can connect; use --meet mpi, or \
         --meet tcp:HOST:PORT with rank 0's host"
    )]
    Nowhere { launcher: Launcher },
    /// MPI cannot be used.
    #[error(transparent)]
    Mpi(#[from] MpiError),
    /// The launcher and MPI disagree about the ranks.
    #[error(transparent)]
    World(#[from] IdentityError),
}

impl Classed for TeamError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Nowhere { .. } | Self::World(_) => ErrorClass::BadInput,
            Self::Mpi(error) => error.class(),
            _ => ErrorClass::Failed,
        }
    }
}

#[derive(Debug)]
enum Transport {
    Alone,
    /// Shared memory among the ranks of this host, and TCP to other hosts if there are any.
    Hosts {
        shared_memory: SharedMemoryTransport,
        tcp: Option<TcpTransport>,
    },
    Mpi(Mpi),
}

/// All ranks, from the view of one of them.
#[derive(Debug)]
pub struct Team {
    rank: usize,
    size: usize,
    transport: Transport,
}

impl Team {
    /// Joins the other ranks.
    ///
    /// # Errors
    /// Every variant of [`TeamError`].
    pub fn join(
        identity: &Identity,
        rendezvous: &Rendezvous,
        look: VariableLookup<'_>,
    ) -> Result<Self, TeamError> {
        let (rank, size) = (identity.rank, identity.size);
        let transport = match rendezvous::choose(identity, rendezvous, look)? {
            _ if size == 1 && !matches!(rendezvous, Rendezvous::Mpi(_)) => Transport::Alone,
            Endpoint::Mpi(libraries) => Transport::Mpi(join_mpi(identity, &libraries)?),
            Endpoint::Hosts { shared_memory, tcp } => {
                let shared_memory = SharedMemoryTransport::attach(&shared_memory, rank, ARRIVAL)?;
                let tcp = match tcp {
                    Some(place) if shared_memory.is_first() => {
                        Some(TcpTransport::join(&place, rank, ARRIVAL)?)
                    }
                    _ => None,
                };
                Transport::Hosts { shared_memory, tcp }
            }
        };
        let mut team = Self { rank, size, transport };
        team.barrier()?;
        Ok(team)
    }

    pub fn rank(&self) -> usize {
        self.rank
    }

    pub fn size(&self) -> usize {
        self.size
    }

    /// Describes the transport for the user.
    pub fn describe(&self) -> String {
        match &self.transport {
            Transport::Alone => "alone".to_owned(),
            Transport::Hosts { tcp: None, .. } => "shared memory".to_owned(),
            Transport::Hosts { .. } => "shared memory and TCP".to_owned(),
            Transport::Mpi(mpi) => format!("MPI ({}: {})", mpi.flavour(), mpi.version()),
        }
    }

    /// Waits until every rank has called it.
    ///
    /// # Errors
    /// [`TeamError`] if a rank has ended or given up.
    pub fn barrier(&mut self) -> Result<(), TeamError> {
        if let Transport::Mpi(mpi) = &self.transport {
            return Ok(mpi.barrier()?);
        }
        if let Transport::Hosts { shared_memory, tcp: None } = &mut self.transport
            && shared_memory.size() == self.size
        {
            return shared_memory.barrier();
        }
        self.all_gather(&[]).map(drop)
    }

    /// Gathers every rank's bytes, indexed by rank.
    ///
    /// # Errors
    /// [`TeamError`] if a rank has ended or given up.
    pub fn all_gather(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, TeamError> {
        match &mut self.transport {
            Transport::Alone => Ok(vec![bytes.to_vec()]),
            Transport::Mpi(mpi) => Ok(mpi.all_gather(bytes)?),
            Transport::Hosts { shared_memory, tcp } => {
                let own = shared_memory.all_gather(bytes)?;
                let messages =
                    RankMessages(shared_memory.ranks().iter().copied().zip(own).collect());
                if shared_memory.size() == self.size {
                    return messages.by_rank(self.size);
                }
                let all = match tcp {
                    Some(tcp) => tcp.exchange(&messages.encode())?,
                    None => Vec::new(),
                };
                let mut shared = shared_memory.all_gather(&all)?;
                RankMessages::decode(&shared.swap_remove(0))?.by_rank(self.size)
            }
        }
    }

    /// Continues with `work` until every rank of this host has called it, so that no rank measures
    /// while others are idle already. Under MPI it returns at once.
    ///
    /// # Errors
    /// [`TeamError`] if a rank has ended or given up.
    pub fn work_until_all_are_done(&mut self, work: impl FnMut()) -> Result<(), TeamError> {
        match &mut self.transport {
            Transport::Hosts { shared_memory, .. } => shared_memory.work_until_all_are_done(work),
            Transport::Alone | Transport::Mpi(_) => Ok(()),
        }
    }

    /// Makes the other ranks' calls fail.
    pub fn give_up(&mut self) {
        match &mut self.transport {
            Transport::Alone => {}
            Transport::Hosts { shared_memory, tcp } => {
                shared_memory.give_up();
                *tcp = None;
            }
            Transport::Mpi(mpi) => mpi.abort(1),
        }
    }

    /// Leaves the team after the last exchange.
    ///
    /// # Errors
    /// [`TeamError`] if a rank has ended early.
    pub fn part(mut self) -> Result<(), TeamError> {
        self.barrier()?;
        match self.transport {
            Transport::Mpi(mpi) => Ok(mpi.finalize()?),
            _ => Ok(()),
        }
    }
}

/// Initialises MPI, and checks that its number of ranks is the launcher's.
fn join_mpi(identity: &Identity, libraries: &[String]) -> Result<Mpi, TeamError> {
    let names: Vec<&str> = libraries.iter().map(String::as_str).collect();
    let mpi = Mpi::init(&names)?;
    let (rank, size) = mpi.rank_and_size()?;
    if (rank, size) == (identity.rank, identity.size) {
        return Ok(mpi);
    }
    // Singletons cannot abort each other, and waiting for each other would never end.
    mpi.finalize()?;
    Err(IdentityError::SingletonWorld { tasks: identity.size, size }.into())
}

#[cfg(test)]
mod tests;
