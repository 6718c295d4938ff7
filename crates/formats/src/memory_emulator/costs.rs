//! Costs of accesses: models, and the matrices that they give for a guest.

use numalab_topology::{REMOTE_DISTANCE, TierSpec, UNREACHABLE_DISTANCE, count};

use super::{BandwidthModel, CacheLevel, FORMAT, LatencyModel, Stage, parse_caches};
use crate::error::WriteError;
use crate::guest::Guest;

/// The caches of a machine on which a program is followed, unless others are given.
const USUAL_CACHES: &str = "32K,1M@4,16M@12.5";
/// The usual stages of the memory model: misses that overlap, lines that stores take from other
/// caches, and TLBs.
const USUAL_STAGES: [Stage; 3] = [Stage::Core, Stage::Owners, Stage::Tlb];

/// The caches of a machine of tiers where no others are given.
const TIER_CACHES: &str = "32K,256K@4";

/// The costs that the emulator charges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryCosts {
    /// Latency of an access.
    pub latency: LatencyModel,
    /// Available bandwidth.
    pub bandwidth: BandwidthModel,
    /// The caches that an access must miss to reach memory, nearest first; without any, every
    /// access reaches it.
    pub caches: Vec<CacheLevel>,
    /// Further stages to model, with typical figures.
    pub stages: Vec<Stage>,
}

/// Costs that the user gives; the others have their usual values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GivenCosts {
    /// Latency of an access.
    pub latency: Option<LatencyModel>,
    /// Available bandwidth.
    pub bandwidth: Option<BandwidthModel>,
    /// Caches, nearest first.
    pub caches: Option<Vec<CacheLevel>>,
    /// Stages of the model.
    pub stages: Option<Vec<Stage>>,
}

impl GivenCosts {
    /// Returns the costs, with the usual ones where none are given.
    pub fn or(self, usual: MemoryCosts) -> MemoryCosts {
        MemoryCosts {
            latency: self.latency.unwrap_or(usual.latency),
            bandwidth: self.bandwidth.unwrap_or(usual.bandwidth),
            caches: self.caches.unwrap_or(usual.caches),
            stages: self.stages.unwrap_or(usual.stages),
        }
    }
}

impl MemoryCosts {
    /// Returns the usual costs of a machine on which a program is followed, with the latencies and
    /// bandwidths of its tiers if it has any.
    pub fn usual(tiers: Option<&TierSpec>) -> Self {
        let caches = parse_caches(USUAL_CACHES).unwrap_or_default();
        Self { caches, stages: USUAL_STAGES.to_vec(), ..Self::of_guest(tiers) }
    }

    /// Returns the usual costs of a guest: those of its tiers if it has any.
    pub fn of_guest(tiers: Option<&TierSpec>) -> Self {
        tiers.map(Self::of_tiers).unwrap_or_default()
    }

    /// Returns the costs of emulated tiers: the latencies reported to the guest, and the bandwidth
    /// limits of those that have one. Small caches keep the kernel's own work from costing as much
    /// as the memory that it moves.
    pub fn of_tiers(tiers: &TierSpec) -> Self {
        let limits = tiers.limits_mb_per_s();
        let bandwidth = limits.map_or(BandwidthModel::Unlimited, BandwidthModel::Nodes);
        let caches = parse_caches(TIER_CACHES).unwrap_or_default();
        Self { latency: LatencyModel::Firmware, bandwidth, caches, ..Self::default() }
    }
}

type Matrix<T> = Vec<Vec<T>>;

/// Returns load latencies, and store latencies if they differ.
pub(super) fn latencies(
    guest: &Guest,
    model: LatencyModel,
) -> Result<(Matrix<f64>, Option<Matrix<f64>>), WriteError> {
    let nodes = 0..guest.nodes.len();
    let all = |ns: &dyn Fn(usize, usize) -> f64| -> Matrix<f64> {
        nodes.clone().map(|from| nodes.clone().map(|to| ns(from, to)).collect()).collect()
    };
    match model {
        LatencyModel::Flat { ns } => Ok((all(&|_, _| ns), None)),
        LatencyModel::Distance { local_ns } => {
            let ns = |from: usize, to: usize| {
                match guest.nodes[from].distances[to] {
                    // An unreachable node has no cost: it gets that of an unknown distance.
                    UNREACHABLE_DISTANCE => local_ns * f64::from(REMOTE_DISTANCE) / 10.0,
                    distance => local_ns * f64::from(distance) / 10.0,
                }
            };
            Ok((all(&ns), None))
        }
        LatencyModel::Firmware => {
            let read = firmware_values(guest, "read latency", |access| access.read_latency_ps)?;
            // If only one of the two is given, it is used for both.
            let write = firmware_values(guest, "write latency", |access| {
                access.write_latency_ps.or(access.read_latency_ps)
            })?;
            let ns = |matrix: &Matrix<u64>| all(&|from, to| matrix[from][to] as f64 / 1000.0);
            Ok((ns(&read), (read != write).then(|| ns(&write))))
        }
    }
}

/// Returns bandwidths of nodes and of links.
#[expect(clippy::type_complexity, reason = "two optional tables, taken apart at once")]
pub(super) fn bandwidths(
    guest: &Guest,
    model: &BandwidthModel,
) -> Result<(Option<Vec<u64>>, Option<Matrix<u64>>), WriteError> {
    let nodes = guest.nodes.len();
    let wrong = |what: String| WriteError::Inexpressible { format: FORMAT, what };
    match model {
        BandwidthModel::Unlimited => Ok((None, None)),
        BandwidthModel::Nodes(list) => match list[..] {
            [each] => Ok((Some(vec![each; nodes]), None)),
            _ if list.len() == nodes => Ok((Some(list.clone()), None)),
            _ => Err(wrong(format!(
                "{} for {}",
                count(list.len(), "bandwidth"),
                count(nodes, "node")
            ))),
        },
        BandwidthModel::Links(rows) => {
            if rows.len() == nodes && rows.iter().all(|row| row.len() == nodes) {
                return Ok((None, Some(rows.clone())));
            }
            Err(wrong(format!(
                "{} of bandwidths between {}",
                count(rows.len(), "row"),
                count(nodes, "node")
            )))
        }
        BandwidthModel::Firmware => {
            let links =
                firmware_values(guest, "read bandwidth", |access| access.read_bandwidth_mb_per_s)?;
            Ok((None, Some(links)))
        }
    }
}

/// Returns the firmware's value for each pair. Nodes without cpus never access, and nodes without
/// memory are never accessed: they get the largest value that occurs.
fn firmware_values(
    guest: &Guest,
    what: &str,
    value: impl Fn(&numalab_topology::AccessAttributes) -> Option<u64>,
) -> Result<Matrix<u64>, WriteError> {
    let largest = guest.access.values().filter_map(&value).max().unwrap_or_default();
    let mut matrix = Vec::new();
    for (from, initiator) in guest.nodes.iter().enumerate() {
        let mut row = Vec::new();
        for (to, target) in guest.nodes.iter().enumerate() {
            let known = guest.access.get(&(from, to)).and_then(&value);
            let needed = !initiator.cpus.is_empty() && target.memory_mib > 0;
            row.push(match known {
                Some(known) => known,
                None if !needed => largest,
                None => {
                    let what = format!("the {what} from node {from} to node {to}");
                    return Err(WriteError::Unknown { format: FORMAT, what });
                }
            });
        }
        matrix.push(row);
    }
    Ok(matrix)
}
