//! Arguments of `numalab bind`.

use clap::Args;
use numalab_launch::bind::{NodeChoice, PolicyKind, Weights};

use numalab_topology::CpuId;

use super::value;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  srun -n4 --cpu-bind=map_cpu:1,17,33,49 numalab bind --numa=3 -- --size=2048
  srun -n8 numalab bind --numa=0,1,2,3,0,1,2,3 -- ./a.out      a node for each rank
  mpirun -n 4 numalab bind --numa=auto -- numalab latency --size=1-512
  numalab bind --ranks 4 --cpus=0,8,1,9 --numa=0 -- ./a.out    without a launcher
  numalab bind --numa=0 --cpus node -- ./a.out   its CPUs too, like numactl --cpunodebind=0
  numalab bind --numa=0,1 --policy interleave -- ./a.out
  numalab bind --near mlx5_0 -- ./a.out          CPUs and memory of the node nearest to a device
  numalab bind --numa=auto --policy weighted --weights auto -- ./a.out   by bandwidth
  srun -n4 numalab bind --numa=0,1,2,3 --dry-run -- --size=512

With only options after --, it runs `numalab latency` with them. Neither numactl nor a
launcher is needed.")]
pub(crate) struct BindArgs {
    /// A node for all ranks; a node for each rank, or for each rank of a host, such as 0,1,2,3; or
    /// nodes in turn by the rank's number on its host: auto (those with memory and cpus), all, or
    /// !0 for all but node 0 (default: node 0)
    #[arg(long, value_name = "NODES")]
    pub numa: Option<NodeChoice>,
    /// Bind to the CPUs and memory of the node nearest to this PCI device: an address such as
    /// 0000:41:00.0, or a name such as eth0, mlx5_0, nvme0n1 or nvidia0
    #[arg(long, value_name = "DEVICE", conflicts_with_all = ["numa", "weights"])]
    pub near: Option<String>,
    /// Memory policy: bind to the rank's node, prefer it, or interleave across all nodes
    #[arg(long, default_value = "bind", value_parser = value::one_of(PolicyKind::ALL))]
    pub policy: PolicyKind,
    /// Weights for --policy weighted, set in the kernel while the command runs: auto (by
    /// bandwidth), or one for each node, such as 2,1 [default: the kernel's current ones]
    #[arg(long, value_name = "WEIGHTS", conflicts_with = "ranks")]
    pub weights: Option<Weights>,
    /// CPU for each rank, such as 0,8,1,9, to which it is pinned; or `node`: each rank runs on the
    /// cpus of its node
    #[arg(long, value_name = "CPUS|node", value_parser = cpus)]
    pub cpus: Option<RankCpus>,
    /// Number of ranks to start on this host, without a launcher
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub ranks: Option<u32>,
    /// Program to run with the arguments after -- (default: their first word)
    #[arg(long, value_name = "PROGRAM")]
    pub executable: Option<String>,
    /// Print the binding of each rank (the default)
    #[arg(long, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Show what would be done; change and start nothing
    #[arg(long, conflicts_with = "quiet")]
    pub dry_run: bool,
    /// The command, or only options of `numalab latency`
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// CPUs that ranks run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RankCpus {
    /// Each rank on its own cpu, in the order given.
    Listed(Vec<CpuId>),
    /// Each rank on the cpus of the node with its memory.
    OfNode,
}

fn cpus(text: &str) -> Result<RankCpus, String> {
    match text {
        "node" => Ok(RankCpus::OfNode),
        _ => value::cpu_list(text).map(RankCpus::Listed),
    }
}
