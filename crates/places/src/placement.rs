//! The placement of a workload and its memory: settings of levels that apply in the same way on
//! this machine and in Linux guests.

mod applied;
mod environment;

use std::collections::BTreeMap;

use numalab_record::study::{Notice, Setting};
use numalab_study::{BackendError, Scope, SettingSpec, StudyPlace};
use numalab_topology::{CpuId, CpuSet, Machine, Placement, PlacementError, placement};
use numalab_workload::Workload;

use crate::common_settings::settings;
use environment::Environment;

settings! {
    pub(super) CPUS = placement::CPUS, Text("CPUs such as 0-3,8, all, or !0"), "",
        "CPUs on which commands run";
    pub(super) NODES = placement::NODES, Text("nodes such as 0,1, all, or !0"), "",
        "nodes with the CPUs that commands run on";
    pub(super) POLICY = placement::POLICY,
        Text("local, bind:0, preferred:0, interleave:0,1 or weighted:all"), "",
        "nodes from which commands get memory";
    pub(super) RANKS = "ranks", Count(4096), "",
        "concurrent copies of a command, each on its share of the CPUs";
    pub(super) THREADS = "threads", Count(4096), "",
        "threads of each copy (OMP_NUM_THREADS and {threads}); with ranks, also the CPUs of each";
    pub(super) ENVIRONMENT = "environment",
        Text("variables such as OMP_PLACES=cores OMP_PROC_BIND=close"), "",
        "environment variables of commands, separated by spaces";
}

pub(super) const LEVELS: [SettingSpec; 6] = [CPUS, NODES, POLICY, RANKS, THREADS, ENVIRONMENT];

/// Rejects placements that are impossible on this machine, and reports those that cannot have an
/// effect.
pub(super) fn inspect(
    scope: &Scope<'_>,
    machine: &Machine,
) -> Result<Option<Notice>, BackendError> {
    let mut has_policy = false;
    for treatment in scope.treatments {
        for workload in scope.workloads {
            let placed = PlacedCommand::of(&treatment.settings, workload, machine)?;
            has_policy |= placed.placement.policy.is_some();
        }
    }
    let cannot_act = has_policy && machine.memory_nodes().len() < 2;
    Ok(cannot_act.then_some(Notice::PolicyWithoutEffect))
}

/// The placement of a command's copies and their memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PlacedCommand {
    /// The placement of all copies together.
    placement: Placement,
    /// The CPUs of each copy; empty for a command that runs once.
    ranks: Vec<CpuSet>,
    threads: Option<usize>,
    environment: Environment,
}

impl PlacedCommand {
    /// Returns the placement that these settings mean for a workload on this machine. A setting
    /// that the workload's command contains in braces, such as `{ranks}`, is left to the command.
    pub(super) fn of(
        settings: &BTreeMap<String, Setting>,
        workload: &Workload,
        machine: &Machine,
    ) -> Result<Self, BackendError> {
        let applied = |name: &str| {
            let place = format!("{{{name}}}");
            let is_own = workload.command.iter().any(|word| word.contains(&place));
            settings.get(name).filter(|_| !is_own).map(ToString::to_string)
        };
        let placement = Placement::of(applied, machine).map_err(refused)?;
        let number = |name: &str, text: String| {
            let count = text.parse().ok().filter(|count: &usize| *count >= 1);
            count.ok_or_else(|| bad(name, &text, "a number of at least 1"))
        };
        let threads = settings.get(THREADS.name).map(ToString::to_string);
        let threads = threads.map(|text| number(THREADS.name, text)).transpose()?;
        let ranks = applied(RANKS.name).map(|text| number(RANKS.name, text)).transpose()?;
        let pool = placement.cpus_by_node(machine);
        let ranks = ranks.map(|ranks| shares(&pool, ranks, threads)).transpose()?;
        let environment = applied(ENVIRONMENT.name);
        let environment = environment.map(|text| Environment::of(&text)).transpose()?;
        Ok(Self {
            placement,
            ranks: ranks.unwrap_or_default(),
            threads,
            environment: environment.unwrap_or_default(),
        })
    }
}

/// Returns the CPUs of each copy: one for each of its threads, or an equal share.
fn shares(
    pool: &[CpuId],
    ranks: usize,
    threads: Option<usize>,
) -> Result<Vec<CpuSet>, BackendError> {
    let share = threads.unwrap_or(pool.len() / ranks.max(1));
    let needed = ranks.saturating_mul(share.max(1));
    if needed > pool.len() || ranks == 0 {
        let found = format!("{ranks} with {} each", share.max(1));
        let expected = format!("at most {} CPUs in all", pool.len());
        return Err(bad(RANKS.name, &found, &expected));
    }
    Ok(pool.chunks(share).take(ranks).map(|cpus| cpus.iter().copied().collect()).collect())
}

pub(super) fn refused(PlacementError { setting, found, expected }: PlacementError) -> BackendError {
    bad(setting, &found, &expected)
}

pub(super) fn bad(name: &str, found: &str, expected: &str) -> BackendError {
    BackendError::bad_input(StudyPlace::Setting(name.to_owned()), found, expected)
}

#[cfg(test)]
mod tests {
    use numalab_formats::emulation;
    use numalab_topology::UniformMachine;
    use numalab_workload::WorkloadSpec;

    use super::*;

    /// Returns a machine with four nodes of two CPUs each.
    fn machine() -> Machine {
        let base = UniformMachine::of_packages(4, 8, 4 << 30);
        emulation::parse("4", None).unwrap().emulate(&base.build().unwrap()).unwrap()
    }

    fn placement(settings: &[(&str, &str)], command: &str) -> Result<PlacedCommand, String> {
        let text =
            |(name, value): &(&str, &str)| ((*name).to_owned(), Setting::Text((*value).to_owned()));
        let settings = settings.iter().map(text).collect();
        let workload = WorkloadSpec::of_tool("sysbench-cpu").resolve().unwrap();
        let workload = Workload { command: vec![command.to_owned()], ..workload };
        PlacedCommand::of(&settings, &workload, &machine()).map_err(|error| error.to_string())
    }

    #[test]
    fn ranks_have_shares_of_the_cpus_as_wide_as_their_threads() {
        let ranks = |settings: &[(&str, &str)]| {
            let ranks = placement(settings, "x").unwrap().ranks;
            ranks.iter().map(CpuSet::to_string).collect::<Vec<_>>()
        };
        assert_eq!(ranks(&[("ranks", "4")]), ["0,1", "2,3", "4,5", "6,7"]);
        assert_eq!(ranks(&[("ranks", "3"), ("threads", "1")]), ["0", "1", "2"]);
        assert_eq!(ranks(&[("ranks", "2"), ("nodes", "2,3")]), ["4,5", "6,7"]);
    }

    #[test]
    fn a_command_applies_the_settings_in_its_braces_itself() {
        let settings = [("ranks", "64"), ("nodes", "1")];
        let own = placement(&settings, "mpirun -n {ranks} solver").unwrap();
        assert_eq!((own.ranks.len(), own.placement.cpus.unwrap().to_string().as_str()), (0, "2,3"));
    }

    #[test]
    fn missing_cpus_and_nodes_are_refused_with_the_existing_ones() {
        for (settings, words) in [
            (&[("policy", "bind:7")][..], "setting policy: 7: expected some of 0-3"),
            (&[("ranks", "5"), ("threads", "2")], "ranks: 5 with 2 each: expected at most 8 CPUs"),
            (&[("threads", "0")], "threads: 0: expected a number of at least 1"),
            (&[("ranks", "0")], "ranks: 0: expected a number of at least 1"),
            (&[("environment", "A=1 B")], "environment: B: expected NAME=VALUE"),
        ] {
            let message = placement(settings, "x").unwrap_err();
            assert!(message.contains(words), "{message}");
        }
    }
}
