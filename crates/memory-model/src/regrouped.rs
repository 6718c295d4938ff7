//! What shared caches would hold if vCPUs were on other cpus: beside the machine's own, so that one
//! run tells what another placement of threads would change in them.

use alloc::vec::Vec;

use spin::Mutex;

use crate::cache::Cache;
use crate::machine::{CacheLevel, Machine, Scope};

/// Shared caches, of other vCPUs than on the machine.
#[derive(Debug)]
pub(crate) struct Regrouped {
    groups: Vec<Mutex<Vec<Cache>>>,
    /// The group that each vCPU would have.
    group_of: Vec<usize>,
}

impl Regrouped {
    /// With vCPUs in these groups; none on a machine without shared caches.
    pub(crate) fn new(machine: &Machine, group_of: Vec<usize>) -> Option<Self> {
        let of_groups = machine.caches.iter().filter(|level| level.scope == Scope::Group);
        let mut shared: Vec<&CacheLevel> = of_groups.collect();
        if shared.is_empty() {
            return None;
        }
        shared.sort_by_key(|level| level.level);
        let most = group_of.iter().max().map_or(0, |most| most + 1);
        let caches = || shared.iter().map(|level| Cache::new(level)).collect();
        Some(Self { groups: (0..most).map(|_| Mutex::new(caches())).collect(), group_of })
    }

    /// Those of the first vCPU's node, whose cpus the vCPUs would take in turn; none on a machine of
    /// one node, or without shared caches.
    pub(crate) fn on_one_node(machine: &Machine) -> Option<Self> {
        let node = *machine.cpus.first()?;
        if machine.cpus.iter().all(|of| *of == node) {
            return None;
        }
        let all = machine.groups();
        let cpus = machine.cpus.iter().zip(&all).filter(|(of, _)| **of == node);
        let of_node: Vec<usize> = cpus.map(|(_, group)| *group).collect();
        Self::new(machine, (0..all.len()).map(|vcpu| of_node[vcpu % of_node.len()]).collect())
    }

    /// Looks a vCPU's address up that its own caches do not have; whether it would be there.
    pub(crate) fn access(&self, vcpu: usize, address: u64) -> bool {
        let group = self.groups[self.group_of[vcpu]].lock();
        group.iter().position(|cache| cache.access(address)).is_some()
    }

    /// Loses a vCPU's address, if it is there.
    pub(crate) fn lose(&self, vcpu: usize, address: u64) {
        self.groups[self.group_of[vcpu]].lock().iter().for_each(|cache| cache.lose(address));
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
        let one = Regrouped::on_one_node(&machine).unwrap();
        assert!(!one.access(0, 0x1000));
        assert!(one.access(1, 0x1000), "it is on the other node");
        one.lose(3, 0x1000);
        assert!(!one.access(1, 0x1000), "it has left");
        one.clear();
        assert!(!one.access(1, 0x1000));
        let own = machine_of("cpus=0.1,memory=1G.1G,distances=10.20/20.10,caches=1:4K:4:64:cpu:5");
        assert!(Regrouped::on_one_node(&own).is_none());
    }
}
