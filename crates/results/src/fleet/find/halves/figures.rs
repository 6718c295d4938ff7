//! Kinds of hosts that only their figures show.
//!
//! The levels of each family are divided into groups, and hosts in the same group of every family
//! are of one kind, so that kinds are found that differ in latency from some and in bandwidth from
//! others. A fault that many hosts share looks the same, so there are kinds only where no group has
//! most of the hosts.

use std::collections::{BTreeMap, HashMap};

use numalab_stats::{groups, median};

use super::{Family, FigureKey, HostRun, levels};

/// The largest share of hosts in one kind if there are others: what less than a third of the hosts
/// have in common is a fault.
const MOST_OF_ONE: f64 = 2.0 / 3.0;
/// The least share of hosts that are a kind.
const LEAST_SHARE: f64 = 1.0 / 6.0;

/// A family with levels that divide the hosts.
struct Axis {
    family: Family,
    levels: HashMap<usize, f64>,
    boundaries: Vec<f64>,
}

/// Hosts with similar figures.
pub(super) struct HostKind {
    pub(super) members: Vec<usize>,
    /// The median level in each family that divides the hosts; higher is worse.
    levels: Vec<(Family, f64)>,
}

/// Returns the kinds, best one first; none if all hosts are of one kind.
pub(super) fn kinds(keys: &[FigureKey], hosts: &[HostRun], members: &[usize]) -> Vec<HostKind> {
    let axes: Vec<Axis> = Family::ALL
        .into_iter()
        .filter_map(|family| Axis::of(family, levels(keys, hosts, members, family)))
        .collect();
    let mut alike: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
    for &member in members {
        let place = axes.iter().map(|axis| axis.group(member)).collect();
        alike.entry(place).or_default().push(member);
    }
    let share = |hosts: &[usize]| hosts.len() as f64 / members.len() as f64;
    let (common, rare): (Vec<_>, Vec<_>) =
        alike.into_values().partition(|hosts| share(hosts) >= LEAST_SHARE);
    if common.len() < 2 || common.iter().any(|hosts| share(hosts) > MOST_OF_ONE) {
        return Vec::new();
    }
    let mut kinds: Vec<HostKind> =
        common.into_iter().map(|members| HostKind::of(members, &axes)).collect();
    for member in rare.into_iter().flatten() {
        let distance = |kind: &HostKind| kind.distance(member, &axes);
        let nearest = kinds.iter_mut().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        nearest.into_iter().for_each(|kind| kind.members.push(member));
    }
    kinds.iter_mut().for_each(|kind| kind.members.sort_unstable());
    let sum = |kind: &HostKind| kind.levels.iter().map(|(_, level)| level).sum::<f64>();
    kinds.sort_by(|a, b| sum(a).total_cmp(&sum(b)));
    kinds
}

impl Axis {
    /// Returns a family with the groups of its levels; `None` if there is one.
    fn of(family: Family, levels: Vec<(usize, f64)>) -> Option<Self> {
        let values: Vec<f64> = levels.iter().map(|(_, level)| *level).collect();
        let boundaries = groups(&values);
        let levels = levels.into_iter().collect();
        (!boundaries.is_empty()).then_some(Self { family, levels, boundaries })
    }

    /// Returns a host's level; without figures of the family it is the median of all hosts.
    fn level(&self, host: usize) -> f64 {
        self.levels.get(&host).copied().unwrap_or(0.0)
    }

    fn group(&self, host: usize) -> usize {
        let level = self.level(host);
        self.boundaries.iter().filter(|boundary| level > **boundary).count()
    }
}

impl HostKind {
    fn of(members: Vec<usize>, axes: &[Axis]) -> Self {
        let level = |axis: &Axis| {
            let levels: Vec<f64> = members.iter().map(|&member| axis.level(member)).collect();
            (axis.family, median(&levels).unwrap_or(0.0))
        };
        let levels = axes.iter().map(level).collect();
        Self { members, levels }
    }

    fn distance(&self, host: usize, axes: &[Axis]) -> f64 {
        let levels = self.levels.iter().zip(axes);
        levels.map(|((_, level), axis)| (axis.level(host) - level).abs()).sum()
    }

    /// Returns the family in which this kind is worse than `best` by the most, and by how much.
    pub(super) fn worst_compared_with(&self, best: &Self) -> Option<(Family, f64)> {
        let levels = self.levels.iter().zip(&best.levels);
        let excesses = levels.map(|((family, level), (_, best))| (*family, level - best));
        excesses.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}
