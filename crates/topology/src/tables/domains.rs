//! Mapping from proximity domains to nodes.

use alloc::vec::Vec;

use numalab_acpi::srat::Entry;
use numalab_acpi::{Located, MAX_DOMAINS, Srat};

use crate::id::{Id, NodeId, ProximityDomain};
use crate::node::Node;

/// Nodes numbered from 0 in the order in which Linux encounters their domains (`acpi_numa_init` in
/// `drivers/acpi/numa/srat.c`).
#[derive(Debug, Default)]
pub(super) struct Domains {
    /// Nodes sorted by domain.
    nodes: Vec<(u32, NodeId)>,
}

impl Domains {
    /// Collects the domains of enabled entries: those of processors and generic initiators in order
    /// of the table, then those of memory.
    pub(super) fn of(srat: &Srat<'_>) -> Self {
        let mut domains = Self::default();
        let is_memory = |entry: &Entry<'_>| matches!(entry, Entry::Memory(_));
        for memory in [false, true] {
            for Located { entry, .. } in srat.entries() {
                let maps = !matches!(entry, Entry::GenericPort(_) | Entry::GicIts(_));
                let turn = maps && is_memory(&entry) == memory;
                if let Some(domain) = entry.enabled_domain().filter(|_| turn) {
                    domains.add(srat.domain(domain));
                }
            }
        }
        domains
    }

    /// Returns the node of a domain, a new one if it was not encountered before; `None` for a
    /// domain that Linux does not accept.
    pub(super) fn add(&mut self, domain: u32) -> Option<NodeId> {
        let next = NodeId::from_number(u32::try_from(self.nodes.len()).ok()?);
        match self.place(domain) {
            Ok(place) => Some(self.nodes[place].1),
            Err(_) if domain >= MAX_DOMAINS => None,
            Err(place) => {
                self.nodes.insert(place, (domain, next));
                Some(next)
            }
        }
    }

    pub(super) fn node(&self, domain: u32) -> Option<NodeId> {
        self.place(domain).ok().map(|place| self.nodes[place].1)
    }

    fn place(&self, domain: u32) -> Result<usize, usize> {
        self.nodes.binary_search_by_key(&domain, |&(domain, _)| domain)
    }

    /// Returns a domain larger than all encountered ones.
    pub(super) fn unused(&self) -> Option<u32> {
        self.nodes.last().map_or(Some(0), |(domain, _)| domain.checked_add(1))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (ProximityDomain, NodeId)> + '_ {
        self.nodes.iter().map(|&(domain, node)| (ProximityDomain(domain), node))
    }
}

/// Returns the domain of a node: its proximity domain, or its id if it has none.
pub(super) fn domain_of(node: &Node) -> u32 {
    node.proximity_domain.map_or(node.id.0, |domain| domain.0)
}
