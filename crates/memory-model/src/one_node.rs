//! What shared caches would hold if all vCPUs were on one node: beside the machine's own, so that
//! one run tells what binding would change in them.

use alloc::vec::Vec;

use spin::Mutex;

use crate::cache::Cache;
use crate::machine::{CacheLevel, Machine, Scope};

/// The shared caches of one node, for all vCPUs.
#[derive(Debug)]
pub(crate) struct OneNode {
    groups: Vec<Mutex<Vec<Cache>>>,
    /// The group that each vCPU would have.
    group_of: Vec<usize>,
}

impl OneNode {
    /// Those of the first vCPU's node, whose cpus the vCPUs would take in turn; none on a machine of
    /// one node, or without shared caches.
    pub(crate) fn new(machine: &Machine) -> Option<Self> {
        let of_groups = machine.caches.iter().filter(|level| level.scope == Scope::Group);
        let mut shared: Vec<&CacheLevel> = of_groups.collect();
        shared.sort_by_key(|level| level.level);
        let node = *machine.cpus.first()?;
        if shared.is_empty() || machine.cpus.iter().all(|of| *of == node) {
            return None;
        }
        let all = machine.groups();
        let cpus = machine.cpus.iter().zip(&all).filter(|(of, _)| **of == node);
        let of_node: Vec<usize> = cpus.map(|(_, group)| *group).collect();
        let most = of_node.iter().max().map_or(0, |most| most + 1);
        let caches = || shared.iter().map(|level| Cache::new(level)).collect();
        Some(Self {
            groups: (0..most).map(|_| Mutex::new(caches())).collect(),
            group_of: (0..all.len()).map(|vcpu| of_node[vcpu % of_node.len()]).collect(),
        })
    }

    /// Looks a vCPU's address up that its own caches do not have; whether it would be there.
    pub(crate) fn access(&self, vcpu: usize, address: u64) -> bool {
        let group = self.groups[self.group_of[vcpu]].lock();
        group.iter().position(|cache| cache.access(address)).is_some()
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        self.groups.iter().for_each(|group| group.lock().iter().for_each(Cache::clear));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::machine_of;

    #[test]
    fn what_one_vcpu_read_is_there_for_those_of_other_nodes() {
        let machine =
            machine_of("cpus=0.1.0.1,memory=1G.1G,distances=10.20/20.10,caches=1:4K:4:64:group:5");
        let one = OneNode::new(&machine).unwrap();
        assert!(!one.access(0, 0x1000));
        assert!(one.access(1, 0x1000), "it is on the other node");
        one.clear();
        assert!(!one.access(1, 0x1000));
        let own = machine_of("cpus=0.1,memory=1G.1G,distances=10.20/20.10,caches=1:4K:4:64:cpu:5");
        assert!(OneNode::new(&own).is_none());
    }
}
