//! Scores of figures and units, and the claims among them.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use numalab_stats::{Population, Tails, benjamini_hochberg};

use super::{Claim, Family, LEAST_PEERS, Scope};
use super::{FigureKey, HostRun};

/// Probability, over all claims together, that chance alone confirms one in a second run.
const AGAIN: f64 = 0.02;
/// Smallest standard deviation assumed: 0.1 % of log figures, and this multiple of combined scores'
/// own scale. Without it nearly identical hosts would make tiny deviations look significant.
const LEAST_SCALE: f64 = 1e-3;

/// A host's medians with their key's index.
pub(super) type Medians = Vec<(usize, f64)>;

/// One test: a host, its figures, and their distance from the peers.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) host: usize,
    pub(super) scope: Scope,
    pub(super) family: Family,
    /// The index of its peers in the tests' list, and its position among them.
    pub(super) population: usize,
    pub(super) place: usize,
    pub(super) score: f64,
    /// The probability of such a value if the host were like its peers.
    pub(super) chance: f64,
    /// The median of the figures' log ratios to their peers.
    pub(super) log_change: f64,
    pub(super) figures: usize,
    pub(super) peers: usize,
    /// The growth of the value if all its figures shift by one standard deviation.
    pub(super) gain: f64,
}

/// All tests of some hosts, with the peers that each was judged by.
#[derive(Clone, Debug, Default)]
pub(super) struct Units {
    pub(super) all: Vec<Unit>,
    peers: Vec<Peers>,
}

/// A test's values for all hosts (positive is worse) and their distribution.
#[derive(Clone, Debug)]
struct Peers {
    values: Vec<f64>,
    population: Population,
    tails: Rc<Tails>,
}

impl Units {
    /// Runs the tests of one group of peers, which share an estimate of the tails.
    pub(super) fn of_group(keys: &[FigureKey], members: &[(usize, &Medians)]) -> Self {
        let mut units = Self::default();
        let scored = units.score_figures(keys, members);
        let mut joined: BTreeMap<(Scope, Family), HashMap<usize, Vec<&Scored>>> = BTreeMap::new();
        for figure in &scored {
            let key = &keys[figure.key];
            let mut scopes = vec![Scope::Host];
            scopes.extend(key.package.map(Scope::Package));
            scopes.extend(key.memory_node.map(Scope::MemoryNode));
            for scope in scopes {
                let unit = joined.entry((scope, key.family)).or_default();
                unit.entry(figure.host).or_default().push(figure);
            }
        }
        for (name, of) in &joined {
            units.join(name, of);
        }
        let tails = Rc::new(Tails::learned(units.peers.iter().map(|peers| &peers.population)));
        units.peers.iter_mut().for_each(|peers| peers.tails = Rc::clone(&tails));
        for unit in &mut units.all {
            let peers = &units.peers[unit.population];
            unit.chance = tails.chance(&peers.population, peers.values[unit.place]);
        }
        units
    }

    /// Returns the probability of a unit that had shifted by `shift` standard deviations in all its
    /// figures; its peers include the shifted value.
    pub(super) fn chance_of_moved(&self, unit: &Unit, shift: f64) -> f64 {
        let peers = &self.peers[unit.population];
        let mut values = peers.values.clone();
        values[unit.place] += shift * unit.gain;
        let population = Population::new(&values, LEAST_SCALE);
        population.map_or(1.0, |moved| peers.tails.chance(&moved, values[unit.place]))
    }

    /// Returns `true` if these tests, of other runs, confirm a unit; `None` if it is not among
    /// them.
    fn says(&self, unit: &Unit, level: f64) -> Option<bool> {
        let same = |other: &&Unit| {
            (other.host, other.family, &other.scope) == (unit.host, unit.family, &unit.scope)
        };
        let other = self.all.iter().find(same)?;
        Some(other.chance <= level && other.score * unit.score > 0.0)
    }

    /// Appends the tests of another group.
    pub(super) fn extend(&mut self, other: Self) {
        let before = self.peers.len();
        self.peers.extend(other.peers);
        self.all.extend(
            other.all.into_iter().map(|unit| Unit { population: unit.population + before, ..unit }),
        );
    }

    /// Scores each figure among its peers, on logarithms; positive is worse.
    fn score_figures(&mut self, keys: &[FigureKey], members: &[(usize, &Medians)]) -> Vec<Scored> {
        let mut values: BTreeMap<usize, Vec<(usize, f64)>> = BTreeMap::new();
        for (member, medians) in members {
            for &(key, median) in *medians {
                values.entry(key).or_default().push((*member, median.ln()));
            }
        }
        let mut scored = Vec::new();
        for (key, values) in values.into_iter().filter(|(_, values)| values.len() >= LEAST_PEERS) {
            let worse = if keys[key].metric.lower_is_better() { 1.0 } else { -1.0 };
            let logs: Vec<f64> = values.iter().map(|value| worse * value.1).collect();
            let Ok(population) = Population::new(&logs, LEAST_SCALE) else { continue };
            for (place, ((host, _), log)) in values.iter().zip(&logs).enumerate() {
                let (z, log_ratio) = (population.score(*log), worse * (log - population.centre()));
                scored.push(Scored { host: *host, key, z, log_ratio });
                self.all.push(Unit {
                    host: *host,
                    scope: Scope::Figure(keys[key].cell.clone()),
                    family: keys[key].family,
                    population: self.peers.len(),
                    place,
                    score: z,
                    chance: 1.0,
                    log_change: log_ratio,
                    figures: 1,
                    peers: members.len(),
                    gain: population.scale(),
                });
            }
            self.peers.push(Peers { values: logs, population, tails: Rc::default() });
        }
        scored
    }

    /// Scores each host's unit by the mean score of its figures, compared with the same mean of the
    /// peers, which accounts for correlated figures.
    #[expect(clippy::cast_precision_loss, reason = "counts of figures")]
    fn join(&mut self, (scope, family): &(Scope, Family), of: &HashMap<usize, Vec<&Scored>>) {
        let mut hosts: Vec<&usize> = of.keys().collect();
        hosts.sort_unstable();
        if of.len() < LEAST_PEERS || of.values().all(|figures| figures.len() == 1) {
            return;
        }
        let mean = |figures: &[&Scored]| {
            figures.iter().map(|figure| figure.z).sum::<f64>() / figures.len() as f64
        };
        let means: Vec<f64> = hosts.iter().map(|host| mean(&of[host])).collect();
        let Ok(population) = Population::new(&means, LEAST_SCALE) else { return };
        for (place, (host, mean)) in hosts.iter().zip(&means).enumerate() {
            let figures = &of[*host];
            let mut changes: Vec<f64> = figures.iter().map(|figure| figure.log_ratio).collect();
            changes.sort_by(f64::total_cmp);
            self.all.push(Unit {
                host: **host,
                scope: scope.clone(),
                family: *family,
                population: self.peers.len(),
                place,
                score: population.score(*mean),
                chance: 1.0,
                log_change: changes[changes.len() / 2],
                figures: figures.len(),
                peers: of.len(),
                gain: 1.0,
            });
        }
        self.peers.push(Peers { values: means, population, tails: Rc::default() });
    }
}

/// A figure of a host with its score.
struct Scored {
    host: usize,
    key: usize,
    z: f64,
    log_ratio: f64,
}

/// A unit with a claim.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claimed {
    pub(super) unit: usize,
    /// The probability of its score if the host were like its peers.
    pub(super) p: f64,
    /// The expected share of false discoveries among its host and all with stronger evidence.
    pub(super) q: f64,
}

/// The claims, and the threshold that a further host's test would have to meet.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    pub(super) claimed: Vec<Claimed>,
    pub(super) threshold: f64,
}

/// Selects hosts first, then the problems within them. A host's probability is that of its
/// strongest test times the number of its tests (Bonferroni, because tests of a host depend on each
/// other). Hosts keep the rate (Benjamini and Hochberg); within a selected host the level is the
/// rate times the share of selected hosts (Benjamini and Bogomolov, J. R. Stat. Soc. B 76, 2014).
/// The rate therefore holds for the hosts that an operator has to inspect.
#[expect(clippy::cast_precision_loss, reason = "counts of hosts and tests")]
pub(super) fn select(units: &[Unit], rate: f64) -> Selection {
    let mut tests: BTreeMap<usize, Vec<(usize, f64)>> = BTreeMap::new();
    for (at, unit) in units.iter().enumerate() {
        tests.entry(unit.host).or_default().push((at, unit.chance));
    }
    let of_host = |tests: &Vec<(usize, f64)>| {
        let least = tests.iter().map(|test| test.1).fold(1.0, f64::min);
        (least * tests.len() as f64).min(1.0)
    };
    let chances: Vec<f64> = tests.values().map(of_host).collect();
    let adjusted = benjamini_hochberg(&chances);
    let chosen = adjusted.iter().filter(|q| **q <= rate).count();
    let hosts = tests.len().max(1) as f64;
    let mut selection = Selection::default();
    let level = rate * chosen as f64 / hosts;
    for (tests, q) in tests.values().zip(&adjusted).filter(|(_, q)| **q <= rate) {
        let p: Vec<f64> = tests.iter().map(|test| test.1).collect();
        let within = benjamini_hochberg(&p);
        let found = tests.iter().zip(within).filter(|(_, within)| *within <= level);
        selection.claimed.extend(found.map(|(&(unit, p), _)| Claimed { unit, p, q: *q }));
    }
    let tests_of_one = units.len().max(1) as f64 / hosts;
    selection.threshold = rate * (chosen + 1) as f64 / hosts / tests_of_one;
    selection
}

/// Returns the strongest claim of each host and family, and those that it does not cover.
pub(super) fn strongest(
    units: &[Unit],
    claimed: &[Claimed],
    hosts: &[HostRun],
    again: &Units,
) -> Vec<Claim> {
    let mut order: Vec<&Claimed> = claimed.iter().collect();
    order.sort_by(|a, b| units[b.unit].score.abs().total_cmp(&units[a.unit].score.abs()));
    let mut kept: Vec<&Claimed> = Vec::new();
    let mut by_place: HashMap<(usize, Family), Vec<&Scope>> = HashMap::new();
    for claim in order {
        let unit = &units[claim.unit];
        let told = by_place.entry((unit.host, unit.family)).or_default();
        if !told.iter().any(|scope| covers(scope, &unit.scope)) {
            told.push(&unit.scope);
            kept.push(claim);
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a count of claims")]
    let level = AGAIN / kept.len().max(1) as f64;
    let claim = |claimed: &&Claimed| {
        let unit = &units[claimed.unit];
        Claim {
            host: hosts[unit.host].host.clone(),
            scope: unit.scope.clone(),
            family: unit.family,
            score: unit.score,
            p: claimed.p,
            q: claimed.q,
            change_percent: (unit.log_change.exp() - 1.0) * 100.0,
            figures: unit.figures,
            peers: unit.peers,
            seen_again: again.says(unit, level),
        }
    };
    kept.iter().map(claim).collect()
}

/// Returns `true` if a claim on `told` implies one on `other`, because one is part of the other.
/// Two nodes of one host are two claims.
fn covers(told: &Scope, other: &Scope) -> bool {
    match (told, other) {
        (Scope::MemoryNode(a), Scope::MemoryNode(b)) | (Scope::Package(a), Scope::Package(b)) => {
            a == b
        }
        _ => true,
    }
}
