//! Kinds of hosts that only their figures show. The levels of each family are divided into groups,
//! and hosts in the same group of every family are of one kind. This also finds a kind that differs
//! from one other kind in latency and from another in bandwidth. A factor common to all figures of
//! a host, such as its clock, hides kinds that are closer together than hosts of one kind; it
//! cancels in the sum or the difference of the levels of two families, so these are divided too. A
//! fault that many hosts share looks the same, so kinds are accepted only if no group has most of
//! the hosts.

use std::collections::{BTreeMap, HashMap};

use numalab_stats::{GROUPS_APART, groups, median};

use super::{Family, FigureKey, HostRun, levels};

/// Maximum share of hosts in the largest of several kinds: a property of less than a third of the
/// hosts is a fault.
const MOST_OF_ONE: f64 = 2.0 / 3.0;
/// Minimum share of hosts that makes a kind.
const LEAST_SHARE: f64 = 1.0 / 6.0;
/// Minimum distance between groups of two families' levels, in standard deviations within groups.
/// There are up to 20 such pairs, so it is larger than that for one family.
const PAIR_APART: f64 = 5.0;
/// Minimum number of hosts for such pairs: fewer are sometimes this far apart by chance.
const PAIR_HOSTS: usize = 60;

/// The level of each host that has figures of a family, or of two.
type Levels = HashMap<usize, f64>;

/// Levels that divide the hosts.
struct Axis {
    levels: Levels,
    boundaries: Vec<f64>,
}

pub(super) struct HostKind {
    pub(super) members: Vec<usize>,
    /// The median level in each family; higher is worse.
    levels: Vec<(Family, f64)>,
    /// The median on each axis.
    centres: Vec<f64>,
}

/// Returns the kinds, best one first; none if all hosts are of one kind.
pub(super) fn kinds(keys: &[FigureKey], hosts: &[HostRun], members: &[usize]) -> Vec<HostKind> {
    let families: Vec<(Family, Levels)> = Family::ALL
        .into_iter()
        .map(|family| (family, levels(keys, hosts, members, family).into_iter().collect()))
        .collect();
    let axes = axes(&families);
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
        common.into_iter().map(|members| HostKind::of(members, &families, &axes)).collect();
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

/// Returns the levels of families, and of pairs of families, that divide the hosts.
fn axes(families: &[(Family, Levels)]) -> Vec<Axis> {
    let mut axes: Vec<Axis> =
        families.iter().filter_map(|(_, levels)| Axis::of(levels.clone(), GROUPS_APART)).collect();
    let many = families.iter().filter(|(_, levels)| levels.len() >= PAIR_HOSTS);
    let many: Vec<&Levels> = many.map(|(_, levels)| levels).collect();
    for (at, first) in many.iter().enumerate() {
        for second in &many[at + 1..] {
            for sign in [1.0, -1.0] {
                let both =
                    |(host, level): (&usize, &f64)| Some((*host, level + sign * second.get(host)?));
                axes.extend(Axis::of(first.iter().filter_map(both).collect(), PAIR_APART));
            }
        }
    }
    axes
}

impl Axis {
    /// Returns levels with their groups; `None` if there is one group.
    fn of(levels: Levels, apart: f64) -> Option<Self> {
        let values: Vec<f64> = levels.values().copied().collect();
        let boundaries = groups(&values, apart);
        (!boundaries.is_empty()).then_some(Self { levels, boundaries })
    }

    fn group(&self, host: usize) -> usize {
        let level = level(&self.levels, host);
        self.boundaries.iter().filter(|boundary| level > **boundary).count()
    }
}

/// Returns a host's level, or the median of all hosts if it has no figures of the family.
fn level(levels: &Levels, host: usize) -> f64 {
    levels.get(&host).copied().unwrap_or(0.0)
}

impl HostKind {
    fn of(members: Vec<usize>, families: &[(Family, Levels)], axes: &[Axis]) -> Self {
        let middle = |levels: &Levels| {
            let of_members: Vec<f64> =
                members.iter().map(|&member| level(levels, member)).collect();
            median(&of_members).unwrap_or(0.0)
        };
        let levels = families.iter().map(|(family, levels)| (*family, middle(levels))).collect();
        let centres = axes.iter().map(|axis| middle(&axis.levels)).collect();
        Self { members, levels, centres }
    }

    fn distance(&self, host: usize, axes: &[Axis]) -> f64 {
        let centres = self.centres.iter().zip(axes);
        centres.map(|(centre, axis)| (level(&axis.levels, host) - centre).abs()).sum()
    }

    /// Returns the family in which this kind is worse than `best` by the most, and by how much.
    pub(super) fn worst_compared_with(&self, best: &Self) -> Option<(Family, f64)> {
        let levels = self.levels.iter().zip(&best.levels);
        let excesses = levels.map(|((family, level), (_, best))| (*family, level - best));
        excesses.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}
