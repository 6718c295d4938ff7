//! What a core has under way.

use numalab_memory_model::curve::Curve;
use numalab_memory_model::machine::Core;
use numalab_record::{AccessPattern, StreamKernel};
use numalab_topology::Machine;

use super::{Load, Remark};
use crate::run::Summary;

const LINE_BYTES: f64 = 64.0;
/// Instructions a cycle: on an EPYC of 2024 gzip ran 1.3, xz 1.9, sort 2.6, sqlite 3.2, CPython 3.8.
const PER_CYCLE: u8 = 2;
/// Lines that a stream is fetched ahead (Intel 64 and IA-32 Architectures Optimization Reference
/// Manual, "Data Prefetch to the L2 Cache and Last Level Cache").
const PREFETCH: u32 = 20;

/// Lines under way by Little's law: what one core reads from its node, times what a load takes at
/// this bandwidth. Up to half of them are those that a prefetcher fetches ahead.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
pub(super) fn core(
    summary: &Summary<'_>,
    machine: &Machine,
    (loads, cache_latency_ns): (&[Load], &[f64]),
    remarks: &mut Vec<Remark>,
) -> Option<Core> {
    let found = summary.bandwidth.local_with(1).into_iter().find_map(|row| {
        let is_plain =
            row.cell.kernel == StreamKernel::Read && row.cell.pattern == AccessPattern::Sequential;
        let worker = row.cell.workers.first().filter(|_| is_plain)?;
        let pair = (machine.cpu(worker.cpu)?.node?, worker.node);
        let access = machine.access.iter().find(|one| (one.initiator, one.target) == pair)?;
        let latency_ns = access.read_latency_ps? as f64 / 1000.0;
        let clock = summary.clock_ghz(worker.cpu)?;
        let load = loads.iter().find(|load| (load.node, load.from) == (worker.node, None));
        let reads = load.and_then(|load| load.curves.first());
        let rise_ns = reads.map_or(0.0, |curve| rise_ns(curve, row.figure.median * 1000.0));
        Some((row.figure.median, latency_ns + rise_ns, clock))
    });
    let Some((gb_per_s, latency_ns, clock_ghz)) = found else {
        remarks.push(Remark::NoCore);
        return None;
    };
    let lines = (gb_per_s * latency_ns / LINE_BYTES).round().clamp(1.0, 1024.0) as u32;
    let prefetch = PREFETCH.min(lines / 2);
    let per_cycle = if is_emulated(summary) { 1 } else { PER_CYCLE };
    remarks.push(Remark::CoreDerived { lines, prefetch, gb_per_s, per_cycle });
    let ns_per_instruction = 1.0 / (clock_ghz * f64::from(per_cycle));
    let misses = lines - prefetch;
    let prefetch = (prefetch > 0).then_some(prefetch);
    let atomic_ns = atomic_ns(summary, cache_latency_ns.first().copied().unwrap_or(0.0));
    if atomic_ns.is_none() {
        remarks.push(Remark::NoAtomicAdd);
    }
    Some(Core { misses, prefetch, ns_per_instruction, atomic_ns, ..Core::TYPICAL })
}

/// What an atomic addition takes longer than a load that hits the nearest cache.
fn atomic_ns(summary: &Summary<'_>, hit_ns: f64) -> Option<f64> {
    let mut adds = summary.cores.iter().filter_map(|core| core.atomic_add_ns.as_ref());
    adds.next().map(|add| (add.median - hit_ns).max(0.0))
}

/// Whether the core is one of the memory emulator's, to which the dependent adds that tell its clock
/// are instructions like any others.
fn is_emulated(summary: &Summary<'_>) -> bool {
    summary.run.environment.facts.contains_key("time")
}

/// How much longer a load takes at a bandwidth, up to the curve's end.
fn rise_ns(curve: &Curve, mb_s: f64) -> f64 {
    let most_mb_s = curve.points.last().map_or(0.0, |point| point.0);
    curve.at_ns(mb_s.min(most_mb_s)) - curve.unloaded_ns()
}
