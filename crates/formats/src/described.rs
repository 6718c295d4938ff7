//! A machine described by a few numbers: uniform, with emulated nodes, or a part of a known one.

use numalab_topology::{
    EmulatedNodes, EmulationError, EmulationSpec, Machine, UniformError, UniformMachine,
};

use crate::machine_toml::scaled;

/// Default memory of an emulated node, in bytes.
const BYTES_PER_NODE: u64 = 1 << 30;

/// Reason why numbers do not describe a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "fields of errors that their names explain")]
pub enum DescribedError {
    /// A uniform machine cannot have this number of cpus.
    #[error("{cpus} cpus: {error}")]
    Cpus { cpus: u32, error: UniformError },
    /// The emulated nodes do not fit the machine.
    #[error(transparent)]
    Nodes(#[from] EmulationError),
    /// The memory of the nodes is given twice, with different sums.
    #[error(
        "expected nodes with the machine's {given_bytes} bytes of memory in all, found {listed_bytes}"
    )]
    Memory { given_bytes: u64, listed_bytes: u64 },
    /// The cpus of a part of a known machine do not divide evenly among its nodes.
    #[error("{cpus} cpus: expected a multiple of {nodes}, the nodes with cpus")]
    Uneven { cpus: u32, nodes: usize },
}

/// Returns a machine with the nodes of `spec`, or with one node. Without `memory_bytes`, memory is
/// what the nodes list, or 1 GiB for each.
///
/// # Errors
/// [`DescribedError`] if the numbers are not consistent.
pub fn uniform(
    spec: Option<&EmulationSpec>,
    cpus: u32,
    memory_bytes: Option<u64>,
) -> Result<Machine, DescribedError> {
    let (nodes, of_nodes) = match spec.map(|spec| &spec.nodes) {
        None => (1, BYTES_PER_NODE),
        Some(EmulatedNodes::Equal(nodes) | EmulatedNodes::Split(nodes)) => {
            (*nodes, u64::try_from(*nodes).unwrap_or(u64::MAX).saturating_mul(BYTES_PER_NODE))
        }
        Some(EmulatedNodes::Listed(nodes)) => {
            let sizes = nodes.iter().map(|node| node.memory_bytes);
            let listed_bytes = sizes.fold(0, u64::saturating_add);
            if let Some(given_bytes) = memory_bytes.filter(|given| *given != listed_bytes) {
                return Err(DescribedError::Memory { given_bytes, listed_bytes });
            }
            (nodes.len(), listed_bytes)
        }
    };
    let memory_bytes = memory_bytes.unwrap_or(of_nodes);
    let packages = packages_of(spec, nodes, cpus);
    let base = UniformMachine::of_packages(packages, cpus, memory_bytes).build();
    let base = base.map_err(|error| DescribedError::Cpus { cpus, error })?;
    match spec {
        Some(spec) => Ok(spec.emulate(&base)?),
        None => Ok(base),
    }
}

/// Returns one package per node if all nodes get the same cpus, as in most real machines: operating
/// systems warn of packages or caches that span nodes.
fn packages_of(spec: Option<&EmulationSpec>, nodes: usize, cpus: u32) -> u32 {
    let explicit = spec.is_some_and(|spec| match &spec.nodes {
        EmulatedNodes::Listed(nodes) => nodes.iter().any(|node| node.cpus.is_some()),
        EmulatedNodes::Equal(_) | EmulatedNodes::Split(_) => false,
    });
    let nodes = u32::try_from(nodes).unwrap_or(u32::MAX);
    let even = !explicit && nodes > 0 && nodes <= cpus && cpus.is_multiple_of(nodes);
    if even { nodes } else { 1 }
}

/// Returns the part of a known machine with these cpus, or with this usual number on each node, and
/// with this total memory.
///
/// # Errors
/// [`DescribedError::Uneven`] if the nodes cannot have equal shares.
pub fn part_of(
    known: &Machine,
    cpus: Option<u32>,
    usual_per_node: usize,
    memory_bytes: u64,
) -> Result<Machine, DescribedError> {
    let nodes = known.cpu_nodes().len().max(1);
    let per_node = match cpus.map(|cpus| (cpus, usize::try_from(cpus).unwrap_or(usize::MAX))) {
        None => usual_per_node,
        Some((_, count)) if count > 0 && count.is_multiple_of(nodes) => count / nodes,
        Some((cpus, _)) => return Err(DescribedError::Uneven { cpus, nodes }),
    };
    Ok(scaled(known, per_node, memory_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulation;

    #[test]
    fn memory_that_contradicts_the_listed_nodes_is_refused() {
        let spec = emulation::parse("1G,1G", None).unwrap();
        let of = |gib: u64| uniform(Some(&spec), 2, Some(gib << 30));
        assert_eq!(of(2).unwrap().memory_bytes(), 2 << 30);
        for gib in [1, 3] {
            let (given_bytes, listed_bytes) = (gib << 30, 2 << 30);
            assert_eq!(of(gib), Err(DescribedError::Memory { given_bytes, listed_bytes }));
        }
    }
}
