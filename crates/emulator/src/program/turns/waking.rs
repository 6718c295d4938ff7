//! Threads that wait at an address until another wakes them (futex(2)): they resume at the waker's
//! time, whichever of the two the host lets out of the kernel first.

use super::{Order, watch};

impl Order {
    /// Adds the seat's thread to the end of an address's queue.
    pub fn waits_at(&mut self, seat: usize, address: u64) {
        self.futexes.waits(seat, address);
        if let Some(host) = &mut self.hosts[seat] {
            host.futex = Some((address, false));
        }
    }

    /// Removes the seat's thread from its queue.
    pub fn stops_waiting(&mut self, seat: usize) {
        let waited_at = self.hosts[seat].as_mut().and_then(|host| host.futex.take());
        if let Some((address, _)) = waited_at {
            self.futexes.leaves(seat, address);
        }
    }

    /// Waits until the host threads of all waiters are asleep. Otherwise one might see a value that
    /// is stored later, and the host would not wake them in the order of their turns.
    pub(super) fn settle(&mut self) {
        for host in self.hosts.iter_mut().flatten() {
            if let Some((_, asleep @ false)) = &mut host.futex {
                watch::await_sleep(host.tid);
                *asleep = true;
            }
        }
    }

    /// Records that a thread enters the kernel to wake others.
    pub fn goes_to_wake(&mut self) {
        self.waking += 1;
    }

    /// Returns true if the seat's thread, which no longer waits at its address, must wait until its
    /// waker has left the kernel too: only the waker's time determines when it resumes.
    pub fn is_early(&mut self, seat: usize) -> bool {
        let waits = self.hosts[seat].as_ref().is_some_and(|host| host.futex.is_some());
        let is_early = waits && self.waking > 0;
        if is_early {
            self.early.push(seat);
        }
        is_early
    }

    /// Records that a waker has left the kernel, and that the threads it woke are known.
    pub fn has_woken(&mut self, now_ps: u64) {
        self.waking = self.waking.saturating_sub(1);
        for seat in std::mem::take(&mut self.early) {
            self.stops_waiting(seat);
            self.schedule.is_woken(seat, now_ps);
        }
    }

    /// Keeps a thread waiting until `until_ps` or a wakeup: it timed out on the host, where time
    /// passes faster than on the machine.
    pub fn waits_on(&mut self, seat: usize, until_ps: u64) {
        let waited_at = self.hosts[seat].as_ref().and_then(|host| host.futex);
        self.stops_waiting(seat);
        self.schedule.sleeps_on(seat, until_ps);
        self.out.extend(waited_at.map(|(address, _)| (address, seat)));
    }

    /// Removes the seat's thread from those that timed out, woken or not.
    pub(super) fn is_back(&mut self, seat: usize) {
        self.out.retain(|(_, of)| *of != seat);
    }

    /// Wakes up to `count` of the threads that timed out only on the host, which does not know of
    /// them.
    pub fn wakes_out(&mut self, address: u64, count: usize, at_ps: u64) {
        let waiting = self.out.iter().filter(|(of, _)| *of == address).take(count);
        let woken: Vec<usize> = waiting.map(|(_, seat)| *seat).collect();
        for seat in woken {
            self.is_back(seat);
            self.schedule.is_woken(seat, at_ps);
        }
    }

    /// Wakes the first `count` waiters at an address; returns how many there were.
    pub fn wakes(&mut self, address: u64, count: usize, at_ps: u64) -> usize {
        let woken = self.futexes.take(address, count);
        for &seat in &woken {
            if let Some(host) = &mut self.hosts[seat] {
                host.futex = None;
            }
            self.schedule.is_woken(seat, at_ps);
        }
        woken.len()
    }
}
