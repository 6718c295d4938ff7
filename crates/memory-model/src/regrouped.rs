//! Simulates shared caches with threads on other cpus in addition to the machine's own, so that one
//! run shows the effect of another placement of threads.

use alloc::vec::Vec;

use spin::Mutex;

use crate::cache::Cache;
use crate::machine::{CacheLevel, Machine, Scope};
use crate::seats::Seats;

/// Shared caches used by different threads than on the machine.
#[derive(Debug)]
pub(crate) struct Regrouped {
    groups: Vec<Mutex<Vec<Cache>>>,
    /// The L3 group of each seat.
    group_of: Vec<usize>,
}

impl Regrouped {
    /// Creates the caches for threads in these seats; `None` on a machine without shared caches.
    pub(crate) fn new(machine: &Machine, seats: &Seats) -> Option<Self> {
        let of_groups = machine.caches.iter().filter(|level| level.scope == Scope::Group);
        let mut shared: Vec<&CacheLevel> = of_groups.collect();
        if shared.is_empty() {
            return None;
        }
        shared.sort_by_key(|level| level.level);
        let group_of = seats.groups();
        let most = group_of.iter().max().map_or(0, |most| most + 1);
        let caches = || shared.iter().map(|level| Cache::new(level)).collect();
        Some(Self { groups: (0..most).map(|_| Mutex::new(caches())).collect(), group_of })
    }

    /// Looks up an address that the thread's private caches lack, at a time; returns whether it would
    /// be present.
    pub(crate) fn access(&self, thread: usize, address: u64, now_ps: u64) -> bool {
        let group = self.group(thread).lock();
        group.iter().any(|cache| cache.request(address, false, now_ps).held)
    }

    /// Invalidates a thread's address, if present.
    pub(crate) fn lose(&self, thread: usize, address: u64) {
        self.group(thread).lock().iter().for_each(|cache| cache.lose(address));
    }

    fn group(&self, thread: usize) -> &Mutex<Vec<Cache>> {
        &self.groups[self.group_of[thread % self.group_of.len()]]
    }

    /// Invalidates all lines.
    pub(crate) fn clear(&self) {
        self.groups.iter().for_each(|group| group.lock().iter().for_each(Cache::clear));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::machine_of;

    #[test]
    fn lines_read_by_one_thread_are_there_for_those_of_other_nodes() {
        let regrouped = |more: &str| {
            let machine = "cpus=0.1.0.1,memory=1G.1G,distances=10.20/20.10,caches=1:4K:4:64";
            let machine = machine_of(&alloc::format!("{machine}:{more}"));
            let seats = Seats::on_one_node(&machine, &[0, 1, 2, 3]).unwrap();
            Regrouped::new(&machine, &seats)
        };
        let one = regrouped("group:5").unwrap();
        assert!(!one.access(0, 0x1000, 0));
        assert!(one.access(1, 0x1000, 0), "it is on the other node");
        one.lose(3, 0x1000);
        assert!(!one.access(1, 0x1000, 0), "it has left");
        one.clear();
        assert!(!one.access(1, 0x1000, 0));
        assert!(regrouped("cpu:5").is_none());
    }
}
