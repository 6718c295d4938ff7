//! Contention between ranks: in a CCD, at a node's memory controllers, and from running all at
//! once.

use std::collections::BTreeMap;

use numalab_record::scaling::{Scaling, ScalingStep};

use super::{ScalingFinding, ScalingObservation, compared};
use crate::scaling::Cause;
use crate::scaling::find::figures::{baseline, same_series, series, series_name};
use crate::scaling::find::groups::fullest;

pub(super) fn find(scaling: &Scaling) -> Vec<ScalingFinding> {
    let mut found: Vec<ScalingFinding> = Vec::new();
    found.extend(ccd(scaling));
    for first in series(scaling).into_iter().filter(|step| !step.serial) {
        found.extend(controllers(scaling, first));
        found.extend(crowd(scaling, first));
    }
    found.extend(at_once(scaling));
    found
}

/// The largest number of ranks that share a CCD, and that share a node's memory.
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

/// Compares two steps with the same number of ranks on the same nodes, packed into CCDs with
/// different density. The load on the memory controllers is the same, so a difference is due to the
/// CCDs.
fn ccd(scaling: &Scaling) -> Option<ScalingFinding> {
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
    // Of the pairs with the largest difference in packing, the one with the most ranks is clearest.
    let (packed, spread, dense, loose, size_bytes) = alike
        .max_by_key(|(packed, _, dense, loose, _)| (dense.ccd * 64 / loose.ccd, packed.ranks()))?;
    compared((spread, packed), size_bytes, |difference| ScalingObservation::Ccd {
        ranks: packed.ranks(),
        on_node: dense.node,
        size_bytes,
        packed: dense.ccd,
        spread: loose.ccd,
        difference,
    })
}

/// Compares steps with more ranks on a node's memory but no more per CCD, so that only the load on
/// the node differs.
fn controllers(scaling: &Scaling, first: &ScalingStep) -> Option<ScalingFinding> {
    let size_bytes = *first.sizes_bytes.last()?;
    let least = baseline(scaling, first, size_bytes)?;
    let few = load(scaling, least)?;
    let alike = scaling.steps.iter().filter(|step| same_series(step, first)).filter_map(|step| {
        let many = load(scaling, step)?;
        (many.ccd == few.ccd && many.node > few.node).then_some((step, many))
    });
    let (most, many) = alike.max_by_key(|(_, many)| many.node)?;
    compared((least, most), size_bytes, |difference| ScalingObservation::MemoryControllers {
        series: series_name(first),
        few: few.node,
        many: many.node,
        in_ccd: few.ccd,
        size_bytes,
        difference,
    })
}

/// Compares the fewest with the most ranks of a series.
fn crowd(scaling: &Scaling, first: &ScalingStep) -> Option<ScalingFinding> {
    let most = fullest(scaling, first)?;
    let size_bytes = *most.sizes_bytes.last()?;
    let least = baseline(scaling, first, size_bytes)?;
    if most.ranks() <= least.ranks() {
        return None;
    }
    let cause = match load(scaling, least).zip(load(scaling, most)) {
        Some((few, many)) if many.ccd == few.ccd && many.node > few.node => None,
        Some((few, many)) if many.node == few.node && many.ccd > few.ccd => Some(Cause::Ccd),
        Some((few, many)) if many == few => Some(Cause::BetweenNodes),
        Some(_) => Some(Cause::CcdOrMemory),
        None => Some(Cause::Unknown),
    };
    let found = compared((least, most), size_bytes, |difference| ScalingObservation::Contention {
        series: series_name(first),
        few: least.ranks(),
        many: most.ranks(),
        size_bytes,
        difference,
        cause: cause.filter(|_| difference.real),
    });
    // A slowdown due to a node's memory alone is the finding of `controllers`.
    let is_reported = |found: &ScalingFinding| matches!(found.what, ScalingObservation::Contention { difference, cause: None, .. } if difference.real);
    found.filter(|found| !is_reported(found))
}

/// Compares the same ranks one after the other and all at once.
fn at_once(scaling: &Scaling) -> Option<ScalingFinding> {
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
    compared((serial, concurrent), size_bytes, |difference| ScalingObservation::Concurrent {
        ranks: serial.ranks(),
        size_bytes,
        difference,
    })
}
