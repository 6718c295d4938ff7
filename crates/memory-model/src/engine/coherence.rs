//! Lines that come from other vCPUs' caches.

use super::{Access, Active, Engine};
use crate::cost::ps;
use crate::counters::Kind;
use crate::owners::{Found, Who};
use crate::seats::Seat;

/// A vCPU that is further ahead is so because of turns, and not because it has just written
/// what another one takes from it.
const MOST_AHEAD_PS: u64 = 1_000_000;

/// A line that comes from another vCPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Transfer {
    /// When it can begin.
    pub begin_ps: u64,
    /// What it takes.
    pub cost_ps: u64,
    /// Whether it comes from another node.
    pub far: bool,
    /// The lowest bits of the number of the thread that wrote it.
    pub from: u8,
}

impl Active<'_> {
    /// Whether another vCPU is taking the line of an access that would begin at `begin_ps`, and it has not
    /// left yet, where stores come in the order of time; `own` says whether a cache of its own has it.
    #[inline(always)]
    pub(super) fn leaves(&mut self, access: Access, begin_ps: u64, own: bool) -> bool {
        let engine = self.engine;
        let is_in_order = access.kind == Kind::Store && engine.front.is_none();
        let number = access.address >> engine.line_shift;
        let leaves = is_in_order && !own && engine.vcpus[self.vcpu].leaving.has(number, begin_ps);
        if leaves {
            self.state.look(access.address, access.kind);
            self.caches.iter().for_each(|cache| cache.lose(access.address));
        }
        leaves
    }

    /// What such an access must take from another vCPU, if anything.
    #[inline(always)]
    pub(super) fn transfer(
        &mut self,
        access: Access,
        begin_ps: u64,
        own: bool,
    ) -> Option<Transfer> {
        let engine = self.engine;
        let looks = self.state.look(access.address, access.kind);
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
            Found::Read => {
                let others = (0..engine.vcpus.len()).filter(|&other| other != self.vcpu);
                others.for_each(|other| engine.take_away(access.address, self.vcpu, other));
                return None;
            }
        };
        let who = usize::from(writer.vcpu);
        let cost_ps = self.taken_ps(access, who)?;
        // It cannot have been taken before it was written.
        let just_written = looks > 1 || written_ps < begin_ps.saturating_add(MOST_AHEAD_PS);
        let begin_ps = if just_written { begin_ps.max(written_ps) } else { begin_ps };
        if access.kind == Kind::Store {
            owners.stored(line, begin_ps + cost_ps);
        }
        engine.vcpus[who].leaving.until(line, begin_ps + cost_ps);
        let far = engine.arguments.machine.cpus[who] != self.home;
        Some(Transfer { begin_ps, cost_ps, far, from: writer.thread })
    }

    /// It, as the directory has it.
    #[inline]
    pub(super) fn who(&self) -> Who {
        #[expect(clippy::cast_possible_truncation, reason = "there are at most 255 vCPUs")]
        Who { vcpu: self.vcpu as u8, thread: self.thread.unwrap_or(0) as u8 }
    }

    /// What a line takes from a vCPU, if its caches still have it.
    fn taken_ps(&self, access: Access, who: usize) -> Option<u64> {
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

impl Engine {
    /// What a transfer would take if all vCPUs were on a node: one from another node is near then.
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

    /// A store of one vCPU takes its line away from another one.
    pub(super) fn take_away(&self, address: u64, by: usize, from: usize) {
        self.vcpus[from].caches.iter().for_each(|cache| cache.lose(address));
        let group = self.groups[from];
        if self.groups[by] != group {
            self.shared[group].lock().iter().for_each(|cache| cache.lose(address));
        }
    }

    /// What a line takes from one cpu to another.
    pub(super) fn between_ps(&self, to: Seat, from: Seat) -> Option<u64> {
        let transfers = self.arguments.machine.transfers.as_ref()?;
        let ns = match to.group == from.group {
            true => transfers.group_ns,
            false => transfers.node_ns[to.node][from.node],
        };
        // Half a round trip has a hit in it: the last load that still finds the old value.
        let hit_ps = self.hit_ps.first().copied().unwrap_or(0);
        Some(ps(ns).saturating_sub(hit_ps))
    }
}
