//! Outliers of a fleet.
//!
//! Hosts, sockets and memory nodes whose figures leave those of hosts with the same
//! processor and shape. A figure's score is its distance from its peers' centre in standard
//! deviations of their core (of its logarithm, `numalab_stats::Population`). Scores of one unit,
//! such as the bandwidths of a memory node, are joined, so that a weak DIMM channel that lowers
//! all of them a little is found. The rate of false discoveries holds for hosts (Benjamini and
//! Hochberg on each host's strongest test), then within them. What a host's other run does not
//! say as well is a suspicion. Peers of two kinds are told apart first.

mod curve;
mod halves;
mod peers;
mod score;
mod settings;

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::{Deserialize, Serialize};

pub use numalab_record::Family;

pub use curve::DetectionPoint;
pub use halves::Halves;
pub use peers::{Differing, Untested};
pub use settings::{Different, SettingEffect};

use numalab_record::Metric;

use peers::LEAST_PEERS;
use score::{Medians, Selection, Units};

/// Whose figures they are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

impl fmt::Display for Scope {
    /// `host`, `socket 1`, `memory of node 3`, or the cell.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::Package(package) => write!(f, "socket {package}"),
            Self::MemoryNode(node) => write!(f, "memory of node {node}"),
            Self::Figure(cell) => f.write_str(cell),
        }
    }
}

/// What a figure is: the same on every host of the same shape.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FigureKey {
    /// The cell's name.
    pub cell: String,
    /// What was measured in it.
    pub metric: Metric,
    /// What it tells about.
    pub family: Family,
    /// The node of the memory, if it is one.
    pub memory_node: Option<u32>,
    /// The package of the cpus, if it is one.
    pub package: Option<u32>,
}

/// The last run of a host and the one before it, as far as they are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct HostRun {
    /// The host.
    pub host: String,
    /// Its run.
    pub run: String,
    /// When it began, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Cells that were planned.
    pub planned: usize,
    /// Cells that ended with samples.
    pub ended: usize,
    /// Facts about the system and its topology.
    pub facts: BTreeMap<String, String>,
    /// Medians by key, as positions in the list of keys.
    pub medians: Vec<(usize, f64)>,
    /// Those of the run before it, where there is one: what it says as well is no chance.
    pub medians_before: Option<Vec<(usize, f64)>>,
}

/// A unit whose figures leave its peers'.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Claim {
    /// The host.
    pub host: String,
    /// Whose figures they are.
    pub scope: Scope,
    /// What they tell about.
    pub family: Family,
    /// How far they are from the peers' in robust standard deviations; above 0 is worse.
    pub score: f64,
    /// The chance of such a score if the host were like its peers.
    pub p: f64,
    /// The expected share of false hosts among this one and all stronger ones.
    pub q: f64,
    /// The median change of its figures against the peers' medians, in percent.
    pub change_percent: f64,
    /// How many figures were joined.
    pub figures: usize,
    /// How many hosts it was compared with.
    pub peers: usize,
    /// Whether the host's run before the last says the same; `None` without one, and then it
    /// is a suspicion: measure again.
    pub seen_again: Option<bool>,
}

/// A host whose last run did not end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unfinished {
    /// The host.
    pub host: String,
    /// Cells that were planned.
    pub planned: usize,
    /// Cells that ended with samples.
    pub ended: usize,
}

/// What was found in a fleet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Analysis {
    /// Hosts with results.
    pub hosts: usize,
    /// Tests that were made in all.
    pub tests: usize,
    /// The rate of false discoveries that was allowed: of hosts wrongly named.
    pub false_discovery_rate: f64,
    /// The claims, strongest first: of each host and family the strongest, and what is not
    /// part of it.
    pub claims: Vec<Claim>,
    /// Settings and topology in which a claimed host differs from most of its peers.
    pub different: Vec<Different>,
    /// Settings that go with other figures.
    pub effects: Vec<SettingEffect>,
    /// Peers that are of two kinds; each kind is then tested by itself.
    pub halves: Vec<Halves>,
    /// Hosts without enough peers.
    pub untested: Vec<Untested>,
    /// Hosts whose last run did not end.
    pub unfinished: Vec<Unfinished>,
    /// What shift would have been found.
    pub detection: Vec<DetectionPoint>,
}

/// Looks for outliers with this rate of false discoveries (0.05 is 5 %).
#[must_use]
pub fn analyse(keys: &[FigureKey], hosts: &[HostRun], rate: f64) -> Analysis {
    let unfinished = hosts.iter().filter(|host| host.ended < host.planned);
    let unfinished = unfinished.map(|host| Unfinished {
        host: host.host.clone(),
        planned: host.planned,
        ended: host.ended,
    });
    let mut analysis = Analysis {
        hosts: hosts.len(),
        false_discovery_rate: rate,
        unfinished: unfinished.collect(),
        ..Analysis::default()
    };
    let mut units = Units::default();
    let groups = peers::groups(hosts);
    for group in &groups {
        if group.members.len() < LEAST_PEERS {
            analysis.untested.extend(peers::untested(hosts, &groups, group));
            continue;
        }
        for part in halves::parts(keys, hosts, &group.members, &mut analysis.halves) {
            let members: Vec<(usize, &Medians)> =
                part.iter().map(|&member| (member, &hosts[member].medians)).collect();
            units.extend(Units::of_group(keys, &members));
        }
    }
    analysis.tests = units.all.len();
    let selection = score::select(&units.all, rate);
    analysis.detection = curve::detection(&units, &selection);
    analysis.effects = settings::effects(hosts, &units.all, rate);
    let again = again(keys, hosts, &groups, &units, &selection);
    analysis.claims = score::strongest(&units.all, &selection.claimed, hosts, &again);
    analysis.different = settings::different(hosts, &analysis.claims);
    analysis
}

/// The same tests, where hosts of which something is claimed are taken by the run before their
/// last: those of hosts without one are left out.
fn again(
    keys: &[FigureKey],
    hosts: &[HostRun],
    groups: &[peers::Group],
    units: &Units,
    selection: &Selection,
) -> Units {
    let claimed: HashSet<usize> =
        selection.claimed.iter().map(|claim| units.all[claim.unit].host).collect();
    let mut again = Units::default();
    for group in groups.iter().filter(|group| group.members.len() >= LEAST_PEERS) {
        for part in halves::parts(keys, hosts, &group.members, &mut Vec::new()) {
            let medians = |&member: &usize| match claimed.contains(&member) {
                false => Some((member, &hosts[member].medians)),
                true => hosts[member].medians_before.as_ref().map(|before| (member, before)),
            };
            let members: Vec<(usize, &Medians)> = part.iter().filter_map(medians).collect();
            again.extend(Units::of_group(keys, &members));
        }
    }
    again.all.retain(|unit| claimed.contains(&unit.host));
    again
}
