//! Calls that create processes and wait for them.

use super::super::family;
use super::super::syscalls::Call;
use super::super::turns::Order;
use super::{Program, THREAD};
use crate::plugin::Plugin;

/// A child reports again while it runs after this much busy time and a fraction of its earlier busy
/// time.
const REPORTED_PS: u64 = 1_000_000_000;
const REPORTED_PART: u64 = 50;

impl Program {
    /// Follows the return from fork(2) or the like: the child's id in the parent, 0 in the child.
    pub(super) fn forked(&self, order: &mut Order, seat: usize, value: i64) {
        if value == 0 {
            order.schedule.is_child(seat);
            self.turns.give(order);
        } else {
            order.schedule.children.made(value);
        }
    }

    /// Writes a child's report before it waits, because it may be killed there, like a pool's
    /// worker; skipped if little happened since the last report.
    pub(super) fn reports_before_waiting(&self, seat: usize) {
        let place = self.turns.order().schedule.began(None).place;
        let Some(world) = self.in_turn(seat).filter(|_| place > 0) else { return };
        let busy_ps: u64 = world.threads.iter().map(|thread| thread.busy_ps()).sum();
        if busy_ps < world.reported_ps + world.reported_ps / REPORTED_PART + REPORTED_PS {
            return;
        }
        world.reported_ps = busy_ps;
        if let Some(plugin) = Plugin::get() {
            plugin.report();
        }
    }

    /// Returns the time at which the child that was waited for ended.
    pub(super) fn child_ended_ps(&self, order: &mut Order, child: i64) -> u64 {
        order.schedule.children.ended(child);
        let report = self.engine.get().and_then(|engine| engine.arguments.report.as_deref());
        family::ended_ps(report, child).unwrap_or(0)
    }

    /// Marks this process as a child that has done nothing yet.
    pub(super) fn is_child(&self, seat: usize, borrows_memory: bool) {
        let Some(world) = self.in_turn(seat) else { return };
        world.starts_over(seat, borrows_memory);
        let began = self.turns.order().schedule.began(None);
        began.write(world.engine.arguments.report.as_deref());
    }
}

/// Returns true for a call that creates a process.
pub(super) fn is_fork(call: Call, [flags, ..]: &[u64; 6]) -> bool {
    matches!(call, Call::Fork | Call::BorrowingFork) || call == Call::Clone && flags & THREAD == 0
}

/// Returns true for a call that creates a process with its own memory (without `CLONE_VM`).
pub(super) fn copies_pages(call: Call, [flags, ..]: &[u64; 6]) -> bool {
    const SHARES_MEMORY: u64 = 0x100;
    call == Call::Fork || call == Call::Clone && flags & SHARES_MEMORY == 0
}

/// Returns true if the thread keeps its turn during the call, so that no other thread touches the
/// world: the thread uses it once more to report (execve(2), exit_group(2)) or to end, or the world
/// is copied (fork(2)).
pub(super) fn keeps_turn(call: Call, arguments: &[u64; 6]) -> bool {
    matches!(call, Call::Execute | Call::ExitGroup | Call::Exit) || is_fork(call, arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_end_report_or_fork_keep_the_turn_and_waits_give_it_away() {
        let keeps = |call, flags| keeps_turn(call, &[flags, 0, 0, 0, 0, 0]);
        let ends = [Call::Exit, Call::ExitGroup, Call::Execute, Call::Fork, Call::Clone];
        assert!(ends.into_iter().all(|call| keeps(call, 0)));
        assert!(!keeps(Call::Clone, THREAD));
        assert!(![Call::Futex, Call::Waits, Call::Map].into_iter().any(|call| keeps(call, 0)));
    }
}
