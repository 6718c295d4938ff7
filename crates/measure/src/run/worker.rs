//! One worker: pinned to its cpu, with memory on its node, and the proof of both.

use numalab_host::{Mapping, Pinned, Span, prove_span};
use numalab_record::{Pages, Placement, ProofMethod};
use numalab_topology::{CpuId, NodeId};

use crate::context::{MeasureContext, host_pages};
use crate::error::MeasureError;

/// Memory that will lie on `node`, not touched yet.
pub(crate) fn memory_bound_to(
    size_bytes: u64,
    pages: Pages,
    node: NodeId,
) -> Result<Mapping, MeasureError> {
    let limit = numalab_host::MemoryLimit::read(&numalab_host::Root::live())?;
    limit.check(size_bytes, Some(node))?;
    let size = usize::try_from(size_bytes).unwrap_or(usize::MAX);
    let mut mapping = Mapping::new(size, host_pages(pages))?;
    mapping.bind(node)?;
    Ok(mapping)
}

/// Memory on `node`, touched once, unless the user stops it.
pub(crate) fn memory_on(
    context: &MeasureContext,
    size_bytes: u64,
    pages: Pages,
    node: NodeId,
) -> Result<Mapping, MeasureError> {
    let mut mapping = memory_bound_to(size_bytes, pages, node)?;
    if mapping.populate_while(|| !context.interrupt.requested())? {
        Ok(mapping)
    } else {
        Err(MeasureError::Interrupted)
    }
}

/// Pins the calling thread to `cpu` until the guard is dropped.
pub(crate) fn pinned(cpu: CpuId) -> Result<Pinned, MeasureError> {
    Ok(numalab_host::pin(cpu)?)
}

/// Proves where the pinned worker is and where its memory lies.
pub(crate) fn prove_placement(
    context: &MeasureContext,
    pinned: &Pinned,
    span: Span,
    node: NodeId,
) -> Result<Placement, MeasureError> {
    pinned.verify()?;
    let proof = prove_span(span, node)?;
    let cpu_node = context.machine.cpu(pinned.cpu()).and_then(|cpu| cpu.node);
    Ok(Placement {
        cpu: pinned.cpu(),
        cpu_node: cpu_node.or(Some(pinned.node())),
        affinity: pinned.affinity().clone(),
        memory_node: node,
        address: proof.address,
        buffer_bytes: proof.buffer_bytes,
        method: match proof.method {
            numalab_host::ProofMethod::MovePages => ProofMethod::MovePages,
            numalab_host::ProofMethod::NumaMaps => ProofMethod::NumaMaps,
            numalab_host::ProofMethod::OnlyNode => ProofMethod::OnlyNode,
        },
        pages_checked: proof.pages_checked,
        pages_per_node: proof.pages_per_node,
        bytes_per_page_size: proof.bytes_per_page_size,
    })
}
