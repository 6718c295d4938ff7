//! Who waits at an address until another thread wakes it (futex(2)): it goes on at the time of that one,
//! whichever of the two the host lets out of the kernel first.

use super::{Order, watch};

impl Order {
    /// The thread of a seat begins to wait at an address, after those before it.
    pub fn waits_at(&mut self, seat: usize, address: u64) {
        self.futexes.waits(seat, address);
        if let Some(host) = &mut self.hosts[seat] {
            host.futex = Some((address, false));
        }
    }

    /// The thread of a seat no longer waits at an address.
    pub fn stops_waiting(&mut self, seat: usize) {
        let waited_at = self.hosts[seat].as_mut().and_then(|host| host.futex.take());
        if let Some((address, _)) = waited_at {
            self.futexes.leaves(seat, address);
        }
    }

    /// Waits until the host has all asleep that wait at an address: else it might see there what is
    /// stored from now on, and would not wake them in the order of their turns.
    pub(super) fn settle(&mut self) {
        for host in self.hosts.iter_mut().flatten() {
            if let Some((_, asleep @ false)) = &mut host.futex {
                watch::await_sleep(host.tid);
                *asleep = true;
            }
        }
    }

    /// A thread goes into the kernel to wake others.
    pub fn goes_to_wake(&mut self) {
        self.waking += 1;
    }

    /// Whether the thread of a seat, which no longer waits at its address, is to wait until the one
    /// that woke it is out of the kernel too: only that one's time tells when it goes on.
    pub fn is_early(&mut self, seat: usize) -> bool {
        let waits = self.hosts[seat].as_ref().is_some_and(|host| host.futex.is_some());
        let is_early = waits && self.waking > 0;
        if is_early {
            self.early.push(seat);
        }
        is_early
    }

    /// A thread that went into the kernel to wake others is out of it, and those it woke are known.
    pub fn has_woken(&mut self, now_ps: u64) {
        self.waking = self.waking.saturating_sub(1);
        for seat in std::mem::take(&mut self.early) {
            self.stops_waiting(seat);
            self.schedule.goes_on(seat, now_ps);
        }
    }

    /// The thread of a seat came out of the kernel because its time ran out there, which runs faster than
    /// the machine's: it waits on until then, unless it is woken.
    pub fn waits_on(&mut self, seat: usize, until_ps: u64) {
        let waited_at = self.hosts[seat].as_ref().and_then(|host| host.futex);
        self.stops_waiting(seat);
        self.schedule.sleeps_on(seat, until_ps);
        self.out.extend(waited_at.map(|(address, _)| (address, seat)));
    }

    /// The thread of a seat goes on, woken or not.
    pub(super) fn is_back(&mut self, seat: usize) {
        self.out.retain(|(_, of)| *of != seat);
    }

    /// So many are woken at a time of those who wait on at an address, of whom the host does not know.
    pub fn wakes_out(&mut self, address: u64, count: usize, at_ps: u64) {
        let waiting = self.out.iter().filter(|(of, _)| *of == address).take(count);
        let woken: Vec<usize> = waiting.map(|(_, seat)| *seat).collect();
        for seat in woken {
            self.is_back(seat);
            self.schedule.goes_on(seat, at_ps);
        }
    }

    /// The first so many who wait at an address are woken at a time.
    pub fn wakes(&mut self, address: u64, count: usize, at_ps: u64) -> usize {
        let woken = self.futexes.take(address, count);
        for &seat in &woken {
            if let Some(host) = &mut self.hosts[seat] {
                host.futex = None;
            }
            self.schedule.goes_on(seat, at_ps);
        }
        woken.len()
    }
}
