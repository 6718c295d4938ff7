//! The command that launches a step.

use core::fmt;

use super::launcher::{LauncherChoice, Workload};
use super::manifest::Manifest;
use super::step::LaunchStep;

/// The common parts of all steps' launch lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchLine<'a> {
    /// The run that the launched step belongs to.
    pub manifest: &'a Manifest,
    /// The launcher; never `Auto`.
    pub launcher: LauncherChoice,
    /// The path of this program.
    pub numalab: &'a str,
    /// True if this process is in a SLURM job: otherwise each launch allocates a node.
    pub in_job: bool,
}

impl LaunchLine<'_> {
    /// Returns the words of the command that launches `step`.
    pub fn words(&self, step: &LaunchStep) -> Vec<String> {
        let ranks = step.ranks.to_string();
        let cpus = list(step.cpus.iter());
        let mut words: Vec<String> = Vec::new();
        let mut add = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
        match self.launcher {
            LauncherChoice::Srun | LauncherChoice::Auto => {
                if !self.in_job {
                    // SLURM only accepts an arbitrary map in a job with a whole node.
                    add(&["salloc", "--quiet", "--exclusive", "--nodes", "1"]);
                }
                add(&["srun", "--unbuffered", "--nodes", "1", "--ntasks", &ranks]);
                add(&[&format!("--cpu-bind=map_cpu:{cpus}")]);
                if !self.manifest.with_smt {
                    add(&["--hint=nomultithread"]);
                }
                add(&[self.numalab, "bind"]);
            }
            // The ranks bind themselves, since each mpirun has different options for binding.
            LauncherChoice::Mpirun => {
                add(&["mpirun", "-n", &ranks, "--bind-to", "none"]);
                add(&[self.numalab, "bind", &format!("--cpus={cpus}")]);
            }
            LauncherChoice::Local => {
                add(&[self.numalab, "bind", "--ranks", &ranks, &format!("--cpus={cpus}")]);
            }
        }
        add(&[&format!("--numa={}", list(step.nodes.iter())), "--"]);
        match &self.manifest.workload {
            Workload::Command(command) => add(&["sh", "-c", command]),
            Workload::Latency => {}
            Workload::Bandwidth => add(&[self.numalab, "bandwidth"]),
        }
        if !matches!(self.manifest.workload, Workload::Command(_)) {
            let sizes = &self.manifest.memory_sizes;
            add(&[&format!("--size={sizes}"), &format!("--csv={}.csv", step.stem)]);
            words.extend(self.manifest.options.iter().cloned());
        }
        words
    }
}

fn list<T: fmt::Display>(items: impl Iterator<Item = T>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use numalab_topology::{CpuId, NodeId};

    use super::super::step::Mode;
    use super::*;

    fn line(launcher: LauncherChoice, workload: &Workload, in_job: bool) -> String {
        let step = LaunchStep {
            ranks: 2,
            per_domain: 1,
            cpus: vec![CpuId(48), CpuId(80)],
            nodes: vec![NodeId(3), NodeId(5)],
            stem: "interleaved_domains3,5_2ranks_8MB".to_owned(),
        };
        let manifest = Manifest {
            schema: String::new(),
            system: String::new(),
            partition: String::new(),
            mode: Mode::Interleaved,
            domains: Vec::new(),
            memory_sizes: "8".to_owned(),
            sizes_bytes: Vec::new(),
            launcher,
            workload: workload.clone(),
            options: Vec::new(),
            with_smt: false,
            label: None,
            arch: String::new(),
            steps: Vec::new(),
        };
        let line = LaunchLine { manifest: &manifest, launcher, numalab: "numalab", in_job };
        numalab_record::shell::command_line(&line.words(&step))
    }

    #[test]
    fn each_launcher_has_its_line() {
        assert_eq!(
            line(LauncherChoice::Srun, &Workload::Latency, true),
            "srun --unbuffered --nodes 1 --ntasks 2 --cpu-bind=map_cpu:48,80 --hint=nomultithread \
             numalab bind --numa=3,5 -- --size=8 --csv=interleaved_domains3,5_2ranks_8MB.csv"
        );
        let outside = line(LauncherChoice::Srun, &Workload::Latency, false);
        assert!(outside.starts_with("salloc --quiet --exclusive --nodes 1 srun "), "{outside}");
        assert_eq!(
            line(LauncherChoice::Mpirun, &Workload::Bandwidth, true),
            "mpirun -n 2 --bind-to none numalab bind --cpus=48,80 --numa=3,5 -- \
             numalab bandwidth --size=8 --csv=interleaved_domains3,5_2ranks_8MB.csv"
        );
        assert_eq!(
            line(LauncherChoice::Local, &Workload::Command("echo 'a b'".to_owned()), true),
            "numalab bind --ranks 2 --cpus=48,80 --numa=3,5 -- sh -c 'echo '\\''a b'\\'''"
        );
    }
}
