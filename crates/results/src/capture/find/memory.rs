//! The latency of memory, from random loads over small pages.
//!
//! A chase within a page at a time needs no walks, but prefetchers and open rows of the memory help
//! it more than they help programs.

use numalab_formats::machine_toml::MachineFile;
use numalab_memory_model::probe;
use numalab_topology::{AccessAttributes, Machine};

use super::Remark;
use crate::run::{PageWalk, Summary};

/// Maximum size in bytes for the loads: the limit of the model's probe.
const MOST_BYTES: u64 = 1 << 30;

/// Shifts all latencies of the machine by the same amount, so that random loads take as long in the
/// model as they did on the machine.
pub(super) fn memory(summary: &Summary<'_>, figures: &mut MachineFile, remarks: &mut Vec<Remark>) {
    let is_usable = |walk: &&PageWalk| walk.pages.is_small() && walk.size_bytes <= MOST_BYTES;
    let Some(walk) = summary.walks.iter().find(is_usable) else { return };
    // Without a TLB, page walks would be counted as latency of the memory.
    let Some(tlb) = &figures.memory.tlb else { return };
    let load_ns = walk.random.median;
    let found = probe::memory_ns(&figures.caches(), tlb, walk.size_bytes, load_ns);
    let Some((memory_ns, access)) = found.zip(access(&figures.machine, walk)) else { return };
    let Some(before_ps) = access.read_latency_ps.filter(|_| memory_ns > 0.0) else { return };
    let more_ns = memory_ns - before_ps as f64 / 1000.0;
    for access in &mut figures.machine.access {
        access.read_latency_ps = access.read_latency_ps.map(|ps| later_ps(ps, more_ns));
    }
    remarks.push(Remark::LatencySolved { memory_ns, load_ns, bytes: walk.size_bytes });
}

/// Returns the latency between the nodes of a walk's cpu and memory.
fn access<'a>(machine: &'a Machine, walk: &PageWalk) -> Option<&'a AccessAttributes> {
    let pair = (machine.cpu(walk.worker.cpu)?.node?, walk.worker.node);
    machine.access.iter().find(|access| (access.initiator, access.target) == pair)
}

/// Returns a latency plus `more_ns`, but at least one nanosecond.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a latency")]
fn later_ps(ps: u64, more_ns: f64) -> u64 {
    (ps as f64 + 1000.0 * more_ns).round().max(1000.0) as u64
}
