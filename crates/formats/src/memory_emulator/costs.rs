//! What accesses cost: models, and the matrices they give for a guest.

use numalab_topology::{REMOTE_DISTANCE, TierSpec, UNREACHABLE_DISTANCE};

use super::{CacheLevel, FORMAT, Stage};
use crate::error::WriteError;
use crate::guest::Guest;

/// What the emulator is to charge.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryCosts {
    /// What one access takes.
    pub latency: LatencyModel,
    /// How many bytes a second can be had.
    pub bandwidth: BandwidthModel,
    /// The caches that an access must miss to reach memory, nearest first; without any,
    /// every access does.
    pub caches: Vec<CacheLevel>,
    /// What else is modelled, with typical figures.
    pub stages: Vec<Stage>,
}

impl MemoryCosts {
    /// What emulated tiers cost: the latencies that the guest is told, and the limits of
    /// bandwidth of those that have one.
    #[must_use]
    pub fn of_tiers(tiers: &TierSpec) -> Self {
        let limits = tiers.limits_mb_per_s();
        let bandwidth = limits.map_or(BandwidthModel::Unlimited, BandwidthModel::Nodes);
        Self { latency: LatencyModel::Firmware, bandwidth, ..Self::default() }
    }
}

/// Where latencies come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LatencyModel {
    /// The machine's distances, of which 10 means this many nanoseconds.
    Distance {
        /// The latency of local memory in nanoseconds.
        local_ns: f64,
    },
    /// The latencies that the machine's firmware tells (HMAT).
    Firmware,
    /// The same everywhere, whatever the guest is told: the control experiment.
    Flat {
        /// The latency of any memory in nanoseconds.
        ns: f64,
    },
}

impl Default for LatencyModel {
    /// 100 ns for local memory.
    fn default() -> Self {
        Self::Distance { local_ns: 100.0 }
    }
}

/// Where bandwidths come from; in 10^6 bytes a second, 0 for no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BandwidthModel {
    /// There is no limit.
    #[default]
    Unlimited,
    /// Each node's memory: one for all, or one for each.
    Nodes(Vec<u64>),
    /// From each node's cpus (row) to each node's memory (column).
    Links(Vec<Vec<u64>>),
    /// The read bandwidths that the machine's firmware tells (HMAT), as links.
    Firmware,
}

type Matrix<T> = Vec<Vec<T>>;

/// Load latencies, and store latencies where they differ.
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
                    // No way is no measure of cost: as far as where nothing is known.
                    UNREACHABLE_DISTANCE => local_ns * f64::from(REMOTE_DISTANCE) / 10.0,
                    distance => local_ns * f64::from(distance) / 10.0,
                }
            };
            Ok((all(&ns), None))
        }
        LatencyModel::Firmware => {
            let read = told(guest, "read latency", |access| access.read_latency_ps)?;
            // Where only one of the two is told, it stands for both.
            let write = told(guest, "write latency", |access| {
                access.write_latency_ps.or(access.read_latency_ps)
            })?;
            let ns = |matrix: &Matrix<u64>| all(&|from, to| matrix[from][to] as f64 / 1000.0);
            Ok((ns(&read), (read != write).then(|| ns(&write))))
        }
    }
}

/// Bandwidths of nodes and of links.
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
            _ => Err(wrong(format!("{} bandwidths for {nodes} nodes", list.len()))),
        },
        BandwidthModel::Links(rows) => {
            if rows.len() == nodes && rows.iter().all(|row| row.len() == nodes) {
                return Ok((None, Some(rows.clone())));
            }
            Err(wrong(format!("{} rows of bandwidths between {nodes} nodes", rows.len())))
        }
        BandwidthModel::Firmware => {
            let links = told(guest, "read bandwidth", |access| access.read_bandwidth_mb_per_s)?;
            Ok((None, Some(links)))
        }
    }
}

/// What the firmware tells of each pair. Nodes without cpus never access, and nodes without
/// memory are never accessed: they get the largest value there is.
fn told(
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
