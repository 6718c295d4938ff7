//! Checks pins, placement and proof on each node of this machine, for numalab's self-test.

use numalab_host::{
    Mapping, ProofError, base_pages, bound_and_touched, page_size_bytes, pin, prove, prove_within,
};
use numalab_record::Pages;
use numalab_record::self_test::{CheckFound, NodePages};
use numalab_topology::{CpuId, CpuSet, Machine, NodeId, NodeSet};

use crate::error::MeasureError;

/// Memory on each node: two of the largest pages that are checked.
const SIZE_BYTES: usize = 4 << 20;

/// Pins this thread to each cpu in turn.
///
/// # Errors
/// [`MeasureError::Host`] if a pin is refused, or the thread is elsewhere afterwards.
pub fn pinned_everywhere(machine: &Machine, cpus: &[CpuId]) -> Result<CheckFound, MeasureError> {
    let (mut right, mut wrong) = (CpuSet::new(), CpuSet::new());
    for &cpu in cpus {
        let pinned = pin(cpu)?;
        pinned.verify()?;
        let node = machine.cpu(cpu).and_then(|cpu| cpu.node);
        let is_right = node.is_none_or(|node| node == pinned.node());
        if is_right { &mut right } else { &mut wrong }.insert(cpu);
    }
    Ok(CheckFound::Pins { right, wrong })
}

/// Binds memory in these pages to each node.
///
/// # Errors
/// [`MeasureError::Host`] if the memory, the policy or its proof is refused.
pub fn bound_to_each(nodes: &[NodeId], pages: Pages) -> Result<CheckFound, MeasureError> {
    let on = |&node: &NodeId| pages_on(&bound_and_touched(SIZE_BYTES, pages, node)?, node);
    Ok(CheckFound::Pages { nodes: nodes.iter().map(on).collect::<Result<_, _>>()? })
}

/// Touches memory without a policy from each of these cpus.
///
/// # Errors
/// The errors of [`bound_to_each`], and a refused pin.
pub fn touched_by_each(cpus: &[CpuId]) -> Result<CheckFound, MeasureError> {
    let on = |&cpu: &CpuId| {
        let pinned = pin(cpu)?;
        let mut mapping = Mapping::new(SIZE_BYTES, base_pages())?;
        mapping.populate()?;
        pages_on(&mapping, pinned.node())
    };
    Ok(CheckFound::Pages { nodes: cpus.iter().map(on).collect::<Result<_, _>>()? })
}

/// Asks for the proof that memory of one node is on another, which must fail.
///
/// # Errors
/// As [`bound_to_each`].
pub fn claimed_elsewhere(node: NodeId, claimed: NodeId) -> Result<CheckFound, MeasureError> {
    let mapping = bound_and_touched(SIZE_BYTES, base_pages(), node)?;
    let (pages, refused) = match prove(&mapping, claimed) {
        Ok(proof) => (proof.pages_checked, 0),
        Err(ProofError::WrongNode { checked, misplaced, .. }) => (checked, misplaced),
        Err(error) => return Err(error.into()),
    };
    Ok(CheckFound::Claim { node, claimed, pages, refused })
}

fn pages_on(mapping: &Mapping, node: NodeId) -> Result<NodePages, MeasureError> {
    let proof = prove_within(mapping.span(), &NodeSet::new())?;
    proof.has_pages(mapping.pages())?;
    let on_node = proof.pages_per_node.get(&node).copied().unwrap_or_default();
    let usual = || page_size_bytes(mapping.pages());
    let page_bytes = proof.bytes_per_page_size.keys().next().copied().unwrap_or_else(usual);
    Ok(NodePages { node, page_bytes, pages: proof.pages_checked, on_node })
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_host::{Root, read_machine};

    #[test]
    fn every_cpu_and_node_of_this_machine_is_as_the_kernel_says() {
        let machine = read_machine(&Root::live()).unwrap().machine;
        let scope = crate::scope::Scope::new(&machine, None, None).unwrap();
        let found = pinned_everywhere(&machine, &scope.cpus).unwrap();
        let all = scope.cpus.iter().copied().collect();
        assert_eq!(found, CheckFound::Pins { right: all, wrong: CpuSet::new() });
        let bound = bound_to_each(&scope.nodes, base_pages()).unwrap();
        for found in [bound, touched_by_each(&scope.cpus[..1]).unwrap()] {
            let CheckFound::Pages { nodes } = found else { panic!("{found:?}") };
            assert!(nodes.iter().all(|node| (node.pages, node.on_node) == (1024, 1024)));
        }
    }

    #[test]
    fn a_claim_about_a_node_that_has_none_of_the_pages_is_refused() {
        let machine = read_machine(&Root::live()).unwrap().machine;
        let node = crate::scope::Scope::new(&machine, None, None).unwrap().nodes[0];
        let claimed = NodeId(1000);
        let found = claimed_elsewhere(node, claimed).unwrap();
        assert_eq!(found, CheckFound::Claim { node, claimed, pages: 1024, refused: 1024 });
    }
}
