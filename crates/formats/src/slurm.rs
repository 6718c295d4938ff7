//! SLURM: lines of `slurm.conf(5)` and bindings for `srun(1)`.

use numalab_topology::{CpuId, Machine};

use crate::error::WriteError;
use crate::feature::{Carried, Feature};
use crate::regular::Ordered;

const FORMAT: &str = "a slurm.conf node line";

/// The features that a line represents.
pub const CARRIED: Carried = Carried {
    format: "a NodeName line",
    features: &[Feature::UnplacedCpus, Feature::Memory, Feature::Packages, Feature::Cores],
    but: &[Feature::Bytes],
};

/// Writes the line that describes such machines, as `slurmd -C` prints it; `name` can be a range
/// such as `nid[001-128]`.
///
/// # Errors
/// [`WriteError::Inexpressible`] if packages or cores differ in size, [`WriteError::Unknown`]
/// without cpus.
pub fn node_line(machine: &Machine, name: &str) -> Result<String, WriteError> {
    let ordered = Ordered::of(machine);
    let cpus = ordered.ids().len();
    if cpus == 0 {
        let what = "at least one cpu".to_owned();
        return Err(WriteError::Unknown { format: FORMAT, what });
    }
    let shape = ordered.shape_without_l3_groups().ok_or_else(|| WriteError::Inexpressible {
        format: FORMAT,
        what: "packages or cores of unequal size".to_owned(),
    })?;
    let mut line = format!(
        "NodeName={name} CPUs={cpus} Boards=1 SocketsPerBoard={} CoresPerSocket={} ThreadsPerCore={}",
        shape.packages,
        shape.l3_groups * shape.cores,
        shape.threads
    );
    // SLURM would schedule by the sum of a part.
    let is_known = machine.nodes.iter().all(|node| !node.memory_unknown);
    let memory_mib = machine.memory_bytes() >> 20;
    if memory_mib > 0 && is_known {
        line += &format!(" RealMemory={memory_mib}");
    }
    Ok(line)
}

/// Writes the option that binds the first rank to the first cpu, and so on. SLURM starts over if
/// there are more ranks than cpus in the list.
pub fn map_cpu(cpus: &[CpuId]) -> String {
    let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
    format!("--cpu-bind=map_cpu:{}", cpus.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_part_of_the_nodes_is_not_given_as_all() {
        let text = |size: &str| {
            format!(
                "node 0 cpus: 0\nnode 0 size: 1000 MB\nnode 1 cpus: 1\nnode 1 size: {size}\n\
                 node distances:\nnode 0 1\n0: 10 20\n1: 20 10\n"
            )
        };
        let line = |size: &str| {
            let mut machine = crate::numactl::read(&text(size)).unwrap().value;
            for (core, cpu) in (0u32..).zip(&mut machine.cpus) {
                (cpu.core, cpu.package) = (Some(core), Some(core));
            }
            node_line(&machine, "n1").unwrap()
        };
        assert!(line("1000 MB").ends_with(" RealMemory=2000"), "{}", line("1000 MB"));
        assert!(!line("<not available>").contains("RealMemory"));
    }
}
