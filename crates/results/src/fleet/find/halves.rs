//! Peers of several kinds: hosts with memory of another make are not outliers if every kind is
//! common. A recorded setting that divides the hosts is the better evidence: its values are the
//! kinds, whatever their shares and however close they are. Without one, the figures of all
//! families together divide the hosts.

mod division;
mod figures;

use std::collections::BTreeMap;

use numalab_stats::Sample;
use serde::{Deserialize, Serialize};

use super::{Family, FigureKey, HostRun, LEAST_PEERS};
use figures::HostKind;

/// Peers of two kinds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Halves {
    /// The kind of figures that separates them.
    pub family: Family,
    /// The hosts of the worse kind.
    pub worse: Vec<String>,
    /// Number of hosts of the better kind.
    pub better: usize,
    /// The difference between their medians in percent; positive if the worse kind's figures are
    /// higher.
    pub change_percent: f64,
    /// A setting that differs between the kinds on every host: its name, its value on hosts of the
    /// worse kind, and that on hosts of the better.
    pub setting: Option<(String, String, String)>,
}

/// Splits a group into parts of one kind each, and appends the differences between them.
pub(super) fn parts(
    keys: &[FigureKey],
    hosts: &[HostRun],
    members: &[usize],
    halves: &mut Vec<Halves>,
) -> Vec<Vec<usize>> {
    if let Some(division) = division::strongest(keys, hosts, members) {
        halves.extend(division.kinds(hosts));
        let of_value = |part: Vec<usize>| parts(keys, hosts, &part, halves);
        return division.parts.into_iter().map(|part| part.members).flat_map(of_value).collect();
    }
    let kinds = figures::kinds(keys, hosts, members);
    if let Some((best, rest)) = kinds.split_first() {
        let halves_of = |kind: &HostKind| {
            let (family, excess) = kind.worst_compared_with(best)?;
            let sign = if lower_is_better(keys, family) { 1.0 } else { -1.0 };
            Some(Halves {
                family,
                worse: kind.members.iter().map(|&host| hosts[host].host.clone()).collect(),
                better: best.members.len(),
                change_percent: ((sign * excess).exp() - 1.0) * 100.0,
                setting: setting(hosts, &kind.members, &best.members),
            })
        };
        halves.extend(rest.iter().filter_map(halves_of));
        return kinds.into_iter().map(|kind| kind.members).collect();
    }
    vec![members.to_vec()]
}

fn lower_is_better(keys: &[FigureKey], family: Family) -> bool {
    keys.iter().find(|key| key.family == family).is_none_or(|key| key.metric.lower_is_better())
}

/// Returns each host's median log ratio to the median of all, over the figures of a family;
/// positive is worse.
fn levels(
    keys: &[FigureKey],
    hosts: &[HostRun],
    members: &[usize],
    family: Family,
) -> Vec<(usize, f64)> {
    let mut figures: BTreeMap<usize, Vec<(usize, f64)>> = BTreeMap::new();
    for &member in members {
        for &(key, median) in
            hosts[member].medians.iter().filter(|(key, _)| keys[*key].family == family)
        {
            figures.entry(key).or_default().push((member, median.ln()));
        }
    }
    let mut ratios: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (key, values) in figures {
        let worse = if keys[key].metric.lower_is_better() { 1.0 } else { -1.0 };
        let logs: Vec<f64> = values.iter().map(|(_, log)| *log).collect();
        let Ok(sample) = Sample::new(logs) else { continue };
        for (host, log) in values {
            ratios.entry(host).or_default().push(worse * (log - sample.median()));
        }
    }
    let level =
        |(host, ratios): (usize, Vec<f64>)| Some((host, Sample::new(ratios).ok()?.median()));
    ratios.into_iter().filter_map(level).collect()
}

/// Returns a setting with one value on every host of the worse kind and another on every other
/// host.
fn setting(
    hosts: &[HostRun],
    worse: &[usize],
    better: &[usize],
) -> Option<(String, String, String)> {
    let common = |part: &[usize], name: &str| -> Option<String> {
        let value = hosts[*part.first()?].facts.get(name)?;
        part.iter().all(|host| hosts[*host].facts.get(name) == Some(value)).then(|| value.clone())
    };
    hosts[*worse.first()?].facts.keys().find_map(|name| {
        let (here, there) = (common(worse, name)?, common(better, name)?);
        (here != there).then(|| (name.clone(), here, there))
    })
}
