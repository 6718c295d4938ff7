//! Command lines for a placement, one per tool.

use numalab_record::shell::command_line;
use numalab_topology::Placement;
use serde::{Deserialize, Serialize};

use super::machine::{MachineCosts, cpu_list, node_list};
use super::{Candidate, Spread};

/// A command line with its tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToolCommand {
    /// The tool's name.
    pub tool: String,
    /// The command line, quoted for a shell.
    pub command: String,
}

/// Returns every command line that runs a program with a candidate; empty for a change of the
/// program's source.
pub fn commands(
    candidate: &Candidate,
    machine: &MachineCosts,
    words: &[String],
) -> Vec<ToolCommand> {
    let program = command_line(words);
    let lines = match candidate {
        Candidate::Bind { node } => {
            let cpus = Some(machine.cpus_of(*node)).filter(|cpus| !cpus.is_empty());
            let placed = candidate.placement().unwrap_or_default();
            Placement { cpus, ..placed }.commands(&program)
        }
        Candidate::WeightedInterleave { weights } => weighted(weights, &program),
        Candidate::HugePages => huge_pages(&program),
        Candidate::Pack => pack(machine, &program),
        Candidate::Cpus { spread, cpus } => {
            let placed = candidate.placement().unwrap_or_default();
            on_cpus(*spread, cpus, placed.commands(&program), &program)
        }
        Candidate::Balancing { mode } => balancing(*mode, &program),
        Candidate::PlaceFile { path, nodes, .. } => {
            let [numactl, numalab] = place_file(path, nodes);
            vec![
                ("numactl", format!("{numactl}; {program}")),
                ("numalab", format!("{numalab}; {program}")),
            ]
        }
        Candidate::Ranks { options } => ranks(options, words),
        _ => candidate.placement().map_or_else(Vec::new, |placed| placed.commands(&program)),
    };
    let named = |(tool, command): (&str, String)| ToolCommand { tool: tool.to_owned(), command };
    lines.into_iter().map(named).collect()
}

type Lines = Vec<(&'static str, String)>;

fn weighted(weights: &[u32], program: &str) -> Lines {
    let weights: Vec<String> = weights.iter().map(u32::to_string).collect();
    let weights = weights.join(",");
    let policy = format!("--policy weighted --weights {weights}");
    vec![
        ("numalab", format!("numalab bind -q --numa=auto {policy} -- {program}")),
        ("numactl", format!("numactl --weighted-interleave=all {program}")),
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

/// Returns the command lines of the placement, with the variables by which OpenMP spreads its
/// threads over the cpus.
fn on_cpus(spread: Spread, cpus: &[u32], placed: Lines, program: &str) -> Lines {
    let (list, openmp) = (cpu_list(cpus), spread.openmp());
    let mut lines = vec![
        ("taskset", format!("{openmp} taskset -c {list} {program}")),
        ("OpenMP", format!("{openmp} {program}")),
        ("likwid-pin", format!("likwid-pin -c {list} {program}")),
    ];
    lines.extend(placed.into_iter().filter(|(tool, _)| !["taskset", "OpenMP"].contains(tool)));
    lines
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

/// Returns the command lines, for numactl and for numalab, that drop a whole file from the page
/// cache with `dd`, and read it again on these nodes.
pub(crate) fn place_file(path: &str, nodes: &[u32]) -> [String; 2] {
    let (path, nodes) = (command_line(&[path.to_owned()]), node_list(nodes));
    let drop = format!("dd if={path} iflag=nocache count=0 status=none");
    let read = format!("cat {path} >/dev/null");
    let bind = format!("numalab bind -q --numa={nodes} --policy interleave");
    [format!("{drop}; numactl --interleave={nodes} {read}"), format!("{drop}; {bind} -- {read}")]
}

/// Inserts the options right after the program's name, before all others.
fn ranks(options: &[String], words: &[String]) -> Lines {
    let (srun, rest) =
        words.split_first().map_or((&[][..], words), |(_, rest)| (&words[..1], rest));
    vec![("srun", command_line(&[srun, options, rest].concat()))]
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
        let bound = lines(&Candidate::Bind { node: 1 });
        assert_eq!(bound[1], format!("numactl --cpunodebind=1 --membind=1 {program}"));
        assert_eq!(bound[4], format!("taskset -c 1,3 {program}"));
        let turns = lines(&Candidate::Interleave { nodes: vec![0, 1] });
        assert_eq!(
            turns[0],
            format!("numalab bind -q --numa=0,1 --policy interleave -- {program}")
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
    fn a_file_is_dropped_and_read_again_before_the_program_starts() {
        let (path, nodes) = ("/data/a b".to_owned(), vec![0, 1]);
        let found = lines(&Candidate::PlaceFile { path, address: 0, nodes });
        assert_eq!(
            found[0],
            "dd if='/data/a b' iflag=nocache count=0 status=none; numactl --interleave=0,1 \
             cat '/data/a b' >/dev/null; srun -n4 './a b'"
        );
    }

    #[test]
    fn options_of_ranks_follow_the_name_of_srun() {
        let options = vec!["--distribution=block:cyclic".to_owned()];
        let found = lines(&Candidate::Ranks { options });
        assert_eq!(found, ["srun --distribution=block:cyclic -n4 './a b'"]);
    }

    #[test]
    fn a_change_for_the_author_has_no_command() {
        assert_eq!(lines(&Candidate::FirstTouch { line: None, region: String::new() }), [""; 0]);
    }
}
