//! Transfers of lines from other vCPUs' caches.

use super::hierarchy::{Hierarchy, Transfer};
use super::{Access, Engine};
use crate::cache::Cache;
use crate::cost::ps;
use crate::counters::Kind;
use crate::owners::{Found, Who};
use crate::pipeline::stores::Bytes;
use crate::seats::Seat;
use crate::vcpu::{Vcpu, VcpuState};

/// Limit of a writer's lead: a vCPU that is further ahead is so because vCPUs run in turns, not
/// because it has just written the line. One that is further behind has not just written it either.
const MOST_AHEAD_PS: u64 = 1_000_000;

impl Hierarchy<'_> {
    /// Reports whether another vCPU is taking the line of an access that would begin at `begin_ps`
    /// and the line has not left yet, on machines where stores are ordered by time. Until then, stores
    /// still hit, and so do loads of what this vCPU has just stored, and those of a line that it has only read,
    /// unless it polls that: then it sees the next value. `own` says whether one of its caches has the line.
    #[inline(always)]
    pub fn leaves(&self, state: &mut VcpuState, access: &Access, begin_ps: u64, own: bool) -> bool {
        let engine = self.engine;
        if engine.front.is_some() || own {
            return false;
        }
        let number = access.address >> engine.line_shift;
        let Vcpu { leaving, upgraded, .. } = &engine.vcpus[self.vcpu];
        let is_load = access.kind == Kind::Load;
        let leaves = leaving.has(number, begin_ps) && (!is_load || has_stored(state, access))
            || is_load && upgraded.has(number, begin_ps) && !state.polls(access.address);
        if leaves {
            state.look(access.address, access.kind);
            Cache::lose_all(self.caches, access.address);
        }
        leaves
    }

    /// Returns the transfer from another vCPU that such an access needs, if any.
    #[inline(always)]
    pub fn transfer(
        &self,
        state: &mut VcpuState,
        access: &Access,
        begin_ps: u64,
        own: bool,
    ) -> Option<Transfer> {
        let engine = self.engine;
        let looks = state.look(access.address, access.kind);
        let owners = engine.owners.as_ref()?;
        let line = access.address >> engine.line_shift;
        let found = match access.kind {
            Kind::Load if own => return None,
            Kind::Load => owners.load(line, self.who()),
            Kind::Store => owners.store(line, self.who(), begin_ps),
        };
        let (writer, written_ps) = match found {
            Found::Free => return None,
            Found::WrittenBy(writer, written_ps) => (writer, written_ps),
            Found::Read(taken_ps) => return self.upgraded(state, access, (begin_ps, taken_ps)),
        };
        let who = usize::from(writer.vcpu);
        let cost_ps = self.taken_ps(access, who)?;
        // The line cannot have been taken before it was written.
        let just_written = looks > 1 || written_ps < begin_ps.saturating_add(MOST_AHEAD_PS);
        let after_ps = if just_written { written_ps.saturating_sub(begin_ps) } else { 0 };
        let begin_ps = begin_ps + after_ps;
        owners.taken(line, begin_ps + cost_ps);
        // An atomic operation's request arrives half a transfer before the line does; plain stores wait in
        // the store buffer meanwhile.
        let leaves_ps = if is_atomic(state, access) { cost_ps / 2 } else { cost_ps };
        engine.vcpus[who].leaving.until(line, begin_ps + leaves_ps);
        let far = engine.arguments.machine.cpus[who] != self.home;
        let is_old = begin_ps.saturating_sub(written_ps) > MOST_AHEAD_PS;
        Some(Transfer { after_ps, cost_ps, is_old, far, from: writer.thread })
    }

    /// Takes a line that is stored to from all vCPUs that have read it, once it has reached the last of them;
    /// returns the answer of the farthest one, for which an atomic operation waits. Other stores wait in the
    /// store buffer, and readers have the line until the request arrives.
    fn upgraded(
        &self,
        state: &VcpuState,
        access: &Access,
        (begin_ps, taken_ps): (u64, u64),
    ) -> Option<Transfer> {
        let engine = self.engine;
        let line = access.address >> engine.line_shift;
        let is_ahead = taken_ps >= begin_ps.saturating_add(MOST_AHEAD_PS);
        let taken_ps = if is_ahead { begin_ps } else { taken_ps };
        let others = (0..engine.vcpus.len()).filter(|&other| other != self.vcpu);
        let readers = others.filter_map(|who| Some((self.taken_ps(access, who)?, who)));
        let keeps = |(cost_ps, who): &(u64, usize)| {
            // A transfer has three hops: to the line's home, to the vCPU that has it, and back. At its home, the
            // request may wait for the transfer before it.
            let arrives_ps = (begin_ps + cost_ps / 3 * 2).max(taken_ps + cost_ps / 3);
            engine.vcpus[*who].upgraded.until(line, arrives_ps);
        };
        let farthest = readers.inspect(keeps).max();
        let (cost_ps, who) = farthest.filter(|_| is_atomic(state, access))?;
        let far = engine.arguments.machine.cpus[who] != self.home;
        #[expect(clippy::cast_possible_truncation, reason = "its lowest bits")]
        let from = engine.vcpus[who].thread.get() as u8;
        Some(Transfer { after_ps: 0, cost_ps, is_old: false, far, from })
    }

    /// Identifies this access's vCPU and thread for the directory.
    #[inline]
    pub fn who(&self) -> Who {
        #[expect(clippy::cast_possible_truncation, reason = "there are at most 255 vCPUs")]
        Who { vcpu: self.vcpu as u8, thread: self.thread.unwrap_or(0) as u8 }
    }

    /// Returns the cost of taking a line from a vCPU, if its caches still have it.
    fn taken_ps(&self, access: &Access, who: usize) -> Option<u64> {
        let engine = self.engine;
        let has = engine.vcpus[who].caches.iter().any(|cache| cache.holds(access.address));
        if access.kind == Kind::Store {
            engine.take_away(access.address, self.vcpu, who);
        }
        let cpus = &engine.arguments.machine.cpus;
        let seat = |vcpu: usize| Seat { node: cpus[vcpu], group: engine.groups[vcpu] };
        let takes_ps = engine.between_ps(seat(self.vcpu), seat(who))?;
        has.then_some(takes_ps)
    }
}

/// Returns true if recent stores of the vCPU forward all bytes of a load to it.
fn has_stored(state: &VcpuState, access: &Access) -> bool {
    let instruction = state.instruction(access.position);
    let bytes = Bytes::new(access.address, access.bytes);
    let pipeline = state.pipeline.as_ref();
    pipeline.is_some_and(|of| of.forwarded(bytes, (instruction, false)).whole)
}

/// Returns true if an atomic operation makes an access.
fn is_atomic(state: &VcpuState, access: &Access) -> bool {
    let by = state.pipeline.as_ref().and_then(|of| of.accessor(access.position));
    by.is_some_and(|of| of.atomic)
}

impl Engine {
    /// Returns the cost of a transfer if all vCPUs were on one node, where a remote one would be
    /// local.
    pub(super) fn transfer_on(&self, node: usize, transfer: Transfer) -> u64 {
        let machine = &self.arguments.machine;
        let Some(transfers) = machine.transfers.as_ref().filter(|_| transfer.far) else {
            return transfer.cost_ps;
        };
        let cpus = machine.cpus.iter().zip(&self.groups).filter(|(of, _)| **of == node);
        let mut groups = cpus.map(|(_, group)| group);
        let first = groups.next();
        let is_one = groups.all(|group| Some(group) == first);
        ps(if is_one { transfers.group_ns } else { transfers.node_ns[node][node] })
    }

    /// Invalidates a line in the caches of the vCPU from which a store takes it; returns true if
    /// they had modified it.
    pub(super) fn take_away(&self, address: u64, by: usize, from: usize) -> bool {
        let modified = Cache::lose_all(&self.vcpus[from].caches, address);
        let group = self.groups[from];
        let is_apart = self.groups[by] != group;
        is_apart && Cache::lose_all(self.shared[group].lock().iter(), address) || modified
    }

    /// Returns the cost of a line's transfer between two cpus.
    pub(super) fn between_ps(&self, to: Seat, from: Seat) -> Option<u64> {
        let transfers = self.arguments.machine.transfers.as_ref()?;
        let ns = match to.group == from.group {
            true => transfers.group_ns,
            false => transfers.node_ns[to.node][from.node],
        };
        // Half a round trip includes a hit: that of the last load that still finds the old value.
        let hit_ps = self.hit_ps.first().copied().unwrap_or(0);
        Some(ps(ns).saturating_sub(hit_ps))
    }
}
