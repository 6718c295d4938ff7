//! Outliers of a fleet: hosts, packages and memory nodes that deviate from hosts with the same
//! processor and shape.
//!
//! A figure's score is its distance from its peers' centre in standard deviations of their core (of
//! its logarithm, `numalab_stats::Population`). Scores of one unit, such as the bandwidths of a
//! memory node, are combined, so that a weak DIMM channel that lowers all of them slightly is
//! found. The false discovery rate holds for hosts (Benjamini and Hochberg on each host's strongest
//! test), then within them. A deviation that the host's previous run does not confirm is only a
//! suspicion. Peers of several kinds are separated first, by a recorded
//! setting if one divides them, or else by the figures.

mod claims;
mod curve;
mod halves;
mod peers;
mod score;
mod settings;

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use numalab_record::Family;

pub use curve::DetectionPoint;
pub use halves::Halves;
pub use peers::{Differing, Untested};
pub use settings::{Different, SettingEffect};

use numalab_record::Metric;

use peers::LEAST_PEERS;
use score::{Medians, Selection, Tests};

/// The part of a host that figures cover.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The whole host.
    Host,
    /// The cpus of a package (socket).
    Package(u32),
    /// The memory of a node: its channels.
    MemoryNode(u32),
    /// A single figure, by its cell.
    Figure(String),
}

impl Scope {
    /// True if the part includes the figure.
    fn includes(&self, key: &FigureKey) -> bool {
        match self {
            Self::Host => true,
            Self::Package(package) => key.package == Some(*package),
            Self::MemoryNode(node) => key.memory_node == Some(*node),
            Self::Figure(cell) => key.cell == *cell,
        }
    }
}

impl fmt::Display for Scope {
    /// Formats a scope: `host`, `package 1`, `memory of node 3`, or the cell's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::Package(package) => write!(f, "package {package}"),
            Self::MemoryNode(node) => write!(f, "memory of node {node}"),
            Self::Figure(cell) => f.write_str(cell),
        }
    }
}

/// The identity of a figure, equal on all hosts of the same shape.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FigureKey {
    pub cell: String,
    pub metric: Metric,
    pub family: Family,
    /// The node of the memory, if there is exactly one.
    pub memory_node: Option<u32>,
    /// The package of the cpus, if there is exactly one.
    pub package: Option<u32>,
}

/// The last run of a host, and the one before it if it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct HostRun {
    pub host: String,
    /// The name of the last run.
    pub run: String,
    /// The start of the run, in ms since 1970.
    pub started_unix_ms: u64,
    pub planned: usize,
    /// Number of cells that ended with samples.
    pub ended: usize,
    /// Facts about the system and its topology.
    pub facts: BTreeMap<String, String>,
    /// Medians with their key's index.
    pub medians: Vec<(usize, f64)>,
    /// Medians of the previous run, if there is one: a deviation in both is not chance.
    pub medians_before: Option<Vec<(usize, f64)>>,
}

/// A unit that deviates from its peers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    /// The host's name.
    pub host: String,
    /// The part of the host that deviates.
    pub scope: Scope,
    /// The kind of figures.
    pub family: Family,
    /// The distance from the peers in robust standard deviations; positive is worse.
    pub score: f64,
    /// The probability of such a score if the host were like its peers.
    pub p: f64,
    /// The expected share of hosts named wrongly, among this one and all with stronger evidence.
    pub q: f64,
    /// The median change from the peers' medians, in percent.
    pub change_percent: f64,
    /// Number of figures combined.
    pub figures: usize,
    /// Number of peers that the host was compared with.
    pub peers: usize,
    /// True if the host's previous run confirms the claim; `None` without a previous run: the claim
    /// is then a suspicion to measure again.
    pub seen_again: Option<bool>,
}

/// A host with an unfinished last run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unfinished {
    /// The host's name.
    pub host: String,
    /// Number of cells planned.
    pub planned: usize,
    /// Number of cells that ended with samples.
    pub ended: usize,
}

/// The result of the search for outliers in a fleet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Analysis {
    /// Number of hosts with results.
    pub hosts: usize,
    /// Number of tests made.
    pub tests: usize,
    /// The permitted false discovery rate: the share of hosts named wrongly.
    pub false_discovery_rate: f64,
    /// The claims, strongest evidence first: for each host and family the strongest one, and those
    /// on parts that it does not cover.
    pub claims: Vec<Claim>,
    /// The hosts farthest from their peers, if most outliers would not be found; no claim is made
    /// about them.
    #[serde(default)]
    pub farthest: Vec<Claim>,
    /// Settings and topology in which outliers differ from most of their peers.
    pub different: Vec<Different>,
    /// Settings associated with different figures.
    pub effects: Vec<SettingEffect>,
    /// Peers of two kinds; each kind is then tested separately.
    pub halves: Vec<Halves>,
    /// Hosts with too few peers.
    pub untested: Vec<Untested>,
    /// Hosts with an unfinished last run.
    pub unfinished: Vec<Unfinished>,
    /// The power to detect shifts of different sizes.
    pub detection: Vec<DetectionPoint>,
}

/// The expected share of hosts named wrongly among all that are named.
const FALSE_DISCOVERY_RATE: f64 = 0.05;

/// Minimum power at the largest shift for the statement that no host differs.
const LEAST_POWER: f64 = 0.5;

impl Analysis {
    /// Returns the power at the largest shift if most hosts that far from their peers would be
    /// missed.
    pub fn blind(&self) -> Option<DetectionPoint> {
        self.detection.last().filter(|point| point.power() < LEAST_POWER).copied()
    }
}

/// Searches for outliers with a false discovery rate of 5 %.
pub fn analyse(keys: &[FigureKey], hosts: &[HostRun]) -> Analysis {
    let unfinished = hosts.iter().filter(|host| host.ended < host.planned);
    let unfinished = unfinished.map(|host| Unfinished {
        host: host.host.clone(),
        planned: host.planned,
        ended: host.ended,
    });
    let mut analysis = Analysis {
        hosts: hosts.len(),
        false_discovery_rate: FALSE_DISCOVERY_RATE,
        unfinished: unfinished.collect(),
        ..Analysis::default()
    };
    let groups = peers::groups(hosts);
    let mut parts = Vec::new();
    for group in &groups {
        if group.members.len() < LEAST_PEERS {
            analysis.untested.extend(peers::untested(hosts, &groups, group));
            continue;
        }
        parts.extend(halves::parts(keys, hosts, &group.members, &mut analysis.halves));
    }
    for part in parts.extract_if(.., |part| part.len() < LEAST_PEERS) {
        analysis.untested.extend(peers::left_out(hosts, &part));
    }
    let medians = |&member: &usize| Some((member, &hosts[member].medians));
    let tests = tests(keys, &parts, medians);
    analysis.tests = tests.count();
    let selection = score::select(&tests, FALSE_DISCOVERY_RATE);
    analysis.detection = curve::detection(&tests, &selection);
    analysis.effects = settings::effects(hosts, &tests, FALSE_DISCOVERY_RATE);
    let again = again(keys, hosts, &parts, &selection);
    analysis.claims = claims::strongest(keys, hosts, &tests, &selection, &again);
    if analysis.claims.is_empty() && analysis.blind().is_some() {
        analysis.farthest = claims::farthest(keys, hosts, &tests);
    }
    analysis.different = settings::different(hosts, &analysis.claims);
    analysis
}

/// Tests the hosts of each part among each other.
fn tests<'a>(
    keys: &[FigureKey],
    parts: &[Vec<usize>],
    medians: impl Fn(&usize) -> Option<(usize, &'a Medians)>,
) -> Tests {
    let of_part = |part: &Vec<usize>| {
        let members: Vec<(usize, &Medians)> = part.iter().filter_map(&medians).collect();
        Tests::of_group(keys, &members).all
    };
    Tests { all: parts.iter().flat_map(of_part).collect() }
}

/// Repeats the tests with the previous runs of hosts that have claims, leaving out hosts without a
/// previous run.
fn again(
    keys: &[FigureKey],
    hosts: &[HostRun],
    parts: &[Vec<usize>],
    selection: &Selection<'_>,
) -> Tests {
    let claimed = selection.hosts();
    let medians = |&member: &usize| match claimed.contains(&member) {
        false => Some((member, &hosts[member].medians)),
        true => hosts[member].medians_before.as_ref().map(|before| (member, before)),
    };
    let is_suspect = |part: &&Vec<usize>| part.iter().any(|member| claimed.contains(member));
    let suspect: Vec<Vec<usize>> = parts.iter().filter(is_suspect).cloned().collect();
    let mut again = tests(keys, &suspect, medians);
    for test in &mut again.all {
        test.units.retain(|unit| claimed.contains(&unit.host));
    }
    again
}
