//! Simulates shared caches with threads on other cpus in addition to the machine's own, so that one
//! run shows the effect of another placement of threads.

use alloc::vec::Vec;

use spin::Mutex;

use crate::cache::Cache;
use crate::counters::Figure;
use crate::machine::{CacheLevel, Machine, Scope};
use crate::seats::Seats;

/// Shared caches used by different threads than on the machine.
#[derive(Debug)]
pub(crate) struct Regrouped {
    groups: Vec<Mutex<Vec<Cache>>>,
    /// The L3 group of each seat.
    group_of: Vec<usize>,
    /// The only L3 group of the machine that was used so far, and the only one in these caches
    /// ([`pair`]): both have the same lines, which are simulated in the machine's caches alone.
    alike: Figure,
}

/// No group was used so far; several groups were used.
const UNUSED: u64 = 0;
const DIFFERENT: u64 = u64::MAX;

/// Returns a number for a pair of an L3 group of the machine and one of the regrouped caches.
fn pair(actual: usize, here: usize) -> u64 {
    (actual as u64) << 32 | (here as u64 + 1)
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
        let groups = (0..most).map(|_| Mutex::new(caches())).collect();
        Some(Self { groups, group_of, alike: Figure::default() })
    }

    /// Returns true if the thread, which runs in this L3 group of the machine, finds the same lines
    /// in both. Called before each change of these caches.
    #[inline]
    pub(crate) fn is_alike(&self, thread: usize, actual: usize, of: &[Mutex<Vec<Cache>>]) -> bool {
        let used = pair(actual, self.group_of[thread % self.group_of.len()]);
        match self.alike.get() {
            DIFFERENT => false,
            UNUSED => {
                self.alike.set(used);
                true
            }
            alike => alike == used || self.differs(alike, of),
        }
    }

    /// Continues with a copy of the lines of the caches that have been alike so far; returns false.
    #[cold]
    fn differs(&self, alike: u64, of: &[Mutex<Vec<Cache>>]) -> bool {
        let find = |&(at, here): &(usize, usize)| pair(at, here) == alike;
        let all = (0..of.len()).flat_map(|at| (0..self.groups.len()).map(move |here| (at, here)));
        if let Some((at, here)) = all.into_iter().find(find) {
            let (from, to) = (of[at].lock(), self.groups[here].lock());
            to.iter().zip(from.iter()).for_each(|(to, from)| to.copy(from));
        }
        self.alike.set(DIFFERENT);
        false
    }

    /// Looks up an address that the thread's private caches lack, at this time; returns whether the
    /// line would be present.
    pub(crate) fn access(&self, thread: usize, address: u64, now_ps: u64) -> bool {
        let group = self.group(thread).lock();
        group.iter().any(|cache| cache.request(address, false, now_ps).held)
    }

    /// Invalidates the line of a thread's address, if present.
    pub(crate) fn lose(&self, thread: usize, address: u64) {
        Cache::lose_all(self.group(thread).lock().iter(), address);
    }

    fn group(&self, thread: usize) -> &Mutex<Vec<Cache>> {
        &self.groups[self.group_of[thread % self.group_of.len()]]
    }

    /// Invalidates all lines.
    pub(crate) fn clear(&self) {
        self.groups.iter().for_each(|group| group.lock().iter().for_each(Cache::clear));
        self.alike.set(UNUSED);
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

    #[test]
    fn caches_are_like_those_of_the_machine_until_a_second_group_is_used() {
        let machine = "cpus=0.1.0.1,memory=1G.1G,distances=10.20/20.10,caches=1:4K:4:64:group:5";
        let machine = machine_of(machine);
        let seats = Seats::on_one_node(&machine, &[0, 1, 2, 3]).unwrap();
        let one = Regrouped::new(&machine, &seats).unwrap();
        let caches = || Mutex::new(machine.caches.iter().map(Cache::new).collect::<Vec<_>>());
        let shared = [caches(), caches()];
        let access = |thread: usize, group: usize, address| {
            let is_alike = one.is_alike(thread, group, &shared);
            let found = shared[group].lock()[0].access(address);
            if is_alike { found } else { one.access(thread, address, 0) }
        };
        assert!(!access(0, 1, 0x1000) && access(0, 1, 0x1000));
        assert!(one.groups.iter().all(|group| !group.lock()[0].holds(0x1000)));
        assert!(access(1, 0, 0x1000), "the other thread's line");
        assert!(!access(1, 0, 0x2000) && access(0, 1, 0x2000) && access(0, 1, 0x1000));
        one.clear();
        assert!(one.is_alike(1, 0, &shared));
    }
}
