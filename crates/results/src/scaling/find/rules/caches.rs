//! The cache that each size fits.

use numalab_record::scaling::{Scaling, ScalingMetric, ScalingStep};
use numalab_stats::{SizePoint, plateaus};
use numalab_topology::CacheKind;

use super::{Finding, ScalingFinding, ScalingObservation, cited};
use crate::scaling::find::figures::{mean, series};
use crate::scaling::{CacheFit, Plateau};

/// Multiple of a cache's size beyond which nearly every access misses it.
const BEYOND: u64 = 2;
/// Minimum latency ratio that shows a shared L3.
const SHOWS: f64 = 1.5;
/// Share of the memory latency at which a size no longer fits any cache.
const MEMORY_LIKE: f64 = 0.9;

pub(super) fn find(scaling: &Scaling) -> Vec<ScalingFinding> {
    let alone = series(scaling)
        .into_iter()
        .filter(|step| step.metric == ScalingMetric::Latency && step.sizes_bytes.len() > 1)
        .min_by_key(|step| step.ranks());
    let Some(step) = alone else { return Vec::new() };
    let mut found: Vec<ScalingFinding> = match capacities(scaling, step) {
        capacities if capacities.is_empty() => flat_stretches(step).into_iter().collect(),
        capacities => by_capacity(step, &capacities).into_iter().collect(),
    };
    found.extend(shared_l3(scaling));
    found
}

/// Returns level and size in bytes of the data caches of the first rank's cpu, smallest first.
fn capacities(scaling: &Scaling, step: &ScalingStep) -> Vec<(u8, u64)> {
    let place = step.places.first().copied().flatten();
    let (Some(machine), Some(place)) = (&scaling.machine, place) else { return Vec::new() };
    let own = machine
        .caches
        .iter()
        .filter(|cache| cache.kind != CacheKind::Instruction && cache.cpus.contains(place.cpu));
    let mut sizes: Vec<(u8, u64)> =
        own.filter_map(|cache| Some((cache.level, cache.size_bytes?))).collect();
    sizes.sort_by_key(|(_, bytes)| *bytes);
    sizes
}

/// Groups sizes by the smallest cache that holds them.
fn by_capacity(step: &ScalingStep, caches: &[(u8, u64)]) -> Option<ScalingFinding> {
    let mut fits = Vec::new();
    let mut evidence = Vec::new();
    let mut from = 0;
    let caches = caches.iter().map(|&(level, bytes)| (Some(level), Some(bytes)));
    for (level, capacity_bytes) in caches.chain([(None, None)]) {
        // Between a cache's size and twice that, some accesses hit and some miss.
        let first = from * BEYOND;
        from = capacity_bytes.unwrap_or(u64::MAX);
        let inside = step.sizes_bytes.iter().copied();
        let inside: Vec<u64> = inside.filter(|&size| size > first && size <= from).collect();
        let (Some(&from_bytes), Some(&to_bytes)) = (inside.first(), inside.last()) else {
            continue;
        };
        let means: Vec<f64> = inside.iter().filter_map(|&size| mean(step.at(size)?)).collect();
        fits.push(CacheFit {
            level,
            capacity_bytes,
            from_bytes,
            to_bytes,
            least_ns: means.iter().copied().fold(f64::INFINITY, f64::min),
            most_ns: means.iter().copied().fold(0.0, f64::max),
            as_slow_as_memory: false,
        });
        evidence.extend(cited([step], from_bytes));
        if from_bytes != to_bytes {
            evidence.extend(cited([step], to_bytes));
        }
    }
    let memory_ns = fits.iter().find(|fit| fit.level.is_none()).map(|fit| fit.least_ns);
    for fit in fits.iter_mut().filter(|fit| fit.level.is_some()) {
        fit.as_slow_as_memory = memory_ns.is_some_and(|ns| fit.most_ns >= ns * MEMORY_LIKE);
    }
    let what = ScalingObservation::Caches { ranks: step.ranks(), fits: fits.clone() };
    (!fits.is_empty()).then(|| Finding::new(what).shown_by(evidence))
}

/// Finds flat stretches of the curve, for a run without a description of the machine.
fn flat_stretches(step: &ScalingStep) -> Option<ScalingFinding> {
    let point = |&size_bytes: &u64| {
        let latency_ns = mean(step.at(size_bytes)?)?;
        Some(SizePoint { size_bytes, latency_ns })
    };
    let points: Vec<SizePoint> = step.sizes_bytes.iter().filter_map(point).collect();
    let levels = plateaus(&points).ok()?;
    let plateaus = levels.iter().map(|level| Plateau {
        latency_ns: level.latency_ns,
        from_bytes: level.from_bytes,
        to_bytes: level.to_bytes,
    });
    let what = ScalingObservation::Plateaus { plateaus: plateaus.collect() };
    let evidence = points.iter().flat_map(|point| cited([step], point.size_bytes));
    (!levels.is_empty()).then(|| Finding::new(what).shown_by(evidence.collect()))
}

/// Finds a size that fits an L3 for a single rank, but not if each rank of its CCD has a buffer.
fn shared_l3(scaling: &Scaling) -> Option<ScalingFinding> {
    let machine = scaling.machine.as_ref()?;
    let latency = || {
        scaling.steps.iter().filter(|step| step.metric == ScalingMetric::Latency && !step.serial)
    };
    let alone = latency().find(|step| step.ranks() == 1)?;
    let (_, l3_bytes) = capacities(scaling, alone).into_iter().find(|(level, _)| *level == 3)?;
    let crowd = |step: &ScalingStep| {
        let groups = (0..step.ranks()).filter_map(|rank| step.l3_group(rank, Some(machine)));
        let mut sizes = std::collections::BTreeMap::new();
        groups.for_each(|group| *sizes.entry(group).or_insert(0_u64) += 1);
        sizes.into_values().max().unwrap_or(0)
    };
    let packed = latency().max_by_key(|step| crowd(step))?;
    let ranks = crowd(packed);
    let size_bytes = alone.sizes_bytes.iter().copied().find(|&size| {
        ranks > 1
            && size <= l3_bytes
            && size * ranks >= l3_bytes * BEYOND
            && packed.at(size).is_some()
    })?;
    let (alone_ns, shared_ns) = (mean(alone.at(size_bytes)?)?, mean(packed.at(size_bytes)?)?);
    let shows = shared_ns / alone_ns > SHOWS;
    let what =
        ScalingObservation::SharedL3 { size_bytes, l3_bytes, ranks, alone_ns, shared_ns, shows };
    Some(Finding::new(what).over(SHOWS).shown_by(cited([alone, packed], size_bytes)))
}
