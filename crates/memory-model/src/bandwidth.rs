//! Delays accesses by bandwidth: a queue in front of each node's memory and of each link. QEMU runs
//! vCPUs in turns, so accesses do not arrive in the order of the vCPUs' own times, and a plain
//! queue would favour the vCPU that runs first. Instead each vCPU has a share of the bandwidth by
//! max-min fairness: a vCPU that demands less than an equal share gets its demand, and the others
//! share the rest equally. Demands are known from each vCPU's previous window of time.

use crate::channels::Channels;
use crate::machine::Machine;
use alloc::vec;
use alloc::vec::Vec;

/// Length of a window.
const WINDOW_PS: u64 = 10_000_000;
const PS_PER_S: f64 = 1e12;

/// One vCPU at a queue.
#[derive(Clone, Debug)]
struct Sharer {
    /// Number of the sharer's current window, in its own time.
    window: u64,
    /// Time that the sharer's bytes in this window take at full bandwidth.
    used_ps: f64,
    /// Fraction of the previous window that the sharer's bytes took at full bandwidth.
    used_before: f64,
    /// Fraction of the bandwidth that the sharer gets.
    share: f64,
    /// Time at which the sharer's last bytes have passed.
    free_ps: u64,
    /// True if it had to wait in its previous window, and in this one.
    waited: [bool; 2],
}

impl Sharer {
    const NEW: Self = Self {
        window: 0,
        used_ps: 0.0,
        used_before: 0.0,
        share: 1.0,
        free_ps: 0,
        waited: [false; 2],
    };

    /// Returns the sharer's use of the bandwidth as seen by a vCPU in this window.
    fn used(&self, window: u64) -> f64 {
        if self.window + 2 >= window { self.used_before } else { 0.0 }
    }

    #[expect(clippy::cast_precision_loss, reason = "a window is a small number")]
    fn enter(&mut self, window: u64) {
        let next = window == self.window + 1;
        self.used_before = if next { self.used_ps / WINDOW_PS as f64 } else { 0.0 };
        self.used_ps = 0.0;
        self.waited = [self.waited[1] && next, false];
        self.window = window;
    }
}

/// The queue of one memory or link.
#[derive(Clone, Debug)]
pub struct Queue {
    sharers: Vec<Sharer>,
    ps_per_byte: f64,
}

impl Queue {
    /// Creates a queue of this bandwidth for `vcpus`; `None` for 0, which means no limit.
    pub fn new(bandwidth_mb_s: f64, vcpus: usize) -> Option<Self> {
        let ps_per_byte = PS_PER_S / (bandwidth_mb_s * 1e6);
        (bandwidth_mb_s > 0.0).then(|| Self { sharers: vec![Sharer::NEW; vcpus], ps_per_byte })
    }

    /// Returns the time that bytes requested by a vCPU at `time_ps` wait for earlier ones.
    pub fn wait_ps(&mut self, vcpu: usize, time_ps: u64, bytes: u32) -> u64 {
        let window = time_ps / WINDOW_PS;
        if window > self.sharers[vcpu].window {
            self.sharers[vcpu].enter(window);
            self.sharers[vcpu].share = self.fair_share(vcpu, window);
        }
        let work_ps = self.ps_per_byte * f64::from(bytes);
        let sharer = &mut self.sharers[vcpu];
        sharer.used_ps += work_ps;
        let begin_ps = time_ps.max(sharer.free_ps);
        sharer.free_ps = begin_ps.saturating_add(whole(work_ps / sharer.share));
        sharer.waited[1] |= begin_ps > time_ps;
        begin_ps - time_ps
    }

    /// Resets the queue.
    pub fn clear(&mut self) {
        self.sharers.fill(Sharer::NEW);
    }

    /// Returns an equal share of the bandwidth that vCPUs which do not wait leave over.
    fn fair_share(&self, vcpu: usize, window: u64) -> f64 {
        let (mut waiting, mut users, mut left) = (1.0, 1.0, 1.0);
        for (other, sharer) in self.sharers.iter().enumerate() {
            let used = sharer.used(window);
            if other == vcpu || used == 0.0 {
                continue;
            }
            users += 1.0;
            if sharer.waited[0] {
                waiting += 1.0;
            } else {
                left -= used;
            }
        }
        f64::max(1.0 / users, left / waiting)
    }
}

/// Creates the queues of a machine; `None` if it has no limits.
pub(crate) fn queues(machine: &Machine) -> Option<Channels<Queue>> {
    let (nodes, links) = (&machine.node_bandwidth_mb_s, &machine.link_bandwidth_mb_s);
    let queue = |limit: &f64| Queue::new(*limit, machine.cpus.len());
    Channels::new(nodes.as_ref(), links.as_ref(), queue)
}

/// Rounds to the nearest integer.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
pub fn whole(value: f64) -> u64 {
    (value + 0.5) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LINE: u32 = 64;
    /// At 10 GB/s a line takes 6.4 ns.
    const LINE_PS: u64 = 6_400;
    const TURN_PS: u64 = 5_000_000;
    const TURNS: u64 = 1_000;

    /// Returns the number of lines that each reader transfers, given its other costs per line;
    /// readers take turns by their own time.
    fn lines(each_ps: &[u64]) -> Vec<u64> {
        let mut queue = Queue::new(10_000.0, each_ps.len()).unwrap();
        let mut readers = vec![(0, 0); each_ps.len()];
        for turn in 1..=TURNS {
            for (vcpu, (time_ps, count)) in readers.iter_mut().enumerate() {
                while *time_ps < turn * TURN_PS {
                    *time_ps += each_ps[vcpu] + queue.wait_ps(vcpu, *time_ps, LINE);
                    *count += 1;
                }
            }
        }
        readers.into_iter().map(|(_, count)| count).collect()
    }

    fn near(found: u64, expected: u64) -> bool {
        found.abs_diff(expected) <= expected / 33
    }

    /// Lines transferred in all turns.
    const ALL: u64 = TURNS * TURN_PS / LINE_PS;

    #[test]
    fn no_limit_needs_no_queue() {
        assert!(Queue::new(0.0, 1).is_none());
    }

    #[test]
    fn a_slow_reader_does_not_wait() {
        let mut queue = Queue::new(10_000.0, 1).unwrap();
        for turn in 0..10_000 {
            assert_eq!(queue.wait_ps(0, turn * 100_000, LINE), 0);
        }
    }

    #[test]
    fn one_fast_reader_gets_the_bandwidth() {
        let alone = lines(&[1_000])[0];
        assert!(near(alone, ALL), "{alone} of {ALL}");
    }

    #[test]
    fn readers_who_want_more_than_there_is_get_equal_parts() {
        for readers in 2..9_u64 {
            let got = lines(&vec![4_000; usize::try_from(readers).unwrap()]);
            assert!(got.iter().all(|&lines| near(lines, ALL / readers)), "{got:?} of {ALL}");
        }
    }

    #[test]
    fn bandwidth_left_by_a_slow_reader_goes_to_the_others() {
        // The slow reader demands a sixteenth.
        let got = lines(&[102_400, 1_000, 4_000]);
        assert!(near(got[0], ALL / 16), "{got:?} of {ALL}");
        assert!(near(got[1], ALL * 15 / 32) && near(got[2], ALL * 15 / 32), "{got:?} of {ALL}");
    }

    #[test]
    fn a_reader_that_comes_back_finds_its_share() {
        let mut queue = Queue::new(10_000.0, 2).unwrap();
        let mut time_ps = 0;
        while time_ps < 100 * WINDOW_PS {
            time_ps += 1_000 + queue.wait_ps(0, time_ps, LINE);
        }
        assert!(queue.wait_ps(1, 95 * WINDOW_PS, LINE) == 0);
        assert!(queue.wait_ps(0, 1_000 * WINDOW_PS, LINE) == 0, "alone again");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn readers_never_get_more_than_there_is(each_ps in prop::collection::vec(500_u64..200_000, 1..9)) {
            let got: u64 = lines(&each_ps).iter().sum();
            prop_assert!(got <= ALL + ALL / 33, "{got} of {ALL}");
            let wanted: u64 = each_ps.iter().map(|each| TURNS * TURN_PS / each).sum();
            prop_assert!(got + ALL / 10 >= wanted.min(ALL), "{got} of {ALL}, wanted {wanted}");
        }
    }
}
