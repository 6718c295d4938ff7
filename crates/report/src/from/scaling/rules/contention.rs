//! What ranks cost each other: in a CCD, at a node's memory controllers, and all at once.

use std::collections::BTreeMap;

use numalab_record::scaling::{Scaling, ScalingStep};

use super::{Explanation, change, cited, difference};
use crate::number::size;
use numalab_analysis::scaling::figures::{baseline, same_series, series, series_name};
use numalab_analysis::scaling::groups::fullest;

pub(super) fn explain(scaling: &Scaling) -> Vec<Explanation> {
    let mut found: Vec<Explanation> = Vec::new();
    found.extend(ccd(scaling));
    for first in series(scaling).into_iter().filter(|step| !step.serial) {
        found.extend(controllers(scaling, first));
        found.extend(crowd(scaling, first));
    }
    found.extend(at_once(scaling));
    found
}

/// The most ranks that share a CCD, and that share the memory of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Load {
    ccd: usize,
    node: usize,
}

fn load(scaling: &Scaling, step: &ScalingStep) -> Option<Load> {
    let machine = scaling.machine.as_ref()?;
    let (mut ccds, mut nodes) = (BTreeMap::new(), BTreeMap::new());
    for rank in 0..step.ranks() {
        let place = step.places.get(rank).copied().flatten()?;
        *ccds.entry(step.l3_group(rank, Some(machine))?).or_insert(0) += 1;
        *nodes.entry(place.memory_node?).or_insert(0) += 1;
    }
    Some(Load { ccd: ccds.into_values().max()?, node: nodes.into_values().max()? })
}

/// Two steps with as many ranks on the same nodes, packed into CCDs more and less densely:
/// the memory controllers carry the same, so the CCD is what differs.
fn ccd(scaling: &Scaling) -> Option<Explanation> {
    let steps = || scaling.steps.iter().filter(|step| !step.serial);
    let pairs = steps().flat_map(|packed| steps().map(move |spread| (packed, spread)));
    let alike = pairs.filter_map(|(packed, spread)| {
        let same = packed.metric == spread.metric
            && packed.domains == spread.domains
            && packed.ranks() == spread.ranks();
        let (dense, loose) = (load(scaling, packed)?, load(scaling, spread)?);
        let size_bytes = *packed.sizes_bytes.last()?;
        let comparable = same && dense.node == loose.node && dense.ccd > loose.ccd;
        (comparable && spread.at(size_bytes).is_some())
            .then_some((packed, spread, dense, loose, size_bytes))
    });
    // The pair with the most ranks among those whose packing differs most says most.
    let (packed, spread, dense, loose, size_bytes) = alike
        .max_by_key(|(packed, _, dense, loose, _)| (dense.ccd * 64 / loose.ccd, packed.ranks()))?;
    let of = difference(spread.at(size_bytes)?, packed.at(size_bytes)?)?;
    let how = format!(
        "{} ranks with {} on a node's memory, at {} each",
        packed.ranks(),
        dense.node,
        size(size_bytes)
    );
    let says = match of.real {
        true => format!(
            "{how}: packed {} to a CCD they are {} than {} to a CCD; the node's memory controllers carry the same load both times, so this is what the ranks of a CCD share: its L3 and its link",
            dense.ccd,
            change(packed.metric, of.ratio),
            loose.ccd
        ),
        false => format!(
            "{how}: packing {} to a CCD instead of {} makes no difference beyond the spread of the ranks",
            dense.ccd, loose.ccd
        ),
    };
    let evidence = [cited(packed, size_bytes), cited(spread, size_bytes)];
    Some(Explanation::new("CCD", says, evidence.into_iter().flatten().collect()))
}

/// More ranks on a node's memory, with no more of them in a CCD: only the node is loaded more.
fn controllers(scaling: &Scaling, first: &ScalingStep) -> Option<Explanation> {
    let size_bytes = *first.sizes_bytes.last()?;
    let least = baseline(scaling, first, size_bytes)?;
    let few = load(scaling, least)?;
    let alike = scaling.steps.iter().filter(|step| same_series(step, first)).filter_map(|step| {
        let many = load(scaling, step)?;
        (many.ccd == few.ccd && many.node > few.node).then_some((step, many))
    });
    let (most, many) = alike.max_by_key(|(_, many)| many.node)?;
    let of = difference(least.at(size_bytes)?, most.at(size_bytes)?)?;
    let cost = match of.real {
        true => change(most.metric, of.ratio),
        false => "no slowdown beyond the spread of the ranks".to_owned(),
    };
    let says = format!(
        "{}: {} ranks instead of {} on a node's memory, {} in a CCD both times, at {} each: {cost}; this is the load on the memory controllers of the node",
        series_name(first),
        many.node,
        few.node,
        few.ccd,
        size(size_bytes)
    );
    let evidence = [cited(least, size_bytes), cited(most, size_bytes)];
    Some(Explanation::new("memory controllers", says, evidence.into_iter().flatten().collect()))
}

/// From the fewest to the most ranks of a series.
fn crowd(scaling: &Scaling, first: &ScalingStep) -> Option<Explanation> {
    let most = fullest(scaling, first)?;
    let size_bytes = *most.sizes_bytes.last()?;
    let least = baseline(scaling, first, size_bytes)?;
    if most.ranks() <= least.ranks() {
        return None;
    }
    let of = difference(least.at(size_bytes)?, most.at(size_bytes)?)?;
    let from = format!(
        "{}: from {} to {} ranks, at {} each",
        series_name(first),
        least.ranks(),
        most.ranks(),
        size(size_bytes)
    );
    let evidence: Vec<String> =
        [cited(least, size_bytes), cited(most, size_bytes)].into_iter().flatten().collect();
    if !of.real {
        let says = format!("{from}: no slowdown beyond the spread of the ranks");
        return Some(Explanation::new("contention", says, evidence));
    }
    let loads = load(scaling, least).zip(load(scaling, most));
    let cause = match loads {
        // Said by `controllers`.
        Some((few, many)) if many.ccd == few.ccd && many.node > few.node => return None,
        Some((few, many)) if many.node == few.node && many.ccd > few.ccd => {
            "with as many ranks on each node's memory both times, so this is what the ranks of a CCD share".to_owned()
        }
        Some((few, many)) if many == few => {
            "with no more ranks in a CCD or on a node's memory: what else the nodes share (links between them, power) is left".to_owned()
        }
        Some(_) => "CCDs and memory controllers are loaded more at once, so this step does not tell them apart".to_owned(),
        None => "which shared resource causes this is unknown, since the placement of the ranks is not recorded".to_owned(),
    };
    let says = format!("{from}: {}; {cause}", change(most.metric, of.ratio));
    Some(Explanation::new("contention", says, evidence))
}

/// Ranks measuring one after the other, and the same ranks all at once.
fn at_once(scaling: &Scaling) -> Option<Explanation> {
    let pair = scaling.steps.iter().filter(|step| step.serial).filter_map(|serial| {
        let concurrent = scaling.steps.iter().find(|step| {
            !step.serial
                && step.metric == serial.metric
                && step.mode == serial.mode
                && step.domains == serial.domains
                && step.ranks() == serial.ranks()
        })?;
        Some((serial, concurrent))
    });
    let (serial, concurrent) = pair.max_by_key(|(serial, _)| serial.ranks())?;
    let size_bytes = *serial.sizes_bytes.last()?;
    let of = difference(serial.at(size_bytes)?, concurrent.at(size_bytes)?)?;
    let says = match of.real {
        true => format!(
            "{} ranks at the same time are {} than one at a time, at {} each, because of each other",
            serial.ranks(),
            change(serial.metric, of.ratio),
            size(size_bytes)
        ),
        false => format!(
            "{} ranks at the same time and one at a time do not differ beyond their spread, at {} each",
            serial.ranks(),
            size(size_bytes)
        ),
    };
    let evidence = [cited(serial, size_bytes), cited(concurrent, size_bytes)];
    Some(Explanation::new("concurrent and serial", says, evidence.into_iter().flatten().collect()))
}
