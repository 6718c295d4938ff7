//! Scores of figures and units, and the claims among them.

mod relative;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use numalab_stats::{Population, Tails, benjamini_hochberg};

use super::{Family, FigureKey, LEAST_PEERS, Scope};

/// Smallest standard deviation assumed: 0.1 % of log figures, and this multiple of combined scores'
/// own scale. Without it nearly identical hosts would make tiny deviations look significant.
const LEAST_SCALE: f64 = 1e-3;
/// Number of hosts above which a shift of one leaves the centre, scale and tails of its peers
/// practically unchanged.
const SHIFT_UNSEEN: usize = 500;

/// A host's medians with their key's index.
pub(super) type Medians = Vec<(usize, f64)>;

/// A test of several hosts.
#[derive(Clone, Debug)]
pub(super) struct Test {
    pub(super) subject: Subject,
    pub(super) family: Family,
    /// One value for each host.
    pub(super) units: Vec<Unit>,
    population: Population,
    tails: Rc<Tails>,
    /// The growth of a value if all its figures shift by one standard deviation.
    gain: f64,
}

/// The figures that a test is about.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Subject {
    /// A single figure, by the index of its key.
    Figure(usize),
    /// All figures of the family in a part of the host.
    All(Scope),
    /// All figures of the family on the host, relative to another family.
    Relative(Family),
}

/// A host in a test. A large fleet has a million of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub(super) host: usize,
    /// Its value; larger is worse.
    value: f64,
    /// The probability of such a value if the host were like its peers.
    pub(super) chance: f64,
    /// The median of the figures' log ratios to their peers.
    pub(super) log_change: f64,
    pub(super) figures: usize,
}

/// All tests of some hosts.
#[derive(Clone, Debug, Default)]
pub(super) struct Tests {
    pub(super) all: Vec<Test>,
}

impl Tests {
    /// Runs the tests of one group of peers, which share an estimate of the tails.
    pub(super) fn of_group(keys: &[FigureKey], members: &[(usize, &Medians)]) -> Self {
        let mut all = figures(keys, members);
        let mut parts: BTreeMap<(Scope, Family), Vec<&Test>> = BTreeMap::new();
        for test in &all {
            let Subject::Figure(key) = test.subject else { continue };
            let mut scopes = vec![Scope::Host];
            scopes.extend(keys[key].package.map(Scope::Package));
            scopes.extend(keys[key].memory_node.map(Scope::MemoryNode));
            for scope in scopes {
                parts.entry((scope, test.family)).or_default().push(test);
            }
        }
        let joined: Vec<Test> = parts
            .into_iter()
            .filter_map(|((scope, family), of)| joined(scope, family, &of))
            .collect();
        all.extend(relative::tests(&joined));
        all.extend(joined);
        let tails = Rc::new(Tails::learned(all.iter().map(|test| &test.population)));
        for test in &mut all {
            test.tails = Rc::clone(&tails);
            for unit in &mut test.units {
                unit.chance = tails.chance(&test.population, unit.value);
            }
        }
        Self { all }
    }

    /// Returns the number of tests, one for each host and subject.
    pub(super) fn count(&self) -> usize {
        self.all.iter().map(|test| test.units.len()).sum()
    }

    /// Returns `true` if these tests, of other runs, confirm a claim; `None` if its host and
    /// subject are not among them.
    pub(super) fn confirms(&self, claimed: &Test, unit: &Unit, level: f64) -> Option<bool> {
        let is_same = |test: &&Test| {
            let are_relative = |a: &Subject, b: &Subject| {
                matches!((a, b), (Subject::Relative(_), Subject::Relative(_)))
            };
            test.family == claimed.family
                && (test.subject == claimed.subject
                    || are_relative(&test.subject, &claimed.subject))
        };
        let of_host = |test: &'_ Test| {
            let other = test.units.iter().find(|other| other.host == unit.host)?;
            let is_same_side = test.score(other) * claimed.score(unit) > 0.0;
            Some(if is_same_side { other.chance } else { 1.0 })
        };
        let chances: Vec<f64> = self.all.iter().filter(is_same).filter_map(of_host).collect();
        let least = chances.iter().copied().reduce(f64::min)?;
        // Any of several may confirm it.
        Some(least * chances.len() as f64 <= level)
    }
}

impl Test {
    fn score(&self, unit: &Unit) -> f64 {
        self.population.score(unit.value)
    }

    pub(super) fn scope(&self, keys: &[FigureKey]) -> Scope {
        match &self.subject {
            Subject::Figure(key) => Scope::Figure(keys[*key].cell.clone()),
            Subject::All(scope) => scope.clone(),
            Subject::Relative(_) => Scope::Host,
        }
    }

    /// Returns the probability of the unit at `place` if all its figures had shifted by `shift`
    /// standard deviations; its peers include the shifted value.
    pub(super) fn chance_of_moved(&self, place: usize, shift: f64) -> f64 {
        if self.units.len() >= SHIFT_UNSEEN {
            return self
                .tails
                .chance(&self.population, self.units[place].value + shift * self.gain);
        }
        let mut values: Vec<f64> = self.units.iter().map(|unit| unit.value).collect();
        values[place] += shift * self.gain;
        let population = Population::new(&values, LEAST_SCALE);
        population.map_or(1.0, |moved| self.tails.chance(&moved, values[place]))
    }
}

fn worse(key: &FigureKey) -> f64 {
    if key.metric.lower_is_better() { 1.0 } else { -1.0 }
}

/// Tests each figure among its peers, on logarithms.
fn figures(keys: &[FigureKey], members: &[(usize, &Medians)]) -> Vec<Test> {
    let mut units: BTreeMap<usize, Vec<Unit>> = BTreeMap::new();
    for (host, medians) in members {
        for &(key, median) in *medians {
            let value = worse(&keys[key]) * median.ln();
            let unit = Unit { host: *host, value, chance: 1.0, log_change: 0.0, figures: 1 };
            units.entry(key).or_default().push(unit);
        }
    }
    units.retain(|_, units| units.len() >= LEAST_PEERS);
    let test = |(key, mut units): (usize, Vec<Unit>)| {
        let values: Vec<f64> = units.iter().map(|unit| unit.value).collect();
        let population = Population::new(&values, LEAST_SCALE).ok()?;
        for unit in &mut units {
            unit.log_change = worse(&keys[key]) * (unit.value - population.centre());
        }
        units.shrink_to_fit();
        Some(Test {
            subject: Subject::Figure(key),
            family: keys[key].family,
            gain: population.scale(),
            units,
            population,
            tails: Rc::default(),
        })
    };
    units.into_iter().filter_map(test).collect()
}

/// Tests each host's mean score over the figures among the same means of its peers, which accounts
/// for correlated figures; `None` if no host has two figures.
fn joined(scope: Scope, family: Family, of: &[&Test]) -> Option<Test> {
    // The figures' scores and log ratios.
    let mut figures: BTreeMap<usize, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for test in of {
        for unit in &test.units {
            let (scores, changes) = figures.entry(unit.host).or_default();
            scores.push(test.score(unit));
            changes.push(unit.log_change);
        }
    }
    if figures.len() < LEAST_PEERS || figures.values().all(|(scores, _)| scores.len() == 1) {
        return None;
    }
    let unit = |(host, (scores, mut changes)): (usize, (Vec<f64>, Vec<f64>))| {
        changes.sort_by(f64::total_cmp);
        Unit {
            host,
            value: scores.iter().sum::<f64>() / scores.len() as f64,
            chance: 1.0,
            log_change: changes[changes.len() / 2],
            figures: scores.len(),
        }
    };
    let units: Vec<Unit> = figures.into_iter().map(unit).collect();
    let values: Vec<f64> = units.iter().map(|unit| unit.value).collect();
    let population = Population::new(&values, LEAST_SCALE).ok()?;
    Some(Test {
        subject: Subject::All(scope),
        family,
        units,
        population,
        tails: Rc::default(),
        gain: 1.0,
    })
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Claimed<'a> {
    pub(super) test: &'a Test,
    pub(super) unit: &'a Unit,
    /// The expected share of false discoveries among its host and all with stronger evidence.
    pub(super) q: f64,
}

impl Claimed<'_> {
    pub(super) fn score(&self) -> f64 {
        self.test.score(self.unit)
    }

    /// Returns `true` if the host deviates only relative to another family.
    pub(super) fn is_relative(&self) -> bool {
        matches!(self.test.subject, Subject::Relative(_))
    }
}

/// The claims, and the threshold that a further host's test would have to meet.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection<'a> {
    pub(super) claimed: Vec<Claimed<'a>>,
    pub(super) threshold: f64,
}

impl Selection<'_> {
    /// Returns the hosts with a claim.
    pub(super) fn hosts(&self) -> HashSet<usize> {
        self.claimed.iter().map(|claim| claim.unit.host).collect()
    }
}

/// Selects hosts first, then the problems within them. A host's probability is that of its
/// strongest test times the number of its tests (Bonferroni, because tests of a host depend on each
/// other). Hosts keep the rate (Benjamini and Hochberg); within a selected host the level is the
/// rate times the share of selected hosts (Benjamini and Bogomolov, J. R. Stat. Soc. B 76, 2014).
/// The rate therefore holds for the hosts that an operator has to inspect.
pub(super) fn select(tests: &Tests, rate: f64) -> Selection<'_> {
    // The lowest probability and the number of tests of each host.
    let mut least: BTreeMap<usize, (f64, usize)> = BTreeMap::new();
    for unit in tests.all.iter().flat_map(|test| &test.units) {
        let of_host = least.entry(unit.host).or_insert((1.0, 0));
        *of_host = (of_host.0.min(unit.chance), of_host.1 + 1);
    }
    let chances: Vec<f64> =
        least.values().map(|(chance, count)| (chance * *count as f64).min(1.0)).collect();
    let adjusted = benjamini_hochberg(&chances).into_iter();
    let chosen: HashMap<usize, f64> =
        least.into_keys().zip(adjusted).filter(|(_, q)| *q <= rate).collect();
    let hosts = chances.len().max(1) as f64;
    let level = rate * chosen.len() as f64 / hosts;
    let mut by_host: BTreeMap<usize, Vec<Claimed<'_>>> = BTreeMap::new();
    for test in &tests.all {
        for unit in &test.units {
            if let Some(&q) = chosen.get(&unit.host) {
                by_host.entry(unit.host).or_default().push(Claimed { test, unit, q });
            }
        }
    }
    let mut selection = Selection::default();
    for of_host in by_host.into_values() {
        let p: Vec<f64> = of_host.iter().map(|claim| claim.unit.chance).collect();
        let within = benjamini_hochberg(&p);
        let found = of_host.into_iter().zip(within).filter(|(_, within)| *within <= level);
        selection.claimed.extend(found.map(|(claim, _)| claim));
    }
    let tests_of_one = tests.count().max(1) as f64 / hosts;
    selection.threshold = rate * (chosen.len() + 1) as f64 / hosts / tests_of_one;
    selection
}
