//! Chooses the sources that can be used, the best one first.

use numalab_host::Root;
use numalab_host::perf::{memory_unit, page_faults_allowed};
use numalab_knobs::watch_hindrance;
use numalab_record::profile::{Hindrance, PassedOver, SourceName};
use numalab_topology::Machine;

/// Sources that may work, the best one first, and those that cannot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceChoice {
    pub sources: Vec<SourceName>,
    /// Sources that cannot work, with the reasons.
    pub passed_over: Vec<PassedOver>,
}

/// Chooses the sources of a machine. `emulation` is the reason why the program cannot be emulated,
/// if there is one. If `wanted` names a source, it is the only candidate.
pub fn choose(
    root: &Root,
    machine: &Machine,
    wanted: Option<SourceName>,
    emulation: Option<Hindrance>,
) -> SourceChoice {
    let mut choice = SourceChoice::default();
    let considered = wanted.map_or(SourceName::ALL.to_vec(), |source| vec![source]);
    for source in considered {
        let hindrance = match source {
            SourceName::Samples => {
                memory_unit(root).err().or_else(|| page_faults_allowed(root).err())
            }
            SourceName::Emulation => emulation.clone(),
            // Without NUMA balancing faults show first touches only, so they are used only on
            // request.
            SourceName::Faults if wanted.is_some() => page_faults_allowed(root).err(),
            SourceName::Faults => {
                balancing_hindrance(root, machine).or_else(|| page_faults_allowed(root).err())
            }
            SourceName::Damon => watch_hindrance(root),
            SourceName::Referenced => None,
        };
        match hindrance {
            None => choice.sources.push(source),
            Some(why) => choice.passed_over.push(PassedOver { source, why }),
        }
    }
    choice
}

/// Returns the reason why NUMA balancing does not unmap pages repeatedly, if there is one.
pub(crate) fn balancing_hindrance(root: &Root, machine: &Machine) -> Option<Hindrance> {
    if machine.memory_nodes().len() < 2 {
        return Some(Hindrance::OneNode);
    }
    match root.value("proc/sys/kernel/numa_balancing") {
        Err(_) => Some(Hindrance::NoBalancing),
        Ok(mode) if mode == "0" => Some(Hindrance::BalancingOff),
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use numalab_topology::{Node, NodeId};

    use super::*;

    fn machine(nodes: u32) -> Machine {
        let node =
            |id| Node { id: NodeId(id), online: true, memory_bytes: 1 << 30, ..Node::default() };
        Machine { nodes: (0..nodes).map(node).collect(), ..Machine::default() }
    }

    #[test]
    fn a_machine_without_other_sources_uses_referenced_bits_and_gives_the_reasons() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::at(tree.path());
        let choice = choose(&root, &machine(1), None, Some(Hindrance::RunsAlready));
        assert_eq!(choice.sources, [SourceName::Referenced]);
        let why: Vec<_> = choice.passed_over.into_iter().map(|over| over.why).collect();
        let expected =
            [Hindrance::NoPmu, Hindrance::RunsAlready, Hindrance::OneNode, Hindrance::NoDamon];
        assert_eq!(why, expected);
    }

    #[test]
    fn faults_are_used_on_request_or_with_balancing() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::at(tree.path());
        let file = tree.path().join("proc/sys/kernel/numa_balancing");
        assert_eq!(balancing_hindrance(&root, &machine(2)), Some(Hindrance::NoBalancing));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "0\n").unwrap();
        assert_eq!(balancing_hindrance(&root, &machine(2)), Some(Hindrance::BalancingOff));
        fs::write(&file, "1\n").unwrap();
        assert_eq!(balancing_hindrance(&root, &machine(2)), None);
        assert_eq!(balancing_hindrance(&root, &machine(1)), Some(Hindrance::OneNode));
        let asked = choose(&root, &machine(1), Some(SourceName::Faults), None);
        assert!(asked.passed_over.iter().all(|over| over.why != Hindrance::OneNode));
    }
}
