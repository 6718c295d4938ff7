//! A worker's memory, and the proof that worker and memory are where they should be.

use numalab_host::{Mapping, MemoryLimit, Pinned, Root, Span, prove_within};
use numalab_membench::Line;
use numalab_record::{Pages, Placement};
use numalab_topology::{CpuId, MemoryPolicy, NodeId, NodeSet};

use crate::context::MeasureContext;
use crate::error::MeasureError;

/// The source of a worker's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemorySource {
    /// This node and no other, whatever the process's policy is.
    Node(NodeId),
    /// The process's policy, which can spread memory or fall back to other nodes.
    Policy(MemoryPolicy),
}

impl MemorySource {
    /// Returns the meaning of a process's policy for a worker whose nearest node is `near`.
    pub fn of(policy: MemoryPolicy, near: NodeId) -> Self {
        match policy {
            MemoryPolicy::Local => Self::Node(near),
            // A policy with a single node is a binding, which can be proven strictly.
            MemoryPolicy::Bind(nodes) if nodes.len() == 1 => {
                Self::Node(nodes.first().unwrap_or(near))
            }
            policy => Self::Policy(policy),
        }
    }

    /// Returns the nodes on which its pages may be; an empty set allows any.
    fn expected(&self) -> NodeSet {
        match self {
            Self::Node(node) => NodeSet::from_iter([*node]),
            // Both fall back to other nodes when theirs are full, so every placement is valid.
            Self::Policy(MemoryPolicy::Preferred(_)) => NodeSet::new(),
            Self::Policy(policy) => policy.nodes(),
        }
    }

    /// Returns the name in documents: `bind:0`, `interleave:0,1`.
    pub fn name(&self) -> String {
        match self {
            Self::Node(node) => MemoryPolicy::bound_to(*node).to_string(),
            Self::Policy(policy) => policy.to_string(),
        }
    }
}

#[derive(Debug)]
pub struct Buffer {
    mapping: Mapping,
    source: MemorySource,
}

impl Buffer {
    /// Maps memory that will come from `source`, without touching it.
    ///
    /// # Errors
    /// [`MeasureError::Host`] if there is not enough memory, or the node does not exist.
    pub(crate) fn untouched(
        size_bytes: u64,
        pages: Pages,
        source: MemorySource,
    ) -> Result<Self, MeasureError> {
        let node = match source {
            MemorySource::Node(node) => Some(node),
            MemorySource::Policy(_) => None,
        };
        check_memory(size_bytes, pages, node)?;
        let size = usize::try_from(size_bytes).unwrap_or(usize::MAX);
        let mut mapping = Mapping::new(size, pages)?;
        if let Some(node) = node {
            // Bound before the first touch, which then places pages without moving them.
            mapping.bind(node)?;
        }
        Ok(Self { mapping, source })
    }

    /// Maps memory from `source` and touches it once from the calling thread.
    ///
    /// # Errors
    /// [`MeasureError::Host`] if there is not enough memory, or the node does not exist;
    /// [`MeasureError::Interrupted`] if the user stops it.
    pub fn touched(
        context: &MeasureContext,
        size_bytes: u64,
        pages: Pages,
        source: MemorySource,
    ) -> Result<Self, MeasureError> {
        let mut buffer = Self::untouched(size_bytes, pages, source)?;
        if buffer.mapping.populate_while(|| !context.interrupt.requested())? {
            Ok(buffer)
        } else {
            Err(MeasureError::Interrupted)
        }
    }

    /// Returns the expected placement.
    pub fn claim(&self) -> MemoryClaim {
        MemoryClaim { span: self.mapping.span(), source: self.source.clone() }
    }

    /// Returns the first `size_bytes` as cache lines.
    ///
    /// # Errors
    /// [`MeasureError::Memory`] if the mapping is not suitable for lines.
    pub fn lines(&mut self, size_bytes: u64) -> Result<&mut [Line], MeasureError> {
        let lines = Line::slice_from_bytes(self.mapping.as_bytes_mut())?;
        let count = usize::try_from(size_bytes).unwrap_or(usize::MAX) / Line::SIZE_BYTES;
        let count = count.min(lines.len());
        Ok(&mut lines[..count])
    }
}

/// Checks whether `bytes`, the sum of all buffers alive at once, may be allocated: if memory runs
/// out, the kernel ends the whole run.
///
/// # Errors
/// [`MeasureError::Host`] if this process may not use this much memory.
pub fn check_memory(bytes: u64, pages: Pages, node: Option<NodeId>) -> Result<(), MeasureError> {
    // Reserved huge pages are counted by their pools.
    if pages != Pages::Transparent && !pages.is_small() {
        return Ok(());
    }
    Ok(MemoryLimit::read(&Root::live())?.check(bytes, node)?)
}

/// Pins the calling thread to `cpu` until the guard is dropped.
pub(crate) fn pinned(cpu: CpuId) -> Result<Pinned, MeasureError> {
    Ok(numalab_host::pin(cpu)?)
}

/// The expected placement of a buffer, which can be proven while the buffer is borrowed.
#[derive(Clone, Debug)]
pub struct MemoryClaim {
    pub(crate) span: Span,
    source: MemorySource,
}

impl MemoryClaim {
    /// Proves the placement of the pinned worker and of its memory.
    ///
    /// # Errors
    /// [`MeasureError::Host`] if either is elsewhere.
    pub fn prove(
        &self,
        context: &MeasureContext,
        pinned: &Pinned,
    ) -> Result<Placement, MeasureError> {
        // Verified with the memory: taskset or a cpuset can have moved the thread since it was
        // pinned.
        pinned.verify()?;
        let proof = prove_within(self.span, &self.source.expected())?;
        let cpu_node = context.machine.cpu(pinned.cpu()).and_then(|cpu| cpu.node);
        // Among nodes with equally many pages the lowest id wins, so that the result is
        // reproducible.
        let by_pages = |(node, pages): &(&NodeId, &u64)| (**pages, u32::MAX - node.0);
        let most = proof.pages_per_node.iter().max_by_key(by_pages).map(|(&node, _)| node);
        Ok(Placement {
            cpu: pinned.cpu(),
            cpu_node: cpu_node.or(Some(pinned.node())),
            affinity: pinned.affinity().clone(),
            memory_node: match self.source {
                MemorySource::Node(node) => node,
                MemorySource::Policy(_) => most.unwrap_or_default(),
            },
            address: proof.address,
            buffer_bytes: proof.buffer_bytes,
            method: proof.method,
            pages_checked: proof.pages_checked,
            pages_per_node: proof.pages_per_node,
            bytes_per_page_size: proof.bytes_per_page_size,
            isa: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_memory_than_there_is_is_refused_and_reserved_pages_are_left_to_their_pool() {
        let all = |pages| check_memory(u64::MAX, pages, None);
        for pages in [Pages::BASE_4K, Pages::Transparent] {
            let said = all(pages).unwrap_err().to_string();
            assert!(said.contains("may be used"), "{said}");
        }
        for pages in [Pages::HUGE_2M, Pages::HUGE_1G] {
            all(pages).unwrap();
        }
    }
}
