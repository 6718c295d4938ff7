//! Turns of vCPUs that share one thread, short enough for them to meet in memory.

/// Own time of a vCPU after which the next one has its turn. Bandwidth is shared by those
/// who ask for it within a window of the queue, so a turn is not longer than one.
const TURN_PS: u64 = 10_000_000;

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
