//! The Linux command line: `numa=fake=`, with distances after a colon, which its documentation
//! omits but `numa_emulation.c` parses (tried on Linux 6.1).

use numalab_topology::{EmulatedNodes, EmulationSpec};

use crate::error::WriteError;
use crate::feature::{Carried, Feature};
use crate::size::format_bytes;

const FORMAT: &str = "numa=fake=";

/// The features that the option can express.
pub const CARRIED: Carried = Carried {
    format: "numa=fake=",
    features: &[Feature::Nodes, Feature::Memory, Feature::Distances],
    but: &[Feature::PartialDistances, Feature::Bytes],
};

/// Writes the option that makes Linux emulate these nodes (x86, a kernel with `CONFIG_NUMA_EMU`). A
/// list of equal sizes becomes that size, and Linux makes as many such nodes as fit into the
/// machine; it decides itself which cpus are near each node.
///
/// # Errors
/// [`WriteError::Inexpressible`] for nodes of different sizes, nodes without memory, or given
/// numbers of cpus.
pub fn numa_fake(spec: &EmulationSpec) -> Result<String, WriteError> {
    let inexpressible =
        |what: &str| WriteError::Inexpressible { format: FORMAT, what: what.to_owned() };
    let nodes = match &spec.nodes {
        EmulatedNodes::Equal(count) => count.to_string(),
        EmulatedNodes::Split(ways) => format!("{ways}U"),
        EmulatedNodes::Listed(nodes) => {
            let first = nodes.first().ok_or_else(|| inexpressible("no nodes"))?;
            if nodes.iter().any(|node| node.memory_bytes != first.memory_bytes) {
                return Err(inexpressible("nodes of different sizes"));
            }
            if first.memory_bytes == 0 || first.memory_bytes % (1 << 20) != 0 {
                return Err(inexpressible("a node with a size that is not in whole MiB"));
            }
            if nodes.iter().any(|node| node.cpus.is_some()) {
                return Err(inexpressible("the cpus of a node"));
            }
            format_bytes(first.memory_bytes)
        }
    };
    let Some(distances) = &spec.distances else {
        return Ok(format!("numa=fake={nodes}"));
    };
    let count = distances.len();
    let values = (0..count).flat_map(|from| (0..count).map(move |to| distances.get(from, to)));
    let values: Option<Vec<String>> =
        values.map(|value| value.map(|value| value.to_string())).collect();
    let values = values.ok_or_else(|| inexpressible("an unknown distance"))?;
    Ok(format!("numa=fake={nodes}:{}", values.join(",")))
}
