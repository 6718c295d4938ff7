//! Arguments of measuring commands that run as ranks.

use std::path::PathBuf;

use clap::Args;
use numalab_launch::team::Rendezvous;

/// Options for starting ranks and for their files.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Ranks (under srun and mpirun, or with --ranks)")]
pub(crate) struct RankArgs {
    /// Number of ranks to start on this host, each on its own core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub ranks: Option<u32>,
    /// Write a CSV with a column per rank (size (MB),0,1,...), NAME.json (the run with its cells)
    /// and mapping_check.log
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Method by which ranks find each other: auto, node (shared memory), tcp:HOST:PORT (rank 0's
    /// host), mpi, mpi:LIBRARY
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub meet: Rendezvous,
    /// Allow ranks to share a CPU (they then measure each other)
    #[arg(long)]
    pub overcommit: bool,
}

/// Options for the pointer chase of ranks.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Ranks (under srun and mpirun, or with --ranks)")]
pub(crate) struct ChaseArgs {
    /// Number of measured loads per size
    #[arg(long, value_name = "N", env = "LATENCY_ITERATIONS", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// Minimum number of warm-up loads; at least one pass over the buffer, or a million
    #[arg(long, value_name = "N", env = "WARMUP_ITERATIONS", default_value_t = 1_000)]
    pub warmup: u64,
}
