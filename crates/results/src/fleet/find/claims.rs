//! The claims of a host: one for each part of it that deviates as a whole.

use std::collections::{HashMap, HashSet};

use super::score::{Claimed, Selection, Subject, Tests};
use super::{Claim, FigureKey, HostRun, Scope};

/// Probability, over all claims together, that chance alone confirms a claim in a second run.
const AGAIN: f64 = 0.02;
/// Minimum share of a part's figures that must deviate alike for the part to deviate as a whole.
const MOST_FIGURES: f64 = 0.9;
/// Minimum change, as a share of the strongest claim's, for figures to deviate alike.
const ALIKE: f64 = 0.5;

/// Minimum score of a host that is shown although there is no claim about it.
const FAR: f64 = 5.0;
/// Maximum number of such hosts.
const MOST_FARTHEST: usize = 5;

/// The figures of a host, by the index of their keys, with their log changes.
type Changes = Vec<(usize, f64)>;

/// Returns the claims of each host and family, strongest first: the one with the highest score, as
/// a claim on the largest part that it holds for, and those that it does not cover.
pub(super) fn strongest(
    keys: &[FigureKey],
    hosts: &[HostRun],
    tests: &Tests,
    selection: &Selection<'_>,
    again: &Tests,
) -> Vec<Claim> {
    let changes = changes(tests, &selection.hosts());
    let of_hosts = selection.claimed.chunk_by(|a, b| a.unit.host == b.unit.host);
    let kept = of_hosts.flat_map(|claims| kept(keys, claims, &changes[&claims[0].unit.host]));
    let mut kept: Vec<Claimed<'_>> = kept.collect();
    kept.sort_by(|a, b| b.score().abs().total_cmp(&a.score().abs()));
    let level = AGAIN / kept.len().max(1) as f64;
    let claim = |claimed: Claimed<'_>| {
        let Claimed { test, unit, q } = claimed;
        Claim {
            host: hosts[unit.host].host.clone(),
            scope: test.scope(keys),
            family: test.family,
            score: claimed.score(),
            p: unit.chance,
            q,
            change_percent: (unit.log_change.exp() - 1.0) * 100.0,
            figures: unit.figures,
            peers: test.units.len() - 1,
            seen_again: again.confirms(test, unit, level),
        }
    };
    kept.into_iter().map(claim).collect()
}

/// Returns the hosts farthest from their peers, and what of them is.
pub(super) fn farthest(keys: &[FigureKey], hosts: &[HostRun], tests: &Tests) -> Vec<Claim> {
    let mut selection = Selection::default();
    for test in &tests.all {
        let all = test.units.iter().map(|unit| Claimed { test, unit, q: 1.0 });
        selection.claimed.extend(all.filter(|claimed| claimed.score().abs() >= FAR));
    }
    selection.claimed.sort_by_key(|claimed| claimed.unit.host);
    let mut farthest = strongest(keys, hosts, tests, &selection, &Tests::default());
    farthest.truncate(MOST_FARTHEST);
    farthest
}

/// Returns the changes of these hosts' figures.
fn changes(tests: &Tests, hosts: &HashSet<usize>) -> HashMap<usize, Changes> {
    let mut changes: HashMap<usize, Changes> = HashMap::new();
    for test in &tests.all {
        let Subject::Figure(key) = test.subject else { continue };
        for unit in test.units.iter().filter(|unit| hosts.contains(&unit.host)) {
            changes.entry(unit.host).or_default().push((key, unit.log_change));
        }
    }
    changes
}

/// Returns the claims of one host that no stronger one covers.
fn kept<'a>(keys: &[FigureKey], claims: &[Claimed<'a>], changes: &Changes) -> Vec<Claimed<'a>> {
    let mut order = claims.to_vec();
    // The part that deviates is known from the others.
    order.sort_by(|a, b| {
        let by_score = || b.score().abs().total_cmp(&a.score().abs());
        a.is_relative().cmp(&b.is_relative()).then_with(by_score)
    });
    let mut kept: Vec<Claimed<'a>> = Vec::new();
    for claim in order {
        let scope = claim.test.scope(keys);
        let covers = |kept: &Claimed<'_>| {
            kept.test.family == claim.test.family && covers(&kept.test.scope(keys), &scope)
        };
        if !kept.iter().any(covers) {
            kept.push(widest(keys, claims, changes, claim));
        }
    }
    kept
}

/// Returns the claim on the largest part of the host that includes the part of `claim` and in which
/// almost all figures deviate like it. Scores do not show that part: if a host's figures share
/// their noise, the score of one figure is as high as that of all.
fn widest<'a>(
    keys: &[FigureKey],
    claims: &[Claimed<'a>],
    changes: &Changes,
    claim: Claimed<'a>,
) -> Claimed<'a> {
    let scope = claim.test.scope(keys);
    let is_whole = |wider: &&Claimed<'a>| {
        let part = wider.test.scope(keys);
        let of_family = changes.iter().filter(|(key, _)| keys[*key].family == claim.test.family);
        let (inside, outside): (Vec<_>, Vec<_>) =
            of_family.partition(|(key, _)| part.includes(&keys[*key]));
        let alike =
            inside.iter().filter(|(_, change)| change / claim.unit.log_change >= ALIKE).count();
        wider.test.family == claim.test.family
            && !wider.is_relative()
            && wider.unit.figures > claim.unit.figures
            && outside.iter().all(|(key, _)| !scope.includes(&keys[*key]))
            && alike as f64 >= MOST_FIGURES * inside.len() as f64
    };
    let of_size = |claim: &&Claimed<'a>| (claim.unit.figures, claim.score().abs());
    let whole = claims.iter().filter(is_whole);
    let widest = whole.max_by(|a, b| {
        let (a, b) = (of_size(a), of_size(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    *widest.unwrap_or(&claim)
}

/// Returns `true` if a claim on `named` implies one on `other`, because one is part of the other.
/// Two nodes of one host are two claims.
fn covers(named: &Scope, other: &Scope) -> bool {
    match (named, other) {
        (Scope::MemoryNode(a), Scope::MemoryNode(b)) | (Scope::Package(a), Scope::Package(b)) => {
            a == b
        }
        _ => true,
    }
}
