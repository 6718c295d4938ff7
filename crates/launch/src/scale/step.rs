//! The placement of each step's ranks.

use core::fmt;

use numalab_formats::architecture::Architecture;
use numalab_topology::{CpuId, CpuSet, Machine, NodeId, NodeSet};
use serde::{Deserialize, Serialize};

/// The order in which the cores of a domain are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Cores in numerical order: each L3 group is filled before the next one.
    Sequential,
    /// One core from each L3 group in turn.
    Interleaved,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Sequential => "sequential",
            Self::Interleaved => "interleaved",
        })
    }
}

/// One launch: a number of ranks, each on its cpu with its node's memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LaunchStep {
    /// Number of ranks.
    pub ranks: usize,
    /// Number of ranks in each domain; a domain with fewer cores has fewer.
    pub per_domain: usize,
    /// The cpu of each rank.
    pub cpus: Vec<CpuId>,
    /// The node of each rank's memory.
    pub nodes: Vec<NodeId>,
    /// The name of the step's files without suffixes.
    pub stem: String,
}

/// Reason why ranks cannot be placed as requested.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    #[error("no domain given: expected NUMA nodes such as 0,1")]
    NoDomain,
    #[error("domain {domain} is not in the architecture file: its nodes are {present}")]
    UnknownDomain { domain: NodeId, present: NodeSet },
    #[error("domain {domain} has no usable core: SKIP_CORES excludes {skipped} of its cpus {cpus}")]
    NoCore { domain: NodeId, cpus: CpuSet, skipped: usize },
    #[error(
        "domain {domain} has no usable core: this process may run on cpus {allowed}, and its cpus are {cpus}"
    )]
    NotAllowed { domain: NodeId, cpus: CpuSet, allowed: CpuSet },
    #[error(
        "domain {domain} has {cores} usable cores: expected at most {MOST_CORES}, since each core \
         adds a step, and each step lists the cpus of all its ranks"
    )]
    TooManyCores { domain: NodeId, cores: usize },
    #[error(
        "domain {domain} cannot be interleaved: CCDS_PER_NUMA does not divide its {cores} cores"
    )]
    NoGroups { domain: NodeId, cores: usize },
}

/// Maximum number of a domain's cores: each step lists all of its cpus, and the largest single-kernel
/// machines have 1,920 cores in total.
const MOST_CORES: usize = 4096;

/// Returns the steps over `domains`: one rank in each, then two, up to all of their cores. Second
/// threads are used only if `with_smt`, after all first threads.
///
/// # Errors
///
/// [`PlacementError`] names the domain that cannot be used.
pub fn steps(
    architecture: &Architecture,
    mode: Mode,
    domains: &[NodeId],
    sizes: &str,
    with_smt: bool,
) -> Result<Vec<LaunchStep>, PlacementError> {
    if domains.is_empty() {
        return Err(PlacementError::NoDomain);
    }
    let orders: Vec<Vec<CpuId>> = domains
        .iter()
        .map(|&domain| order(architecture, mode, domain, with_smt))
        .collect::<Result<_, _>>()?;
    let most = orders.iter().map(Vec::len).max().unwrap_or(0);
    if let Some((&domain, _)) =
        domains.iter().zip(&orders).find(|(_, order)| order.len() > MOST_CORES)
    {
        return Err(PlacementError::TooManyCores { domain, cores: most });
    }
    let step = |per_domain: usize| {
        let taken = |order: &Vec<CpuId>| order[..per_domain.min(order.len())].to_vec();
        let cpus: Vec<Vec<CpuId>> = orders.iter().map(taken).collect();
        let nodes = domains
            .iter()
            .zip(&cpus)
            .flat_map(|(&domain, cpus)| std::iter::repeat_n(domain, cpus.len()))
            .collect::<Vec<NodeId>>();
        let ranks = nodes.len();
        let stem = stem(mode, domains, ranks, sizes);
        LaunchStep { ranks, per_domain, cpus: cpus.concat(), nodes, stem }
    };
    Ok((1..=most).map(step).collect())
}

/// Returns the cpus of a domain in the order in which they are used.
fn order(
    architecture: &Architecture,
    mode: Mode,
    domain: NodeId,
    with_smt: bool,
) -> Result<Vec<CpuId>, PlacementError> {
    let machine = &architecture.machine;
    let Some(node) = machine.node(domain) else {
        let present = machine.nodes.iter().map(|node| node.id).collect();
        return Err(PlacementError::UnknownDomain { domain, present });
    };
    let (online, allowed) = (machine.online_cpus(), machine.usable_cpus());
    let first: CpuSet = machine.first_threads().into_iter().collect();
    let usable = node.cpus.intersection(&allowed);
    if usable.is_empty() && !node.cpus.intersection(&online).is_empty() {
        return Err(PlacementError::NotAllowed { domain, cpus: node.cpus.clone(), allowed });
    }
    let usable = usable.difference(&architecture.skip_cores);
    let cores = usable.intersection(&first);
    // The siblings of a skipped cpu are skipped too.
    let busy = |cpu: &CpuId| {
        let core = |id: CpuId| machine.cpu(id).and_then(|cpu| cpu.core);
        let own = core(*cpu);
        own.is_some() && architecture.skip_cores.iter().any(|skipped| core(skipped) == own)
    };
    let siblings: CpuSet =
        usable.difference(&first).iter().filter(|cpu| with_smt && !busy(cpu)).collect();
    if cores.is_empty() && siblings.is_empty() {
        let (cpus, skipped) = (node.cpus.clone(), node.cpus.len() - usable.len());
        return Err(PlacementError::NoCore { domain, cpus, skipped });
    }
    if mode == Mode::Sequential {
        return Ok(cores.iter().chain(siblings.iter()).collect());
    }
    // The groups are formed from all cores, whether or not they may be used.
    let all: Vec<CpuId> = machine.one_per_core(&node.cpus.intersection(&online));
    let all: Vec<CpuId> = CpuSet::from_iter(all).iter().collect();
    let groups = groups(&all, architecture.ccds_per_numa)
        .ok_or(PlacementError::NoGroups { domain, cores: all.len() })?;
    let mut order = in_turn(machine, &groups, &cores);
    order.extend(in_turn(machine, &groups, &siblings));
    Ok(order)
}

/// Splits the cores of a node by number into as many equal L3 groups as it has. The architecture
/// file gives their number per node, and nodes can differ in cores.
fn groups(cores: &[CpuId], count: u32) -> Option<Vec<&[CpuId]>> {
    let count = usize::try_from(count).ok()?;
    let divides = count > 0 && !cores.is_empty() && cores.len().is_multiple_of(count);
    divides.then(|| cores.chunks(cores.len() / count).collect())
}

/// Takes one of `cpus` from each group in turn; a cpu belongs to the group of its core.
fn in_turn(machine: &Machine, groups: &[&[CpuId]], cpus: &CpuSet) -> Vec<CpuId> {
    let core = |cpu: CpuId| machine.cpu(cpu).and_then(|cpu| cpu.core);
    let member = |group: &[CpuId], cpu: CpuId| {
        let shares = |&first: &CpuId| core(first).is_some() && core(first) == core(cpu);
        group.contains(&cpu) || group.iter().any(shares)
    };
    let members: Vec<Vec<CpuId>> = groups
        .iter()
        .map(|group| cpus.iter().filter(|&cpu| member(group, cpu)).collect())
        .collect();
    let longest = members.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest)
        .flat_map(|index| members.iter().filter_map(move |m| m.get(index).copied()))
        .collect()
}

/// Returns `sequential_domain0_7ranks_8MB` or `interleaved_domains0,1_16ranks_1-512MB`.
fn stem(mode: Mode, domains: &[NodeId], ranks: usize, sizes: &str) -> String {
    let list: Vec<String> = domains.iter().map(ToString::to_string).collect();
    let plural = if list.len() > 1 { "s" } else { "" };
    let sizes = sizes_suffix(sizes);
    format!("{mode}_domain{plural}{}_{ranks}ranks_{sizes}", list.join(","))
}

/// Returns the sizes as part of a file name; a list without units is in megabytes.
pub fn sizes_suffix(sizes: &str) -> String {
    let bare = sizes.chars().all(|c| c.is_ascii_digit() || c == ',' || c == '-');
    if bare { format!("{sizes}MB") } else { sizes.to_owned() }
}

#[cfg(test)]
mod tests {
    use numalab_topology::Allowed;

    use super::*;

    /// Two nodes with a gap in their numbers and unequal core counts, two threads per core.
    const ODD: &str = "\
SYSTEM_NAME=\"OURS\"
PARTITION=\"ODD\"
CCDS_PER_NUMA=2
SKIP_CORES=4
Thread(s) per core: 2
NUMA node(s): 2
NUMA node0 CPU(s): 0-3,12-15
NUMA node8 CPU(s): 4-11,16-23
";

    fn odd() -> Architecture {
        numalab_formats::architecture::read(ODD).expect("it is right").value
    }

    fn cpus(mode: Mode, domains: &[u32], with_smt: bool) -> Vec<Vec<u32>> {
        let domains: Vec<NodeId> = domains.iter().copied().map(NodeId).collect();
        let steps = steps(&odd(), mode, &domains, "8", with_smt).expect("it can be");
        steps.iter().map(|step| step.cpus.iter().map(|cpu| cpu.0).collect()).collect()
    }

    #[test]
    fn more_cores_than_any_machine_has_are_refused_before_the_steps_are_made() {
        let of = |cpus: &str| {
            let text =
                format!("SYSTEM_NAME=x\nPARTITION=y\nCCDS_PER_NUMA=1\nNUMA node0 CPU(s): {cpus}\n");
            let architecture = numalab_formats::architecture::read(&text).unwrap().value;
            steps(&architecture, Mode::Sequential, &[NodeId(0)], "8", false)
        };
        assert_eq!(of("0-99").unwrap().len(), 100);
        let error = of("0-65535").unwrap_err();
        assert_eq!(error, PlacementError::TooManyCores { domain: NodeId(0), cores: 65_536 });
    }

    #[test]
    fn sequential_ranks_fill_a_group_before_the_next() {
        assert_eq!(
            cpus(Mode::Sequential, &[0], false),
            [vec![0], vec![0, 1], vec![0, 1, 2], vec![0, 1, 2, 3]]
        );
    }

    #[test]
    fn interleaved_ranks_take_a_core_of_each_group_and_no_skipped_one() {
        let steps = cpus(Mode::Interleaved, &[8], false);
        assert_eq!(steps.last().unwrap(), &[5, 8, 6, 9, 7, 10, 11]);
    }

    #[test]
    fn a_domain_with_fewer_cores_gives_all_of_them() {
        let all = odd();
        let domains = [NodeId(0), NodeId(8)];
        let steps = steps(&all, Mode::Sequential, &domains, "1-512", false).unwrap();
        let ranks: Vec<usize> = steps.iter().map(|step| step.ranks).collect();
        assert_eq!(ranks, [2, 4, 6, 8, 9, 10, 11]);
        let last = steps.last().unwrap();
        assert_eq!(last.nodes[3..5], [NodeId(0), NodeId(8)]);
        assert_eq!(last.stem, "sequential_domains0,8_11ranks_1-512MB");
    }

    #[test]
    fn second_threads_come_after_all_cores_and_only_when_asked_for() {
        let with = cpus(Mode::Sequential, &[8], true);
        assert_eq!(with.last().unwrap(), &[5, 6, 7, 8, 9, 10, 11, 17, 18, 19, 20, 21, 22, 23]);
    }

    #[test]
    fn where_only_second_threads_may_be_used_ranks_run_on_these() {
        let with = |cpus: &str, mode, domain| {
            let mut odd = odd();
            let cpus = cpus.parse().unwrap();
            odd.machine.allowed = Some(Allowed { cpus, ..Allowed::default() });
            steps(&odd, mode, &[NodeId(domain)], "8", false)
                .map(|steps| steps.last().unwrap().cpus.iter().map(|cpu| cpu.0).collect::<Vec<_>>())
        };
        assert_eq!(with("12-15", Mode::Sequential, 0).unwrap(), [12, 13, 14, 15]);
        assert_eq!(with("1,13-14", Mode::Sequential, 0).unwrap(), [1, 14]);
        // The groups are cores 4 to 7 and 8 to 11, even if only three may be used.
        assert_eq!(with("18,19,22", Mode::Interleaved, 8).unwrap(), [18, 22, 19]);
        assert_eq!(
            with("12-15", Mode::Sequential, 8).unwrap_err().to_string(),
            "domain 8 has no usable core: this process may run on cpus 12-15, and its cpus are 4-11,16-23"
        );
    }

    #[test]
    fn domains_that_cannot_be_used_are_named() {
        let of = |domain| steps(&odd(), Mode::Sequential, &[NodeId(domain)], "8", false);
        let error = of(1).unwrap_err().to_string();
        assert!(error.contains("domain 1") && error.contains("0,8"), "{error}");
        let mut none = odd();
        none.skip_cores = "0-23".parse().unwrap();
        let error = steps(&none, Mode::Sequential, &[NodeId(0)], "8", false).unwrap_err();
        assert_eq!(
            error.to_string(),
            "domain 0 has no usable core: SKIP_CORES excludes 8 of its cpus 0-3,12-15"
        );
    }

    #[test]
    fn sizes_with_units_are_kept_as_written() {
        assert_eq!(sizes_suffix("1-512"), "1-512MB");
        assert_eq!(sizes_suffix("16K-1G"), "16K-1G");
    }
}
