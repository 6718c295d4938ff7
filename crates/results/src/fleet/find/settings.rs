//! Settings and topology in which hosts differ.

use std::collections::{BTreeMap, HashMap};

use numalab_stats::{Alternative, Sample, benjamini_hochberg, rank_sum};
use serde::{Deserialize, Serialize};

use super::HostRun;
use super::score::{Subject, Tests};
use super::{Claim, Family, Scope};

/// Share of hosts below which a value is unusual.
const UNUSUAL: f64 = 0.2;
/// Maximum number of values of a setting; one with more identifies hosts, as a serial number does.
const MOST_VALUES: usize = 20;
/// Minimum number of hosts with a value for an estimate of its effect.
const LEAST_HOSTS: usize = 5;
/// Smallest effect reported, in percent.
const LEAST_PERCENT: f64 = 1.0;

/// An unusual value of an outlier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Different {
    /// The host's name.
    pub host: String,
    /// The setting's name.
    pub name: String,
    /// The value on this host.
    pub value: String,
    /// The value on most hosts.
    pub usual: String,
    /// Number of hosts with this host's value.
    pub hosts: usize,
}

/// An unusual value shared by hosts that deviate in the same way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SettingEffect {
    /// The setting's name.
    pub name: String,
    /// The unusual value.
    pub value: String,
    /// The value on most hosts.
    pub usual: String,
    /// Number of hosts with the unusual value.
    pub hosts: usize,
    /// The kind of figures.
    pub family: Family,
    /// The median change of these hosts from the usual ones, in percent.
    pub change_percent: f64,
    /// The adjusted probability of such a difference if the setting did not matter.
    pub q: f64,
}

/// Returns the hosts with each value of each setting.
fn values(hosts: &[HostRun]) -> BTreeMap<&str, BTreeMap<&str, Vec<usize>>> {
    let mut values: BTreeMap<&str, BTreeMap<&str, Vec<usize>>> = BTreeMap::new();
    for (at, host) in hosts.iter().enumerate() {
        for (name, value) in &host.facts {
            values.entry(name).or_default().entry(value).or_default().push(at);
        }
    }
    values
}

fn usual<'a>(values: &BTreeMap<&'a str, Vec<usize>>) -> Option<(&'a str, usize)> {
    let (value, hosts) = values.iter().max_by_key(|(_, hosts)| hosts.len())?;
    Some((value, hosts.len()))
}

#[expect(clippy::cast_precision_loss, reason = "counts of hosts")]
fn is_unusual(hosts: usize, all: usize) -> bool {
    (hosts as f64) < UNUSUAL * all as f64
}

/// Returns unusual values of outliers, by host and setting.
pub(super) fn different(hosts: &[HostRun], claims: &[Claim]) -> Vec<Different> {
    let values = values(hosts);
    let place: HashMap<&str, &HostRun> =
        hosts.iter().map(|host| (host.host.as_str(), host)).collect();
    let mut named: Vec<&str> = claims.iter().map(|claim| claim.host.as_str()).collect();
    named.sort_unstable();
    named.dedup();
    let mut found = Vec::new();
    for host in named.iter().filter_map(|name| place.get(name)) {
        for (name, value) in &host.facts {
            let Some(of) = values.get(name.as_str()) else { continue };
            let (Some(same), Some((most, _))) = (of.get(value.as_str()), usual(of)) else {
                continue;
            };
            if of.len() <= MOST_VALUES && is_unusual(same.len(), hosts.len()) && value != most {
                found.push(Different {
                    host: host.host.clone(),
                    name: name.clone(),
                    value: value.clone(),
                    usual: most.to_owned(),
                    hosts: same.len(),
                });
            }
        }
    }
    found
}

/// Returns settings with unusual values associated with different figures of the whole host.
pub(super) fn effects(hosts: &[HostRun], tests: &Tests, rate: f64) -> Vec<SettingEffect> {
    let mut changes: BTreeMap<Family, HashMap<usize, f64>> = BTreeMap::new();
    for test in tests.all.iter().filter(|test| test.subject == Subject::All(Scope::Host)) {
        let of_hosts = test.units.iter().map(|unit| (unit.host, unit.log_change));
        changes.entry(test.family).or_default().extend(of_hosts);
    }
    let mut found = Vec::new();
    for (name, of) in values(hosts) {
        let Some((most, _)) = usual(&of).filter(|_| of.len() <= MOST_VALUES) else { continue };
        let others = of.iter().filter(|(value, with)| **value != most && with.len() >= LEAST_HOSTS);
        for (value, with) in others {
            for (family, changes) in &changes {
                let pick = |members: &[usize]| -> Option<Sample> {
                    let picked: Vec<f64> =
                        members.iter().filter_map(|member| changes.get(member).copied()).collect();
                    Sample::new(picked).ok().filter(|sample| sample.len() >= LEAST_HOSTS)
                };
                let (Some(here), Some(there)) = (pick(with), pick(&of[most])) else { continue };
                let p = rank_sum(&there, &here, Alternative::TwoSided).p;
                let effect = SettingEffect {
                    name: name.to_owned(),
                    value: (*value).to_owned(),
                    usual: most.to_owned(),
                    hosts: here.len(),
                    family: *family,
                    change_percent: ((here.median() - there.median()).exp() - 1.0) * 100.0,
                    q: p,
                };
                found.push(effect);
            }
        }
    }
    let chances: Vec<f64> = found.iter().map(|effect| effect.q).collect();
    for (effect, q) in found.iter_mut().zip(benjamini_hochberg(&chances)) {
        effect.q = q;
    }
    found.retain(|effect| effect.q <= rate && effect.change_percent.abs() >= LEAST_PERCENT);
    found.sort_by(|a, b| b.change_percent.abs().total_cmp(&a.change_percent.abs()));
    found
}
