//! Round trips of a cache line between two cpus.

use std::collections::BTreeMap;

use numalab_record::{C2cCell, Experiment, Metric};
use numalab_stats::Sample;
use numalab_topology::{CpuId, Machine};
use serde::Serialize;

use super::cell::CellSummary;
use super::matrix::{Axis, Matrix, Value};

/// The node that holds the line's page, relative to the two cpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(into = "&'static str")]
pub enum Home {
    /// The node of the cpu that sends first, which may also be the other cpu's node.
    Sender,
    /// The node of the cpu that responds.
    Answerer,
    /// A third node, or the nodes of the cpus are unknown.
    Elsewhere,
}

impl Home {
    /// Returns the location in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sender => "line on the sender's node",
            Self::Answerer => "line on the responder's node",
            Self::Elsewhere => "line on another node",
        }
    }
}

impl From<Home> for &'static str {
    fn from(of: Home) -> Self {
        of.name()
    }
}

/// Closeness of two cpus, closest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(into = "&'static str")]
pub enum Nearness {
    /// SMT siblings.
    SameCore,
    SameL3Group,
    /// The same node, but different L3 groups.
    SameNode,
    /// The same package, but different nodes.
    SamePackage,
    /// Different packages, or nothing is known.
    Apart,
}

impl Nearness {
    /// Returns what the cpus share, in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::SameCore => "same core",
            Self::SameL3Group => "same L3 group",
            Self::SameNode => "same node",
            Self::SamePackage => "same package",
            Self::Apart => "further apart",
        }
    }
}

impl From<Nearness> for &'static str {
    fn from(of: Nearness) -> Self {
        of.name()
    }
}

/// Round trips of all pairs at one closeness.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct NearnessFigure {
    /// The closest level that the cpus share, such as `same core` or `same node`.
    pub nearness: Nearness,
    /// Number of pairs measured.
    pub pairs: usize,
    /// The median round trip of the pairs, in nanoseconds.
    pub median_ns: f64,
    /// The round trip of the fastest pair, in nanoseconds.
    pub fastest_ns: f64,
    /// The round trip of the slowest pair, in nanoseconds.
    pub slowest_ns: f64,
    /// The median spread between lines of one pair, in nanoseconds, if several lines were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines_ns: Option<f64>,
}

/// Round trips between every pair of cpus, for one location of the line.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RoundTrips {
    /// The node that holds the line, such as `line on the sender's node`.
    pub home: Home,
    /// Round trips by first sender (rows) and responder (columns).
    pub round_trips: Matrix,
}

/// All core-to-core figures of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CoreToCore {
    /// Round trips between every pair of cpus, by home of the line.
    pub by_home: Vec<RoundTrips>,
    /// Round trips by closeness, closest first.
    pub by_nearness: Vec<NearnessFigure>,
}

impl CoreToCore {
    /// Collects the core-to-core figures of a run.
    pub fn of(cells: &[CellSummary<'_>], machine: &Machine) -> Self {
        let mut by_home: BTreeMap<Home, Vec<Value>> = BTreeMap::new();
        let mut by_nearness: BTreeMap<Nearness, Vec<f64>> = BTreeMap::new();
        let mut spreads: BTreeMap<Nearness, Vec<f64>> = BTreeMap::new();
        for summary in cells {
            let Experiment::C2c(cell) = &summary.cell.experiment else { continue };
            let Some(value) = Value::of(summary, Metric::RoundTrip, cell.from.0, cell.to.0) else {
                continue;
            };
            let near = nearness(machine, cell.from, cell.to);
            by_nearness.entry(near).or_default().push(value.entry.value);
            let spread = summary.figure(Metric::LineSpread).map(|spread| spread.median);
            spreads.entry(near).or_default().extend(spread);
            by_home.entry(home(machine, cell)).or_default().push(value);
        }
        let unit = Metric::RoundTrip.unit();
        let trips = |(home, values)| RoundTrips {
            home,
            round_trips: Matrix::of(unit, Axis::Cpu, Axis::Cpu, values),
        };
        Self {
            by_home: by_home.into_iter().map(trips).collect(),
            by_nearness: by_nearness
                .into_iter()
                .filter_map(|(nearness, values)| {
                    let spreads = spreads.remove(&nearness).unwrap_or_default();
                    nearness_figure(nearness, values, spreads)
                })
                .collect(),
        }
    }
}

fn nearness_figure(
    nearness: Nearness,
    values: Vec<f64>,
    spreads: Vec<f64>,
) -> Option<NearnessFigure> {
    let sample = Sample::new(values).ok()?;
    Some(NearnessFigure {
        nearness,
        pairs: sample.len(),
        median_ns: sample.median(),
        fastest_ns: sample.min(),
        slowest_ns: sample.max(),
        lines_ns: Sample::new(spreads).ok().map(|spreads| spreads.median()),
    })
}

fn home(machine: &Machine, cell: &C2cCell) -> Home {
    let is_at_home = |cpu| machine.cpu(cpu).and_then(|cpu| cpu.node) == Some(cell.home);
    if is_at_home(cell.from) {
        Home::Sender
    } else if is_at_home(cell.to) {
        Home::Answerer
    } else {
        Home::Elsewhere
    }
}

/// Returns the closest level that two cpus share.
pub(super) fn nearness(machine: &Machine, a: CpuId, b: CpuId) -> Nearness {
    let (Some(a), Some(b)) = (machine.cpu(a), machine.cpu(b)) else {
        return Nearness::Apart;
    };
    let same = |a: Option<u32>, b: Option<u32>| a.is_some() && a == b;
    if same(a.core, b.core) {
        Nearness::SameCore
    } else if same(a.l3_group, b.l3_group) {
        Nearness::SameL3Group
    } else if a.node.is_some() && a.node == b.node {
        Nearness::SameNode
    } else if same(a.package, b.package) {
        Nearness::SamePackage
    } else {
        Nearness::Apart
    }
}
