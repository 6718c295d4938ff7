//! Assigns a cpu to each rank.

use numalab_topology::{CpuId, CpuSet, Machine};
use serde::{Deserialize, Serialize};

use super::{SessionError, SessionPlan, Surroundings};
use crate::identity::map_cpu_list;
use crate::team::Team;

/// The host and cpu that a rank is assigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Assignment {
    pub host: String,
    pub cpu: CpuId,
}

/// The cpus that a rank may be assigned, sent to the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Candidates {
    host: String,
    /// The cpus that the rank may run on, and those among them that were requested.
    affinity: CpuSet,
    choice: CpuSet,
}

/// Assigns every rank of this host a separate cpu; all ranks compute the same assignment.
pub(super) fn assign_cpu(
    team: &mut Team,
    around: Surroundings<'_>,
    plan: &SessionPlan,
) -> Result<Assignment, SessionError> {
    let affinity = numalab_host::current_affinity().map_err(numalab_host::Error::from)?;
    let choice = plan.cpus.as_ref().map_or(affinity.clone(), |cpus| affinity.intersection(cpus));
    let host = host_name(around);
    let own = Candidates { host: host.clone(), affinity, choice };
    let candidates = super::gather(team, &own)?;
    let here: Vec<(usize, &Candidates)> =
        candidates.iter().enumerate().filter(|(_, candidate)| candidate.host == host).collect();
    let cpus = check_map(around, team.rank(), &own, here.len(), plan.overcommit)
        .and_then(|()| assign(&here, around.machine, plan.overcommit));
    let first = here.first().is_none_or(|(rank, _)| *rank == team.rank());
    let mine = match cpus {
        Ok(cpus) => {
            let place = here.iter().position(|(rank, _)| *rank == team.rank());
            Ok(Assignment { host, cpu: place.map_or(CpuId(0), |place| cpus[place]) })
        }
        // All ranks of a host find the same error, so only one reports it.
        Err(error @ SessionError::NotAsMapped { .. }) => Err(error),
        Err(error) if first => Err(error),
        Err(error) => Err(SessionError::Other { rank: here[0].0, message: error.to_string() }),
    };
    super::agree(team, mine)
}

fn host_name(around: Surroundings<'_>) -> String {
    (around.look)("SLURMD_NODENAME").unwrap_or_else(numalab_host::host_name)
}

/// Checks srun's map against the ranks of this host and against this rank's affinity.
fn check_map(
    around: Surroundings<'_>,
    rank: usize,
    candidate: &Candidates,
    ranks: usize,
    overcommit: bool,
) -> Result<(), SessionError> {
    let Some(map) = map_cpu_list(around.look) else { return Ok(()) };
    if map.len() < ranks {
        let host = candidate.host.clone();
        return Err(SessionError::WrappedMap { cpus: map.len(), ranks, host });
    }
    let mapped = around.identity.local.and_then(|local| map.get(local.rank).copied());
    match mapped.map(CpuId) {
        Some(expected) if !overcommit && candidate.affinity != CpuSet::from_iter([expected]) => {
            Err(SessionError::NotAsMapped { rank, expected, affinity: candidate.affinity.clone() })
        }
        _ => Ok(()),
    }
}

/// Returns the cpus in the order in which unbound ranks take them: one of each core first. It must
/// not depend on the calling rank's affinity, so that all ranks compute the same order.
fn order(machine: &Machine) -> Vec<CpuId> {
    let online = machine.online_cpus();
    let mut order = machine.one_per_core(&online);
    let others: Vec<CpuId> = online.iter().filter(|cpu| !order.contains(cpu)).collect();
    order.extend(others);
    order
}

/// Assigns a cpu to each rank, on a core without other ranks if there is one, beginning with the
/// ranks that have the fewest candidates.
fn assign(
    here: &[(usize, &Candidates)],
    machine: &Machine,
    overcommit: bool,
) -> Result<Vec<CpuId>, SessionError> {
    let order = order(machine);
    let core = |cpu: CpuId| machine.cpu(cpu).and_then(|cpu| cpu.core);
    let mut cpus: Vec<Option<CpuId>> = vec![None; here.len()];
    let mut by_choice: Vec<usize> = (0..here.len()).collect();
    by_choice.sort_by_key(|&index| here[index].1.choice.len());
    for (turn, &index) in by_choice.iter().enumerate() {
        let (rank, candidate) = here[index];
        let free = |cpu: &&CpuId| candidate.choice.contains(**cpu) && !cpus.contains(&Some(**cpu));
        let fallback: Vec<CpuId> = candidate.choice.iter().collect();
        let Some(&any) = fallback.get(turn % fallback.len().max(1)) else {
            return Err(SessionError::NoCpu { rank, affinity: candidate.affinity.clone() });
        };
        let alone = |cpu: &&CpuId| {
            let shares = |other: &CpuId| core(**cpu).is_some() && core(*other) == core(**cpu);
            free(cpu) && !cpus.iter().flatten().any(shares)
        };
        cpus[index] = match order.iter().find(alone).or_else(|| order.iter().find(free)) {
            Some(&cpu) => Some(cpu),
            None if overcommit => Some(any),
            None => {
                let holder = cpus.iter().position(|cpu| *cpu == Some(any)).unwrap_or(0);
                let (other, host) = (here[holder].0, candidate.host.clone());
                let affinity = candidate.affinity.clone();
                return Err(SessionError::SharedCpu { rank, other, host, cpu: any, affinity });
            }
        };
    }
    Ok(cpus.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use numalab_topology::Cpu;

    use super::*;

    fn cpus(cpus: &[&str], overcommit: bool) -> Result<Vec<u32>, SessionError> {
        let candidates: Vec<Candidates> = cpus
            .iter()
            .map(|list| {
                let affinity: CpuSet = list.parse().unwrap();
                Candidates { host: "n1".to_owned(), affinity: affinity.clone(), choice: affinity }
            })
            .collect();
        let here: Vec<(usize, &Candidates)> = candidates.iter().enumerate().collect();
        // Cpus 0 and 1 are threads of one core, and so are 2 and 3.
        let cpu = |id: u32| Cpu {
            id: CpuId(id),
            online: true,
            core: Some(id / 2),
            thread: id % 2,
            ..Cpu::default()
        };
        let machine = Machine { cpus: (0..4).map(cpu).collect(), ..Machine::default() };
        Ok(assign(&here, &machine, overcommit)?.iter().map(|cpu| cpu.0).collect())
    }

    #[test]
    fn bound_ranks_keep_their_cpus_and_unbound_ones_take_a_core_each() {
        assert_eq!(cpus(&["3", "1"], false).unwrap(), [3, 1]);
        assert_eq!(cpus(&["0-3", "0-3", "0-3"], false).unwrap(), [0, 2, 1]);
        assert_eq!(cpus(&["0-3", "0"], false).unwrap(), [2, 0]);
    }

    #[test]
    fn ranks_on_second_threads_only_take_a_core_each() {
        assert_eq!(cpus(&["1-3", "1-3"], false).unwrap(), [2, 1]);
        assert_eq!(cpus(&["1,3", "1,3"], false).unwrap(), [1, 3]);
        // The first rank has no choice, so the second one avoids its core.
        assert_eq!(cpus(&["0", "1,3"], false).unwrap(), [0, 3]);
    }

    #[test]
    fn ranks_that_would_share_a_cpu_are_named_unless_they_may() {
        let error = cpus(&["0", "2", "0"], false).unwrap_err();
        assert!(
            error.to_string().contains("ranks 2 and 0 of host n1 would share cpu 0"),
            "{error}"
        );
        assert_eq!(cpus(&["0", "2", "0"], true).unwrap(), [0, 2, 0]);
        assert!(cpus(&["0-1", "0-1", "0-1"], false).is_err());
    }

    #[test]
    fn a_rank_without_any_cpu_is_named() {
        let error = cpus(&[""], true).unwrap_err();
        assert!(matches!(error, SessionError::NoCpu { rank: 0, .. }), "{error}");
    }
}
