//! Which cache a size falls in.

use numalab_record::scaling::{Scaling, ScalingMetric, ScalingStep};
use numalab_stats::{SizePoint, plateaus};
use numalab_topology::CacheKind;

use super::{Explanation, cited};
use crate::number::{count, figure, size};
use numalab_analysis::scaling::figures::{mean, series};

/// Beyond so many times a cache nearly every access misses it.
const BEYOND: u64 = 2;

pub(super) fn explain(scaling: &Scaling) -> Vec<Explanation> {
    let alone = series(scaling)
        .into_iter()
        .filter(|step| step.metric == ScalingMetric::Latency && step.sizes_bytes.len() > 1)
        .min_by_key(|step| step.ranks());
    let Some(step) = alone else { return Vec::new() };
    let mut found: Vec<Explanation> = match capacities(scaling, step) {
        capacities if capacities.is_empty() => flat_stretches(step).into_iter().collect(),
        capacities => by_capacity(step, &capacities).into_iter().collect(),
    };
    found.extend(shared_l3(scaling));
    found
}

/// The data caches of the first rank's cpu: name, bytes, smallest first.
fn capacities(scaling: &Scaling, step: &ScalingStep) -> Vec<(String, u64)> {
    let place = step.places.first().copied().flatten();
    let (Some(machine), Some(place)) = (&scaling.machine, place) else { return Vec::new() };
    let own = machine
        .caches
        .iter()
        .filter(|cache| cache.kind != CacheKind::Instruction && cache.cpus.contains(place.cpu));
    let mut sizes: Vec<(String, u64)> =
        own.filter_map(|cache| Some((format!("L{}", cache.level), cache.size_bytes?))).collect();
    sizes.sort_by_key(|(_, bytes)| *bytes);
    sizes
}

/// Sizes by the smallest cache that holds them.
fn by_capacity(step: &ScalingStep, caches: &[(String, u64)]) -> Option<Explanation> {
    let mut says = Vec::new();
    let mut evidence = Vec::new();
    let mut from = 0;
    let memory = ("memory".to_owned(), u64::MAX);
    for (name, bytes) in caches.iter().chain([&memory]) {
        // Between a cache and twice its size some accesses hit and some miss.
        let first = if from == 0 { 0 } else { from * BEYOND };
        let inside: Vec<u64> = step
            .sizes_bytes
            .iter()
            .copied()
            .filter(|&size| size > first && size <= *bytes)
            .collect();
        from = *bytes;
        let (Some(&low), Some(&high)) = (inside.first(), inside.last()) else { continue };
        let means: Vec<f64> = inside.iter().filter_map(|&size| mean(step.at(size)?)).collect();
        let least = means.iter().copied().fold(f64::INFINITY, f64::min);
        let most = means.iter().copied().fold(0.0, f64::max);
        let capacity =
            if *bytes == u64::MAX { String::new() } else { format!(" ({})", size(*bytes)) };
        let sizes =
            if low == high { size(low) } else { format!("{} to {}", size(low), size(high)) };
        says.push(format!(
            "{sizes} fall in {name}{capacity}: {} to {} ns",
            figure(least),
            figure(most)
        ));
        evidence.extend(cited(step, low));
        if high != low {
            evidence.extend(cited(step, high));
        }
    }
    (!says.is_empty()).then(|| {
        let ranks = count(step.ranks(), "rank");
        Explanation::new(
            "caches",
            format!("with {ranks}, by the reported cache sizes: {}; sizes up to twice a cache are between two levels", says.join("; ")),
            evidence,
        )
    })
}

/// Without a description of the machine only the shape of the curve can be told.
fn flat_stretches(step: &ScalingStep) -> Option<Explanation> {
    let points: Vec<SizePoint> = step
        .sizes_bytes
        .iter()
        .filter_map(|&size_bytes| {
            let latency_ns = mean(step.at(size_bytes)?)?;
            Some(SizePoint { size_bytes, latency_ns })
        })
        .collect();
    let levels = plateaus(&points).ok()?;
    let text = levels.iter().map(|level| {
        format!(
            "{} ns from {} to {}",
            figure(level.latency_ns),
            size(level.from_bytes),
            size(level.to_bytes)
        )
    });
    let text: Vec<String> = text.collect();
    (!text.is_empty()).then(|| {
        let evidence = points.iter().map(|point| {
            format!("{}, {}: {} ns", step.file, size(point.size_bytes), figure(point.latency_ns))
        });
        Explanation::new(
            "levels",
            format!("the curve is flat at {}; which caches these are is unknown without an architecture file next to the results", text.join(", ")),
            evidence.collect(),
        )
    })
}

/// A size that fits an L3 alone, and does not when the ranks of its CCD each have one.
fn shared_l3(scaling: &Scaling) -> Option<Explanation> {
    let machine = scaling.machine.as_ref()?;
    let latency = || {
        scaling.steps.iter().filter(|step| step.metric == ScalingMetric::Latency && !step.serial)
    };
    let alone = latency().find(|step| step.ranks() == 1)?;
    let (_, l3) = capacities(scaling, alone).into_iter().find(|(name, _)| name == "L3")?;
    let crowd = |step: &ScalingStep| {
        let groups = (0..step.ranks()).filter_map(|rank| step.l3_group(rank, Some(machine)));
        let mut sizes = std::collections::BTreeMap::new();
        groups.for_each(|group| *sizes.entry(group).or_insert(0_u64) += 1);
        sizes.into_values().max().unwrap_or(0)
    };
    let packed = latency().max_by_key(|step| crowd(step))?;
    let ranks = crowd(packed);
    let shared = alone.sizes_bytes.iter().copied().find(|&size| {
        ranks > 1 && size <= l3 && size * ranks >= l3 * BEYOND && packed.at(size).is_some()
    })?;
    let (one, many) = (mean(alone.at(shared)?)?, mean(packed.at(shared)?)?);
    let ratio = many / one;
    let verb = if ratio > 1.5 { "and it shows" } else { "yet it hardly shows" };
    Some(Explanation::new(
        "shared L3",
        format!(
            "{} fit the L3 of {} alone ({} ns); with {ranks} ranks in a CCD they are {} and do not, {verb}: {} ns, {}x",
            size(shared),
            size(l3),
            figure(one),
            size(shared * ranks),
            figure(many),
            figure(ratio)
        ),
        [cited(alone, shared), cited(packed, shared)].into_iter().flatten().collect(),
    ))
}
