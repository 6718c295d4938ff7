//! The resources of a core for memory accesses.

use numalab_formats::machine_toml::LoadFigures;
use numalab_memory_model::curve::Curve;
use numalab_memory_model::machine::{Core, Family, Found, Identity};
use numalab_record::{AccessPattern, Fact, StreamKernel};
use numalab_topology::Machine;

use super::Remark;
use crate::run::Summary;

const LINE_BYTES: f64 = 64.0;
/// Instructions per cycle. On a 2024 EPYC gzip ran 1.3, xz 1.9, sort 2.6, sqlite 3.2 and CPython
/// 3.8.
const PER_CYCLE: u8 = 2;
/// Lines that a stream is prefetched ahead (Intel 64 and IA-32 Architectures Optimization Reference
/// Manual, "Data Prefetch to the L2 Cache and Last Level Cache").
const PREFETCH: u32 = 20;

/// The bandwidth that a single core reaches on its own node with one kernel in sequential order.
struct Alone {
    gb_per_s: f64,
    /// The latency of a load at this bandwidth.
    latency_ns: f64,
    clock_ghz: f64,
}

impl Alone {
    fn of(
        summary: &Summary<'_>,
        machine: &Machine,
        loads: &[LoadFigures],
        kernel: StreamKernel,
    ) -> Option<Self> {
        summary.bandwidth.local_with(1).into_iter().find_map(|row| {
            let is_plain =
                row.cell.kernel == kernel && row.cell.pattern == AccessPattern::Sequential;
            let worker = row.cell.workers.first().filter(|_| is_plain)?;
            let pair = (machine.cpu(worker.cpu)?.node?, worker.node);
            let access = machine.access.iter().find(|one| (one.initiator, one.target) == pair)?;
            let idle_ns = access.read_latency_ps? as f64 / 1000.0;
            let clock_ghz = summary.clock_ghz(worker.cpu)?;
            let load =
                loads.iter().find(|load| load.from.is_none() && load.nodes.contains(worker.node));
            let curves = load.map_or(&[][..], |load| &load.curves);
            // Curves are ordered by share of writes, lowest first.
            let curve = if kernel == StreamKernel::Read { curves.first() } else { curves.last() };
            let gb_per_s = row.figure.median;
            let rise_ns = curve.map_or(0.0, |curve| rise_ns(curve, gb_per_s * 1000.0));
            Some(Self { gb_per_s, latency_ns: idle_ns + rise_ns, clock_ghz })
        })
    }

    /// Returns the number of outstanding lines by Little's law.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    fn lines(&self) -> u32 {
        (self.gb_per_s * self.latency_ns / LINE_BYTES).round().clamp(1.0, 1024.0) as u32
    }
}

/// Returns the resources of a core, from the bandwidth that it reaches alone. Outstanding lines
/// that its fill buffers cannot hold count as prefetches.
pub(super) fn core(
    summary: &Summary<'_>,
    machine: &Machine,
    (loads, cache_latency_ns): (&[LoadFigures], &[f64]),
    remarks: &mut Vec<Remark>,
) -> Option<Core> {
    let alone = |kernel| Alone::of(summary, machine, loads, kernel);
    let Some(reads) = alone(StreamKernel::Read) else {
        remarks.push(Remark::NoCore);
        return None;
    };
    let family = family(summary);
    let lines = outstanding(reads.lines(), family);
    let prefetch = prefetched(lines, family);
    let per_cycle = if is_emulated(summary) { 1 } else { PER_CYCLE };
    let Alone { gb_per_s, clock_ghz, .. } = reads;
    let window = family.map_or(Core::TYPICAL.instructions, Family::reorder_buffer);
    remarks.push(match reads.lines() {
        measured if measured < lines => {
            Remark::CoreContended { measured, gb_per_s, window, per_cycle }
        }
        _ => Remark::CoreDerived { lines, prefetch, gb_per_s, window, per_cycle },
    });
    let timing = family.map(|family| family.timing(clock_ghz.recip()));
    if !is_emulated(summary) {
        remarks.push(timed(summary));
    }
    let atomic_ns = atomic_ns(summary, cache_latency_ns.first().copied().unwrap_or(0.0));
    if atomic_ns.is_none() {
        remarks.push(Remark::NoAtomicAdd);
    }
    Some(Core {
        misses: lines - prefetch,
        instructions: window,
        prefetch: (prefetch > 0).then_some(prefetch),
        writes: alone(StreamKernel::WriteNt).map(|writes| writes.lines()),
        ns_per_instruction: 1.0 / (clock_ghz * f64::from(per_cycle)),
        atomic_ns,
        timing,
        ..Core::TYPICAL
    })
}

/// Returns the family of the machine's cores; `None` without a table, or if they are emulated.
pub(super) fn family(summary: &Summary<'_>) -> Option<Family> {
    let found = identity(summary).family().filter(|_| !is_emulated(summary));
    found.map(|(family, _)| family)
}

/// Returns a remark that names the table and how it was chosen.
fn timed(summary: &Summary<'_>) -> Remark {
    let identity = identity(summary);
    match identity.family() {
        Some((family, Found::Model)) => Remark::CoreTimed { family },
        Some((family, Found::L2)) => Remark::CoreTimedByL2 { family },
        Some((family, Found::Nearest)) => Remark::CoreNearest { family, cpu: identity.name() },
        None => Remark::NoTiming { cpu: identity.name() },
    }
}

/// Returns the identity of the machine's cores, as the run has it.
fn identity<'a>(summary: &'a Summary<'_>) -> Identity<'a> {
    let environment = &summary.run.environment;
    let number = |name| match environment.fact(name)? {
        Fact::Count(count) => u32::try_from(*count).ok(),
        Fact::Flag(_) | Fact::Number(_) | Fact::Text(_) => None,
    };
    let l2 = summary.run.machine.caches.iter().find(|cache| cache.level == 2);
    Identity {
        vendor: environment.text("cpu_vendor").unwrap_or_default(),
        numbers: number("cpu_family").zip(number("cpu_model_number")),
        l2_bytes: l2.and_then(|cache| cache.size_bytes).unwrap_or(0),
        prefetches_code: environment.fact("cpu_prefetches_code") == Some(&Fact::Flag(true)),
    }
}

/// Returns the outstanding lines of a core. A measured number below the family's fill buffers means
/// that other users of the memory took bandwidth.
fn outstanding(measured: u32, family: Option<Family>) -> u32 {
    let buffers = family.map_or(0, Family::fill_buffers);
    if measured < buffers { buffers + PREFETCH } else { measured }
}

/// Returns the number of a stream's outstanding lines that are prefetches: those beyond the
/// family's fill buffers, or at most half if the family is unknown.
fn prefetched(lines: u32, family: Option<Family>) -> u32 {
    match family {
        Some(family) => lines.saturating_sub(family.fill_buffers()),
        None => PREFETCH.min(lines / 2),
    }
}

/// Returns the latency of an atomic add beyond that of a load that hits the nearest cache, in ns.
fn atomic_ns(summary: &Summary<'_>, hit_ns: f64) -> Option<f64> {
    let mut adds = summary.cores.iter().filter_map(|core| core.atomic_add_ns.as_ref());
    adds.next().map(|add| (add.median - hit_ns).max(0.0))
}

/// Returns `true` if the core is simulated by the memory emulator, which charges the dependent
/// adds that reveal the clock like any other instruction.
fn is_emulated(summary: &Summary<'_>) -> bool {
    summary.run.environment.facts.contains_key("time")
}

/// Returns the extra latency of a load at a bandwidth in ns, up to the curve's end.
fn rise_ns(curve: &Curve, mb_s: f64) -> f64 {
    let most_mb_s = curve.points.last().map_or(0.0, |point| point.0);
    curve.at_ns(mb_s.min(most_mb_s)) - curve.unloaded_ns()
}
