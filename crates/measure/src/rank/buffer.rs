//! A rank's memory.

use numalab_host::{Mapping, MemoryPolicy, Proof, prove_within};
use numalab_membench::Line;
use numalab_record::Pages;
use numalab_topology::{NodeId, NodeSet};

use crate::context::host_pages;
use crate::error::MeasureError;

/// Where a rank's memory comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemorySource {
    /// This node and no other, whatever the process's policy.
    Node(NodeId),
    /// The process's policy, which spreads it or may fall back.
    Policy(MemoryPolicy),
}

impl MemorySource {
    /// What a process's policy means for a rank whose cpu is nearest to `near`.
    #[must_use]
    pub fn of(policy: MemoryPolicy, near: NodeId) -> Self {
        match policy {
            MemoryPolicy::Local => Self::Node(near),
            MemoryPolicy::Bind(nodes) if nodes.len() == 1 => {
                Self::Node(nodes.first().unwrap_or(near))
            }
            policy => Self::Policy(policy),
        }
    }

    /// The nodes that its pages may lie on; none for any.
    fn expected(&self) -> NodeSet {
        match self {
            Self::Node(node) => NodeSet::from_iter([*node]),
            Self::Policy(MemoryPolicy::Preferred(_)) => NodeSet::new(),
            Self::Policy(policy) => policy.nodes(),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Node(node) => format!("bind:{node}"),
            Self::Policy(policy) => policy.to_string(),
        }
    }
}

/// A rank's memory, touched once by the rank.
#[derive(Debug)]
pub struct RankBuffer {
    mapping: Mapping,
    source: MemorySource,
    pages: Pages,
}

impl RankBuffer {
    /// Takes and touches the memory.
    ///
    /// # Errors
    /// [`MeasureError::Host`] if there is not enough, or not there.
    pub fn take(size_bytes: u64, pages: Pages, source: MemorySource) -> Result<Self, MeasureError> {
        let limit = numalab_host::MemoryLimit::read(&numalab_host::Root::live())?;
        let node = match source {
            MemorySource::Node(node) => Some(node),
            MemorySource::Policy(_) => None,
        };
        limit.check(size_bytes, node)?;
        let size = usize::try_from(size_bytes).unwrap_or(usize::MAX);
        let mut mapping = Mapping::new(size, host_pages(pages))?;
        if let Some(node) = node {
            mapping.bind(node)?;
        }
        mapping.populate()?;
        Ok(Self { mapping, source, pages })
    }

    /// Proves where all of it lies.
    ///
    /// # Errors
    /// [`MeasureError::Host`] if it lies elsewhere than it should.
    pub fn prove(&self) -> Result<Proof, MeasureError> {
        Ok(prove_within(self.mapping.span(), &self.source.expected())?)
    }

    /// The pages behind it.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.pages
    }

    /// Where it was asked from: `bind:0`, `interleave:0,1`.
    #[must_use]
    pub fn policy(&self) -> String {
        self.source.name()
    }

    /// Its first `size_bytes` as lines.
    pub(super) fn lines(&mut self, size_bytes: u64) -> Result<&mut [Line], MeasureError> {
        let lines = Line::slice_from_bytes(self.mapping.as_bytes_mut())?;
        let count = usize::try_from(size_bytes).unwrap_or(usize::MAX) / Line::SIZE_BYTES;
        let count = count.min(lines.len());
        Ok(&mut lines[..count])
    }
}
