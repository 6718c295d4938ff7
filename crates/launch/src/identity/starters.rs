//! The launcher among the processes above this one.

use numalab_host::Root;

use super::Launcher;

/// The largest number of processes examined, in case the system's numbers form a circle.
const DEEPEST: usize = 64;

/// Names of the processes that start a launcher's ranks on their host. Open MPI 4 starts those of its
/// own host itself; Hydra never does, whatever the name of its `mpirun`.
const STARTERS: [(&str, Launcher); 14] = [
    ("hydra_pmi_proxy", Launcher::Hydra),
    ("orted", Launcher::OpenMpi),
    ("prted", Launcher::OpenMpi),
    ("prterun", Launcher::OpenMpi),
    ("prte", Launcher::OpenMpi),
    ("orterun", Launcher::OpenMpi),
    ("mpirun", Launcher::OpenMpi),
    ("mpiexec", Launcher::OpenMpi),
    ("mpirun.openmpi", Launcher::OpenMpi),
    ("mpiexec.openmpi", Launcher::OpenMpi),
    ("oshrun", Launcher::OpenMpi),
    ("mpispawn", Launcher::Mvapich),
    ("flux-shell", Launcher::Flux),
    ("slurmstepd", Launcher::Slurm),
];

/// Reports whether the processes that start this launcher's ranks have known names.
pub(super) fn are_known(launcher: Launcher) -> bool {
    STARTERS.iter().any(|(_, of)| *of == launcher)
}

/// Returns the launcher of the nearest process above this one (`self`, or a number) that starts ranks;
/// `None` in a container that hides it.
pub(super) fn nearest(root: &Root, process: &str) -> Option<Launcher> {
    let mut process = process.to_owned();
    for _ in 0..DEEPEST {
        let status = root.document(&format!("proc/{process}/status")).ok()?;
        let field = |key| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let name = field("Name:")?;
        if let Some((_, launcher)) = STARTERS.iter().find(|(starter, _)| *starter == name) {
            return Some(*launcher);
        }
        field("PPid:")?.clone_into(&mut process);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_process_that_starts_ranks_names_the_launcher() {
        let top = tempfile::tempdir().unwrap();
        let nearest = |chain: &[&str]| {
            for (process, name) in chain.iter().enumerate() {
                let number = if process == 0 { "self".to_owned() } else { process.to_string() };
                let directory = top.path().join("proc").join(number);
                std::fs::create_dir_all(&directory).unwrap();
                let above = if process + 1 == chain.len() { 0 } else { process + 1 };
                let status = format!("Name:\t{name}\nUmask:\t0022\nPPid:\t{above}\n");
                std::fs::write(directory.join("status"), status).unwrap();
            }
            nearest(&Root::at(top.path()), "self")
        };
        let within = ["numalab", "bash", "hydra_pmi_proxy", "mpirun.mpich", "mpirun.openmpi"];
        assert_eq!(nearest(&within), Some(Launcher::Hydra));
        let around = ["numalab", "mpirun.openmpi", "hydra_pmi_proxy", "mpirun.mpich"];
        assert_eq!(nearest(&around), Some(Launcher::OpenMpi));
        let of_another = super::nearest(&Root::at(top.path()), "3");
        assert_eq!(of_another, None, "above the proxy is only the mpirun of MPICH");
        assert_eq!(nearest(&["numalab", "bash", "sshd"]), None);
        assert_eq!(nearest(&["numalab"; DEEPEST + 2]), None);
    }
}
