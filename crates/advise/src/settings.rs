//! A candidate as the settings of a study's treatment, on this machine or in a guest.

use std::collections::BTreeMap;

use numalab_host::knobs::{FileState, Knob};
use numalab_host::{Root, linux_version, read_environment};
use numalab_places::boots_new_kernel;
use numalab_record::study::Setting;
use numalab_results::advice::{Candidate, Untried};
use numalab_study::BackendSpec;

/// Makes glibc request huge pages itself, if the kernel's mode is `madvise`.
const GLIBC_HUGE: &str = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1";
/// The first kernel version with weighted interleaving.
const WEIGHTED_SINCE: (u32, u32) = (6, 9);

pub(super) type Settings = BTreeMap<String, Setting>;

/// The settings available in the place of the trials.
pub(super) struct Abilities {
    is_guest: bool,
    /// True if the program uses OpenMP's runtime.
    openmp: bool,
    /// True if the kernel has weighted interleaving.
    is_new_kernel: bool,
    /// The numbers of the nodes, in the order of weights.
    nodes: Vec<u32>,
}

impl Abilities {
    /// Returns the settings of a guest, or of this machine, with these nodes.
    pub(super) fn new(guest: Option<&BackendSpec>, openmp: bool, nodes: &[u32]) -> Self {
        let here = || {
            let environment = read_environment(&Root::live());
            let release = environment.fact("kernel").and_then(linux_version);
            release.is_some_and(|release| release >= WEIGHTED_SINCE)
        };
        Self {
            is_guest: guest.is_some(),
            openmp,
            is_new_kernel: guest.map_or_else(here, boots_new_kernel),
            nodes: nodes.to_vec(),
        }
    }

    /// Returns the settings of a candidate, or the reason it cannot be tried.
    pub(super) fn settings(&self, candidate: &Candidate) -> Result<Settings, Untried> {
        let text = |name: &str, value: String| (name.to_owned(), Setting::Text(value));
        let placed = candidate.placement().into_iter().flat_map(|placed| {
            placed.settings().map(|(name, value)| text(name, value)).collect::<Vec<_>>()
        });
        let settings = match candidate {
            Candidate::Bind { .. }
            | Candidate::Interleave { .. }
            | Candidate::FastMemory { .. } => placed.collect(),
            Candidate::WeightedInterleave { weights } => self.weights(weights)?,
            Candidate::HugePages => self.huge_pages()?,
            Candidate::Pack if self.openmp => {
                vec![text("environment", "OMP_PLACES=cores OMP_PROC_BIND=close".to_owned())]
            }
            Candidate::Pack => return Err(Untried::NoOpenMp),
            Candidate::Cpus { spread, .. } => {
                placed.chain([text("environment", spread.openmp().to_owned())]).collect()
            }
            Candidate::Balancing { mode } => {
                self.can_set("numa_balancing")?;
                let demotion = (*mode == 2).then(|| text("demotion", "true".to_owned()));
                let mode = Setting::Integer((*mode).into());
                [("numa_balancing".to_owned(), mode)].into_iter().chain(demotion).collect()
            }
            Candidate::Ranks { options } => vec![text("environment", srun_variables(options))],
            Candidate::PlaceFile { .. } => return Err(Untried::NotInTrials),
            Candidate::BindRegion { .. }
            | Candidate::FirstTouch { .. }
            | Candidate::Replicate { .. }
            | Candidate::SeparateLines { .. } => return Err(Untried::ProgramMustChange),
        };
        Ok(settings.into_iter().collect())
    }

    /// Returns true if the program's C library must request huge pages, because this user may not
    /// enable them for all programs.
    pub(super) fn asks_for_huge_pages(&self) -> bool {
        self.can_set("thp_enabled").is_err()
    }

    fn huge_pages(&self) -> Result<Vec<(String, Setting)>, Untried> {
        let text = |value: &str| Setting::Text(value.to_owned());
        let Err(refused) = self.can_set("thp_enabled") else {
            return Ok(vec![("thp_enabled".to_owned(), text("always"))]);
        };
        let root = Root::live();
        let state = Knob::find(&root, "thp_enabled").map(|knob| knob.state(&root));
        match state {
            Ok(FileState::Value(value)) if value == "madvise" => {
                Ok(vec![("environment".to_owned(), text(GLIBC_HUGE))])
            }
            _ => Err(refused),
        }
    }

    fn weights(&self, weights: &[u32]) -> Result<Vec<(String, Setting)>, Untried> {
        let name = |node: u32| format!("interleave_weight_node{node}");
        let first = name(self.nodes.first().copied().unwrap_or_default());
        if !self.is_new_kernel {
            return Err(Untried::NotInKernel(first));
        }
        self.can_set(&first)?;
        let knob = |(node, weight): (&u32, &u32)| (name(*node), Setting::Integer((*weight).into()));
        let policy = ("policy".to_owned(), Setting::Text("weighted".to_owned()));
        Ok([policy].into_iter().chain(self.nodes.iter().zip(weights).map(knob)).collect())
    }

    /// Checks that a kernel setting can be changed; in a guest, where numalab is root, all can.
    fn can_set(&self, name: &str) -> Result<(), Untried> {
        if self.is_guest {
            return Ok(());
        }
        let root = Root::live();
        let absent = || Untried::NotInKernel(name.to_owned());
        let knob = Knob::find(&root, name).map_err(|_| absent())?;
        match knob.state(&root) {
            FileState::Value(_) if knob.may_be_set(&root) => Ok(()),
            FileState::Value(_) | FileState::Denied(_) => Err(Untried::NeedsRoot(name.to_owned())),
            FileState::Absent | FileState::WriteOnly => Err(absent()),
        }
    }
}

/// Returns the variables through which `srun` takes options.
fn srun_variables(options: &[String]) -> String {
    let variable = |option: &String| {
        let (name, value) = option.trim_start_matches("--").split_once('=')?;
        Some(format!("SLURM_{}={value}", name.to_uppercase().replace('-', "_")))
    };
    options.iter().filter_map(variable).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use numalab_results::advice::Spread;

    use super::*;

    fn shown(is_guest: bool, candidate: &Candidate) -> Result<String, Untried> {
        let abilities =
            Abilities { is_guest, openmp: false, is_new_kernel: true, nodes: vec![0, 8] };
        let settings = abilities.settings(candidate)?;
        let shown = settings.iter().map(|(name, value)| format!("{name}={value}"));
        Ok(shown.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn candidates_are_settings_that_studies_know() {
        let of = |candidate: &Candidate| shown(true, candidate).expect("settings");
        assert_eq!(of(&Candidate::Bind { node: 1 }), "nodes=1 policy=bind:1");
        assert_eq!(of(&Candidate::Interleave { nodes: vec![0, 1, 2] }), "policy=interleave:0-2");
        assert_eq!(
            of(&Candidate::WeightedInterleave { weights: vec![2, 1] }),
            "interleave_weight_node0=2 interleave_weight_node8=1 policy=weighted"
        );
        assert_eq!(of(&Candidate::HugePages), "thp_enabled=always");
        assert_eq!(of(&Candidate::Balancing { mode: 2 }), "demotion=true numa_balancing=2");
        let cpus = Candidate::Cpus { spread: Spread::Cores, cpus: vec![0, 2] };
        assert_eq!(of(&cpus), "cpus=0,2 environment=OMP_PLACES=cores OMP_PROC_BIND=spread");
        let options = ["--distribution=block:cyclic", "--mem-bind=local"].map(str::to_owned);
        assert_eq!(
            of(&Candidate::Ranks { options: options.to_vec() }),
            "environment=SLURM_DISTRIBUTION=block:cyclic SLURM_MEM_BIND=local"
        );
    }

    #[test]
    fn candidates_that_cannot_be_tried_say_why() {
        let of = |candidate: &Candidate| shown(false, candidate).expect_err("no trial");
        assert_eq!(of(&Candidate::Pack), Untried::NoOpenMp);
        let touch = Candidate::FirstTouch { line: None, region: String::new() };
        assert_eq!(of(&touch), Untried::ProgramMustChange);
        let old =
            Abilities { is_guest: true, openmp: true, is_new_kernel: false, nodes: vec![0, 8] };
        let weighted = Candidate::WeightedInterleave { weights: vec![2, 1] };
        let why = old.settings(&weighted).expect_err("no trial");
        assert_eq!(why, Untried::NotInKernel("interleave_weight_node0".to_owned()));
    }
}
