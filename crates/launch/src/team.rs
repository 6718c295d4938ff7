//! Ranks together: they meet, wait for each other, and tell each other what they found.

mod message;
mod rendezvous;
mod secret;
mod shared_memory;
mod tcp;

use std::time::Duration;

use numalab_host::{Mpi, MpiError};

use crate::identity::{Identity, IdentityError, Launcher, Look};
use message::RankMessages;
use rendezvous::Endpoint;
pub use rendezvous::Rendezvous;
pub use secret::{SECRET, new_secret};
use shared_memory::SharedMemoryTransport;
use tcp::TcpTransport;

/// How long ranks wait for the last one to come.
const ARRIVAL: Duration = Duration::from_secs(60);

/// Why ranks could not meet or lost each other.
#[derive(Debug, thiserror::Error)]
pub enum TeamError {
    /// Some never came.
    #[error("rank {rank}: only {present} of {expected} {what} came to {place} within {} s: did the launcher start them all, of this same program?", ARRIVAL.as_secs())]
    NotAllCame {
        /// Who says so.
        rank: usize,
        /// Who came.
        present: usize,
        /// Who should have.
        expected: usize,
        /// "ranks" or "hosts".
        what: &'static str,
        /// Where.
        place: String,
    },
    /// A rank ended or was killed.
    #[error("rank {rank} is gone (process {process} on this host): it was killed or failed")]
    Gone {
        /// The rank, by its number on this host.
        rank: usize,
        /// Its process.
        process: u32,
    },
    /// A rank gave up.
    #[error("another rank gave up")]
    GaveUp,
    /// The rendezvous failed.
    #[error("the ranks cannot meet at {place}: {reason}")]
    Place {
        /// Where.
        place: String,
        /// Why not.
        reason: String,
    },
    /// The launcher does not tell where ranks of several hosts can meet.
    #[error(
        "{launcher} does not say where ranks of several hosts can meet; use --meet mpi, or --meet tcp:HOST:PORT with rank 0's host"
    )]
    Nowhere {
        /// The launcher.
        launcher: Launcher,
    },
    /// MPI cannot be used.
    #[error(transparent)]
    Mpi(#[from] MpiError),
    /// The launcher and MPI tell different worlds.
    #[error(transparent)]
    World(#[from] IdentityError),
}

impl TeamError {
    /// The class of the error.
    #[must_use]
    pub fn class(&self) -> numalab_host::ErrorClass {
        match self {
            Self::Nowhere { .. } | Self::World(_) => numalab_host::ErrorClass::BadInput,
            Self::Mpi(error) => error.class(),
            _ => numalab_host::ErrorClass::Failed,
        }
    }
}

#[derive(Debug)]
enum Transport {
    /// One rank.
    Alone,
    /// All ranks of this host, and TCP to other hosts if there are any.
    Hosts { shared_memory: SharedMemoryTransport, tcp: Option<TcpTransport> },
    /// MPI's own.
    Mpi(Mpi),
}

/// All ranks, as one of them sees them.
#[derive(Debug)]
pub struct Team {
    rank: usize,
    size: usize,
    transport: Transport,
}

impl Team {
    /// Meets the other ranks.
    ///
    /// # Errors
    /// Every variant of [`TeamError`].
    pub fn join(
        identity: &Identity,
        rendezvous: &Rendezvous,
        look: Look<'_>,
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

    /// This rank's number.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many ranks there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// How they meet, for the reader.
    #[must_use]
    pub fn describe(&self) -> String {
        match &self.transport {
            Transport::Alone => "alone".to_owned(),
            Transport::Hosts { tcp: None, .. } => "shared memory".to_owned(),
            Transport::Hosts { .. } => "shared memory and TCP".to_owned(),
            Transport::Mpi(mpi) => format!("MPI ({}: {})", mpi.flavour(), mpi.version()),
        }
    }

    /// Waits until every rank is here.
    ///
    /// # Errors
    /// [`TeamError`] if one is gone or gave up.
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

    /// What every rank gave, by rank.
    ///
    /// # Errors
    /// [`TeamError`] if one is gone or gave up.
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

    /// Goes on with `work` until every rank of this host has come here, so that nobody
    /// measures beside ranks which rest already. Under MPI it returns at once.
    ///
    /// # Errors
    /// [`TeamError`] if one is gone or gave up.
    pub fn work_until_all_are_done(&mut self, work: impl FnMut()) -> Result<(), TeamError> {
        match &mut self.transport {
            Transport::Hosts { shared_memory, .. } => shared_memory.work_until_all_are_done(work),
            Transport::Alone | Transport::Mpi(_) => Ok(()),
        }
    }

    /// Tells the others that this rank gives up.
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

    /// Parts in peace.
    ///
    /// # Errors
    /// [`TeamError`] if one is gone.
    pub fn part(mut self) -> Result<(), TeamError> {
        self.barrier()?;
        match self.transport {
            Transport::Mpi(mpi) => Ok(mpi.finalize()?),
            _ => Ok(()),
        }
    }
}

/// MPI, after a check that its world is the launcher's.
fn join_mpi(identity: &Identity, libraries: &[String]) -> Result<Mpi, TeamError> {
    let names: Vec<&str> = libraries.iter().map(String::as_str).collect();
    let mpi = Mpi::init(&names)?;
    let (rank, size) = mpi.rank_and_size()?;
    if (rank, size) == (identity.rank, identity.size) {
        return Ok(mpi);
    }
    // Singletons cannot abort each other, and must not wait for each other.
    mpi.finalize()?;
    Err(IdentityError::SingletonWorld { tasks: identity.size, size }.into())
}

#[cfg(test)]
mod tests;
