//! Turns of vCPUs that share one thread, short enough for them to meet in memory.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Own time of a vCPU after which the next one has its turn: ten lines from memory or so,
/// short against a window of the queue, in which bandwidth is shared fairly.
const TURN_PS: u64 = 1_000_000;
/// A vCPU that is further behind the others waited, for work or for them.
const BEHIND_PS: u64 = 50_000_000;

/// The latest of all vCPUs' own times.
#[derive(Debug, Default)]
pub struct Front(AtomicU64);

impl Front {
    /// A vCPU has come to this time of its own; the time that it is to have.
    #[inline]
    pub fn meet(&self, time_ps: u64) -> u64 {
        let latest_ps = self.0.load(Relaxed);
        if time_ps > latest_ps {
            self.0.store(time_ps, Relaxed);
        }
        time_ps.max(latest_ps.saturating_sub(BEHIND_PS))
    }
}

/// Whose turn it is.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    vcpu: usize,
    since_ps: u64,
}

impl Turn {
    /// Whether the vCPU, which has come to this time of its own, has had its turn.
    pub fn is_over(&mut self, vcpu: usize, time_ps: u64) -> bool {
        if vcpu != self.vcpu || time_ps < self.since_ps {
            *self = Self { vcpu, since_ps: time_ps };
        }
        let over = time_ps - self.since_ps >= TURN_PS;
        if over {
            self.since_ps = time_ps;
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vcpu_that_waited_is_brought_up_to_the_others() {
        let front = Front::default();
        assert_eq!(front.meet(3 * BEHIND_PS), 3 * BEHIND_PS);
        assert_eq!(front.meet(5), 2 * BEHIND_PS);
        assert_eq!(front.meet(3 * BEHIND_PS - 5), 3 * BEHIND_PS - 5);
    }

    #[test]
    fn a_turn_ends_after_the_vcpus_own_time() {
        let mut turn = Turn::default();
        assert!(!turn.is_over(1, 5_000));
        assert!(!turn.is_over(1, 5_000 + TURN_PS - 1));
        assert!(turn.is_over(1, 5_000 + TURN_PS));
        assert!(!turn.is_over(1, 5_000 + TURN_PS + 1), "a vCPU alone has one turn after another");
        assert!(!turn.is_over(2, 9 * TURN_PS), "another vCPU's turn begins");
        assert!(turn.is_over(2, 10 * TURN_PS));
    }
}
