//! Arguments that give a guest a memory system.

use std::path::PathBuf;

use clap::Args;
use numalab_formats::memory_emulator::{
    BandwidthModel, CacheLevel, GivenCosts, LatencyModel, Stage, parse_bandwidth, parse_caches,
    parse_latency, parse_stages,
};
use numalab_guest::EmulatorMode;

use super::value;

/// Costs of emulated memory.
#[derive(Debug, Args)]
pub(crate) struct MemoryCostArgs {
    /// Memory latency: nanoseconds to local memory, scaled by the distances for remote nodes
    /// (100); hmat, the latencies of the machine's HMAT; or flat:NS, the same for every node (a
    /// control experiment)
    #[arg(long, value_name = "NS|hmat|flat:NS", value_parser = parse_latency, conflicts_with = "emulate_like")]
    pub emulate_latency: Option<LatencyModel>,
    /// Bandwidth in bytes per second of each node's memory (10G or 10G,5G), of each link
    /// ('0,5G;5G,0', rows by the CPU's node, 0 for no limit), or hmat
    #[arg(long, value_name = "LIMITS", value_parser = parse_bandwidth, conflicts_with = "emulate_like")]
    pub emulate_bandwidth: Option<BandwidthModel>,
    /// Caches in front of memory, nearest first, such as 32K,1M@4,16M/16@12.5 (/ways; @ nanoseconds
    /// per hit, default 0), the third shared by an L3 group; or none: every access reaches memory
    /// [default: 32K, 1M and 16M for one program (emulate, profile, advise); none for a guest, and
    /// with --emulate-tiers two levels, 32K and 256K]
    #[arg(long, value_name = "SIZES", value_parser = parse_caches, conflicts_with = "emulate_like")]
    pub emulate_cache: Option<Caches>,
    /// Further stages of the memory model, with typical figures: load (latency rises with
    /// bandwidth, up to three times at the limit of --emulate-bandwidth), core (misses overlap, up
    /// to 16 at a time, unless the address of one depends on another), owners (a store takes the
    /// line from the caches that hold it), tlb (a page missing from the TLBs costs a page walk),
    /// nested (as tlb, with a walk that also goes through a host's tables); or none [default:
    /// core,owners,tlb for one program; none for a guest]
    #[arg(long, value_name = "STAGES", value_parser = parse_stages, conflicts_with = "emulate_like")]
    pub emulate_stages: Option<Stages>,
}

/// A guest's emulated memory; any of these options turns it on.
#[derive(Debug, Args)]
pub(crate) struct MemoryEmulatorArgs {
    #[command(flatten)]
    pub costs: MemoryCostArgs,
    /// Method of charging for accesses [default: virtual]
    #[arg(long, value_name = "MODE", value_parser = value::one_of([
        (EmulatorMode::Count, "count", "Count only"),
        (EmulatorMode::Virtual, "virtual",
            "Charge virtual time, which counts instructions: every run gives the same result"),
        (EmulatorMode::Sleep, "sleep", "Charge real time: vCPUs run in parallel and sleep"),
    ]))]
    pub emulate_mode: Option<EmulatorMode>,
    /// Write accesses and cost by CPU and node to FILE (JSON; show it with `numalab report FILE`)
    #[arg(long, value_name = "FILE")]
    pub emulate_report: Option<PathBuf>,
}

/// Caches on the way to memory, nearest first: clap would take a `Vec` for several values.
type Caches = Vec<CacheLevel>;
type Stages = Vec<Stage>;

impl MemoryEmulatorArgs {
    /// Returns true if any option asks for emulated memory.
    pub fn wanted(&self) -> bool {
        self.costs.are_given() || self.emulate_mode.is_some() || self.emulate_report.is_some()
    }
}

impl MemoryCostArgs {
    /// Returns true if any cost is given.
    pub fn are_given(&self) -> bool {
        self.given() != GivenCosts::default()
    }

    /// Returns the costs that the options give.
    pub fn given(&self) -> GivenCosts {
        GivenCosts {
            latency: self.emulate_latency,
            bandwidth: self.emulate_bandwidth.clone(),
            caches: self.emulate_cache.clone(),
            stages: self.emulate_stages.clone(),
        }
    }
}
