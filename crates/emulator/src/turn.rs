//! Turns of vCPUs that share one thread, short enough for them to meet in memory.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Own time of a vCPU after which the next one has its turn: half a window of the queues,
/// which judge a vCPU's share by what the others used in their last window.
const TURN_PS: u64 = 5_000_000;
/// A vCPU that is further behind the others waited, for work or for them.
const BEHIND_PS: u64 = 2 * TURN_PS;

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

    /// The latest time.
    pub fn latest_ps(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Whose turn it is.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    vcpu: usize,
    since_ps: u64,
}

impl Turn {
    /// The vCPU whose turn it is.
    pub fn vcpu(&self) -> usize {
        self.vcpu
    }

    /// Another vCPU has its turn now, from this time of its own.
    pub fn pass(&mut self, vcpu: usize, time_ps: u64) {
        *self = Self { vcpu, since_ps: time_ps };
    }

    /// Whether the vCPU, which has come to this time of its own, has had its turn.
    ///
    /// Turns end where a grid of times is crossed, and not before the vCPU has caught up
    /// with the others, so that none falls behind by what turns are too long or too short.
    pub fn is_over(&mut self, time_ps: u64, front: &Front) -> bool {
        let cell = time_ps / TURN_PS;
        let over = cell > self.since_ps / TURN_PS && cell >= front.latest_ps() / TURN_PS;
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
    fn a_turn_ends_on_the_grid() {
        let (mut turn, front) = (Turn::default(), Front::default());
        turn.pass(1, 0);
        let mut over = |vcpu, time_ps| {
            if turn.vcpu() != vcpu {
                turn.pass(vcpu, time_ps);
            }
            turn.is_over(front.meet(time_ps), &front)
        };
        assert!(!over(1, 5));
        assert!(!over(1, TURN_PS - 1));
        assert!(over(1, TURN_PS));
        assert!(!over(1, TURN_PS + 1), "a vCPU alone has one turn after another");
        assert!(over(1, 2 * TURN_PS + 9));
        assert!(!over(2, 9), "another vCPU's turn begins");
        assert!(!over(2, TURN_PS), "it is behind");
        assert!(over(2, 2 * TURN_PS));
    }
}
