//! Validation of a machine.

mod access;
mod caches;
mod cpus;
mod distances;
mod memory;

use alloc::vec::Vec;

use crate::finding::{Finding, Findings};
use crate::machine::Machine;

impl Machine {
    /// Returns all findings about the machine, in a fixed order. The codes:
    ///
    /// | code | severity | meaning |
    /// |---|---|---|
    /// | `nodes-unordered` | error | node ids not ascending, or repeated |
    /// | `cpus-unordered` | error | cpu ids not ascending, or repeated |
    /// | `node-empty` | warning | a node with neither cpus nor memory |
    /// | `cpu-without-node` | warning | an online cpu in no node |
    /// | `cpu-node-disagrees` | error | the cpu's node and the node's list of cpus disagree |
    /// | `l3-group-spans-nodes` | note | cpus of one L3 group on several nodes |
    /// | `core-spans-nodes` | error | SMT siblings on several nodes |
    /// | `core-spans-packages` | warning | SMT siblings in several packages |
    /// | `distance-size` | error | the matrix is not nodes x nodes |
    /// | `distance-missing` | warning | a distance is unknown |
    /// | `distance-below-10` | error | below the minimum of ACPI |
    /// | `distance-unreachable` | note | 255, which means unreachable |
    /// | `distance-diagonal` | error | a node is not at 10 from itself |
    /// | `distance-local-remote` | warning | another node at 10 |
    /// | `distance-asymmetric` | warning | the two directions differ |
    /// | `free-exceeds-memory` | warning | a node has more free memory than memory |
    /// | `pool-exceeds-memory` | warning | huge pages for which a node has no room |
    /// | `range-overlap` | error | two ranges share addresses; a warning if none is RAM |
    /// | `range-empty` | warning | a range of length 0 |
    /// | `range-end` | error | a range ends beyond 64 bits |
    /// | `range-node-unknown` | error | a range of a node that does not exist |
    /// | `access-node-unknown` | error | attributes of a node that does not exist |
    /// | `access-initiator-cpu-less` | warning | cpu accesses from a node without cpus |
    /// | `access-local-slower` | warning | a node's own memory slower than another's |
    /// | `access-order` | warning | nearer by distance, slower by latency |
    pub fn validate(&self) -> Vec<Finding> {
        let mut findings = Findings::default();
        cpus::check(self, &mut findings);
        distances::check(self, &mut findings);
        memory::check(self, &mut findings);
        access::check(self, &mut findings);
        findings.into_list()
    }
}
