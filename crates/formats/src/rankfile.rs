//! Rankfiles of Open MPI 4 (`mpirun(1)`, `--rankfile`).

use std::fmt::Write as _;

use numalab_topology::{CpuGroup, CpuId, Machine};

use crate::error::WriteError;
use crate::feature::{Carried, Feature};

const FORMAT: &str = "a rankfile";

/// The features that a rankfile represents.
pub const CARRIED: Carried = Carried {
    format: "a rankfile",
    features: &[Feature::UnplacedCpus, Feature::Packages, Feature::Cores, Feature::Allowed],
    but: &[Feature::Isolated],
};

/// Writes a line for each rank: the first is bound to the core of the first cpu, and so on. A slot
/// is `package:core`, both counted in order of cpus as hwloc does, because Open MPI takes a lone
/// number for a logical cpu, which is not the system's number.
///
/// # Errors
/// [`WriteError::Unknown`] if the package or core of a cpu is not known.
pub fn write(machine: &Machine, host: &str, cpus: &[CpuId]) -> Result<String, WriteError> {
    // hwloc counts only online objects.
    let machine = CARRIED.left(machine);
    let packages = by_first_cpu(machine.packages());
    let cores = by_first_cpu(machine.cores());
    let mut text = String::new();
    for (rank, &cpu) in cpus.iter().enumerate() {
        let holds = |group: &&CpuGroup| group.cpus.contains(cpu);
        let package = packages.iter().position(|group| group.cpus.contains(cpu));
        let slot = package.and_then(|package| {
            let inside = |core: &&CpuGroup| core.cpus.is_subset(&packages[package].cpus);
            let core = cores.iter().filter(inside).position(|core| holds(&core))?;
            Some((package, core))
        });
        let (package, core) = slot.ok_or_else(|| WriteError::Unknown {
            format: FORMAT,
            what: format!("the package and core of cpu {cpu}"),
        })?;
        let _ = writeln!(text, "rank {rank}={host} slot={package}:{core}");
    }
    Ok(text)
}

fn by_first_cpu(mut groups: Vec<CpuGroup>) -> Vec<CpuGroup> {
    groups.sort_by_key(|group| group.cpus.first());
    groups
}
