//! Arguments that every measuring command takes.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use numalab_launch::team::Rendezvous;
use numalab_record::Pages;
use numalab_topology::{Chosen, CpuId, CpuSet, Machine, NodeId, NodeSet};

use super::{Format, value};

/// Arguments of every command that measures cells.
#[derive(Clone, Debug, Args)]
pub(crate) struct Measuring {
    #[command(flatten)]
    pub selection: Selection,
    #[command(flatten)]
    pub rules: Rules,
    #[command(flatten)]
    pub output: Output,
}

/// The part of the machine to measure; by default all that this process may use.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Selection {
    /// CPUs to measure on, such as 0-3,8, all, or !0: all but CPU 0 [default: all that this process may use]
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<Chosen<CpuId>>,
    /// Nodes whose memory to measure, such as 0,1, all, or !0: all but node 0 [default: all]
    #[arg(long, value_name = "LIST")]
    pub nodes: Option<Chosen<NodeId>>,
    /// Pages behind the buffers: thp, a base page size (4k, 16k or 64k), or the size of a reserved
    /// pool (2m, 1g; 512m on arm64, 16m on POWER) [default: thp if enabled, else base pages]
    #[arg(long, value_name = "PAGES")]
    pub pages: Option<Pages>,
}

impl Selection {
    /// Returns the chosen cpus and nodes of this machine; `None` where there was no choice.
    pub fn among(&self, machine: &Machine) -> (Option<CpuSet>, Option<NodeSet>) {
        let online = machine.online_cpus();
        let free = match &machine.allowed {
            Some(allowed) => online.intersection(&allowed.cpus),
            None => online,
        };
        let cpus = self.cpus.as_ref().and_then(|cpus| cpus.among(&free));
        let nodes = self.nodes.as_ref().and_then(|nodes| nodes.among(&machine.memory_nodes()));
        (cpus, nodes)
    }
}

/// Rules that end a cell.
#[derive(Clone, Debug, Args)]
pub(crate) struct Rules {
    /// Finish a measurement when its 95 % interval is this narrow
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = value::percent)]
    pub precision: f64,
    /// Total time, such as 30s or 5m
    #[arg(long, value_name = "TIME", value_parser = value::duration)]
    pub budget: Option<Duration>,
    /// Random seed [default: from the clock; always recorded]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// Destination and format of results.
#[derive(Clone, Debug, Args)]
pub(crate) struct Output {
    /// Keep the results in a new directory under DIR [default of measure: results]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Label added to the name of the result directory
    #[arg(long, value_name = "WORD")]
    pub label: Option<String>,
    /// Output format
    #[arg(long, default_value = "text", value_parser = value::format())]
    pub format: Format,
    /// Show what would be measured and how long it takes; start and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

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
    /// Allow ranks to share a CPU (they then disturb each other)
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
