//! Turns of vCPUs that share one thread, short enough for them to meet in memory.

use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use spin::Mutex;

/// Own time of a vCPU after which the next one has its turn: half a window of the queues,
/// which judge a vCPU's share by what the others used in their last window.
const TURN_PS: u64 = 5_000_000;
/// The same where a vCPU has nobody to meet: QEMU looks at its timers when a turn ends, which
/// without an end it does after so many instructions, whatever time they were charged.
const TURN_ALONE_PS: u64 = 100_000_000;
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
}

/// Whose turn it is, and until when.
///
/// QEMU ends turns too: where timers are near it lets every vCPU run a few instructions
/// only. A vCPU whose turns it cut falls behind those whose turns it did not, for which
/// nobody would be waiting on a real machine. So whoever is ahead of a vCPU that runs ends
/// its turn at once, until the others have caught up.
#[derive(Debug)]
pub struct Turns {
    length_ps: u64,
    vcpu: AtomicUsize,
    /// The vCPU's own time at which its turn is over.
    end_ps: AtomicU64,
    past: Mutex<Past>,
}

#[derive(Debug)]
struct Past {
    /// Turns so far.
    count: u64,
    /// Each vCPU's last turn: its number, and the own time to which the vCPU came.
    last: Vec<Option<(u64, u64)>>,
    /// Who ended its turn to wait for another one.
    waits: Option<usize>,
}

impl Turns {
    /// The first vCPU of so many has its turn.
    pub fn new(vcpus: usize) -> Self {
        let length_ps = if vcpus == 1 { TURN_ALONE_PS } else { TURN_PS };
        Self {
            length_ps,
            vcpu: AtomicUsize::new(0),
            end_ps: AtomicU64::new(length_ps),
            past: Mutex::new(Past { count: 0, last: vec![None; vcpus], waits: None }),
        }
    }

    /// The vCPU whose turn it is.
    #[inline]
    pub fn vcpu(&self) -> usize {
        self.vcpu.load(Relaxed)
    }

    /// Whether the vCPU whose turn it is has had it, at this time of its own.
    #[inline]
    pub fn is_over(&self, time_ps: u64) -> bool {
        time_ps >= self.end_ps.load(Relaxed)
    }

    /// The turn ends that came to this time of its vCPU's own; that of a vCPU begins,
    /// perhaps of the same one.
    pub fn pass(&self, came_to_ps: u64, vcpu: usize, time_ps: u64) {
        let mut past = self.past.lock();
        past.count += 1;
        let count = past.count;
        let waited = past.waits.take() == Some(self.vcpu());
        past.last[self.vcpu()] = (!waited).then_some((count, came_to_ps));
        // Everyone who runs had a turn in the last two rounds; who had none waits.
        let oldest = count.saturating_sub(2 * past.last.len() as u64);
        let others = past.last.iter().enumerate().filter(|(other, _)| *other != vcpu);
        let running = others.filter_map(|(_, last)| last.filter(|(number, _)| *number > oldest));
        let slowest_ps = running.map(|(_, time_ps)| time_ps).fold(time_ps, u64::min);
        self.vcpu.store(vcpu, Relaxed);
        self.end_ps.store(self.end_after(slowest_ps), Relaxed);
    }

    /// The vCPU whose turn it is waits for another one.
    pub fn wait(&self, vcpu: usize) {
        self.past.lock().waits = Some(vcpu);
    }

    /// The next end of a turn on the grid.
    fn end_after(&self, time_ps: u64) -> u64 {
        (time_ps / self.length_ps + 1) * self.length_ps
    }

    /// All vCPUs go on from this time together.
    pub fn align(&self, time_ps: u64) {
        self.past.lock().last.fill(None);
        self.end_ps.store(self.end_after(time_ps), Relaxed);
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
        let turns = Turns::new(3);
        assert!(!turns.is_over(TURN_PS - 1));
        assert!(turns.is_over(TURN_PS));
        turns.pass(TURN_PS, 0, TURN_PS);
        assert!(!turns.is_over(TURN_PS + 1), "a vCPU alone has one turn after another");
        assert!(turns.is_over(2 * TURN_PS + 9));
        turns.pass(2 * TURN_PS + 9, 2, 9);
        assert!(!turns.is_over(9), "another vCPU's turn begins");
        assert!(turns.is_over(TURN_PS));
    }

    #[test]
    fn a_machine_with_one_vcpu_has_longer_turns() {
        let turns = Turns::new(1);
        assert!(!turns.is_over(TURN_ALONE_PS - 1));
        assert!(turns.is_over(TURN_ALONE_PS));
        turns.pass(TURN_ALONE_PS, 0, TURN_ALONE_PS);
        assert!(!turns.is_over(2 * TURN_ALONE_PS - 1));
    }

    #[test]
    fn who_is_ahead_ends_its_turn_at_once_until_the_others_wait_or_have_caught_up() {
        let turns = Turns::new(2);
        turns.pass(3 * TURN_PS, 1, 5);
        turns.pass(9, 0, 3 * TURN_PS);
        assert!(turns.is_over(3 * TURN_PS), "the other one's turn was cut");
        turns.pass(3 * TURN_PS + 1, 1, 9);
        turns.pass(3 * TURN_PS, 0, 3 * TURN_PS + 1);
        assert!(!turns.is_over(3 * TURN_PS + 2), "it has caught up");
        for _ in 0..4 {
            turns.pass(3 * TURN_PS + 2, 0, 3 * TURN_PS + 2);
        }
        turns.pass(9 * TURN_PS, 0, 9 * TURN_PS);
        assert!(!turns.is_over(9 * TURN_PS + 1), "the other one waits for something");
        turns.align(20 * TURN_PS);
        assert!(!turns.is_over(20 * TURN_PS + 1));
    }

    #[test]
    fn who_waits_for_another_one_holds_nobody_up() {
        let turns = Turns::new(2);
        turns.wait(0);
        turns.pass(9, 1, 3 * TURN_PS);
        assert!(!turns.is_over(3 * TURN_PS + 1), "the one behind waits");
        turns.pass(3 * TURN_PS + 1, 0, 9);
        turns.pass(10, 1, 3 * TURN_PS + 1);
        assert!(turns.is_over(3 * TURN_PS + 1), "it no longer waits");
    }

    /// Busy vCPUs whose turns QEMU cuts at random; what share of their time they were
    /// brought up, which nobody who is busy should be.
    fn brought_up(vcpus: usize, longest_slice_ps: u64) -> f64 {
        let (front, turns) = (Front::default(), Turns::new(vcpus));
        let mut random = 7_u64;
        let (mut times, mut gained) = (vec![0_u64; vcpus], 0);
        for round in 0..40_000 {
            let vcpu = round % vcpus;
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let mut left = 1 + (random >> 33) % longest_slice_ps;
            let mut over = false;
            while left > 0 && !over {
                let met = front.meet(times[vcpu]);
                gained += met - times[vcpu];
                times[vcpu] = met;
                if turns.vcpu() != vcpu {
                    turns.pass(times[turns.vcpu()], vcpu, met);
                }
                over = turns.is_over(met);
                if over {
                    turns.pass(met, vcpu, met);
                }
                // Blocks cost the vCPUs differently, and QEMU counts instructions only.
                times[vcpu] += 10_000 + 3_000 * vcpu as u64;
                left = left.saturating_sub(10_000);
            }
        }
        gained as f64 / times.iter().sum::<u64>() as f64
    }

    #[test]
    fn busy_vcpus_lose_no_time_however_qemu_cuts_their_turns() {
        for vcpus in [2, 4, 16] {
            for longest_slice_ps in [100_000, 2_000_000, 50_000_000] {
                let share = brought_up(vcpus, longest_slice_ps);
                assert!(share < 1e-3, "{vcpus} vCPUs, {longest_slice_ps} ps: {share}");
            }
        }
    }
}
