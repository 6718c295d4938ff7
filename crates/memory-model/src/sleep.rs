//! Sleeps for the cost of accesses, in pieces that are long enough for a host's timers.

use core::time::Duration;

/// Smallest sleep: each costs tens of microseconds by itself, so a smaller debt waits.
const LEAST_NS: u64 = 1_000_000;
/// The slack that Linux adds to a sleep by default (`prctl(2)`, `PR_SET_TIMERSLACK`).
const SLACK_NS: u64 = 50_000;

/// Time charged but not yet slept.
#[derive(Clone, Debug, Default)]
pub struct Debt {
    owed_ns: u64,
}

impl Debt {
    /// Adds to the debt; returns the time to sleep now, if the debt is large enough.
    pub fn owe(&mut self, more_ns: u64) -> Option<Duration> {
        self.owed_ns += more_ns;
        let due = self.owed_ns >= LEAST_NS;
        due.then(|| Duration::from_nanos(self.owed_ns - SLACK_NS))
    }

    /// Subtracts a sleep; excess is not a credit.
    pub fn slept(&mut self, slept: Duration) {
        let slept_ns = u64::try_from(slept.as_nanos()).unwrap_or(u64::MAX);
        self.owed_ns = self.owed_ns.saturating_sub(slept_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_slept_is_the_time_owed() {
        let mut debt = Debt::default();
        let mut slept = Duration::ZERO;
        for _ in 0..100_000 {
            if let Some(sleep) = debt.owe(170) {
                slept += sleep;
                debt.slept(sleep);
            }
        }
        let owed = Duration::from_nanos(17_000_000);
        assert!(owed - slept <= Duration::from_nanos(LEAST_NS), "{slept:?}");
    }

    #[test]
    fn a_sleep_too_long_is_not_a_credit() {
        let mut debt = Debt::default();
        assert!(debt.owe(LEAST_NS).is_some());
        debt.slept(Duration::from_secs(1));
        assert_eq!(debt.owe(LEAST_NS - 1), None);
        assert!(debt.owe(1).is_some());
    }
}
