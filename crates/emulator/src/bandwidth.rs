//! Waiting for bandwidth: a queue in front of each node's memory and of each link.
//!
//! vCPUs take turns in QEMU, so accesses do not come in the order of the vCPUs' own times.
//! A queue therefore keeps a short history: time is cut into windows, each with room for as
//! many bytes as the bandwidth gives, and an access takes room in the first window, from its
//! own time on, that has some left.

use crate::machine::Machine;

/// Length of a window.
const WINDOW_PS: u64 = 10_000_000;
/// Windows remembered: 1.3 s, more than vCPUs drift apart within a turn.
const WINDOWS: usize = 1 << 17;
const PS_PER_S: f64 = 1e12;

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// Number of the window that the room was taken in, plus one.
    number: u64,
    /// Time of the window for which bytes are under way.
    busy_ps: u64,
}

/// The queue of one memory or link.
#[derive(Clone, Debug)]
pub struct Queue {
    windows: Vec<Window>,
    ps_per_byte: f64,
}

impl Queue {
    /// A queue of this bandwidth; none if it is 0, which is no limit.
    pub fn new(bandwidth_mb_s: f64) -> Option<Self> {
        let limited = bandwidth_mb_s > 0.0;
        let ps_per_byte = PS_PER_S / (bandwidth_mb_s * 1e6);
        limited.then(|| Self { windows: vec![Window::default(); WINDOWS], ps_per_byte })
    }

    /// How long bytes asked for at `time_ps` wait until those before them have passed.
    pub fn wait_ps(&mut self, time_ps: u64, bytes: u32) -> u64 {
        let work_ps = whole(self.ps_per_byte * f64::from(bytes)).max(1);
        let mut number = time_ps / WINDOW_PS;
        loop {
            let slot = usize::try_from(number % WINDOWS as u64).unwrap_or(0);
            let window = &mut self.windows[slot];
            if window.number > number + 1 {
                // Long ago: nobody knows any more how busy it was.
                number = window.number - 1;
            }
            if window.number < number + 1 {
                *window = Window { number: number + 1, busy_ps: 0 };
            }
            if window.busy_ps < WINDOW_PS {
                let free_ps = number * WINDOW_PS + window.busy_ps;
                window.busy_ps += work_ps;
                let over_ps = window.busy_ps.saturating_sub(WINDOW_PS);
                window.busy_ps -= over_ps;
                self.carry(number + 1, over_ps);
                return free_ps.saturating_sub(time_ps);
            }
            number += 1;
        }
    }

    /// Forgets all traffic.
    pub fn clear(&mut self) {
        self.windows.fill(Window::default());
    }

    /// Bytes that end in later windows are under way there too.
    fn carry(&mut self, mut number: u64, mut work_ps: u64) {
        while work_ps > 0 {
            let slot = usize::try_from(number % WINDOWS as u64).unwrap_or(0);
            let window = &mut self.windows[slot];
            if window.number < number + 1 {
                *window = Window { number: number + 1, busy_ps: 0 };
            }
            let room_ps = WINDOW_PS - window.busy_ps;
            let taken_ps = room_ps.min(work_ps);
            window.busy_ps += taken_ps;
            work_ps -= taken_ps;
            number += 1;
        }
    }
}

/// The queues of a machine.
#[derive(Debug)]
pub struct Bandwidth {
    nodes: Vec<Option<Queue>>,
    links: Vec<Vec<Option<Queue>>>,
}

impl Bandwidth {
    /// The queues of a machine; none if nothing limits it.
    pub fn new(machine: &Machine) -> Option<Self> {
        let count = machine.nodes.len();
        let queues = |row: &Vec<f64>| row.iter().map(|&limit| Queue::new(limit)).collect();
        let unlimited = || vec![None; count];
        let nodes: Vec<_> = machine.node_bandwidth_mb_s.as_ref().map_or_else(unlimited, queues);
        let rows = |rows: &Vec<Vec<f64>>| rows.iter().map(queues).collect();
        let links: Vec<Vec<_>> =
            machine.link_bandwidth_mb_s.as_ref().map_or_else(|| vec![unlimited(); count], rows);
        let limited = nodes.iter().chain(links.iter().flatten()).any(Option::is_some);
        limited.then_some(Self { nodes, links })
    }

    /// How long bytes wait on their way from a node's memory to another node's vCPU: the
    /// longer of both waits, since the way is a pipeline.
    pub fn wait_ps(&mut self, initiator: usize, target: usize, time_ps: u64, bytes: u32) -> u64 {
        let wait =
            |queue: Option<&mut Queue>| queue.map_or(0, |queue| queue.wait_ps(time_ps, bytes));
        let link = wait(self.links[initiator][target].as_mut());
        link.max(wait(self.nodes[target].as_mut()))
    }

    /// Forgets all traffic.
    pub fn clear(&mut self) {
        self.nodes
            .iter_mut()
            .chain(self.links.iter_mut().flatten())
            .flatten()
            .for_each(Queue::clear);
    }
}

/// The nearest whole number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
pub fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LINE: u32 = 64;
    /// 10 GB/s: a line takes 6.4 ns.
    const LINE_PS: u64 = 6_400;

    fn queue() -> Queue {
        Queue::new(10_000.0).unwrap()
    }

    /// Lines one vCPU reads until `end_ps`, each taking its latency and its wait.
    fn lines(queue: &mut Queue, latency_ps: u64, from_ps: u64, end_ps: u64) -> u64 {
        let (mut time_ps, mut lines) = (from_ps, 0);
        while time_ps < end_ps {
            time_ps += latency_ps + queue.wait_ps(time_ps, LINE);
            lines += 1;
        }
        lines
    }

    #[test]
    fn no_limit_needs_no_queue() {
        assert!(Queue::new(0.0).is_none());
    }

    #[test]
    fn a_slow_reader_never_waits() {
        let mut queue = queue();
        for turn in 0..10_000 {
            assert_eq!(queue.wait_ps(turn * 100_000, LINE), 0);
        }
    }

    #[test]
    fn one_fast_reader_gets_the_bandwidth() {
        let got = lines(&mut queue(), 1_000, 0, 1_000_000_000);
        let most = 1_000_000_000 / LINE_PS;
        assert!(got.abs_diff(most) <= most / 100, "{got} of {most}");
    }

    #[test]
    fn two_readers_share_it_whoever_comes_first() {
        // Each alone would take 16 GB/s; the second is asked only when the first is done.
        let (mut queue, end_ps) = (queue(), 10_000_000_000);
        let first = lines(&mut queue, 4_000, 0, end_ps);
        let second = lines(&mut queue, 4_000, 0, end_ps);
        let most = end_ps / LINE_PS;
        assert!((first + second).abs_diff(most) <= most / 20, "{first} + {second} of {most}");
    }

    proptest! {
        #[test]
        fn never_more_passes_than_fits(
            turns in prop::collection::vec((0_u64..50_000_000, 1_u32..4096), 1..400),
        ) {
            let mut queue = queue();
            let (mut last_ps, mut bytes_sum) = (0, 0);
            for (time_ps, bytes) in turns {
                let begun_ps = time_ps + queue.wait_ps(time_ps, bytes);
                bytes_sum += u64::from(bytes);
                last_ps = last_ps.max(begun_ps + u64::from(bytes) * 100);
            }
            // 100 ps a byte; what begins in a window may end in the next.
            prop_assert!(bytes_sum * 100 <= last_ps + 2 * WINDOW_PS);
        }
    }
}
