//! What a core has under way.

use numalab_memory_model::machine::Core;
use numalab_record::{AccessPattern, StreamKernel};
use numalab_topology::Machine;

use super::Remark;
use crate::run::Summary;

const LINE_BYTES: f64 = 64.0;

/// Lines under way by Little's law: what one core reads from its node, times what a load takes.
/// Prefetched lines are among them, as they are in the bandwidth that a replay should have.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
pub(super) fn core(
    summary: &Summary<'_>,
    machine: &Machine,
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
        Some((row.figure.median, latency_ns, clock))
    });
    let Some((gb_per_s, latency_ns, clock_ghz)) = found else {
        remarks.push(Remark::NoCore);
        return None;
    };
    let misses = (gb_per_s * latency_ns / LINE_BYTES).round().clamp(1.0, 1024.0) as u32;
    remarks.push(Remark::CoreDerived { misses, gb_per_s });
    Some(Core { misses, ns_per_instruction: 1.0 / clock_ghz, ..Core::TYPICAL })
}
