//! A recorded setting with values that divide the hosts into kinds.

use std::collections::{BTreeMap, HashMap};

use numalab_stats::{Alternative, Sample, rank_sum};

use super::{Family, FigureKey, Halves, HostRun, LEAST_PEERS, levels, lower_is_better};

/// Maximum number of values of a setting; a setting with more values identifies hosts.
const MOST_VALUES: usize = 20;
/// Probability that chance alone divides the hosts of one kind, over all settings and families.
const BY_CHANCE: f64 = 0.001;
/// Minimum difference between kinds, as a logarithm.
const LEAST_DIFFERENCE: f64 = 0.01;

/// Hosts divided by the values of a setting, best value first.
pub(super) struct Division {
    family: Family,
    name: String,
    pub(super) parts: Vec<ValuePart>,
    lower_is_better: bool,
    p: f64,
}

/// The hosts with one value; those with rare values are with the most common one.
pub(super) struct ValuePart {
    value: String,
    pub(super) members: Vec<usize>,
    /// The median of their levels; higher is worse.
    level: f64,
}

impl Division {
    /// Describes each kind compared with the best one.
    pub(super) fn kinds(&self, hosts: &[HostRun]) -> Vec<Halves> {
        let Some((best, rest)) = self.parts.split_first() else { return Vec::new() };
        let sign = if self.lower_is_better { 1.0 } else { -1.0 };
        let kind = |part: &ValuePart| Halves {
            family: self.family,
            worse: part.members.iter().map(|&member| hosts[member].host.clone()).collect(),
            better: best.members.len(),
            change_percent: ((sign * (part.level - best.level)).exp() - 1.0) * 100.0,
            setting: Some((self.name.clone(), part.value.clone(), best.value.clone())),
        };
        rest.iter().map(kind).collect()
    }

    /// Returns the difference between the best and the worst value.
    fn difference(&self) -> f64 {
        self.parts.last().map_or(0.0, |worst| worst.level)
            - self.parts.first().map_or(0.0, |best| best.level)
    }
}

/// Returns the setting that divides the hosts most clearly, if any does so beyond chance.
pub(super) fn strongest(
    keys: &[FigureKey],
    hosts: &[HostRun],
    members: &[usize],
) -> Option<Division> {
    let settings = settings(hosts, members);
    let mut divisions: Vec<Division> = Vec::new();
    for family in Family::ALL {
        let levels: HashMap<usize, f64> =
            levels(keys, hosts, members, family).into_iter().collect();
        let divided = |(name, values): (&String, &BTreeMap<String, Vec<usize>>)| {
            let lower_is_better = lower_is_better(keys, family);
            divided(values, &levels).map(|(parts, p)| Division {
                family,
                name: name.clone(),
                parts,
                lower_is_better,
                p,
            })
        };
        divisions.extend(settings.iter().filter_map(divided));
    }
    let tests = divisions.len() as f64;
    divisions.retain(|division| {
        division.p * tests <= BY_CHANCE && division.difference() >= LEAST_DIFFERENCE
    });
    divisions
        .into_iter()
        .min_by(|a, b| a.p.total_cmp(&b.p).then_with(|| b.difference().total_cmp(&a.difference())))
}

/// Returns the hosts with each value of each setting that has several common ones.
fn settings(
    hosts: &[HostRun],
    members: &[usize],
) -> BTreeMap<String, BTreeMap<String, Vec<usize>>> {
    let mut settings: BTreeMap<String, BTreeMap<String, Vec<usize>>> = BTreeMap::new();
    for &member in members {
        for (name, value) in &hosts[member].facts {
            let values = settings.entry(name.clone()).or_default();
            values.entry(value.clone()).or_default().push(member);
        }
    }
    let has_all = |values: &BTreeMap<String, Vec<usize>>| {
        values.values().map(Vec::len).sum::<usize>() == members.len()
    };
    settings.retain(|_, values| (2..=MOST_VALUES).contains(&values.len()) && has_all(values));
    for values in settings.values_mut() {
        join_rare(values);
    }
    settings.retain(|_, values| values.len() > 1);
    settings
}

/// Moves hosts with rare values to those with the most common one.
fn join_rare(values: &mut BTreeMap<String, Vec<usize>>) {
    let mut rare = Vec::new();
    values.retain(|_, hosts| {
        let is_common = hosts.len() >= LEAST_PEERS;
        if !is_common {
            rare.append(hosts);
        }
        is_common
    });
    if let Some(most) = values.values_mut().max_by_key(|hosts| hosts.len()) {
        most.append(&mut rare);
    }
}

/// Returns the parts of a division, best value first, and the probability of such a difference
/// between best and worst by chance, over all pairs of values.
fn divided(
    values: &BTreeMap<String, Vec<usize>>,
    levels: &HashMap<usize, f64>,
) -> Option<(Vec<ValuePart>, f64)> {
    let of = |members: &[usize]| {
        let picked = members.iter().filter_map(|member| levels.get(member).copied());
        Sample::new(picked.collect::<Vec<f64>>()).ok()
    };
    let mut parts = Vec::new();
    for (value, members) in values {
        let level = of(members)?.median();
        parts.push(ValuePart { value: value.clone(), members: members.clone(), level });
    }
    parts.sort_by(|a, b| a.level.total_cmp(&b.level));
    let (best, worst) = (of(&parts.first()?.members)?, of(&parts.last()?.members)?);
    let pairs = (parts.len() * (parts.len() - 1) / 2) as f64;
    let p = pairs * rank_sum(&best, &worst, Alternative::TwoSided).p;
    Some((parts, p))
}
