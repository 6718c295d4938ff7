//! Puts a rank in its place: on its cpu, with memory for the largest size that all ranks can have.

use std::collections::BTreeMap;
use std::time::Duration;

use numalab_host::{Interrupt, Pinned, process_policy};
use numalab_measure::{
    Buffer, MeasureContext, MeasureError, MemorySource, Scope, Settings, check_memory,
};
use numalab_record::Placement;
use numalab_topology::{Machine, MemoryPolicy, NodeId};

use super::assignment::Assignment;
use super::{Seat, SessionError, SessionPlan, agree, gather};
use crate::team::Team;

/// A placed rank.
pub(super) struct Settled {
    pub context: MeasureContext,
    pub pinned: Pinned,
    pub buffer: Buffer,
    pub seat: Seat,
}

/// The sizes that some rank has no memory for, with the reason.
pub(super) type LostSizes = BTreeMap<u64, String>;

/// Pins the rank, allocates its memory, and proves both. A size that a rank has no memory for is
/// lost for all ranks, which then share the next smaller one.
pub(super) fn settle(
    team: &mut Team,
    machine: &Machine,
    plan: &SessionPlan,
    assignment: &Assignment,
) -> Result<(Settled, LostSizes), SessionError> {
    let pinned = pin(machine, plan, team.rank(), assignment);
    let (context, pinned, source) = agree(team, pinned)?;
    let mut sizes = plan.sizes_bytes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    let mut largest = sizes.pop().unwrap_or(0);
    let sharing = gather(team, &assignment.host)?;
    let sharing = sharing.iter().filter(|host| **host == assignment.host).count() as u64;
    let mut lost = LostSizes::new();
    let (buffer, placement) = loop {
        // Ranks of one host touch their memory at the same time: there is room for all, or none
        // touches any.
        let room = check_memory(largest.saturating_mul(sharing), plan.pages, None);
        let room = agree(team, room.map_err(SessionError::from));
        let held = room.and_then(|()| memory(&context, &pinned, plan, (largest, source.clone())));
        let Some(smaller) = sizes.pop() else { break agree(team, held)? };
        match refusal(team, &held)? {
            None => break held?,
            Some(reason) => drop(lost.insert(largest, reason)),
        }
        largest = smaller;
    };
    let (host, policy) = (assignment.host.clone(), source.name());
    let seat = Seat { host, policy, started_ns: context.started_ns(), placement };
    Ok((Settled { context, pinned, buffer, seat }, lost))
}

/// Pins the rank and chooses the source of its memory.
fn pin(
    machine: &Machine,
    plan: &SessionPlan,
    rank: usize,
    assignment: &Assignment,
) -> Result<(MeasureContext, Pinned, MemorySource), SessionError> {
    // Each rank visits in a different order; the loops spread the bits of the seed. Its time is
    // limited only by its windows and by an interrupt.
    let seed = plan.seed.wrapping_add(rank as u64);
    let settings = Settings { seed, precision: plan.precision, budget: Duration::ZERO };
    let pinned = numalab_host::pin(assignment.cpu).map_err(numalab_host::Error::from)?;
    let context = MeasureContext::new(machine.clone(), settings, Interrupt::never())?;
    let source = match plan.node {
        Some(node) => MemorySource::Node(node),
        None => MemorySource::of(policy()?, nearest(machine, pinned.node())?),
    };
    Ok((context, pinned, source))
}

fn memory(
    context: &MeasureContext,
    pinned: &Pinned,
    plan: &SessionPlan,
    (size_bytes, source): (u64, MemorySource),
) -> Result<(Buffer, Placement), SessionError> {
    let buffer = Buffer::touched(context, size_bytes, plan.pages, source)?;
    let placement = buffer.claim().prove(context, pinned)?;
    Ok((buffer, placement))
}

/// Returns the error of the first rank without memory.
fn refusal<T>(
    team: &mut Team,
    own: &Result<T, SessionError>,
) -> Result<Option<String>, SessionError> {
    let all = gather(team, &own.as_ref().err().map(ToString::to_string))?;
    let mut refused = all.into_iter().enumerate().filter_map(|(rank, why)| Some((rank, why?)));
    Ok(refused.next().map(|(rank, why)| format!("rank {rank}: {why}")))
}

fn policy() -> Result<MemoryPolicy, SessionError> {
    Ok(process_policy().map_err(numalab_host::Error::from)?)
}

/// Returns the node with memory that is nearest to `node`.
fn nearest(machine: &Machine, node: NodeId) -> Result<NodeId, SessionError> {
    let scope = Scope::new(machine, None, None).map_err(MeasureError::from)?;
    if scope.nodes.contains(&node) {
        return Ok(node);
    }
    let cpu = machine.node(node).and_then(|node| node.cpus.first()).unwrap_or_default();
    Ok(scope.nearest_node(machine, cpu))
}
