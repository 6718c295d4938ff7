//! A candidate as the settings of a study's treatment, in the place of the trials.

use std::collections::BTreeMap;

use numalab_formats::memory_emulator::EmulatedMachine;
use numalab_guest::program::in_turn;
use numalab_host::{Root, linux_version, read_environment};
use numalab_knobs::{FileState, HUGE_PAGES, Knob};
use numalab_places::boots_new_kernel;
use numalab_record::study::Setting;
use numalab_results::advice::{Candidate, Spread, TrialPlace, Untried};

use crate::model::Target;

/// Makes glibc request huge pages itself, if the kernel's mode is `madvise`.
const GLIBC_HUGE: &str = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1";
/// The first kernel version with weighted interleaving.
const WEIGHTED_SINCE: (u32, u32) = (6, 9);

pub(super) type Settings = BTreeMap<String, Setting>;

/// The settings available in the place of the trials.
pub(super) struct Abilities<'a> {
    place: TrialPlace,
    /// True if the program uses OpenMP's runtime.
    openmp: bool,
    /// True if the kernel has weighted interleaving.
    is_new_kernel: bool,
    /// The numbers of the nodes, in the order of weights.
    nodes: &'a [u32],
    machine: &'a EmulatedMachine,
}

impl<'a> Abilities<'a> {
    /// Returns the settings in the target's place.
    pub(super) fn new(target: &'a Target, openmp: bool) -> Self {
        let is_new_kernel = match (target.place, &target.guest) {
            (TrialPlace::Emulation, _) => true,
            (_, Some(guest)) => boots_new_kernel(guest),
            (_, None) => {
                let environment = read_environment(&Root::live());
                let release = environment.text("kernel").and_then(linux_version);
                release.is_some_and(|release| release >= WEIGHTED_SINCE)
            }
        };
        let Target { machine, costs, place, .. } = target;
        Self { place: *place, openmp, is_new_kernel, nodes: &costs.nodes, machine }
    }

    /// Returns the settings of a candidate, or the reason it cannot be tried.
    pub(super) fn settings(&self, candidate: &Candidate) -> Result<Settings, Untried> {
        let is_emulated = self.place == TrialPlace::Emulation;
        let placed = candidate.placement().into_iter().flat_map(|placed| {
            placed.settings().map(|(name, value)| text(name, value)).collect::<Vec<_>>()
        });
        let settings = match candidate {
            Candidate::BindRegion { .. }
            | Candidate::Replicate { .. }
            | Candidate::SeparateLines { .. } => return Err(Untried::ProgramMustChange),
            Candidate::Bind { .. } | Candidate::Interleave { .. } => placed.collect(),
            Candidate::WeightedInterleave { weights } => self.weights(weights)?,
            Candidate::HugePages => self.huge_pages()?,
            Candidate::FirstTouch { .. } if is_emulated => {
                vec![text("policy", "users".to_owned())]
            }
            Candidate::FirstTouch { .. } => return Err(Untried::ProgramMustChange),
            Candidate::Pack if is_emulated => vec![text("thread-order", "pack".to_owned())],
            Candidate::Cpus { spread, .. } if is_emulated && !spread.is_of_siblings() => {
                let order = by_group(self.machine, *spread == Spread::Groups);
                let order: Vec<String> = order.iter().map(ToString::to_string).collect();
                vec![text("thread-order", order.join(","))]
            }
            _ if is_emulated => return Err(Untried::NotEmulated),
            Candidate::FastMemory { .. } => placed.collect(),
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
        };
        Ok(settings.into_iter().collect())
    }

    /// Returns true if the program's C library must request huge pages, because this user may not
    /// enable them for all programs.
    pub(super) fn asks_for_huge_pages(&self) -> bool {
        self.can_set(HUGE_PAGES).is_err()
    }

    fn huge_pages(&self) -> Result<Vec<(String, Setting)>, Untried> {
        let Err(refused) = self.can_set(HUGE_PAGES) else {
            return Ok(vec![text(HUGE_PAGES, "always".to_owned())]);
        };
        let root = Root::live();
        let state = Knob::find(&root, HUGE_PAGES).map(|knob| knob.state(&root));
        match state {
            Ok(FileState::Value(value)) if value == "madvise" => {
                Ok(vec![text("environment", GLIBC_HUGE.to_owned())])
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
        let policy = text("policy", "weighted".to_owned());
        Ok([policy].into_iter().chain(self.nodes.iter().zip(weights).map(knob)).collect())
    }

    /// Checks that a kernel setting can be changed; in a guest, where numalab is root, and under
    /// emulation all can.
    fn can_set(&self, name: &str) -> Result<(), Untried> {
        if self.place != TrialPlace::Host {
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

fn text(name: &str, value: String) -> (String, Setting) {
    (name.to_owned(), Setting::Text(value))
}

/// Returns the cpus of a machine by L3 group, in turn or one group after another.
fn by_group(machine: &EmulatedMachine, takes_turns: bool) -> Vec<usize> {
    let group = |cpu: usize| machine.l3_groups.as_ref().map_or(0, |groups| groups[cpu]);
    let nodes = machine.cpus.iter().enumerate();
    let groups: Vec<_> = nodes.map(|(cpu, node)| (*node, group(cpu))).collect();
    if takes_turns {
        return in_turn(&groups);
    }
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|cpu| groups[*cpu]);
    order
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
    use numalab_formats::memory_emulator::{MemoryCosts, describe};
    use numalab_topology::UniformMachine;

    use super::*;

    fn machine() -> EmulatedMachine {
        let machine = UniformMachine::of_packages(2, 4, 1 << 30).build().expect("a machine");
        let model = describe(&machine, &MemoryCosts::usual(None)).expect("a model");
        EmulatedMachine { l3_groups: Some(vec![0, 0, 1, 1]), ..model }
    }

    fn shown(place: TrialPlace, candidate: &Candidate) -> Result<String, Untried> {
        let (machine, nodes) = (&machine(), &[0, 8]);
        let abilities = Abilities { place, openmp: false, is_new_kernel: true, nodes, machine };
        let settings = abilities.settings(candidate)?;
        let shown = settings.iter().map(|(name, value)| format!("{name}={value}"));
        Ok(shown.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn candidates_are_settings_that_studies_know() {
        let of = |candidate: &Candidate| shown(TrialPlace::Guest, candidate).expect("settings");
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
    fn candidates_under_emulation_are_settings_of_its_backend() {
        let of = |candidate: &Candidate| shown(TrialPlace::Emulation, candidate);
        assert_eq!(of(&Candidate::Bind { node: 1 }).unwrap(), "nodes=1 policy=bind:1");
        assert_eq!(of(&Candidate::Pack).unwrap(), "thread-order=pack");
        let cpus = |spread| of(&Candidate::Cpus { spread, cpus: vec![0, 2] });
        assert_eq!(cpus(Spread::Groups).unwrap(), "thread-order=0,2,1,3");
        let touch = Candidate::FirstTouch { line: None, region: String::new() };
        assert_eq!(of(&touch).unwrap(), "policy=users");
        assert_eq!(of(&Candidate::Balancing { mode: 1 }).unwrap_err(), Untried::NotEmulated);
    }

    #[test]
    fn candidates_that_cannot_be_tried_say_why() {
        let of = |candidate: &Candidate| shown(TrialPlace::Host, candidate).expect_err("no trial");
        assert_eq!(of(&Candidate::Pack), Untried::NoOpenMp);
        let touch = Candidate::FirstTouch { line: None, region: String::new() };
        assert_eq!(of(&touch), Untried::ProgramMustChange);
        let (place, machine, nodes) = (TrialPlace::Guest, &machine(), &[0, 8]);
        let old = Abilities { place, openmp: true, is_new_kernel: false, nodes, machine };
        let weighted = Candidate::WeightedInterleave { weights: vec![2, 1] };
        let why = old.settings(&weighted).expect_err("no trial");
        assert_eq!(why, Untried::NotInKernel("interleave_weight_node0".to_owned()));
    }
}
