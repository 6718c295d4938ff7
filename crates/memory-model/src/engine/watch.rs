//! What is kept of accesses for who follows a program.

use super::Engine;
use crate::one_node::OneNode;
use crate::outcome::Outcome;

impl Engine {
    /// The same, which watches too what shared caches would hold if all vCPUs were on one node.
    #[must_use]
    pub fn watching_one_node(mut self) -> Self {
        self.one_node = OneNode::new(&self.arguments.machine);
        self
    }

    /// How a vCPU's last access went.
    #[inline]
    pub fn outcome(&self, vcpu: usize) -> Outcome {
        self.vcpus[vcpu].last.get()
    }
}
