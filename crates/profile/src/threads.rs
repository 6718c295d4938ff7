//! A program's threads: their names, the nodes of their cpus, and their cpu time.

use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeenThread {
    pub name: Option<String>,
    /// Cpu time in nanoseconds since it was first read.
    pub busy_ns: u64,
    /// Cpu time in nanoseconds at the first read.
    first_ns: Option<u64>,
    /// Number of times that the thread was seen on cpus of each node.
    by_node: BTreeMap<u32, u64>,
}

impl SeenThread {
    /// Returns the node on which the thread was seen most often.
    pub(crate) fn node(&self) -> Option<u32> {
        self.by_node.iter().max_by_key(|(_, count)| **count).map(|(node, _)| *node)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Threads {
    by_number: BTreeMap<u32, SeenThread>,
}

impl Threads {
    /// Records that a thread was on a cpu of this node.
    pub(crate) fn seen(&mut self, thread: u32, node: u32) {
        *self.by_number.entry(thread).or_default().by_node.entry(node).or_default() += 1;
    }

    pub(crate) fn named(&mut self, thread: u32, name: &str) {
        self.by_number.entry(thread).or_default().name = Some(name.to_owned());
    }

    /// Records a thread's total cpu time. If `whole`, all of it counts, as for a thread that began
    /// while it was watched.
    pub(crate) fn ran(&mut self, thread: u32, all_ns: u64, whole: bool) {
        let seen = self.by_number.entry(thread).or_default();
        let first = *seen.first_ns.get_or_insert(if whole { 0 } else { all_ns });
        seen.busy_ns = all_ns.saturating_sub(first);
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, &SeenThread)> {
        self.by_number.iter().map(|(thread, seen)| (*thread, seen))
    }

    /// Returns the cpu time of all threads in nanoseconds.
    pub(crate) fn busy_ns(&self) -> u64 {
        self.by_number.values().map(|seen| seen.busy_ns).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_ran_before_counts_from_its_first_read() {
        let mut threads = Threads::default();
        threads.ran(7, 1000, false);
        threads.ran(7, 1500, false);
        threads.ran(8, 400, true);
        for node in [1, 0, 1] {
            threads.seen(7, node);
        }
        let found: Vec<_> = threads.all().map(|(_, seen)| (seen.busy_ns, seen.node())).collect();
        assert_eq!(found, [(500, Some(1)), (400, None)]);
        assert_eq!(threads.busy_ns(), 900);
    }
}
