//! Turns of vCPUs that share one thread, short enough for their accesses to interact.

use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use spin::Mutex;

/// Length of a turn in a vCPU's own time: half a window of the queues, which compute a vCPU's share
/// from the others' previous window.
const TURN_PS: u64 = 5_000_000;
/// Length of a turn without other vCPUs. QEMU checks its timers at the end of a turn; without an
/// end it does so after a number of instructions, regardless of the time charged for them.
const TURN_ALONE_PS: u64 = 100_000_000;
/// Lag of a vCPU behind the others at which it must have been waiting, for work or for them.
const BEHIND_PS: u64 = 2 * TURN_PS;

/// The latest of all vCPUs' own times.
#[derive(Debug, Default)]
pub struct Front(AtomicU64);

impl Front {
    /// Records a vCPU's own time, and returns the time to which it must advance.
    #[inline]
    pub fn meet(&self, time_ps: u64) -> u64 {
        let latest_ps = self.0.load(Relaxed);
        if time_ps > latest_ps {
            self.0.store(time_ps, Relaxed);
        }
        time_ps.max(latest_ps.saturating_sub(BEHIND_PS))
    }
}

/// The vCPU that has its turn, and the end of the turn. QEMU ends turns too: near timers it lets
/// every vCPU run only a few instructions. A vCPU with turns cut short falls behind those with full
/// turns, which does not happen on a real machine. Therefore a vCPU that is ahead of a running one
/// ends its turn at once, until the others have caught up.
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
    /// Number of turns so far.
    count: u64,
    /// Each vCPU's last turn: its number, and the vCPU's own time at its end.
    last: Vec<Option<(u64, u64)>>,
    /// The vCPU that ended its turn to wait for another vCPU.
    waits: Option<usize>,
}

impl Turns {
    /// Creates the turns of `vcpus`, beginning with the first.
    pub fn new(vcpus: usize) -> Self {
        let length_ps = if vcpus == 1 { TURN_ALONE_PS } else { TURN_PS };
        Self {
            length_ps,
            vcpu: AtomicUsize::new(0),
            end_ps: AtomicU64::new(length_ps),
            past: Mutex::new(Past { count: 0, last: vec![None; vcpus], waits: None }),
        }
    }

    /// Returns the vCPU that has its turn.
    #[inline]
    pub fn vcpu(&self) -> usize {
        self.vcpu.load(Relaxed)
    }

    /// Reports whether the current turn is over at this own time of its vCPU.
    #[inline]
    pub fn is_over(&self, time_ps: u64) -> bool {
        time_ps >= self.end_ps.load(Relaxed)
    }

    /// Ends the turn of a vCPU that has reached `came_to_ps`, and begins that of `vcpu`, possibly
    /// the same.
    pub fn pass(&self, came_to_ps: u64, vcpu: usize, time_ps: u64) {
        let mut past = self.past.lock();
        past.count += 1;
        let count = past.count;
        let waited = past.waits.take() == Some(self.vcpu());
        past.last[self.vcpu()] = (!waited).then_some((count, came_to_ps));
        // Every running vCPU had a turn in the last two rounds; a vCPU without one is waiting.
        let oldest = count.saturating_sub(2 * past.last.len() as u64);
        let others = past.last.iter().enumerate().filter(|(other, _)| *other != vcpu);
        let running = others.filter_map(|(_, last)| last.filter(|(number, _)| *number > oldest));
        let slowest_ps = running.map(|(_, time_ps)| time_ps).fold(time_ps, u64::min);
        self.vcpu.store(vcpu, Relaxed);
        self.end_ps.store(self.end_after(slowest_ps), Relaxed);
    }

    /// Records that the current vCPU waits for another one.
    pub fn wait(&self, vcpu: usize) {
        self.past.lock().waits = Some(vcpu);
    }

    /// Returns the next end of a turn on the grid.
    fn end_after(&self, time_ps: u64) -> u64 {
        (time_ps / self.length_ps + 1) * self.length_ps
    }

    /// Aligns all vCPUs at this time.
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
    fn a_vcpu_that_is_ahead_ends_its_turn_until_the_others_wait_or_catch_up() {
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
    fn a_waiting_vcpu_does_not_delay_others() {
        let turns = Turns::new(2);
        turns.wait(0);
        turns.pass(9, 1, 3 * TURN_PS);
        assert!(!turns.is_over(3 * TURN_PS + 1), "the one behind waits");
        turns.pass(3 * TURN_PS + 1, 0, 9);
        turns.pass(10, 1, 3 * TURN_PS + 1);
        assert!(turns.is_over(3 * TURN_PS + 1), "it no longer waits");
    }

    /// Returns the share of time by which busy vCPUs were advanced when QEMU cuts their turns at
    /// random; it should be 0.
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
                // Blocks cost the vCPUs differently, but QEMU counts only instructions.
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
