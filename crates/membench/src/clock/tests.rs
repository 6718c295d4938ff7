use super::*;
use core::cell::Cell;

/// A counter and a clock that advance by a given amount at every reading.
struct Simulated {
    ticks: Cell<u64>,
    ns: Cell<u64>,
    step_ns: u64,
    ticks_per_ns: u64,
}

impl Simulated {
    fn new(step_ns: u64, ticks_per_ns: u64) -> Simulated {
        Simulated { ticks: Cell::new(1000), ns: Cell::new(500), step_ns, ticks_per_ns }
    }

    fn read_ns(&self) -> u64 {
        self.ns.set(self.ns.get() + self.step_ns);
        self.ticks.set(self.ticks.get() + self.step_ns * self.ticks_per_ns);
        self.ns.get()
    }

    fn calibrated(&self, mut now_ns: impl FnMut(u64) -> u64) -> Result<f64, ClockError> {
        let stamp = || Stamp(self.ticks.get());
        Pair { stamp, now_ns: || now_ns(self.read_ns()) }.even_ticks_per_ns(1_000_000)
    }
}

#[test]
fn an_even_clock_gives_its_rate() {
    let rate = Simulated::new(10, 3).calibrated(|ns| ns).unwrap();
    assert!((rate - 3.0).abs() < 0.01, "{rate}");
}

#[test]
fn a_clock_that_steps_back_is_refused_with_both_readings() {
    let stepped = Simulated::new(10, 3)
        .calibrated(|ns| if ns > 700_000 { ns - 300_000 } else { ns })
        .unwrap_err();
    assert!(
        matches!(stepped, ClockError::SteppedBack { unit: "ns", from, to } if to < from),
        "{stepped}"
    );
}

#[test]
fn a_clock_that_steps_forward_once_or_twice_is_measured_again() {
    let once = |ns| if ns > 800_000 { ns + 100_000 } else { ns };
    let twice = |ns| if ns > 1_800_000 { once(ns) + 100_000 } else { once(ns) };
    for rate in [Simulated::new(10, 3).calibrated(once), Simulated::new(10, 3).calibrated(twice)] {
        let rate = rate.unwrap();
        assert!((rate - 3.0).abs() < 0.01, "{rate}");
    }
}

#[test]
fn a_clock_that_steps_forward_repeatedly_is_refused_with_both_rates() {
    let stepped = Simulated::new(10, 3)
        .calibrated(|ns| ns + (ns + 200_000) / 1_000_000 * 100_000)
        .unwrap_err();
    let ClockError::Inconsistent { first_ticks_per_ns, second_ticks_per_ns } = stepped else {
        panic!("{stepped}");
    };
    assert!(second_ticks_per_ns < first_ticks_per_ns);
}

#[test]
fn a_counter_that_steps_back_is_refused() {
    let clock = Simulated::new(10, 3);
    let stamp = || {
        let ticks = clock.ticks.get();
        Stamp(if ticks > 2_000_000 { ticks - 1_900_000 } else { ticks })
    };
    let stepped = Pair { stamp, now_ns: || clock.read_ns() }.ticks_per_ns(1_000_000).unwrap_err();
    assert!(matches!(stepped, ClockError::SteppedBack { unit: "ticks", .. }), "{stepped}");
}

#[test]
fn a_clock_that_does_not_advance_is_refused() {
    let stopped = Simulated::new(10, 3).calibrated(|_| 5).unwrap_err();
    assert!(matches!(stopped, ClockError::Stopped { unit: "ns", at: 5, .. }), "{stopped}");
}

#[test]
fn a_counter_that_does_not_advance_is_refused() {
    let stopped = Simulated::new(10, 0).calibrated(|ns| ns).unwrap_err();
    assert!(matches!(stopped, ClockError::Stopped { unit: "ticks", .. }), "{stopped}");
}

#[test]
fn stamps_advance_and_the_wrong_order_is_an_error() {
    let earlier = Stamp::now();
    let mut later = Stamp::now();
    while later == earlier {
        later = Stamp::now();
    }
    assert!(later > earlier);
    assert_eq!(later.since(earlier), Ok(Ticks(later.0 - earlier.0)));
    assert_eq!(
        earlier.since(later),
        Err(ClockError::SteppedBack { unit: "ticks", from: later.0, to: earlier.0 })
    );
}

#[test]
fn ticks_become_nanoseconds_by_the_rate() {
    let clock = Clock { ticks_per_ns: 2.5, overhead: Ticks(40), invariant: true };
    assert!((clock.ns(Ticks(1000)) - 400.0).abs() < 1e-9);
}
