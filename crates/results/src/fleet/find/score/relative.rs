//! A family of a host relative to another one. What slows all figures of a host alike, such as its clock,
//! is most of their spread in many fleets; it cancels here, so that a fault of one family is found at a
//! fraction of that spread.

use std::collections::HashMap;
use std::rc::Rc;

use numalab_stats::{Population, median};

use super::{LEAST_SCALE, Subject, Test, Unit};
use crate::fleet::find::Scope;

/// Minimum number of hosts: among fewer, two families sometimes vary alike by chance.
const LEAST_HOSTS: usize = 30;
/// Largest spread that remains, as a share of the family's own: a larger one is no gain for a further
/// test.
const MOST_SPREAD: f64 = 0.6;
/// Minimum score of the family itself, on the same side, and its minimum share of that in the other
/// family: a host with less deviates in the other one.
const LEAST_OWN: f64 = 2.0;
const LEAST_OF_OTHER: f64 = 0.5;
/// Minimum score in the other family of the hosts that show how the two vary.
const FAR_IN_OTHER: f64 = 1.0;

/// Returns the tests of whole hosts relative to another family that has most of their spread.
pub(super) fn tests(joined: &[Test]) -> Vec<Test> {
    let is_whole = |test: &&Test| test.subject == Subject::All(Scope::Host);
    let whole = || joined.iter().filter(is_whole);
    let pairs = whole().flat_map(|of| whole().map(move |other| (of, other)));
    pairs.filter(|(of, other)| of.family != other.family).filter_map(against).collect()
}

fn against((of, other): (&Test, &Test)) -> Option<Test> {
    let others: HashMap<usize, f64> =
        other.units.iter().map(|unit| (unit.host, other.score(unit))).collect();
    let paired = |unit: &Unit| Some((*unit, *others.get(&unit.host)?));
    let pairs: Vec<(Unit, f64)> = of.units.iter().filter_map(paired).collect();
    if pairs.len() < LEAST_HOSTS {
        return None;
    }
    let far = pairs.iter().filter(|(_, theirs)| theirs.abs() > FAR_IN_OTHER);
    let slope = median(&far.map(|(unit, theirs)| of.score(unit) / theirs).collect::<Vec<f64>>())?;
    let rest = |(unit, theirs): &(Unit, f64)| of.score(unit) - slope * theirs;
    let values: Vec<f64> = pairs.iter().map(rest).collect();
    let population = Population::new(&values, LEAST_SCALE).ok()?;
    if population.scale() > MOST_SPREAD {
        return None;
    }
    let unit = |((unit, theirs), rest): ((Unit, f64), f64)| {
        let own = of.score(&unit);
        let is_own = own.abs() >= LEAST_OWN.max(LEAST_OF_OTHER * theirs.abs())
            && own * population.score(rest) > 0.0;
        Unit { value: if is_own { rest } else { population.centre() }, ..unit }
    };
    Some(Test {
        subject: Subject::Relative(other.family),
        family: of.family,
        units: pairs.into_iter().zip(values).map(unit).collect(),
        gain: of.gain / of.population.scale(),
        population,
        tails: Rc::default(),
    })
}
