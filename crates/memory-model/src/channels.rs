//! The ways to memory: what stands in front of each node's memory and on each link. Each has its own
//! lock, so that vCPUs wait for one another only where their lines meet.

use alloc::vec::Vec;

use spin::Mutex;

/// Meters or queues by position: of the nodes, and of the links from a vCPU's node to a memory's.
#[derive(Debug)]
pub(crate) struct Channels<T> {
    nodes: Vec<Option<Mutex<T>>>,
    links: Vec<Vec<Option<Mutex<T>>>>,
}

impl<T> Channels<T> {
    /// Creates the channels of a machine from its figures of nodes and links, `None` where there are
    /// none; `None` if no channel is limited.
    pub(crate) fn new<F>(
        nodes: Option<&Vec<F>>,
        links: Option<&Vec<Vec<F>>>,
        channel: impl Fn(&F) -> Option<T>,
    ) -> Option<Self> {
        let row = |row: &Vec<F>| row.iter().map(|of| channel(of).map(Mutex::new)).collect();
        let nodes: Vec<_> = nodes.map_or_else(Vec::new, row);
        let links: Vec<Vec<_>> = links.map_or_else(Vec::new, |rows| rows.iter().map(row).collect());
        let is_limited = nodes.iter().chain(links.iter().flatten()).any(Option::is_some);
        is_limited.then_some(Self { nodes, links })
    }

    /// Asks the channels between a vCPU of node `from` and the memory of node `to`; returns the larger
    /// answer: a path is a pipeline, and a link is measured from end to end.
    #[inline]
    pub(crate) fn most(&self, (from, to): (usize, usize), ask: impl Fn(&mut T) -> u64) -> u64 {
        let of = |channel: Option<&Option<Mutex<T>>>| {
            channel.and_then(Option::as_ref).map_or(0, |channel| ask(&mut channel.lock()))
        };
        let link = of(self.links.get(from).and_then(|row| row.get(to)));
        link.max(of(self.nodes.get(to)))
    }

    /// Applies a change to all channels.
    pub(crate) fn each(&self, change: impl Fn(&mut T)) {
        let all = self.nodes.iter().chain(self.links.iter().flatten()).flatten();
        all.for_each(|channel| change(&mut channel.lock()));
    }
}
