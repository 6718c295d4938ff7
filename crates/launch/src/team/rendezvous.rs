//! The meeting place of ranks, from the launcher's variables.

use std::path::PathBuf;

use numalab_host::MpiFlavour;
use sha2::{Digest, Sha256};

use super::TeamError;
use super::secret::SecretSource;
use super::shared_memory::{SharedMemoryEndpoint, birth_of};
use super::tcp::TcpEndpoint;
use crate::hostlist::first_host;
use crate::identity::{Identity, Launcher, Local, VariableLookup};
use crate::local::MEETING;

/// Ports that rank 0's host tries, beginning with one derived from the start's name.
const PORTS: u16 = 8;

/// The requested meeting place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Rendezvous {
    /// Shared memory on one host, TCP between the hosts of a SLURM step, else MPI.
    #[default]
    Auto,
    /// Shared memory: all ranks must be on one host.
    Node,
    /// TCP between hosts, at this host (rank 0's) and port.
    Tcp(String, u16),
    /// An MPI library found at run time, or this one.
    Mpi(Option<String>),
}

impl std::str::FromStr for Rendezvous {
    type Err = String;

    /// Parses `auto`, `node`, `tcp:HOST:PORT`, `mpi` or `mpi:LIBRARY`.
    fn from_str(text: &str) -> Result<Self, String> {
        let tcp = |rest: &str| {
            let (host, port) = rest.rsplit_once(':')?;
            let port = port.parse().ok().filter(|port| *port > 0)?;
            (!host.is_empty()).then(|| Self::Tcp(host.to_owned(), port))
        };
        match text {
            "auto" => Some(Self::Auto),
            "node" => Some(Self::Node),
            "mpi" => Some(Self::Mpi(None)),
            _ => match text.strip_prefix("mpi:") {
                Some(library) if !library.is_empty() => Some(Self::Mpi(Some(library.to_owned()))),
                _ => text.strip_prefix("tcp:").and_then(tcp),
            },
        }
        .ok_or_else(|| format!("`{text}`: expected auto, node, tcp:HOST:PORT, mpi or mpi:LIBRARY"))
    }
}

/// The meeting place in detail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// MPI, with the first of these libraries that exists.
    Mpi(Vec<String>),
    /// Shared memory, and TCP if there are several hosts.
    Hosts {
        /// This host's shared memory.
        shared_memory: SharedMemoryEndpoint,
        /// The connection among the first ranks of the hosts.
        tcp: Option<TcpEndpoint>,
    },
}

pub(super) fn choose(
    identity: &Identity,
    rendezvous: &Rendezvous,
    look: VariableLookup<'_>,
) -> Result<Endpoint, TeamError> {
    let launcher = identity.launcher;
    let nowhere = || TeamError::Nowhere { launcher };
    let several = !identity.is_on_one_host();
    match rendezvous {
        Rendezvous::Mpi(Some(library)) => return Ok(Endpoint::Mpi(vec![library.clone()])),
        Rendezvous::Mpi(None) => return Ok(Endpoint::Mpi(libraries(flavour(launcher, look)))),
        Rendezvous::Auto if several && launcher != Launcher::Slurm => {
            return Ok(Endpoint::Mpi(libraries(flavour(launcher, look))));
        }
        _ => {}
    }
    if several && *rendezvous == Rendezvous::Node {
        return Err(nowhere());
    }
    let single = Local { rank: identity.rank, size: identity.size };
    let local = if several {
        identity.local.ok_or_else(nowhere)?
    } else {
        identity.local.unwrap_or(single)
    };
    let node = look("SLURM_NODEID").unwrap_or_default();
    let start = start_of(launcher, look);
    // Several node names can be one machine (slurmd's multiple-slurmd mode); each has separate
    // shared memory.
    let host = look("SLURMD_NODENAME").unwrap_or_default();
    let name = format!(
        "numalab-{}-{:016x}",
        rustix::process::getuid().as_raw(),
        hash(&[&start, &node, &host])
    );
    let shared_memory = SharedMemoryEndpoint {
        path: shared_memory_directory().join(name),
        local_rank: local.rank,
        local_size: local.size,
    };
    let tcp = several.then(|| hosts(identity, local, rendezvous, &start, look)).transpose()?;
    Ok(Endpoint::Hosts { shared_memory, tcp })
}

fn hosts(
    identity: &Identity,
    local: Local,
    rendezvous: &Rendezvous,
    start: &str,
    look: VariableLookup<'_>,
) -> Result<TcpEndpoint, TeamError> {
    let number = |name| look(name).and_then(|text: String| text.parse::<usize>().ok());
    let hosts = number("SLURM_STEP_NUM_NODES").or_else(|| number("NUMALAB_HOSTS"));
    // Without other information, all hosts are assumed to have the same number of ranks.
    let hosts = hosts.unwrap_or_else(|| identity.size.div_ceil(local.size.max(1)));
    let is_root = match number("SLURM_NODEID") {
        Some(node) => node == 0,
        None => identity.rank == 0,
    };
    let name = format!("{:016x}", hash(&[start, &identity.size.to_string()]));
    let secret = SecretSource::of(&name, look);
    let secret = secret.map_err(|reason| TeamError::Place { place: "TCP".to_owned(), reason })?;
    let (names, ports) = match rendezvous {
        Rendezvous::Tcp(host, port) => (vec![host.clone()], vec![*port]),
        _ => {
            let list = look("SLURM_STEP_NODELIST").or_else(|| look("SLURM_JOB_NODELIST"));
            let first = list.and_then(|list| first_host(&list));
            // If the name has no address, the host that srun runs on is often the first.
            let launched = ["SLURM_LAUNCH_NODE_IPADDR", "SLURM_SRUN_COMM_HOST"];
            let names: Vec<String> =
                first.into_iter().chain(launched.iter().filter_map(|name| look(name))).collect();
            if names.is_empty() {
                return Err(TeamError::Nowhere { launcher: identity.launcher });
            }
            let port = 20_000 + u16::try_from(hash(&[start]) % 12_000).unwrap_or(0);
            (names, (port..port + PORTS).collect())
        }
    };
    Ok(TcpEndpoint { is_root, hosts, names, ports, secret })
}

/// Returns a name that all ranks of one start share, and no other start has.
fn start_of(launcher: Launcher, look: VariableLookup<'_>) -> String {
    let join = |names: &[&str]| {
        let values = names.iter().map(|name| look(name).unwrap_or_default());
        values.collect::<Vec<_>>().join("/")
    };
    match launcher {
        Launcher::Local => join(&[MEETING]),
        Launcher::Slurm => {
            join(&["SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_SRUN_COMM_HOST", "SLURM_SRUN_COMM_PORT"])
        }
        Launcher::OpenMpi => {
            join(&["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri"])
        }
        Launcher::Pals => join(&["PALS_APID", "PBS_JOBID"]),
        Launcher::Flux => join(&["FLUX_JOB_ID", "FLUX_URI"]),
        Launcher::Torchrun => join(&["TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"]),
        Launcher::Horovod => {
            join(&["HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT"])
        }
        Launcher::Jsrun => join(&["LSB_JOBID", "PMIX_NAMESPACE"]),
        Launcher::Blaunch => join(&["LSB_JOBID"]),
        Launcher::Alps => join(&["ALPS_APP_ID"]),
        Launcher::Pbsdsh => join(&["PBS_JOBID"]),
        Launcher::Pmix => join(&["PMIX_NAMESPACE"]),
        // The environment does not distinguish one start from another; the process that started all
        // ranks of this host does.
        Launcher::Hydra
        | Launcher::PlatformMpi
        | Launcher::Mvapich
        | Launcher::Mpt
        | Launcher::Nec
        | Launcher::Condor
        | Launcher::Poe
        | Launcher::OscMpiexec
        | Launcher::Pytorch
        | Launcher::Paddle
        | Launcher::Charmrun
        | Launcher::Pmi => ancestor(),
    }
}

/// Identifies Hydra's proxy, else the parent process, with its start time.
fn ancestor() -> String {
    let parent = |process: u32| -> Option<(u32, String)> {
        let stat = numalab_host::proc::Stat::of(process)?;
        Some((stat.parent, stat.name))
    };
    let first = parent(std::process::id()).map_or(0, |(process, _)| process);
    let mut process = first;
    while process > 1 {
        let Some((next, name)) = parent(process) else { break };
        if name.starts_with("hydra_pmi") {
            return format!("{process}/{}", birth_of(process).unwrap_or(0));
        }
        process = next;
    }
    format!("{first}/{}", birth_of(first).unwrap_or(0))
}

/// Returns the most likely MPI implementation for a launcher.
fn flavour(launcher: Launcher, look: VariableLookup<'_>) -> MpiFlavour {
    match launcher {
        Launcher::OpenMpi | Launcher::Jsrun | Launcher::Pmix => MpiFlavour::OpenMpi,
        Launcher::Pals | Launcher::Alps => MpiFlavour::CrayMpich,
        Launcher::Slurm if look("PMI_RANK").is_none() => MpiFlavour::OpenMpi,
        _ => MpiFlavour::Mpich,
    }
}

/// Returns the libraries of all implementations, the most likely first.
fn libraries(first: MpiFlavour) -> Vec<String> {
    let all = [MpiFlavour::OpenMpi, MpiFlavour::Mpich, MpiFlavour::CrayMpich];
    let others = all.into_iter().filter(|flavour| *flavour != first);
    let names = std::iter::once(first).chain(others).flat_map(MpiFlavour::library_names);
    names.map(|name| (*name).to_owned()).collect()
}

fn shared_memory_directory() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { std::env::temp_dir() }
}

/// Hashes the parts, equally on every host and in every build.
fn hash(parts: &[&str]) -> u64 {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
        hash.update([0]);
    }
    hash.finalize().first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_named_or_refused_with_the_expected_form() {
        assert_eq!("tcp:n1:7000".parse(), Ok(Rendezvous::Tcp("n1".to_owned(), 7000)));
        assert_eq!("mpi".parse(), Ok(Rendezvous::Mpi(None)));
        assert_eq!("mpi:libx.so".parse(), Ok(Rendezvous::Mpi(Some("libx.so".to_owned()))));
        for text in ["", "tcp:", "tcp:n1", "tcp::7", "tcp:n1:0", "udp:n1:7", "mpi:"] {
            assert!(text.parse::<Rendezvous>().unwrap_err().contains("tcp:HOST:PORT"), "{text}");
        }
    }

    #[test]
    fn hashes_compared_by_hosts_are_the_same_in_every_build() {
        // printf 'a\0b\0' | sha256sum
        assert_eq!(hash(&["a", "b"]), 0x8fb2_0ef6_3ced_4145);
        assert_ne!(hash(&["a", "b"]), hash(&["ab", ""]));
    }

    #[test]
    fn ranks_of_several_hosts_meet_over_tcp_under_slurm_and_by_mpi_under_mpirun() {
        let local = Some(Local { rank: 1, size: 2 });
        let of = |launcher| Identity { launcher, rank: 3, size: 4, local };
        let slurm = |name: &str| match name {
            "SLURM_NODEID" => Some("1".to_owned()),
            "SLURM_STEP_NUM_NODES" => Some("2".to_owned()),
            "SLURM_STEP_NODELIST" => Some("nid[007-008]".to_owned()),
            "HOME" => Some("/home/someone".to_owned()),
            _ => None,
        };
        let place = choose(&of(Launcher::Slurm), &Rendezvous::Auto, &slurm).unwrap();
        let Endpoint::Hosts { tcp: Some(tcp), .. } = place else { panic!("{place:?}") };
        assert!(!tcp.is_root);
        assert_eq!((tcp.hosts, tcp.names[0].as_str()), (2, "nid007"));
        let place = choose(&of(Launcher::OpenMpi), &Rendezvous::Auto, &slurm).unwrap();
        let Endpoint::Mpi(libraries) = place else { panic!("{place:?}") };
        assert_eq!(libraries[0], "libmpi.so.40");
        assert!(choose(&of(Launcher::Slurm), &Rendezvous::Node, &slurm).is_err());
    }
}
