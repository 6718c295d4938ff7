//! Command lines for a placement, one per tool.

use numalab_record::shell::command_line;
use numalab_topology::{CpuId, CpuSet};
use serde::{Deserialize, Serialize};

use super::machine::{MachineCosts, cpu_list, node_list};
use super::{Candidate, Spread};

/// A command line with its tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCommand {
    /// The tool's name.
    pub tool: String,
    /// The command line, quoted for a shell.
    pub command: String,
}

/// Returns every command line that runs a program with a candidate; empty for a change of the
/// program's source.
#[must_use]
pub fn commands(
    candidate: &Candidate,
    machine: &MachineCosts,
    words: &[String],
) -> Vec<ToolCommand> {
    let program = command_line(words);
    let lines = match candidate {
        Candidate::Bind { node } => bind(*node, machine, &program),
        Candidate::Interleave { nodes } => interleave(&node_list(nodes), &program),
        Candidate::WeightedInterleave { weights } => weighted(weights, &program),
        Candidate::FastMemory { nodes } => fast_memory(&node_list(nodes), &program),
        Candidate::HugePages => huge_pages(&program),
        Candidate::Pack => pack(machine, &program),
        Candidate::Cpus { spread, cpus } => on_cpus(*spread, cpus, &program),
        Candidate::Balancing { mode } => balancing(*mode, &program),
        Candidate::Ranks { options } => ranks(options, words),
        Candidate::BindRegion { .. }
        | Candidate::FirstTouch { .. }
        | Candidate::Replicate { .. }
        | Candidate::SeparateLines { .. } => Vec::new(),
    };
    let named = |(tool, command): (&str, String)| ToolCommand { tool: tool.to_owned(), command };
    lines.into_iter().map(named).collect()
}

type Lines = Vec<(&'static str, String)>;

fn bind(node: u32, machine: &MachineCosts, program: &str) -> Lines {
    let mut lines = vec![
        ("numalab", format!("numalab bind -q --numa={node} --cpus node -- {program}")),
        ("numactl", format!("numactl --cpunodebind={node} --membind={node} {program}")),
        (
            "srun",
            format!("srun -n1 --cpu-bind=map_ldom:{node} --mem-bind=map_mem:{node} {program}"),
        ),
    ];
    let cpus = machine.cpus_of(node);
    if !cpus.is_empty() {
        let places = openmp_places(&cpus);
        lines.extend([
            ("OpenMP", format!("OMP_PLACES='{places}' OMP_PROC_BIND=close {program}")),
            ("taskset", format!("taskset -c {cpus} {program}")),
            ("cgroup", scope(&format!("AllowedCPUs={cpus} -p AllowedMemoryNodes={node}"), program)),
            ("systemd", service(Some(&cpus), "bind", &node.to_string(), program)),
            (
                "Flux",
                format!(
                    "flux run -n1 -o cpu-affinity=map:{cpus} numactl --membind={node} {program}"
                ),
            ),
        ]);
    }
    let numactl = format!("numactl --cpunodebind={node} --membind={node}");
    lines
        .push(("torchrun", format!("torchrun --nproc-per-node=1 --no-python {numactl} {program}")));
    lines.push(("Kubernetes", KUBELET.to_owned()));
    lines.extend(guests_on(node));
    lines
}

/// Options with which kubelet gives a Guaranteed pod of whole cpus one node; it chooses which.
const KUBELET: &str = "kubelet --cpu-manager-policy=static --memory-manager-policy=Static \
                       --topology-manager-policy=single-numa-node";

/// Returns the commands for a guest that runs the program; the guest's name is left to fill in.
fn guests_on(node: u32) -> Lines {
    vec![
        ("libvirt", format!("virsh numatune GUEST --mode strict --nodeset {node} --config")),
        ("xl", format!("xl create GUEST.cfg 'cpus=\"node:{node}\"'")),
    ]
}

fn interleave(nodes: &str, program: &str) -> Lines {
    let policy = format!("numalab bind -q --numa={nodes} --policy interleave -- {program}");
    vec![
        ("numalab", policy),
        ("numactl", format!("numactl --interleave={nodes} {program}")),
        ("srun", format!("srun -n1 numactl --interleave={nodes} {program}")),
        ("systemd", service(None, "interleave", nodes, program)),
        ("libvirt", format!("virsh numatune GUEST --mode interleave --nodeset {nodes} --config")),
    ]
}

fn weighted(weights: &[u32], program: &str) -> Lines {
    let weights: Vec<String> = weights.iter().map(u32::to_string).collect();
    let weights = weights.join(",");
    let policy = format!("--policy weighted --weights {weights}");
    vec![
        ("numalab", format!("numalab bind -q --numa=auto {policy} -- {program}")),
        ("numactl", format!("numactl --weighted-interleave=all {program}")),
    ]
}

fn fast_memory(nodes: &str, program: &str) -> Lines {
    vec![
        ("numactl", format!("numactl --membind={nodes} {program}")),
        ("srun", format!("srun -n1 --mem-bind=mask_mem:{} {program}", mask(nodes))),
        ("cgroup", scope(&format!("AllowedMemoryNodes={nodes}"), program)),
    ]
}

fn huge_pages(program: &str) -> Lines {
    vec![
        ("numalab", format!("numalab knobs run -q thp_enabled=always -- {program}")),
        ("glibc", format!("GLIBC_TUNABLES=glibc.malloc.hugetlb=1 {program}")),
        ("sysfs", format!("echo always > /sys/kernel/mm/transparent_hugepage/enabled; {program}")),
    ]
}

fn pack(machine: &MachineCosts, program: &str) -> Lines {
    let of_node = |(node, cpus): (&u32, &usize)| match cpus {
        0 => None,
        1 => Some(format!("M{node}:0")),
        cpus => Some(format!("M{node}:0-{}", cpus - 1)),
    };
    let domains: Vec<String> =
        machine.nodes.iter().zip(&machine.cpus).filter_map(of_node).collect();
    vec![
        ("OpenMP", format!("OMP_PLACES=cores OMP_PROC_BIND=close {program}")),
        ("likwid-pin", format!("likwid-pin -c {} {program}", domains.join("@"))),
    ]
}

fn on_cpus(spread: Spread, cpus: &[u32], program: &str) -> Lines {
    let list = cpu_list(cpus);
    let openmp = spread.openmp();
    vec![
        ("taskset", format!("{openmp} taskset -c {list} {program}")),
        ("OpenMP", format!("{openmp} {program}")),
        ("likwid-pin", format!("likwid-pin -c {list} {program}")),
        ("srun", format!("srun -n1 --cpu-bind=mask_cpu:{} {program}", mask(&list))),
        ("cgroup", scope(&format!("AllowedCPUs={list}"), program)),
    ]
}

fn balancing(mode: u8, program: &str) -> Lines {
    let (knob, sysfs) = match mode {
        2 => (" demotion=true", "; echo true > /sys/kernel/mm/numa/demotion_enabled"),
        _ => ("", ""),
    };
    vec![
        ("numalab", format!("numalab knobs run -q numa_balancing={mode}{knob} -- {program}")),
        ("sysctl", format!("sysctl kernel.numa_balancing={mode}{sysfs}; {program}")),
    ]
}

/// Inserts the options right after the program's name, before all others.
fn ranks(options: &[String], words: &[String]) -> Lines {
    let (srun, rest) =
        words.split_first().map_or((&[][..], words), |(_, rest)| (&words[..1], rest));
    vec![("srun", command_line(&[srun, options, rest].concat()))]
}

/// Returns a command that runs the program in a transient scope (systemd-run(1)).
fn scope(properties: &str, program: &str) -> String {
    format!("systemd-run --scope -p {properties} {program}")
}

/// Returns a command that runs the program in a transient service, because a scope cannot have a
/// memory policy (systemd.exec(5)).
fn service(cpus: Option<&CpuSet>, policy: &str, nodes: &str, program: &str) -> String {
    let affinity = cpus.map_or_else(String::new, |cpus| format!("-p CPUAffinity={cpus} "));
    format!("systemd-run --pipe {affinity}-p NUMAPolicy={policy} -p NUMAMask={nodes} {program}")
}

/// Returns OpenMP place intervals: `{0}:4` is four places of one cpu each.
fn openmp_places(cpus: &CpuSet) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for CpuId(cpu) in cpus.iter() {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == cpu => *count += 1,
            _ => runs.push((cpu, 1)),
        }
    }
    let places: Vec<String> =
        runs.iter().map(|(cpu, count)| format!("{{{cpu}}}:{count}")).collect();
    places.join(",")
}

/// Converts a list to a hexadecimal mask, the form that SLURM expects.
fn mask(list: &str) -> String {
    let set: CpuSet = list.parse().unwrap_or_default();
    let digits = set.iter().map(|CpuId(cpu)| cpu / 4).max().unwrap_or(0);
    let digit = |at: u32| {
        let bit = |bit: u32| u32::from(set.contains(CpuId(4 * at + bit))) << bit;
        let value: u32 = (0..4).map(bit).sum();
        char::from_digit(value, 16).unwrap_or('0')
    };
    format!("0x{}", (0..=digits).rev().map(digit).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::super::CpuPlace;
    use super::*;

    fn lines(candidate: &Candidate) -> Vec<String> {
        let place = |cpu: u32| CpuPlace { cpu, node: cpu % 2, core: cpu, group: cpu % 2 };
        let machine = MachineCosts {
            nodes: vec![0, 1],
            cpus: vec![2, 2],
            has_memory: vec![true, true],
            places: (0..4).map(place).collect(),
            ..MachineCosts::default()
        };
        let words = ["srun", "-n4", "./a b"].map(str::to_owned);
        commands(candidate, &machine, &words).into_iter().map(|of| of.command).collect()
    }

    #[test]
    fn a_placement_is_the_same_by_every_tool() {
        let program = "srun -n4 './a b'";
        assert_eq!(
            lines(&Candidate::Bind { node: 1 }),
            [
                format!("numalab bind -q --numa=1 --cpus node -- {program}"),
                format!("numactl --cpunodebind=1 --membind=1 {program}"),
                format!("srun -n1 --cpu-bind=map_ldom:1 --mem-bind=map_mem:1 {program}"),
                format!("OMP_PLACES='{{1}}:1,{{3}}:1' OMP_PROC_BIND=close {program}"),
                format!("taskset -c 1,3 {program}"),
                format!("systemd-run --scope -p AllowedCPUs=1,3 -p AllowedMemoryNodes=1 {program}"),
                format!(
                    "systemd-run --pipe -p CPUAffinity=1,3 -p NUMAPolicy=bind -p NUMAMask=1 \
                     {program}"
                ),
                format!("flux run -n1 -o cpu-affinity=map:1,3 numactl --membind=1 {program}"),
                format!(
                    "torchrun --nproc-per-node=1 --no-python numactl --cpunodebind=1 --membind=1 \
                     {program}"
                ),
                KUBELET.to_owned(),
                "virsh numatune GUEST --mode strict --nodeset 1 --config".to_owned(),
                "xl create GUEST.cfg 'cpus=\"node:1\"'".to_owned(),
            ]
        );
        let cpus = Candidate::Cpus { spread: Spread::Groups, cpus: vec![0, 1, 2, 9] };
        let found = lines(&cpus);
        let openmp = "OMP_PLACES=ll_caches OMP_PROC_BIND=spread";
        assert_eq!(found[0], format!("{openmp} taskset -c 0-2,9 {program}"));
        assert!(found.contains(&format!("srun -n1 --cpu-bind=mask_cpu:0x207 {program}")));
        let tiering = lines(&Candidate::Balancing { mode: 2 });
        assert!(tiering[0].contains("numa_balancing=2 demotion=true -- "), "{tiering:?}");
    }

    #[test]
    fn options_of_ranks_stand_behind_the_name_of_srun() {
        let options = vec!["--distribution=block:cyclic".to_owned()];
        let found = lines(&Candidate::Ranks { options });
        assert_eq!(found, ["srun --distribution=block:cyclic -n4 './a b'"]);
    }

    #[test]
    fn what_its_author_must_change_has_no_command() {
        assert_eq!(lines(&Candidate::FirstTouch { line: None, region: String::new() }), [""; 0]);
    }
}
